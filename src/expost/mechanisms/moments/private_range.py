"""A range for records of any size, for as much of ε as it needs: attempts with more and more, until one is clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import check_fields, equal_share, finite, requested_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part, as_neighbours
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.mechanisms.moments.geometric_cells import (
    DISTANCES,
    Interval,
    VisibleRange,
    geometric_counts,
    records,
    threshold,
    unsure,
    visible_range,
)
from expost.mechanisms.numbers import OfArrays
from expost.mechanisms.quantiles.candidates import Unbounded
from expost.mechanisms.quantiles.ordered import MOST_ALIKE, Tally, arrange, has_floats, records_in
from expost.mechanisms.quantiles.quantiles import target
from expost.mechanisms.quantiles.windows import Windows
from expost.noise import NoiseSource, vector
from expost.noise.grid import saturating_sum

LEVELS = 8
WITHHELD_PART = "withheld"
"""The part of a search that was never clear: no range, and nothing that would follow is spent."""
_CENTRE_SHARE = Fraction(1, 3)
_LATTICE = Unbounded.of(None, floats=True)


class FoundRange(NamedTuple):
    """From ``low`` to ``high``, and the level at which that was clear."""

    low: float
    high: float
    level: int


class FoundIntervals(NamedTuple):
    """An interval for each column, and the level at which all were clear."""

    intervals: tuple[Interval, ...]
    level: int


@dataclass(frozen=True)
class RangeSearch:
    """Attempts at the ranges of one or several columns, each with twice the ε of the one before, until all are clear.

    An attempt finds a centre (a private median, with a third of its ε) and counts the records by their distance from
    it, in powers of two, with noise. The range reaches twice as far as the last cells that noise does not explain. It
    is clear if it is more than a point, shows at least three quarters of the records, a quarter on either side of the
    centre, and a cell that noise would hide has fewer records than chance moves a count of that many by: the square
    root of their number. On the last level the latter does not matter. If even that is not clear, there is no range.

    Where the number of records is public, the search begins with the first level that can be clear for that number, and
    fewer than :attr:`least_size` are refused.

    Parameters
    ----------
    epsilon
        What all attempts together may cost: the price of the last level. Each level before has half the price.
    neighbours
        What one unit does to the records: exchange one for one, or add and remove.
    columns
        How many columns there are.
    moved
        How many such steps one unit is.

    Proof: thm-range-search
    """

    epsilon: Number
    neighbours: Neighbours
    columns: int = 1
    moved: int = 1

    @cached_property
    def prices(self) -> tuple[Fraction, ...]:
        """What is charged at each level: for all attempts up to it."""
        return tuple(equal_share(self.epsilon, 2**steps) for steps in reversed(range(LEVELS)))

    def guarantee(self, then: Fraction = Fraction(0), neighbours: Neighbours | None = None) -> Guarantee:
        """The price of each level, and what is spent afterwards at any of them; for ``neighbours``, if units have more.

        Without a range nothing is spent afterwards. One unit of a table may be several steps of the relation among
        records.
        """
        vector.check_rate(self._rates(self.prices[0])[1])
        prices: dict[Part, Fraction] = {level: price + then for level, price in enumerate(self.prices, 1)}
        return Guarantee({**prices, WITHHELD_PART: self.prices[-1]}, neighbours=neighbours or self.neighbours)

    @property
    def least_size(self) -> int:
        """How many records it takes for a range, at least, where their number is public.

        With fewer, noise hides more than a quarter of them, even if all lie in a few cells.
        """
        return 4 * unsure(float(self._rates(self.prices[-1])[1]))

    def require(self, size: int) -> None:
        """Refuse a public number of records with which no range can be found."""
        if self.neighbours == "substitute":
            self.require_at_most(size)

    def require_at_most(self, size: int) -> None:
        """Refuse a public number that there are at most, whether or not the number of records itself is public."""
        if size < self.least_size:
            raise InvalidValue(
                f"{size:,} records are too few for a search of their range with ε {float(exact(self.epsilon, 'ε')):g}: "
                f"it takes at least {self.least_size:,}, and often twice as many. Give bounds, or more ε"
            )

    def find(self, columns: Sequence[NDArray[np.float64] | Tally], noise: NoiseSource) -> FoundIntervals | None:
        """The ranges of columns of equal length, whose records are of single precision; None if they are not clear."""
        crowds = [_Crowd.of(column, self.neighbours) for column in columns]
        spent = Fraction(0)
        for level in range(self.first(crowds[0].size), LEVELS + 1):
            rates = self._rates(self.prices[level - 1] - spent)
            spent = self.prices[level - 1]
            found = [crowd.attempt(*rates, noise) for crowd in crowds]
            if all(_is_clear(one, rates[1], level) for one in found):
                return FoundIntervals(tuple(one.interval for one in found), level)
        return None

    def first(self, size: int) -> int:
        """The level to begin with: the first that can be clear for ``size`` records, if their number is public."""
        if self.neighbours != "substitute":
            return 1
        rates = (self._rates(price)[1] for price in self.prices)
        return next((level for level, rate in enumerate(rates, 1) if _hides_little(rate, size)), LEVELS)

    def _rates(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Of an attempt with this ε: of the choice of a centre, and of the noise of counts, for each column."""
        share = epsilon / (self.columns * self.moved)
        exchanged = 2 if self.neighbours == "substitute" else 1
        return share * _CENTRE_SHARE / 2, share * (1 - _CENTRE_SHARE) / exchanged


