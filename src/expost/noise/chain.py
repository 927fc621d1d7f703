"""Discrete Laplace noise that is reduced step by step: each number is the next, smaller one with noise added."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise

from expost.errors import InvalidValue
from expost.noise import vector
from expost.noise.fixed import Bounds, exp_minus, product, ratio
from expost.noise.race import bernoulli_within
from expost.noise.scalar import discrete_laplace
from expost.noise.source import NoiseSource

_FEW = 32  # fewer numbers than this are drawn one at a time


def laplace_chains(source: NoiseSource, rates: Sequence[Fraction], size: int) -> list[list[int]]:
    """Noise for each of growing rates, ``size`` numbers each.

    The numbers of one rate are independent and discrete Laplace. Those of smaller rates are made from them.

    Proof: lem-chain
    """
    if any(slow >= fast for slow, fast in pairwise(rates)):
        raise InvalidValue(f"the rates of a chain grow, got {list(map(str, rates))}")
    levels = [_independent(source, rates[-1], size)]
    for fast, slow in pairwise(reversed(rates)):
        moves = [not bernoulli_within(source, partial(stay, slow, fast)) for _ in range(size)]
        steps = iter(_independent(source, slow, sum(moves)))
        levels.append(
            [number + next(steps) if moved else number for number, moved in zip(levels[-1], moves, strict=True)]
        )
    return levels[::-1]


@lru_cache(1024)
def stay(slow: Fraction, fast: Fraction, bits: int) -> Bounds:
    """Bounds on 2^bits·p, where noise of the fast rate is that of the slow one, too, with probability p.

    p = e^−(fast − slow)·((1 − e^−slow)/(1 − e^−fast))².

    Proof: lem-chain
    """
    spare = 32 + 2 * max(0, slow.denominator.bit_length() - slow.numerator.bit_length())
    work = bits + spare
    whole = 1 << work
    (slow_low, slow_high), (fast_low, fast_high) = exp_minus(slow, work), exp_minus(fast, work)
    share = ratio((whole - slow_high, whole - slow_low), (whole - fast_high, whole - fast_low), work)
    low, high = product(product(share, share, work), exp_minus(fast - slow, work), work)
    return low >> spare, -(-high >> spare)


def _independent(
    source: NoiseSource, rate: Fraction, size: int, draw: vector.Draw = vector.discrete_laplace
) -> list[int]:
    """Discrete Laplace numbers without a limit."""
    if size < _FEW:
        return [discrete_laplace(source, rate) for _ in range(size)]
    return [vector.completed(source, rate, number) for number in draw(source, rate, size).tolist()]
