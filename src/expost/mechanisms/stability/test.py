"""The noisy test of a distance, and how a budget is split between tests and releases."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from expost import bracket
from expost.noise import NoiseSource, discrete_laplace

REFUSED = "withheld"
"""The part of ⊥."""


@dataclass(frozen=True)
class StabilityTest:
    """Passes if a distance plus discrete Laplace noise is above a threshold; at distance 0 with probability ≤ δ.

    ε-differentially private for distances that one person moves by at most one.

    >>> StabilityTest(Fraction(1), Fraction(1, 10**6)).threshold
    13

    Proof: lem-stability-test
    """

    epsilon: Fraction
    delta: Fraction

    def tail(self, threshold: int) -> Fraction:
        """An upper bound on Pr[noise > threshold] = e^−ε(threshold+1)/(1 + e^−ε), for threshold ≥ 0."""
        reach = bracket.exp(-self.epsilon * (threshold + 1)).upper
        return reach / (1 + bracket.exp(-self.epsilon).lower)

    @cached_property
    def threshold(self) -> int:
        """The least whole number ≥ 0 that noise alone exceeds with probability at most δ, certainly."""
        odds = self.delta * (1 + bracket.exp(-self.epsilon).lower)
        threshold = max(0, ceil(-bracket.log(odds).lower / self.epsilon) - 1)
        while self.tail(threshold) > self.delta:
            threshold += 1
        while threshold > 0 and self.tail(threshold - 1) <= self.delta:
            threshold -= 1
        return threshold

    @property
    def cap(self) -> int:
        """A distance past which the test fails with probability below δ: larger ones need not be distinguished."""
        return 2 * self.threshold + 2

    def passes(self, distance: int, noise: NoiseSource) -> bool:
        """Whether the noisy distance is above the threshold."""
        return distance + discrete_laplace(noise, self.epsilon) > self.threshold
