"""Tangent prices: Rényi prices of which only the guarantee of the mechanism is known.

On a part with E the likelihood ratio x lies between e^−E and e^E. A line 1 + β(x − 1) has mean 1, and the price r is
the least at which it stays above x^α·e^−(α−1)r on that interval. The slope β is a public number, one for each round
and order; the part-by-part minimum over two slopes is not valid.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import exp, floor, frexp, log1p, tanh

from expost import bracket
from expost.accounting.renyi.orders import as_order
from expost.accounting.renyi.prices import Prices, units_above
from expost.bracket import Bracket
from expost.cost import EPSILON_UNITS, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mentions import brief

_DIGITS = 60
_FAR = 1000  # e to minus this counts as nothing


def tangent_prices(
    guarantee: Guarantee, order: Number, *, expected: Part | None = None, slope: Number | None = None
) -> Prices:
    """The price of each part of a guarantee at an order, rounded up.

    The slope is fixed before anything is sampled. Unless one is given it is the best for the part that is ``expected``
    to come out, else for the middle between the cheapest and the costliest part, or for the costliest if otherwise that
    would cost more than its ε.

    >>> tangent_prices(Guarantee({"yes": 0.3, "no": 0.1}), 10).table
    {'yes': 238776126190, 'no': 73453825602}

    Proof: lem-tangent-prices, lem-slopes
    """
    return _tangent_prices(guarantee, as_order(order), expected, None if slope is None else exact(slope, "slope"))


@lru_cache(maxsize=1024)
def _tangent_prices(guarantee: Guarantee, order: Fraction, expected: Part | None, given: Fraction | None) -> Prices:
    slope = slope_for(guarantee, order, expected) if given is None else given
    table = {part: _units(order, slope, guarantee.cost_of(part).epsilon_units) for part in guarantee.parts}
    rest = None if guarantee.otherwise is None else _units(order, slope, guarantee.otherwise.epsilon_units)
    return Prices(table, rest, guarantee.worst_case.delta_units)


def tangent_price(order: Number, slope: Number, epsilon: Number) -> Fraction:
    """The least price r, rounded up, with x^α·e^−(α−1)r ≤ 1 + β(x − 1) for all x between e^−ε and e^ε.

    Exact if ε is 0 or the slope is 1, where the price is ε.

    Proof: lem-tangent-prices
    """
    order, slope, epsilon = as_order(order), exact(slope, "slope"), exact(epsilon, "ε")
    if slope < 1:
        raise InvalidValue(f"a slope is at least 1, got {brief(slope)}: a smaller one makes every part dearer")
    if epsilon == 0 or slope == 1:
        return epsilon
    y = decay(epsilon)
    low = 1 - slope * (1 - y.lower)
    if low <= 0:
        raise InvalidValue(f"slope {float(slope):g} is too steep for ε {float(epsilon):g}: take steepest_slope(…)")
    upper_end = (order - 1) * epsilon - bracket.log(slope - (slope - 1) * y.upper, _DIGITS).lower
    lower_end = -order * epsilon - bracket.log(low, _DIGITS).lower
    return max(upper_end, lower_end, Fraction(0)) / (order - 1)


def slope_for(guarantee: Guarantee, order: Number, expected: Part | None = None) -> Fraction:
    """The slope by the rule of :func:`tangent_prices`. At it no part costs more than its ε.

    Proof: lem-slopes
    """
    worst = guarantee.worst_case.exact_epsilon
    steepest = steepest_slope(order, worst)
    if expected is not None:
        return min(balanced_slope(order, guarantee.cost_of(expected).exact_epsilon), steepest)
    middle = balanced_slope(order, (guarantee.best_case.exact_epsilon + worst) / 2)
    return middle if middle <= steepest else min(balanced_slope(order, worst), steepest)


@lru_cache(maxsize=256)
def largest_epsilon(order: Number, price: int) -> int:
    """The largest ε, in units, at which a guarantee with one part costs at most ``price`` units at the order.

    Proof: lem-slopes
    """

    def fits(units: int) -> bool:
        return units < 2**63 and tangent_prices(Guarantee.uniform(Fraction(units, EPSILON_UNITS)), order).worst <= price

    low, step = price, 1  # a price is at most its ε
    guess = _about_epsilon(float(order), price)
    if guess > price and fits(guess):
        low = guess
    elif guess > price:
        while guess - step > low and not fits(guess - step):
            step *= 2
        low, step = max(guess - step, low), 1
    while fits(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _about_epsilon(order: float, price: int) -> int:
    """About the ε of randomised response that has this price."""
    wanted = price / EPSILON_UNITS

    def cost(epsilon: float) -> float:
        return epsilon + (log1p(exp(-(2 * order - 1) * epsilon)) - log1p(exp(-epsilon))) / (order - 1)

    low, high = wanted, wanted + 1.0
    while cost(high) < wanted and high < 2**24:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) < wanted else (low, middle)
    return int(low * EPSILON_UNITS)


def balanced_slope(order: Number, epsilon: Number) -> Fraction:
    """The slope at which a part of this ε is cheapest: ½ + tanh((α − ½)ε) / (2·tanh(ε/2)), rounded down, at least 1.

    Proof: lem-slopes
    """
    order, epsilon = as_order(order), exact(epsilon, "ε")
    if epsilon == 0:
        return order
    half = float(epsilon) / 2
    return _rounded_down(0.5 + tanh((2 * float(order) - 1) * half) / (2 * tanh(half)))


def steepest_slope(order: Number, worst: Number) -> Fraction:
    """The steepest slope at which no part costs more than its ε, rounded down: (1 − y^{2α−1}) / (1 − y), y = e^−worst.

    Proof: lem-slopes
    """
    order, worst = as_order(order), exact(worst, "ε")
    if worst == 0:
        return 2 * order - 1
    near, far = decay(worst), decay((2 * order - 1) * worst)
    return max(Fraction(1), _cut((1 - far.upper) / (1 - near.lower)))


def decay(x: Fraction) -> Bracket[Fraction]:
    """Bounds on e^−x for x ≥ 0, however large."""
    if x <= _FAR:
        return bracket.exp(-x, _DIGITS)
    return Bracket(Fraction(0), bracket.exp(Fraction(-_FAR), _DIGITS).upper)


@lru_cache(maxsize=4096)
def _units(order: Fraction, slope: Fraction, epsilon_units: int) -> int:
    return units_above(tangent_price(order, slope, Fraction(epsilon_units, EPSILON_UNITS)))


def _rounded_down(value: float) -> Fraction:
    """48 bits, and a little less than the value, so that rounding in floats does no harm."""
    mantissa, exponent = frexp(value)
    return max(Fraction(1), Fraction(floor(mantissa * 2**48) - 1, 2**48) * Fraction(2) ** exponent)


def _cut(value: Fraction) -> Fraction:
    return Fraction(floor(value * 2**60), 2**60)
