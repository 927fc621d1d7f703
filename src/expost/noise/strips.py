"""Normal numbers in arrays, by strips: discrete ones of a large scale, and rounded continuous ones.

Cut the half-line into strips of one width, a power of two, about a hundredth of the standard deviation.
Choose the T-th strip with the weight that the bell has at its near edge, choose a place V in it uniformly,
and accept with probability e^−y, y = V·(2T + V)/(2s²), the bell's fall since the edge (s is the standard
deviation in strips). What is accepted has the bell's law, and nearly everything is: 1 − y ≤ e^−y ≤
1 − y + y²/2 decides most draws with no exponential at all, and certified bounds decide the rest.

Proof: thm-strips
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.noise.inversion import Uniform
from expost.noise.laws import HalfGaussian
from expost.noise.scalar import keeps
from expost.noise.source import NoiseSource
from expost.noise.tables import draw

Integers: TypeAlias = NDArray[np.int64]
Unsigned: TypeAlias = NDArray[np.unsignedinteger[Any]]
Reals: TypeAlias = NDArray[np.floating[Any]]

_COIN = 15  # bits of the first look at the accepting coin; the sixteenth is the sign
_SLACK = 2.0**-40  # far above what float64 can lose in the dozen operations before and in `decided`


@dataclass(frozen=True)
class _Strips:
    """How the half-line is cut: strips of width 2^exponent, standard deviation √variance strips."""

    exponent: int
    variance: Fraction
    sure: Integers
    """For each strip, how many of the 2^15 first looks accept wherever in the strip the place is."""


@lru_cache(maxsize=64)
def _strips(variance: Fraction) -> _Strips:
    exponent = (int(variance * 4**64).bit_length() - 1) // 2 - 64 - 6  # √variance/2^exponent is in [64, 128)
    scaled = variance / Fraction(4) ** exponent
    # e^−y ≥ 1 − (2T + 1)/(2s²), whatever V
    sure = [(1 << _COIN) - -(-((2 * t + 1) << _COIN) // (2 * scaled)) for t in range(1024)]
    return _Strips(exponent, scaled, np.array([max(0, int(bound)) for bound in sure], np.int64))


def discrete(source: NoiseSource, variance: Fraction, size: int) -> Integers:
    """k with probability proportional to e^−k²/(2·variance), for a standard deviation of at least 64.

    Proof: thm-strips
    """
    cut = _strips(variance)

    def batch(count: int) -> Integers:
        strip = draw(source, HalfGaussian(cut.variance), count)
        place = source.words(count, _width(cut.exponent)) & np.uint64((1 << cut.exponent) - 1)
        accepted, negative = _accept(source, cut, strip, place, cut.exponent, exact=True)
        numbers = (np.minimum(strip, 2**62 >> cut.exponent) << cut.exponent) + place.astype(np.int64)
        accepted &= ~(negative & (numbers == 0))  # 0 has one sign
        return _signed(numbers, negative)[accepted]

    return _fill(batch, size)


def rounded(source: NoiseSource, variance: Fraction, size: int) -> Integers:
    """The nearest integers to normal numbers of mean 0 and this variance.

    Proof: thm-strips
    """
    cut = _strips(variance)
    known = _width(cut.exponent + 1)

    def batch(count: int) -> Integers:
        strip = draw(source, HalfGaussian(cut.variance), count)
        place = source.words(count, known)
        accepted, negative = _accept(source, cut, strip, place, known, exact=False)
        return _signed(_nearest(cut, strip, place, known), negative)[accepted]

    return _fill(batch, size)


def _nearest(cut: _Strips, strip: Integers, place: Unsigned, known: int) -> Integers:
    """⌊2^exponent·(T + V) + ½⌋, of which only the first exponent + 1 bits of V matter."""
    if cut.exponent < 0:
        return (strip + (1 << (-cut.exponent - 1))) >> -cut.exponent
    halves = (place >> np.uint64(known - cut.exponent - 1)).astype(np.int64)
    return (np.minimum(strip, 2**61 >> cut.exponent) << cut.exponent) + ((halves + 1) >> 1)


def _accept(
    source: NoiseSource, cut: _Strips, strip: Integers, place: Unsigned, known: int, *, exact: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which draws to keep, each with probability e^−V(2T+V)/2s², and a fair sign for each."""
    look = source.words(strip.size, 16)
    first = (look >> np.uint16(1)).astype(np.int64)
    accepted = first < cut.sure[np.minimum(strip, cut.sure.size - 1)]
    accepted &= strip < cut.sure.size
    unsure = np.flatnonzero(~accepted)
    if unsure.size:
        accepted[unsure] = _decide(source, cut, strip[unsure], place[unsure], known, first[unsure], exact)
    return accepted, (look & np.uint16(1)).astype(np.bool_)


def _decide(
    source: NoiseSource, cut: _Strips, strip: Integers, place: Unsigned, known: int, first: Integers, exact: bool
) -> NDArray[np.bool_]:
    """The same from 48 more bits of each coin, in floating point; then by exact arithmetic."""
    coins = first << 48 | (source.words(strip.size) >> np.uint64(16)).astype(np.int64)
    coin = coins * 2.0**-63
    near = place * 2.0**-known
    far = near if exact else near + 2.0**-known
    fall = [v * (2.0 * strip + v) / (2.0 * float(cut.variance)) for v in (near, far)]
    accepted, certain = decided(coin, *fall)
    for i in np.flatnonzero(~certain):
        where = Uniform(source, int(place[i]), known)
        accepted[i] = keeps(Uniform(source, int(coins[i]), 63), int(strip[i]), where, cut.variance, exact)
    return accepted


def decided(coin: Reals, near: Reals, far: Reals) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which coins are certainly below e^−y, for y from ``near`` to ``far``; and which are certainly below it or not.

    By 1 − y ≤ e^−y ≤ 1 − y + y²/2.
    """
    accepted = coin < 1 - far - _SLACK
    return accepted, accepted | ((coin > 1 - near + near**2 / 2 + _SLACK) & (near < 1))


def _fill(batch: Callable[[int], Integers], size: int) -> Integers:
    """The first ``size`` accepted numbers of as many batches as it takes."""
    kept = np.empty(0, np.int64)
    while (missing := size - kept.size) > 0:
        more = batch(missing + missing // 64 + 8)
        kept = np.concatenate([kept, more]) if kept.size else more
    return kept[:size]


def _signed(numbers: Integers, negative: NDArray[np.bool_]) -> Integers:
    return np.negative(numbers, out=numbers, where=negative)


def _width(bits: int) -> int:
    """The width of the random words that hold this many bits."""
    return 16 if bits <= 16 else 32 if bits <= 32 else 64
