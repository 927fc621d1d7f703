"""Grids: floats as whole numbers of a step that is a power of two.

Noise on floats leaks through their gaps, so noise is only ever added to whole numbers: values are rounded
to the grid first, exactly and half up, and their sensitivity is counted in steps, rounding included.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf, isfinite, isnan, isqrt, ldexp, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cost import exact
from expost.errors import InvalidValue

FARTHEST = 2**60
"""Data, and data with noise, are clamped to this many steps on either side of zero."""

_BLOCK = 2**14  # values rounded at a time, so that they stay in the cache


@dataclass(frozen=True)
class Grid:
    """The multiples of 2^exponent."""

    exponent: int

    @classmethod
    def of(cls, step: Any) -> Grid:
        """The grid with this step, which must be a power of two. Floats count with every bit."""
        if isinstance(step, float) and isfinite(step):
            step = Fraction(step)
        step = exact(step, "grid")
        size = max(step.numerator, step.denominator)
        if step <= 0 or min(step.numerator, step.denominator) != 1 or size & (size - 1):
            raise InvalidValue(f"a grid's step must be a power of two (such as 0.25, 1 or 2**10), got {step}")
        return cls.within(step)

    @classmethod
    def within(cls, step: Fraction) -> Grid:
        """The coarsest grid whose step is at most ``step``."""
        exponent = step.numerator.bit_length() - step.denominator.bit_length()
        grid = cls(exponent if Fraction(2) ** exponent <= step else exponent - 1)
        if not -900 <= grid.exponent <= 900:
            raise InvalidValue(f"a grid's step must lie between 2^−900 and 2^900, got about {float(step):g}")
        return grid

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring points."""
        return Fraction(2) ** self.exponent

    def l1(self, sensitivity: Fraction, size: int) -> int:
        """The L1 sensitivity in steps of ``size`` rounded values, from that of the values themselves.

        Proof: lem-grid
        """
        return ceil(sensitivity / self.step) + max(size, 1) - 1

    def l2(self, sensitivity: Fraction, size: int) -> Fraction:
        """An upper bound on the L2 sensitivity in steps of ``size`` rounded values.

        Proof: lem-grid
        """
        if size <= 1:
            return Fraction(ceil(sensitivity / self.step))
        root = isqrt(size << 40) + 1
        return sensitivity / self.step + Fraction(root, 1 << 20)

    def round(self, value: float, missing: Fraction) -> int:
        """The nearest point, half up, clamped to ±2^60 steps; NaN is ``missing``."""
        if value in (inf, -inf):
            return FARTHEST if value > 0 else -FARTHEST
        exact = missing if isnan(value) else Fraction(value)
        return max(-FARTHEST, min(FARTHEST, floor(exact / self.step + Fraction(1, 2))))

    def round_all(self, values: NDArray[np.floating], missing: Fraction) -> NDArray[np.int64]:
        """The nearest points, half up, clamped to ±2^60 steps; NaN is ``missing``.

        Proof: lem-grid
        """
        flat, numbers = values.ravel(), np.empty(values.size, np.int64)
        for start in range(0, values.size, _BLOCK):
            numbers[start : start + _BLOCK] = self._round_block(flat[start : start + _BLOCK], missing)
        return numbers.reshape(values.shape)

    def _round_block(self, values: NDArray[np.floating], missing: Fraction) -> NDArray[np.float64]:
        """Whole numbers, still as floats."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            steps = np.multiply(values, 2.0**-self.exponent, dtype=np.float64)
            points: NDArray[np.float64] = np.floor(steps)
            steps -= points
            points += steps >= 0.5  # not floor(steps + 0.5): that sum itself is rounded
        lost = np.isnan(points)
        if lost.any():
            points[lost] = self.round(nan, missing)
        np.clip(points, -FARTHEST, FARTHEST, out=points)
        return points

    def round_integers(self, values: NDArray[Any], farthest: int = FARTHEST) -> NDArray[np.int64]:
        """The nearest points to whole numbers of any width, half up, clamped to ``farthest`` steps. Nothing wraps.

        ⌊n/2^e + ½⌋ is the number without its last e bits, plus the first of those bits.

        Proof: lem-grid
        """
        if values.dtype.kind == "b":
            values = values.astype(np.int64)
        shift = abs(self.exponent)
        if self.exponent <= 0:
            width, far = np.iinfo(values.dtype), farthest >> shift
            least, most = max(-far, int(width.min)), min(far, int(width.max))
            inside = np.asarray(np.clip(values, least, most), np.int64)
            if not shift:
                return inside
            points = np.where(values > most, farthest, inside << min(shift, 62))
            return np.where(values < least, -farthest, points)
        if shift > 64 or (shift == 64 and values.dtype.kind == "i"):
            return np.zeros(values.shape, np.int64)
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64)
        one = wide.dtype.type(1)
        points = (wide >> wide.dtype.type(shift - 1)) & one
        if shift < 64:
            points += wide >> wide.dtype.type(shift)
        points = np.clip(points, -farthest if values.dtype.kind == "i" else 0, farthest)
        return np.asarray(points, np.int64)

    def value(self, point: int) -> float:
        """The float nearest to a point of the grid."""
        return ldexp(float(point), self.exponent)

    def values(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        """The floats nearest to points of the grid."""
        return np.multiply(points, 2.0**self.exponent, dtype=np.float64)


def saturating_sum(numbers: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers and their noise, clamped: where array noise is at its own end, the sum says nothing about the number.

    Proof: lem-saturation
    """
    total = numbers + noise
    return np.clip(total, -FARTHEST, FARTHEST, out=total)
