"""What both sparse vectors share: the grid, the split of the budget, the noise, and questions one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor, log, nan
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_positive, as_whole, check_fields, check_monotone, split_epsilon
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanism import Interaction, Mechanism
from expost.mechanisms.numbers import OfArrays, shape_of
from expost.mechanisms.sparse_vector.mask import AboveMask, answers_of
from expost.mentions import brief
from expost.noise import NoiseSource, scalar, vector
from expost.noise.grid import Grid

NoiseKind: TypeAlias = Literal["one-sided", "two-sided"]
Points: TypeAlias = NDArray[np.int64]
FARTHEST_VALUE = 2**58
"""Values are clamped to this many steps of the grid on either side of zero; thresholds must lie within."""

MOST_SHARES = 40_000  # a guarantee lists each number of shares
CHUNK = 2**17  # values compared at a time, so that an early stop stops early


@dataclass(frozen=True, kw_only=True)
class Thresholded(OfArrays, Mechanism[NDArray[Any], AboveMask]):
    """What both sparse vectors share: the grid, the split of the budget, the noise, the comparison."""

    threshold: Any
    at_most: int
    epsilon: Number
    sensitivity: Number
    threshold_share: Number | None = None
    monotone: bool = False
    noise: NoiseKind = "one-sided"
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, at_most=as_whole)
        as_positive(self.sensitivity, "sensitivity")
        if self.noise not in ("one-sided", "two-sided"):
            raise InvalidValue(f"noise must be 'one-sided' or 'two-sided', got {self.noise!r}")
        exact(self.missing, "missing")
        as_neighbours(self.neighbours)
        check_monotone(self.monotone, self.neighbours)
        check_fields(self, "epsilon")
        _ = self.halves
        object.__setattr__(self, "grid", self._grid.value(1))
        object.__setattr__(self, "threshold", self._shown(self.bars(self.threshold)))
        if self._shares > MOST_SHARES:
            raise InvalidValue(f"at_most goes up to {MOST_SHARES // 2:,}, got {self.at_most!r}: run it in portions")
        vector.check_rate(self._threshold_rate)
        vector.check_rate(self._share / self._steps)

    # ---- the budget

    @cached_property
    def halves(self) -> tuple[Cost, Cost]:
        """(ε₁, ε₂): for the threshold, and for all positives together."""
        positives = self.at_most if self.monotone else 2 * self.at_most
        best = Fraction(1 / (1 + positives ** (2 / 3)))
        share = best if self.threshold_share is None else self.threshold_share
        first, second = split_epsilon(self.epsilon, share, "threshold_share")
        return Cost(first), Cost(second)

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

    # ---- what came out

    def frame_of(self, answer: Any) -> Frame:
        """A row for each value: above, below or not compared; of an interaction, for each question."""
        if isinstance(answer, AboveMask):
            return answer.frame
        answers = answers_of(answer)
        return AboveMask(answers, len(answers)).frame

    # ---- the grid

    @cached_property
    def _grid(self) -> Grid:
        if self.grid is not None:
            return Grid.of(self.grid)
        sensitivity = exact(self.sensitivity, "sensitivity")
        thresholds = finite_bars(self.threshold)
        if sensitivity.denominator == 1 and np.all(thresholds == np.floor(thresholds)):
            return Grid(0)
        return Grid.within(sensitivity / 1024)

    @cached_property
    def _steps(self) -> int:
        """The sensitivity of one rounded value, in steps of the grid."""
        return self._grid.l1(exact(self.sensitivity, "sensitivity"), 1)

    def bars(self, threshold: Any) -> Points:
        """A threshold, or an array of them, in steps of the grid, rounded half up."""
        bars = self._grid.round_all(finite_bars(threshold), Fraction(0))
        if np.any(np.abs(bars) > FARTHEST_VALUE):
            raise InvalidValue(
                f"thresholds lie within 2^58 steps of {self._grid.step} on either side of zero, got "
                f"{brief(threshold)}: take a coarser grid"
            )
        return bars

    def _shown(self, bars: Points) -> Any:
        """Thresholds as they are kept and printed: on the grid."""
        shown = (bars if self._grid.exponent == 0 else self._grid.values(bars)).tolist()
        return tuple(shown) if isinstance(shown, list) else shown

    @cached_property
    def _bars(self) -> Points:
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
        return (
            number if -FARTHEST_VALUE <= number <= FARTHEST_VALUE else FARTHEST_VALUE if number > 0 else -FARTHEST_VALUE
        )

    def points(self, data: NDArray[Any]) -> Points:
        """Private values in steps of the grid, rounded half up and clamped; NaN is ``missing``."""
        if data.dtype.kind != "f":
            return self._grid.round_integers(data, FARTHEST_VALUE)
        numbers = self._grid.round_all(data, exact(self.missing, "missing"))
        return np.clip(numbers, -FARTHEST_VALUE, FARTHEST_VALUE, out=numbers)

    # ---- the noise

    @property
    def _threshold_rate(self) -> Fraction:
        return self.halves[0].exact_epsilon / self._steps

    def _one(self, noise: NoiseSource, rate: Fraction) -> int:
        return (scalar.geometric if self.noise == "one-sided" else scalar.discrete_laplace)(noise, rate)

    def _many(self, noise: NoiseSource, rate: Fraction, count: int) -> Points:
        return (vector.geometric if self.noise == "one-sided" else vector.discrete_laplace)(noise, rate, count)

    def _reaches(self, noise: NoiseSource, rate: Fraction, margins: Points, shift: int) -> NDArray[np.bool_]:
        """For each margin, whether fresh noise is at least margin + shift.

        Proof: lem-comparisons
        """
        if too_far(shift):
            return self._excess(noise, rate, margins, shift) >= 0
        reaches = vector.geometric_reaches if self.noise == "one-sided" else vector.laplace_reaches
        return reaches(noise, rate, margins + shift)

    def _excess(self, noise: NoiseSource, rate: Fraction, margins: Points, shift: int) -> Points:
        """For each margin, fresh noise less margin and shift, clamped to 2^60 above and to −1 below.

        Proof: lem-comparisons
        """
        if not too_far(shift):
            excess = self._many(noise, rate, len(margins)) - (margins + shift)
            return np.clip(excess, -1, 4 * FARTHEST_VALUE, out=excess)
        one_by_one = (self._one(noise, rate) - int(margin) - shift for margin in margins)
        return np.array([max(-1, min(4 * FARTHEST_VALUE, excess)) for excess in one_by_one], np.int64)

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


class Asking(Interaction):
    """Questions to a sparse vector: a value, or a function that computes it, and perhaps a threshold."""

    def __init__(self, mechanism: Thresholded, data: Any, noise: NoiseSource) -> None:
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


def too_far(shift: int) -> bool:
    """Whether the threshold's noise is beyond what arrays compare with; once in e^512 runs, or less."""
    return abs(shift) > 2 * FARTHEST_VALUE


def finite_bars(threshold: Any) -> NDArray[np.float64]:
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


def above_text(threshold: Any) -> str:
    """How a description says what positives are above."""
    return "above their thresholds" if isinstance(threshold, tuple) else f"above {threshold}"
