"""Mechanisms that add noise, and cost the same whatever comes out."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any

from expost.checks import as_confidence, as_whole
from expost.cost import Number
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanisms.accuracy import Calibrated
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.numbers import GridNoise, Numeric, Shape, shape_of


class Additive(GridNoise, FixedCost[Numeric, Any], Calibrated[Numeric, Any]):
    """A mechanism that adds noise on a grid: pure ε, unless a subclass guarantees something else."""

    neighbours: Neighbours | None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_neighbours(self.neighbours)

    @abstractmethod
    def _reach(self, parameter: Fraction, miss: Fraction) -> int:
        """A number of steps that the noise exceeds with probability at most ``miss``."""

    def error_bound(self, confidence: Number, *, n: int = 1, floats: bool = False) -> float:
        """How far off the result is at most, with this confidence: all ``n`` values at once.

        ``floats`` asks for float data, whose rounding to the grid is then included.
        """
        level = as_confidence(confidence)
        grid, parameter = self._calibrate(Shape(floats, (as_whole(n, "n"),)))
        steps = self._reach(parameter, (1 - level) / n)
        return grid.value(2 * steps + 1) / 2 if floats else steps

    def describe(self, output: Any) -> str:
        """What came out, and how far off it may be."""
        shape = shape_of(output)
        bound = self.error_bound("0.95", n=max(shape.size, 1), floats=shape.floats)
        if shape.dimensions is None:
            return f"{output:.6g} ± {bound:.3g} at 95 %" if shape.floats else f"{output} ± {bound} at 95 %"
        return f"{shape.size} values, all ± {bound:.3g} at 95 %"
