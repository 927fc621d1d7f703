"""Backward induction over the losses of steps between stops: the value of an optimal-stopping problem, bracketed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from math import ceil, exp, floor, fsum, inf, log, sqrt

import numpy as np

from expost.accounting.composition import Step, as_loss, counted
from expost.accounting.convolution import Row, Tails, composed, convolve, fast_length, fft_error, tails_of
from expost.accounting.curve import deltas_of
from expost.accounting.law import Blur, Floats, LossLaw, points
from expost.accounting.read_back import ReadBack, smear_shift
from expost.accounting.resolution import Counts
from expost.bracket import Bracket

_MISS = 1e-14  # what windows may cut off of the blocks' laws, in all
_OUTSIDE = 1e-17  # and of the sum's, on either side
_EXP = 1e-11  # relative: what an exponential may be off by, and more


class Recursion:
    """Backward induction on a grid of losses, one correlation for each block of steps between two stops.

    Made once for some steps and stops, and evaluated for any E.

    Proof: thm-optimal-stopping
    """

    def __init__(self, steps: Sequence[Step], stops: Sequence[int], step: float) -> None:
        losses = [as_loss(each) for each in steps]
        self._stops = tuple(stops)
        self._blocks: list[Counts] = [counted(losses[a:b]) for a, b in pairwise([0, *stops])]
        whole = counted(losses)
        self._step = step
        self._directions = (False,) if all(loss.symmetric for loss, _ in whole) else (False, True)
        self._tails = {reverse: _ladder_tails(whole, self._step, reverse) for reverse in self._directions}
        self._prepared: dict[tuple[bool, float], _Blocks] = {}

    @property
    def step(self) -> float:
        """The step of the grid."""
        return self._step

    def bracket(self, epsilons: Sequence[Fraction]) -> Bracket[float]:
        """Bounds on the value of the optimal-stopping problem, the larger of the two directions."""
        found = [self._blocks_for(epsilons, reverse).bracket(epsilons) for reverse in self._directions]
        return Bracket(max(each.lower for each in found), max(each.upper for each in found))

    def above(self, epsilons: Sequence[Fraction], directions: Sequence[bool] | None = None) -> dict[bool, float]:
        """What the value is at most in each direction, or in some."""
        chosen = directions or self._directions
        return {reverse: self._blocks_for(epsilons, reverse).above(epsilons) for reverse in chosen}

    def _blocks_for(self, epsilons: Sequence[Fraction], reverse: bool) -> _Blocks:
        return self._blocks_of(reverse, self._tilt([float(epsilon) for epsilon in epsilons], reverse))

    def _tilt(self, epsilons: Sequence[float], reverse: bool) -> float:
        """A tilt under which rounding errors matter little. Any is sound: lem-tilt."""
        tails = self._tails[reverse]
        left = -tails.window(_OUTSIDE)[0] * (1 + 1 / sqrt(len(self._stops)))
        bounds = {0.0: 0.0}
        for tilt, moment in zip(tails.at, tails.moments, strict=True):
            # with more, 10⁻¹⁷, which is lost anywhere, would weigh more than 1 at the left end
            if tilt > 0 and tilt * left + moment < 40:
                done = [stop / self._stops[-1] for stop in self._stops]
                bounds[tilt] = max(moment * k - tilt * epsilon for k, epsilon in zip(done, epsilons, strict=True))
        return min(bounds, key=bounds.__getitem__)

    def prefix_epsilons(self, deltas: Sequence[float]) -> list[float]:
        """About the ε of the fixed-length composition up to each stop at these δ's; infinite where there is none."""
        return [max(_read(curves[i], delta) for curves in self._curves) for i, delta in enumerate(deltas)]

    @cached_property
    def _curves(self) -> list[list[tuple[Floats, Floats]]]:
        return [[_curve(law) for law in self._blocks_of(reverse, 0.0).prefixes()] for reverse in self._directions]

    def _blocks_of(self, reverse: bool, tilt: float) -> _Blocks:
        if (reverse, tilt) not in self._prepared:
            window = self._tails[reverse].window(_OUTSIDE)
            blocks = _Blocks(self._blocks, self._step, reverse, tilt, window)
            usable = blocks.usable_tilt
            self._prepared[reverse, tilt] = blocks if usable == tilt else self._blocks_of(reverse, usable)
        return self._prepared[reverse, tilt]


