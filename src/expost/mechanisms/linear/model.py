"""The linear model that is published, and how its rows and classes are read."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.frame import Frame
from expost.mechanisms.linear.rows import model_frame
from expost.mechanisms.linear.solver import FloatArray
from expost.mechanisms.numbers import without_nan


@dataclass(frozen=True)
class LinearModel:
    """A published linear model: weights on rows in the unit ball.

    Parameters
    ----------
    weights
        A tuple for the one problem of two classes, or one for each class.
    norm
        What rows are divided by, before those longer than one are shortened.
    intercept
        Whether the last weight is that of a constant.
    missing
        What NaN counts as.
    features
        The columns that it was fitted to; all if None.
    """

    weights: tuple[tuple[float, ...], ...]
    norm: float
    intercept: bool
    missing: float = 0.0
    features: tuple[int, ...] | None = None

    def margins(self, features: Any) -> FloatArray:
        """A row for each row of features, a column for each problem: above 0 says yes."""
        with np.errstate(all="ignore"):
            rows = unit_rows(chosen(features, self.features), self.norm, self.missing, self.intercept)
            return np.asarray(rows @ np.array(self.weights).T, np.float64)

    def predict(self, features: Any) -> NDArray[np.int64]:
        """The number of the class of each row."""
        margins = self.margins(features)
        return np.asarray(margins[:, 0] > 0 if margins.shape[1] == 1 else margins.argmax(axis=1), np.int64)

    @property
    def coefficients(self) -> FloatArray:
        """Weights for rows of length at most ``norm`` in the units of the features, a row for each problem."""
        weights = np.array(self.weights)
        if not self.intercept:
            return weights / self.norm
        return weights[:, :-1] * (shares(weights.shape[1] - 1)[0] / self.norm)

    @property
    def intercepts(self) -> FloatArray:
        """The constant of each problem."""
        weights = np.array(self.weights)
        return weights[:, -1] * shares(weights.shape[1] - 1)[1] if self.intercept else np.zeros(len(weights))

    @property
    def frame(self) -> Frame:
        """A row for the intercept, if there is one, and for each feature: for each class, if there are several."""
        constants, slopes = self.intercepts.tolist(), self.coefficients.tolist()
        columns = range(len(slopes[0])) if self.features is None else self.features
        rows: list[tuple[str, tuple[int | None, ...], float]] = []
        for number, (constant, line) in enumerate(zip(constants, slopes, strict=True)):
            which = (number,) if len(slopes) > 1 else ()
            rows += [("intercept", (*which, None), constant)] if self.intercept else []
            rows += [("coefficient", (*which, column), slope) for column, slope in zip(columns, line, strict=True)]
        return model_frame(("class", "feature") if len(slopes) > 1 else ("feature",), rows)


@dataclass(frozen=True)
class TrainedModel(LinearModel):
    """A published linear model that was trained step by step.

    Parameters
    ----------
    steps
        The steps that were taken.
    score
        The share of records held out for it that it labels right, with noise; None if none were.
    """

    steps: int = 0
    score: float | None = None


def unit_rows(features: Any, norm: float, missing: float, intercept: bool) -> FloatArray:
    """Each row divided by ``norm`` and, if still longer than one, shortened to one; a constant feature appended.

    With an intercept, features and the constant are multiplied by :func:`shares`, so that rows stay in the ball. NaN
    counts as ``missing``, and what is farther than 10^100 from zero as 10^100.

    Proof: lem-unit-rows
    """
    with np.errstate(all="ignore"):
        rows: FloatArray = without_nan(np.asarray(features, np.float64), missing)
        rows = np.clip(np.clip(rows, -1e100, 1e100) / norm, -1e100, 1e100)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows *= ((1 - 2.0**-30) / np.maximum(lengths, 1.0))[:, None]
    if not intercept:
        return rows
    of_features, of_constant = shares(rows.shape[1])
    return np.asarray(np.column_stack([rows * of_features, np.full(len(rows), of_constant)]), np.float64)


def shares(features: int) -> tuple[float, float]:
    """What features are multiplied by, and the constant beside them: as long as one of ``features`` typical features.

    >>> shares(3)
    (0.8660254037844386, 0.5)
    """
    return sqrt(features / (features + 1)), sqrt(1 / (features + 1))


def signs_of(labels: Any, classes: int) -> list[FloatArray]:
    """+1 where the class is the problem's, else −1: one problem for two classes, else one each."""
    numbers = np.asarray(labels, np.float64)
    known = np.isin(numbers, np.arange(classes))
    numbers = np.where(known, numbers, 0.0)
    wanted = [1] if classes == 2 else range(classes)
    return [np.where(numbers == number, 1.0, -1.0) for number in wanted]


def chosen(features: Any, columns: tuple[int, ...] | None) -> Any:
    """The columns asked for."""
    return features if columns is None else np.asarray(features)[:, list(columns)]
