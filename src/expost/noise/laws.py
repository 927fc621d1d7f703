"""Laws on the integers, known through certified bounds on their distribution functions.

A law gives one thing: integer bounds on 2^bits·Pr[X < k], for any k and any number of bits, that close
in on the truth as the bits grow. That is all that exact sampling needs (:mod:`expost.noise.inversion`).
Laws are frozen and hashable: tables are kept per law.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, count

from expost.noise.fixed import Bounds, exp_minus, exp_steps, power, ratio

_GUARD = 16  # extra bits in which sums are carried


class Law(ABC):
    """A probability law on the integers."""

    @abstractmethod
    def below(self, k: int, bits: int) -> Bounds:
        """Integers lo ≤ 2^bits·Pr[X < k] ≤ hi, within [0, 2^bits] and a few units apart."""


@dataclass(frozen=True)
class Geometric(Law):
    """k ≥ 0 with probability (1 − e^−rate)·e^−(rate·k)."""

    rate: Fraction

    def below(self, k: int, bits: int) -> Bounds:
        """Pr[X < k] = 1 − e^−(rate·k)."""
        return (0, 0) if k <= 0 else _one_minus(exp_steps(self.rate, k, bits), bits)


@dataclass(frozen=True)
class Digit(Law):
    """k in 0, …, size − 1 with probability proportional to e^−(rate·k): one digit of a geometric number.

    Proof: lem-digits
    """

    rate: Fraction
    size: int

    def below(self, k: int, bits: int) -> Bounds:
        """Pr[X < k] = (1 − e^−(rate·k)) / (1 − e^−(rate·size))."""
        if not 0 < k < self.size:
            return (0, 0) if k <= 0 else (1 << bits, 1 << bits)
        work, whole = _digit_total(self.rate, self.size, bits)
        return ratio(_one_minus(exp_steps(self.rate, k, work), work), whole, bits)


@dataclass(frozen=True)
class LaplaceLaw(Law):
    """⌊X/step⌋ where Pr[X = k] is proportional to e^−(rate·``|k|``); the discrete Laplace law for step 1."""

    rate: Fraction
    step: int = 1

    def below(self, k: int, bits: int) -> Bounds:
        """Pr[X < m] is e^−(rate·(1−m))/(1 + e^−rate) for m ≤ 0, else 1 − e^−(rate·m)/(1 + e^−rate)."""
        m, work = k * self.step, bits + _GUARD
        base = exp_steps(self.rate, 1, work)
        total = base[0] + (1 << work), base[1] + (1 << work)
        if m <= 0:
            return ratio(exp_steps(self.rate, 1 - m, work), total, bits)
        return _one_minus(ratio(exp_steps(self.rate, m, work), total, bits), bits)


@dataclass(frozen=True)
class RoundedLaplace(Law):
    """The nearest integer to a continuous Laplace number of density (rate/2)·e^−(rate·``|z|``)."""

    rate: Fraction

    def below(self, k: int, bits: int) -> Bounds:
        """Pr[X < k] = Pr[Z < k − ½]: e^−(rate·(½−k))/2 for k ≤ 0, else 1 − e^−(rate·(k−½))/2."""
        low, high = exp_steps(self.rate / 2, abs(2 * k - 1), bits)
        half = low // 2, (high + 1) // 2
        return half if k <= 0 else _one_minus(half, bits)


@dataclass(frozen=True)
class Sign(Law):
    """−1, 0 or 1: the sign of a :class:`RoundedLaplace` number."""

    rate: Fraction

    def below(self, k: int, bits: int) -> Bounds:
        """The rounded law's own boundaries at 0 and 1."""
        if k in (0, 1):
            return RoundedLaplace(self.rate).below(k, bits)
        return (0, 0) if k < 0 else (1 << bits, 1 << bits)


@dataclass(frozen=True)
class GaussianLaw(Law):
    """k with probability proportional to e^−k²/(2·variance)."""

    variance: Fraction

    def below(self, k: int, bits: int) -> Bounds:
        """By symmetry from the partial sums over 0, 1, 2, …"""
        work = bits + _GUARD
        one = 1 << work
        low, high = _gauss_sum(self.variance, k if k > 0 else 1 - k, work)
        total_low, total_high = _gauss_sum(self.variance, None, work)
        total = 2 * total_low - one, 2 * total_high - one
        upper = max(total_low - high, 0), max(total_high - low, 0)  # the weight of k, k + 1, … (or of 1 − k, …)
        tail = ratio(upper, total, bits)
        return _one_minus(tail, bits) if k > 0 else tail


@dataclass(frozen=True)
class HalfGaussian(Law):
    """k ≥ 0 with probability proportional to e^−k²/(2·variance)."""

    variance: Fraction

    def below(self, k: int, bits: int) -> Bounds:
        """The partial sum over 0, …, k − 1, divided by the whole."""
        if k <= 0:
            return 0, 0
        work = bits + _GUARD
        return ratio(_gauss_sum(self.variance, k, work), _gauss_sum(self.variance, None, work), bits)


@dataclass(frozen=True)
class CoinLaw(Law):
    """1 with probability e^−rate, else 0."""

    rate: Fraction

    def below(self, k: int, bits: int) -> Bounds:
        """Pr[X < 1] = 1 − e^−rate."""
        if k != 1:
            return (0, 0) if k < 1 else (1 << bits, 1 << bits)
        return _one_minus(exp_minus(self.rate, bits), bits)


