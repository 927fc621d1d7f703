"""Certified fixed point: integers lo ≤ 2^bits·x ≤ hi around a real number x, a few units apart.

The samplers compare random bits with probabilities. They need the probabilities' own leading bits, as
many as a comparison asks for, and they need to know which of them are certain.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Bounds: TypeAlias = tuple[int, int]
"""Integers lo ≤ 2^bits·x ≤ hi."""


@lru_cache(maxsize=64)
def _context(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def exp_minus(x: Fraction, bits: int) -> Bounds:
    """Bounds on 2^bits·e^−x for a rational x ≥ 0, at most three units apart.

    Proof: lem-fixed-exp
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:  # e^−x < 2^−bits
        return 0, 1
    context = _context((bits * 4) // 13 + bits.bit_length() + 6)
    power = context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    near = int(context.multiply(power, Decimal(1 << bits)))
    return max(near - 1, 0), near + 2


def exp_steps(rate: Fraction, steps: int, bits: int) -> Bounds:
    """Bounds on 2^bits·e^−(rate·steps) for a rational rate > 0 and whole steps ≥ 0, at most three units apart.

    Products of e^−(rate·2^i), which are kept, as many laws ask for one rate and many steps.

    Proof: lem-fixed-steps
    """
    work = bits + _SPARE
    known = _doublings(rate.numerator, rate.denominator, work)
    if steps >> len(known):  # rate·steps > work
        return 0, 1
    result = (1 << work, 1 << work)
    for factor in known:
        if steps & 1:
            result = product(result, factor, work)
        steps >>= 1
        if not steps:
            break
    return result[0] >> _SPARE, -(-result[1] >> _SPARE)


_SPARE = 16


@lru_cache(maxsize=256)
def _doublings(numerator: int, denominator: int, work: int) -> tuple[Bounds, ...]:
    """Bounds on 2^work·e^−(rate·2^i), for all i with rate·2^i ≤ work. Integers have faster hashes than fractions."""
    rate, known = Fraction(numerator, denominator), []
    while rate <= work:
        known.append(exp_minus(rate, work))
        rate *= 2
    return tuple(known)


def ratio(numerator: Bounds, denominator: Bounds, bits: int) -> Bounds:
    """Bounds on 2^bits·a/b for 0 ≤ a ≤ b, b > 0, from bounds on a and b in one common unit."""
    if denominator[0] <= 0:
        return 0, 1 << bits
    low = (max(numerator[0], 0) << bits) // denominator[1]
    high = -((-numerator[1] << bits) // denominator[0])
    return low, min(high, 1 << bits)


def power(base: Fraction, exponent: int, bits: int) -> Bounds:
    """Bounds on 2^bits·base^exponent for a rational 0 < base ≤ 1, at most three units apart.

    Proof: lem-fixed-power
    """
    work = bits + 2 * exponent.bit_length() + 3
    low = (base.numerator << work) // base.denominator
    square = (low, min(low + 1, 1 << work))
    result = (1 << work, 1 << work)
    while exponent:
        if exponent & 1:
            result = product(result, square, work)
        square = product(square, square, work)
        exponent >>= 1
    spare = work - bits
    return result[0] >> spare, -(-result[1] >> spare)


def product(a: Bounds, b: Bounds, bits: int) -> Bounds:
    """Bounds on 2^bits·a·b, from bounds on 2^bits·a and 2^bits·b."""
    return a[0] * b[0] >> bits, -(-a[1] * b[1] >> bits)
