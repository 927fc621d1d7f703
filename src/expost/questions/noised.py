"""Noisy numbers of a table or of one group, and how far their noise goes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

from expost.mechanisms.laplace_sums import sum_reach
from expost.noise.sums import LaplaceSteps, RoundedGaussianSteps, StepLaw, Term, gaussian_reach


@dataclass(frozen=True)
class Noised:
    """Noisy numbers, of one group or added up over several, and the laws of their noise.

    Parameters
    ----------
    numbers
        What was published.
    laws
        The law of the noise of each, in its units; None for one without noise.
    origin
        Which draws these are.
    groups
        Over how many groups they were added up, each with noise of its own.
    """

    numbers: tuple[int, ...]
    laws: tuple[StepLaw | None, ...]
    origin: Hashable = None
    groups: int = 1

    @property
    def noise(self) -> NoiseOfNumbers:
        """How far the noise goes, without the numbers."""
        return NoiseOfNumbers(self.laws, self.groups)

    def term(self, place: int, step: Fraction) -> Term:
        """The noise of one number, in steps of that size."""
        law = self.laws[place]
        assert law is not None
        return Term(step, law)


@dataclass(frozen=True)
class NoiseOfNumbers:
    """The laws of the independent noise of several numbers, once for each group that they are added up over."""

    laws: tuple[StepLaw | None, ...]
    groups: int = 1

    def reach(self, weights: Sequence[float], miss: Fraction, *places: int) -> float:
        """A size that Σ wᵢ·Xᵢ exceeds with probability at most ``miss``, whatever numbers up to the weights the wᵢ are.

        ``places`` say which numbers the weights are for; by default all.

        Of two numbers it is least wide if the first weight is 1; c times as large weights have c times the reach.

        Proof: lem-laplace-sums, lem-gaussian-error
        """
        chosen = zip(places or range(len(self.laws)), weights, strict=True)
        known = [(law, weight) for place, weight in chosen if (law := self.laws[place]) is not None and weight]
        rates = [(law.rate, weight) for law, weight in known if isinstance(law, LaplaceSteps)]
        normal = [(law.variance, weight) for law, weight in known if isinstance(law, RoundedGaussianSteps)]
        assert len(rates) + len(normal) == len(known)
        share = miss / 2 if rates and normal else miss
        within = 0.0
        if rates:
            within += sum_reach(
                tuple(rate for rate, _ in rates), tuple(weight for _, weight in rates), share, self.groups
            )
        if normal:
            within += _gaussian(normal, share, self.groups)
        return within

    def along(self, miss: Fraction, *places: int) -> float:
        """A size that Σ wᵢ·Xᵢ exceeds with probability at most ``miss``, for any weights with Σ wᵢ² = 1.

        Proof: lem-unit-weights
        """
        laws = {law for place in places if (law := self.laws[place]) is not None}
        assert len(laws) == 1
        (law,), terms = laws, self.groups * sqrt(len(places))
        if isinstance(law, LaplaceSteps):
            depth = log(1 / miss) + 1
            return (sqrt((depth**2 + 1) * self.groups) / float(law.rate) + terms) * (1 + 2**-40)
        assert isinstance(law, RoundedGaussianSteps)
        return (float(gaussian_reach(law.variance * self.groups, miss)) + terms / 2) * (1 + 2**-40)


def _gaussian(terms: Sequence[tuple[Fraction, float]], miss: Fraction, groups: int) -> float:
    """The quantile of a sum of Gaussian numbers, and half a step for the rounding of each."""
    variance = sum((rate * Fraction(weight) ** 2 for rate, weight in terms), Fraction(0)) * groups
    rounding = groups * sum(weight for _, weight in terms) / 2
    return (float(gaussian_reach(variance, miss)) + rounding) * (1 + 2**-40)


def standard_deviation(law: StepLaw) -> float:
    """Of its noise, nearly: to compare kinds of noise by."""
    if isinstance(law, LaplaceSteps):
        return sqrt(2) / float(law.rate)
    assert isinstance(law, RoundedGaussianSteps)
    return sqrt(float(law.variance))
