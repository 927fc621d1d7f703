"""Means and variances with noise for the range that the data has, not for the bounds that it might have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, inf, log, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import (
    as_interval,
    as_share,
    as_whole,
    check_fields,
    finite,
    optional,
    requested_epsilon,
    split_epsilon,
)
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.moments.optional_bounds import OptionalBounds
from expost.mechanisms.moments.staircase import Staircase
from expost.mechanisms.moments.typical_range import TypicalRange
from expost.mechanisms.numbers import OfArrays
from expost.mechanisms.stability.order import check_records
from expost.noise import NoiseSource

_FEW = 100  # n·ε below which a variance is taken at once, without a mean first
_MISS = Fraction(1, 20)
_OF_PIVOT = Fraction(1, 10)  # of what is missed: the pivot's error is squared, so that to be surer of it costs little
OUTSIDE_SHARE = Fraction(1, 4)
"""Of the ε for the noise: for the number of records outside of an interval that was found."""
MANY_OUTSIDE = Fraction(1, 10)
"""The share of records outside of an interval from which on nobody can say how far away they are."""
POINTS = 2**20  # of the interval: records are rounded to these
_SCALES = 10
NO_RANGE = "withheld: no range was clear"
"""What is told of a value that was withheld."""
MANY = 2000
"""n·ε from which a search for a shorter interval costs little, and finds one where there is one."""
LARGE = 2
"""ε above which noise for the bounds moves a mean by less than one record can."""


class Winsorized(NamedTuple):
    """A statistic of records that were clamped to ``low`` … ``high``, and how far off it is at most, at 95 %."""

    value: float
    low: float
    high: float
    noise: float | None
    """What noise did and, if the interval was found, records up to half of its length beyond it. None if not known."""
    level: int = 0
    """At which the search for the interval ended; 0 if there were bounds."""
    outside: float | None = None
    """The share of records outside of an interval that was found, at most, at 97.5 %."""
    beyond: float | None = None
    """How far beyond the interval those are taken to lie; farther ones count as if they were there."""


class Hidden(NamedTuple):
    """What records outside of an interval that was found do to a statistic."""

    moved: Fraction | None = Fraction(0)
    """How far they move it at most; None if that is not known."""
    share: float | None = None
    extent: float | None = None


class Outside(NamedTuple):
    """What is known of the records outside of an interval, from a noisy number of them."""

    share: Fraction
    """Of all records, at most, at 97.5 %."""
    some: bool
    """Whether there are any, at 95 %."""
    many: bool
    """Whether they are more than a tenth."""


class Clamp(NamedTuple):
    """An interval that records are clamped to, what remains of ε, and the level of the search for it, if any."""

    interval: Interval
    remaining: Fraction
    level: int = 0
    within: Interval | None = None
    """Bounds that the interval was found within; None if there are none."""
    found: bool = False
    """Whether records may lie outside that do not lie outside of any bounds."""

    def extent(self, outside: Outside) -> Fraction | None:
        """How far beyond the interval records are taken to lie: half of its length; with bounds, up to these at most.

        As far as the bounds if some records are outside for sure; without bounds that is not known if many are.
        """
        low, high = map(Fraction, self.interval)
        half = (high - low) / 2
        if self.within is None:
            return None if outside.many else half
        farthest = max(low - Fraction(self.within.low), Fraction(self.within.high) - high)
        return farthest if outside.some else min(half, farthest)


@dataclass(frozen=True)
class _Rescaled:
    """The error of staircase noise of a sum of points at any confidence, from that at 95 %.

    How much wider the noise reaches depends on its ε only, not on how many records the sum was divided by.

    Proof: thm-staircase
    """

    noise: float
    epsilons: tuple[Fraction, ...]

    def __call__(self, miss: Fraction) -> float:
        """The error that is exceeded with probability at most ``miss``, whichever of these the ε was."""
        if miss == _MISS:
            return self.noise
        stairs = [Staircase.of(epsilon, POINTS) for epsilon in self.epsilons]
        if not all(each.reach(_MISS) for each in stairs):
            return inf
        wider = max(Fraction(each.reach(miss), each.reach(_MISS)) for each in stairs)
        return _above(Fraction(self.noise) * wider)


class WithinInterval(OfArrays, FixedCost[NDArray[Any], Any]):
    """What the moments share: an interval for the records, then noise for that interval."""

    epsilon: Number
    bounds: Any
    missing: Number

    def __post_init__(self) -> None:
        check_fields(self, epsilon=requested_epsilon, bounds=optional(as_interval), missing=finite)

    def check(self, data: Any) -> None:
        """A one-dimensional array of at least one number; how many is public."""
        check_records(data, "a moment")

    def sample(self, data: Any, noise: NoiseSource) -> Winsorized | Withheld:
        """The interval, and the statistic of what is clamped to it; without a clear interval, nothing."""
        values = records(data, self.bounds, float(self.missing))
        clamp = self._clamp(values, noise)
        if clamp is None:
            return WITHHELD
        (low, high), epsilon = clamp.interval, clamp.remaining
        hidden, miss = Hidden(), _MISS
        width = Fraction(high) - Fraction(low)
        if clamp.found:
            hidden, epsilon, miss = self._hidden(values, clamp, noise), epsilon * (1 - OUTSIDE_SHARE), _MISS / 2
        value, reach = self._noisy(points_of(values, clamp.interval), width, epsilon, miss, noise)
        error = None if hidden.moved is None else _above(reach + hidden.moved)
        shown = self._shown(value, clamp.interval)
        return Winsorized(shown, low, high, error, clamp.level, hidden.share, hidden.extent)

    def _hidden(self, values: NDArray[np.float64], clamp: Clamp, noise: NoiseSource) -> Hidden:
        """What records outside of the interval do to the statistic at most, from a noisy number of them.

        That is not known if they are many, and nothing limits how far away they are.

        Proof: lem-hidden-records
        """
        size, (low, high) = len(values), clamp.interval
        outside = int(np.count_nonzero((values < low) | (values > high)))
        counted = count_outside(outside, size, clamp.remaining * OUTSIDE_SHARE, noise)
        extent = clamp.extent(counted)
        share = _above(counted.share)
        if extent is None:
            return Hidden(None, share)
        return Hidden(self._moved(counted.share, extent, Fraction(high) - Fraction(low)), share, _above(extent))

    def _noisy(
        self, points: NDArray[np.int64], width: Fraction, epsilon: Fraction, miss: Fraction, noise: NoiseSource
    ) -> tuple[Fraction, Fraction]:
        """The statistic with noise, and how far the noise reaches but for a probability ``miss``."""
        whole, sensitivity, unit = self._statistic(points, width)
        stairs = Staircase.of(epsilon, sensitivity)
        return (whole + stairs.draw(noise)) * unit, stairs.reach(miss) * unit

    @abstractmethod
    def _clamp(self, values: NDArray[np.float64], noise: NoiseSource) -> Clamp | None:
        """The interval for the records, and what remains of ε; None if there is no interval."""

    @abstractmethod
    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        """A whole-numbered statistic of points from 0 to 2^20, its sensitivity, and what one unit of it is."""

    @abstractmethod
    def _shown(self, value: Fraction, interval: Interval) -> float:
        """The value as it is published."""

    @abstractmethod
    def _moved(self, share: Fraction, extent: Fraction, width: Fraction) -> Fraction:
        """How far a share of records that lie an extent beyond the interval move the statistic at most.

        Proof: lem-hidden-records
        """

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The value with its error; ``how`` is the :class:`Winsorized` that says what records were clamped to."""
        epsilons = self._epsilons(output)
        if output.noise is None or not epsilons:
            return Estimate.within(output.value, output.noise, (origin, 0), how=output, why=self._why(output))
        return Estimate.of(output.value, Drawn((origin, 0), _Rescaled(output.noise, epsilons)), how=output)

    def _epsilons(self, output: Winsorized) -> tuple[Fraction, ...]:
        """Which ε its noise may have had, if its error is that of one such noise alone; none if it is not."""
        return ()

    def _why(self, output: Winsorized) -> str:
        """Why a value has no error, if it has none."""
        return "many records may lie outside of the range that was found, and how far is not known"

    def describe(self, output: Any) -> str:
        """The value, its error, and the interval."""
        if output is WITHHELD:
            return NO_RANGE
        between = f"records clamped to {output.low:.6g} … {output.high:.6g}"
        error = "" if output.noise is None else f" ± {output.noise:.3g} at 95 %"
        hidden = outside_text(output.low, output.high, output.outside, output.beyond, self.bounds)
        return f"{output.value:.6g}{error}, {between}{hidden}"


