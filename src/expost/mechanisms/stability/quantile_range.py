"""The range between two quantiles, to within a factor: scale without assumptions.

The range is put into a bin of a geometric scale, [base^j, base^(j+1)), and the bin is released if it takes many changes
to leave it. In case the range is close to an edge there is a second scale, shifted by half a bin. A range of 0 has a
bin of its own. Arithmetic is exact: floats are whole multiples of 2^−1074.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, floor, log2
from sys import float_info
from typing import Any, NamedTuple

import numpy as np

from expost import bracket
from expost.checks import check_fields, equal_share
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.frame import Frame
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, Out, Withheld
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.numbers import OfArrays
from expost.mechanisms.stability.order import arranged, check_records, narrowing, rank, widening
from expost.mechanisms.stability.release import FirstStable, Proposal, StableAnswer
from expost.mechanisms.stability.test import REFUSED
from expost.mechanisms.wrapper import Wrapper
from expost.noise import NoiseSource, discrete_laplace

_FINEST = 1074  # the smallest float is 2^−1074
_LARGEST = int(float_info.max)
_STEPS = 1024  # noisy logarithms are whole multiples of 1/1024 of a bin


class Bin(NamedTuple):
    """A range between quantiles, as published: ``lower`` ≤ range < ``upper``, or both 0; and the leg that found it."""

    leg: int
    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The geometric middle, at most a factor √base from the range itself."""
        return self.lower * (self.upper / self.lower) ** 0.5 if self.lower else 0.0

    @property
    def frame(self) -> Frame:
        """A row for each edge."""
        return Estimates.named({"lower edge": self.lower, "upper edge": self.upper}).frame


@dataclass(frozen=True)
class Scale:
    """Bins [base^(j+shift), base^(j+1+shift)) for all whole j; any fixed increasing edges would do."""

    base: Fraction
    shift: Fraction

    def edge(self, j: int) -> Fraction:
        """The lower edge of bin j."""
        return _power(self.base, j + self.shift)

    def index(self, value: Fraction) -> int:
        """The bin of a positive number."""
        size = log2(value.numerator) - log2(value.denominator)
        j = floor(size / log2(self.base) - float(self.shift))
        while self.edge(j) > value:
            j -= 1
        while self.edge(j + 1) <= value:
            j += 1
        return j


@lru_cache(maxsize=4096)
def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """base^exponent, exactly if both are whole, else rounded down to forty digits: in any case the same always."""
    if base.denominator == exponent.denominator == 1:
        return base ** int(exponent)
    return bracket.exp(exponent * bracket.log(base, 60).lower, 40).lower


@dataclass(frozen=True)
class Spread:
    """What two ranks and their surroundings look like, in whole units. Private."""

    unit: Fraction
    from_low: list[int]
    to_high: list[int]
    below: list[int]
    above: list[int]
    constant: bool
    """Whether both ranks are the same record, so that the range is 0 whatever the data."""

    @property
    def width(self) -> int:
        """The range."""
        return self.to_high[-1] - self.from_low[0]

    def distance(self, least: int, past: int, cap: int) -> int:
        """min(cap, changes until one more takes the range out of [least, past))."""
        wider = widening(self.above, self.below, past, cap)
        return wider if least <= 0 else min(wider, narrowing(self.from_low, self.to_high, least, cap))


def spread(data: Any, missing: float, low: Fraction, high: Fraction, cap: int) -> Spread:
    """The surroundings of the two ranks, cap + 1 records and more each way.

    ±∞ is the largest float. Beyond the first and the last record are the ends of the domain.
    """
    size, floats = len(data), data.dtype.kind == "f"
    first, last, cap = rank(low, size), rank(high, size), min(cap, size)
    values = arranged(data, missing, [(first - cap - 1, first + cap), (last - cap, last + cap + 1)])
    least, most = (-_LARGEST << _FINEST, _LARGEST << _FINEST) if floats else _ends(data.dtype)

    def units(start: int, stop: int) -> list[int]:
        """The records of ranks start, …, stop, as far as they exist."""
        known = values[max(start, 1) - 1 : max(stop, 0)]
        return (
            [_units(x) for x in np.clip(known, -float_info.max, float_info.max).tolist()]
            if floats
            else list(map(int, known))
        )

    below, above = units(first - cap - 1, first)[::-1], units(last, last + cap + 1)
    return Spread(
        unit=Fraction(1, 2**_FINEST) if floats else Fraction(1),
        from_low=units(first, first + cap),
        to_high=units(last - cap, last),
        below=below + [least] * (cap + 2 - len(below)),
        above=above + [most] * (cap + 2 - len(above)),
        constant=first == last,
    )


def _units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_FINEST + 1 - denominator.bit_length())


def _ends(dtype: Any) -> tuple[int, int]:
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


