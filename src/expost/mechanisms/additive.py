"""Mechanisms that add noise, and cost the same whatever comes out."""

from __future__ import annotations

from typing import Any

from expost.guarantee import Neighbours, Part, as_neighbours
from expost.mechanisms.accuracy import Calibrated
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.numbers import GridNoise, Numeric, shape_of


class Additive(GridNoise, Calibrated[Numeric, Any]):
    """A mechanism that adds noise on a grid. Subclasses say which, how much, and what that guarantees."""

    neighbours: Neighbours | None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_neighbours(self.neighbours)

    def part_of(self, output: Any) -> Part:
        """All outputs cost the same."""
        return RELEASED

    def describe(self, output: Any) -> str:
        """What came out, and how far off it may be."""
        shape = shape_of(output)
        bound = self.error_bound("0.95", n=max(shape.size, 1), floats=shape.floats)
        if shape.dimensions is None:
            return f"{output:.6g} ± {bound:.3g} at 95 %" if shape.floats else f"{output} ± {bound} at 95 %"
        return f"{shape.size} values, all ± {bound:.3g} at 95 %"
