"""The mean of clamped values: a noisy sum around the middle of the bounds, over a noisy count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from expost.cost import Number
from expost.data.clipped import Clipped
from expost.data.expression import NUMBER_KINDS
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.mechanisms.laplace_sums import mean_reach
from expost.noise.grid import Grid
from expost.noise.sums import StepLaw
from expost.questions.noised import Noised, NoiseOfNumbers
from expost.questions.statistic import ColumnOf, Reach, Statistic, Sums, Total, column_of
from expost.questions.sum import OfClipped

if TYPE_CHECKING:
    from expost.data.searched import Searched
    from expost.data.table import PrivateTable
    from expost.questions.statistics import Statistics

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Mean(Statistic["Statistics | Searched"]):
    """The mean of a column or an expression, its values clamped to ``bounds``.

    Of a table: ``table.mean("cost", bounds=(0, 500))``. Of an array: ``xp.Mean(bounds=(0, 500))``.

    Parameters
    ----------
    column
        A column, or an expression.
    bounds
        The lowest and the highest value that counts; others are moved there. Without them a range is found first, for
        the ε that this takes.
    missing
        What NULL and NaN count as; with ``"drop"`` they do not count.
    grid
        The distance between the values that are summed, a power of two.

    Proof: thm-mean, lem-grouped-sums
    """

    kind: ClassVar[str] = "mean"

    column: ColumnOf | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"
    grid: Number | None = None

    def read(self, table: PrivateTable) -> MeanOfTable:
        """The column, parsed; raises for bounds that do not fit, or are not there."""
        if self.bounds is None:
            raise no_bounds(self.kind)
        value = table.expression(column_of(self.column, self.kind), NUMBER_KINDS, "a mean")
        return MeanOfTable(_with_a_middle(Clipped.of(value, self.bounds, self.missing, self.grid), self.grid))

    def question(self, table: PrivateTable) -> Statistics | Searched:
        """Without bounds, with a search for a range."""
        if self.bounds is not None:
            return super().question(table)
        if self.grid is not None:
            raise InvalidValue("a grid is for values within bounds: give bounds, or leave it out")
        from expost.data.searched import Searched

        return Searched.of(table, self, [table.expression(column_of(self.column, self.kind), NUMBER_KINDS, "a mean")])


def _with_a_middle(value: Clipped, stated: Number | None) -> Clipped:
    """The value on a grid that has the middle of its bounds, unless a grid was stated.

    Whole numbers from 0 to 1 are ½ from it on either side; from a whole number next to it they would be up to 1 away,
    which takes twice the noise.
    """
    if stated is not None or not sum(value.ends) % 2:
        return value
    return replace(value, grid=Grid(value.grid.exponent - 1))


def no_bounds(kind: str) -> InvalidValue:
    """What is said of a statistic that is asked of all groups at once, where no range can be looked for."""
    return InvalidValue(
        f"a {kind} of groups, or beside others, is of values within bounds: pass bounds, or let a range be found for "
        f"each group by itself, as in groups.ask(lambda rows: rows.{kind}(…))"
    )


class Averaged(NamedTuple):
    """How a mean was made."""

    values: int
    """The number of values that the sum was divided by: with noise, where it is not public."""


def fewest_values(noised: Noised, miss: Fraction) -> float:
    """How many values there are at least, but for a probability: noise of one sign is half as likely."""
    return max(noised.numbers[1], 1) - noised.noise.reach((1.0,), min(2 * miss, Fraction(1, 2)), 1)


@dataclass(frozen=True)
class MeanOfTable(OfClipped):
    """The mean of clamped values."""

    @property
    def title(self) -> str:
        """What is averaged."""
        return f"mean of {self.value!r}"

    @property
    def what(self) -> str:
        """What is averaged, without the rules for values."""
        return f"mean of {self.value.expression.name}"

    def cells(self, values: Sequence[str]) -> list[str]:
        """The clamped value, in steps from the middle of the bounds."""
        return [self.value.cell_of(values[0], self.value.middle)]

    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """A sum and a count, with half of ε each; all of it is for the sum where the count is public."""
        low, high = (end - self.value.middle for end in self.value.ends)
        counted = reach.counts(dropped=self.dropped)
        share = _HALF if counted.l1 else Fraction(1)
        summed = Sums((total(cells[0]),), reach.sums(low, high, dropped=self.dropped), share)
        return summed, Sums((f"count({cells[0]})",), counted, 1 - share, public=int(not counted.l1))

    def noise_on(self, laws: Sequence[StepLaw | None]) -> str:
        """On the number of values, too, where that is not public."""
        return "on the sum" + (" and on the number of values" if laws[-1] is not None else "")

    def of_size(self, values: int) -> tuple[int, ...]:
        """Of values at the upper bound: nearer to the middle the error is smaller."""
        return (self.value.ends[1] - self.value.middle) * values, values

    def answer(self, noised: Noised) -> Any:
        """The mean within the bounds, with its error for any confidence; ``how`` has the number of values."""
        total, count = noised.numbers[0], max(noised.numbers[1], 1)
        (low, high), step = self.value.bounds, self.value.grid.step
        mean = min(max(float((self.value.middle + Fraction(total, count)) * step), low), high)
        bound = partial(error_of_mean, self.value, noised.noise, mean, count)
        return Estimate.of(mean, Drawn(noised.origin, bound), how=Averaged(count))


def error_of_mean(value: Clipped, noise: NoiseOfNumbers, mean: float, divisor: float, miss: Fraction) -> float:
    """How far noise on the sum of differences from the middle of the bounds, and on the count, moved a mean at most.

    A divisor of 1 may be a noisy count below 1, so its bound is the width of the bounds.

    Proof: lem-mean-error
    """
    (low, high), step = value.bounds, float(value.grid.step)
    if divisor <= 1:
        return high - low
    farthest = float(value.ends[1] - value.middle)

    def reach(most: float) -> float:
        return noise.reach((1.0, most), miss)

    return min(high - low, mean_reach(mean / step - value.middle, divisor, farthest, reach) * step * (1 + 2**-40))
