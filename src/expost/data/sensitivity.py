"""Sensitivities: how far one unit moves an answer, from what it may contribute and which databases are neighbours.

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
    """The largest distance between the answers on two neighbours. Each of the three is attained.

    Parameters
    ----------
    l1
        In the L1 norm.
    l2_squared
        In the L2 norm, squared.
    each
        Of any one number (L∞).
    """

    l1: int
    l2_squared: int
    each: int

    @property
    def l2(self) -> int | Fraction:
        """The L2 sensitivity, rounded up if it is not a whole number."""
        root = isqrt(self.l2_squared)
        return root if root * root == self.l2_squared else root_above(Fraction(self.l2_squared))


def of_number(least: int, most: int, neighbours: Neighbours) -> Sensitivity:
    """Of a number to which one unit contributes between ``least`` and ``most``, both of them possible.

    Proof: lem-number
    """
    far = max(abs(least), abs(most)) if neighbours == "add-remove" else most - least
    return Sensitivity(far, far * far, far)


def of_sum(fewest: int, rows: int, low: int, high: int) -> tuple[int, int]:
    """The smallest and the largest sum of ``fewest`` to ``rows`` values, each between ``low`` and ``high``.

    Proof: lem-sum
    """
    return min(fewest * low, rows * low), max(fewest * high, rows * high)


def of_rows(fewest: int, rows: int, cells: int, neighbours: Neighbours) -> Sensitivity:
    """Of a histogram of rows, in which one unit has between ``fewest`` and ``rows`` rows in all, in any cells.

    Proof: lem-histogram
    """
    if cells == 1 or neighbours == "add-remove":
        return of_number(fewest, rows, neighbours)
    return Sensitivity(2 * rows, 2 * rows**2, rows)


def of_units(fewest: int, groups: int, cells: int, neighbours: Neighbours) -> Sensitivity:
    """Of a histogram of units, in which one unit is counted once in each of ``fewest`` to ``groups`` cells.

    Proof: lem-histogram
    """
    if cells == 1:
        return of_number(fewest, 1, neighbours)
    touched = min(groups if neighbours == "add-remove" else 2 * groups, cells)
    return Sensitivity(touched, touched, 1)
