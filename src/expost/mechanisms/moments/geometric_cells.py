"""Records counted by their distance from a centre, in powers of two, and the range that noisy counts show."""

from __future__ import annotations

from math import ceil, ldexp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.mechanisms.numbers import without_nan

LARGEST_RECORD = float(np.finfo(np.float32).max)
DISTANCES = 257
"""Of either side. The first is the centre itself; cell i has the distances below 2^(i − 127), the last the largest."""
_CENTRE = 127
_MISS = 1 / 1000  # how likely noise alone is to show a cell next to the fullest one, at most

_LOGARITHMS = np.log(2 * np.arange(1, DISTANCES + 1) ** 2 / _MISS)


class Interval(NamedTuple):
    """From ``low`` to ``high``, both included."""

    low: float
    high: float


class VisibleRange(NamedTuple):
    """The interval that noisy counts show, and about how many records they show in it."""

    interval: Interval
    records: int


def records(data: Any, bounds: tuple[float, float] | None, missing: float) -> NDArray[np.float64]:
    """The records as floats, clamped to the bounds or to the range of single precision; NaN counts as ``missing``."""
    values = without_nan(np.asarray(data, np.float64), missing)
    return np.clip(values, *(bounds or (-LARGEST_RECORD, LARGEST_RECORD)), out=values)


def geometric_counts(values: NDArray[np.float64], counts: NDArray[np.int64], centre: float) -> NDArray[np.int64]:
    """How many records lie in each cell below the centre, and in each cell above it. Values are of single precision.

    Which cell a record is in depends on its own value and on the centre only.

    Proof: lem-range-attempt
    """
    distances = np.abs(values - centre)
    cells = np.where(distances > 0, np.clip(np.frexp(distances)[1] + _CENTRE, 1, DISTANCES - 1), 0)
    found = np.zeros(2 * DISTANCES, np.int64)
    np.add.at(found, np.where(values < centre, cells, cells + DISTANCES), counts)
    return found.reshape(2, DISTANCES)


def threshold(rate: float, away: int = 0) -> int:
    """What noise of this rate hardly ever reaches; the less so the farther away the fullest cell is."""
    return ceil(float(_LOGARITHMS[away]) / rate)


def visible_range(noisy: NDArray[np.int64], centre: float, rate: float) -> VisibleRange:
    """The interval around the centre that reaches one cell further than the last ones above the threshold.

    Reads noisy counts and public numbers only.
    """
    fullest = int(noisy.sum(axis=0).argmax())
    seen = noisy >= _LOGARITHMS[np.abs(np.arange(DISTANCES) - fullest)] / rate
    below, above = (_reach(side) for side in seen)
    ends = Interval(max(centre - below, -LARGEST_RECORD), min(centre + above, LARGEST_RECORD))
    return VisibleRange(ends, int(noisy[seen].sum()))


def _reach(seen: NDArray[np.bool_]) -> float:
    """How far a side reaches: twice as far as its last cell does."""
    last = int(np.flatnonzero(seen).max(initial=0))
    return ldexp(1.0, last + 1 - _CENTRE) if last else 0.0
