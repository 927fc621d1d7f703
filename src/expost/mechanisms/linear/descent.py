"""Logistic regression by noisy gradient descent that stops when the gradients say no more than noise."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.accounting.losses import GaussianNoise
from expost.accounting.planning import plan
from expost.checks import as_whole, check_fields, finite
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimates import frame_by_key
from expost.frame import Frame
from expost.mechanisms.iterative import Iterative
from expost.mechanisms.linear.model import LinearModel, signs_of, unit_rows
from expost.mechanisms.linear.solver import FloatArray, slope
from expost.mechanisms.numbers import OfArrays, shape_of
from expost.mechanisms.wrapper import Wrapper
from expost.noise import NoiseSource

_STEPS = 2**20
"""Gradients of single records are whole numbers of such parts."""
_MOST_STOPS = 100
"""Calibrating the noise takes time quadratic in the number of stops: seconds for a hundred, an hour for thousands."""


@dataclass(frozen=True, kw_only=True)
class LogisticDescent(OfArrays, Wrapper[NDArray[Any], tuple[NDArray[np.int64], ...]]):
    """Gradient descent for logistic regression (DP-SGD on all records): publishes noisy gradients, and may stop early.

    Parameters
    ----------
    epsilon
        The whole budget, for all steps. Fewer steps cost less.
    delta
        The δ of every output.
    features
        The number of features.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    steps
        The largest number of steps.
    every
        The number of steps between stops, of which there are at most 100.
    patience
        It stops if the mean of the gradients published since the last stop is at most ``patience`` times as long as
        noise alone would be. That reads published values only.
    learning_rate
        How far a step goes.
    missing
        What NaN counts as.

    The data is a two-dimensional array, one row per person: the features, and in the last column the class, 0 or 1 (all
    else is 0).

    >>> LogisticDescent(epsilon=1, delta=1e-6, features=3, norm=1, steps=20, every=10).guarantee.parts
    (10, 20)

    Proof: thm-descent
    """

    epsilon: Number
    delta: Number
    features: int
    norm: Number
    steps: int
    every: int
    patience: Number = 2
    learning_rate: Number = 8
    missing: Number = 0

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "delta")
        some = partial(as_whole, most=10_000)
        check_fields(self, features=some, steps=some, every=partial(as_whole, most=self.steps))
        if self.steps % self.every:
            raise InvalidValue(f"steps are a multiple of every, got {self.steps} and {self.every}")
        if self.steps // self.every > _MOST_STOPS:
            raise InvalidValue(
                f"training may stop at up to {_MOST_STOPS} places, got {self.steps // self.every} "
                f"({self.steps} steps, every {self.every}): test less often"
            )
        check_fields(self, "missing", norm=finite, patience=finite, learning_rate=finite)
        if not 1e-100 <= float(self.norm) <= 1e100 or float(self.learning_rate) <= 0 or float(self.patience) < 0:
            given = f"{self.norm}, {self.learning_rate} and {self.patience}"
            raise InvalidValue(f"norm and learning_rate are above 0, and patience is at least 0, got {given}")
        _ = self.guarantee

    @property
    def longest(self) -> int:
        """The most that one record adds to a gradient, in steps and L2; what would be longer is 0."""
        return _STEPS + isqrt(self.features + 1) + 1

    @property
    def noise_multiplier(self) -> float:
        """The noise of each step over its sensitivity: the least, to three digits, that keeps ε."""
        return _ratio(exact(self.epsilon, "ε"), exact(self.delta, "δ"), self.steps, self.every)

    @cached_property
    def inner(self) -> Iterative:
        """The steps, and when they stop."""
        return Iterative(
            steps=(GaussianNoise(self.noise_multiplier),) * self.steps,
            stops=_stops(self.steps, self.every),
            delta=self.delta,
            sensitivity=2 * self.longest,
            compute=self._gradient,
            until=self.settled,
            neighbours="substitute",
        )

    def check(self, data: Any) -> None:
        """Rows of numbers with the class last."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 2 or dimensions[1] != self.features + 1 or not dimensions[0]:
            raise InvalidValue(f"training needs rows of {self.features} features and a class, got shape {dimensions}")

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> tuple[NDArray[np.int64], ...]:
        """The noisy gradients of the steps taken."""
        table = np.asarray(data, np.float64)
        rows = unit_rows(table[:, :-1], float(self.norm), float(self.missing), True)
        return self.inner.sample(rows * signs_of(table[:, -1], 2)[0][:, None], noise)

    def _gradient(self, rows: FloatArray, outputs: tuple[Any, ...]) -> NDArray[np.int64]:
        """The exact sum of the records' gradients, each rounded and of bounded length by itself."""
        with np.errstate(under="ignore"):
            margins = np.clip(rows @ self.weights(outputs, len(rows)), -1e3, 1e3)
            parts = np.rint(rows * (slope("logistic", margins) * _STEPS)[:, None]).astype(np.int64)
        parts[(parts * parts).sum(axis=1) > self.longest**2] = 0
        return np.asarray(parts.sum(axis=0))

    def weights(self, outputs: tuple[Any, ...], size: int) -> FloatArray:
        """The weights after these outputs, for ``size`` records: a function of what was published."""
        weights = np.zeros(self.features + 1)
        for output in outputs:
            weights = np.clip(weights - float(self.learning_rate) / (_STEPS * size) * np.asarray(output), -1e6, 1e6)
        return weights

    def model(self, outputs: tuple[Any, ...], size: int) -> LinearModel:
        """The model after these outputs, for ``size`` records."""
        weights = tuple(self.weights(outputs, size).tolist())
        return LinearModel((weights,), float(self.norm), True, float(self.missing))

    @property
    def what(self) -> str:
        """What is published: the model is computed from them, by :meth:`model`."""
        return "gradient"

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """As of the steps."""
        return self.inner.answer_of(output, origin)

    def frame_of(self, answer: Any) -> Frame:
        """A row for each number of each step."""
        return frame_by_key("step", dict(enumerate(answer, 1)), self)

    def settled(self, outputs: tuple[Any, ...]) -> bool:
        """Whether the gradients published since the last stop say no more than noise would."""
        mean = np.mean([np.asarray(output, np.float64) for output in outputs[-self.every :]], axis=0)
        noise = self.noise_multiplier * 2 * self.longest * sqrt((self.features + 1) / self.every)
        return float(np.linalg.norm(mean)) <= float(self.patience) * noise

    def describe(self, output: tuple[NDArray[np.int64], ...]) -> str:
        """How far it went."""
        return self.inner.describe(output)


def _stops(steps: int, every: int) -> tuple[int, ...]:
    return tuple(range(every, steps + 1, every))


@lru_cache(maxsize=256)
def _ratio(epsilon: Fraction, delta: Fraction, steps: int, every: int) -> float:
    """Noise over sensitivity for ``steps`` steps. ε falls about as one over it, so a few corrections are enough."""

    def needed(multiplier: float) -> Fraction:
        return plan((GaussianNoise(multiplier),) * steps, _stops(steps, every), delta).worst_case.exact_epsilon

    multiplier = 4 * sqrt(steps) / float(epsilon)
    for _ in range(4):
        multiplier *= float(needed(multiplier) / epsilon)
    multiplier = float(f"{multiplier:.3g}")
    for _ in range(100):
        if needed(multiplier) <= epsilon:
            return multiplier
        multiplier = float(f"{multiplier * 1.005:.4g}")
    raise InvalidValue(
        f"no noise was found for ε {float(epsilon):g}, δ {float(delta):g} and {steps} steps: take more ε"
    )
