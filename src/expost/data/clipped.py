"""Clamped values on a grid, whose sums are exact whatever the order of rows and the number of threads."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from expost.checks import as_bounds
from expost.cost import Number, exact
from expost.data import query
from expost.data.expression import Expression
from expost.errors import InvalidValue
from expost.mentions import brief
from expost.noise.grid import FARTHEST, Grid

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

_MOST_POINTS = 2**52
"""The most steps on either side of zero: the sum of 2^63 such values has at most 128 bits."""


@dataclass(frozen=True)
class Clipped:
    """A column or an expression, clamped to bounds and rounded to whole steps of a grid."""

    expression: Expression
    bounds: tuple[float, float]
    grid: Grid
    missing: float | None
    """What NULL and NaN count as; None if they do not count."""

    @classmethod
    def of(cls, value: Expression, bounds: Any, missing: Any, grid: Number | None, *, summed: bool = False) -> Clipped:
        """Checks the arguments; ``summed`` if values are added up as they are, and not as distances from a middle."""
        low, high = exact_bounds(bounds)
        whole = value.kind != "number" and low.denominator == high.denominator == 1
        points = Grid.of(grid) if grid is not None else _fine_grid(low, high, whole, summed)
        if max(abs(low), abs(high)) / points.step > _MOST_POINTS:
            raise InvalidValue(
                f"bounds from {float(low):g} to {float(high):g} are more than 2^52 steps of the grid {points.step} "
                "from 0: take a larger grid"
            )
        clipped = cls(value.as_number(), (float(low), float(high)), points, as_missing(missing, low, high))
        if clipped.ends[0] == clipped.ends[1]:
            raise InvalidValue(
                f"bounds from {float(low):g} to {float(high):g} are less than a step of the grid {points.step} apart: "
                "take a smaller grid"
            )
        return clipped

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, rounded like the values between them."""
        return self.point(self.bounds[0]), self.point(self.bounds[1])

    @property
    def middle(self) -> int:
        """The middle of the bounds, in steps."""
        return sum(self.ends) // 2

    def point(self, value: float) -> int:
        """The nearest whole number of steps; halves are rounded away from zero, as the engine does."""
        number = Fraction(value) / self.grid.step
        return floor(number + Fraction(1, 2)) if number >= 0 else ceil(number - Fraction(1, 2))

    def fewest(self, table: PrivateTable) -> int:
        """The fewest values that a unit can have."""
        return 0 if self.missing is None else table.fewest

    @property
    def cell(self) -> str:
        """The value ``v`` in steps, in SQL."""
        return self.cell_of(query.VALUE)

    def cell_of(self, named: str, shift: int = 0) -> str:
        """The value of this name in steps, minus a shift, in SQL."""
        gone = None if self.missing is None else self.point(self.missing)
        return query.steps_of(self.grid.exponent, *self.ends, gone, shift, named)

    def __repr__(self) -> str:
        low, high = self.bounds
        gone = "missing dropped" if self.missing is None else f"missing {self.missing:g}"
        return f"{self.expression} ({low:g} … {high:g}, {gone}, grid {float(self.grid.step):g})"


def exact_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """The exact values of the two bounds, as the floats that the engine is given."""
    low, high = as_bounds(bounds)
    return Fraction(low), Fraction(high)


def _fine_grid(low: Fraction, high: Fraction, whole: bool, summed: bool) -> Grid:
    """A grid of 1 for whole numbers; otherwise 2^30 steps or more between the bounds.

    Sums are cut off at 2^60 steps from 0. So where they are added up, values have at most 2^41 steps, if that leaves
    2^10 between the bounds.
    """
    if low == high:
        raise InvalidValue(f"bounds from {float(low):g} to {float(high):g} leave one value: pass bounds that differ")
    finest = (high - low) / 2**30
    if summed:
        finest = max(finest, min(max(abs(low), abs(high)) / 2**40, (high - low) / 2**10))
    return Grid(0) if whole else Grid.within(finest)


def as_missing(missing: Any, low: Fraction, high: Fraction) -> float | None:
    """What NULL and NaN count as, clamped to the bounds; None if they do not count."""
    if missing == "drop":
        return None
    if isinstance(missing, str):
        raise InvalidValue(f"missing is what NULL and NaN count as, a number or 'drop'; got {brief(missing)}")
    return float(min(max(exact(missing, "missing"), low), high))


def clamp(total: Any) -> int:
    """An exact sum, clamped to ±2^60; 0 if no value counts."""
    return max(-FARTHEST, min(FARTHEST, int(total or 0)))
