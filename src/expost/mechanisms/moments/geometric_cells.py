"""Records counted by their distance from a centre, in powers of two, and the range that noisy counts show."""

from __future__ import annotations

from math import ceil, ldexp, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.mechanisms.numbers import without_nan

LARGEST_RECORD = float(np.finfo(np.float32).max)
DISTANCES = 257
"""Of either side. The first is the centre itself; cell i has the distances below 2^(i − 127), the last the largest."""
_CENTRE = 127
_MISS = 1 / 1000  # how likely noise alone is to show a cell next to the fullest one, at most

_SPREAD = 1.65 * (4 * DISTANCES) ** 0.5  # times 1/rate: what noise takes from the sum of all counts, in 19 of 20 cases
_RARELY = 2.4  # standard deviations that a sum of noise exceeds in one of 100 cases
_ANYWHERE = log(2 * DISTANCES / _MISS)
_LOGARITHMS = np.log(2 * np.arange(1, DISTANCES + 1) ** 2 / _MISS)


class Interval(NamedTuple):
    """From ``low`` to ``high``, both included."""

    low: float
    high: float


class VisibleRange(NamedTuple):
    """The interval that noisy counts show, and how many records they show around it, in 99 of 100 cases or more."""

    interval: Interval
    records: int
    fewer: int
    """On the side of the centre that has fewer of them; those at the centre itself count on both."""
    total: int
    """How many records there are, or more: hardly ever fewer, if their number is private."""

    @property
    def shows_most(self) -> bool:
        """Whether this is more than a point, and has three quarters of all records, and a quarter on either side.

        A centre that is far from the data has none of them on one side.
        """
        low, high = self.interval
        return low < high and 4 * self.records >= 3 * self.total and 4 * self.fewer >= self.total


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


def visible_range(noisy: NDArray[np.int64], centre: float, rate: float, size: int | None = None) -> VisibleRange:
    """The interval around the centre that reaches one cell further than the last ones above the threshold.

    Reads noisy counts and public numbers only: ``size`` is the number of records, where that is public.
    """
    seen = _seen(noisy, rate)
    below, above = (_reach(side) for side in seen)
    ends = Interval(max(centre - below, -LARGEST_RECORD), min(centre + above, LARGEST_RECORD))
    around, equal = _around(seen), int(noisy[1, 0]) if seen[1, 0] else 0
    low, high = (int(side.sum()) for side in noisy[:, around])
    off = unsure(rate, around.stop - around.start)
    total = int(noisy.sum()) + ceil(_SPREAD / rate) if size is None else size
    return VisibleRange(ends, low + high + equal - off, equal + min(low, high) - off, total)


def _seen(noisy: NDArray[np.int64], rate: float) -> NDArray[np.bool_]:
    """Which cells noise does not explain: the farther from the fullest, the more records that takes.

    If most records are equal to the centre, nothing says where the others are: then the fullest of all other cells must
    be one that noise does not explain, wherever it is.
    """
    both = noisy.sum(axis=0)
    fullest, alone = int(both[1:].argmax()) + 1, both[0] >= both[1:].max()
    seen = noisy >= _LOGARITHMS[np.abs(np.arange(DISTANCES) - fullest)] / rate
    if alone and noisy[:, fullest].max() < _ANYWHERE / rate:
        seen[:] = False
    seen[:, 0] = noisy[:, 0] >= _LOGARITHMS[0] / rate
    return seen


def unsure(rate: float, cells: int = 4) -> int:
    """What noise of this rate adds to the counts of that many cells on either side, in one of 100 cases at most."""
    return ceil(_RARELY * sqrt(4 * cells) / rate)


def _around(seen: NDArray[np.bool_]) -> slice:
    """The cells between those that are shown on either side, the centre apart, and two next to them.

    The many cells nearer to the centre have hardly any records, but noise.
    """
    shown = np.flatnonzero(seen[:, 1:].any(axis=0)) + 1
    return slice(max(int(shown[0]) - 2, 1), int(shown[-1]) + 2) if len(shown) else slice(0, 0)


def _reach(seen: NDArray[np.bool_]) -> float:
    """How far a side reaches: twice as far as its last cell does."""
    last = int(np.flatnonzero(seen).max(initial=0))
    return ldexp(1.0, last + 1 - _CENTRE) if last else 0.0
