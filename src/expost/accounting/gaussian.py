"""What normal noise costs: exact (ε, δ) curves of the Gaussian mechanism, and zCDP turned into (ε, δ).

All results are certified: bounds computed in rational arithmetic, rounded outwards.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, isqrt, log

from expost import bracket
from expost.bracket import Bracket
from expost.errors import InvalidValue


def normal_tail(x: Fraction, bits: int = 128) -> Bracket[Fraction]:
    """Bounds on Pr[N(0, 1) ≥ x], some 2^−bits apart.

    Proof: lem-normal-tail
    """
    if x < 0:
        tail = normal_tail(-x, bits)
        return Bracket(1 - tail.upper, 1 - tail.lower)
    if x * x > 2 * bits:  # Pr ≤ e^−x²/2 / 2
        return Bracket(Fraction(0), Fraction(1, 1 << bits))
    digits = bits // 3 + 10
    bell = bracket.exp(-x * x / 2, digits)
    root = _sqrt_two_pi(bits + 32)
    series = _odd_series(x, bits + 32 + int(x * x))
    body = Bracket(bell.lower * series.lower / root.upper, bell.upper * series.upper / root.lower)
    half = Fraction(1, 2)
    return Bracket(max(half - body.upper, Fraction(0)), max(half - body.lower, Fraction(0)))


def delta_of_normal_noise(ratio: Fraction, epsilon: Fraction) -> Bracket[Fraction]:
    """Bounds on the least δ at this ε of N(0, σ²) noise on L2 sensitivity Δ, where ``ratio`` = σ/Δ.

    Proof: thm-analytic-gaussian
    """
    bits = 160 + int(epsilon * 3 / 2)
    near, far = (normal_tail(epsilon * ratio + shift / (2 * ratio), bits) for shift in (-1, 1))
    growth = bracket.exp(epsilon, bits // 3 + 10)
    upper = near.upper - growth.lower * far.lower
    return Bracket(max(near.lower - growth.upper * far.upper, Fraction(0)), max(upper, Fraction(0)))


@lru_cache(maxsize=256)
def normal_noise_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A ratio σ/Δ at which normal noise is certainly (ε, δ)-private; within 10⁻⁹ of the least one.

    Proof: thm-analytic-gaussian
    """
    if not (0 < epsilon <= 1000 and 0 < delta < 1):
        raise InvalidValue(f"the Gaussian mechanism needs 0 < ε ≤ 1000 and 0 < δ < 1, got {epsilon} and {delta}")
    low, high = Fraction(0), Fraction(1)
    while delta_of_normal_noise(high, epsilon).upper > delta:
        low, high = high, 2 * high
    while high - low > high / 10**9:
        middle = Fraction(round((low + high) / 2 * 2**60), 2**60)
        if delta_of_normal_noise(middle, epsilon).upper > delta:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=256)
def epsilon_of_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """An ε at which every ρ-zCDP mechanism is (ε, δ)-private.

    Proof: thm-zcdp
    """

    def curve(order: float) -> float:
        return float(rho) * order - log(order * float(delta)) / (order - 1) + log(1 - 1 / order)

    orders = [1 + 2.0 ** (i / 16) for i in range(-160, 480)]
    best = min(orders, key=curve)
    finer = [best + (best - 1) * i / 512 for i in range(-20, 21)]
    order = Fraction(min(finer, key=curve))  # any order will do; this one is nearly the best
    spent = rho * order + bracket.log(1 / (order * delta)).upper / (order - 1) + bracket.log(1 - 1 / order).upper
    return max(spent, Fraction(0))


def normal_quantile(miss: Fraction) -> float:
    """A z with Pr[|N(0, 1)| > z] ≤ ``miss``, certified."""
    from statistics import NormalDist  # slow to import

    z = -NormalDist().inv_cdf(float(miss) / 2) if miss > Fraction(1, 10**300) else inf
    while z < 40 and 2 * normal_tail(Fraction(z), 256).upper > miss:
        z = z * (1 + 2.0**-40) + 2.0**-60
    return z


def _odd_series(x: Fraction, bits: int) -> Bracket[Fraction]:
    """Bounds on Σ x^{2n+1}/(1·3·5⋯(2n+1)), in fixed point."""
    one = 1 << bits
    low, high = (x.numerator << bits) // x.denominator, ceil(x * one)
    square_low, square_high = low * low >> bits, -(-high * high >> bits)
    sum_low, sum_high = low, high
    n = 1
    while high > 1 or 2 * square_high > n << bits:
        n += 2
        low = (low * square_low >> bits) // n
        high = -((-high * square_high >> bits) // n)
        sum_low, sum_high = sum_low + low, sum_high + high
    rest = 2 * high  # from here on terms fall by half or faster
    return Bracket(Fraction(sum_low, one), Fraction(sum_high + rest, one))


@lru_cache(maxsize=16)
def _sqrt_two_pi(bits: int) -> Bracket[Fraction]:
    unit, slack = 1 << (bits + 40), 1 << 20
    two_pi = 8 * (4 * _arctan_inverse(5, unit) - _arctan_inverse(239, unit))  # Machin's formula
    low, high = two_pi - slack, two_pi + slack
    return Bracket(Fraction(isqrt(low * unit), unit), Fraction(isqrt(high * unit) + 1, unit))


def _arctan_inverse(n: int, unit: int) -> int:
    """unit·arctan(1/n), off by less than two for each of its terms."""
    power = unit // n
    total, k = power, 1
    while power:
        power //= n * n
        k += 2
        total += (-power if k % 4 == 3 else power) // k
    return total
