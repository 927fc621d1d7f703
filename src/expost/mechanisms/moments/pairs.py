"""Covariances and correlations of two columns, with pure ε."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_interval, check_fields, equal_share, finite, requested_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.moments.moments import (
    NO_RANGE,
    OUTSIDE_SHARE,
    POINTS,
    comoment_moved,
    count_outside,
    points_of,
)
from expost.mechanisms.moments.optional_bounds import OptionalBounds
from expost.mechanisms.moments.staircase import Staircase
from expost.mechanisms.numbers import OfArrays, shape_of
from expost.mentions import GivenValue
from expost.noise import NoiseSource

_MOST = 2**22  # records: sums of products stay within 2^62


class FoundCovariance(NamedTuple):
    """A statistic, and how far off it is at most, at 95 %."""

    value: float
    noise: float | None
    """None if too many values are outside of the ranges that were found."""
    level: int = 0
    """At which the search for the ranges of both columns ended; 0 if there were bounds."""
    ranges: tuple[Interval, ...] = ()
    """That values were clamped to, if they were found."""
    outside: float | None = None
    """The share of rows with a value outside of its range, at most; it is taken to lie within half of it beyond."""


class FoundCorrelation(NamedTuple):
    """A correlation without bounds, and the level at which the search for the ranges of both columns ended."""

    value: float
    level: int


@dataclass(frozen=True, kw_only=True)
class _Paired(OfArrays, OptionalBounds[NDArray[Any], Any]):
    """What statistics of two columns share: a pair of bounds, and rows of two numbers."""

    epsilon: Number
    bounds: Any = None
    missing: Number = 0
    _columns: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_fields(self, epsilon=requested_epsilon)
        if self.bounds is not None:
            if not isinstance(self.bounds, tuple | list) or len(self.bounds) != 2:
                raise InvalidValue(
                    "bounds are a pair for each of two columns, the lowest first, got ", GivenValue(self.bounds)
                )
            object.__setattr__(self, "bounds", tuple(as_interval(pair) for pair in self.bounds))
        check_fields(self, missing=finite)
        _ = equal_share(self.epsilon, 3), self.guarantee

    def check(self, data: Any) -> None:
        """Rows of two numbers, at least one row; how many is public."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 2 or dimensions[1] != 2 or not 1 <= dimensions[0] <= _MOST:
            raise InvalidValue(f"the data has two columns and from 1 to {_MOST:,} rows, got shape {dimensions}")
        if self.bounds is None:
            self._search.require(dimensions[0])

    def _clamped(self, data: Any, noise: NoiseSource) -> _Clamped | None:
        """Both columns within the bounds and all of ε; or, if there are none, within their ranges, and the rest.

        None if these are not clear.
        """
        missing = float(self.missing)
        if self.bounds is not None:
            columns = [
                records(values, ends, missing) for values, ends in zip(np.asarray(data).T, self.bounds, strict=True)
            ]
            intervals, remaining, level = tuple(Interval(*ends) for ends in self.bounds), exact(self.epsilon, "ε"), 0
        else:
            columns = [records(values, None, missing) for values in np.asarray(data).T]
            found = self._search.find(columns, noise)
            if found is None:
                return None
            (intervals, level), remaining = found, self._budgets[1]
        points = np.array([points_of(values, ends) for values, ends in zip(columns, intervals, strict=True)])
        beyond = [(values < low) | (values > high) for values, (low, high) in zip(columns, intervals, strict=True)]
        return _Clamped(points, intervals, remaining, level, int(np.count_nonzero(beyond[0] | beyond[1])))


class _Clamped(NamedTuple):
    """Both columns in whole steps of a millionth of their intervals, what remains of ε, and the level of the search."""

    points: NDArray[np.int64]
    intervals: tuple[Interval, ...]
    remaining: Fraction
    level: int
    outside: int
    """How many rows have a value outside of its interval. Private."""