def outside_text(
    low: float, high: float, share: float | None, beyond: float | None, bounds: tuple[float, float] | None = None
) -> str:
    """What stands beside a number of records clamped to an interval that was found: which of them it may be false of.

    A mean of all records is another number if those outside are farther away than they are taken to be.
    """
    if share is None:
        return ""
    outside = f"; at most {ceil(1000 * share) / 10:g} % of them lie outside"
    if beyond is None:
        return f"{outside}, and how far is not known"
    least, most = bounds or (-inf, inf)
    return f"{outside}, and count as if within {max(low - beyond, least):.6g} … {min(high + beyond, most):.6g}"


def count_outside(outside: int, size: int, epsilon: Fraction, noise: NoiseSource) -> Outside:
    """What a noisy number of records outside of an interval says.

    Proof: lem-hidden-records
    """
    stairs = Staircase.of(epsilon, 1)
    noisy = outside + stairs.draw(noise)
    upper = min(max(noisy + stairs.reach(_MISS), 0), size)  # one of two sides is missed half as often
    return Outside(Fraction(upper, size), noisy > stairs.reach(2 * _MISS), noisy > size * MANY_OUTSIDE)


@dataclass(frozen=True, kw_only=True)
class _Moment(OptionalBounds[NDArray[Any], Any], WithinInterval):
    """A moment within a typical range."""

    epsilon: Number
    bounds: Any = None
    range_share: Number | None = None
    scales: int | None = None
    missing: Number = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, scales=optional(partial(as_whole, least=0, most=16)))
        if self.range_share is not None:
            as_share(self.range_share, "range_share")
        if self.bounds is None:
            if self.scales == 0:
                raise InvalidValue("with 0 scales the bounds are taken as they are, and there are none: give bounds")
            _ = self.guarantee
        else:
            _ = self.range_of(1), self.range_of(2**40)

    def check(self, data: Any) -> None:
        """A one-dimensional array of at least one number; without bounds, of enough to find a range."""
        size = check_records(data, "a moment")
        if self.bounds is None:
            self._search.require(size)

    @property
    def _search_share(self) -> Number:
        return super()._search_share if self.range_share is None else self.range_share

    def range_of(self, size: int) -> TypicalRange | None:
        """The mechanism that chooses the interval for n records, within the bounds; None if these are taken.

        If neither scales nor a share were given, that is where n·ε is below 2000, or ε above 2; elsewhere it gets a
        twelfth of ε, and chooses among the bounds and what is at most an eighth of them. With a number of scales it
        gets a quarter of ε; more, but at most three quarters, where few records call for it.
        """
        whole, scales = exact(self.epsilon, "ε"), _SCALES if self.scales is None else self.scales
        chosen = self.scales is None and self.range_share is None
        if not scales or (chosen and (size * whole < MANY or whole > LARGE)):
            return None
        if chosen:
            share = whole / 12
        elif self.range_share is None:
            share = min(3 * whole / 4, max(whole / 4, Fraction(4 * (log(2.0 ** (scales + 2)) + 6)) / size))
        else:
            share = whole * exact(self.range_share, "range_share")
        spent = requested_epsilon(share)
        penalty = min(ceil((1 if chosen else 2) / exact(spent, "ε")), size // (2 * scales))
        rest: dict[str, Any] = {"penalty": penalty, "scales": scales, "missing": self.missing}
        return TypicalRange(
            epsilon=spent, bounds=self.bounds, neighbours="substitute", first=3 if chosen else 1, **rest
        )

    def _clamp(self, values: NDArray[np.float64], noise: NoiseSource) -> Clamp | None:
        """The interval for the records, and what remains of ε; without a search, the bounds and all of it."""
        if self.bounds is None:
            search = self._search.find([values], noise)
            return None if search is None else Clamp(search.intervals[0], self._budgets[1], search.level, found=True)
        whole, bounds = Cost.within(self.epsilon).exact_epsilon, Interval(*self.bounds)
        chooser = self.range_of(len(values))
        if chooser is None:
            return Clamp(bounds, whole)
        interval = chooser.sample(values, noise)
        return Clamp(interval, whole - exact(chooser.epsilon, "ε"), within=bounds, found=interval != bounds)


@dataclass(frozen=True, kw_only=True)
class MeanOfRecords(_Moment):
    """The mean, with noise for an interval that contains nearly all records where bounds are loose.

    Where n·ε is at least 2000 and ε at most 2, a :class:`TypicalRange` chooses the interval with a twelfth of ε, unless
    the bounds are that already. Records are clamped to it (winsorised), and their mean gets noise for its length with
    the rest of ε. Elsewhere all of ε is for noise by the bounds.

    The error published is that of noise, at 95 %; with an interval that was found, also that of records up to half of
    its length beyond it, of which a noisy number is part of the cost. Records still farther away count as if they
    were there: a few that hold much of the total are not in the mean, nor in its error. The share that lies outside at
    most, and how far they are taken to lie, are published beside the mean.

    The data is a one-dimensional array with one value per person; neighbours exchange one, and n is public.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        Between which all records lie, or count as lying. None for records of any size: a search as that of
        :class:`PrivateRange` finds an interval, and what it does not use is refunded. The part is its level. If none is
        clear the value is ``WITHHELD``, before any noise for it is drawn, and costs the search alone.
    range_share
        The share of ε for the interval, for a search whatever n and ε are. By default a twelfth, where there is a
        search; with a number of scales a quarter, and up to three quarters if there are few records; without bounds a
        half.
    scales
        How often the bounds are halved at most in search of the interval. 0 takes the bounds, with all of ε for the
        noise: the choice for tight ones. By default 10 or 0, as n and ε say.
    missing
        What NaN counts as.

    >>> MeanOfRecords(epsilon=1, bounds=(0, 1_000_000)).guarantee.worst_case
    Cost(1)

    Proof: thm-moments
    """

    @property
    def what(self) -> str:
        """What it is."""
        return "mean"

    def _epsilons(self, output: Winsorized) -> tuple[Fraction, ...]:
        if output.outside is not None:
            return ()
        whole = Cost.within(self.epsilon).exact_epsilon
        if self.scales == 0 or (self.scales is None and self.range_share is None and whole > LARGE):
            return (whole,)
        if self.scales is None and self.range_share is None:  # whether there was a search depends on n
            return whole, whole - exact(requested_epsilon(whole / 12), "ε")
        return ()

    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        return int(points.sum()), POINTS, width / (POINTS * len(points))

    def _shown(self, value: Fraction, interval: Interval) -> float:
        return shown_within(value, interval)

    def _moved(self, share: Fraction, extent: Fraction, width: Fraction) -> Fraction:
        return share * extent


@dataclass(frozen=True, kw_only=True)
class VarianceOfRecords(_Moment):
    """The variance (divided by n), with noise for an interval that contains nearly all records.

    Unless n·ε is below 100, a small share of ε is for the mean. The mean square around that moves less than the
    variance can.

    Parameters
    ----------
    epsilon, bounds, range_share, scales, missing
        As for :class:`MeanOfRecords`.

    >>> VarianceOfRecords(epsilon=1, bounds=(0, 1_000_000)).guarantee.worst_case
    Cost(1)

    Proof: thm-moments
    """

    @property
    def what(self) -> str:
        """What it is."""
        return "variance"

    def _noisy(
        self, points: NDArray[np.int64], width: Fraction, epsilon: Fraction, miss: Fraction, noise: NoiseSource
    ) -> tuple[Fraction, Fraction]:
        size = len(points)
        if size * epsilon < _FEW:
            return super()._noisy(points, width, epsilon, miss, noise)
        for_mean, rest = split_epsilon(epsilon, 1.3 / float(size * epsilon) ** (1 / 3), "share")
        stairs = Staircase.of(for_mean, POINTS)
        pivot = min(max((int(points.sum()) + stairs.draw(noise)) // size, 0), POINTS)
        off = Fraction(stairs.reach(miss * _OF_PIVOT), size) + 1
        squares = Staircase.of(rest, max(pivot, POINTS - pivot) ** 2)
        unit = (width / POINTS) ** 2
        value = Fraction(_sum_of_squares(points - pivot) + squares.draw(noise), size)
        return value * unit, (Fraction(squares.reach(miss * (1 - _OF_PIVOT)), size) + off**2) * unit

    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        size = len(points)
        squares = size * _sum_of_squares(points) - int(points.sum()) ** 2
        return squares, max(size - 1, 1) * POINTS**2, (width / (POINTS * size)) ** 2

    def _shown(self, value: Fraction, interval: Interval) -> float:
        most = (Fraction(interval.high) - Fraction(interval.low)) ** 2 / 4
        return float(min(max(value, Fraction(0)), most))

    def _moved(self, share: Fraction, extent: Fraction, width: Fraction) -> Fraction:
        return comoment_moved(share, (extent, extent), (width, width))


def mean_within(mean: MeanOfRecords, data: Any, noise: NoiseSource) -> float:
    """A mean within bounds, without its error: no ε is spent on that."""
    values = records(data, mean.bounds, float(mean.missing))
    clamp = mean._clamp(values, noise)
    assert clamp is not None
    width = Fraction(clamp.interval.high) - Fraction(clamp.interval.low)
    value, _ = mean._noisy(points_of(values, clamp.interval), width, clamp.remaining, _MISS, noise)
    return mean._shown(value, clamp.interval)


def comoment_moved(share: Fraction, extents: tuple[Fraction, Fraction], widths: tuple[Fraction, Fraction]) -> Fraction:
    """How far a share of records that lie extents beyond two intervals move a covariance at most.

    Proof: lem-hidden-records
    """
    one, other = extents
    return share * (widths[0] * other + widths[1] * one + (1 + share) * one * other)


def _above(number: Fraction) -> float:
    """The nearest float that is not below a number."""
    near = float(number)
    return near if Fraction(near) >= number else nextafter(near, inf)


def shown_within(value: Fraction, interval: Interval) -> float:
    """A value counted from the lower end of an interval, clamped to it."""
    low, high = Fraction(interval.low), Fraction(interval.high)
    return float(min(max(low + value, low), high))


def points_of(values: NDArray[np.float64], interval: Interval) -> NDArray[np.int64]:
    """Records clamped to the interval, in whole steps of a millionth of it."""
    width = interval.high - interval.low
    if not width:
        return np.zeros(len(values), np.int64)
    steps = np.floor((np.clip(values, *interval) - interval.low) / width * POINTS + 0.5)
    return np.clip(steps, 0, POINTS).astype(np.int64)


def _sum_of_squares(points: NDArray[np.int64]) -> int:
    """Exactly: each square is below 2^41, so a million of them are added without overflow."""
    return sum(int((block * block).sum()) for block in np.array_split(points, len(points) // 2**20 + 1))
