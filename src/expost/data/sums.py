"""Sums and means of clamped values on a grid: exact, whatever the order of rows and the number of threads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.checks import as_share, check_fields
from expost.cost import Cost, Number, exact
from expost.data import query, rows, sensitivity
from expost.data.expression import Expression
from expost.data.questions import NumericQuestion, Planned, PureMechanism, exact_bounds
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.mechanism import Mechanism, Out
from expost.mechanisms import Laplace
from expost.mechanisms.laplace_sums import mean_reach, sum_reach
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.noise.grid import FARTHEST, Grid
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

_OF_COUNT = Fraction(1, 10)
"""Of what a bound on a mean misses: for the count, of which to be surer costs little."""
_MOST_POINTS = 2**52
"""The most steps on either side of zero: the sum of 2^63 such values has at most 128 bits."""


@dataclass(frozen=True)
class Clipped:
    """A column or an expression, clamped to bounds and rounded to whole steps of a grid."""

    expression: Expression
    bounds: tuple[float, float]
    grid: Grid
    missing: float | None
    """What NULL and NaN count as; None if they do not count."""

    @classmethod
    def of(cls, value: Expression, bounds: Any, missing: Any, grid: Number | None) -> Clipped:
        """Checks the arguments."""
        low, high = exact_bounds(bounds)
        whole = value.kind != "number" and low.denominator == high.denominator == 1
        points = Grid.of(grid) if grid is not None else _fine_grid(low, high, whole)
        if max(abs(low), abs(high)) / points.step > _MOST_POINTS:
            raise InvalidValue(
                f"bounds from {float(low):g} to {float(high):g} are more than 2^52 steps of the grid {points.step} "
                "from 0: take a larger grid"
            )
        clipped = cls(value.as_number(), (float(low), float(high)), points, as_missing(missing, low, high))
        if clipped.ends[0] == clipped.ends[1]:
            raise InvalidValue(
                f"bounds from {float(low):g} to {float(high):g} are less than a step of the grid {points.step} apart: "
                "take a smaller grid"
            )
        return clipped

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, rounded like the values between them."""
        return self.point(self.bounds[0]), self.point(self.bounds[1])

    @property
    def middle(self) -> int:
        """The middle of the bounds, in steps."""
        return sum(self.ends) // 2

    def point(self, value: float) -> int:
        """The nearest whole number of steps; halves are rounded away from zero, as the engine does."""
        number = Fraction(value) / self.grid.step
        return floor(number + Fraction(1, 2)) if number >= 0 else ceil(number - Fraction(1, 2))

    def fewest(self, table: PrivateTable) -> int:
        """The fewest values that a unit can have."""
        return 0 if self.missing is None else table.fewest

    @property
    def cell(self) -> str:
        """The value ``v`` in steps, in SQL."""
        return self.cell_of(query.VALUE)

    def cell_of(self, named: str, shift: int = 0) -> str:
        """The value of this name in steps, minus a shift, in SQL."""
        gone = None if self.missing is None else self.point(self.missing)
        return query.steps_of(self.grid.exponent, *self.ends, gone, shift, named)

    def total(self, table: PrivateTable, shift: int = 0) -> str:
        """The query for the sum of the values that count, each minus ``shift``, and for their number."""
        steps = self.cell_of(query.VALUE, shift)
        kept = rows.one_cell(table, self.expression, steps, drop=self.missing is None)
        return table.engine.check(rows.total(table, kept))

    def sensitivity(self, table: PrivateTable, shift: int = 0) -> Sensitivity:
        """Of the sum of the values, each minus ``shift``, in steps."""
        low, high = (end - shift for end in self.ends)
        ends = sensitivity.of_sum(self.fewest(table), table.unit.rows, low, high)
        return sensitivity.of_number(*ends, table.neighbours)

    def __repr__(self) -> str:
        low, high = self.bounds
        gone = "missing dropped" if self.missing is None else f"missing {self.missing:g}"
        return f"{self.expression} ({low:g} … {high:g}, {gone}, grid {float(self.grid.step):g})"


@dataclass(frozen=True, repr=False)
class Sum(NumericQuestion[float]):
    """The sum of clamped values on a grid, which is exact whatever the order of rows.

    Parameters
    ----------
    table
        Whose rows.
    value
        What is summed, its bounds and grid, and what NULL and NaN count as.

    Proof: lem-sum
    """

    table: PrivateTable
    value: Clipped

    @property
    def title(self) -> str:
        """What is summed."""
        return f"sum of {self.value!r}"

    @property
    def what(self) -> str:
        """What is summed, without the rules for values."""
        return f"sum of {self.value.expression.name}"

    @property
    def sensitivity(self) -> Sensitivity:
        """In steps, from the bounds and from the fewest and the most rows that a unit can have."""
        return self.value.sensitivity(self.table)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        return self.value.total(self.table)

    def exact(self) -> int:
        """The sum in steps."""
        return clamp(self.table.engine.fetch(self.plan)[0][0])

    def present(self, numbers: Any) -> float:
        """The noisy sum, in units of the data."""
        return self.value.grid.value(int(numbers))

    def distance(self, steps: float) -> float:
        """A distance in units of the data."""
        return self.present(round(steps))


