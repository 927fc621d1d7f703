"""Sparse vector: many comparisons with a threshold, of which only the positive ones cost much.

One noisy threshold serves every question. Questions below it leak little; each one above it costs a share
of the budget. What was reserved for positives that did not occur is refunded.

It runs in one go over an array (``ledger.run``) or answers adaptive questions one at a time
(``ledger.open``). All noise is whole-numbered and exact, on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost import bracket
from expost.checks import as_confidence, as_whole
from expost.cost import Number
from expost.guarantee import Guarantee, Part
from expost.mechanisms.sparse_vector.comparisons import (
    CHUNK,
    FARTHEST_VALUE,
    MOST_SHARES,
    Asking,
    Thresholded,
    above_text,
    too_far,
)
from expost.mechanisms.sparse_vector.mask import AboveMask, answers_of, stopped_text
from expost.noise import NoiseSource
from expost.noise.sums import LaplaceSteps


@dataclass(frozen=True, kw_only=True)
class SparseVector(Thresholded):
    """The sparse vector technique ("above threshold"): which values lie above a threshold. It stops after ``at_most``.

    Parameters
    ----------
    threshold
        What values are compared with: one number for all of them, or one each.
    at_most
        The number of positives after which it stops.
    epsilon
        The whole budget, for the threshold and ``at_most`` positives. What positives did not use is refunded.
    sensitivity
        A bound on how far any one value moves between neighbouring databases.
    threshold_share
        The share of ε for the threshold (ε₁); the rest (ε₂) is for positives. By default the best one.
    monotone
        Whether all values grow, or all shrink, when a record is added, as counts do. Needs ``"add-remove"``; halves the
        noise.
    gap
        Whether to publish by how much each positive was above, at no cost.
    noise
        ``"one-sided"`` noise has half the variance. ``"two-sided"`` noise refunds more if there were few answers, or if
        nearly all were positive.
    grid
        The step that values are rounded to, a power of two. By default 1 if sensitivity and threshold are whole, and a
        thousandth of the sensitivity if not.
    missing
        What NaN counts as.
    neighbours
        The relation that ``sensitivity`` is for: ``"add-remove"``, ``"substitute"``, or None for whichever the ledger
        has.

    With ``ledger.run`` the data is a one-dimensional array, and the value an
    :class:`~expost.mechanisms.AboveMask`: above, below, or not compared, because the last positive allowed came before.
    With ``ledger.open`` questions are asked one at a time. Values are clamped to ±2^58 steps of the grid. A part (t, k)
    has the price t·ε₁ + k·share, where a share is ε₂ over twice ``at_most`` (or once, if monotone). An interaction that
    was never asked costs nothing.

    >>> SparseVector(threshold=500, at_most=20, epsilon=0.5, sensitivity=1).guarantee.worst_case
    Cost(0.5)

    Proof: thm-sparse-vector
    """

    gap: bool = False

    @cached_property
    def guarantee(self) -> Guarantee:
        """E of each part: what the cheapest shift of the threshold costs."""
        parts = [(0, k) for k in range(self._free + 1)] + [(1, k) for k in range(self._shares + 1)]
        return Guarantee({part: self._price(part) for part in parts}, neighbours=self.neighbours)

    @cached_property
    def _free(self) -> int:
        """The most shares that an output can be priced at without ε₁."""
        if self.noise == "one-sided":
            return 0
        total = self.halves[0].exact_epsilon + self.halves[1].exact_epsilon
        return min(floor(total / self._share), MOST_SHARES)

    def part_of(self, output: Any) -> Part:
        """From the answers alone: how many there were, and how many positive."""
        answers = answers_of(output)
        return self.part(_positives(answers), len(answers))

    def part(self, positives: int, answers: int) -> tuple[int, int]:
        """The part (t, k) of these numbers of positives and answers."""
        if not answers:
            return 0, 0
        each, negatives = (1 if self.monotone else 2), answers - positives
        shifted = (1, each * positives)
        if self.noise == "one-sided":
            return shifted
        if self.gap:
            return self._cheapest((0, answers), shifted)
        if not self.monotone:
            return self._cheapest((0, answers), shifted, (1, 2 * negatives))
        up = self._cheapest((0, positives), (1, negatives))
        down = self._cheapest((0, negatives), shifted)
        return max(up, down, key=self._price)

    def _cheapest(self, *parts: tuple[int, int]) -> tuple[int, int]:
        return min((part for part in parts if part[0] or part[1] <= self._free), key=self._price)

    @property
    def rate(self) -> Fraction:
        """The rate of a value's noise, in steps: e^−rate is the ratio of neighbouring probabilities."""
        return self._share / self._steps

    @cached_property
    def centre(self) -> int:
        """How far thresholds are moved up, in steps, so that one-sided noise errs as often either way."""
        return self._centre(self.rate)

    def margin(self, confidence: Number, *, n: int) -> float:
        """How far ``n`` values must be from the threshold for all of their comparisons to be right, at this confidence.

        Proof: lem-sparse-margin
        """
        miss, among = 1 - as_confidence(confidence), as_whole(n, "n")
        of_threshold, of_values = self._threshold_rate, self.rate
        if self.noise == "one-sided":
            above = bracket.log(2 / miss).upper / of_threshold + self.centre
            below = bracket.log(2 * among / miss).upper / of_values - self.centre
            steps = ceil(max(above, below))
        else:
            steps = LaplaceSteps(of_threshold).reach(miss / 2) + LaplaceSteps(of_values).reach(miss / (2 * among)) + 1
        return self._grid.value(steps + 1)

    def _shift(self, noise: NoiseSource) -> int:
        """How far the threshold moves: its noise, and the centre."""
        return self._one(noise, self._threshold_rate) + self.centre

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> AboveMask:
        """The answers up to the last positive allowed: whether each value is above; with ``gap``, by how much."""
        margins = self._bars - self.points(np.asarray(data))
        shift, remaining = self._shift(noise), self.at_most
        answers: NDArray[Any] = np.full(len(margins), np.nan) if self.gap else np.zeros(len(margins), np.bool_)
        for start in range(0, len(margins), CHUNK):
            chunk = margins[start : start + CHUNK]
            if self.gap:
                excess = self._excess(noise, self.rate, chunk, shift)
                above = np.flatnonzero(excess >= 0)[:remaining]
                answers[start + above] = self._grid.values(excess[above])
            else:
                above = np.flatnonzero(self._reaches(noise, self.rate, chunk, shift))[:remaining]
                answers[start + above] = True
            remaining -= len(above)
            if not remaining:
                return AboveMask(answers[: start + int(above[-1]) + 1].copy(), len(margins))
        return AboveMask(answers, len(margins))

    def start(self, data: Any, noise: NoiseSource) -> Comparisons:
        """Questions one at a time; ``data``, if any, is what callables are called with."""
        return Comparisons(self, data, noise)

    def describe(self, output: Any) -> str:
        """How many answers were positive, how many were allowed, and how many values were not compared."""
        positives = _positives(answers_of(output))
        return f"{positives} of at most {self.at_most} {above_text(self.threshold)}{stopped_text(output)}"


