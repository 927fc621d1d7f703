"""The normal equations of least squares from noisy moments, and the standard errors of their solution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Array: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The pairs of columns whose products were added up."""


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Means and covariances of features and target, the target last; ``inner`` is the features' part with a ridge."""

    means: _Array
    covariance: _Array
    inner: _Array

    @classmethod
    def of(cls, means: _Array, moments: _Array, scale: float) -> NormalEquations:
        """From noisy moments, with as much ridge as noise of this scale calls for."""
        covariance = moments - np.outer(means, means)
        plain = covariance[:-1, :-1]
        ridge = max(0.0, 2 * scale * len(plain) ** 0.5 - float(np.linalg.eigvalsh(plain)[0]))
        return cls(means, covariance, plain + ridge * np.eye(len(plain)))

    @cached_property
    def coefficients(self) -> _Array:
        """The solution; it exists whatever the noise."""
        return np.asarray(np.linalg.lstsq(self.inner, self.covariance[:-1, -1])[0], np.float64)

    @property
    def intercept(self) -> float:
        """What the function is where all features are 0."""
        return float(self._line @ self.means)

    @property
    def _line(self) -> _Array:
        """A record times this is its residual, but for the intercept."""
        return np.array([*-self.coefficients, 1.0])

    def standard_errors(self, scaling: _Array, pairs: Pairs, scale: float, size: int) -> _Array:
        """Of intercept and coefficients times ``scaling``: by the noise of the sums, and by the sampling of records.

        Proof: lem-least-squares-errors
        """
        noise = scaling @ self._by_sums(pairs) * (2**0.5 * scale)
        residuals = max(float(self._line @ self.covariance @ self._line), 0.0)
        sampling = scaling @ self._by_records() @ scaling.T * (residuals / size)
        return np.asarray(np.sqrt(np.maximum((noise**2).sum(axis=1) + np.diag(sampling), 0.0)))

    def _by_sums(self, pairs: Pairs) -> _Array:
        """The derivatives of intercept and coefficients by the means and by the moments of the pairs."""
        features = len(self.coefficients)
        moved = np.zeros((features, features + 1 + len(pairs[0])))
        moved[:, : features + 1] = -np.outer(self.means[:-1], self._line)
        moved[np.arange(features), np.arange(features)] -= self.intercept
        for place, (i, j) in enumerate(zip(*pairs, strict=True), features + 1):
            for one, other in {(i, j), (j, i)}:
                if one < features:
                    moved[one, place] += self._line[other]
        slopes = np.linalg.lstsq(self.inner, moved)[0]
        constant = -self.means[:-1] @ slopes
        constant[: features + 1] += self._line
        return np.vstack([constant, slopes])

    def _by_records(self) -> _Array:
        """n times the covariances of intercept and coefficients, for residuals of variance 1."""
        centred = np.vstack([-self.means[:-1], np.eye(len(self.coefficients))])
        found = centred @ np.linalg.pinv(self.inner) @ centred.T
        found[0, 0] += 1
        return np.asarray(found)