class _Blocks:
    """One direction: the blocks' laws and their transforms.

    Values w(L) are kept as w(L)·e^{−tilt·L − level}, so that small ones keep their digits where they matter.

    Proof: lem-tilt
    """

    def __init__(
        self, blocks: list[Counts], step: float, reverse: bool, tilt: float, window: tuple[float, float]
    ) -> None:
        self._step, self._tilt = step, tilt
        laws: dict[Counts, LossLaw] = {}
        for block in blocks:
            if block not in laws:
                laws[block] = composed(_singles(block, step, reverse), _MISS / len(blocks), tilt)
        self._laws = [laws[block] for block in blocks]
        low, high = window
        self._low, self._high = floor(min(low, -4 * step) / step), ceil(max(high, 4 * step) / step)
        self._before = max(0, -min(law.low for law in laws.values()))
        after = max(0, max(law.high for law in laws.values()))
        self._certain = sum(law.infinity for law in self._laws)  # at every loss the same: it would drown the rest
        size = self._high - self._low + 1 + self._before + after
        self._length = fast_length(size)
        first = self._low - self._before
        reach = tilt * step * max(-first, first + self._length)
        gentler = tilt / 2 if self._certain < 1e-15 and tilt * (high - low) > 2 else 0.0
        self.usable_tilt = tilt if not tilt or (reach < 340 and self._certain < 1e-15) else gentler
        self._ones = np.exp(-tilt * points(first, first + self._length - 1, step)) if reach < 340 else np.zeros(0)
        self._transforms = {block: np.fft.rfft(_wrapped(law, self._length)) for block, law in laws.items()}
        self._norms = {block: float(law.mass.sum()) + sqrt(float((law.mass**2).sum())) for block, law in laws.items()}
        self._keys = blocks

    def prefixes(self) -> list[LossLaw]:
        """The law of the loss up to each stop."""
        found = [self._laws[0]]
        for more in self._laws[1:]:
            found.append(convolve(found[-1], more, _MISS / len(self._laws)))
        return found

    def above(self, epsilons: Sequence[Fraction]) -> float:
        """The value at the start, where the loss is 0, is at most this."""
        return float(self._values(epsilons, True)[-self._low])

    def bracket(self, epsilons: Sequence[Fraction]) -> Bracket[float]:
        """The value at the start from above, and from below by undoing what the grid added.

        Over −L the values are a curve that falls and is convex in e^{−L}.

        Proof: lem-read-back-stops
        """
        above = self._values(epsilons, True)[::-1]
        least = self._values(epsilons, False)[::-1] if self._blur.smear < inf else above
        lower = max(0.0, ReadBack(self._step, least, above, self._blur).at(self._high))
        return Bracket(min(lower, float(above[self._high])), float(above[self._high]))

    @cached_property
    def _blur(self) -> Blur:
        return reduce(lambda a, b: a + b, (law.blur for law in self._laws))

    @cached_property
    def _drift(self) -> float:
        return self._blur.drift + smear_shift(self._blur, self._step)

    def _values(self, epsilons: Sequence[Fraction], upper: bool) -> Floats:
        """Backward induction from the last stop to the start: what the laws' values are at most, or at least.

        From above losses are moved up by what rounding may have lowered them, from below down by their drift.
        """
        losses = points(self._low, self._high, self._step)
        ones = self._ones[self._before : self._before + losses.size]
        sign = 1.0 if upper else -1.0
        shift = sum(law.shift for law in self._laws) if upper else self._drift
        shift += 1e-14 * (1 + float(np.abs(losses).max()))
        values, level, most = np.zeros(losses.size), 0.0, 0.0
        for i in range(len(self._keys) - 1, -1, -1):
            worth = -np.expm1(np.minimum(float(epsilons[i]) * (1 - sign * 1e-15) - sign * shift - losses, 0.0))
            np.maximum(values, worth * ones * (exp(-level) * (1 + sign * _EXP)), out=values)
            most += exp(self._tilt * (shift - float(epsilons[i])) - level + 1e-9)
            before, level = level, fsum(law.level for law in self._laws[i:])
            padded = self._padded_above(values, exp(-before), most) if upper else self._padded_below(values)
            values = self._back(padded, i, exp(-level), most, upper)
        return np.minimum(values / ones * (exp(level) * (1 + sign * _EXP)), 1.0)

    def _padded_above(self, values: Floats, scale: float, most: float) -> Floats:
        """The values and what they are at most past the window; on the left none is above ``most``."""
        left = self._before
        padded = self._ones * (scale * (1 + _EXP))
        padded[left : left + values.size] = values
        flat = values[0] / self._ones[left] * self._ones[:left] * (1 + _EXP)
        padded[:left] = np.minimum(flat, most + self._certain * scale * (1 + _EXP) * self._ones[:left])
        return np.asarray(padded)

    def _padded_below(self, values: Floats) -> Floats:
        """The values and what they are at least past the window: they never fall, and are not negative."""
        left, right = self._before, self._before + values.size
        padded = self._ones * (values[-1] / self._ones[right - 1] * (1 - _EXP))
        padded[left:right] = values
        padded[:left] = 0.0
        return np.asarray(padded)

    def _back(self, padded: Floats, i: int, scale: float, most: float, upper: bool) -> Floats:
        """E[w(L + Y)] for the block's loss Y, with the transform's error on the safe side."""
        law = self._laws[i]
        means = np.fft.irfft(np.fft.rfft(padded) * self._transforms[self._keys[i]].conj(), self._length)
        norm = sqrt(float((padded**2).sum())) * (1 + 1e-9)
        error = 2 * fft_error(self._length) * self._norms[self._keys[i]] * norm
        error += law.slack * max(float(padded.max()), most)
        certain = law.infinity + (self._certain if self._tilt else 0.0)  # of what a tilted window cut off on the left
        inside = slice(self._before, self._before + self._high - self._low + 1)
        more, less = (self._ones[inside] * (scale * (1 + sign * _EXP)) for sign in (1, -1))
        if upper:
            return np.clip(means[inside] + (certain * more + error), 0.0, more)
        return np.clip(means[inside] + (law.infinity * less - error), 0.0, less)


