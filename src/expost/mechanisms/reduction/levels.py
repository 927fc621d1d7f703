"""What mechanisms that reduce noise level by level share: when they stop, what they publish, and how far off it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from operator import add
from typing import Any, ClassVar, NamedTuple

import numpy as np

from expost.checks import as_confidence, as_whole
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.estimates import EstimateArray, frame_by_key
from expost.frame import Frame
from expost.guarantee import Part
from expost.mechanism import Interaction
from expost.mechanisms.additive import Additive
from expost.mechanisms.numbers import Shape, shape_of, within_reach
from expost.mechanisms.reduction.rules import StoppingRule
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.noise.grid import Grid

_FAR = 2**53  # steps: floats are rounded there, and what is clamped is further still, so that no rule is met


class Reduced(NamedTuple):
    """What noise reduction publishes: the last value, its level from 1 on, and whether the rule was met."""

    value: Any
    level: int
    met: bool


@dataclass(frozen=True, kw_only=True)
class Leveled(Additive):
    """A mechanism that releases answers with less and less noise, until one is good enough."""

    _values: ClassVar[int] = 10_000
    """The most values: the noises of all levels are kept."""

    levels: int = 24
    ratio: Number = Fraction(5, 4)
    until: StoppingRule | None = None

    @abstractmethod
    def _parameters(self, shape: Shape) -> list[Fraction]:
        """The parameter of the noise (rate or variance) at each level, in steps of the grid of the last."""

    @abstractmethod
    def _noises(self, noise: NoiseSource, shape: Shape) -> list[list[int]]:
        """The noise of each level, in steps of that grid."""

    @abstractmethod
    def _miss(self, rule: StoppingRule, shape: Shape) -> Fraction:
        """How likely noise of a level may be to exceed the error that the rule gets."""

    def _check_levels(self, amounts: tuple[Fraction, ...], what: str) -> None:
        """Levels that grow, and a rule."""
        if not (self.until is None or isinstance(self.until, StoppingRule)):
            raise InvalidValue(f"until is a rule such as RelativeError(within=0.05), got {brief(self.until)}")
        if any(one >= other for one, other in pairwise(amounts)) or not amounts[0]:
            raise InvalidValue(
                f"{self.levels} levels with ratio {self.ratio} from {what} {amounts[-1]} down are less than 10⁻¹² "
                "apart: take fewer levels"
            )

    def _amounts(self, last: Number) -> tuple[Fraction, ...]:
        """What each level has, of what the last one has."""
        ratio = exact(self.ratio, "ratio")
        if ratio <= 1:
            raise InvalidValue(f"ratio is how much more a level has than the one before: above 1, got {self.ratio}")
        fewer = range(as_whole(self.levels, "levels", most=200) - 1, -1, -1)
        return tuple(Cost.within(exact(last, "the last level") / ratio**steps).exact_epsilon for steps in fewer)

    def part_of(self, output: Any) -> Part:
        """The level of the last answer: as published, or the number of answers of an interaction."""
        return output.level if isinstance(output, Reduced) else len(output)

    def check(self, data: Any) -> None:
        """Numbers that the noise of every level can be made for, and a rule when to stop."""
        if self.until is None:
            raise InvalidValue("noise reduction in one go needs until=, a rule when to stop; or use ledger.open(…)")
        self.check_start(data)
        self._miss(self.until, shape_of(data))  # a rule of the caller's own that fails, fails here

    def check_start(self, data: Any) -> None:
        """Numbers that the noise of every level can be made for."""
        shape = shape_of(data)
        if shape.size > self._values:
            raise InvalidValue(f"noise is reduced for at most {self._values:,} values at once, got {shape.size:,}")
        self._parameters(shape)

    def sample(self, data: Any, noise: NoiseSource) -> Reduced:
        """The first answer that meets the rule, or the last."""
        assert self.until is not None
        answers = self._answers(data, noise)
        shape, rule = shape_of(data), self.until
        miss = self._miss(rule, shape)
        for level, points in enumerate(answers.points, 1):
            error = self._width(level, shape, miss)
            near = all(abs(point) < _FAR for point in points)
            if near and rule.met([answers.grid.step * point for point in points], error):
                return Reduced(answers.value(level), level, True)
        return Reduced(answers.value(self.levels), self.levels, False)

    def start(self, data: Any, noise: NoiseSource) -> Refinement:
        """Answers one at a time."""
        return Refinement(self, data, noise)

    def error_bound(
        self, confidence: Number, *, level: int | None = None, n: int = 1, floats: bool = False, at_stop: bool = False
    ) -> float:
        """How far off the answer of a level (by default the last) is at most, with this confidence.

        ``at_stop`` asks for a bound that holds at whatever level one stops, though that depends on the answers.
        """
        level = self.levels if level is None else as_whole(level, "level", most=self.levels)
        shape = Shape(floats, (as_whole(n, "n"),))
        return float(self._error(confidence, level, shape, at_stop))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """Numbers with errors that hold although the numbers decided where to stop; ``how`` is the :class:`Reduced`.

        Of an interaction, those of each level.
        """
        if isinstance(output, Reduced):
            return self._with_error(output.value, output.level, origin, output)
        return tuple(self._with_error(value, level, (origin, level)) for level, value in enumerate(output, 1))

    def _with_error(self, value: Any, level: int, origin: Hashable, how: Reduced | None = None) -> Any:
        shape = shape_of(value)
        bound = partial(self._bound_at_stop, level, shape)
        if shape.dimensions is not None:
            return EstimateArray.of(value, origin, bound=bound, how=how, what=self.what)
        return Estimate.of(value, Drawn((origin, 0), bound), how=how)

    def _bound_at_stop(self, level: int, shape: Shape, miss: Fraction) -> float:
        """How far off one value is, at whatever level it stopped.

        Proof: lem-error-at-stop
        """
        return float(self._width(level, shape, miss / self.levels))

    def frame_of(self, answer: Any) -> Frame:
        """The rows of what was published; of an interaction, of each level."""
        if not isinstance(answer, tuple):
            return super().frame_of(answer)
        return frame_by_key("level", dict(enumerate(answer, 1)), self)

    def describe(self, output: Any) -> str:
        """The last answer and its level."""
        value, level = (output.value, output.level) if isinstance(output, Reduced) else (output[-1], len(output))
        shape = shape_of(value)
        shown = f"{value:.6g}" if shape.dimensions is None else f"{shape.size} values, all"
        if self.until is not None and isinstance(output, Reduced) and output.met:
            return f"{shown} {self.until} (step {level} of {self.levels})"
        error = float(self._error("0.95", level, shape, at_stop=True))
        return f"{shown} ± {error:.3g} at 95 % (step {level} of {self.levels})"

    def _error(self, confidence: Number, level: int, shape: Shape, at_stop: bool) -> Fraction:
        """Proof: lem-error-at-stop."""
        miss = (1 - as_confidence(confidence)) / max(shape.size, 1)
        return self._width(level, shape, miss / self.levels if at_stop else miss)

    def _width(self, level: int, shape: Shape, miss: Fraction) -> Fraction:
        """How far off one value of this level is at most, but for this probability."""
        grid, _ = self._calibrate(shape)
        return (self._steps(self._parameters(shape)[level - 1]).reach(miss) + self._rounding(shape)) * grid.step

    def _rounding(self, shape: Shape) -> Fraction:
        """How far rounding to the grid moves a value at most, in steps."""
        return Fraction(1, 2) if shape.floats else Fraction(0)

    def _answers(self, data: Any, noise: NoiseSource) -> _Answers:
        """The answers of all levels. Private until they are released."""
        shape = shape_of(data)
        grid, _ = self._calibrate(shape)
        points = np.ravel(self.points(data, grid)).tolist()
        noises = self._noises(noise, shape)
        return _Answers(shape, grid, [list(map(within_reach, map(add, points, level))) for level in noises])


class _Answers(NamedTuple):
    """The answers of all levels, in steps of the grid."""

    shape: Shape
    grid: Grid
    points: list[list[int]]

    def value(self, level: int) -> Any:
        """The answer of a level, as it is released: of the shape and kind of the data."""
        points = self.points[level - 1]
        if self.shape.dimensions is None:
            return self.grid.value(points[0]) if self.shape.floats else points[0]
        array = np.array(points, np.int64).reshape(self.shape.dimensions)
        return self.grid.values(array) if self.shape.floats else array


class Refinement(Interaction):
    """Answers with less and less noise. Each ``refine()`` gives the next one, until the last level."""

    def __init__(self, mechanism: Leveled, data: Any, noise: NoiseSource) -> None:
        super().__init__(mechanism)
        self._reduction = mechanism
        self._shape = shape_of(data)
        self._data, self._noise = data, noise
        self._answers: _Answers | None = None

    @property
    def level(self) -> int:
        """The level of the last answer; 0 before the first."""
        return len(self._transcript)

    def refine(self) -> Any:
        """The next answer, with less noise."""
        return self._answer(self._next)

    def error_bound(self, confidence: Number) -> float:
        """How far off the last answer is at most, with this confidence, although one stopped because of it."""
        return float(self._reduction._error(confidence, max(self.level, 1), self._shape, at_stop=True))

    def finished(self) -> bool:
        """Whether the last level was reached."""
        return self.level == self._reduction.levels

    def _next(self) -> Any:
        if self._answers is None:
            self._answers = self._reduction._answers(self._data, self._noise)
        return self._answers.value(self.level + 1)
