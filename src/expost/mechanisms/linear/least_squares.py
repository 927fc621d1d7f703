"""Least squares with pure ε: noise on the sums that the normal equations are made of, and a ridge that follows it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_interval, as_whole, finite, requested_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms.additive import RELEASED
from expost.mechanisms.numbers import shape_of
from expost.noise import NoiseSource, vector
from expost.noise.grid import FARTHEST

_STEPS = 2**15  # on either side of the middle of the bounds
_MOST = 2**22  # records: sums stay within 2^52


class LinearFit(NamedTuple):
    """A linear function as published: intercept plus coefficients times features."""

    intercept: float
    coefficients: tuple[float, ...]

    def __call__(self, features: Any) -> NDArray[np.float64]:
        """The predictions for rows of features."""
        return np.asarray(self.intercept + np.asarray(features, np.float64) @ np.array(self.coefficients))


@dataclass(frozen=True, kw_only=True)
class LeastSquares(Mechanism[NDArray[Any], LinearFit]):
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
        object.__setattr__(self, "epsilon", requested_epsilon(self.epsilon))
        if not isinstance(self.bounds, tuple | list) or not self.bounds:
            raise InvalidValue("bounds are a list with a pair (lowest, highest) for each feature")
        object.__setattr__(self, "bounds", tuple(as_interval(pair) for pair in self.bounds))
        object.__setattr__(self, "target_bounds", as_interval(self.target_bounds, "target_bounds"))
        object.__setattr__(self, "missing", finite(self.missing, "missing"))
        as_whole(len(self.bounds), "the number of features", most=100)
        vector.check_rate(self._rate)

    @property
    def guarantee(self) -> Guarantee:
        """ε for every output."""
        return Guarantee.uniform(self.epsilon, neighbours="substitute")

    @property
    def sensitivity(self) -> int:
        """How far one person moves all sums together, for features and target between −1 and 1.

        Proof: thm-least-squares
        """
        features = len(self.bounds)
        return (features + 1) * (features + 4) // 2

    def part_of(self, output: Any) -> Part:
        """All outputs cost the same."""
        return RELEASED

    def check(self, data: Any) -> None:
        """Rows of features and a target."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 2 or dimensions[1] != len(self.bounds) + 1:
            raise InvalidValue(
                f"there are bounds for {len(self.bounds)} features, so the data has {len(self.bounds) + 1} columns, "
                f"the target last; got shape {dimensions}"
            )
        if not 1 <= dimensions[0] <= _MOST:
            raise InvalidValue(f"least squares needs from 1 to {_MOST:,} records, got {dimensions[0]:,}")

    def sample(self, data: Any, noise: NoiseSource) -> LinearFit:
        """The function fitted to noisy sums."""
        rows = self._points(data)
        sums = self.sums(rows)
        totals = sums + vector.discrete_laplace(noise, self._rate, sums.size)
        noisy = np.clip(totals, -FARTHEST, FARTHEST) / (_STEPS**2 * len(rows))  # lem-saturation
        return self._shown(*self._solved(noisy, float(self._scale / len(rows))))

    def sums(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of the columns, in steps times steps, and of their products but for the target's square."""
        first, second = self._pairs
        products = [(rows[:, i] * rows[:, j]).sum() for i, j in zip(first, second, strict=True)]
        return np.array([*(rows.sum(axis=0) * _STEPS), *products], np.int64)

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
        return 1 / (self._scale * _STEPS**2)

    def _points(self, data: Any) -> NDArray[np.int64]:
        """Features and target in whole steps from the middle of their bounds, one row per person."""
        columns = np.nan_to_num(np.asarray(data, np.float64), nan=float(self.missing))
        lows, highs = np.array([*self.bounds, self.target_bounds]).T
        halves = np.where(highs > lows, (highs - lows) / 2, 1.0)
        steps = np.floor((np.clip(columns, lows, highs) - (lows + highs) / 2) / halves * _STEPS + 0.5)
        return np.asarray(np.clip(steps, -_STEPS, _STEPS).astype(np.int64))

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

    def _shown(self, intercept: float, coefficients: NDArray[np.float64]) -> LinearFit:
        """In units of the data."""
        lows, highs = np.array([*self.bounds, self.target_bounds]).T
        halves, middles = np.where(highs > lows, (highs - lows) / 2, 1.0), (lows + highs) / 2
        slopes = coefficients * halves[-1] / halves[:-1]
        return LinearFit(float(middles[-1] + halves[-1] * intercept - slopes @ middles[:-1]), tuple(slopes.tolist()))

    def describe(self, output: Any) -> str:
        """The coefficients."""
        return f"{output.intercept:.6g} + ({', '.join(f'{slope:.6g}' for slope in output.coefficients)}) · features"
