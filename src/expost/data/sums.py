"""Sums and means of clamped values on a grid: exact, whatever the order of rows and the number of threads."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from expost.checks import as_share, check_fields
from expost.cost import Cost, Number, exact
from expost.data import query, sensitivity
from expost.data.expression import Expression
from expost.data.questions import Planned, PureMechanism, Question, exact_bounds
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.mechanism import Out
from expost.mechanisms import Laplace
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.noise.grid import FARTHEST, Grid

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

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
        kept = query.kept_rows(table, self.expression, steps, drop=self.missing is None, cells=1)
        return table.engine.check(query.total(table, kept))

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
class Sum(Question[float]):
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
class Mean(Planned):
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
        return sum(self.value.ends) // 2

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

    def laplace(self, *, epsilon: Number, count_share: Number = "1/2") -> NoisyMean:
        """The mean with Laplace noise; ``count_share`` of ε is for the count, where it is not public."""
        return NoisyMean(question=self, epsilon=epsilon, count_share=count_share)

    def counted(self, *, epsilon: Number, count_share: Number = "1/2") -> CountedMean:
        """As :meth:`laplace`, with the noisy number of values for an error bar, at no extra cost."""
        return CountedMean(question=self, epsilon=epsilon, count_share=count_share)

    @property
    def title(self) -> str:
        """What is averaged."""
        return f"mean of {self.value!r}"


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

    def check(self, data: Any) -> None:
        """Raise unless this noise can be sampled."""
        super().check(data)
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

    def _moved(self, confidence: Number) -> tuple[float, float]:
        """How far noise moves the sum of differences, and the count, at most: both at once, with this confidence."""
        miss = (1 - exact(confidence, "confidence")) / 2
        total, count = (0.0 if each is None else float(each.error_bound(1 - miss)) for each in self._shares)
        return total * float(self.question.value.grid.step), count

    def _error(self, confidence: Number, divisor: float) -> float:
        """How far noise moves the mean at most, if the sum was divided by ``divisor`` or more.

        A divisor of 1 may be a noisy count below 1, so its bound is the width of the bounds. Proof: lem-mean-error
        """
        value, (low, high) = self.question.value, self.question.value.bounds
        total, count = self._moved(confidence)
        farthest = (value.ends[1] - self.question.middle) * float(value.grid.step)
        return min(high - low, (total + count * farthest) / divisor) if divisor > 1 else high - low


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
        return self._error(confidence, n - self._moved(confidence)[1])

    def describe(self, output: Any) -> str:
        """The mean."""
        return f"{self.question.title} {output:.6g}"


@dataclass(frozen=True, kw_only=True, repr=False)
class CountedMean(MeanMechanism[tuple[float, int]]):
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

    def error_bound(self, confidence: Number, *, output: tuple[float, int]) -> float:
        """How far the noise moved a published mean at most, with this confidence; as :meth:`NoisyMean.error_bound`."""
        return self._error(confidence, output[1])

    def fewest(self, confidence: Number, output: tuple[float, int]) -> float:
        """How many values there are at least, where the error bound of this confidence holds."""
        return output[1] - self._moved(confidence)[1]

    def describe(self, output: Any) -> str:
        """The mean and its error bar."""
        bound = self.error_bound("0.95", output=output)
        return f"{self.question.title} {output[0]:.6g} ± {bound:.6g} at 95 %, of about {output[1]} values"


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
