"""Winsorised means of tables: two private quantiles, and the mean of the values clamped to them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import nextafter
from typing import TYPE_CHECKING, Any

from expost.checks import requested_epsilon, split_epsilon
from expost.cost import Number, exact
from expost.data.answers import as_published
from expost.data.clipped import Clipped
from expost.data.expression import Expression
from expost.data.quantiles import AnySize, PrivateQuantiles, Ranks
from expost.data.questions import MayLackUnits, Planned, PureMechanism
from expost.errors import InvalidValue
from expost.estimate import USUAL
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.moments.moments import Winsorized
from expost.mechanisms.moments.private_range import WITHHELD_PART
from expost.mechanisms.moments.trimmed import surely_between, why_bare, why_no_error
from expost.mechanisms.quantiles.quantiles import TOO_FEW
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.noise.grid import Grid
from expost.question import Question, Terms
from expost.questions.mean import Mean, fewest_values
from expost.questions.statistics import NoisyStatistics, Statistics

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.clamped_mean import ClampedMean

FINEST_RANGE = 0.0, nextafter(1.0, 0.0)
"""A range of nearly 2^31 steps of its grid, more than any other has: noise that it can have, all can have."""


@dataclass(frozen=True, repr=False)
class WinsorizedMean(Planned, Question[Any]):
    """The mean of values clamped to two of their quantiles, so that bounds may be loose, or left out.

    Parameters
    ----------
    table
        Whose rows.
    ranks
        The two quantiles, as a question.
    record
        The settings that it was made from, if it was made from a record of them.

    Proof: thm-winsorized-mean
    """

    table: PrivateTable
    ranks: Ranks
    record: ClampedMean | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.ranks.table != self.table:
            raise InvalidValue("these are quantiles of another table: make them from the table that is averaged")

    @classmethod
    def of(
        cls, table: PrivateTable, value: Expression, trim: Number, bounds: Any, missing: Any, grid: Number | None
    ) -> WinsorizedMean:
        """Checks the arguments."""
        share = exact(trim, "trim")
        if not 0 < share < Fraction(1, 2):
            raise InvalidValue(f"trim is the share clamped on either side, above 0 and below 1/2, got {brief(trim)}")
        return cls(table, Ranks.of(table, value, (share, 1 - share), bounds, missing, grid))

    @property
    def title(self) -> str:
        """What is averaged."""
        low, high = (float(level) for level in self.ranks.levels)
        return f"mean of {self.ranks.value!r}, clamped to its quantiles {low:g} and {high:g}"

    @property
    def what(self) -> str:
        """What is averaged, without the rules for values."""
        return f"winsorised mean of {self.ranks.value.expression.name}"

    @cached_property
    def plan(self) -> str:
        """The first of the two queries that will be run."""
        return self.ranks.plan

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """With half of ε for the quantiles, and half for Laplace noise."""
        epsilon = terms.only_epsilon(f"a {self.title}", "laplace")
        return NoisyWinsorizedMean(question=self, epsilon=requested_epsilon(epsilon))


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyWinsorizedMean(MayLackUnits[Any], PureMechanism[Any]):
    """A winsorised mean: private quantiles, and a noisy mean of the values clamped to them.

    The output has the quantiles, and how far noise moved the mean between them at most, at 95 %
    (``lem-mean-error``). The error of the quantiles, and the error due to clamping, are not included. No error is
    known between equal quantiles, nor where the noisy number of values says that there may be too few: so few that the
    quantiles may lie beyond all of them, or half of those that should lie between do not.

    Without bounds the quantiles may be withheld; then the mean is, too, and costs their share alone.

    Parameters
    ----------
    question
        The mean of what.
    epsilon
        The whole budget.

    Proof: thm-winsorized-mean
    """

    question: WinsorizedMean
    epsilon: Number

    def __post_init__(self) -> None:
        _ = self._budgets

    @cached_property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        return split_epsilon(self.epsilon, Fraction(1, 2), "share")

    @cached_property
    def _ends(self) -> PrivateQuantiles:
        return PrivateQuantiles(question=self.question.ranks, epsilon=requested_epsilon(self._budgets[0]))

    @property
    def _plain_guarantee(self) -> Guarantee:
        """ε for every value; without bounds, what the quantiles cost if they were withheld."""
        if isinstance(self.question.ranks.value, Clipped):
            return super()._plain_guarantee
        parts: dict[Part, Number] = {RELEASED: self.epsilon, WITHHELD_PART: self._budgets[0]}
        return Guarantee(parts, neighbours=self.question.table.neighbours)

    def part_of(self, output: Winsorized | Withheld) -> Part:
        """Whether there is a value."""
        return WITHHELD_PART if isinstance(output, Withheld) else RELEASED

    def require(self, units: int) -> None:
        """Refuse a public number of units with which the quantiles may be beyond all records."""
        self._ends.require(units)

    def check(self, data: Any) -> None:
        """Raise unless noise can be sampled for the range with most steps of its grid, whichever will be found."""
        super().check(data)
        self._ends.check(data)
        if (mean := self._widest) is not None:
            mean.check(data)

    def check_noise(self) -> None:
        """Raise unless noise can be sampled for that range."""
        if (mean := self._widest) is not None:
            mean.check_noise()

    @property
    def _widest(self) -> NoisyStatistics | None:
        """The mean between the ends that are farthest apart; None if these are one."""
        value = self.question.ranks.value
        ends = value.bounds if isinstance(value, Clipped) else FINEST_RANGE
        widest = mean_between(self.question.table, value, *ends)
        return None if widest is None else NoisyStatistics(question=widest, epsilon=self._budgets[1])

    def sample(self, data: Any, noise: NoiseSource) -> Winsorized | Withheld:
        """The mean between the chosen quantiles; if these are within a step of the grid, the lower one."""
        ends = self._ends.sample(data, noise)
        if isinstance(ends, Withheld):
            return WITHHELD
        low, high = map(float, ends)
        mean = mean_between(self.question.table, self.question.ranks.value, low, high)
        if mean is None:
            return Winsorized(low, low, high, None)
        counted = NoisyStatistics(question=mean, epsilon=self._budgets[1])
        numbers = counted.sample(data, noise)
        found, fewest = counted.answer_of(numbers, None), fewest_values(counted.only(numbers), 1 - USUAL)
        return Winsorized(found.value, low, high, found.error if self.knows_error(fewest) else None)

    def knows_error(self, size: float) -> bool:
        """Whether that many values are enough for the quantiles to lie among them, and half of the rest between."""
        return surely_between(self.question.ranks.levels[0], size, self._ends.error_bound("0.95"))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The mean with its error at 95 %; ``how`` is the output itself, with the quantiles."""
        return as_published(output, origin, "" if output is WITHHELD else why_bare(output))

    def describe(self, output: Any) -> str:
        """The mean, and how far noise moved it at most, or why that is not known."""
        if output is WITHHELD:
            return f"{self.question.title} {TOO_FEW}"
        error = why_no_error(output) if output.noise is None else f" ± {output.noise:.3g} at 95 %"
        return f"{self.question.title} {output.value:.6g}{error}"


def mean_between(table: PrivateTable, value: Clipped | AnySize, low: float, high: float) -> Statistics | None:
    """The mean of values clamped to two published ends; None if these are within a step of the grid.

    With bounds the grid is that of the value, otherwise one of 2^30 to 2^31 steps (its step is a power of two), or as
    fine as floats allow.
    """
    fine = Fraction(max((high - low) / 2**30, max(abs(low), abs(high)) / 2**51))
    grid = value.grid if isinstance(value, Clipped) else Grid.within(fine or Fraction(1))
    if high - low <= grid.step:
        return None
    missing = "drop" if value.missing is None else value.missing
    asked = Statistics.whole(table, Mean(value.expression, (low, high), missing, grid.step))
    assert isinstance(asked, Statistics)
    return asked
