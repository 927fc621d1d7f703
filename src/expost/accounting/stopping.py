"""Mechanisms that may stop early: the δ of an E for each stop, and the E's to promise for a δ.

A mechanism runs steps 1, 2, … and may stop after any of some numbers of steps, by a rule that sees what came out.
The least δ is the value of an optimal-stopping problem, found by backward induction (thm-optimal-stopping).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, exp, floor, fsum, inf, log, sqrt
from typing import Any

import numpy as np

from expost.accounting.composition import TOLERANCE, Progress, Step, as_loss, counted
from expost.accounting.convolution import Row, Tails, composed, convolve, fast_length, fft_error, tails_of
from expost.accounting.curve import deltas_of
from expost.accounting.law import Floats, Law, points
from expost.accounting.losses import ApproximateDP, Loss
from expost.accounting.resolution import READ_ABOVE, Sketch, grid_for, lattice_of, snapped
from expost.accounting.stopping_response import optimal_response
from expost.bracket import Bracket
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours

Counts = tuple[tuple[Loss, int], ...]
_MISS = 1e-14  # what windows may cut off of the blocks' laws, in all
_OUTSIDE = 1e-17  # and of the sum's, on either side
_MOST_POINTS = 2**19
_TRIES = 24  # of a plan; three are usual
_CLOSE = 0.996  # of δ: a plan that uses so much is good enough
_PLANNED = 5e-4  # relative: what the grid may add to the E's of a plan
_EXP = 1e-11  # relative: what an exponential may be off by, and more


def sum_delta(
    steps: Sequence[Step],
    stops: Sequence[int],
    epsilons: Sequence[Number],
    *,
    rule: Callable[[Sequence[Step], Number], Any] | None = None,
) -> float:
    """Lemma 11: the δ's of the fixed-length compositions, one for each stop, add up. For any composition rule.

    ``rule(steps, ε)`` gives the δ of a composition (a number or a bracket); by default the best one known here.

    Proof: lem-sum-delta
    """
    _check(steps, stops, epsilons)
    best: Callable[[Sequence[Step], Number], Any] = rule or _best_delta
    found = [best(steps[:stop], epsilon) for stop, epsilon in zip(stops, epsilons, strict=True)]
    deltas = [float(delta.upper if isinstance(delta, Bracket) else delta) for delta in found]
    return min(1.0, sum(deltas) * (1 + 1e-12))


def optimal_delta(
    steps: Sequence[Step], stops: Sequence[int], epsilons: Sequence[Number], *, grid: float | None = None
) -> Bracket[float]:
    """Theorem 15: the least δ at which stopping after ``stops[i]`` steps may promise ``epsilons[i]``.

    Steps are (ε, δ) pairs (exact where the ε's are commensurable) or losses; with ``grid`` pairs count as losses too.

    >>> print(optimal_delta([(0.1, 1e-6)] * 10, [5, 10], [0.4, 0.6]))
    [0.00510849, 0.00510849]

    Proof: thm-optimal-stopping
    """
    _check(steps, stops, epsilons)
    losses = [as_loss(each) for each in steps]
    promised = [exact(epsilon, "ε") for epsilon in epsilons]
    if grid is None and all(isinstance(loss, ApproximateDP) for loss in losses):
        kinds: dict[Loss, tuple[Fraction, Fraction]] = {
            loss: (exact(loss.epsilon, "ε"), exact(loss.delta, "δ"))
            for loss in set(losses)
            if isinstance(loss, ApproximateDP)
        }
        return optimal_response([kinds[loss] for loss in losses], stops, promised)
    recursion = Recursion(losses, stops, grid or grid_at(losses, float(promised[-1])))
    lower, upper = recursion.value(promised, upper=False), recursion.value(promised, upper=True)
    return Bracket(min(lower, upper), upper)


def _best_delta(steps: Sequence[Step], epsilon: Number) -> Bracket[float]:
    return optimal_delta(steps, [len(steps)], [epsilon])


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
        self._prepared: dict[tuple[bool, bool, float], _Blocks] = {}

    @property
    def step(self) -> float:
        """The grid's."""
        return self._step

    def value(self, epsilons: Sequence[Fraction], upper: bool) -> float:
        """The value of the optimal-stopping problem, from above or from below; the larger of the two directions."""
        return max(self.values(epsilons, upper).values())

    def values(
        self, epsilons: Sequence[Fraction], upper: bool, directions: Sequence[bool] | None = None
    ) -> dict[bool, float]:
        """The value in each direction, or in some."""
        promised = [float(epsilon) for epsilon in epsilons]
        return {
            reverse: self._blocks_of(reverse, upper, self._tilt(promised, reverse)).value(epsilons)
            for reverse in directions or self._directions
        }

    def _tilt(self, epsilons: Sequence[float], reverse: bool) -> float:
        """A tilt under which rounding errors matter little. Any is sound: lem-tilt."""
        tails = self._tails[reverse]
        left = -tails.window(_OUTSIDE)[0] * (1 + 1 / sqrt(len(self._stops)))
        bounds = {0.0: 0.0}
        for tilt, moment in zip(tails.at, tails.moments, strict=True):
            if (
                tilt > 0 and tilt * left + moment < 40
            ):  # else 10⁻¹⁷, which is lost anywhere, would weigh more than 1 at the left end
                done = [stop / self._stops[-1] for stop in self._stops]
                bounds[tilt] = max(moment * k - tilt * epsilon for k, epsilon in zip(done, epsilons, strict=True))
        return min(bounds, key=bounds.__getitem__)

    def prefix_epsilons(self, deltas: Sequence[float]) -> list[float]:
        """About the ε of the fixed-length composition up to each stop at these δ's; infinite where there is none."""
        return [max(_read(curves[i], delta) for curves in self._curves) for i, delta in enumerate(deltas)]

    @cached_property
    def _curves(self) -> list[list[tuple[Floats, Floats]]]:
        return [[_curve(law) for law in self._blocks_of(reverse, True, 0.0).prefixes()] for reverse in self._directions]

    def _blocks_of(self, reverse: bool, upper: bool, tilt: float) -> _Blocks:
        key = reverse, upper, tilt
        if key not in self._prepared:
            window = self._tails[reverse].window(_OUTSIDE)
            blocks = _Blocks(self._blocks, self._step, reverse, upper, tilt, window)
            usable = blocks.usable_tilt
            self._prepared[key] = blocks if usable == tilt else self._blocks_of(reverse, upper, usable)
        return self._prepared[key]


class _Blocks:
    """One direction, from one side: the blocks' laws and their transforms.

    Values w(L) are kept as w(L)·e^{−tilt·L − level}, so that small ones keep their digits where they matter.

    Proof: lem-tilt
    """

    def __init__(
        self,
        blocks: list[Counts],
        step: float,
        reverse: bool,
        upper: bool,
        tilt: float,
        window: tuple[float, float],
    ) -> None:
        self._step, self._upper, self._tilt = step, upper, tilt
        laws: dict[Counts, Law] = {}
        for block in blocks:
            if block not in laws:
                laws[block] = composed(_singles(block, step, reverse, upper), upper, _MISS / len(blocks), tilt)
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

    def prefixes(self) -> list[Law]:
        """The law of the loss up to each stop."""
        found = [self._laws[0]]
        for more in self._laws[1:]:
            found.append(convolve(found[-1], more, _MISS / len(self._laws), self._upper))
        return found

    def value(self, epsilons: Sequence[Fraction]) -> float:
        """Backward induction from the last stop to the start, where the loss is 0."""
        losses = points(self._low, self._high, self._step)
        ones = self._ones[self._before : self._before + losses.size]
        sign = 1.0 if self._upper else -1.0
        shift = sum(law.shift for law in self._laws) + 1e-14 * (1 + float(np.abs(losses).max()))
        values, level, most = np.zeros(losses.size), 0.0, 0.0
        for i in range(len(self._keys) - 1, -1, -1):
            worth = -np.expm1(np.minimum(float(epsilons[i]) * (1 - sign * 1e-15) - sign * shift - losses, 0.0))
            np.maximum(values, worth * ones * (exp(-level) * (1 + sign * _EXP)), out=values)
            most += exp(self._tilt * (shift - float(epsilons[i])) - level + 1e-9)
            before, level = level, fsum(law.level for law in self._laws[i:])
            values = self._back(self._padded(values, exp(-before), most), i, exp(-level), most)
        return min(1.0, float(values[-self._low]) * exp(level) * (1 + sign * _EXP))

    def _padded(self, values: Floats, scale: float, most: float) -> Floats:
        """The values and what they are at most, or at least, past the window; on the left none is above ``most``."""
        left, right = self._before, self._before + values.size
        padded = self._ones * (scale * (1 + _EXP) if self._upper else values[-1] / self._ones[right - 1] * (1 - _EXP))
        padded[left:right] = values
        if self._upper:
            flat = values[0] / self._ones[left] * self._ones[:left] * (1 + _EXP)
            padded[:left] = np.minimum(flat, most + self._certain * scale * (1 + _EXP) * self._ones[:left])
        else:
            padded[:left] = 0.0
        return np.asarray(padded)

    def _back(self, padded: Floats, i: int, scale: float, most: float) -> Floats:
        """E[w(L + Y)] for the block's loss Y, with the transform's error on the safe side."""
        law = self._laws[i]
        means = np.fft.irfft(np.fft.rfft(padded) * self._transforms[self._keys[i]].conj(), self._length)
        norm = sqrt(float((padded**2).sum())) * (1 + 1e-9)
        error = 2 * fft_error(self._length) * self._norms[self._keys[i]] * norm
        error += law.slack * max(float(padded.max()), most)
        certain = law.infinity + (self._certain if self._tilt else 0.0)  # of what a tilted window cut off on the left
        inside = slice(self._before, self._before + self._high - self._low + 1)
        more, less = (self._ones[inside] * (scale * (1 + sign * _EXP)) for sign in (1, -1))
        if self._upper:
            return np.clip(means[inside] + (certain * more + error), 0.0, more)
        return np.clip(means[inside] + (law.infinity * less - law.lost * more - error), 0.0, less)


def _singles(block: Counts, step: float, reverse: bool, upper: bool) -> list[Row]:
    """Each loss on the grid, and how many there are of it."""
    return [(loss.upper(step, reverse) if upper else loss.lower(step, reverse), count) for loss, count in block]


def _ladder_tails(counts: Counts, step: float, reverse: bool) -> Tails:
    """The sum's tails at tilts from far below to far above one over its deviation."""
    rows = _singles(counts, step, reverse, True)
    deviation = sqrt(sum(count * law.deviation**2 for law, count in rows))
    rungs = [2.0 ** (i / 2) / max(deviation, step) for i in range(-8, 10)]
    return tails_of(rows, [*(-rung for rung in rungs), *rungs])


def _curve(law: Law, most: int = 4096) -> tuple[Floats, Floats]:
    """About the law's δ at some losses, ascending: for shapes, not for claims; the law is not tilted."""
    every = max(1, law.mass.size // most)
    return law.values[::every], (deltas_of(law) + law.infinity)[::every]


def grid_at(losses: Sequence[Loss], epsilon: float) -> float:
    """A grid on which δ at this ε, read after all steps, is known to a quarter of the tolerance, relative to δ."""
    counts = counted(losses)
    sketch = Sketch.of(counts, False, 1e-19)
    slope = sketch.at_epsilon(epsilon).slope
    return _grid(counts, sketch, TOLERANCE / 4 / (1 + slope), slope)


def grid_for_delta(losses: Sequence[Loss], delta: float) -> float:
    """A grid on which ε at this δ, read after all steps, is too large by no more than a plan may be."""
    counts = counted(losses)
    sketch = Sketch.of(counts, False, 1e-19)
    design = sketch.at_delta(delta)
    return _grid(counts, sketch, _PLANNED * max(design.epsilon, sketch.deviation()), design.slope)


def _grid(counts: Counts, sketch: Sketch, width: float, slope: float) -> float:
    """The grid by the rule of ``expost.accounting.resolution``; losses that share an atom have it on the grid."""
    steps = sum(count for _, count in counts)
    finest = 32 * sketch.deviation() / _MOST_POINTS
    return lattice_of(counts) or snapped(counts, max(grid_for(width, slope, steps, READ_ABOVE), finest))


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


def _wrapped(law: Law, length: int) -> Floats:
    """The masses on a circle, the loss 0 in front."""
    circle = np.zeros(length)
    circle[np.arange(law.low, law.high + 1) % length] = law.mass
    return circle


def plan(
    steps: Sequence[Step],
    stops: Sequence[int],
    delta: Number,
    *,
    weights: Sequence[Number] | None = None,
    grid: float | None = None,
    neighbours: Neighbours | None = None,
    progress: Progress | None = None,
) -> Guarantee:
    """The E to promise at each stop for a δ in all: a guarantee whose parts are the stops.

    E is the ε of the fixed-length composition at δ·s·weight, with the largest s that the optimum allows. Larger
    weights make their stops cheaper, and the others dearer. The grid is chosen for δ; ``grid`` takes another.
    ``progress`` is told what is under way. One direction of neighbours is taken for all steps: see :class:`Loss`.

    >>> from expost.accounting.losses import GaussianNoise
    >>> promise = plan([GaussianNoise(10)] * 20, [10, 20], 1e-5)
    >>> [round(promise.epsilon_of(stop), 2) for stop in (10, 20)], promise.delta
    ([1.25, 1.83], 1e-05)

    Proof: thm-optimal-stopping
    """
    shares = [exact(weight, "a weight") for weight in weights] if weights is not None else [Fraction(1)] * len(stops)
    _check(steps, stops, shares)
    limit = Cost.within(0, delta).exact_delta
    if min(shares) <= 0 or not 0 < limit < 1:
        raise InvalidValue(f"a plan needs 0 < δ < 1 and positive weights, got {delta!r} and {weights!r}")
    losses = [as_loss(each) for each in steps]
    return _Planning(losses, stops, shares, limit, grid, progress).guarantee(neighbours)


class _Planning:
    """The search for the largest share of δ that every fixed-length composition may have."""

    def __init__(
        self,
        losses: Sequence[Loss],
        stops: Sequence[int],
        shares: Sequence[Fraction],
        limit: Fraction,
        grid: float | None,
        progress: Progress | None,
    ) -> None:
        self._stops, self._limit, self._tell = stops, limit, progress or (lambda _: None)
        self._weights = [float(share / max(shares)) for share in shares]
        self._tell(f"composing {len(losses)} steps")
        self._recursion = Recursion(losses, stops, grid or grid_for_delta(losses, float(limit)))

    def guarantee(self, neighbours: Neighbours | None) -> Guarantee:
        """The E's that were found."""
        return Guarantee(dict(zip(self._stops, self._found(), strict=True)), self._limit, neighbours=neighbours)

    def _shape(self, scale: float) -> list[Fraction]:
        target = float(self._limit) * (1 - 1e-12) * scale
        found = self._recursion.prefix_epsilons([target * weight for weight in self._weights])
        if max(found) == inf:
            raise InvalidValue(
                f"these steps lose more than δ {float(self._limit):g} whatever is promised: give a larger δ"
            )
        return [Cost(epsilon).exact_epsilon for epsilon in found]

    def _value(self, scale: float, directions: Sequence[bool] | None = None) -> dict[bool, float]:
        self._tell(f"planning {len(self._stops)} stops: {scale:.4f} of δ for each")
        return self._recursion.values(self._shape(scale), True, directions)

    def _fits(self, value: float) -> bool:
        return Fraction(value) <= self._limit

    def _found(self) -> list[Fraction]:
        """δ is about proportional to the share, so that a few steps are enough. One direction leads, both must fit."""
        values = self._value(1.0)
        leading = max(values, key=values.__getitem__)
        if self._fits(values[leading]):
            return self._shape(1.0)
        tried = [(1.0, values[leading])]
        low, high = 0.0, 1.0
        for _ in range(_TRIES):
            scale = self._guess(tried, low, high)
            value = self._value(scale, [leading])[leading]
            tried.append((scale, value))
            low, high = (scale, high) if self._fits(value) else (low, scale)
            if low == scale and (value > _CLOSE * float(self._limit) or high < 1.002 * low):
                break
        others = [reverse for reverse in values if reverse != leading]
        while low and others and not self._fits(max(self._value(low, others).values())):
            low = low * 0.98 if low > 0.5 / len(self._stops) else 0.0
        if not low:
            raise InvalidValue(
                f"rounding errors are larger than δ {float(self._limit):g} for these {self._stops[-1]} steps: "
                "give a larger δ, or fewer steps"
            )
        return self._shape(low)

    def _guess(self, tried: Sequence[tuple[float, float]], low: float, high: float) -> float:
        """Where δ would be used up, if it were a power of the share; between what fits and what does not."""
        scale, value = tried[-1]
        power = 1.0
        if len(tried) > 1 and tried[-2][1] != value:
            power = log(tried[-2][1] / value) / log(tried[-2][0] / scale)
        guess = scale * ((1 + _CLOSE) / 2 * float(self._limit) / value) ** (1 / min(max(power, 0.25), 4.0))
        return guess if low < guess < high else (low + high) / 2


def _check(steps: Sequence[Any], stops: Sequence[int], epsilons: Sequence[Any]) -> None:
    if not stops or list(stops) != sorted(set(stops)) or stops[0] < 1 or stops[-1] != len(steps):
        raise InvalidValue(
            f"stops are growing numbers of steps, the last of them all {len(steps)} steps, got {list(stops)!r}"
        )
    if len(epsilons) != len(stops):
        raise InvalidValue(f"each of the {len(stops)} stops has one value, got {len(epsilons)}")