def comoment(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """n² times the covariance of whole numbers from 0 to 2^20, exactly. One record moves it by (n − 1)·2^40 at most.

    Proof: thm-covariance
    """
    return len(first) * int(first @ second) - int(first.sum()) * int(second.sum())


def _stairs(epsilon: Fraction, size: int) -> Staircase:
    return Staircase.of(epsilon, max(size - 1, 1) * POINTS**2)


@dataclass(frozen=True, kw_only=True)
class CovarianceOfRecords(_Paired):
    """The covariance of two columns (divided by n), with pure ε.

    The data is an array with a row of two numbers per person; neighbours exchange one, and n is public. Values are
    clamped to their bounds. Where there are none, a search as that of :class:`PrivateRange` finds a range of each
    column with at most half of ε, and what it does not use is refunded. The part is its level. If no range is clear
    the value is ``WITHHELD``, before any noise for it is drawn, and costs the search alone.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        Two pairs (lowest, highest), one for each column; None for values of any size. Tight ones are best.
    missing
        What NaN counts as, in both columns.

    >>> CovarianceOfRecords(epsilon=1, bounds=[(0, 1), (0, 100)]).guarantee.worst_case
    Cost(1)

    Proof: thm-covariance
    """

    def sample(self, data: Any, noise: NoiseSource) -> FoundCovariance | Withheld:
        """The covariance with noise; without clear ranges, nothing."""
        clamped = self._clamped(data, noise)
        if clamped is None:
            return WITHHELD
        (first, second), size = clamped.points, clamped.points.shape[1]
        one, other = (Fraction(high) - Fraction(low) for low, high in clamped.intervals)
        hidden, many, remaining, miss = Fraction(0), False, clamped.remaining, Fraction(1, 20)
        found: tuple[tuple[Interval, ...], float | None] = (), None
        if self.bounds is None:
            counted, remaining, miss = remaining * OUTSIDE_SHARE, remaining * (1 - OUTSIDE_SHARE), miss / 2
            share, _, many = count_outside(clamped.outside, size, counted, noise)
            hidden = comoment_moved(share, (one / 2, other / 2), (one, other))
            found = clamped.intervals, float(share)
        stairs = _stairs(remaining, size)
        unit, most = one * other / (POINTS * size) ** 2, one * other / 4
        value = (comoment(first, second) + stairs.draw(noise)) * unit
        error = None if many else float(stairs.reach(miss) * unit + hidden)
        return FoundCovariance(float(min(max(value, -most), most)), error, clamped.level, *found)

    @property
    def what(self) -> str:
        """What it is."""
        return "covariance"

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The value with its error; ``how`` is the :class:`FoundCovariance` that says what values were clamped to."""
        why = "many values may lie outside of the ranges that were found, and how far is not known"
        return Estimate.within(output.value, output.noise, (origin, 0), how=output, why=why)

    def describe(self, output: Any) -> str:
        """The value and its error."""
        if output is WITHHELD:
            return NO_RANGE
        error = "" if output.noise is None else f" ± {output.noise:.3g} at 95 %"
        if not output.ranges:
            return f"{output.value:.6g}{error}"
        between = " and ".join(f"{low:.6g} … {high:.6g}" for low, high in output.ranges)
        outside = "" if output.outside is None else f"; at most {100 * output.outside:.2g} % of the rows lie outside"
        return f"{output.value:.6g}{error}, values clamped to {between}{outside}"


@dataclass(frozen=True, kw_only=True)
class CorrelationOfRecords(_Paired):
    """The correlation of two columns (Pearson's), with pure ε: from two variances and a covariance with a third each.

    The value is between −1 and 1, and 0 where a noisy variance is not above 0. Without bounds it comes with the level
    of the search for ranges, as a :class:`FoundCorrelation`.

    Parameters
    ----------
    epsilon, bounds, missing
        As for :class:`CovarianceOfRecords`.

    >>> CorrelationOfRecords(epsilon=1, bounds=[(0, 1), (0, 100)]).guarantee.worst_case
    Cost(1)

    Proof: thm-covariance
    """

    def sample(self, data: Any, noise: NoiseSource) -> float | FoundCorrelation | Withheld:
        """The correlation of noisy moments; without clear ranges, nothing."""
        clamped = self._clamped(data, noise)
        if clamped is None:
            return WITHHELD
        value = self._noisy(clamped.points, clamped.remaining, noise)
        return value if self.bounds is not None else FoundCorrelation(value, clamped.level)

    def _noisy(self, points: NDArray[np.int64], remaining: Fraction, noise: NoiseSource) -> float:
        first, second = points
        stairs = _stairs(equal_share(remaining, 3), len(first))
        pairs = ((first, first), (second, second), (first, second))
        one, other, both = (comoment(*pair) + stairs.draw(noise) for pair in pairs)
        if min(one, other) <= 0:
            return 0.0
        return float(min(max(both / (float(one) * float(other)) ** 0.5, -1.0), 1.0))

    @property
    def what(self) -> str:
        """What it is."""
        return "correlation"

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The value; what three kinds of noise do to a quotient and a root is not bounded."""
        value = output if isinstance(output, float) else output.value
        return Estimate.unknown(value, "it is a quotient of three numbers with noise, and is not bounded", how=output)

    def describe(self, output: Any) -> str:
        """The value."""
        if output is WITHHELD:
            return NO_RANGE
        return f"{output if isinstance(output, float) else output.value:.3f}"