def _singles(block: Counts, step: float, reverse: bool) -> list[Row]:
    """Each loss on the grid, and how many there are of it."""
    return [(loss.law(step, reverse), count) for loss, count in block]


def _ladder_tails(counts: Counts, step: float, reverse: bool) -> Tails:
    """The sum's tails at tilts from far below to far above one over its deviation."""
    rows = _singles(counts, step, reverse)
    deviation = sqrt(sum(count * law.deviation**2 for law, count in rows))
    rungs = [2.0 ** (i / 2) / max(deviation, step) for i in range(-8, 10)]
    return tails_of(rows, [*(-rung for rung in rungs), *rungs])


def _curve(law: LossLaw) -> tuple[Floats, Floats]:
    """About the law's δ at some losses, ascending: for shapes only; the law is not tilted."""
    every = max(1, law.mass.size // 4096)
    return law.values[::every], (deltas_of(law) + law.infinity)[::every]


def _read(curve: tuple[Floats, Floats], delta: float) -> float:
    """ε at this δ, between two points of a curve."""
    epsilons, deltas = curve
    if delta < deltas[-1]:
        return inf
    right = int(np.searchsorted(-deltas, -delta, side="left"))
    if right == 0:
        return max(0.0, float(epsilons[0]))
    (high, low), (start, stop) = deltas[right - 1 : right + 1], epsilons[right - 1 : right + 1]
    steep = low * 100 < high  # a chord is above a convex curve
    share = (high - delta) / (high - low) if steep else log(high / delta) / log(high / low)
    return max(0.0, float(start + share * (stop - start)))


def _wrapped(law: LossLaw, length: int) -> Floats:
    """The masses on a circle, the loss 0 in front."""
    circle = np.zeros(length)
    circle[np.arange(law.low, law.high + 1) % length] = law.mass
    return circle
