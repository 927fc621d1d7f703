"""Linear functions within a box of bounds: records in whole steps from its middle, and fits in units of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_interval, as_whole, check_fields
from expost.cost import Number
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.linear.rows import model_frame
from expost.mechanisms.numbers import OfArrays, shape_of
from expost.mentions import GivenValue

STEPS = 2**15  # on either side of the middle of the bounds
_MOST = 2**22  # records: sums stay within 2^52


class LinearFit(NamedTuple):
    """A linear function as published: intercept plus coefficients times features.

    ``standard_errors`` are those of the intercept and of each coefficient, if they were asked for.
    """

    intercept: float
    coefficients: tuple[float, ...]
    standard_errors: tuple[float, ...] | None = None

    def __call__(self, features: Any) -> NDArray[np.float64]:
        """The predictions for rows of features."""
        return np.asarray(self.intercept + np.asarray(features, np.float64) @ np.array(self.coefficients))

    @property
    def frame(self) -> Frame:
        """A row for the intercept, and for the coefficient of each feature; and for each standard error, if known.

        These are numbers of their own, as they are of noise and of sampling together.
        """
        rows: list[tuple[str, tuple[int | None], float]] = [("intercept", (None,), self.intercept)]
        rows += [("coefficient", (feature,), slope) for feature, slope in enumerate(self.coefficients)]
        keys = [None, *range(len(self.coefficients))]
        rows += [
            ("standard error", (key,), error) for key, error in zip(keys, self.standard_errors or (), strict=False)
        ]
        return model_frame(("feature",), rows)


@dataclass(frozen=True)
class Box:
    """The intervals of the columns, the target's last."""

    intervals: tuple[tuple[float, float], ...]

    @property
    def middles(self) -> NDArray[np.float64]:
        """The middle of each interval."""
        lows, highs = np.array(self.intervals).T
        return np.asarray((lows + highs) / 2)

    @property
    def halves(self) -> NDArray[np.float64]:
        """Half the length of each interval, or 1 if it has none."""
        lows, highs = np.array(self.intervals).T
        return np.where(highs > lows, (highs - lows) / 2, 1.0)

    def steps(self, data: Any, missing: float) -> NDArray[np.int64]:
        """Records in whole steps from the middle, clamped to the box. Each row depends on its own values only."""
        columns = np.nan_to_num(np.asarray(data, np.float64), nan=missing)
        lows, highs = np.array(self.intervals).T
        steps = np.floor((np.clip(columns, lows, highs) - self.middles) / self.halves * STEPS + 0.5)
        return np.asarray(np.clip(steps, -STEPS, STEPS).astype(np.int64))

    def restored(self, intercept: float, coefficients: NDArray[np.float64]) -> LinearFit:
        """A function of coordinates from −1 to 1 in units of the data."""
        found = self.scaling @ [intercept, *coefficients]
        return LinearFit(float(self.middles[-1] + found[0]), tuple(found[1:].tolist()))

    @property
    def scaling(self) -> NDArray[np.float64]:
        """What makes intercept and coefficients of coordinates those of the data, but for the target's middle."""
        middles, halves = self.middles, self.halves
        scaled = np.diag([halves[-1], *halves[-1] / halves[:-1]])
        scaled[0, 1:] = -np.diag(scaled)[1:] * middles[:-1]
        return scaled


@dataclass(frozen=True, kw_only=True)
class BoundedFit(OfArrays, FixedCost[NDArray[Any], LinearFit]):
    """What linear fits within declared bounds share: their parameters, and rows of features with the target last."""

    epsilon: Number
    bounds: Any
    target_bounds: Any

    def __post_init__(self) -> None:
        check_fields(self, "epsilon")
        if not isinstance(self.bounds, tuple | list) or not self.bounds:
            raise InvalidValue("bounds are a pair for each feature, the lowest first, got ", GivenValue(self.bounds))
        object.__setattr__(self, "bounds", tuple(as_interval(pair) for pair in self.bounds))
        check_fields(self, "missing", target_bounds=as_interval)
        as_whole(len(self.bounds), "the number of features", most=100)

    @property
    def box(self) -> Box:
        """The bounds of all columns."""
        return Box((*self.bounds, self.target_bounds))

    def check(self, data: Any) -> None:
        """Rows of features and a target."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 2 or dimensions[1] != len(self.bounds) + 1:
            raise InvalidValue(
                f"there are bounds for {len(self.bounds)} features, so the data has {len(self.bounds) + 1} columns, "
                f"the target last; got shape {dimensions}"
            )
        if not 1 <= dimensions[0] <= _MOST:
            raise InvalidValue(f"a linear fit needs from 1 to {_MOST:,} records, got {dimensions[0]:,}")

    def describe(self, output: Any) -> str:
        """The coefficients."""
        return f"{output.intercept:.6g} + ({', '.join(f'{slope:.6g}' for slope in output.coefficients)}) · features"
