"""Logistic regression by noisy gradient descent that stops when it is good enough, or when its gradients disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import hypot, isqrt, nextafter, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.accounting.losses import GaussianNoise
from expost.accounting.normal import normal_quantile
from expost.accounting.planning import plan
from expost.checks import as_confidence, as_flag, as_share, as_whole, check_fields, finite, optional
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.mechanisms.iterative import Iterative, NormalStepNoise
from expost.mechanisms.linear.model import TrainedModel, chosen, signs_of, unit_rows
from expost.mechanisms.linear.perturbation import as_features, check_labelled
from expost.mechanisms.linear.solver import FloatArray
from expost.mechanisms.linear.tested import halves, held_out_size
from expost.mechanisms.numbers import OfArrays
from expost.mechanisms.wrapper import Wrapper
from expost.noise import NoiseSource

_STEPS = 2**20
"""Gradients of single records are whole numbers of such parts."""
_BLOCK = 2**22
"""About so many of these whole numbers are in memory at once."""
_MOST_STOPS = 100
"""Calibrating the noise takes time quadratic in the number of stops: seconds for a hundred, an hour for thousands."""
_SURE = Fraction(95, 100)
"""The confidence with which a model is good enough."""
_MOMENTUM = 0.7
_REACH, _FASTEST = 8, 50
"""How far noise alone may carry the weights in all steps, and the fastest rate: they were chosen on the records of
``benchmarks/choices/descent.py``, which no benchmark uses."""


class Iterate(NamedTuple):
    """Where descent is, a row of weights for each problem: a function of the gradients that were published."""

    rate: float
    weights: FloatArray
    velocity: FloatArray

    @classmethod
    def start(cls, shape: tuple[int, int], rate: float) -> Iterate:
        """At zero, where all classes are as likely."""
        return cls(rate, np.zeros(shape), np.zeros(shape))

    @property
    def ahead(self) -> FloatArray:
        """Where the next gradient is asked for (Nesterov's method)."""
        return np.asarray(self.weights - self.rate * _MOMENTUM * self.velocity)

    def after(self, gradient: FloatArray) -> Iterate:
        """One step further."""
        velocity = np.clip(_MOMENTUM * self.velocity + gradient.reshape(self.weights.shape), -1e6, 1e6)
        return Iterate(self.rate, np.clip(self.weights - self.rate * velocity, -1e6, 1e6), velocity)


@dataclass(frozen=True, kw_only=True)
class LogisticDescent(OfArrays, Wrapper[NDArray[Any], TrainedModel]):
    """Logistic regression by gradient descent (DP-SGD on all records) that may stop early, and pays for its steps.

    It publishes a model. After every ``every`` steps it may stop: if the model is good enough on records held out for
    that, or if its last gradients disagree. Both are decided by what is published, noise included.

    Parameters
    ----------
    epsilon
        The whole budget, for all steps. Fewer steps cost less.
    delta
        The δ of every output.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The number of classes: 0, …, classes − 1. Any other class counts as 0. More classes need no more ε.
    steps
        The largest number of steps.
    every
        The number of steps between stops, of which there are at most 100.
    good_enough
        An accuracy, such as 0.9: it stops as soon as the share of records held out that the model labels right,
        measured with noise, says with 95 % confidence that it is at least that. None trains on all records, and holds
        none out.
    held_out
        The share of records that are held out for ``good_enough``, drawn at random.
    patience
        It stops if the last so many gradients disagree: if two of them point apart, on average. None never does.
    learning_rate
        How far a step goes. By default so far that the noise of all steps carries the weights no farther than 8.
    intercept
        Whether to fit a constant.
    features
        The columns to use; all if None.
    missing
        What NaN counts as.

    The data is a two-dimensional array, one row per person: the features, and in the last column the number of the
    class. A step asks for the gradient of the logistic loss, from which no record counts for more than at the start.
    The score of ``good_enough`` costs no ε of its own: a record is trained on or scored on, never both.

    >>> training = LogisticDescent(epsilon=1, delta=1e-6, norm=1, steps=10, every=5)
    >>> [round(training.guarantee.epsilon_of(steps), 2) for steps in (5, 10)]
    [0.69, 1.0]

    Proof: thm-descent
    """

    epsilon: Number
    delta: Number
    norm: Number
    classes: int = 2
    steps: int = 10
    every: int = 1
    good_enough: Number | None = None
    held_out: Number = "0.3"
    patience: int | None = 6
    learning_rate: Number | None = None
    intercept: bool = True
    features: tuple[int, ...] | None = None
    missing: Number = 0

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "delta", "missing", norm=finite)
        if not 1e-100 <= float(self.norm) <= 1e100:
            raise InvalidValue(f"norm is the public length of the longest row, above 0, got {self.norm!r}")
        check_fields(self, classes=partial(as_whole, least=2, most=1000), steps=partial(as_whole, most=10_000))
        check_fields(self, every=partial(as_whole, most=self.steps))
        if self.steps % self.every:
            raise InvalidValue(f"steps are a multiple of every, got {self.steps} and {self.every}")
        if self.steps // self.every > _MOST_STOPS:
            raise InvalidValue(
                f"training may stop at up to {_MOST_STOPS} places, got {self.steps // self.every} "
                f"({self.steps} steps, every {self.every}): test less often"
            )
        check_fields(self, good_enough=optional(_as_accuracy), patience=optional(partial(as_whole, least=2)))
        check_fields(self, learning_rate=optional(_as_rate), intercept=as_flag, features=optional(as_features))
        as_share(self.held_out, "held_out")
        _ = self.guarantee

    @property
    def noise_multiplier(self) -> float:
        """The noise of each step over its sensitivity: the least, to three digits, that keeps ε."""
        return _ratio(exact(self.epsilon, "ε"), exact(self.delta, "δ"), self.steps, self.every)

    @cached_property
    def inner(self) -> Iterative:
        """The steps as they are priced, in units of how far one record moves them."""
        return Iterative(
            steps=(GaussianNoise(self.noise_multiplier),) * self.steps,
            stops=_stops(self.steps, self.every),
            delta=self.delta,
            sensitivity=1,
            neighbours="substitute",
        )

    def check(self, data: Any) -> None:
        """Rows of numbers with the class last; at least two if some are held out."""
        check_labelled(data, self.features, self.intercept)
        self._training_size(len(data))

    def _training_size(self, size: int) -> int:
        if self.good_enough is None:
            return size
        return size - held_out_size(size, exact(self.held_out, "held_out"))

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> TrainedModel:
        """The model at the stop that was reached."""
        with np.errstate(all="ignore"):
            table = np.asarray(data, np.float64)
        train, tested = (table, table[:0]) if self.good_enough is None else halves(table, self.held_out, noise)
        rows = unit_rows(chosen(train[:, :-1], self.features), float(self.norm), float(self.missing), self.intercept)
        wanted = 0.5 + 0.5 * np.column_stack(signs_of(train[:, -1], self.classes))
        now = Iterate.start((wanted.shape[1], rows.shape[1]), self._rate(len(rows), wanted.shape[1], rows.shape[1]))
        outputs: list[NDArray[np.int64]] = []
        added = self._noise(2 * self._longest(*now.weights.shape))
        while True:
            outputs.append(added.sample(self._gradient(rows, wanted, now.ahead), noise))
            now = now.after(outputs[-1] / (_STEPS * len(rows)))
            if len(outputs) % self.every == 0:
                score = self._score(now.weights, tested, noise) if len(tested) else None
                if len(outputs) == self.steps or self._settled(outputs) or self._reached(score, len(tested)):
                    return self._model(now.weights, len(outputs), score)

    def _noise(self, sensitivity: int, steps: int = 1) -> NormalStepNoise:
        """The noise of a step; or of a number that is asked for once in so many steps, and costs as much as they do."""
        multiplier = self.noise_multiplier if steps == 1 else nextafter(self.noise_multiplier / sqrt(steps), 1e300)
        return NormalStepNoise(noise_multiplier=multiplier, sensitivity=sensitivity, grid=None, missing=0)

    def _longest(self, problems: int, columns: int) -> int:
        """The most that one record adds to a gradient, in parts and L2; what would be longer is 0."""
        return int(_farthest(problems) * _STEPS) + isqrt(problems * columns) + 2

    def _gradient(self, rows: FloatArray, wanted: FloatArray, at: FloatArray) -> NDArray[np.int64]:
        """The exact sum of the records' gradients, each rounded and of bounded length by itself."""
        problems, columns = at.shape
        total, most = np.zeros(at.size, np.int64), self._longest(problems, columns) ** 2
        residuals = _residuals(rows @ at.T, wanted) * _STEPS
        size = max(_BLOCK // at.size, 1)
        for start in range(0, len(rows), size):
            some = slice(start, start + size)
            parts = np.rint(residuals[some, :, None] * rows[some, None, :]).astype(np.int64).reshape(-1, at.size)
            parts[np.einsum("ij,ij->i", parts, parts) > most] = 0
            total += parts.sum(axis=0)
        return total

    def _rate(self, size: int, problems: int, columns: int) -> float:
        """How far a step goes. From public facts: the less noise, the farther."""
        if self.learning_rate is not None:
            return float(self.learning_rate)
        noise = (
            2 * self._longest(problems, columns) * self.noise_multiplier * sqrt(problems * columns) / (_STEPS * size)
        )
        return (1 - _MOMENTUM) * min(_FASTEST, _REACH / (noise * sqrt(self.steps)))

    def _model(self, weights: FloatArray, steps: int, score: float | None) -> TrainedModel:
        rows = tuple(map(tuple, weights.tolist()))
        return TrainedModel(
            rows, float(self.norm), self.intercept, float(self.missing), self.features, steps=steps, score=score
        )

    def _score(self, weights: FloatArray, tested: FloatArray, noise: NoiseSource) -> float:
        """The share of right predictions on records held out, with noise."""
        labels = np.where(np.isin(tested[:, -1], np.arange(self.classes)), tested[:, -1], 0)
        right = int(np.count_nonzero(self._model(weights, 0, None).predict(tested[:, :-1]) == labels))
        return float(self._noise(1, self.every).sample(right, noise) / len(tested))

    def _settled(self, outputs: Sequence[Any]) -> bool:
        """Whether the last published gradients disagree: two of them point apart, on average over all pairs."""
        if self.patience is None or len(outputs) < self.patience:
            return False
        last = np.array(outputs[-self.patience :], np.float64)
        together = last.sum(axis=0)
        return float(together @ together) <= float((last * last).sum())

    def _reached(self, score: float | None, held_out: int) -> bool:
        """Whether a noisy score on so many records says, with 95 % confidence, that the model is good enough.

        The score of one that is just not good enough has noise, and is about these records and not about others.
        """
        if self.good_enough is None or score is None:
            return False
        enough = float(self.good_enough)
        sampling = normal_quantile(2 * (1 - _SURE)) * sqrt(enough * (1 - enough) / held_out)
        return score - hypot(self._score_error(_SURE, held_out), sampling) >= enough

    def error_bound(self, confidence: Number, *, n: int) -> float:
        """What the noise on a score stays below with this confidence, of at least 1/2, for ``n`` records in all."""
        level = as_confidence(confidence)
        if level < Fraction(1, 2):
            raise InvalidValue(f"confidence is at least 1/2 here, got {confidence!r}")
        return self._score_error(level, held_out_size(n, exact(self.held_out, "held_out")))

    def _score_error(self, level: Fraction, held_out: int) -> float:
        deviation = self.noise_multiplier / sqrt(self.every)
        return (normal_quantile(2 * (1 - level)) * deviation + 0.5) / held_out  # half for rounding the noise

    def part_of(self, output: TrainedModel) -> int:
        """The steps that were taken."""
        return output.steps

    def describe(self, output: TrainedModel) -> str:
        """How far it went, and how good the model is if that was asked for."""
        score = "" if output.score is None else f", held-out accuracy {output.score:.3f}"
        return f"{output.steps} of at most {self.steps} steps{score}"


def _as_accuracy(given: Any, name: str) -> float:
    """A share of right predictions."""
    number = finite(given, name)
    if not 0 < number <= 1:
        raise InvalidValue(f"{name} is an accuracy, above 0 and at most 1 (such as 0.9), got {given!r}")
    return number


def _as_rate(given: Any, name: str) -> float:
    rate = finite(given, name)
    if not 0 < rate <= 1e6:
        raise InvalidValue(f"{name} is above 0 and at most a million, got {given!r}")
    return rate


def _farthest(problems: int) -> float:
    """How long the residual of a record may be: as long as at the start, where all classes are as likely."""
    return 0.5 if problems == 1 else sqrt(1 - 1 / problems)


def _residuals(margins: FloatArray, wanted: FloatArray) -> FloatArray:
    """The probabilities that the margins stand for less those that are wanted, shortened to :func:`_farthest`."""
    margins = np.clip(margins, -1e3, 1e3)
    if margins.shape[1] == 1:
        return np.asarray(np.clip(0.5 * np.tanh(0.5 * margins) + 0.5 - wanted, -0.5, 0.5))
    odds = np.exp(margins - margins.max(axis=1, keepdims=True))
    found = odds / odds.sum(axis=1, keepdims=True) - wanted
    lengths = np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]
    return np.asarray(found * np.minimum(1, _farthest(margins.shape[1]) / np.maximum(lengths, 1e-9)))


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
