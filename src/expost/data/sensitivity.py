"""How far one unit moves an answer: from what it may contribute, and from which databases are neighbours.

All answers are whole numbers: counts, or sums in steps of a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from expost.guarantee import Neighbours
from expost.mechanisms.numbers import root_above


@dataclass(frozen=True)
class Sensitivity:
    """The furthest that neighbours can be apart. Each of the three is attained."""

    l1: int
    """The sum of the distances."""
    l2_squared: int
    """The sum of the squared distances."""
    each: int
    """The largest distance of any one number."""

    @property
    def l2(self) -> int | Fraction:
        """The Euclidean distance, rounded up if it is not whole."""
        root = isqrt(self.l2_squared)
        return root if root * root == self.l2_squared else root_above(Fraction(self.l2_squared))


def of_number(least: int, most: int, neighbours: Neighbours) -> Sensitivity:
    """A number to which one unit contributes something between ``least`` and ``most``, both possible.

    Proof: lem-number
    """
    far = max(abs(least), abs(most)) if neighbours == "add-remove" else most - least
    return Sensitivity(far, far * far, far)


def of_sum(fewest: int, rows: int, low: int, high: int) -> tuple[int, int]:
    """The least and the most that between ``fewest`` and ``rows`` rows, each from ``low`` to ``high``, add up to.

    Proof: lem-sum
    """
    return min(fewest * low, rows * low), max(fewest * high, rows * high)


def of_rows(fewest: int, rows: int, cells: int, neighbours: Neighbours) -> Sensitivity:
    """A histogram of rows: one unit has between ``fewest`` and ``rows`` rows in all, in any of the cells.

    Proof: lem-histogram
    """
    if cells == 1 or neighbours == "add-remove":
        return of_number(fewest, rows, neighbours)
    return Sensitivity(2 * rows, 2 * rows**2, rows)


def of_units(fewest: int, groups: int, cells: int, neighbours: Neighbours) -> Sensitivity:
    """A histogram of units: one unit is counted once in between ``fewest`` and ``groups`` of the cells.

    Proof: lem-histogram
    """
    if cells == 1:
        return of_number(fewest, 1, neighbours)
    touched = min(groups if neighbours == "add-remove" else 2 * groups, cells)
    return Sensitivity(touched, touched, 1)
