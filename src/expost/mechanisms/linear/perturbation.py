"""Linear classifiers: logistic regression and a smooth support vector machine, with noise on the result or on the aim.

The data is a two-dimensional array, one row per person: the features, and in the last column the number of the class.
More than two classes are one problem each, that class against the rest, with an equal share of ε.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor, fsum, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost import bracket
from expost.checks import as_flag, as_whole, check_fields, finite, optional
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.linear import tuning
from expost.mechanisms.linear.model import LinearModel, chosen, signs_of, unit_rows
from expost.mechanisms.linear.solver import CURVATURE, FloatArray, LossName, Problem, gradient_error, minimise
from expost.mechanisms.numbers import OfArrays, root_above, shape_of
from expost.noise import NoiseSource
from expost.noise.grid import Grid
from expost.noise.spherical import rounded_spherical

MOST_RECORDS, MOST_FEATURES = 10**12, 2**20 - 2
"""Within these, the bounds on rounding errors are proved: see lem-unit-rows and lem-gradient-error."""

FARTHEST_WEIGHT = 2**14
"""How far from zero published weights are clamped to."""


@dataclass(frozen=True)
class Setting:
    """The public facts of one problem: rows, columns, its share of ε, the regulariser and the lean that it gets."""

    loss: LossName
    size: int
    columns: int
    epsilon: Fraction
    regularizer: float
    lean: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Linear(OfArrays, FixedCost[NDArray[Any], LinearModel]):
    """What both ways of adding noise have in common."""

    epsilon: Number
    norm: Number
    classes: int = 2
    loss: LossName = "logistic"
    regularizer: Number | None = None
    intercept: bool = True
    features: tuple[int, ...] | None = None
    missing: Number = 0

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "missing", norm=finite)
        if not 1e-100 <= float(self.norm) <= 1e100:
            raise InvalidValue(f"norm is the public length of the longest row, above 0, got {self.norm!r}")
        check_fields(self, classes=partial(as_whole, least=2))
        if self.loss not in CURVATURE:
            raise InvalidValue(f"loss is 'logistic' or 'huber', got {self.loss!r}")
        check_fields(
            self, regularizer=optional(tuning.as_regularizer), intercept=as_flag, features=optional(as_features)
        )

    @property
    def problems(self) -> int:
        """One for two classes, else one per class."""
        return 1 if self.classes == 2 else self.classes

    def setting(self, size: int, features: int) -> Setting:
        """The public facts of each problem on ``size`` records with ``features`` features."""
        columns = (features if self.features is None else len(self.features)) + self.intercept
        return self._setting(size, columns, exact(self.epsilon, "ε") / self.problems)

    @abstractmethod
    def _setting(self, size: int, columns: int, epsilon: Fraction) -> Setting:
        """Regulariser and lean of one problem, given or chosen."""

    def _minimum(self, problem: Problem, tolerance: Fraction) -> list[Fraction]:
        """A point near the minimum of one problem."""
        return minimise(problem, tolerance)

    def check(self, data: Any) -> None:
        """Rows of numbers, at least one, with the class last and the features that were asked for."""
        check_labelled(data, self.features, self.intercept)

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> LinearModel:
        """A model."""
        table = np.asarray(data)
        setting = self.setting(len(table), table.shape[1] - 1)
        with np.errstate(all="ignore"):
            rows = unit_rows(
                chosen(table[:, :-1], self.features), float(self.norm), float(self.missing), self.intercept
            )
            weights = tuple(
                self._weights(setting, rows * signs[:, None], noise) for signs in signs_of(table[:, -1], self.classes)
            )
        return LinearModel(weights, float(self.norm), self.intercept, float(self.missing), self.features)

    @abstractmethod
    def _weights(self, setting: Setting, rows: FloatArray, noise: NoiseSource) -> tuple[float, ...]:
        """The noisy weights of one problem."""

    def describe(self, output: LinearModel | Withheld) -> str:
        """What kind of model came out."""
        if output is WITHHELD:
            return "withheld"
        return f"{len(output.weights)} × {len(output.weights[0])} weights"


def check_labelled(data: Any, features: tuple[int, ...] | None, intercept: bool) -> None:
    """Rows of numbers, at least one, with the class last and the features that were asked for."""
    dimensions = shape_of(data).dimensions
    if dimensions is None or len(dimensions) != 2 or min(dimensions) < 1:
        raise InvalidValue(f"a classifier is about a two-dimensional array, the class last, got shape {dimensions}")
    there = dimensions[1] - 1
    if features is not None and max(features) >= there:
        raise InvalidValue(f"features asks for column {max(features)}, but there are only {there}")
    if not (intercept or there):
        raise InvalidValue("there is nothing to fit: give at least one feature, or an intercept")
    if there > MOST_FEATURES or dimensions[0] > MOST_RECORDS:
        raise InvalidValue(
            f"rounding errors are bounded for at most {MOST_RECORDS} records with {MOST_FEATURES} features, got "
            f"{dimensions[0]} with {there}"
        )


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(_Linear):
    """A linear classifier, its weights with noise of joint density proportional to ``e^(−c‖q‖)``: ε-private.

    Parameters
    ----------
    epsilon
        The whole budget. Every output costs all of it.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The number of classes: 0, …, classes − 1. Any other class counts as 0.
    loss
        ``"logistic"``, or ``"huber"`` for a support vector machine.
    regularizer
        Λ. By default chosen for accuracy under noise, from ε and the number of records.
    intercept
        Whether to fit a constant.
    features
        The columns to use; all if None.
    missing
        What NaN counts as.

    The data is a two-dimensional array, one row per person: the features, and in the last column the number of the
    class.

    >>> OutputPerturbation(epsilon=1, norm=1).guarantee
    Guarantee.uniform(1, neighbours='substitute')

    Proof: thm-output-perturbation
    """

    def _setting(self, size: int, columns: int, epsilon: Fraction) -> Setting:
        given = self.regularizer
        return Setting(
            self.loss,
            size,
            columns,
            epsilon,
            tuning.output_regularizer(size, float(epsilon)) if given is None else float(given),
        )

    def _weights(self, setting: Setting, rows: FloatArray, noise: NoiseSource) -> tuple[float, ...]:
        problem = Problem(self.loss, rows, setting.regularizer, (Fraction(0),) * setting.columns)
        found = self._minimum(problem, tolerance(setting))
        return noisy_weights(found, weight_sensitivity(setting), setting.epsilon, noise)


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(_Linear):
    """A linear classifier fitted to an objective that is tilted at random: ε-private (empirical risk minimisation).

    Parameters
    ----------
    epsilon
        The whole budget. Every output costs all of it.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The number of classes: 0, …, classes − 1. Any other class counts as 0.
    loss
        ``"logistic"``, or ``"huber"`` for a support vector machine.
    regularizer
        Λ. By default chosen for accuracy under noise. One too small for ε is raised to c/n(e^(ε/2) − 1), where c is ¼
        for the logistic loss and 1 for the other.
    intercept
        Whether to fit a constant.
    features
        The columns to use; all if None.
    missing
        What NaN counts as.
    lean
        Adds a straight line to the loss, −lean times the margin. The more the logistic loss leans, the more the fit
        looks at the difference of the classes' means only, which needs up to half the noise. By default chosen from ε,
        rows and columns; 0 for much data, for the Huber loss, or if a ``regularizer`` is given.

    More accurate than :class:`OutputPerturbation`, and not for models behind a test: what a verdict on it alone reveals
    is not bounded. A 32nd of ε pays for the distance from the exact minimum. Leaning is worse where classes are uneven
    and all records point one way, so centre features by public numbers. Weights are clamped to 2^14 on either side.

    >>> few, many = (ObjectivePerturbation(epsilon=1, norm=1).setting(size, 20).lean for size in (300, 30_000))
    >>> round(few, 2), many
    (0.45, 0.0)

    Proof: thm-objective-perturbation
    """

    lean: Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, lean=optional(tuning.as_lean))

    def _setting(self, size: int, columns: int, epsilon: Fraction) -> Setting:
        lean, regularizer = self.lean, self.regularizer
        if lean is None:
            chosen = regularizer is None and self.loss == "logistic"
            lean = tuning.noise_lean(size, columns, float(epsilon)) if chosen else 0.0
        if regularizer is None:
            regularizer = tuning.objective_regularizer(self.loss, size, columns, float(epsilon), float(lean))
        least = CURVATURE[self.loss] / (size * (bracket.exp(min(epsilon, Fraction(200)) / 2).lower - 1))
        raised = max(float(regularizer), float(least) * (1 + 2.0**-40))  # half of ε at least is for the noise
        return Setting(self.loss, size, columns, epsilon, raised, float(lean))

    def _weights(self, setting: Setting, rows: FloatArray, noise: NoiseSource) -> tuple[float, ...]:
        near = tilted_tolerance(setting)
        grid = tilt_grid(setting)
        tilt = rounded_spherical(noise, tilt_scale(setting) / grid.step, setting.columns)
        pull = leaning(rows, setting.lean)
        whole = tuple(entry * grid.step + lean for entry, lean in zip(tilt, pull, strict=True))
        found = self._minimum(Problem(self.loss, rows, setting.regularizer, whole), near / 2)
        return noisy_weights(found, 2 * near / Fraction(setting.regularizer), setting.epsilon / 32, noise)


def leaning(rows: FloatArray, lean: float) -> list[Fraction]:
    """The gradient of the straight lines, −lean·Σ rows, each coordinate of the sum to half a unit in the last place."""
    if lean == 0:
        return [Fraction(0)] * rows.shape[1]
    return [-Fraction(lean) * Fraction(fsum(column.tolist())) for column in rows.T]


def tilt_grid(setting: Setting) -> Grid:
    """The grid that the tilt is rounded to: so fine that rounding costs a fourth of the tolerance at most.

    Proof: thm-objective-perturbation
    """
    return Grid.within(tilted_tolerance(setting) * setting.size / (2 * (isqrt(setting.columns) + 1)))


def tilt_scale(setting: Setting) -> Fraction:
    """The scale of the tilt's length: 2·(1 + lean), which one person moves the gradients by, over its ε.

    Proof: thm-objective-perturbation
    """
    return 2 * (1 + Fraction(setting.lean)) / tilt_epsilon(setting)


def tilted_tolerance(setting: Setting) -> Fraction:
    """The :func:`tolerance` of a tilted problem, and at least eight times what summing the straight lines errs by."""
    usual = 8 * setting.columns * float(tilt_scale(setting)) + setting.lean * setting.size
    summing = Fraction(setting.lean) * (isqrt(setting.columns) + 1) / 2**50
    return max(tolerance(setting, usual, finest=20), summing)


def tilt_epsilon(setting: Setting) -> Fraction:
    """What remains for the tilt: ε less the distance's 32nd and ln(1 + c/nΛ), which the curvature costs.

    Proof: thm-objective-perturbation
    """
    curvature = CURVATURE[setting.loss] / (setting.size * Fraction(setting.regularizer))
    return setting.epsilon * 31 / 32 - bracket.log(1 + curvature).upper


def tolerance(setting: Setting, tilt: float = 0.0, finest: int = 10) -> Fraction:
    """How long the gradient may be where the solver stops: 2^−finest/n, or eight times what floats can certify.

    The lengths that it is made for are usual ones; where they are passed, the solver takes more bits.
    """
    usual = sqrt(2 / setting.regularizer) + tilt / (setting.size * setting.regularizer)
    shape = (setting.size, setting.columns)
    floor_ = gradient_error(setting.loss, shape, setting.regularizer, usual, tilt)
    return Fraction(min(max(2.0**-finest / setting.size, 8 * floor_), 1.0))


def weight_sensitivity(setting: Setting) -> Fraction:
    """How far one person moves the fitted weights, in L2: 2/nΛ, and 2τ/Λ for the distance from the minimum.

    Proof: lem-weight-sensitivity
    """
    return (Fraction(2, setting.size) + 2 * tolerance(setting)) / Fraction(setting.regularizer)


def weight_grid(sensitivity: Fraction, columns: int, epsilon: Fraction) -> Grid:
    """The grid of weights: for all together, a thousandth of how far they move, or of the noise, if that is less."""
    return Grid.within(sensitivity / (1024 * (isqrt(columns) + 1) * max(epsilon, Fraction(1))))


def rounded_sensitivity(sensitivity: Fraction, columns: int, epsilon: Fraction) -> Fraction:
    """How far one person moves the weights once they are rounded to the grid.

    Proof: thm-output-perturbation
    """
    step = weight_grid(sensitivity, columns, epsilon).step
    return sensitivity + step * root_above(Fraction(columns))


def weight_distance(setting: Setting) -> Fraction:
    """How far one person moves the published weights of output perturbation, noise being equal.

    Proof: thm-error-test
    """
    return rounded_sensitivity(weight_sensitivity(setting), setting.columns, setting.epsilon)


def noisy_weights(
    weights: list[Fraction], sensitivity: Fraction, epsilon: Fraction, noise: NoiseSource
) -> tuple[float, ...]:
    """Weights on a grid with spherical noise on the grid, clamped.

    Proof: thm-output-perturbation
    """
    size = len(weights)
    step = weight_grid(sensitivity, size, epsilon).step
    added = rounded_spherical(noise, rounded_sensitivity(sensitivity, size, epsilon) / (step * epsilon), size)
    farthest = floor(FARTHEST_WEIGHT / step)
    numbers = (floor(weight / step + Fraction(1, 2)) + q for weight, q in zip(weights, added, strict=True))
    return tuple(float(max(-farthest, min(farthest, number)) * step) for number in numbers)


def as_features(columns: Any, name: str) -> tuple[int, ...]:
    """Numbers of columns, at least one, none twice."""
    numbers = tuple(columns) if isinstance(columns, Iterable) else ()
    if not numbers or len(set(numbers)) < len(numbers) or any(type(n) is not int or n < 0 for n in numbers):
        raise InvalidValue(f"{name} are different numbers of columns, counted from 0, got {columns!r}")
    return numbers