@dataclass(frozen=True, repr=False)
class Mean(Planned, Question[Any]):
    """The mean of clamped values: a noisy sum around the middle of the bounds, over a noisy count.

    Under substitution, where every unit has just one value, the count is public, and all of ε is for the sum.

    Parameters
    ----------
    table
        Whose rows.
    value
        What is averaged, its bounds and grid, and what NULL and NaN count as.

    Proof: thm-mean
    """

    table: PrivateTable
    value: Clipped

    @property
    def middle(self) -> int:
        """The middle of the bounds, in steps."""
        return self.value.middle

    @property
    def sum_sensitivity(self) -> Sensitivity:
        """Of the sum of the values' differences from the middle, in steps."""
        return self.value.sensitivity(self.table, self.middle)

    @property
    def count_sensitivity(self) -> Sensitivity:
        """Of the number of values; 0 where it is public."""
        fewest = self.value.fewest(self.table)
        return sensitivity.of_number(fewest, self.table.unit.rows, self.table.neighbours)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        return self.value.total(self.table, self.middle)

    def exact(self) -> tuple[int, int]:
        """The sum of differences from the middle, in steps; and the count."""
        total, count = self.table.engine.fetch(self.plan)[0]
        return clamp(total), int(count)

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """With Laplace noise. The noisy number of values, of which the error is made, is published, too, at no cost."""
        return CountedMean(question=self, epsilon=terms.only_epsilon(f"a {self.title}", "laplace"))

    @property
    def title(self) -> str:
        """What is averaged."""
        return f"mean of {self.value!r}"

    @property
    def what(self) -> str:
        """What is averaged, without the rules for values."""
        return f"mean of {self.value.expression.name}"


@dataclass(frozen=True, kw_only=True, repr=False)
class MeanMechanism(PureMechanism[Out]):
    """The base of noisy means: a noisy sum of differences from the middle of the bounds, and a noisy count.

    Parameters
    ----------
    question
        The mean of what.
    epsilon
        The whole budget.
    count_share
        The share of ε for the count, where it is not public.
    """

    question: Mean
    epsilon: Number
    count_share: Number = "1/2"

    def __post_init__(self) -> None:
        check_fields(self, "epsilon")
        _ = self._shares

    @cached_property
    def _shares(self) -> tuple[Laplace | None, Laplace | None]:
        """The noise of the sum and of the count; None for one that no unit can move."""
        whole, moved = Cost.within(self.epsilon), self.question.count_sensitivity.l1
        share = as_share(self.count_share, "count_share")
        count, total = whole.split([share, 1 - share]) if moved else (Cost(0), whole)
        return self._noise(total, self.question.sum_sensitivity), self._noise(count, self.question.count_sensitivity)

    def _noise(self, share: Cost, moved: Sensitivity) -> Laplace | None:
        if not moved.l1:
            return None
        return Laplace(epsilon=share.exact_epsilon, sensitivity=moved.l1, neighbours=self.question.table.neighbours)

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        for each in self._shares:
            if each is not None:
                each.check(0)

    def _sampled(self, noise: NoiseSource) -> tuple[float, int]:
        """The mean, clamped to the bounds, and the number that the sum was divided by."""
        total, count = self.question.exact()
        for_sum, for_count = self._shares
        noisy_total = total if for_sum is None else for_sum.sample(total, noise)
        divisor = max(count if for_count is None else for_count.sample(count, noise), 1)
        value = self.question.value
        mean = float((self.question.middle + Fraction(noisy_total, divisor)) * value.grid.step)
        return min(max(mean, value.bounds[0]), value.bounds[1]), int(divisor)

    def _error(self, miss: Fraction, mean: float | None, divisor: float) -> float:
        """How far noise moves the mean at most, but for a probability, if the sum was divided by ``divisor`` or more.

        Any mean within the bounds is thought of, if none is given. Proof: lem-mean-error
        """
        rates = [None if noise is None else noise.rate for noise in self._shares]
        return error_of_mean(self.question.value, rates, miss, mean, divisor)

    def _foretold(self, confidence: Number, n: int) -> float:
        """A bound that is known before the question is asked, if ``n`` values are averaged, for any mean."""
        miss = 1 - exact(confidence, "confidence")
        if self._shares[1] is None:
            return self._error(miss, None, n)
        return self._error(miss * (1 - _OF_COUNT), None, n - self._miscounted(miss * _OF_COUNT))

    def _miscounted(self, miss: Fraction) -> float:
        """How much too large a noisy count is at most, but for a probability."""
        count = self._shares[1]
        return 0.0 if count is None else float(count.error_bound(1 - min(2 * miss, Fraction(1, 2))))


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyMean(MeanMechanism[float]):
    """A mean: the noisy sum of differences from the middle of the bounds, over the count, within the bounds.

    Parameters
    ----------
    question
        The mean of what.
    epsilon
        The whole budget.
    count_share
        The share of ε for the count, where it is not public.

    Proof: thm-mean
    """

    def sample(self, data: Any, noise: NoiseSource) -> float:
        """The mean, clamped to the bounds."""
        return self._sampled(noise)[0]

    def error_bound(self, confidence: Number, *, n: int) -> float:
        """How far the noise moves the mean at most, with this confidence, if ``n`` values are averaged.

        It holds for any mean within the bounds. The error due to clamping and to rows left out is not included.
        """
        return self._foretold(confidence, n)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The mean. Its error depends on the number of values, which is not part of the output."""
        return Estimate.unknown(output, "the number of values was not published with this mean")

    def describe(self, output: Any) -> str:
        """The mean."""
        return f"{self.question.title} {output:.6g}"


@dataclass(frozen=True, kw_only=True, repr=False)
class CountedMean(MeanMechanism[Any]):
    """A mean and the noisy number of values, for its error bar: as :class:`NoisyMean`, for the same ε.

    Parameters
    ----------
    question
        The mean of what.
    epsilon
        The whole budget.
    count_share
        The share of ε for the count, where it is not public.

    Proof: thm-mean
    """

    def sample(self, data: Any, noise: NoiseSource) -> tuple[float, int]:
        """The mean and the number that the sum was divided by, at least 1."""
        return self._sampled(noise)

    def error_bound(
        self, confidence: Number, *, output: tuple[float, int] | None = None, n: int | None = None
    ) -> float:
        """How far the noise moved a published mean at most, with this confidence; or will, if it is of ``n`` values.

        The error due to clamping and to rows left out is not included.
        """
        if (output is None) == (n is None):
            raise InvalidValue("the error of a mean is that of an output, or of a number of values: pass one of them")
        if n is not None:
            return self._foretold(confidence, n)
        assert output is not None
        return self._error(1 - exact(confidence, "confidence"), *output)

    def fewest(self, confidence: Number, output: tuple[float, int]) -> float:
        """How many values there are at least, with this confidence."""
        return output[1] - self._miscounted(1 - exact(confidence, "confidence"))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The mean with its error, which is known for any confidence; ``how`` has the number of values."""
        mean, values = output
        rates = tuple(None if noise is None else noise.rate for noise in self._shares)
        bound = partial(_error_of, self.question.value, rates, mean, values)
        return Estimate.of(mean, Drawn((origin, 0), bound), how=Averaged(values))

    def describe(self, output: Any) -> str:
        """The mean and its error bar."""
        bound = self.error_bound("0.95", output=output)
        return f"{self.question.title} {output[0]:.6g} ± {bound:.6g} at 95 %, of about {output[1]} values"


