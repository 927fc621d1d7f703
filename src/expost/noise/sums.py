"""How far sums of independent noise go: exact quantiles, where adding up bounds would claim too much.

Two counts with Laplace noise are together within 1.6 times what one of them is, with 95 % confidence; bounds that hold
for both at once add up to 2.5 times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, floor, gcd, isqrt, lcm, sqrt
from typing import NamedTuple

import numpy as np

from expost import bracket
from expost.accounting.law import Floats
from expost.accounting.normal import normal_quantile
from expost.noise.fixed import exp_minus

_POINTS = 1 << 15
"""Into how many steps a sum is divided that has no common grid; each term is off by half a step at most."""
_MOST_POINTS = 1 << 18
_CUT = Fraction(1, 1000)
"""The share of the miss for which terms are cut off."""
_ROUNDING = 1e-11
"""What probabilities in floats are off by at most, next to the error of the transform."""
_LEAST = Fraction(1, 10**6)
"""Below this, rounding would be much of the miss."""
_WIDEST = 2**32
"""The variance up to which a discrete Gaussian is added up number by number."""


class StepLaw(ABC):
    """Symmetric noise of whole numbers."""

    @abstractmethod
    def reach(self, miss: Fraction) -> int:
        """A number that its distance from 0 exceeds with probability at most ``miss``."""

    @abstractmethod
    def above(self, numbers: Floats) -> Floats:
        """Pr[X ≥ m] for whole numbers m ≥ 1, in floats."""


@dataclass(frozen=True)
class LaplaceSteps(StepLaw):
    """Discrete Laplace noise: Pr[X = k] is proportional to e^−(rate·``|k|``)."""

    rate: Fraction

    def reach(self, miss: Fraction) -> int:
        """``|X|`` > t has probability 2·e^−(rate·(t+1))/(1 + e^−rate).

        Proof: lem-laplace-error
        """
        return _laplace_reach(self.rate, miss)

    def above(self, numbers: Floats) -> Floats:
        """A geometric series."""
        rate = float(self.rate)
        return np.asarray(np.exp(-rate * numbers) / (1 + np.exp(-rate)))


@dataclass(frozen=True)
class RoundedGaussianSteps(StepLaw):
    """A Gaussian number of this variance, rounded to the nearest whole one."""

    variance: Fraction

    def reach(self, miss: Fraction) -> int:
        """``|X|`` > t means that the Gaussian number was at least t + ½ away from 0.

        Proof: lem-gaussian-error
        """
        return max(ceil(gaussian_reach(self.variance, miss) - Fraction(1, 2)), 0)

    def above(self, numbers: Floats) -> Floats:
        """The tail from half a step before."""
        scale = sqrt(2 * float(self.variance))
        return np.array([erfc((number - 0.5) / scale) / 2 for number in numbers.tolist()])


@dataclass(frozen=True)
class GaussianSteps(StepLaw):
    """Discrete Gaussian noise: Pr[X = k] is proportional to e^−k²/(2·variance)."""

    variance: Fraction

    def reach(self, miss: Fraction) -> int:
        """``|X|`` > t is at most as likely as a Gaussian number at least t away from 0.

        Proof: lem-gaussian-error
        """
        return ceil(gaussian_reach(self.variance, miss))

    def above(self, numbers: Floats) -> Floats:
        """Added up from the smallest on."""
        tails = _gaussian_tails(self.variance)
        places = np.minimum(numbers, len(tails) - 1).astype(np.int64)
        return tails[places]


class Term(NamedTuple):
    """A multiple of noise of whole numbers."""

    scale: Fraction
    noise: StepLaw
    blur: Fraction = Fraction(0)
    """How far rounding moves it besides, at most, in units of the scale."""


def reach_of_sum(terms: Iterable[Term], miss: Fraction) -> Fraction:
    """A distance that the sum of independent terms exceeds with probability at most ``miss``.

    Exact up to a thousandth or so for up to a few hundred different terms; never less than the truth.

    Proof: lem-noise-sum
    """
    found = [term for term in terms if term.scale]
    if not found:
        return Fraction(0)
    blur = sum((abs(scale) * blur for scale, _, blur in found), Fraction(0))
    counted = Counter((abs(scale), noise) for scale, noise, _ in found)
    if len(found) == 1:
        ((scale, noise),) = counted
        return scale * noise.reach(miss) + blur
    by_law = tuple((*what, times) for what, times in sorted(counted.items(), key=repr))
    return _counted_reach(by_law, len(found), miss) + blur


ByLaw = tuple[tuple[Fraction, StepLaw, int], ...]
"""Scales and laws, and how often each is there."""


@lru_cache(maxsize=512)
def _counted_reach(counted: ByLaw, number: int, miss: Fraction) -> Fraction:
    """The smaller of a union bound and the quantile of a law that was added up."""
    union = sum((scale * times * law.reach(miss / number) for scale, law, times in counted), Fraction(0))
    too_wide = any(isinstance(law, GaussianSteps) and law.variance > _WIDEST for _, law, _ in counted)
    return union if too_wide or miss < _LEAST else min(union, _quantile(counted, number, miss))


def _quantile(counted: ByLaw, number: int, miss: Fraction) -> Fraction:
    reaches = [law.reach(miss * _CUT / number) for _, law, _ in counted]
    widest = sum(
        (scale * times * reach for (scale, _, times), reach in zip(counted, reaches, strict=True)), Fraction(0)
    )
    if not widest:
        return widest
    unit = _common(scale for scale, _, _ in counted)
    common = widest / unit <= _MOST_POINTS
    step = unit if common else widest / _POINTS
    beyond = _beyond(counted, reaches, step, floor(widest / step) + number + 1)
    enough = beyond <= float(miss * (1 - _CUT))
    within = int(np.argmax(enough)) * step if enough[-1] else widest
    return within if common else within + step * number * Fraction(51, 100)


def _beyond(counted: ByLaw, reaches: list[int], step: Fraction, half: int) -> Floats:
    """For j = 0, 1, … half: a bound on the probability that the sum, term by term on the grid, is beyond j steps."""
    from expost.accounting.convolution import fast_length, fft_error  # slow to import

    length, number = fast_length(2 * half + 1), sum(times for _, _, times in counted)
    spectrum = np.ones(length // 2 + 1, np.complex128)
    for (scale, law, times), reach in zip(counted, reaches, strict=True):
        spectrum *= np.fft.rfft(_masses(scale / step, law, reach, length)) ** times
    masses = np.maximum(np.fft.irfft(spectrum, length), 0)
    both = masses[1 : half + 1] + masses[-1 : -half - 1 : -1]
    tails = np.append(np.cumsum(both[::-1])[::-1], 0.0)
    return np.asarray(tails + number * (_ROUNDING + 4 * fft_error(length) * sqrt(length)))


def _masses(scale: Fraction, noise: StepLaw, reach: int, length: int) -> Floats:
    """The law of the nearest step to scale·X, cut off at the reach, with 0 in front and negative steps at the end."""
    last = floor(scale * reach + Fraction(1, 2))
    steps = np.arange(1, last + 1, dtype=np.float64)
    firsts = np.maximum(np.ceil((steps - 0.5) / float(scale)), 1)
    ends = np.minimum(np.append(firsts[1:], reach + 1), reach + 1)
    tails = noise.above(np.minimum(np.append(firsts, reach + 1), reach + 1))
    positive = np.maximum(tails[:-1] - noise.above(ends), 0)
    found = np.zeros(length)
    found[1 : last + 1] = positive
    if last:
        found[-last:] = positive[::-1]
    found[0] = max(1 - 2 * float(tails[0]), 0)
    return found


def _common(scales: Iterable[Fraction]) -> Fraction:
    """The largest number of which all are multiples."""
    found = list(scales)
    below = lcm(*(each.denominator for each in found))
    return Fraction(gcd(*(int(each * below) for each in found)), below)


@lru_cache(maxsize=256)
def _laplace_reach(rate: Fraction, miss: Fraction) -> int:
    odds = 2 / (miss * (1 + Fraction(exp_minus(rate, 128)[0], 2**128)))
    return max(ceil(bracket.log(odds).upper / rate) - 1, 0)


def gaussian_reach(variance: Fraction, miss: Fraction) -> Fraction:
    """A bound that a Gaussian number of this variance passes with probability at most ``miss``."""
    root_above = Fraction(isqrt(ceil(variance * 4**64)) + 1, 2**64)
    return Fraction(normal_quantile(miss)) * root_above


@lru_cache(maxsize=16)
def _gaussian_tails(variance: Fraction) -> Floats:
    """Pr[X ≥ m] for m = 0, 1, 2, …, to forty standard deviations."""
    numbers = np.arange(ceil(40 * sqrt(float(variance))) + 2, dtype=np.float64)
    weights = np.exp(-numbers * numbers / (2 * float(variance)))
    tails = np.cumsum(weights[::-1])[::-1]
    return np.asarray(tails / (2 * tails[0] - 1))
