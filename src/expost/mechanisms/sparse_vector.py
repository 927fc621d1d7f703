"""Sparse vector: many comparisons with a threshold, of which only the positive ones cost much.

One noisy threshold serves every question. Questions below it leak little; each one above it costs a share
of the budget. What was reserved for positives that never came, comes back.

Both mechanisms run in one go over an array (``ledger.run``) or answer adaptive questions one at a time
(``ledger.open``). All noise is whole-numbered and exact, on a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, floor, log, nan, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part, as_neighbours
from expost.mechanism import Interaction, Mechanism
from expost.mechanisms.additive import check_monotone, requested_epsilon, shape_of
from expost.noise import Source, scalar, vector
from expost.noise.grid import Grid

Kind: TypeAlias = Literal["one-sided", "two-sided"]
Integers: TypeAlias = NDArray[np.int64]

FARTHEST = 2**58
"""Values are clamped to so many steps of the grid on either side of zero; thresholds must lie within."""

_SHARES_FOR = np.array([0, 2, 1])  # below, above, far above

_MOST_SHARES = 40_000  # a guarantee lists each number of shares

_CHUNK = 2**17  # values compared at a time, so that an early stop stops early


class _Thresholded(Mechanism):
    """What both sparse vectors share: the grid, the split of the budget, the noise, the comparison."""

    threshold: Any
    at_most: int
    epsilon: Any
    sensitivity: Number
    monotone: bool
    noise: Kind
    grid: Number | None
    missing: Number
    neighbours: Neighbours | None

    def __post_init__(self) -> None:
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 1:
            raise InvalidValue(f"at_most is a whole number of positives, at least 1, got {self.at_most!r}")
        if exact(self.sensitivity, "sensitivity") <= 0:
            raise InvalidValue(f"sensitivity must be above 0, got {self.sensitivity!r}")
        if self.noise not in ("one-sided", "two-sided"):
            raise InvalidValue(f"noise must be 'one-sided' or 'two-sided', got {self.noise!r}")
        exact(self.missing, "missing")
        as_neighbours(self.neighbours)
        check_monotone(self.monotone, self.neighbours)
        object.__setattr__(self, "epsilon", _requested(self.epsilon))
        object.__setattr__(self, "grid", self._grid.value(1))
        object.__setattr__(self, "threshold", self._shown(self.bars(self.threshold)))
        if self._shares > _MOST_SHARES:
            raise InvalidValue(f"at_most goes up to {_MOST_SHARES // 2:,}, got {self.at_most!r}: run it in portions")
        vector.check_rate(self._threshold_rate)
        vector.check_rate(self._share / self._steps)

    # ---- the budget

    @cached_property
    def halves(self) -> tuple[Cost, Cost]:
        """(ε₁, ε₂): for the threshold, and for all positives together."""
        if isinstance(self.epsilon, tuple):
            return Cost(self.epsilon[0]), Cost(self.epsilon[1])
        total = Cost(self.epsilon).epsilon_units
        positives = self.at_most if self.monotone else 2 * self.at_most
        first = max(1, floor(total / (1 + positives ** (2 / 3))))
        return Cost.of_units(first), Cost.of_units(total - first)

    @property
    def _shares(self) -> int:
        """How many shares ε₂ has: a positive takes two of them, or one if questions are monotone."""
        return self.at_most if self.monotone else 2 * self.at_most

    @cached_property
    def _share(self) -> Fraction:
        return self.halves[1].exact_epsilon / self._shares

    def _price(self, part: tuple[int, int]) -> Fraction:
        """E of the part (t, k): t times ε₁ and k shares of ε₂."""
        return part[0] * self.halves[0].exact_epsilon + part[1] * self._share

    # ---- the grid

    @cached_property
    def _grid(self) -> Grid:
        if self.grid is not None:
            return Grid.of(self.grid)
        sensitivity = exact(self.sensitivity, "sensitivity")
        thresholds = _finite(self.threshold)
        if sensitivity.denominator == 1 and np.all(thresholds == np.floor(thresholds)):
            return Grid(0)
        return Grid.within(sensitivity / 1024)

    @cached_property
    def _steps(self) -> int:
        """The sensitivity of one rounded value, in steps of the grid."""
        return self._grid.l1(exact(self.sensitivity, "sensitivity"), 1)

    def bars(self, threshold: Any) -> Integers:
        """A threshold, or an array of them, in steps of the grid, rounded half up."""
        bars = self._grid.round_all(_finite(threshold), Fraction(0))
        if np.any(np.abs(bars) > FARTHEST):
            raise InvalidValue(f"thresholds must lie within 2^58 steps of {self._grid.step} on either side of zero")
        return bars

    def _shown(self, bars: Integers) -> Any:
        """Thresholds as they are kept and printed: on the grid."""
        shown = (bars if self._grid.exponent == 0 else self._grid.values(bars)).tolist()
        return tuple(shown) if isinstance(shown, list) else shown

    @cached_property
    def _bars(self) -> Integers:
        return self.bars(self.threshold)

    def point(self, value: Any) -> int:
        """One private value in steps of the grid, rounded half up and clamped; NaN and None are ``missing``."""
        if value is None:
            value = nan
        if isinstance(value, int | np.integer | np.bool_):
            number = int(value) if not self._grid.exponent else floor(int(value) / self._grid.step + Fraction(1, 2))
        elif isinstance(value, float | np.float32 | np.float16):  # not long doubles: float() would round them
            number = self._grid.round(float(value), exact(self.missing, "missing"))
        else:
            raise InvalidValue(f"a question's value is one int or float, got {type(value).__name__}")
        return number if -FARTHEST <= number <= FARTHEST else FARTHEST if number > 0 else -FARTHEST

    def points(self, data: NDArray[Any]) -> Integers:
        """Private values in steps of the grid, rounded half up and clamped; NaN is ``missing``."""
        if data.dtype.kind != "f":
            return self._grid.round_integers(data, FARTHEST)
        numbers = self._grid.round_all(data, exact(self.missing, "missing"))
        return np.clip(numbers, -FARTHEST, FARTHEST, out=numbers)

    # ---- the noise

    @property
    def _threshold_rate(self) -> Fraction:
        return self.halves[0].exact_epsilon / self._steps

    def _one(self, noise: Source, rate: Fraction) -> int:
        return (scalar.geometric if self.noise == "one-sided" else scalar.discrete_laplace)(noise, rate)

    def _many(self, noise: Source, rate: Fraction, count: int) -> Integers:
        return (vector.geometric if self.noise == "one-sided" else vector.discrete_laplace)(noise, rate, count)

    def _reaches(self, noise: Source, rate: Fraction, margins: Integers, shift: int) -> NDArray[np.bool_]:
        """For each margin, whether fresh noise is at least margin + shift.

        Proof: lem-comparisons
        """
        if _too_far(shift):
            return self._excess(noise, rate, margins, shift) >= 0
        reaches = vector.geometric_reaches if self.noise == "one-sided" else vector.laplace_reaches
        return reaches(noise, rate, margins + shift)

    def _excess(self, noise: Source, rate: Fraction, margins: Integers, shift: int) -> Integers:
        """For each margin, fresh noise less margin and shift, clamped to 2^60 above and to −1 below.

        Proof: lem-comparisons
        """
        if not _too_far(shift):
            excess = self._many(noise, rate, len(margins)) - (margins + shift)
            return np.clip(excess, -1, 4 * FARTHEST, out=excess)
        one_by_one = (self._one(noise, rate) - int(margin) - shift for margin in margins)
        return np.array([max(-1, min(4 * FARTHEST, excess)) for excess in one_by_one], np.int64)

    def _centre(self, rate: Fraction) -> int:
        """The median of one-sided noise on a value less that on the threshold: a public number.

        Moving thresholds up by it makes a value at its threshold as likely to be above as below.
        """
        if self.noise == "two-sided":
            return 0
        a, b = float(rate), float(self._threshold_rate)
        return round(log(2 * b / (a + b)) / a if b >= a else -log(2 * a / (a + b)) / b)

    def check(self, data: Any) -> None:
        """One-dimensional numbers, as many as there are thresholds."""
        shape = shape_of(data)
        if shape.dimensions is None or len(shape.dimensions) != 1:
            raise InvalidValue(f"sparse vector compares the entries of a one-dimensional array, got {shape.dimensions}")
        if isinstance(self.threshold, tuple) and len(self.threshold) != shape.size:
            raise InvalidValue(
                f"there are {len(self.threshold)} thresholds for {shape.size} values: give one for all, or one each"
            )


@dataclass(frozen=True, kw_only=True)
class SparseVector(_Thresholded):
    """Which values lie above a threshold: answers until ``at_most`` of them did.

    In one go the value is a mask as long as the data; what comes after the last positive allowed was not
    compared. ``threshold`` is one for all, or one each. ``sensitivity`` bounds how far any one value moves
    between neighbours. ``epsilon`` is the whole budget, split in the best ratio, or the pair (ε₁, ε₂) for
    threshold and positives. ``monotone`` questions (all of them grow, or all shrink, when a record is
    added) get half the noise. ``gap`` also publishes by how much each positive was above, at no cost.

    ``noise="one-sided"``, the default, has half the variance. ``noise="two-sided"`` gives more back when there
    were few answers, or nearly all were positive. Values are rounded to ``grid`` (whole numbers if sensitivity and
    threshold are whole) and clamped to ±2^58 steps of it; NaN counts as ``missing``.

    >>> SparseVector(threshold=500, at_most=20, epsilon=0.5, sensitivity=1).guarantee.worst_case
    Cost(0.5)

    A part (t, k) stands for the price t·ε₁ + k·share, a share being ε₂ over twice ``at_most`` (or once, if
    monotone); a session that was never asked costs nothing.

    Proof: thm-sparse-vector
    """

    threshold: Any
    at_most: int
    epsilon: Any
    sensitivity: Number
    monotone: bool = False
    gap: bool = False
    noise: Kind = "one-sided"
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

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
        return min(floor(total / self._share), _MOST_SHARES)

    def part_of(self, output: Any) -> Part:
        """From the answers alone: how many there were, and how many positive."""
        positive = _positive(output)
        count = int(positive.sum())
        answers = int(np.flatnonzero(positive)[-1]) + 1 if count == self.at_most else len(positive)
        return self.part(count, answers)

    def part(self, positives: int, answers: int) -> tuple[int, int]:
        """The part (t, k) of so many positives among so many answers."""
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

    def _shift(self, noise: Source) -> int:
        """How far the threshold moves: its noise, and the centre."""
        return self._one(noise, self._threshold_rate) + self.centre

    def sample(self, data: NDArray[Any], noise: Source) -> NDArray[Any]:
        """The mask of positives; with ``gap``, by how much each was above, and NaN elsewhere."""
        margins = self._bars - self.points(np.asarray(data))
        shift, left = self._shift(noise), self.at_most
        output: NDArray[Any] = np.full(len(margins), np.nan) if self.gap else np.zeros(len(margins), np.bool_)
        for start in range(0, len(margins), _CHUNK):
            chunk = margins[start : start + _CHUNK]
            if self.gap:
                excess = self._excess(noise, self.rate, chunk, shift)
                above = np.flatnonzero(excess >= 0)[:left]
                output[start + above] = self._grid.values(excess[above])
            else:
                above = np.flatnonzero(self._reaches(noise, self.rate, chunk, shift))[:left]
                output[start + above] = True
            left -= len(above)
            if not left:
                break
        return output

    def start(self, data: Any, noise: Source) -> Comparisons:
        """Questions one at a time; ``data``, if any, is what callables are called with."""
        return Comparisons(self, data, noise)

    def describe(self, output: Any) -> str:
        """How many of how many."""
        return f"{int(_positive(output).sum())} of at most {self.at_most} {_above(self.threshold)}"


@dataclass(frozen=True, kw_only=True)
class AdaptiveSparseVector(_Thresholded):
    """Sparse vector that charges half for values far above the threshold.

    Each value is first compared, with twice the noise, to a bar ``margin`` above its threshold (by default two standard
    deviations of that noise): 2 means far above and costs half of a positive. Else it is compared as usual: 1
    means above, 0 below. It goes on while a whole positive is affordable, so there are at least ``at_most`` positives
    and up to twice as many. The other parameters are those of :class:`SparseVector`.

    A part (t, k) stands for the price t·ε₁ + k·share.

    Proof: thm-adaptive-sparse-vector
    """

    threshold: Any
    at_most: int
    epsilon: Any
    sensitivity: Number
    margin: Number | None = None
    monotone: bool = False
    noise: Kind = "one-sided"
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        vector.check_rate(self.rates[0])
        margin = self._grid.values(np.array(self._default_margin)) if self.margin is None else _finite(self.margin)
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
        answers = np.asarray(output, np.int64)
        return (1, int(_SHARES_FOR[answers].sum())) if len(answers) else (0, 0)

    def sample(self, data: NDArray[Any], noise: Source) -> NDArray[np.int8]:
        """0, 1 or 2 for each value; 0 for those that were not compared any more."""
        margins = self._bars - self.points(np.asarray(data))
        moves = self._moves(noise)
        output, left = np.zeros(len(margins), np.int8), self._shares
        for start in range(0, len(margins), _CHUNK):
            answers = self.compare(margins[start : start + _CHUNK], moves, noise)
            paid = np.cumsum(_SHARES_FOR[answers])
            answers = answers[
                : int(np.searchsorted(paid, left - 1)) + 1
            ]  # the one that leaves less than two is the last
            output[start : start + len(answers)] = answers
            left -= int(paid[len(answers) - 1]) if len(answers) else 0
            if left < 2:
                break
        return output

    def _moves(self, noise: Source) -> tuple[int, int]:
        """How far the two bars move: noise they share, each centred for its own noise."""
        shift = self._one(noise, self._threshold_rate)
        far, near = map(self._centre, self.rates)
        return shift + far + int(self.bars(self.margin)), shift + near

    def compare(self, margins: Integers, moves: tuple[int, int], noise: Source) -> NDArray[np.int8]:
        """2, 1 or 0 for each margin."""
        far, above = (self._reaches(noise, rate, margins, move) for rate, move in zip(self.rates, moves, strict=True))
        return np.where(far, np.int8(2), above.astype(np.int8))

    def start(self, data: Any, noise: Source) -> AdaptiveComparisons:
        """Questions one at a time; ``data``, if any, is what callables are called with."""
        return AdaptiveComparisons(self, data, noise)

    def describe(self, output: Any) -> str:
        """How many of how many."""
        answers = np.asarray(output)
        far, near = int((answers == 2).sum()), int((answers == 1).sum())
        return f"{far} far above and {near} {_above(self.threshold)}, for at most {self.at_most} whole positives"


class _Asking(Interaction):
    """Questions to a sparse vector: a value, or a function that computes it, and perhaps a threshold."""

    def __init__(self, mechanism: _Thresholded, data: Any, noise: Source) -> None:
        super().__init__(mechanism)
        self._rules = mechanism
        self._data = data
        self._noise = noise
        self._only_bar = None if mechanism._bars.ndim else int(mechanism._bars)

    def __call__(self, value: Any, threshold: Any = None) -> Any:
        """Whether the value is above the threshold (by default the mechanism's, or its next one)."""
        bar = self._only_bar
        if threshold is not None or bar is None:
            bar = self._bar(threshold)
        if callable(value):
            return self._answer(lambda: self._compare(bar - self._evaluate(value)))
        margin = bar - self._rules.point(value)
        return self._answer(lambda: self._compare(margin))

    def _compare(self, margin: int) -> Any:
        raise NotImplementedError

    def _evaluate(self, value: Callable[..., Any]) -> int:
        return self._rules.point(value() if self._data is None else value(self._data))

    def _bar(self, threshold: Any) -> int:
        if threshold is not None:
            bars = self._rules.bars(threshold)
            if bars.ndim:
                raise InvalidValue(f"a question has one threshold, got {threshold!r}")
            return int(bars)
        bars, asked = self._rules._bars, len(self._transcript)
        if asked >= len(bars):
            raise InvalidValue(f"there are {len(bars)} thresholds and all were used: give this question its own")
        return int(bars[asked])


class Comparisons(_Asking):
    """Ask ``(value)`` or ``(value, threshold)``: True if it is above, until ``at_most`` were.

    The value is a number, or a function that computes it: of the data given to ``ledger.open``, or of nothing.
    With ``gap``, positives answer by how much (0.0 or more) and negatives None.
    """

    def __init__(self, mechanism: SparseVector, data: Any, noise: Source) -> None:
        super().__init__(mechanism, data, noise)
        self._svt = mechanism
        self._left = mechanism.at_most
        self._shift: int | None = None
        self._pool: list[int] = []
        self._block = 16

    def finished(self) -> bool:
        """Whether all positives allowed have come."""
        return not self._left

    def _compare(self, margin: int) -> Any:
        svt = self._svt
        if self._shift is None:
            self._shift = svt._shift(self._noise)
        if not self._pool:  # noise for many questions at once; each is seen by one question only
            far, block = _too_far(self._shift), self._block
            self._pool = [svt._one(self._noise, svt.rate)] if far else svt._many(self._noise, svt.rate, block).tolist()
            self._block = min(2 * block, 4096)
        excess = self._pool.pop() - margin - self._shift
        if excess < 0:
            return None if svt.gap else False
        self._left -= 1
        return svt._grid.value(min(excess, 4 * FARTHEST)) if svt.gap else True


class AdaptiveComparisons(_Asking):
    """Ask ``(value)`` or ``(value, threshold)``: 2 if it is far above, 1 above, 0 below, while shares last."""

    def __init__(self, mechanism: AdaptiveSparseVector, data: Any, noise: Source) -> None:
        super().__init__(mechanism, data, noise)
        self._svt = mechanism
        self._left = mechanism._shares
        self._moves: tuple[int, int] | None = None

    def finished(self) -> bool:
        """Whether what is left does not pay for a positive."""
        return self._left < 2

    def _compare(self, margin: int) -> int:
        if self._moves is None:
            self._moves = self._svt._moves(self._noise)
        answer = int(self._svt.compare(np.array([margin]), self._moves, self._noise)[0])
        self._left -= int(_SHARES_FOR[answer])
        return answer


def _too_far(shift: int) -> bool:
    """Whether the threshold's noise is beyond what arrays compare with; once in e^512 runs, or less."""
    return abs(shift) > 2 * FARTHEST


def _requested(epsilon: Any) -> Any:
    """The ε, or pair of them, that a request gets: rounded down, and above 0."""
    if isinstance(epsilon, tuple | list):
        if len(epsilon) != 2:
            raise InvalidValue(f"epsilon is a total, or a pair for threshold and positives, got {epsilon!r}")
        return requested_epsilon(epsilon[0]), requested_epsilon(epsilon[1])
    if Cost.within(epsilon).epsilon_units < 2:
        raise InvalidValue(f"ε must be at least 2e-12, for it is split in two, got {epsilon!r}")
    return requested_epsilon(epsilon)


def _finite(threshold: Any) -> NDArray[np.float64]:
    """One threshold as an array of no dimension, or several as an array of one."""
    if isinstance(threshold, np.ndarray):
        threshold = threshold.item() if threshold.ndim == 0 else threshold
    try:
        numbers = np.array(
            float(exact(threshold, "threshold")) if np.ndim(threshold) == 0 else threshold, dtype=np.float64
        )
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"a threshold is a finite number, or an array with one each, got {threshold!r}") from None
    if numbers.ndim > 1 or not np.isfinite(numbers).all():
        raise InvalidValue(f"a threshold is a finite number, or an array with one each, got {threshold!r}")
    return numbers


def _positive(output: Any) -> NDArray[np.bool_]:
    """Which answers were positive: True, or a gap that is a number."""
    answers = np.asarray(output)
    if answers.dtype == np.bool_:
        return answers
    return ~np.isnan(answers.astype(np.float64))  # None and NaN stand for "below"


def _above(threshold: Any) -> str:
    return "above their thresholds" if isinstance(threshold, tuple) else f"above {threshold}"
