"""What Gaussian noise costs: exact (ε, δ) curves of the Gaussian mechanism, and zCDP turned into (ε, δ).

All results are certified: bounds computed in rational arithmetic, rounded outwards.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, exp, inf, isqrt, log, pi, sqrt

from expost import bracket
from expost.bracket import Bracket
from expost.errors import InvalidValue

_BITS = 200


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
    """Bounds on the least δ at this ε of N(0, σ²) noise on L2 sensitivity Δ, where ``ratio`` = σ/Δ; 10⁻⁵⁵ apart.

    Proof: thm-analytic-gaussian, lem-mills
    """
    near, far = (epsilon * ratio + shift / (2 * ratio) for shift in (-1, 1))
    tail, density, mills = normal_tail(near, _BITS), _density(near), mills_ratio(far)
    lower, upper = tail.lower - density.upper * mills.upper, tail.upper - density.lower * mills.lower
    return Bracket(max(lower, Fraction(0)), max(upper, Fraction(0)))


def epsilon_of_normal_noise(squared: Fraction, delta: Fraction) -> Bracket[Fraction]:
    """Bounds on the least ε at this δ of Gaussian noise with (Δ/σ)² = ``squared``; some 10⁻¹² apart.

    Proof: thm-analytic-gaussian
    """
    if not 0 < delta < 1 or squared <= 0:
        raise InvalidValue(f"an ε of Gaussian noise needs 0 < δ < 1 and noise, got δ {float(delta):g}")
    ratio = root(1 / squared)
    if delta_of_normal_noise(ratio.lower, Fraction(0)).upper <= delta:
        return Bracket(Fraction(0), Fraction(0))
    mean = sqrt(float(squared))
    most = mean * (mean / 2 + sqrt(2 * -log(float(delta))))  # δ ≤ Pr[N ≥ ε/mean − mean/2]
    guess, pad = Fraction(_solved(mean, log(float(delta)), most)), Fraction(most) / 10**13
    upper, more = guess + pad, pad
    while delta_of_normal_noise(ratio.lower, upper).upper > delta:
        upper, more = upper + more, 2 * more
    lower, more = guess - pad, pad
    while lower > 0 and delta_of_normal_noise(ratio.upper, lower).lower < delta:
        lower, more = lower - more, 2 * more
    return Bracket(max(lower, Fraction(0)), upper)


def mills_ratio(x: Fraction, bits: int = 176) -> Bracket[Fraction]:
    """Bounds on Pr[N(0, 1) ≥ x] over the density at x, for x ≥ 0.

    Proof: lem-mills
    """
    if x < 2:
        tail, density = normal_tail(x, bits + 16), _density(x)
        return Bracket(tail.lower / density.upper, tail.upper / density.lower)
    one, terms = 1 << bits, int(2400 / (x * x)) + 24
    here = (x.numerator << bits) // x.denominator
    found = []
    for last in (terms, terms + 1):  # one is above, the other below; each division is off by less than one unit
        value = here
        for k in range(last, 0, -1):
            value = here + (k << 2 * bits) // value
        found.append(Fraction(one, value))
    off = Fraction(4 * terms, one)
    return Bracket(max(min(found) - off, Fraction(0)), max(found) + off)


def _density(x: Fraction) -> Bracket[Fraction]:
    """Bounds on the normal density."""
    if x * x > 4 * _BITS:
        return Bracket(Fraction(0), Fraction(1, 1 << _BITS))
    bell, root = bracket.exp(-x * x / 2, _BITS // 3 + 10), _sqrt_two_pi(_BITS + 32)
    return Bracket(bell.lower / root.upper, bell.upper / root.lower)


def root(x: Fraction) -> Bracket[Fraction]:
    """Bounds on the square root, 40 digits apart."""
    scale = 10**40 * max(1, x.denominator // max(x.numerator, 1))
    low = isqrt(x.numerator * scale * scale // x.denominator)
    return Bracket(Fraction(low, scale), Fraction(low + 1, scale))


def _solved(mean: float, wanted: float, most: float) -> float:
    """About the ε at which ln δ is this."""

    def log_delta(epsilon: float) -> float:
        near, far = epsilon / mean - mean / 2, epsilon / mean + mean / 2
        if near < -8:
            return 0.0
        rest = _mills(near) - _mills(far)
        return -near * near / 2 + log(rest / sqrt(2 * pi)) if rest > 0 else -inf

    low, high = 0.0, most
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) > wanted else (low, middle)
    return high


def _mills(x: float) -> float:
    """About Mills' ratio."""
    if x < 5:
        return erfc(x / sqrt(2)) / 2 * sqrt(2 * pi) * exp(x * x / 2)
    value = x
    for k in range(60, 0, -1):
        value = x + k / value
    return 1 / value


@lru_cache(maxsize=256)
def normal_noise_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A ratio σ/Δ at which Gaussian noise is certainly (ε, δ)-private; within 10⁻⁹ of the least one.

    Proof: thm-analytic-gaussian
    """
    if not (0 < epsilon <= 1000 and 0 < delta < 1):
        raise InvalidValue(f"the Gaussian mechanism needs 0 < ε ≤ 1000 and 0 < δ < 1, got {epsilon} and {delta}")
    low, high = Fraction(0), Fraction(1)
    while delta_of_normal_noise(high, epsilon).upper > delta:
        low, high = high, 2 * high
    while high - low > high / 10**9:
        middle = Fraction(round((low + high) / 2 * 2**60), 2**60)
        private = delta_of_normal_noise(middle, epsilon).upper <= delta
        low, high = (low, middle) if private else (middle, high)
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