@dataclass(frozen=True, kw_only=True)
class BinOfRange(Proposal):
    """Releases the bin of the range, which is the same on every neighbour where one change cannot leave it.

    Proof: lem-bin
    """

    low: Fraction
    high: Fraction
    scale: Scale
    missing: float
    price = Fraction(0)

    def distance(self, data: Any, cap: int) -> int:
        """Changes until one more leaves the bin."""
        seen = self._seen(data, cap)
        if seen.constant:
            return cap
        least, past = self._edges(seen)
        return seen.distance(ceil(least / seen.unit), ceil(past / seen.unit) if past else 1, min(cap, len(data)))

    def release(self, data: Any, noise: NoiseSource) -> Any:
        """The edges of the bin."""
        return tuple(map(_float, self._edges(self._seen(data, 0))))

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers."""
        check_records(data, "an inter-quantile range")

    def _seen(self, data: Any, cap: int) -> Spread:
        return data.near(cap) if isinstance(data, _Once) else spread(data, self.missing, self.low, self.high, cap)

    def _edges(self, seen: Spread) -> tuple[Fraction, Fraction]:
        width = seen.width * seen.unit
        if not width:
            return Fraction(0), Fraction(0)
        j = self.scale.index(width)
        return self.scale.edge(j), self.scale.edge(j + 1)


@dataclass(frozen=True, kw_only=True)
class LogarithmOfRange(BinOfRange):
    """Releases the range with noise on its logarithm, which moves by at most a bin where one change cannot leave it.

    That is the paper's release. The logarithm is rounded down to 1/1024 of a bin; a range of 0 is released as it is.

    Proof: lem-bin
    """

    epsilon: Fraction

    @property
    def price(self) -> Fraction:  # type: ignore[override]
        """The ε of the noise."""
        return self.epsilon

    def release(self, data: Any, noise: NoiseSource) -> float:
        """base^(H + noise), or 0."""
        seen = self._seen(data, 0)
        drawn = discrete_laplace(noise, self.epsilon / _STEPS)
        width = seen.width * seen.unit
        if not width:
            return 0.0
        j = self.scale.index(width)
        within = (log2(width.numerator) - log2(width.denominator)) / log2(self.scale.base) - float(self.scale.shift) - j
        steps = j * _STEPS + max(0, min(_STEPS, floor(within * _STEPS))) + drawn
        exponent = (steps / _STEPS + float(self.scale.shift)) * log2(self.scale.base)
        return float(2.0 ** max(-1074.0, min(1023.0, exponent)))


class _Once:
    """Data whose surroundings of the two ranks are looked up once for all legs."""

    def __init__(self, data: Any, missing: float, low: Fraction, high: Fraction, cap: int) -> None:
        self._size = len(data)
        self._known = spread(data, missing, low, high, cap)

    def __len__(self) -> int:
        return self._size

    def near(self, cap: int) -> Spread:
        return self._known


@dataclass(frozen=True, kw_only=True)
class _Ranged(OfArrays, Wrapper[Any, Out]):
    """What the analyses of the inter-quantile range share."""

    low: Number
    high: Number
    epsilon: Number
    delta: Number
    grid: Number = 2
    missing: Number = 0

    def __post_init__(self) -> None:
        if not 0 <= exact(self.low, "low") < exact(self.high, "high") <= 1:
            raise InvalidValue(f"quantiles are 0 ≤ low < high ≤ 1, got {self.low!r} and {self.high!r}")
        if not Fraction(1001, 1000) <= exact(self.grid, "grid") <= 10**6:
            raise InvalidValue(f"grid is the factor between bins, from 1.001 to 1000000, got {self.grid!r}")
        check_fields(self, "missing", "delta")
        _ = self.guarantee

    @property
    def _quantiles(self) -> tuple[Fraction, Fraction]:
        return exact(self.low, "low"), exact(self.high, "high")

    def _scales(self) -> tuple[Scale, Scale]:
        factor = exact(self.grid, "grid")
        return Scale(factor, Fraction(0)), Scale(factor, Fraction(1, 2))

    @cached_property
    def legs(self) -> FirstStable:
        """The two proposals behind their tests."""
        raise NotImplementedError

    @property
    def inner(self) -> FirstStable:
        """The two legs."""
        return self.legs

    def _first(self, data: Any, noise: NoiseSource) -> StableAnswer | Withheld:
        return self.legs.sample(_Once(data, float(self.missing), *self._quantiles, self.legs.test.cap), noise)


@dataclass(frozen=True, kw_only=True)
class StableInterquantileRange(_Ranged[Bin | Withheld]):
    """The range between two quantiles, to within a factor ``grid`` and without bounds, or ⊥ if it is not stable.

    Parameters
    ----------
    low
        The lower quantile, from 0.
    high
        The upper quantile, to 1.
    epsilon
        The whole budget. If the first of two scales of bins answers, half of it is refunded.
    delta
        The δ of every output.
    grid
        The factor between neighbouring bins, above 1.
    missing
        What NaN counts as.

    Publishes a :class:`Bin`: the leg, and the edges between which the range lies (both 0 if it is 0). The data is a
    one-dimensional array with one value per person; neighbours exchange one, and n is public. ±∞ counts as the largest
    float. Any data is answered, constant data and n = 1 with the bin of 0.

    >>> StableInterquantileRange(low=0.1, high=0.9, epsilon=1, delta=1e-6).guarantee
    Guarantee({1: 0.5, 2: 1, 'withheld': 1}, delta=1e-6, neighbours='substitute')

    Proof: thm-interquantile
    """

    @cached_property
    def legs(self) -> FirstStable:
        """Two scales of bins, half a bin apart."""
        low, high = self._quantiles
        proposals = tuple(
            BinOfRange(low=low, high=high, scale=scale, missing=float(self.missing)) for scale in self._scales()
        )
        return FirstStable(proposals=proposals, test_epsilon=equal_share(self.epsilon, 2), delta=self.delta)

    def sample(self, data: Any, noise: NoiseSource) -> Bin | Withheld:
        """The bin, or ⊥."""
        answer = self._first(data, noise)
        return answer if answer is WITHHELD else Bin(answer[0], *answer[1])

    def describe(self, output: Any) -> str:
        """The edges."""
        return (
            "withheld"
            if output is WITHHELD
            else f"between {output[1]:.4g} and {output[2]:.4g} (attempt {output[0]} of 2)"
        )


@dataclass(frozen=True, kw_only=True)
class StableInterquartileRange(StableInterquantileRange):
    """The range between the quartiles ("IQR"), to within a factor: :class:`StableInterquantileRange` from 1/4 to 3/4.

    Parameters
    ----------
    epsilon, delta, grid, missing
        As for :class:`StableInterquantileRange`.
    low, high
        The quartiles. Leave them out.

    >>> StableInterquartileRange(epsilon=1, delta=1e-6).guarantee.epsilon_of(1)
    0.5

    Proof: thm-interquantile
    """

    low: Number = Fraction(1, 4)
    high: Number = Fraction(3, 4)


@dataclass(frozen=True, kw_only=True)
class StableNoisyInterquartileRange(_Ranged[float | Withheld]):
    """The paper's own inter-quartile range as one mechanism, for comparison: noise on the logarithm.

    Parameters
    ----------
    epsilon
        The whole budget. A value costs all of it, ⊥ two thirds.
    delta
        The δ of every output.
    low
        The lower quantile, from 0.
    high
        The upper quantile, to 1.
    grid
        The factor between neighbouring bins, above 1; 1 + 1/ln n in the paper.
    missing
        What NaN counts as.

    :class:`StableInterquartileRange` is cheaper and less noisy.

    >>> StableNoisyInterquartileRange(epsilon=3, delta=1e-6).guarantee
    Guarantee({'released': 3, 'withheld': 2}, delta=1e-6, neighbours='substitute')

    Proof: thm-lemma-10
    """

    low: Number = Fraction(1, 4)
    high: Number = Fraction(3, 4)

    @cached_property
    def legs(self) -> FirstStable:
        """Two scales of bins, each with noise when it answers."""
        share = equal_share(self.epsilon, 3)
        return FirstStable(proposals=self.proposals(share), test_epsilon=share, delta=self.delta)

    def proposals(self, epsilon: Fraction) -> tuple[LogarithmOfRange, LogarithmOfRange]:
        """The two discretisations, each releasing with ε."""
        low, high = self._quantiles
        first, second = (
            LogarithmOfRange(low=low, high=high, scale=scale, missing=float(self.missing), epsilon=epsilon)
            for scale in self._scales()
        )
        return first, second

    @property
    def guarantee(self) -> Guarantee:
        """The second leg's price for any value, for the leg is not published."""
        return self.legs.guarantee.post_process({1: RELEASED, 2: RELEASED, REFUSED: REFUSED})

    def sample(self, data: Any, noise: NoiseSource) -> float | Withheld:
        """The range with noise, or ⊥."""
        answer = self._first(data, noise)
        return answer if answer is WITHHELD else answer[1]

    @property
    def what(self) -> str:
        """What it is."""
        return "range"

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The range; its noise is a factor."""
        return Estimate.unknown(output, "noise multiplied it, by a factor that is not bounded here")

    def part_of(self, output: Any) -> Part:
        """Whether something was released."""
        return REFUSED if output is WITHHELD else RELEASED


def _float(edge: Fraction) -> float:
    """An edge as it is published; the topmost ones stop at the largest float."""
    return float(min(edge, Fraction(_LARGEST)))
