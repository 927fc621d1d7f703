"""Moments without bounds: a search for the ranges of values, charged for what it took, then the moment within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from expost.checks import requested_epsilon, split_epsilon
from expost.cost import Number
from expost.data.aggregates import SHOWN_CONFIDENCE
from expost.data.expression import Expression
from expost.data.moments import Moments, NoisyMoments
from expost.data.quantiles import Ranks
from expost.data.questions import Planned, TableMechanism
from expost.data.sums import CountedMean
from expost.data.winsorized import FINEST_RANGE, mean_between
from expost.guarantee import Guarantee, Part
from expost.mechanisms import Tally
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.moments.private_range import LEVELS, RangeSearch
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


class FoundMoment(NamedTuple):
    """A statistic of values clamped to ranges that were found."""

    value: float
    noise: float | None
    """How far noise moved it at most, at 95 %, if that is known."""
    ranges: tuple[Interval, ...]
    level: int
    """At which the search ended."""


@dataclass(frozen=True, repr=False)
class Searched(Planned):
    """A mean, variance, covariance or correlation of values without bounds.

    Parameters
    ----------
    table
        Whose rows.
    statistic
        ``"mean"``, ``"variance"``, ``"covariance"`` or ``"correlation"``.
    medians
        The median of each value, as a question: it knows how the value is read and counted, and what one unit changes.

    Proof: thm-table-search
    """

    table: PrivateTable
    statistic: Literal["mean", "variance", "covariance", "correlation"]
    medians: tuple[Ranks, ...]

    @classmethod
    def of(cls, table: PrivateTable, statistic: Any, values: Sequence[Expression], missing: Any) -> Searched:
        """Checks the arguments."""
        return cls(table, statistic, tuple(Ranks.of(table, one, Fraction(1, 2), None, missing, None) for one in values))

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

    def within(self, ranges: Sequence[Interval], epsilon: Fraction) -> CountedMean | NoisyMoments | None:
        """The statistic of values clamped to ranges, with noise; None for a mean in a range narrower than its grid."""
        if self.statistic == "mean":
            mean = mean_between(self.table, self.medians[0].value, *ranges[0])
            return None if mean is None else CountedMean(question=mean, epsilon=epsilon)
        missing = "drop" if self.missing is None else self.missing
        return Moments.of(self.table, self.statistic, self.values, ranges, missing).laplace(epsilon=epsilon)

    def laplace(self, *, epsilon: Number) -> NoisySearched:
        """The statistic with Laplace noise for half of ε; the rest of the other half, for the search, is refunded."""
        return NoisySearched(question=self, epsilon=requested_epsilon(epsilon))

    def noisy(self, *, epsilon: Number) -> NoisySearched:
        """The most accurate mechanism without bounds: :meth:`laplace`."""
        return self.laplace(epsilon=epsilon)


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisySearched(TableMechanism[FoundMoment]):
    """A moment without bounds: a search for the ranges of the values, and the moment within them from noisy sums.

    The part is the level at which the search ended.

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

    def part_of(self, output: FoundMoment) -> Part:
        """The level at which the search ended."""
        return output.level

    def check(self, data: Any) -> None:
        """Raise unless all queries can be run and this noise can be sampled, whichever ranges will be found."""
        super().check(data)
        for one in self.question.medians:
            _ = one.plan
        within = self.question.within([Interval(*FINEST_RANGE)] * len(self.question.medians), self._budgets[1])
        if within is not None:
            within.check(data)

    def sample(self, data: Any, noise: NoiseSource) -> FoundMoment:
        """The ranges, and the statistic within them; a mean in a range narrower than its grid is the lower end."""
        ranges, level = self._search.find(self.question.tallies(), noise)
        mechanism = self.question.within(ranges, self._budgets[1])
        if mechanism is None:
            return FoundMoment(ranges[0].low, ranges[0].high - ranges[0].low, ranges, level)
        if isinstance(mechanism, NoisyMoments):
            return FoundMoment(float(mechanism.sample(data, noise)), None, ranges, level)
        found = mechanism.sample(data, noise)
        return FoundMoment(found[0], mechanism.error_bound(SHOWN_CONFIDENCE, output=found), ranges, level)

    def describe(self, output: FoundMoment) -> str:
        """The statistic, its error bound if that is known, and the ranges."""
        error = "" if output.noise is None else f" ± {output.noise:.3g} at 95 %"
        clamped = ", ".join(f"{low:.6g} … {high:.6g}" for low, high in output.ranges)
        level = f"level {output.level} of {LEVELS}"
        return f"{self.question.title} {output.value:.6g}{error}, values clamped to {clamped} ({level})"
