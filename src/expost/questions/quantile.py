"""Quantiles, chosen by rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from expost.cost import Number
from expost.data.expression import NUMBER_KINDS
from expost.data.quantiles import Ranks
from expost.questions.statistic import ColumnOf, Statistic, column_of

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


@dataclass(frozen=True)
class Quantile(Statistic["Ranks"]):
    """A quantile of a column or an expression, or several (a list of them, chosen jointly).

    Of a table: ``table.quantile("cost", 0.9, bounds=(0, 500))``.
    Of an array: ``xp.Quantile(quantile=0.9, bounds=(0, 500))``.

    Parameters
    ----------
    column
        A column, or an expression.
    quantile
        Which one, from 0 to 1; or a list in ascending order.
    bounds
        The lowest and the highest answer; values are moved there. Without bounds, values may have any size: whole
        numbers are clamped to ±2^60, and others are rounded to 24 significant bits.
    missing
        What NULL and NaN count as; with ``"drop"`` they do not count.
    grid
        What values are rounded to: by default 1 for whole numbers, and otherwise about a millionth of the width of the
        bounds.
    interval
        Whether the same ε also gives two values that the true quantile lies between, with 95 % confidence; the value
        itself is then off by about three times as many ranks.

    Proof: thm-table-quantiles
    """

    kind: ClassVar[str] = "quantile"

    column: ColumnOf | None = None
    quantile: Any = Fraction(1, 2)
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"
    grid: Number | None = None
    interval: bool = False

    def read(self, table: PrivateTable) -> Any:
        """The quantiles of the table, as a question."""
        return self.read_as("a quantile", table)

    def read_as(self, called: str, table: PrivateTable) -> Any:
        """The same, called what somebody asked for where the column does not fit."""
        value = table.expression(column_of(self.column, self.kind), NUMBER_KINDS, called)
        return Ranks.of(table, value, self.quantile, self.bounds, self.missing, self.grid, self.interval)

    def question(self, table: PrivateTable) -> Ranks:
        """The same."""
        return replace(self.read(table), record=self)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Median(Statistic["Ranks"]):
    """The median of a column or an expression: :class:`Quantile` at one half.

    Of a table: ``table.median("cost", bounds=(0, 500))``. Of an array: ``xp.Median(bounds=(0, 500))``.

    Parameters
    ----------
    column, bounds, missing, grid, interval
        As for :class:`Quantile`.

    Proof: thm-table-quantiles
    """

    kind: ClassVar[str] = "median"

    column: ColumnOf | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"
    grid: Number | None = None
    interval: bool = False

    def read(self, table: PrivateTable) -> Any:
        """The median of the table, as a question."""
        middle = Quantile(self.column, Fraction(1, 2), self.bounds, self.missing, self.grid, self.interval)
        return middle.read_as("a median", table)

    def question(self, table: PrivateTable) -> Ranks:
        """The same."""
        return replace(self.read(table), record=self)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Quartiles(Statistic["Ranks"]):
    """The lower and the upper quartile, chosen jointly: :class:`Quantile` at one quarter and at three.

    Parameters
    ----------
    column, bounds, missing, grid
        As for :class:`Quantile`.

    Proof: thm-table-quantiles
    """

    kind: ClassVar[str] = "interquartile_range"

    column: ColumnOf | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"
    grid: Number | None = None

    def read(self, table: PrivateTable) -> Any:
        """The quartiles of the table, as a question."""
        quartiles = Fraction(1, 4), Fraction(3, 4)
        return Quantile(self.column, quartiles, self.bounds, self.missing, self.grid).read_as("a quartile", table)

    def question(self, table: PrivateTable) -> Ranks:
        """The same."""
        return replace(self.read(table), record=self)  # type: ignore[no-any-return]
