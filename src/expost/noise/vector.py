"""Exact samplers for arrays: the laws of :mod:`expost.noise.scalar` and more, millions per second.

Every function takes the source, the law's rational parameters and a size (a number or a shape), and
returns integers whose distribution is the mathematical one. Array noise is exact below magnitude 2^61 and
only keeps its sign beyond; scales stay below 2^50, so that this never happens in practice, and
lem-saturation says why it is harmless if they do.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidValue
from expost.noise import laws, scalar, strips
from expost.noise.inversion import Uniform, invert
from expost.noise.source import NoiseSource
from expost.noise.strips import Integers
from expost.noise.tables import LARGEST, draw

Size: TypeAlias = int | tuple[int, ...]
Draw: TypeAlias = Callable[[NoiseSource, Fraction, Size], Integers]
"""Draws an array, given a source, the parameter of a law and the array's size."""

KNOWN_BELOW = 2**61
"""Array noise of this size and more is known by its sign only."""

LARGEST_SCALE = 2**50
"""The largest scale (1/rate, or standard deviation) that array noise may have, in whole units."""

_DIRECT = 64  # up to this scale one table does
_DIGIT = 10  # bits


def geometric(source: NoiseSource, rate: Fraction, size: Size) -> Integers:
    """k ≥ 0 with probability (1 − e^−rate)·e^−(rate·k).

    Proof: thm-split
    """
    return _geometric_split(check_rate(rate)).draw(source, _count(size)).reshape(size)


def discrete_laplace(source: NoiseSource, rate: Fraction, size: Size) -> Integers:
    """k with probability proportional to e^−(rate·``|k|``).

    Proof: thm-split
    """
    return _laplace_split(check_rate(rate)).draw(source, _count(size)).reshape(size)


def completed(source: NoiseSource, rate: Fraction, number: int) -> int:
    """A number of :func:`discrete_laplace` without its limit: what is known by its sign only is drawn from 2^61 on.

    Proof: lem-completed
    """
    if abs(number) < KNOWN_BELOW:
        return number
    beyond = KNOWN_BELOW + scalar.geometric(source, rate)
    return beyond if number > 0 else -beyond


def geometric_reaches(source: NoiseSource, rate: Fraction, margins: Integers) -> NDArray[np.bool_]:
    """For each margin (within ±2^61), whether fresh geometric noise is at least the margin.

    Proof: thm-split
    """
    return _geometric_split(check_rate(rate)).reaches(source, margins.ravel()).reshape(margins.shape)


def laplace_reaches(source: NoiseSource, rate: Fraction, margins: Integers) -> NDArray[np.bool_]:
    """For each margin (within ±2^61), whether fresh discrete Laplace noise is at least the margin.

    Proof: thm-split
    """
    return _laplace_split(check_rate(rate)).reaches(source, margins.ravel()).reshape(margins.shape)


def rounded_laplace(source: NoiseSource, rate: Fraction, size: Size) -> Integers:
    """The nearest integers to continuous Laplace numbers of density (rate/2)·e^−(rate·``|z|``).

    Proof: lem-rounded-laplace
    """
    sign = draw(source, laws.Sign(check_rate(rate)), _count(size))
    magnitude = geometric(source, rate, _count(size))
    np.minimum(magnitude, LARGEST - 1, out=magnitude)
    magnitude += 1
    return np.multiply(magnitude, sign, out=magnitude).reshape(size)


def discrete_gaussian(source: NoiseSource, variance: Fraction, size: Size) -> Integers:
    """k with probability proportional to e^−k²/(2·variance).

    Proof: thm-strips
    """
    if check_variance(variance) <= _DIRECT**2:
        return draw(source, laws.GaussianLaw(variance), _count(size)).reshape(size)
    return strips.discrete(source, variance, _count(size)).reshape(size)


def rounded_gaussian(source: NoiseSource, variance: Fraction, size: Size) -> Integers:
    """The nearest integers to continuous normal numbers of mean 0 and this variance.

    Proof: thm-strips
    """
    return strips.rounded(source, check_variance(variance), _count(size)).reshape(size)


def bernoulli(source: NoiseSource, probability: Fraction, size: Size) -> NDArray[np.bool_]:
    """True with exactly this probability.

    Proof: thm-inversion
    """
    if not 0 <= probability <= 1:
        raise InvalidValue(f"a probability lies between 0 and 1, got {probability}")
    heads = probability.numerator
    coins = draw(source, laws.Finite.of((probability.denominator - heads, heads)), _count(size))
    return coins.astype(np.bool_).reshape(size)


def bernoulli_exp(source: NoiseSource, rate: Fraction, size: Size) -> NDArray[np.bool_]:
    """True with probability exactly e^−rate.

    Proof: thm-inversion
    """
    if rate < 0:
        raise InvalidValue(f"e^−rate is a probability only for rate ≥ 0, got {rate}")
    return draw(source, laws.CoinLaw(rate), _count(size)).astype(np.bool_).reshape(size)


