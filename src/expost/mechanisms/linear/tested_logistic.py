"""Logistic regression that is released only if its error on held-out records is small: the paper's Algorithm 5.

The error is the mean of ``|tanh(w·z/2) − y|``, twice the probability of the wrong class, between 0 and 2. It moves
little when the weights do, so a verdict on it reveals little of the training data as long as the weights stay unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost import bracket
from expost.checks import as_confidence, requested_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.mechanisms.linear.model import LinearModel, signs_of
from expost.mechanisms.linear.perturbation import (
    FARTHEST_WEIGHT,
    ObjectivePerturbation,
    OutputPerturbation,
    weight_distance,
)
from expost.mechanisms.linear.tested import ModelTest, Tested, held_out_size
from expost.mechanisms.linear.tuning import MOST_REGULARIZER, output_regularizer
from expost.mechanisms.numbers import OfArrays, root_above, shape_of
from expost.noise import NoiseSource, discrete_laplace

_OF_MODEL = ("epsilon", "norm", "classes", "intercept", "features", "missing")
_STEPS = 2**40
"""Errors of single records are whole numbers of such parts."""


def error_of(model: LinearModel, records: Any, classes: int = 2) -> float:
    """The mean over records and problems of ``|tanh(margin/2) − y|``: 0 is perfect, 1 knows nothing, 2 is worst."""
    with np.errstate(all="ignore"):
        table = np.asarray(records, np.float64)
    return total_error(model, table, classes) / (_STEPS * len(table) * len(model.weights))


def total_error(model: LinearModel, table: Any, classes: int) -> int:
    """The sum of all errors, in steps. Each is a whole number between 0 and two times 2^40."""
    with np.errstate(all="ignore"):
        values = np.tanh(0.5 * model.margins(table[:, :-1]))
        signs = np.column_stack(signs_of(table[:, -1], classes))
        steps = np.floor(np.abs(values - signs) * _STEPS + 0.5)
        whole = np.clip(steps, 0, 2 * _STEPS).astype(np.int64)
    return (int((whole >> 20).sum()) << 20) + int((whole & (2**20 - 1)).sum())  # nothing passes 64 bits


def error_sensitivity(distance: Fraction) -> Fraction:
    """How far the error of one record moves when the weights move so far: 2·tanh(distance/4), rounded up.

    Proof: lem-error-sensitivity
    """
    power = bracket.exp(min(distance, Fraction(200)) / 2).upper
    return 2 * (power - 1) / (power + 1)


@dataclass(frozen=True, kw_only=True)
class ErrorTest(ModelTest):
    """Passes if the error on the held-out records, with discrete Laplace noise, is at most ``threshold``.

    ``distance`` bounds how far one person moves the unseen weights of each problem, noise being equal. For weights of
    :class:`~expost.mechanisms.OutputPerturbation` λ = ``epsilon``, and training data for which the distance is larger
    is refused; no other mechanism has a λ. Made by :class:`TestedLogisticRegression`, which knows that distance.

    Proof: thm-error-test
    """

    __test__ = False  # not one of pytest's

    epsilon: Number
    threshold: Number
    classes: int
    distance: Fraction
    columns: int

    def reveals_of(self, mechanism: Mechanism) -> Number | None:
        """λ = ε for output perturbation: the noise covers what either kind of record can do. Otherwise None."""
        return self.epsilon if type(mechanism) is OutputPerturbation else None

    def check(self, held_out: Any) -> None:
        """Rows of numbers, at least one, the class last."""
        dimensions = shape_of(held_out).dimensions
        if dimensions is None or len(dimensions) != 2 or min(dimensions) < 1:
            raise InvalidValue(f"held-out records are a two-dimensional array, the class last, got shape {dimensions}")

    def check_pair(self, mechanism: Mechanism, train: Any, held_out: Any) -> None:
        """As many columns in both halves; classes and a distance that are those of the model."""
        if not isinstance(mechanism, OutputPerturbation | ObjectivePerturbation):
            raise InvalidValue(f"ErrorTest is about linear models, got {type(mechanism).__name__}")
        size, columns = train.shape
        if held_out.shape[1] != columns:
            raise InvalidValue(
                f"training records have {columns} columns and held-out ones {held_out.shape[1]}: give equally many"
            )
        setting = mechanism.setting(size, columns - 1)
        if (self.classes, self.columns) != (mechanism.classes, setting.columns):
            raise InvalidValue(
                f"the model has {mechanism.classes} classes and {setting.columns} weights, the test is for "
                f"{self.classes} and {self.columns}: make it with those of the model"
            )
        if isinstance(mechanism, OutputPerturbation) and self.distance < weight_distance(setting):
            needed = float(weight_distance(setting))
            raise InvalidValue(
                f"one of {size} records moves the weights by up to {needed:g}, farther than the test's distance "
                f"{float(self.distance):g}: give at least that"
            )

    def sensitivity(self, size: int) -> Fraction:
        """How far one person, in training or held out, moves the sum of the errors of ``size`` records, in steps.

        Proof: thm-error-test
        """
        problems = 1 if self.classes == 2 else self.classes
        float_error = Fraction(self.columns + 16, 2**52) * FARTHEST_WEIGHT * root_above(Fraction(self.columns))
        trained = ceil((error_sensitivity(self.distance) + 2 * float_error) * _STEPS) + 1
        return Fraction(problems * max(size * trained, 2 * _STEPS))

    def passes(self, output: LinearModel, held_out: Any, noise: NoiseSource) -> bool:
        """Whether the noisy error is at most the threshold."""
        size, problems = len(held_out), len(output.weights)
        with np.errstate(all="ignore"):
            total = total_error(output, np.asarray(held_out, np.float64), self.classes)
        limit = floor(exact(self.threshold, "threshold") * _STEPS * size * problems)
        rate = exact(self.epsilon, "ε of the test") / self.sensitivity(size)
        return total + discrete_laplace(noise, rate) <= limit

    def error_bound(self, confidence: Number, *, n: int) -> float:
        """What the noise on the mean error of ``n`` records stays below with this confidence, of at least 1/2."""
        level = as_confidence(confidence)
        if level < Fraction(1, 2):
            raise InvalidValue(f"confidence is at least 1/2 here, got {confidence!r}")
        scale = self.sensitivity(n) / exact(self.epsilon, "ε of the test")
        problems = 1 if self.classes == 2 else self.classes
        return float(scale * bracket.log(1 / (2 * (1 - level))).upper / (_STEPS * n * problems))


@dataclass(frozen=True, kw_only=True)
class TestedLogisticRegression(OfArrays, Mechanism[NDArray[Any], LinearModel | Withheld]):
    """Logistic regression on some of the records, published only if its noisy error on the others is small; else ⊥.

    Parameters
    ----------
    epsilon
        The whole budget, which a model costs.
    test_share
        What the test costs as a share of ε, above 0 and at most 1. ⊥ costs only that.
    threshold
        The largest error that passes. The error is twice the mean probability that the model gives to the wrong class:
        0 is perfect, 1 knows nothing, 2 is always sure and wrong. With K classes, each against the rest, the share of
        wrong predictions is at most K/2 times the error.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    held_out
        The share of records for the test, drawn at random.
    classes
        The number of classes: 0, …, classes − 1. Any other class counts as 0.
    regularizer
        Λ. By default large enough that, with 95 %, training records add noise of at most 0.1 to the error.
    intercept
        Whether to fit a constant.
    features
        The columns to use; all if None.
    missing
        What NaN counts as.

    The model is that of :class:`~expost.mechanisms.OutputPerturbation`, and the data as it reads it.

    >>> TestedLogisticRegression(epsilon=1, test_share=0.1, threshold=0.5, norm=1).guarantee
    Guarantee({'released': 1, 'withheld': 0.1}, neighbours='substitute')

    Proof: thm-tested-logistic
    """

    __test__ = False  # not one of pytest's

    epsilon: Number
    test_share: Number
    threshold: Number
    norm: Number
    held_out: Number = "0.3"
    classes: int = 2
    regularizer: Number | None = None
    intercept: bool = True
    features: tuple[int, ...] | None = None
    missing: Number = 0

    def __post_init__(self) -> None:
        if not 0 <= exact(self.threshold, "threshold") <= 2:
            raise InvalidValue(f"threshold is an error, between 0 and 2, got {self.threshold!r}")
        checked = self.model(1)
        for name in _OF_MODEL:
            object.__setattr__(self, name, getattr(checked, name))
        _ = self.test_epsilon, self.guarantee

    @cached_property
    def test_epsilon(self) -> float:
        """ε of the test: ``test_share`` of the whole, rounded down."""
        share = exact(self.test_share, "test_share")
        if not 0 < share <= 1:
            raise InvalidValue(
                f"test_share is what the test costs as a share of ε, above 0 and at most 1, got {self.test_share!r}"
            )
        return requested_epsilon(exact(self.epsilon, "ε") * share, "ε of the test")

    def model(self, training: int) -> OutputPerturbation:
        """What trains the model, on ``training`` records."""
        given: dict[str, Any] = {name: getattr(self, name) for name in _OF_MODEL}
        chosen = self.regularizer if self.regularizer is not None else self._regularizer(training)
        return OutputPerturbation(regularizer=chosen, **given)

    def _regularizer(self, training: int) -> float:
        """That of output perturbation, but at least 10·ln 10/nε of the test: see ``regularizer`` above."""
        problems = 1 if self.classes == 2 else self.classes
        share = float(requested_epsilon(self.epsilon)) / problems
        for_noise = output_regularizer(training, share)
        return min(max(for_noise, 10 * log(10) / (training * float(self.test_epsilon))), MOST_REGULARIZER)

    def tested(self, size: int, features: int) -> Tested:
        """The model behind its test, for ``size`` records with ``features`` features."""
        training = size - held_out_size(size, exact(self.held_out, "held_out"))
        model = self.model(training)
        setting = model.setting(training, features)
        test = ErrorTest(
            epsilon=self.test_epsilon,
            threshold=self.threshold,
            classes=self.classes,
            distance=weight_distance(setting),
            columns=setting.columns,
        )
        return Tested(mechanism=model, test=test, held_out=self.held_out)

    @cached_property
    def guarantee(self) -> Guarantee:
        """E(model) = ε, E(⊥) = ε of the test; the same whatever the number of records."""
        guarantee = self.tested(2, 1 if self.features is None else len(self.features)).guarantee
        return Guarantee(
            {part: guarantee.cost_of(part).exact_epsilon for part in ("released", "withheld")}, neighbours="substitute"
        )

    def error_bound(self, confidence: Number, *, n: int, features: int) -> float:
        """What the test's noise on the error stays below with this confidence, for ``n`` records in all."""
        test = self.tested(n, features).test
        assert isinstance(test, ErrorTest)
        return test.error_bound(confidence, n=held_out_size(n, exact(self.held_out, "held_out")))

    def check(self, data: Any) -> None:
        """Rows of numbers with the class last, at least two."""
        self.model(1).check(data)
        self.tested(len(data), data.shape[1] - 1).check(data)

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> LinearModel | Withheld:
        """The model, or ⊥."""
        return self.tested(len(data), data.shape[1] - 1).sample(data, noise)

    def part_of(self, output: LinearModel | Withheld) -> Part:
        """Whether a model was released."""
        return "withheld" if output is WITHHELD else "released"

    def describe(self, output: LinearModel | Withheld) -> str:
        """What kind of model came out."""
        return self.model(1).describe(output)