def _is_clear(found: VisibleRange, rate: Fraction, level: int) -> bool:
    """Whether a search ends with this."""
    return found.shows_most and (level == LEVELS or _hides_little(rate, found.records))


def _hides_little(rate: Fraction, size: int) -> bool:
    return threshold(float(rate)) ** 2 <= size


class _Crowd:
    """The records of a column, sorted once. Private."""

    def __init__(self, tally: Tally, ordered: Any, neighbours: Neighbours) -> None:
        self._tally, self._ordered = tally, ordered
        self._middle = target(Fraction(1, 2), ordered.size, neighbours).settled(ordered)
        self.size: int = ordered.size
        self._public = ordered.size if neighbours == "substitute" else None

    @classmethod
    def of(cls, column: NDArray[np.float64] | Tally, neighbours: Neighbours) -> _Crowd:
        ordered = arrange(column, _LATTICE, 0.0)
        if not isinstance(column, Tally):
            column = Tally(column, np.ones(1, np.int64))
        return cls(column, ordered, neighbours)

    def attempt(self, centre_rate: Fraction, rate: Fraction, noise: NoiseSource) -> VisibleRange:
        """A centre, then noisy counts around it, then what these show.

        Proof: lem-range-attempt
        """
        (chosen,) = Windows(self._ordered, (self._middle,), centre_rate, paired=False).sample(noise)
        centre = float(_LATTICE.value(chosen))
        counts = np.clip(np.asarray(self._tally.counts), 0, MOST_ALIKE).astype(np.int64)
        exact = geometric_counts(np.asarray(self._tally.values), counts, centre)
        noisy = saturating_sum(exact, vector.discrete_laplace(noise, rate, (2, DISTANCES)))
        return visible_range(noisy, centre, float(rate), self._public)


@dataclass(frozen=True, kw_only=True)
class PrivateRange(OfArrays, Mechanism[NDArray[Any] | Tally, FoundRange | Withheld]):
    """An interval that contains nearly all records, whatever their size, for as much of ε as the data needs.

    Attempts are made with more and more ε until the range is clear; the rest is refunded. Nothing need be known of the
    data, neither where it is nor how far it reaches. See :class:`TypicalRange` for data within bounds.

    The part is the level at which the range was clear, from 1 to 8. Each level costs twice as much as the one before.
    If no range was clear the value is ``WITHHELD``, for the price of all levels: there are few records, for this ε, or
    nearly all of them are equal.

    Parameters
    ----------
    epsilon
        The whole budget.
    neighbours
        ``"substitute"``: the number of records is public, and the search begins with the level that it calls for.
        ``"add-remove"``: it is private, and all levels are tried.
    missing
        What NaN counts as.

    >>> PrivateRange(epsilon=1, neighbours="substitute").guarantee.epsilon_of(3)
    0.03125

    Proof: thm-range-search
    """

    epsilon: Number
    neighbours: Neighbours
    missing: Number = 0

    def __post_init__(self) -> None:
        check_fields(self, epsilon=requested_epsilon, missing=finite)
        if as_neighbours(self.neighbours) is None:
            raise InvalidValue(
                "neighbours is 'add-remove' or 'substitute' (is the number of records private, or public?), got None"
            )
        _ = self.guarantee

    @cached_property
    def search(self) -> RangeSearch:
        """The attempts, and their prices."""
        return RangeSearch(self.epsilon, self.neighbours)

    @cached_property
    def guarantee(self) -> Guarantee:
        """For each level its price."""
        return self.search.guarantee()

    def part_of(self, output: FoundRange | Withheld) -> Part:
        """The level."""
        return WITHHELD_PART if isinstance(output, Withheld) else output.level

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers, or a tally of them; enough for a range, if their number is public."""
        has_floats(data, type(self).__name__)
        self.search.require(records_in(data))

    def sample(self, data: Any, noise: NoiseSource) -> FoundRange | Withheld:
        """The range and its level."""
        missing = float(self.missing)
        if isinstance(data, Tally):
            column: Any = Tally(records(data.values, None, missing), data.counts)
        else:
            column = records(data, None, missing)
        found = self.search.find([column], noise)
        return WITHHELD if found is None else FoundRange(*found.intervals[0], found.level)

    def describe(self, output: Any) -> str:
        """The range and its level."""
        if output is WITHHELD:
            return "withheld: no range was clear"
        return f"{output.low:.6g} … {output.high:.6g} (attempt {output.level} of {LEVELS})"
