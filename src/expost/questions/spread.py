"""How far noise moved covariances of values from −1 to 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expost.mechanisms.laplace_sums import covariance_error, variance_error
from expost.mechanisms.linear.box import STEPS
from expost.questions.noised import NoiseOfNumbers


@dataclass(frozen=True)
class SpreadNoise:
    """The noise of a number of rows, of sums and of sums of products: what it does to what is computed from them.

    Parameters
    ----------
    noise
        That of the numbers, the number of rows first.
    size
        The noisy number of rows.
    """

    noise: NoiseOfNumbers
    size: float

    def variance(self, places: tuple[int, int], mean: float, variance: float, miss: Fraction) -> float:
        """How far a variance is off at most; ``places`` are those of the sum and of the sum of squares.

        Proof: lem-variance-error
        """
        if self.size <= 1:
            return 1.0
        total, squares = places

        def moved(weights: tuple[float, ...], missed: Fraction) -> float:
            return self._moved(weights, missed, *((total, 0) if len(weights) == 2 else (squares, total, 0)))

        return min(1.0, variance_error(mean, variance, miss, moved))

    def covariance(
        self, places: tuple[int, int, int], means: tuple[float, float], covariance: float, miss: Fraction
    ) -> float:
        """How far a covariance is off at most; ``places`` are those of the two sums and of the sum of products.

        Proof: lem-covariance-error
        """
        if self.size <= 1:
            return 2.0
        first, second, both = places

        def mean_moved(which: int, most: float, missed: Fraction) -> float:
            return self._moved((1.0, most), missed, (first, second)[which], 0)

        def moved(weights: tuple[float, ...], missed: Fraction) -> float:
            return self._moved(weights, missed, both, first, second, 0)

        return min(2.0, covariance_error(means, covariance, miss, mean_moved, moved))

    def _moved(self, weights: tuple[float, ...], miss: Fraction, *places: int) -> float:
        return self.noise.reach(weights, miss, *places) / STEPS**2 / self.size
