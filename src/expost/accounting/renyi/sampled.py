"""Rényi prices of Gaussian noise on a Poisson sample, for records that are added or removed."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor

from expost import bracket
from expost.accounting.renyi.known import normal_noise
from expost.accounting.renyi.orders import as_order
from expost.checks import as_positive, as_probability
from expost.cost import Number

_DIGITS = 50
_MOST_TERMS = 20_000
_LEAST_NOISE = Fraction(1, 30)
"""Orders past the one and noise below the other take the price without sampling, which is never too low."""


def sampled_normal_noise(order: Number, noise_multiplier: Number, sampling_rate: Number) -> Fraction:
    """Gaussian noise on a fresh secret Poisson sample, for both orders of add-remove neighbours.

    At whole orders it is the binomial sum, rounded up. Between them ln E[(P/Q)^α] is convex in α, so that its chord is
    an upper bound.

    >>> round(float(sampled_normal_noise(8, 1, "0.01")), 6)
    0.000894

    Proof: lem-renyi-sampled
    """
    order, rate = as_order(order), as_probability(sampling_rate, "sampling_rate")
    multiplier = as_positive(noise_multiplier, "noise_multiplier")
    whole = normal_noise(order, multiplier)
    if rate in (0, 1) or order > _MOST_TERMS or multiplier < _LEAST_NOISE:
        return whole if rate else Fraction(0)
    below = floor(order)
    chord = (below + 1 - order) * _log_moment(below, multiplier, rate)
    if order > below:
        chord += (order - below) * _log_moment(below + 1, multiplier, rate)
    return min(chord / (order - 1), whole)


@lru_cache(maxsize=1024)
def _log_moment(order: int, multiplier: Fraction, rate: Fraction) -> Fraction:
    """ln Σ_k C(α, k)·(1 − γ)^{α−k}·γ^k·e^{k(k−1)/2σ²}, from above."""
    if order == 1:
        return Fraction(0)
    up = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emin=-(10**15), Emax=10**15)
    growth = _decimal(bracket.exp(1 / multiplier**2, _DIGITS).upper, up)
    odds, rest = _decimal(rate / (1 - rate), up), _decimal(1 - rate, up)
    term = _power(rest, order, up)
    total, factor = term, odds
    for k in range(order):
        term = up.multiply(term, up.divide(up.multiply(Decimal(order - k), factor), Decimal(k + 1)))
        factor = up.multiply(factor, growth)
        total = up.add(total, term)
    return Fraction(up.next_plus(up.ln(total)))  # ln is rounded to the nearest


def _power(base: Decimal, exponent: int, up: Context) -> Decimal:
    """By squaring, every product rounded up."""
    result = Decimal(1)
    for bit in f"{exponent:b}":
        result = up.multiply(result, result)
        if bit == "1":
            result = up.multiply(result, base)
    return result


def _decimal(value: Fraction, up: Context) -> Decimal:
    return up.divide(Decimal(value.numerator), Decimal(value.denominator))
