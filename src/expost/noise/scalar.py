"""Exact samplers for one number at a time, on rational parameters.

Every probability here is the mathematical one: the samplers only ever ask a source for uniform integers.
"""

from __future__ import annotations

from fractions import Fraction

from expost.errors import InvalidValue
from expost.noise.source import Source


def bernoulli(source: Source, probability: Fraction) -> bool:
    """True with exactly this probability.

    Proof: lem-uniform
    """
    if not 0 <= probability <= 1:
        raise InvalidValue(f"a probability lies between 0 and 1, got {probability}")
    return source.chance(probability.numerator, probability.denominator)


def bernoulli_exp(source: Source, rate: Fraction) -> bool:
    """True with probability exactly e^−rate, for any rational rate ≥ 0.

    Proof: lem-bernoulli-exp
    """
    if rate < 0:
        raise InvalidValue(f"e^−rate is a probability only for rate ≥ 0, got {rate}")
    for _ in range(int(rate)):
        if not _bernoulli_exp_fraction(source, Fraction(1)):
            return False
    return _bernoulli_exp_fraction(source, rate - int(rate))


def _bernoulli_exp_fraction(source: Source, rate: Fraction) -> bool:
    k = 1
    while bernoulli(source, rate / k):
        k += 1
    return k % 2 == 1


def geometric(source: Source, rate: Fraction) -> int:
    """k ≥ 0 with probability (1 − e^−rate)·e^−(rate·k), for any rational rate > 0.

    Proof: lem-geometric
    """
    if rate <= 0:
        raise InvalidValue(f"a geometric law needs a rate above 0, got {rate}")
    steps = rate.denominator  # first the law of rate 1/steps, then every numerator-th cell is one
    while True:
        remainder = source.below(steps)
        if bernoulli_exp(source, Fraction(remainder, steps)):
            break
    whole = 0
    while bernoulli_exp(source, Fraction(1)):
        whole += 1
    return (remainder + steps * whole) // rate.numerator


def discrete_laplace(source: Source, rate: Fraction) -> int:
    """k with probability proportional to e^−(rate·|k|), for any rational rate > 0.

    Proof: lem-discrete-laplace
    """
    while True:
        negative = source.below(2) == 1
        size = geometric(source, rate)
        if not (negative and size == 0):
            return -size if negative else size
