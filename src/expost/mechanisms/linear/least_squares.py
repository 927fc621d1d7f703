"""Least squares with pure ε: noise on the sums that the normal equations are made of, and a ridge that follows it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cost import Number, exact
from expost.mechanisms.linear.box import STEPS, BoundedFit, LinearFit
from expost.noise import NoiseSource, vector
from expost.noise.grid import FARTHEST


@dataclass(frozen=True, kw_only=True)
class LeastSquares(BoundedFit):
    """Linear regression from noisy sums of features, targets, and their products, with pure ε.

    A ridge is added where the noise makes the normal equations unreliable, as much as the noise calls for (AdaSSP).

    The data is an array with a row per person: the features, and the target last. Neighbours exchange one person, and
    n is public. Values are clamped to their bounds.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        A pair (lowest, highest) for each feature.
    target_bounds
        Between which the target lies.
    missing
        What NaN counts as, in features and target alike.

    >>> LeastSquares(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 1)).sensitivity
    5

    Proof: thm-least-squares
    """

    epsilon: Number
    bounds: Any
    target_bounds: Any
    missing: Number = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        vector.check_rate(self._rate)

    @property
    def sensitivity(self) -> int:
        """How far one person moves all sums together, for features and target between −1 and 1.

        Proof: thm-least-squares
        """
        features = len(self.bounds)
        return (features + 1) * (features + 4) // 2

    def sample(self, data: Any, noise: NoiseSource) -> LinearFit:
        """The function fitted to noisy sums."""
        rows = self.box.steps(data, float(self.missing))
        sums = self.sums(rows)
        totals = sums + vector.discrete_laplace(noise, self._rate, sums.size)
        noisy = np.clip(totals, -FARTHEST, FARTHEST) / (STEPS**2 * len(rows))  # lem-saturation
        return self.box.restored(*self._solved(noisy, float(self._scale / len(rows))))

    def sums(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of the columns, in steps times steps, and of their products but for the target's square."""
        first, second = self._pairs
        products = [(rows[:, i] * rows[:, j]).sum() for i, j in zip(first, second, strict=True)]
        return np.array([*(rows.sum(axis=0) * STEPS), *products], np.int64)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of columns, each with itself too, but for the target with itself."""
        first, second = np.triu_indices(len(self.bounds) + 1)
        return first[:-1], second[:-1]

    @property
    def _scale(self) -> Fraction:
        return self.sensitivity / exact(self.epsilon, "ε")

    @property
    def _rate(self) -> Fraction:
        return 1 / (self._scale * STEPS**2)

    def _solved(self, noisy: NDArray[np.float64], scale: float) -> tuple[float, NDArray[np.float64]]:
        """The intercept and the coefficients in units of the half bounds. Reads released sums only."""
        count = len(self.bounds)
        means, (first, second) = noisy[: count + 1], self._pairs
        moments = np.zeros((count + 1, count + 1))
        moments[first, second] = moments[second, first] = noisy[count + 1 :]
        covariance = moments - np.outer(means, means)
        inner, outer = covariance[:count, :count], covariance[:count, count]
        least = float(np.linalg.eigvalsh(inner)[0])
        ridge = max(0.0, 2 * scale * count**0.5 - least)
        coefficients, *_ = np.linalg.lstsq(inner + ridge * np.eye(count), outer)  # never fails, whatever the noise
        return float(means[count] - coefficients @ means[:count]), coefficients