class Averaged(NamedTuple):
    """How a mean was made."""

    values: int
    """The number of values that the sum was divided by: with noise, where it is not public."""


def _error_of(value: Clipped, rates: Sequence[Fraction | None], mean: float, values: int, miss: Fraction) -> float:
    """The same bound as a function of what it misses."""
    return error_of_mean(value, rates, miss, mean, values)


def error_of_mean(
    value: Clipped,
    rates: Sequence[Fraction | None],
    miss: Fraction,
    mean: float | None,
    divisor: float,
    groups: int = 1,
) -> float:
    """How far noise on the sum of differences from the middle of the bounds, and on the count, moved a mean at most.

    Both may be added up over several groups. Without a mean, it is for any within the bounds. A divisor of 1 may be a
    noisy count below 1, so its bound is the width of the bounds.

    Proof: lem-mean-error
    """
    (low, high), step = value.bounds, float(value.grid.step)
    if divisor <= 1:
        return high - low
    farthest = float(value.ends[1] - value.middle)

    def reach(most: float) -> float:
        known = [(rate, weight) for rate, weight in zip(rates, (1.0, most), strict=True) if rate is not None]
        return sum_reach(tuple(rate for rate, _ in known), tuple(weight for _, weight in known), miss, groups)

    off = farthest if mean is None else mean / step - value.middle
    return min(high - low, mean_reach(off, divisor, farthest, reach) * step * (1 + 2**-40))


def _fine_grid(low: Fraction, high: Fraction, whole: bool) -> Grid:
    """A grid of 1 for whole numbers; otherwise 2^30 steps or more between the bounds."""
    if low == high:
        raise InvalidValue(f"bounds from {float(low):g} to {float(high):g} leave one value: pass bounds that differ")
    return Grid(0) if whole else Grid.within((high - low) / 2**30)


def as_missing(missing: Any, low: Fraction, high: Fraction) -> float | None:
    """What NULL and NaN count as, clamped to the bounds; None if they do not count."""
    if missing == "drop":
        return None
    if isinstance(missing, str):
        raise InvalidValue(f"missing is what NULL and NaN count as, a number or 'drop'; got {brief(missing)}")
    return float(min(max(exact(missing, "missing"), low), high))


def clamp(total: Any) -> int:
    """An exact sum, clamped to ±2^60; 0 if no value counts."""
    return max(-FARTHEST, min(FARTHEST, int(total or 0)))
