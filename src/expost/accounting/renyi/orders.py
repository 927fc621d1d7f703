"""Orders: what a limit (ε, δ) holds at an order, the way back to (ε, δ), and the order that holds most."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, frexp, log, log1p

from expost import bracket
from expost.cost import DELTA_UNITS, EPSILON_UNITS, Number, decimal_text, exact
from expost.errors import InvalidValue
from expost.mentions import brief

LARGEST_ORDER = 10**6
"""Orders go up to this; there a Rényi price is nearly the ε of the part."""

_ORDERS = [1 + 2.0 ** (i / 16) for i in range(-160, 319)]


def as_order(given: Number) -> Fraction:
    """An order: a number above 1.

    >>> as_order(21)
    Fraction(21, 1)
    """
    order = exact(given, "an order")
    if not 1 < order <= LARGEST_ORDER:
        raise InvalidValue(
            f"an order is above 1 and at most {LARGEST_ORDER}, got {brief(given)}: take best_order(ε, δ)"
        )
    return order


def capacity(order: Number, epsilon: Number, delta: Number) -> Fraction:
    """What Rényi prices may add up to under (ε, δ): rounded down, and negative if the order is too small.

    >>> round(float(capacity(21, 1, 1e-6)), 6)
    0.510241

    Proof: lem-renyi-capacity
    """
    order, share = as_order(order), _as_delta(delta)
    gained = bracket.log(order * share).lower / (order - 1) - bracket.log(1 - 1 / order).upper
    return exact(epsilon, "ε") + gained


def capacity_above(order: Number, epsilon: Number, delta: Number) -> int:
    """What Rényi prices may add up to under (ε, δ), in units and rounded *up*: more than this is certainly too much.

    Proof: lem-renyi-capacity
    """
    order, share = as_order(order), _as_delta(delta)
    gained = bracket.log(order * share).upper / (order - 1) - bracket.log(1 - 1 / order).lower
    return ceil((exact(epsilon, "ε") + gained) * EPSILON_UNITS)


def epsilon_at(order: Number, price: Number, delta: Number) -> Fraction:
    """An ε at which Rényi prices that add up to ``price`` are (ε, δ)-private: :func:`capacity` read backwards.

    Proof: lem-renyi-capacity
    """
    return max(exact(price, "a price") - capacity(order, 0, delta), Fraction(0))


def delta_at(order: Number, price: Number, epsilon: Number) -> Fraction:
    """A δ at which Rényi prices that add up to ``price`` are (ε, δ)-private.

    Proof: lem-renyi-capacity
    """
    order = as_order(order)
    excess = exact(price, "a price") - exact(epsilon, "ε") + bracket.log(1 - 1 / order).upper
    exponent = max((order - 1) * excess, Fraction(-1000))
    return Fraction(1) if exponent > 100 else min(bracket.exp(exponent).upper / order, Fraction(1))


def best_order(epsilon: Number, delta: Number) -> Fraction:
    """The order at which (ε, δ) holds most: prices are nearly proportional to α, so capacity/α is largest.

    Any order is valid. This one depends on ε and δ only, and has twelve significant bits past 1.

    >>> best_order(1, 1e-6), best_order(4, 1e-6)
    (Fraction(2815, 128), Fraction(1835, 256))

    Proof: lem-renyi-capacity
    """
    return _best_order(exact(epsilon, "ε"), _as_delta(delta))


@lru_cache(maxsize=256)
def _best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    limit, share = float(epsilon), log(delta.numerator) - log(delta.denominator)

    def worth(order: float) -> float:
        return (limit + (log(order) + share) / (order - 1) - log1p(-1 / order)) / order

    best = max(_ORDERS, key=worth)
    finer = [1 + (best - 1) * (1 + i / 512) for i in range(-24, 25)]
    order = min(1 + _rounded(max(finer, key=worth) - 1), Fraction(LARGEST_ORDER))
    if capacity(order, epsilon, delta) * EPSILON_UNITS < 1:
        raise InvalidValue(
            f"ε {float(epsilon):g} with δ {float(delta):g} leaves no room at any order up to {LARGEST_ORDER}: "
            f"{_remedy(epsilon)}"
        )
    return order


def _remedy(epsilon: Fraction) -> str:
    units = floor(delta_at(LARGEST_ORDER, Fraction(1, EPSILON_UNITS), epsilon) * DELTA_UNITS) + 1
    return f"a δ of {decimal_text(units, 18)} would do, or account by the basic sum"


def _rounded(value: float) -> Fraction:
    mantissa, exponent = frexp(value)
    return Fraction(round(mantissa * 4096), 4096) * Fraction(2) ** exponent


def _as_delta(given: Number) -> Fraction:
    delta = exact(given, "δ")
    if not 0 < delta < 1:
        raise InvalidValue(f"Rényi accounting needs a δ above 0 and below 1, got {brief(given)}")
    return delta
