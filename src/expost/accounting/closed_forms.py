"""Compositions whose least δ and ε have formulas: Gaussian noise, single steps, equal (ε, δ) steps. All certified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Protocol

from expost import bracket
from expost.accounting.homogeneous import MOST_EQUAL_STEPS, Homogeneous
from expost.accounting.losses import ApproximateDP, GaussianNoise, LaplaceNoise, Loss
from expost.accounting.normal import delta_of_normal_noise, epsilon_of_normal_noise, root
from expost.bracket import Bracket
from expost.cost import exact

_DIGITS = 50
_LARGEST = 10_000  # exponents that are written out


class Formula(Protocol):
    """A composition that is known exactly."""

    def delta(self, epsilon: Fraction, /) -> Bracket[Fraction]:
        """Bounds on the least δ at this ε."""

    def epsilon(self, delta: Fraction, /) -> Bracket[Fraction]:
        """Bounds on the least ε at this δ, which is above what is lost at every ε."""


@dataclass(frozen=True)
class NormalSum:
    """Steps of Gaussian noise: together one step, whose (sensitivity/σ)² is their sum.

    Proof: thm-analytic-gaussian, lem-closed-forms
    """

    squared: Fraction

    def delta(self, epsilon: Fraction) -> Bracket[Fraction]:
        """By two normal tails."""
        ratio = root(1 / self.squared)
        upper, lower = delta_of_normal_noise(ratio.lower, epsilon), delta_of_normal_noise(ratio.upper, epsilon)
        return Bracket(lower.lower, upper.upper)

    def epsilon(self, delta: Fraction) -> Bracket[Fraction]:
        """The curve's inverse."""
        return epsilon_of_normal_noise(self.squared, delta)


@dataclass(frozen=True)
class SampledOnce:
    """One step of Gaussian noise on a Poisson sample: δ is the rate times that of the noise at a larger ε.

    Proof: lem-closed-forms
    """

    squared: Fraction
    rate: Fraction

    def delta(self, epsilon: Fraction) -> Bracket[Fraction]:
        """rate·δ'(ln(1 + (e^ε − 1)/rate))."""
        growth = bracket.exp(epsilon, _DIGITS)
        low, high = (bracket.log(1 + (one - 1) / self.rate, _DIGITS) for one in (growth.lower, growth.upper))
        whole = NormalSum(self.squared)
        least, most = whole.delta(max(high.upper, Fraction(0))), whole.delta(max(low.lower, Fraction(0)))
        return Bracket(self.rate * least.lower, self.rate * most.upper)

    def epsilon(self, delta: Fraction) -> Bracket[Fraction]:
        """ln(1 + rate·(e^{ε'(δ/rate)} − 1))."""
        if delta >= self.rate:
            return Bracket(Fraction(0), Fraction(0))
        found = epsilon_of_normal_noise(self.squared, delta / self.rate)
        low, high = (bracket.exp(each, _DIGITS) for each in (found.lower, found.upper))
        least, most = (bracket.log(1 + self.rate * (one - 1), _DIGITS) for one in (low.lower, high.upper))
        return Bracket(max(least.lower, Fraction(0)), max(most.upper, Fraction(0)))


@dataclass(frozen=True)
class LaplaceOnce:
    """One step of Laplace noise: δ = 1 − e^{(ε − s)/2} up to s.

    Proof: lem-laplace-loss
    """

    most: Fraction

    def delta(self, epsilon: Fraction) -> Bracket[Fraction]:
        """Bounds on the least δ."""
        if epsilon >= self.most:
            return Bracket(Fraction(0), Fraction(0))
        kept = bracket.exp((epsilon - self.most) / 2, _DIGITS)
        return Bracket(1 - kept.upper, 1 - kept.lower)

    def epsilon(self, delta: Fraction) -> Bracket[Fraction]:
        """s + 2·ln(1 − δ)."""
        if delta >= 1:
            return Bracket(Fraction(0), Fraction(0))
        less = bracket.log(1 - delta, _DIGITS) if delta else Bracket(Fraction(0), Fraction(0))
        return Bracket(max(self.most + 2 * less.lower, Fraction(0)), max(self.most + 2 * less.upper, Fraction(0)))


def formula_of(counts: Sequence[tuple[Loss, int]]) -> Formula | None:
    """The composition's formula, if it has one."""
    normal = [(loss, count) for loss, count in counts if isinstance(loss, GaussianNoise) and loss.symmetric]
    if len(normal) == len(counts):
        return NormalSum(sum((count / _multiplier(loss) ** 2 for loss, count in normal), Fraction(0)))
    (loss, count), *others = counts
    if others:
        return None
    if isinstance(loss, ApproximateDP) and count <= MOST_EQUAL_STEPS:
        return Homogeneous(exact(loss.epsilon, "ε"), exact(loss.delta, "δ"), count)
    return _single(loss) if count == 1 else None


def _single(loss: Loss) -> Formula | None:
    if isinstance(loss, LaplaceNoise):
        return LaplaceOnce(1 / _multiplier(loss))
    if isinstance(loss, GaussianNoise) and _multiplier(loss) > Fraction(1, 100):
        return SampledOnce(1 / _multiplier(loss) ** 2, exact(loss.sampling_rate, "sampling_rate"))
    return None


def _multiplier(loss: GaussianNoise | LaplaceNoise) -> Fraction:
    return exact(loss.noise_multiplier, "noise_multiplier")


def outwards(found: Bracket[Fraction]) -> tuple[float, float]:
    """Floats on either side, also if one takes them by their shortest decimals, as costs do."""
    lower, upper = float(found.lower), float(found.upper)
    while lower > 0 and max(Fraction(lower), Fraction(repr(lower))) > found.lower:
        lower = nextafter(lower, -inf)
    while min(Fraction(upper), Fraction(repr(upper))) < found.upper:
        upper = nextafter(upper, inf)
    return lower, upper
