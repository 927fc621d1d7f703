"""Randomised response: everyone's answer, true or not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.accounting.renyi import Prices, randomized_response
from expost.checks import as_confidence, as_whole, check_fields
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanisms.accuracy import Calibrated
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.numbers import Numeric, shape_of, whole_numbers
from expost.noise import NoiseSource, bernoulli_exp, vector
from expost.noise.fixed import exp_minus
from expost.noise.grid import FARTHEST


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(FixedCost[Numeric, Any], Calibrated[Numeric, Any]):
    """Randomised response: one of several answers for each person, the truth e^ε times as likely as each lie.

    Parameters
    ----------
    epsilon
        The whole budget, for each person's answer.
    choices
        The number of answers: 0, …, choices − 1.
    neighbours
        The relation of the guarantee: a person whose answer changes. None for whichever the ledger has.

    The data is a whole number, or an array with one entry per person. Entries outside the choices count as the nearest
    one. The length of an array is public. :meth:`estimate` turns answers into shares of the population, without bias.

    >>> RandomizedResponse.for_accuracy(0.05, 0.95, n=10_000, choices=2).epsilon
    0.610350355353

    Proof: thm-randomized-response
    """

    _about = ("n",)
    _remedy = "that takes more answers, or ask for less"

    epsilon: Number
    choices: int
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", choices=partial(as_whole, least=2, most=FARTHEST))
        if as_neighbours(self.neighbours) == "add-remove":
            raise InvalidValue(
                "randomised response is about people who answer differently, and neighbours are 'add-remove': say "
                "neighbours='substitute', for with one answer more or less their number would tell"
            )
        object.__setattr__(self, "neighbours", "substitute")

    def renyi_prices(self, order: Number) -> Prices:
        """Of one person's answer.

        Proof: lem-renyi-response
        """
        return Prices.uniform(randomized_response(order, self.epsilon, self.choices))

    def check(self, data: Any) -> None:
        """Whole numbers."""
        if shape_of(data).floats:
            raise InvalidValue(f"randomised response needs whole numbers 0 to {self.choices - 1}, got floats")

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """Each entry, or another choice in its place."""
        shape = shape_of(data)
        if shape.dimensions is None:
            return self._answer(min(max(int(data), 0), self.choices - 1), noise)
        truth = np.clip(whole_numbers(data), 0, self.choices - 1)
        lies = vector.lies(noise, exact(self.epsilon, "ε"), self.choices, shape.size)
        return (truth + lies.reshape(truth.shape)) % self.choices

    def _answer(self, truth: int, noise: NoiseSource) -> int:
        rate = exact(self.epsilon, "ε")
        while True:
            answer = noise.below(self.choices)
            if answer == truth or bernoulli_exp(noise, rate):
                return answer

    def estimate(self, answers: NDArray[np.integer]) -> NDArray[np.float64]:
        """The share of each choice among those who answered, without bias; it may leave [0, 1].

        Proof: lem-response-estimate
        """
        counts = np.bincount(np.asarray(answers).ravel(), minlength=self.choices)
        lie = exp(-float(exact(self.epsilon, "ε")))
        shares = counts / max(counts.sum(), 1)
        return np.asarray((shares * (1 + (self.choices - 1) * lie) - lie) / (1 - lie), np.float64)

    def error_bound(self, confidence: Number, *, n: int) -> float:
        """How far off every estimated share is at most, with this confidence, from ``n`` answers.

        Proof: lem-response-estimate
        """
        lie = Fraction(exp_minus(exact(self.epsilon, "ε"), 128)[1], 2**128)
        spread = float((1 + (self.choices - 1) * lie) / (1 - lie))
        return _sampling_error(confidence, n, self.choices) * spread

    @property
    def what(self) -> str:
        """Answers, each of which may be a lie."""
        return "answer"

    def describe(self, output: Any) -> str:
        """How many answers there are."""
        shape = getattr(output, "shape", None)
        return f"answer {output}" if shape is None else f"{np.size(output)} answers among {self.choices} choices"


def _sampling_error(confidence: Number, n: int, choices: int) -> float:
    """Hoeffding's bound on every share at once."""
    miss = 1 - float(as_confidence(confidence))
    return sqrt(log(2 * choices / miss) / (2 * as_whole(n, "n")))
