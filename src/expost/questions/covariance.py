"""The covariance and the correlation of two clamped values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost.cost import Number
from expost.data.expression import NUMBER_KINDS
from expost.errors import InvalidValue
from expost.estimate import Drawn, Ends, Estimate
from expost.mechanisms import CorrelationOfRecords, CovarianceOfRecords
from expost.questions.mean import Averaged, no_bounds
from expost.questions.noised import Noised
from expost.questions.products import Products
from expost.questions.spread import SpreadNoise
from expost.questions.statistic import ColumnOf, Statistic, check_listed

if TYPE_CHECKING:
    from expost.data.searched import Searched
    from expost.data.table import PrivateTable
    from expost.mechanism import Mechanism
    from expost.questions.statistics import Statistics


@dataclass(frozen=True)
class OfTwo(Statistic["Statistics | Searched"]):
    """A statistic of two columns or expressions, their values clamped to ``bounds``."""

    columns: Sequence[ColumnOf] = ()
    bounds: Sequence[tuple[Number, Number]] | None = None
    missing: Number | str = "drop"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns != ():
            check_listed(self.columns, "columns")
        if len(self.columns) not in (0, 2):
            raise InvalidValue(f"a {self.kind} is of two columns, got {len(self.columns)}")

    def question(self, table: PrivateTable) -> Statistics | Searched:
        """Without bounds, with a search for both ranges."""
        if self.bounds is not None:
            return super().question(table)
        from expost.data.searched import Searched

        check_listed(self.columns, "columns")
        values = [table.expression(column, NUMBER_KINDS, f"a {self.kind}") for column in self.columns]
        return Searched.of(table, self, values)

    def _read(self, table: PrivateTable, kind: type[Products]) -> Any:
        if self.bounds is None:
            raise no_bounds(self.kind)
        check_listed(self.columns, "columns")
        return kind.of(table, self.columns, self.bounds, self.missing)


@dataclass(frozen=True)
class Covariance(OfTwo):
    """The covariance of two columns or expressions (divided by n), their values clamped to ``bounds``.

    Of a table: ``table.covariance("age", "cost", bounds=[(0, 110), (0, 500)])``.
    Of an array: ``xp.Covariance(bounds=[(0, 110), (0, 500)])``.

    Parameters
    ----------
    columns
        The two columns or expressions.
    bounds
        A pair (lowest, highest) for each. Without them ranges are found first, for the ε that this takes.
    missing
        What NULL and NaN count as; with ``"drop"`` a row counts only if it has both values.

    Proof: thm-table-moments, lem-grouped-products
    """

    kind: ClassVar[str] = "covariance"

    def read(self, table: PrivateTable) -> CovarianceOfTable:
        """The columns, parsed."""
        found: CovarianceOfTable = self._read(table, CovarianceOfTable)
        return found


@dataclass(frozen=True)
class Correlation(OfTwo):
    """The correlation of two columns or expressions, their values clamped to ``bounds``.

    Of a table: ``table.correlation("age", "cost", bounds=[(0, 110), (0, 500)])``.
    Of an array: ``xp.Correlation(bounds=[(0, 110), (0, 500)])``.

    Parameters
    ----------
    columns
        The two columns or expressions.
    bounds
        A pair (lowest, highest) for each. Without them ranges are found first, for the ε that this takes.
    missing
        What NULL and NaN count as; with ``"drop"`` a row counts only if it has both values.

    Proof: thm-table-moments, lem-grouped-products
    """

    kind: ClassVar[str] = "correlation"

    def read(self, table: PrivateTable) -> CorrelationOfTable:
        """The columns, parsed."""
        found: CorrelationOfTable = self._read(table, CorrelationOfTable)
        return found


@dataclass(frozen=True)
class _Moved:
    """Two means and the covariance of two values from −1 to 1, with noise."""

    spread: SpreadNoise
    places: tuple[int, int, int]
    means: tuple[float, float]
    covariance: float
    scale: float

    def __call__(self, miss: Fraction) -> float:
        """How far the covariance is off at most, but for a probability."""
        return self.spread.covariance(self.places, self.means, self.covariance, miss) * self.scale


def _moved(reading: Products, noised: Noised, scale: float) -> tuple[_Moved, Any]:
    size, means, products = reading.moments(noised)
    found = products - np.outer(means, means)
    places = reading.place(0), reading.place(1), reading.place(0, 1)
    both = float(np.clip(found[0, 1], -1, 1))
    return _Moved(SpreadNoise(noised.noise, size), places, (float(means[0]), float(means[1])), both, scale), found


@dataclass(frozen=True)
class CovarianceOfTable(Products):
    """The covariance of two clamped values."""

    name: ClassVar[str] = "covariance"

    def array_mechanism(self, **settings: Any) -> Mechanism:
        """That for an array of records."""
        return CovarianceOfRecords(bounds=self.bounds, **settings)

    def answer(self, noised: Noised) -> Any:
        """The covariance within its possible range, with its error for any confidence."""
        scale = float(self.box.halves[0] * self.box.halves[1])
        moved, _ = _moved(self, noised, scale)
        how = Averaged(round(moved.spread.size))
        return Estimate.of(moved.covariance * scale, Drawn(noised.origin, moved), how=how)


@dataclass(frozen=True)
class CorrelationOfTable(Products):
    """The correlation of two clamped values."""

    name: ClassVar[str] = "correlation"

    def array_mechanism(self, **settings: Any) -> Mechanism:
        """That for an array of records."""
        return CorrelationOfRecords(bounds=self.bounds, **settings)

    def answer(self, noised: Noised) -> Any:
        """The correlation from −1 to 1, with an interval for any confidence."""
        moved, found = _moved(self, noised, 1.0)
        spreads = float(found[0, 0]), float(found[1, 1])
        value = float(np.clip(found[0, 1] / sqrt(spreads[0] * spreads[1]), -1, 1)) if min(spreads) > 0 else 0.0
        within = min(max(spreads[0], 0.0), 1.0), min(max(spreads[1], 0.0), 1.0)
        squares = self.place(0, 0), self.place(1, 1)
        return Estimate.between(
            value, _CorrelationEnds(moved, squares, within, value), how=Averaged(round(moved.spread.size))
        )


@dataclass(frozen=True)
class _CorrelationEnds:
    """Where a correlation lies, from intervals that hold for a covariance and two variances at once.

    Proof: lem-covariance-error
    """

    moved: _Moved
    squares: tuple[int, int]
    variances: tuple[float, float]
    value: float

    def __call__(self, miss: Fraction) -> Ends:
        """Each of the three may miss with a third of the probability."""
        off, spread = self.moved(miss / 3), self.moved.spread
        low, high = self.moved.covariance - off, self.moved.covariance + off
        least, most = 1.0, 1.0
        for place in range(2):
            variance, mean = self.variances[place], self.moved.means[place]
            error = spread.variance((self.moved.places[place], self.squares[place]), mean, variance, miss / 3)
            least, most = least * max(variance - error, 0.0), most * min(variance + error, 1.0)
        return min(_over(low, least, most), self.value), max(-_over(-high, least, most), self.value)


def _over(low: float, least: float, most: float) -> float:
    """The least ratio of a number from ``low`` on to the root of one between two, from −1 to 1."""
    if low >= 0:
        return max(min(low / sqrt(most) * (1 - 2**-40), 1.0), -1.0) if most else -1.0
    return max(low / sqrt(least) * (1 + 2**-40), -1.0) if least else -1.0
