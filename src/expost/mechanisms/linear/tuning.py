"""Regularisers and leans for accuracy under noise, chosen from public facts or given."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from expost.checks import finite
from expost.errors import InvalidValue
from expost.mechanisms.linear.solver import CURVATURE, LossName

LEAST_REGULARIZER, MOST_REGULARIZER = 1e-6, 1e6
MOST_LEAN = 100.0


def noise_lean(size: int, columns: int, epsilon: float) -> float:
    """How much of a straight line to add to the loss under noise: none from nε = 125·√d on, more the less data."""
    return min(max(0.0, (125 * sqrt(columns) / (size * epsilon) - 1) / 2), MOST_LEAN)


def objective_regularizer(loss: LossName, size: int, columns: int, epsilon: float, lean: float) -> float:
    """A regulariser for objective perturbation, for accuracy under noise, from public facts.

    (1 + lean)·√d/(nε), at which noise alone would give weights of length 2√d, the length of weights that decide about
    typical rows; lean/2d more, the curvature that the straight line lacks; and never so little that the curvature
    costs more than a quarter of ε.
    """
    least = float(CURVATURE[loss]) / (size * np.expm1(min(epsilon / 4, 50.0)))
    return _within(max((1 + lean) * sqrt(columns) / (size * epsilon) + lean / (2 * columns), least))


def output_regularizer(size: int, epsilon: float) -> float:
    """A regulariser for output perturbation: (2n²ε²)^−1/3.

    There the pull on weights that decide about typical rows and the expected harm of the noise are least together.
    """
    return _within((2 * (size * epsilon) ** 2) ** (-1 / 3))


def _within(regularizer: float) -> float:
    return float(min(max(regularizer, LEAST_REGULARIZER), MOST_REGULARIZER))


def as_regularizer(number: Any, name: str) -> float:
    """Λ as a float, within bounds that the solver is made for."""
    given = finite(number, name)
    if not LEAST_REGULARIZER <= given <= MOST_REGULARIZER:
        raise InvalidValue(f"{name} lies between {LEAST_REGULARIZER:g} and {MOST_REGULARIZER:g}, got {number!r}")
    return given


def as_lean(number: Any, name: str) -> float:
    """How much the loss leans."""
    given = finite(number, name)
    if not 0 <= given <= MOST_LEAN:
        raise InvalidValue(f"{name} lies between 0, for the loss as it is, and {MOST_LEAN:g}, got {number!r}")
    return given
