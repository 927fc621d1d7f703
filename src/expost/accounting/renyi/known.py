"""Rényi prices of mechanisms whose law is known: lower than what their guarantee alone implies. All rounded up."""

from __future__ import annotations

from fractions import Fraction

from expost import bracket
from expost.accounting.normal import epsilon_of_normal_noise
from expost.accounting.renyi.orders import as_order
from expost.accounting.renyi.tangent import decay
from expost.checks import as_positive, as_whole
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.mentions import brief

_DIGITS = 60


def zcdp(order: Number, rho: Number) -> Fraction:
    """ρ-zCDP, such as discrete Gaussian noise: α·ρ. A group of k pays k²·ρ.

    Proof: lem-renyi-normal
    """
    return as_order(order) * exact(rho, "ρ")


def normal_noise(order: Number, noise_multiplier: Number) -> Fraction:
    """Gaussian noise whose deviation is ``noise_multiplier`` times the L2 sensitivity: α / 2σ².

    Proof: lem-renyi-normal
    """
    return zcdp(order, 1 / (2 * as_positive(noise_multiplier, "noise_multiplier") ** 2))


def normal_noise_worth(order: Number, epsilon: Number, delta: Number) -> Fraction:
    """The ε, at this δ, of Gaussian noise that costs at most what every pure ε costs at the order. Rounds down.

    Proof: lem-renyi-normal, lem-slopes
    """
    price = randomized_response(order, epsilon, 2)
    found = epsilon_of_normal_noise(2 * price / as_order(order), exact(delta, "δ")) if price else None
    if found is None or Cost.within(found.lower).epsilon_units == 0:
        raise InvalidValue(f"ε {brief(epsilon)} is too little for Gaussian noise at δ {brief(delta)}: state another δ")
    return Cost.within(found.lower).exact_epsilon


def laplace_noise(order: Number, epsilon: Number, steps: int | None) -> Fraction:
    """Discrete Laplace noise e^−ε|k|/steps on whole numbers of L1 sensitivity ``steps``; None is continuous noise.

    The price falls with ``steps``: one that is too small is an upper bound. One step is randomised response.

    >>> round(float(laplace_noise(2, 1, 1)), 6), round(float(laplace_noise(2, 1, None)), 6)
    (0.735326, 0.619124)

    Proof: lem-renyi-laplace
    """
    order, epsilon = as_order(order), exact(epsilon, "ε")
    if epsilon == 0:
        return Fraction(0)
    weight = order / (2 * order - 1) if steps is None else _weight(order, epsilon / as_whole(steps, "steps"))
    inside = weight + (1 - weight) * decay((2 * order - 1) * epsilon).upper
    return _relative(order, epsilon, min(inside, Fraction(1)))


def randomized_response(order: Number, epsilon: Number, choices: int) -> Fraction:
    """Randomised response among ``choices`` answers, the truth e^ε times as likely as each lie.

    Proof: lem-renyi-response
    """
    order, epsilon, others = as_order(order), exact(epsilon, "ε"), as_whole(choices, "choices", 2) - 2
    above = 1 + decay((2 * order - 1) * epsilon).upper + others * decay(order * epsilon).upper
    below = 1 + (others + 1) * decay(epsilon).lower
    return _relative(order, epsilon, min(above / below, Fraction(1)))


def _weight(order: Fraction, rate: Fraction) -> Fraction:
    """(1 − q^{2α}) / ((1 + q)(1 − q^{2α−1})) for q = e^−rate, from above."""
    once, most, less = (decay(times * rate) for times in (1, 2 * order, 2 * order - 1))
    return min((1 - most.lower) / ((1 + once.lower) * (1 - less.upper)), Fraction(1))


def _relative(order: Fraction, epsilon: Fraction, inside: Fraction) -> Fraction:
    """ε + ln(inside)/(α − 1), which is a divergence and so not negative."""
    return max(epsilon + bracket.log(inside, _DIGITS).upper / (order - 1), Fraction(0))
