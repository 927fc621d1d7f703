"""The sum of clamped values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from expost.cost import Number
from expost.data.clipped import Clipped
from expost.data.expression import NUMBER_KINDS, Expression
from expost.errors import InvalidValue
from expost.questions.noised import Noised
from expost.questions.statistic import ColumnOf, Reach, Reading, Statistic, Sums, Total, column_of

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.statistics import NumericStatistic  # noqa: F401  # named in brackets


@dataclass(frozen=True)
class Sum(Statistic["NumericStatistic[float]"]):
    """The sum of a column or an expression, its values clamped to ``bounds``.

    Of a table: ``table.sum("cost", bounds=(0, 500))``. Of an array: ``xp.Sum(bounds=(0, 500))``.

    Parameters
    ----------
    column
        A column, or an expression.
    bounds
        The lowest and the highest value that counts; others are moved there.
    missing
        What NULL and NaN count as; with ``"drop"`` they do not count.
    grid
        The distance between the values that are summed, a power of two; by default 1 for whole numbers, and otherwise
        too fine to matter.

    Proof: lem-sum, lem-grouped-sums
    """

    kind: ClassVar[str] = "sum"

    column: ColumnOf | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"
    grid: Number | None = None

    def read(self, table: PrivateTable) -> SumOfTable:
        """The column, parsed; raises for bounds that do not fit."""
        value = table.expression(column_of(self.column, self.kind), NUMBER_KINDS, "a sum")
        if self.bounds is None:
            raise InvalidValue("a sum is of values within bounds: pass bounds=(lowest, highest)")
        return SumOfTable(Clipped.of(value, self.bounds, self.missing, self.grid, summed=True))


@dataclass(frozen=True)
class OfClipped(Reading):
    """A statistic of one clamped value."""

    value: Clipped

    @property
    def values(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """The one value."""
        return (self.value.expression,)

    @property
    def dropped(self) -> bool:  # type: ignore[override]
        """Whether rows without a value do not count."""
        return self.value.missing is None


@dataclass(frozen=True)
class SumOfTable(OfClipped):
    """The sum of clamped values, exact whatever the order of rows."""

    @property
    def title(self) -> str:
        """What is summed."""
        return f"sum of {self.value!r}"

    @property
    def what(self) -> str:
        """What is summed, without the rules for values."""
        return f"sum of {self.value.expression.name}"

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """That of the grid."""
        return self.value.grid.step

    def cells(self, values: Sequence[str]) -> list[str]:
        """The clamped value, in steps."""
        return [self.value.cell_of(values[0])]

    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """One sum."""
        return (Sums((total(cells[0]),), reach.sums(*self.value.ends, dropped=self.dropped)),)

    def present(self, number: int) -> float:
        """In units of the data."""
        return self.value.grid.value(int(number))

    def answer(self, noised: Noised) -> Any:
        """The sum in units of the data."""
        return self.present(noised.numbers[0])
