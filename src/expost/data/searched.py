"""Moments without bounds: a search for the ranges of values, charged for what it took, then the moment within them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from expost.checks import requested_epsilon, split_epsilon
from expost.cost import Number
from expost.data.answers import as_published
from expost.data.expression import Expression
from expost.data.quantiles import Ranks
from expost.data.questions import MayLackUnits, Planned
from expost.data.winsorized import FINEST_RANGE, mean_between
from expost.errors import InvalidValue
from expost.estimate import USUAL, Estimate
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.mechanisms import Tally
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.moments.moments import MANY_OUTSIDE, NO_RANGE, OUTSIDE_SHARE, outside_text
from expost.mechanisms.moments.private_range import LEVELS, WITHHELD_PART, RangeSearch
from expost.mechanisms.moments.staircase import Staircase
from expost.noise import NoiseSource
from expost.question import Question, Terms
from expost.questions.covariance import Correlation, Covariance
from expost.questions.mean import fewest_values
from expost.questions.noised import Noised
from expost.questions.statistic import Statistic
from expost.questions.statistics import NoisyStatistics, Statistics
from expost.questions.variance import Variance

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


class FoundMoment(NamedTuple):
    """A statistic of values clamped to ranges that were found."""

    value: float
    noise: float | None
    """How far it is off at most, at 95 %: noise, and values up to half a range beyond. None if that is not known."""
    ranges: tuple[Interval, ...]
    level: int
    """At which the search ended."""
    outside: float | None = None
    """Of a mean: the share of values outside of its range, at most."""
    beyond: float | None = None
    """How far beyond the range those are taken to lie; farther ones count as if they were there."""


@dataclass(frozen=True, repr=False)
class Searched(Planned, Question[Any]):
    """A mean, variance, covariance or correlation of values without bounds.

    Parameters
    ----------
    table
        Whose rows.
    statistic
        ``"mean"``, ``"variance"``, ``"covariance"`` or ``"correlation"``.
    medians
        The median of each value, as a question: it knows how the value is read and counted, and what one unit changes.
    record
        The settings that it was made from, if it was made from a record of them.

    Proof: thm-table-search
    """

    table: PrivateTable
    statistic: Literal["mean", "variance", "covariance", "correlation"]
    medians: tuple[Ranks, ...]
    record: Statistic | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if any(median.table != self.table for median in self.medians):
            raise InvalidValue("these are medians of another table: make them from the table that is asked")

    @classmethod
    def of(cls, table: PrivateTable, record: Any, values: Sequence[Expression]) -> Searched:
        """Of a statistic without bounds. Checks its settings."""
        half, missing = Fraction(1, 2), record.missing
        medians = tuple(Ranks.of(table, one, half, None, missing, None) for one in values)
        return cls(table, record.kind, medians, record)

    @property
    def values(self) -> tuple[Expression, ...]:
        """The columns or expressions."""
        return tuple(one.value.expression for one in self.medians)

    @property
    def missing(self) -> float | None:
        """What NULL and NaN count as; None if they do not count."""
        return self.medians[0].value.missing

    @property
    def title(self) -> str:
        """The statistic and its values."""
        return f"{self.statistic} of {', '.join(repr(one.value) for one in self.medians)}"

    @property
    def what(self) -> str:
        """The statistic and its columns, without the rules for values."""
        return f"{self.statistic} of {' and '.join(one.name for one in self.values)}"

    @cached_property
    def plan(self) -> str:
        """The first of the queries that will be run."""
        return self.medians[0].plan

    def search(self, epsilon: Number) -> RangeSearch:
        """The search for the ranges of all values, for at most ε."""
        first = self.medians[0]
        return RangeSearch(epsilon, first.relation, len(self.medians), first.moved)

    def tallies(self) -> list[Tally]:
        """The counts of each value. Private: mechanisms call it, after the reservation."""
        counted = (one.tally() for one in self.medians)
        return [Tally(records(tally.values, None, 0.0), tally.counts) for tally in counted]

    def within(self, ranges: Sequence[Interval], epsilon: Fraction) -> NoisyStatistics | None:
        """The statistic of values clamped to ranges, with noise; None for a mean in a range narrower than its grid."""
        if self.statistic == "mean":
            mean = mean_between(self.table, self.medians[0].value, *ranges[0])
            return None if mean is None else NoisyStatistics(question=mean, epsilon=epsilon)
        asked = Statistics.whole(self.table, self._between(ranges))
        assert isinstance(asked, Statistics)
        return NoisyStatistics(question=asked, epsilon=epsilon)

    def _between(self, ranges: Sequence[Interval]) -> Statistic:
        """The statistic of values clamped to ranges."""
        missing: Any = "drop" if self.missing is None else self.missing
        if self.statistic == "variance":
            return Variance(self.values[0], ranges[0], missing)
        paired = Covariance if self.statistic == "covariance" else Correlation
        return paired(self.values, ranges, missing)

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """With Laplace noise for half of ε; what the search does not use of the other half is refunded."""
        epsilon = terms.only_epsilon(f"a {self.title}", "laplace")
        return NoisySearched(question=self, epsilon=requested_epsilon(epsilon))


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisySearched(MayLackUnits[Any]):
    """A moment without bounds: a search for the ranges of the values, and the moment within them from noisy sums.

    The part is the level at which the search ended. If no range was clear the value is ``WITHHELD`` before any noise
    for the moment is drawn, and costs the search alone.

    Parameters
    ----------
    question
        Which moment of what.
    epsilon
        The whole budget.

    Proof: thm-table-search
    """

    question: Searched
    epsilon: Number

    def __post_init__(self) -> None:
        _ = self.guarantee

    @property
    def noise_words(self) -> str:
        """The noise of both steps."""
        return "Laplace, on counts that find a range, then on sums of values within it"

    @cached_property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        return split_epsilon(self.epsilon, "1/2", "share")

    @cached_property
    def _search(self) -> RangeSearch:
        return self.question.search(self._budgets[0])

    @cached_property
    def _plain_guarantee(self) -> Guarantee:
        """The ε of the search, by its level, plus that of the noise."""
        return self._search.guarantee(self._budgets[1], neighbours=self.question.table.neighbours)

    def part_of(self, output: FoundMoment | Withheld) -> Part:
        """The level at which the search ended."""
        return WITHHELD_PART if isinstance(output, Withheld) else output.level

    def require(self, units: int) -> None:
        """Refuse a public number of units with which no range can be found, however many values of theirs count."""
        if self.question.table.neighbours == "substitute":
            self._search.require_at_most(units * self.question.table.unit.rows)

    def check(self, data: Any) -> None:
        """Raise unless all queries can be run and this noise can be sampled, whichever ranges will be found."""
        super().check(data)
        for one in self.question.medians:
            _ = one.plan
        if self.question.table.neighbours == "substitute":
            self.require(self.question.table.size)
        if (within := self._finest) is not None:
            within.check(data)

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled, whichever ranges will be found."""
        if (within := self._finest) is not None:
            within.check_noise()

    @property
    def _finest(self) -> NoisyStatistics | None:
        """The statistic within the ranges whose noise has most steps."""
        return self.question.within([Interval(*FINEST_RANGE)] * len(self.question.medians), self._of_moment)

    @property
    def _of_moment(self) -> Fraction:
        """ε of the moment itself: a mean has an error, for which values outside of its range are counted, too."""
        whole = self._budgets[1]
        return whole * (1 - OUTSIDE_SHARE) if self.question.statistic == "mean" else whole

    def sample(self, data: Any, noise: NoiseSource) -> FoundMoment | Withheld:
        """The ranges, and the statistic within them; a mean in a range narrower than its grid is the lower end."""
        tallies = self.question.tallies()
        search = self._search.find(tallies, noise)
        if search is None:
            return WITHHELD
        ranges, level = search
        mechanism = self.question.within(ranges, self._of_moment)
        if mechanism is None:
            return FoundMoment(ranges[0].low, None, ranges, level)
        numbers = mechanism.sample(data, noise)
        found, noised = mechanism.answer_of(numbers, None), mechanism.only(numbers)
        if self.question.statistic != "mean":
            return FoundMoment(found.value, None, ranges, level)
        error, *hidden = self._error(found, noised, tallies[0], ranges[0], noise)
        return FoundMoment(found.value, error, ranges, level, *hidden)

    def _error(
        self, mean: Estimate, noised: Noised, tally: Tally, ends: Interval, noise: NoiseSource
    ) -> tuple[float | None, float, float | None]:
        """What noise moved a mean by at most, and what values half a range beyond do; None if many are beyond.

        Also the share of values outside, at most, and how far beyond they are taken to lie.

        Proof: thm-table-search
        """
        outside = (np.asarray(tally.values) < ends.low) | (np.asarray(tally.values) > ends.high)
        beyond = int(np.asarray(tally.counts)[outside].sum())
        stairs = Staircase.of(self._budgets[1] * OUTSIDE_SHARE, self._search.moved)
        noisy, miss = beyond + stairs.draw(noise), 1 - USUAL
        values = fewest_values(noised, miss / 4)
        upper = max(noisy + stairs.reach(miss / 2), 0)  # one of two sides is missed half as often
        share, half = min(upper / max(values, 1), 1.0), (ends.high - ends.low) / 2
        if mean.why or noisy > values * MANY_OUTSIDE:
            return None, share, None
        low, high = mean.interval(1 - miss / 2)
        return max(high - mean.value, mean.value - low) + share * half, share, half

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The statistic with its error at 95 %, if that is known; ``how`` is the output itself, with the ranges."""
        return as_published(output, origin, self._why_unknown(output))

    def _why_unknown(self, output: FoundMoment | Withheld) -> str:
        """Why no error is known, where none is."""
        if self.question.statistic != "mean":
            return f"it depends on the data how far noise moves a {self.question.statistic}"
        if isinstance(output, FoundMoment) and output.outside is not None:
            return "more than a tenth of the values may lie outside of the range that was found"
        return "the range that was found is narrower than the grid"

    def describe(self, output: FoundMoment | Withheld) -> str:
        """The statistic, its error bound if that is known, and the ranges."""
        if isinstance(output, Withheld):
            return f"{self.question.title} {NO_RANGE}; take more ε, or state bounds="
        error = "" if output.noise is None else f" ± {output.noise:.3g} at 95 %"
        clamped = ", ".join(f"{low:.6g} … {high:.6g}" for low, high in output.ranges)
        hidden = outside_text(*output.ranges[0], output.outside, output.beyond)
        attempt = f"attempt {output.level} of {LEVELS}"
        return f"{self.question.title} {output.value:.6g}{error}, values clamped to {clamped} ({attempt}){hidden}"
