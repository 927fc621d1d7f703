"""Exact samplers for one number at a time, on rational parameters.

Every probability here is the mathematical one: the samplers only ever ask a source for uniform integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, gcd, isqrt

from expost.errors import InvalidValue
from expost.noise.fixed import exp_minus
from expost.noise.inversion import Uniform
from expost.noise.source import NoiseSource


def bernoulli(source: NoiseSource, probability: Fraction) -> bool:
    """True with exactly this probability.

    Proof: lem-uniform
    """
    if not 0 <= probability <= 1:
        raise InvalidValue(f"a probability lies between 0 and 1, got {probability}")
    return source.chance(probability.numerator, probability.denominator)


def bernoulli_exp(source: NoiseSource, rate: Fraction) -> bool:
    """True with probability exactly e^−rate, for any rational rate ≥ 0.

    Proof: lem-bernoulli-exp
    """
    if rate.numerator < 0:
        raise InvalidValue(f"e^−rate is a probability only for rate ≥ 0, got {rate}")
    return _exp_coin(source, rate.numerator, rate.denominator)


def _exp_coin(source: NoiseSource, numerator: int, denominator: int) -> bool:
    """True with probability e^−(numerator/denominator): of whole numbers, for fractions would take most of the time."""
    whole, rest = divmod(numerator, denominator)
    for _ in range(whole):
        if not _exp_coin_at_most_one(source, 1, 1):
            return False
    return _exp_coin_at_most_one(source, rest, denominator)


def _exp_coin_at_most_one(source: NoiseSource, numerator: int, denominator: int) -> bool:
    """The same for at most 1: the number of successes in a row, of probabilities x/1, x/2, x/3, …, is even."""
    k, below = 1, denominator
    while source.chance(numerator // (common := gcd(numerator, below)), below // common):
        k += 1
        below += denominator
    return k % 2 == 1


def geometric(source: NoiseSource, rate: Fraction) -> int:
    """k ≥ 0 with probability (1 − e^−rate)·e^−(rate·k), for any rational rate > 0.

    Proof: lem-geometric
    """
    if rate.numerator <= 0:
        raise InvalidValue(f"a geometric law needs a rate above 0, got {rate}")
    steps = rate.denominator  # first the law of rate 1/steps, then every numerator-th cell is one
    while True:
        remainder = source.below(steps)
        if _exp_coin(source, remainder, steps):
            break
    whole = 0
    while _exp_coin(source, 1, 1):
        whole += 1
    return (remainder + steps * whole) // rate.numerator


def discrete_laplace(source: NoiseSource, rate: Fraction) -> int:
    """k with probability proportional to e^−(rate·``|k|``), for any rational rate > 0.

    Proof: lem-discrete-laplace
    """
    while True:
        negative = source.below(2) == 1
        size = geometric(source, rate)
        if not (negative and size == 0):
            return -size if negative else size


def rounded_laplace(source: NoiseSource, rate: Fraction) -> int:
    """The nearest integer to a continuous Laplace number of density (rate/2)·e^−(rate·``|z|``).

    Proof: lem-rounded-laplace
    """
    if rate <= 0:
        raise InvalidValue(f"a Laplace law needs a rate above 0, got {rate}")
    if not bernoulli_exp(source, rate / 2):
        return 0
    size = 1 + geometric(source, rate)
    return -size if source.below(2) else size


def discrete_gaussian(source: NoiseSource, variance: Fraction) -> int:
    """k with probability proportional to e^−k²/(2·variance), for any rational variance > 0.

    Proof: lem-discrete-gaussian
    """
    if variance <= 0:
        raise InvalidValue(f"a normal law needs a variance above 0, got {variance}")
    scale = isqrt(int(variance)) + 1
    while True:
        candidate = discrete_laplace(source, Fraction(1, scale))
        if bernoulli_exp(source, (abs(candidate) - variance / scale) ** 2 / (2 * variance)):
            return candidate


def rounded_gaussian(source: NoiseSource, variance: Fraction) -> int:
    """The nearest integer to a continuous normal number of mean 0 and this variance.

    One strip is one unit wide, or one standard deviation if that is more.

    Proof: thm-strips
    """
    if variance <= 0:
        raise InvalidValue(f"a normal law needs a variance above 0, got {variance}")
    width = isqrt(int(variance)) or 1
    scaled = variance / width**2
    while True:
        strip = discrete_gaussian(source, scaled)
        if strip >= 0 and keeps(Uniform(source), strip, place := Uniform(source), scaled):
            number = _nearest(width, strip, place)
            return -number if source.below(2) else number


def categorical(source: NoiseSource, exponents: Sequence[int], ratio: Fraction) -> int:
    """An index i with probability proportional to ratio^exponents[i], for a rational 0 < ratio ≤ 1.

    Proof: lem-categorical
    """
    if not 0 < ratio <= 1 or not exponents or min(exponents) < 0:
        raise InvalidValue(f"weights need a ratio in (0, 1] and exponents ≥ 0, got {ratio} and {exponents!r}")
    most = max(exponents)
    weights = [ratio.numerator**k * ratio.denominator ** (most - k) for k in exponents]
    draw = source.below(sum(weights))
    for index, weight in enumerate(weights):
        draw -= weight
        if draw < 0:
            return index
    raise AssertionError("unreachable: the draw is below the sum of the weights")


def keeps(coin: Uniform, strip: int, place: Uniform, variance: Fraction, exact: bool = False) -> bool:
    """Whether the coin is below e^−V(2·strip + V)/(2·variance), learning bits of both as needed.

    V is the place: the real number that begins with its bits, or, if ``exact``, the number that they are.

    Proof: thm-strips
    """
    while True:
        near, far = place.span
        far = near if exact else far
        low, _ = exp_minus(far * (2 * strip + far) / (2 * variance), coin.bits)
        _, high = exp_minus(near * (2 * strip + near) / (2 * variance), coin.bits)
        if coin.draw < low:
            return True
        if high <= coin.draw:
            return False
        coin.more()
        if not exact:
            place.more()


def _nearest(width: int, strip: int, place: Uniform) -> int:
    """⌊width·(strip + V) + ½⌋."""
    while True:
        low, high = (width * (strip + end) + Fraction(1, 2) for end in place.span)
        if floor(low) == ceil(high) - 1:
            return floor(low)
        place.more()