def lies(source: NoiseSource, rate: Fraction, choices: int, size: Size) -> Integers:
    """What randomised response adds, modulo ``choices``: 0 weighs 1, each other number e^−rate.

    Proof: thm-randomized-response
    """
    lying = draw(source, laws.Lie(rate, choices), _count(size))
    which = uniform(source, choices - 1, int(lying.sum()))
    lying[lying == 1] = which + 1
    return lying.reshape(size)


def uniform(source: NoiseSource, bound: int, size: Size) -> Integers:
    """Uniform integers among 0, …, bound − 1, for a bound up to 2^62.

    Proof: lem-uniform
    """
    if not 1 <= bound <= LARGEST:
        raise InvalidValue(f"uniform integers need a bound from 1 to 2^62, got {bound}")
    wanted = _count(size)
    mask = (1 << (bound - 1).bit_length()) - 1
    kept = np.empty(0, np.int64)
    while kept.size < wanted:
        bits = 16 if mask < 2**16 else 32 if mask < 2**32 else 64
        spare = (wanted - kept.size) * (mask + 1) // bound * 9 // 8 + 16
        numbers = (source.words(spare, bits) & np.uint64(mask).astype(f"u{bits // 8}")).astype(np.int64)
        kept = np.concatenate([kept, numbers[numbers < bound]])
    return kept[:wanted].reshape(size)


def categorical(source: NoiseSource, exponents: Integers, weight: laws.Rate | laws.RatioOfRates) -> int:
    """An index i with probability proportional to e^−(rate·exponents[i]), or ratio^exponents[i].

    Exponents are whole numbers ≥ 0, one of them 0. Equal exponents share one cell of the inversion, and
    one among them is then drawn uniformly.

    Proof: lem-categorical
    """
    levels, counts = np.unique(exponents, return_counts=True)
    law = laws.Powers(weight, tuple(levels.tolist()), tuple(counts.tolist()))
    level = invert(law, Uniform(source))
    return int(np.flatnonzero(exponents == levels[level])[source.below(int(counts[level]))])


class _Split:
    """A geometric or Laplace number as a high part and independent low digits.

    Proof: thm-split
    """

    def __init__(self, top: laws.Law, rate: Fraction, digits: tuple[int, ...]) -> None:
        self._top = top
        self._bits = sum(digits)
        self._digits = []
        position = 0
        for bits in digits:
            self._digits.append((position, laws.Digit(rate * (1 << position), 1 << bits)))
            position += bits

    def draw(self, source: NoiseSource, size: int) -> Integers:
        high = draw(source, self._top, size)
        return high if not self._bits else self._join(high, self._low(source, high))

    def reaches(self, source: NoiseSource, margins: Integers) -> NDArray[np.bool_]:
        """Whether the number is at least the margin. Low digits are drawn only where the high part ties."""
        high = draw(source, self._top, margins.size)
        if not self._bits:
            return high >= margins
        above = margins >> self._bits
        result = high > above
        ties = np.flatnonzero(high == above)
        result[ties] = self._low(source, high[ties]) >= margins[ties] & ((1 << self._bits) - 1)
        return result

    def _low(self, source: NoiseSource, high: Integers) -> Integers:
        """The low digits; those of a negative number count from the other end."""
        low = np.zeros(high.size, np.int64)
        for position, digit in self._digits:
            low |= draw(source, digit, high.size) << position
        low ^= (high >> 63) & ((1 << self._bits) - 1)
        return low

    def _join(self, high: Integers, low: Integers) -> Integers:
        limit = LARGEST >> self._bits
        np.clip(high, -limit, limit - 1, out=high)
        high <<= self._bits
        high |= low
        return high


def _digits(rate: Fraction) -> tuple[int, ...]:
    """How many low bits to split off so that the scale of what is left lies between 16 and 32."""
    scale = rate.denominator // rate.numerator
    if scale < _DIRECT:
        return ()
    bits = scale.bit_length() - 5
    pieces = -(-bits // _DIGIT)
    return tuple(bits // pieces + (i < bits % pieces) for i in range(pieces))


@lru_cache(maxsize=256)
def _geometric_split(rate: Fraction) -> _Split:
    digits = _digits(rate)
    return _Split(laws.Geometric(rate * (1 << sum(digits))), rate, digits)


@lru_cache(maxsize=256)
def _laplace_split(rate: Fraction) -> _Split:
    digits = _digits(rate)
    return _Split(laws.LaplaceLaw(rate, 1 << sum(digits)), rate, digits)


def check_rate(rate: Fraction) -> Fraction:
    """``rate`` itself, if array noise may have it."""
    if not rate * LARGEST_SCALE >= 1:
        raise InvalidValue(f"a rate must be at least 2^−50, got {rate}: take a coarser grid or a larger ε")
    return rate


def check_variance(variance: Fraction) -> Fraction:
    """``variance`` itself, if array noise may have it."""
    if not Fraction(1, LARGEST_SCALE**2) <= variance <= LARGEST_SCALE**2:
        raise InvalidValue(f"a variance lies between 2^−100 and 2^100, got {variance}: take another grid")
    return variance


def _count(size: Size) -> int:
    return size if isinstance(size, int) else prod(size)