class Comparisons(Asking):
    """Ask ``(value)`` or ``(value, threshold)``: True if it is above, until ``at_most`` were.

    The value is a number, or a function that computes it: of the data given to ``ledger.open``, or of nothing.
    With ``gap``, positives answer by how much (0.0 or more) and negatives None.
    """

    def __init__(self, mechanism: SparseVector, data: Any, noise: NoiseSource) -> None:
        super().__init__(mechanism, data, noise)
        self._svt = mechanism
        self._remaining = mechanism.at_most
        self._shift: int | None = None
        self._pool: list[int] = []
        self._block = 16

    def finished(self) -> bool:
        """Whether all positives allowed have come."""
        return not self._remaining

    def _compare(self, margin: int) -> Any:
        svt = self._svt
        if self._shift is None:
            self._shift = svt._shift(self._noise)
        if not self._pool:  # noise for many questions at once; each is seen by one question only
            far, block = too_far(self._shift), self._block
            self._pool = [svt._one(self._noise, svt.rate)] if far else svt._many(self._noise, svt.rate, block).tolist()
            self._block = min(2 * block, 4096)
        excess = self._pool.pop() - margin - self._shift
        if excess < 0:
            return None if svt.gap else False
        self._remaining -= 1
        return svt._grid.value(min(excess, 4 * FARTHEST_VALUE)) if svt.gap else True


def _positives(answers: NDArray[Any]) -> int:
    """How many answers were positive: True, or a gap that is a number."""
    return int(AboveMask(answers, len(answers)).found.sum())
