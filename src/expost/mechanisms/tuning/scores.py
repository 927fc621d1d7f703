"""Private scores of models on records that were held out from them. More is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from expost.checks import as_interval, as_whole, check_fields, finite
from expost.errors import InvalidValue
from expost.mechanisms.numbers import shape_of
from expost.noise import NoiseSource, discrete_laplace

_STEPS = 2**20
"""Errors of single records are whole numbers of such parts of the bounds' length."""


class Score(ABC):
    """A score of another mechanism's output: a whole number that one record moves little. Contains no data.

    Every subclass guarantees: for *every fixed* output, exchanging one held-out record moves :meth:`total` by at most
    ``sensitivity``. Private values never make it raise. The number of records is public.

    Proof: lem-score
    """

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How far one held-out record moves the total at most."""

    @abstractmethod
    def total(self, output: Any, held_out: Any) -> int:
        """The score of an output, exactly. More is better."""

    def value(self, total: int, size: int) -> float:
        """A total of ``size`` records as people read it, and as ``good_enough`` is compared with it."""
        return float(total)

    def check(self, held_out: Any) -> None:
        """Refuse what is publicly wrong with the held-out data."""
        dimensions = shape_of(held_out).dimensions
        if dimensions is None or len(dimensions) != 2 or min(dimensions) < 1:
            raise InvalidValue(f"held-out records are a two-dimensional array, the target last, got shape {dimensions}")

    def noisy(self, output: Any, held_out: Any, epsilon: Fraction, noise: NoiseSource) -> float:
        """The score with discrete Laplace noise: ε-private for the held-out records.

        Proof: lem-score
        """
        added = discrete_laplace(noise, epsilon / self.sensitivity)
        return self.value(self.total(output, held_out) + added, len(held_out))


@dataclass(frozen=True, kw_only=True)
class CorrectPredictions(Score):
    """The share of held-out records whose class is predicted ("accuracy").

    Parameters
    ----------
    classes
        The number of classes: 0, …, classes − 1. Any other class counts as 0.

    The data has the class last. The output has ``predict(features)``, as a :class:`~expost.mechanisms.LinearModel` has.

    Proof: lem-score
    """

    classes: int = 2

    def __post_init__(self) -> None:
        check_fields(self, classes=partial(as_whole, least=2))

    @property
    def sensitivity(self) -> int:
        """One record is right or wrong."""
        return 1

    def total(self, output: Any, held_out: Any) -> int:
        """The number of right predictions."""
        table = np.asarray(held_out)
        labels = np.where(np.isin(table[:, -1], np.arange(self.classes)), table[:, -1], 0)
        return int(np.count_nonzero(output.predict(table[:, :-1]) == labels))

    def value(self, total: int, size: int) -> float:
        """The share of right predictions. Noise may take it below 0 or above 1."""
        return total / size


@dataclass(frozen=True, kw_only=True)
class MeanAbsoluteError(Score):
    """The mean distance of predictions from the target, negative: 0 is perfect.

    Parameters
    ----------
    bounds
        Between which targets lie. Targets and predictions beyond are moved there; NaN is the lower bound.

    The data has the target last. The output is a function of features, as the fit of
    :class:`~expost.mechanisms.RegressionOfRecords` is.

    Proof: lem-score
    """

    bounds: Any

    def __post_init__(self) -> None:
        check_fields(self, bounds=as_interval)
        finite(self.bounds[1] - self.bounds[0], "the distance of the bounds")

    @property
    def sensitivity(self) -> int:
        """The distance of one record is at most the length of the bounds."""
        return _STEPS

    def total(self, output: Any, held_out: Any) -> int:
        """Minus the sum of all distances, in steps."""
        table = np.asarray(held_out, np.float64)
        with np.errstate(all="ignore"):
            distances = np.abs(self._steps(output(table[:, :-1])) - self._steps(table[:, -1]))
        return -int(np.clip(distances, 0, _STEPS).sum())

    def value(self, total: int, size: int) -> float:
        """Minus the mean distance, in units of the target."""
        low, high = self.bounds
        return float(total / _STEPS / size * (high - low))

    def _steps(self, values: Any) -> Any:
        """Where between the bounds, in whole steps. NaN is at the lower bound."""
        low, high = self.bounds
        inside = np.clip(np.nan_to_num(np.asarray(values, np.float64), nan=low), low, high)
        return np.floor((inside - low) / (high - low if high > low else 1.0) * _STEPS + 0.5).astype(np.int64)
