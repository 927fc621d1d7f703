"""Means and variances with noise for the range that the data has, not for the bounds that it might have."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, log
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
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.moments.optional_bounds import OptionalBounds
from expost.mechanisms.moments.staircase import Staircase
from expost.mechanisms.moments.typical_range import TypicalRange
from expost.mechanisms.stability.order import check_records
from expost.noise import NoiseSource

_FEW = 100  # n·ε below which a variance is taken at once, without a mean first
_MISS = Fraction(1, 20)
POINTS = 2**20  # of the interval: records are rounded to these


class Winsorized(NamedTuple):
    """A statistic of records that were clamped to ``low`` … ``high``, and how far the noise reaches at 95 %."""

    value: float
    low: float
    high: float
    noise: float
    level: int = 0
    """At which the search for the interval ended; 0 if there were bounds."""


class Clamp(NamedTuple):
    """An interval that records are clamped to, what remains of ε, and the level of the search for it, if any."""

    interval: Interval
    remaining: Fraction
    level: int = 0


class WithinInterval(FixedCost[NDArray[Any], Winsorized]):
    """What the moments share: an interval for the records, then noise for that interval."""

    epsilon: Number
    bounds: Any
    missing: Number

    def __post_init__(self) -> None:
        check_fields(self, epsilon=requested_epsilon, bounds=optional(as_interval), missing=finite)

    def check(self, data: Any) -> None:
        """A one-dimensional array of at least one number; how many is public."""
        check_records(data, "a moment")

    def sample(self, data: Any, noise: NoiseSource) -> Winsorized:
        """The interval, and the statistic of what is clamped to it."""
        values = records(data, self.bounds, float(self.missing))
        interval, remaining, level = self._clamp(values, noise)
        low, high = interval
        value, reach = self._noisy(points_of(values, interval), Fraction(high) - Fraction(low), remaining, noise)
        return Winsorized(self._shown(value, interval), low, high, float(reach), level)

    def _noisy(
        self, points: NDArray[np.int64], width: Fraction, epsilon: Fraction, noise: NoiseSource
    ) -> tuple[Fraction, Fraction]:
        """The statistic with noise, and how far the noise reaches."""
        whole, sensitivity, unit = self._statistic(points, width)
        stairs = Staircase.of(epsilon, sensitivity)
        return (whole + stairs.draw(noise)) * unit, stairs.reach(_MISS) * unit

    @abstractmethod
    def _clamp(self, values: NDArray[np.float64], noise: NoiseSource) -> Clamp:
        """The interval for the records, and what remains of ε."""

    @abstractmethod
    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        """A whole-numbered statistic of points from 0 to 2^20, its sensitivity, and what one unit of it is."""

    @abstractmethod
    def _shown(self, value: Fraction, interval: Interval) -> float:
        """The value as it is published."""

    def describe(self, output: Any) -> str:
        """The value, its noise, and the interval."""
        between = f"records clamped to {output.low:.6g} … {output.high:.6g}"
        return f"{output.value:.6g} ± {output.noise:.3g} at 95 %, {between}"


@dataclass(frozen=True, kw_only=True)
class _Moment(OptionalBounds[NDArray[Any], Winsorized], WithinInterval):
    """A moment within a typical range."""

    epsilon: Number
    bounds: Any = None
    range_share: Number | None = None
    scales: int = 10
    missing: Number = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, scales=partial(as_whole, least=0, most=16))
        if self.range_share is not None:
            as_share(self.range_share, "range_share")
        if self.bounds is None:
            if not self.scales:
                raise InvalidValue("with 0 scales the bounds are taken as they are, and there are none: give bounds")
            _ = self.guarantee
        elif self.scales:
            _ = self.range_of(1), self.range_of(2**40)

    @property
    def _search_share(self) -> Number:
        return super()._search_share if self.range_share is None else self.range_share

    def range_of(self, size: int) -> TypicalRange:
        """The mechanism that chooses the interval for n records, within the bounds.

        Unless a share was given, it gets a quarter of ε; more, but at most three quarters, where few records call
        for it.
        """
        whole = exact(self.epsilon, "ε")
        if self.range_share is None:
            wanted = Fraction(4 * (log(2.0 ** (self.scales + 2)) + 6)) / size
            share = min(3 * whole / 4, max(whole / 4, wanted))
        else:
            share = whole * exact(self.range_share, "range_share")
        spent = requested_epsilon(share)
        penalty = min(ceil(2 / exact(spent, "ε")), size // (2 * max(self.scales, 1)))
        rest: dict[str, Any] = {"penalty": penalty, "scales": self.scales, "missing": self.missing}
        return TypicalRange(epsilon=spent, bounds=self.bounds, neighbours="substitute", **rest)

    def _clamp(self, values: NDArray[np.float64], noise: NoiseSource) -> Clamp:
        """The interval for the records, and what remains of ε; without scales, the bounds and all of it."""
        if self.bounds is None:
            (interval,), level = self._search.find([values], noise)
            return Clamp(interval, self._budgets[1], level)
        whole = Cost.within(self.epsilon).exact_epsilon
        if not self.scales:
            return Clamp(Interval(*self.bounds), whole)
        chooser = self.range_of(len(values))
        return Clamp(chooser.sample(values, noise), whole - exact(chooser.epsilon, "ε"))


@dataclass(frozen=True, kw_only=True)
class Mean(_Moment):
    """The mean, with noise for an interval that contains nearly all records instead of for the bounds.

    First a :class:`TypicalRange` chooses the interval with a share of ε. Records are clamped to it (winsorised), and
    their mean gets noise for its length with the rest of ε. Bounds may be loose.

    The data is a one-dimensional array with one value per person; neighbours exchange one, and n is public.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        Between which all records lie, or count as lying. None for records of any size: a search as that of
        :class:`PrivateRange` finds an interval, and what it does not use is refunded. The part is its level.
    range_share
        The share of ε for the interval. By default a quarter, and up to three quarters if there are few records;
        without bounds a half.
    scales
        How often the bounds are halved at most in search of the interval. 0 takes the bounds, with all of ε for the
        noise: the choice for tight ones.
    missing
        What NaN counts as.

    >>> Mean(epsilon=1, bounds=(0, 1_000_000)).guarantee.worst_case
    Cost(1)

    Proof: thm-moments
    """

    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        return int(points.sum()), POINTS, width / (POINTS * len(points))

    def _shown(self, value: Fraction, interval: Interval) -> float:
        return shown_within(value, interval)


@dataclass(frozen=True, kw_only=True)
class Variance(_Moment):
    """The variance (divided by n), with noise for an interval that contains nearly all records.

    Unless n·ε is below 100, a small share of ε is for the mean. The mean square around that moves less than the
    variance can.

    Parameters
    ----------
    epsilon, bounds, range_share, scales, missing
        As for :class:`Mean`.

    >>> Variance(epsilon=1, bounds=(0, 1_000_000)).guarantee.worst_case
    Cost(1)

    Proof: thm-moments
    """

    def _noisy(
        self, points: NDArray[np.int64], width: Fraction, epsilon: Fraction, noise: NoiseSource
    ) -> tuple[Fraction, Fraction]:
        size = len(points)
        if size * epsilon < _FEW:
            return super()._noisy(points, width, epsilon, noise)
        for_mean, rest = split_epsilon(epsilon, 1.3 / float(size * epsilon) ** (1 / 3), "share")
        stairs = Staircase.of(for_mean, POINTS)
        pivot = min(max((int(points.sum()) + stairs.draw(noise)) // size, 0), POINTS)
        off = Fraction(stairs.reach(_MISS / 2), size) + 1
        squares = Staircase.of(rest, max(pivot, POINTS - pivot) ** 2)
        unit = (width / POINTS) ** 2
        value = Fraction(_sum_of_squares(points - pivot) + squares.draw(noise), size)
        return value * unit, (Fraction(squares.reach(_MISS / 2), size) + off**2) * unit

    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        size = len(points)
        squares = size * _sum_of_squares(points) - int(points.sum()) ** 2
        return squares, max(size - 1, 1) * POINTS**2, (width / (POINTS * size)) ** 2

    def _shown(self, value: Fraction, interval: Interval) -> float:
        most = (Fraction(interval.high) - Fraction(interval.low)) ** 2 / 4
        return float(min(max(value, Fraction(0)), most))


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
