"""The truth from below: what splitting on a grid added to a convex curve, undone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, inf, sqrt

import numpy as np

from expost.accounting.cells import normal_cells
from expost.accounting.law import Blur, Floats, LossLaw

_REACHES = (1.0, 1.6, 2.6)  # deviations of the smear between which a convex curve is bounded by chords


@dataclass(frozen=True, eq=False)
class ReadBack:
    """A curve over ε that falls and is convex in e^ε, known at the points of a grid.

    ``least`` is at most the blurred curve, its drift included, and ``above`` at least the true one.

    Proof: lem-read-back
    """

    step: float
    least: Floats
    above: Floats
    blur: Blur

    def at(self, place: int) -> float:
        """The true curve at this point is at least this.

        The law is below the truth smeared by Gaussian noise. If the truth were lower here, it would, being convex, be
        below chords on both sides, and its smear below the law.
        """
        if self.blur.smear == inf:
            return 0.0
        least = float(self.least[place]) * exp(-self.blur.growth) - self.blur.excess * (1 + 1e-9)
        return least if self.blur.smear == 0 else max(self._unsmeared(place, least, reach) for reach in self._reaches)

    @cached_property
    def _reaches(self) -> list[int]:
        deviation = sqrt(self.blur.smear) / self.step
        return sorted({max(1, round(reach * deviation)) for reach in _REACHES})

    @cached_property
    def _smear(self) -> LossLaw:
        return _smear_on(self.blur, self.step)

    def _unsmeared(self, place: int, least: float, reach: int) -> float:
        """Solve least ≤ a + b·δ for δ, where the smeared truth is at most a + b·δ."""
        smear, size = self._smear, self.above.size
        places = place - np.arange(smear.low, smear.high + 1)
        at_most = np.where(places < 0, 1.0, self.above[np.clip(places, 0, size - 1)])
        ratios = np.expm1(np.minimum((places - place) * self.step, 700.0))
        left, right = expm1(-reach * self.step), expm1(reach * self.step)
        tent = np.maximum(np.where(ratios <= 0, 1 - ratios / left, 1 - ratios / right), 0.0)
        ends = [float(self.above[place - reach]) if place >= reach else 1.0]
        ends.append(float(self.above[min(place + reach, size - 1)]))
        at_most = np.where(tent > 0, (1 - tent) * np.where(ratios <= 0, ends[0], ends[1]), at_most)
        rest = float((smear.mass * at_most).sum()) + smear.infinity
        return (least - rest * (1 + 1e-12)) / (float((smear.mass * tent).sum()) * (1 + 1e-12))


def smear_shift(blur: Blur, step: float) -> float:
    """By how much the smear on this grid may be off, which is drift, too."""
    return _smear_on(blur, step).shift if 0 < blur.smear < inf else 0.0


def _smear_on(blur: Blur, step: float) -> LossLaw:
    """The smear on the grid, from above."""
    return normal_cells(sqrt(blur.smear), 1.0, step, False, 1e-24).law()
