"""Mechanisms that add noise, and cost the same whatever comes out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expost.checks import as_confidence, as_whole
from expost.cost import Number
from expost.estimate import Drawn, Estimate
from expost.estimates import EstimateArray
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanisms.accuracy import Calibrated
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.numbers import GridNoise, Numeric, OfArrays, Shape, shape_of
from expost.noise.sums import StepLaw, Term


class Additive(OfArrays, GridNoise, FixedCost[Numeric, Any], Calibrated[Numeric, Any]):
    """A mechanism that adds noise on a grid: pure ε, unless a subclass guarantees something else."""

    neighbours: Neighbours | None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_neighbours(self.neighbours)

    @abstractmethod
    def _steps(self, parameter: Fraction) -> StepLaw:
        """The law of the noise, in steps of the grid."""

    def noise_of(self, shape: Shape) -> Term:
        """The noise of each number of data of this shape, with what rounding to the grid adds."""
        grid, parameter = self._calibrate(shape)
        return Term(grid.step if shape.floats else Fraction(1), self._steps(parameter), Fraction(shape.floats, 2))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """A number with its error, or an array of them."""
        shape = shape_of(output)
        law = NoiseOf(self, shape)
        if shape.dimensions:
            return EstimateArray.of(output, origin, law, what=self.what)
        return Estimate.of(np.asarray(output).item(), Drawn((origin, 0), law=law))

    def error_bound(self, confidence: Number, *, n: int = 1, floats: bool = False) -> float:
        """How far off the result is at most, with this confidence: all ``n`` values at once.

        ``floats`` asks for float data, whose rounding to the grid is then included.
        """
        level = as_confidence(confidence)
        grid, parameter = self._calibrate(Shape(floats, (as_whole(n, "n"),)))
        steps = self._steps(parameter).reach((1 - level) / n)
        return grid.value(2 * steps + 1) / 2 if floats else steps

    def describe(self, output: Any) -> str:
        """What came out, and how far off it may be."""
        shape = shape_of(output)
        bound = self.error_bound("0.95", n=max(shape.size, 1), floats=shape.floats)
        if shape.dimensions is None:
            return f"{output:.6g} ± {bound:.3g} at 95 %" if shape.floats else f"{output} ± {bound} at 95 %"
        return f"{shape.size} values, all ± {bound:.3g} at 95 %"


@dataclass(frozen=True, eq=False)
class NoiseOf:
    """The noise of each number of data of a shape, found when it is asked for; a class, so that it can be pickled."""

    mechanism: Additive
    shape: Shape
    step: Fraction = Fraction(1)
    """What one unit of the data is, as people read it."""

    def __call__(self) -> Term:
        """The law of one number."""
        return self._term

    @cached_property
    def _term(self) -> Term:
        term = self.mechanism.noise_of(self.shape)
        return term._replace(scale=term.scale * self.step)