@dataclass(frozen=True)
class Lie(Law):
    """1 if randomised response among ``choices`` answers lies, else 0: the truth weighs 1, each lie e^−rate."""

    rate: Fraction
    choices: int

    def below(self, k: int, bits: int) -> Bounds:
        """Pr[X < 1] = 1/(1 + (choices − 1)·e^−rate)."""
        if k != 1:
            return (0, 0) if k < 1 else (1 << bits, 1 << bits)
        work = bits + _GUARD
        one, others = 1 << work, self.choices - 1
        low, high = exp_minus(self.rate, work)
        return ratio((one, one), (one + others * low, one + others * high), bits)


@dataclass(frozen=True)
class Finite(Law):
    """k in 0, …, n − 1 with probability proportional to the k-th of n whole weights."""

    cumulative: tuple[int, ...]
    """The running sums of the weights; the last is their total."""

    @classmethod
    def of(cls, weights: Iterable[int]) -> Finite:
        """The law with these weights."""
        return cls(tuple(accumulate(weights)))

    def below(self, k: int, bits: int) -> Bounds:
        """A rational number, so its bounds are its two neighbours."""
        if not 0 < k < len(self.cumulative):
            return (0, 0) if k <= 0 else (1 << bits, 1 << bits)
        part, total = self.cumulative[k - 1], self.cumulative[-1]
        return (part << bits) // total, -((-part << bits) // total)


@dataclass(frozen=True)
class Rate:
    """Weights that fall by e^−rate per step."""

    rate: Fraction

    def power(self, exponent: int, bits: int) -> Bounds:
        """Bounds on 2^bits·e^−(rate·exponent)."""
        return exp_steps(self.rate, exponent, bits)


@dataclass(frozen=True)
class RatioOfRates:
    """Weights that fall by a rational factor per step."""

    ratio: Fraction

    def power(self, exponent: int, bits: int) -> Bounds:
        """Bounds on 2^bits·ratio^exponent."""
        return power(self.ratio, exponent, bits)


@dataclass(frozen=True)
class Powers(Law):
    """The k-th of several levels, with probability proportional to counts[k]·weight^exponents[k].

    Exponents ascend from 0.
    """

    weight: Rate | RatioOfRates
    exponents: tuple[int, ...]
    counts: tuple[int, ...]
    _known: dict[int, tuple[list[int], list[int], int]] = field(default_factory=dict, compare=False, repr=False)

    def below(self, k: int, bits: int) -> Bounds:
        """The running sum of the weights, divided by their total."""
        if not 0 < k < len(self.exponents):
            return (0, 0) if k <= 0 else (1 << bits, 1 << bits)
        work = bits + _GUARD + sum(self.counts).bit_length()
        if work not in self._known:  # kept with the law, which is gone after the draw: levels are private
            self._known[work] = self._sums(work)
        lows, highs, rest = self._known[work]
        total = lows[-1], highs[-1] + rest
        part = (lows[k], highs[k]) if k < len(lows) else total
        return ratio(part, total, bits)

    def _sums(self, work: int) -> tuple[list[int], list[int], int]:
        """Running sums of both bounds until the terms vanish, and a bound on all that was left out."""
        lows, highs = [0], [0]
        for i, exponent in enumerate(self.exponents):
            low, high = self.weight.power(exponent, work)
            if low == 0:
                return lows, highs, high * sum(self.counts[i:])
            lows.append(lows[-1] + low * self.counts[i])
            highs.append(highs[-1] + high * self.counts[i])
        return lows, highs, 0


@lru_cache(maxsize=256)
def _digit_total(rate: Fraction, size: int, bits: int) -> tuple[int, Bounds]:
    """How many bits a ratio of ``bits`` bits is computed in, and bounds on 2^those·(1 − e^−(rate·size))."""
    whole = rate * size
    work = bits + _GUARD + max(0, (whole.denominator // whole.numerator).bit_length())
    return work, _one_minus(exp_steps(rate, size, work), work)


def _one_minus(bounds: Bounds, bits: int) -> Bounds:
    one = 1 << bits
    return max(one - bounds[1], 0), min(one - bounds[0], one)


def _gauss_sum(variance: Fraction, terms: int | None, work: int) -> Bounds:
    """Bounds on 2^work·Σ_{0 ≤ j < terms} e^−j²/(2·variance); None sums to infinity.

    Proof: lem-gauss-sum
    """
    lows, highs, rest = _gauss_sums(variance, work)
    if terms is None:
        return lows[-1], highs[-1] + rest
    if terms < len(lows):
        return lows[terms], highs[terms]
    return lows[-1], highs[-1] + rest


@lru_cache(maxsize=32)
def _gauss_sums(variance: Fraction, work: int) -> tuple[list[int], list[int], int]:
    """Running sums of both bounds until the terms vanish, and a bound on all that was left out."""
    lows, highs = [0], [0]
    for j in count():
        low, high = exp_minus(j * j / (2 * variance), work)
        if low == 0 and j > 0:
            # Σ_{i ≥ j} e^−i²/2v ≤ e^−j²/2v / (1 − e^−j/v) ≤ e^−j²/2v · (1 + v/j)
            return lows, highs, high * (2 + variance.numerator // (variance.denominator * j))
        lows.append(lows[-1] + low)
        highs.append(highs[-1] + high)
    raise AssertionError("unreachable: the terms vanish")
