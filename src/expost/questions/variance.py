"""The variance of clamped values (divided by their number)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost.cost import Number
from expost.data.expression import NUMBER_KINDS
from expost.estimate import Drawn, Estimate
from expost.mechanisms import VarianceOfRecords
from expost.questions.mean import Averaged, no_bounds
from expost.questions.noised import Noised
from expost.questions.products import Products
from expost.questions.spread import SpreadNoise
from expost.questions.statistic import ColumnOf, Statistic, column_of

if TYPE_CHECKING:
    from expost.data.searched import Searched
    from expost.data.table import PrivateTable
    from expost.mechanism import Mechanism
    from expost.questions.statistics import Statistics


@dataclass(frozen=True)
class Variance(Statistic["Statistics | Searched"]):
    """The variance of a column or an expression (divided by n), its values clamped to ``bounds``.

    Of a table: ``table.variance("cost", bounds=(0, 500))``. Of an array: ``xp.Variance(bounds=(0, 500))``.

    Parameters
    ----------
    column
        A column, or an expression.
    bounds
        The lowest and the highest value that counts; others are moved there. Without them a range is found first, for
        the ε that this takes.
    missing
        What NULL and NaN count as; with ``"drop"`` they do not count.

    Proof: thm-table-moments, lem-grouped-products
    """

    kind: ClassVar[str] = "variance"

    column: ColumnOf | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"

    def read(self, table: PrivateTable) -> VarianceOfTable:
        """The column, parsed; raises for bounds that do not fit, or are not there."""
        if self.bounds is None:
            raise no_bounds(self.kind)
        found: VarianceOfTable = VarianceOfTable.of(
            table, [column_of(self.column, self.kind)], [self.bounds], self.missing
        )
        return found

    def question(self, table: PrivateTable) -> Statistics | Searched:
        """Without bounds, with a search for a range."""
        if self.bounds is not None:
            return super().question(table)
        from expost.data.searched import Searched

        value = table.expression(column_of(self.column, self.kind), NUMBER_KINDS, "a variance")
        return Searched.of(table, self, [value])


@dataclass(frozen=True)
class VarianceOfTable(Products):
    """The variance of clamped values."""

    name: ClassVar[str] = "variance"

    def array_mechanism(self, **settings: Any) -> Mechanism:
        """That for an array of records."""
        return VarianceOfRecords(bounds=self.bounds[0], **settings)

    def answer(self, noised: Noised) -> Any:
        """The variance within its possible range, with its error for any confidence."""
        size, (mean,), products = self.moments(noised)
        variance, scale = float(np.clip(products[0, 0] - mean**2, 0, 1)), float(self.box.halves[0]) ** 2
        spread = SpreadNoise(noised.noise, size)
        bound = partial(_scaled_error, spread, (self.place(0), self.place(0, 0)), float(mean), variance, scale)
        return Estimate.of(variance * scale, Drawn(noised.origin, bound), how=Averaged(round(size)))


def _scaled_error(
    spread: SpreadNoise, places: tuple[int, int], mean: float, variance: float, scale: float, miss: Fraction
) -> float:
    return spread.variance(places, mean, variance, miss) * scale
