"""What mechanisms that add noise share: reading numeric data, and adding noise to it safely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.noise.grid import FARTHEST, Grid

RELEASED = "released"
"""The only part of a mechanism that costs the same whatever comes out."""


@dataclass(frozen=True)
class Shape:
    """The public facts about numeric data: whole numbers or floats, one number or an array."""

    floats: bool
    dimensions: tuple[int, ...] | None
    """None for a single number."""

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return 1 if self.dimensions is None else prod(self.dimensions)


def shape_of(data: Any) -> Shape:
    """The public facts about ``data``. Looks at types and shapes, never at values."""
    if isinstance(data, int | float) and not isinstance(data, np.generic):
        return Shape(isinstance(data, float), None)
    dtype = getattr(data, "dtype", None)
    if not isinstance(dtype, np.dtype):
        raise InvalidValue(
            f"numeric data is an int, a float or a numpy array, got {type(data).__name__}: try np.asarray(…)"
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InvalidValue(f"numeric data has whole numbers or floats of at most 64 bits, got dtype {dtype}")
    return Shape(dtype.kind == "f", None if isinstance(data, np.generic) else tuple(map(int, data.shape)))


def add(
    data: Any,
    shape: Shape,
    grid: Grid,
    missing: Fraction,
    one: Callable[[], int],
    many: Callable[[int], NDArray[np.int64]],
) -> Any:
    """data + noise: rounded to the grid if it is floats, clamped before and after.

    Proof: lem-saturation
    """
    if shape.dimensions is None:
        point = grid.round(float(data), missing) if shape.floats else int(data)
        total = _clamp(_clamp(point) + one())
        return grid.value(total) if shape.floats else total
    numbers = np.asarray(data)
    totals = many(shape.size).reshape(shape.dimensions)
    if shape.floats:
        totals += grid.round_all(numbers, missing)
    elif numbers.dtype.itemsize < 8:
        totals += numbers
    else:
        totals += np.clip(numbers, -FARTHEST if numbers.dtype.kind == "i" else 0, FARTHEST).astype(np.int64, copy=False)
    np.clip(totals, -FARTHEST, FARTHEST, out=totals)
    return grid.values(totals) if shape.floats else totals


def requested_epsilon(epsilon: Number) -> float:
    """The ε that a request gets: rounded down to 10⁻¹², and above 0."""
    within = Cost.within(epsilon)
    if not within.epsilon_units:
        raise InvalidValue(f"ε must be at least 1e-12, got {epsilon!r}")
    return within.epsilon


def requested_delta(delta: Number) -> float:
    """The δ that a request gets: rounded down to 10⁻¹⁸, above 0 and below 1."""
    within = Cost.within(0, delta)
    if not 0 < within.exact_delta < 1:
        raise InvalidValue(f"this mechanism needs a δ of at least 1e-18 and below 1, got {delta!r}")
    return within.delta


def positive(value: Number, name: str) -> Fraction:
    """The exact value, which must be above 0."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidValue(f"{name} must be above 0, got {value!r}")
    return number


def miss_probability(confidence: Number, size: int) -> Fraction:
    """How often each of ``size`` values may miss, so that all hit with this confidence."""
    level = exact(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidValue(f"confidence lies strictly between 0 and 1 (such as 0.95), got {confidence!r}")
    if size < 1:
        raise InvalidValue(f"an error bound is about at least one value, got size {size}")
    return (1 - level) / size


def least_units(suffices: Callable[[int], bool], what: str) -> int:
    """The least whole number of units that suffices, by doubling and bisection."""
    high = 1
    while not suffices(high):
        high *= 2
        if high >= 2**63:
            raise InvalidValue(f"no ε buys {what}: take a finer grid or ask for less")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _clamp(number: int) -> int:
    return max(-FARTHEST, min(FARTHEST, number))
