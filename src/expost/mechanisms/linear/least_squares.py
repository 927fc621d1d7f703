"""Least squares with pure ε: noise on the sums that the normal equations are made of, and a ridge that follows it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_flag
from expost.cost import Number, exact
from expost.mechanisms.linear.box import STEPS, BoundedFit, LinearFit
from expost.mechanisms.linear.normal_equations import NormalEquations, Pairs
from expost.noise import NoiseSource, vector
from expost.noise.grid import saturating_sum


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
    standard_errors
        Whether to publish standard errors, too. They are estimates from the released sums alone. They cover the noise,
        and the sampling of records whose residuals have equal variance. For them the target's square is added up, too,
        and all noise grows a little: by a fifteenth for one feature.

    >>> LeastSquares(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 1)).sensitivity
    5

    Proof: thm-least-squares
    """

    missing: Number = 0
    standard_errors: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag(self.standard_errors, "standard_errors")
        vector.check_rate(self._rate)

    @property
    def sensitivity(self) -> int | Fraction:
        """How far one person moves all sums together, for features and target between −1 and 1.

        Proof: thm-least-squares
        """
        columns = len(self.bounds) + 1
        if self.standard_errors:
            return Fraction(columns * (columns + 2) ** 2, 2 * (columns + 1))
        return columns * (columns + 3) // 2

    def sample(self, data: Any, noise: NoiseSource) -> LinearFit:
        """The function fitted to noisy sums."""
        rows = self.box.steps(data, float(self.missing))
        sums = self.sums(rows)
        totals = saturating_sum(sums, vector.discrete_laplace(noise, self._rate, sums.size))
        return self._fit(totals / (STEPS**2 * len(rows)), float(self._scale / len(rows)), len(rows))

    def sums(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of the columns, in steps times steps, and of their products (the target's square for errors only)."""
        first, second = self._pairs
        products = [(rows[:, i] * rows[:, j]).sum() for i, j in zip(first, second, strict=True)]
        return np.array([*(rows.sum(axis=0) * STEPS), *products], np.int64)

    @cached_property
    def _pairs(self) -> Pairs:
        """All pairs of columns, each with itself too; the target with itself for errors only."""
        first, second = np.triu_indices(len(self.bounds) + 1)
        return (first, second) if self.standard_errors else (first[:-1], second[:-1])

    @property
    def _scale(self) -> Fraction:
        return self.sensitivity / exact(self.epsilon, "ε")

    @property
    def _rate(self) -> Fraction:
        return 1 / (self._scale * STEPS**2)

    def _fit(self, noisy: NDArray[np.float64], scale: float, size: int) -> LinearFit:
        """The solution of the normal equations, in units of the data. Reads released sums only."""
        columns, pairs = len(self.bounds) + 1, self._pairs
        moments = np.zeros((columns, columns))
        moments[pairs] = moments[pairs[::-1]] = noisy[columns:]
        equations = NormalEquations.of(noisy[:columns], moments, scale)
        fit = self.box.restored(equations.intercept, equations.coefficients)
        if not self.standard_errors:
            return fit
        errors = equations.standard_errors(self.box.scaling, pairs, scale, size)
        return fit._replace(standard_errors=tuple(errors.tolist()))
