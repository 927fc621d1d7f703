"""The adaptive sparse vector: values far above the threshold are found with more noise, and cost half."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cost import Number
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanisms.sparse_vector.comparisons import CHUNK, Asking, Points, Thresholded, above_text, finite_bars
from expost.mechanisms.sparse_vector.mask import AboveMask, answers_of, stopped_text
from expost.noise import NoiseSource, vector

_SHARES_FOR = np.array([0, 2, 1])  # below, above, far above


@dataclass(frozen=True, kw_only=True)
class AdaptiveSparseVector(Thresholded):
    """The adaptive sparse vector: a :class:`SparseVector` that charges half for values far above the threshold.

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
    margin
        How far above the threshold "far" is. By default two standard deviations of the noise of that comparison.
    monotone
        Whether all values grow, or all shrink, when a record is added, as counts do. Needs ``"add-remove"``; halves the
        noise.
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

    Each value is first compared, with twice the noise, with a bar ``margin`` above its threshold: 2 means far above,
    and costs half of a positive. If it is not, it is compared as usual: 1 means above, 0 below. It goes on while a
    whole positive can be paid for, so it finds at least ``at_most`` positives and up to twice as many; what comes after
    is not compared. In one go the value is an :class:`~expost.mechanisms.AboveMask`. A part (t, k) has the price
    t·ε₁ + k·share.

    Proof: thm-adaptive-sparse-vector
    """

    margin: Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        vector.check_rate(self.rates[0])
        margin = self._grid.values(np.array(self._default_margin)) if self.margin is None else finite_bars(self.margin)
        if margin.ndim or margin < 0:
            raise InvalidValue(f"margin is a distance above the threshold, one number ≥ 0, got {self.margin!r}")
        object.__setattr__(self, "margin", self._shown(self.bars(margin)))

    @property
    def _shares(self) -> int:
        return 2 * self.at_most

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The rates of the noise for "far above" (one share) and for "above" (two)."""
        once = self._share / self._steps if self.monotone else self._share / (2 * self._steps)
        return once, 2 * once

    @property
    def _default_margin(self) -> int:
        fall = exp(-float(self.rates[0]))
        deviation = sqrt(fall) / (1 - fall) * (1 if self.noise == "one-sided" else sqrt(2))
        return ceil(2 * deviation)

    @cached_property
    def guarantee(self) -> Guarantee:
        """ε₁, a share for each value far above, two for each above; nothing if nothing was asked."""
        parts = [(0, 0)] + [(1, k) for k in range(self._shares + 1)]
        return Guarantee({part: self._price(part) for part in parts}, neighbours=self.neighbours)

    def part_of(self, output: Any) -> Part:
        """From the answers alone."""
        answers = answers_of(output).astype(np.int64)
        return (1, int(_SHARES_FOR[answers].sum())) if len(answers) else (0, 0)

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> AboveMask:
        """0, 1 or 2 for each value that was compared."""
        margins = self._bars - self.points(np.asarray(data))
        moves = self._moves(noise)
        output, remaining = np.zeros(len(margins), np.int8), self._shares
        for start in range(0, len(margins), CHUNK):
            answers = self.compare(margins[start : start + CHUNK], moves, noise)
            paid = np.cumsum(_SHARES_FOR[answers])
            last = int(np.searchsorted(paid, remaining - 1))  # the one that leaves less than two
            answers = answers[: last + 1]
            output[start : start + len(answers)] = answers
            remaining -= int(paid[len(answers) - 1]) if len(answers) else 0
            if remaining < 2:
                return AboveMask(output[: start + len(answers)].copy(), len(margins))
        return AboveMask(output, len(margins))

    def _moves(self, noise: NoiseSource) -> tuple[int, int]:
        """How far the two bars move: noise they share, each centred for its own noise."""
        shift = self._one(noise, self._threshold_rate)
        far, near = map(self._centre, self.rates)
        return shift + far + int(self.bars(self.margin)), shift + near

    def compare(self, margins: Points, moves: tuple[int, int], noise: NoiseSource) -> NDArray[np.int8]:
        """2, 1 or 0 for each margin."""
        far, above = (self._reaches(noise, rate, margins, move) for rate, move in zip(self.rates, moves, strict=True))
        return np.where(far, np.int8(2), above.astype(np.int8))

    def start(self, data: Any, noise: NoiseSource) -> AdaptiveComparisons:
        """Questions one at a time; ``data``, if any, is what callables are called with."""
        return AdaptiveComparisons(self, data, noise)

    def describe(self, output: Any) -> str:
        """How many answers were positive, how many were allowed, and how many values were not compared."""
        answers = answers_of(output)
        far, near = int((answers == 2).sum()), int((answers == 1).sum())
        allowed = f"for at most {self.at_most} whole positives{stopped_text(output)}"
        return f"{far} far above and {near} {above_text(self.threshold)}, {allowed}"


class AdaptiveComparisons(Asking):
    """Ask ``(value)`` or ``(value, threshold)``: 2 if it is far above, 1 above, 0 below, while shares last."""

    def __init__(self, mechanism: AdaptiveSparseVector, data: Any, noise: NoiseSource) -> None:
        super().__init__(mechanism, data, noise)
        self._svt = mechanism
        self._remaining = mechanism._shares
        self._moves: tuple[int, int] | None = None

    def finished(self) -> bool:
        """Whether what remains does not pay for a positive."""
        return self._remaining < 2

    def _compare(self, margin: int) -> int:
        if self._moves is None:
            self._moves = self._svt._moves(self._noise)
        answer = int(self._svt.compare(np.array([margin]), self._moves, self._noise)[0])
        self._remaining -= int(_SHARES_FOR[answer])
        return answer
