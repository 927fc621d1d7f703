"""Choosing the best of several candidates by score: the exponential mechanism and permute-and-flip."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost import bracket
from expost.checks import as_confidence, as_positive, as_whole, check_fields, check_monotone, whole_sensitivity
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanisms.accuracy import Calibrated
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.numbers import OfArrays, shape_of, whole_numbers
from expost.noise import NoiseSource, bernoulli_exp, vector
from expost.noise.grid import FARTHEST, Grid
from expost.noise.laws import Rate

_FEW = 32  # fewer candidates than this are chosen from one coin at a time


@dataclass(frozen=True, kw_only=True)
class Exponential(OfArrays, FixedCost[NDArray[Any], int], Calibrated[NDArray[Any], int]):
    """The exponential mechanism: the index of a candidate, drawn with probability proportional to
    e^(rate·score).

    Parameters
    ----------
    epsilon
        The whole budget. Every output costs all of it.
    sensitivity
        A bound on how far one person moves any score.
    monotone
        Whether between neighbours all scores move the same way, as counts do under ``"add-remove"``. Halves the noise.
    grid
        The step that float scores are rounded to, a power of two. By default a thousandth of the sensitivity.
    neighbours
        The relation that ``sensitivity`` is for: ``"add-remove"``, ``"substitute"``, or None for whichever the ledger
        has.

    The data is a one-dimensional array of scores, one for each candidate. Scores are clamped to ±2^60 steps of the
    grid, and NaN is the lowest score of all.

    >>> chosen = Exponential.for_accuracy(10, 0.95, sensitivity=1, n=100)
    >>> chosen.epsilon, chosen.error_bound(0.95, n=100)
    (1.38015493158, 10)

    Proof: thm-exponential
    """

    _about = ("n", "floats")

    epsilon: Number
    sensitivity: Number
    monotone: bool = False
    grid: Number | None = None
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, "epsilon")
        as_positive(self.sensitivity, "sensitivity")
        as_neighbours(self.neighbours)
        if self.grid is not None:
            Grid.of(self.grid)
        check_monotone(self.monotone, self.neighbours)

    def check(self, data: Any) -> None:
        """A one-dimensional array of at least one score."""
        shape = shape_of(data)
        if shape.dimensions is None or len(shape.dimensions) != 1 or not shape.size:
            given = type(data).__name__ if shape.dimensions is None else f"shape {shape.dimensions}"
            raise InvalidValue(f"scores are a one-dimensional numpy array with at least one entry, got {given}")
        vector.check_rate(self._calibrate(shape.floats)[1])

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> int:
        """The chosen index."""
        grid, rate = self._calibrate(shape_of(data).floats)
        return self._choose(_shortfalls(np.asarray(data), grid), rate, noise)

    def error_bound(self, confidence: Number, *, n: int, floats: bool = False) -> float:
        """How far below the best score the chosen one is at most, with this confidence.

        Proof: lem-selection-error
        """
        miss = 1 - as_confidence(confidence)
        n = as_whole(n, "n")
        grid, rate = self._calibrate(floats)
        steps = max(ceil(bracket.log((n - 1) / miss).upper / rate) - 1, 0) if n > 1 else 0
        return grid.value(steps + 1) if floats else steps

    @property
    def what(self) -> str:
        """An index."""
        return "candidate"

    def describe(self, output: int) -> str:
        """Which candidate was chosen."""
        return f"candidate {output}"

    def _choose(self, shortfalls: NDArray[np.int64], rate: Fraction, noise: NoiseSource) -> int:
        if shortfalls.size >= _FEW:
            return vector.categorical(noise, shortfalls, Rate(rate))
        short = shortfalls.tolist()
        while True:
            candidate = noise.below(len(short))
            if bernoulli_exp(noise, rate * short[candidate]):
                return candidate

    def _calibrate(self, floats: bool) -> tuple[Grid, Fraction]:
        """The grid of the scores, and the rate at which a step of score counts."""
        sensitivity = exact(self.sensitivity, "sensitivity")
        if not floats:
            grid, steps = Grid(0), floor(whole_sensitivity(self.sensitivity))
        else:
            step = sensitivity / 1024 if self.grid is None else exact(self.grid, "grid")
            grid = Grid.within(step)
            steps = grid.l1(sensitivity, 1)
        return grid, exact(self.epsilon, "ε") / (steps if self.monotone else 2 * steps)


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Exponential):
    """Permute-and-flip: the index of a candidate with a high score, never worse on average than :class:`Exponential`.

    Each candidate flips a coin that shows heads with probability e^(−rate·shortfall), where the shortfall is its
    distance from the best score. One of the heads is chosen uniformly. That is the same as permuting the candidates and
    taking the first heads, and as report-noisy-max with one-sided exponential noise.

    Parameters
    ----------
    epsilon, sensitivity, monotone, grid, neighbours
        As for :class:`Exponential`, and so is the data.

    Proof: thm-permute-and-flip
    """

    def _choose(self, shortfalls: NDArray[np.int64], rate: Fraction, noise: NoiseSource) -> int:
        if shortfalls.size < _FEW:
            heads = [i for i, short in enumerate(shortfalls.tolist()) if bernoulli_exp(noise, rate * short)]
        else:
            heads = np.flatnonzero(vector.geometric_reaches(noise, rate, shortfalls)).tolist()
        return int(heads[noise.below(len(heads))])


def _shortfalls(scores: NDArray[Any], grid: Grid) -> NDArray[np.int64]:
    """How many steps each score is below the best."""
    lowest = -FARTHEST * grid.step
    points = grid.round_all(scores, missing=lowest) if scores.dtype.kind == "f" else whole_numbers(scores)
    return np.asarray(points.max() - points, np.int64)
