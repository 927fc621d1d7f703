"""Learn from samples of two laws which outputs speak for the first: an estimate of ln(p/q) for each output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expost.verify.audit.events import Numbers
from expost.verify.audit.features import Encoder, FeatureRows, output_key

_DEPTH, _LEAF, _CUTS = 10, 40, 48


class LikelihoodScore(Protocol):
    """An estimate of ln(p/q)."""

    def __call__(self, outputs: Sequence[Any]) -> Numbers:
        """For each of these outputs."""


class Frequencies:
    """How often each single output came out on either side."""

    def __init__(self, first: Sequence[Any], second: Sequence[Any]) -> None:
        p, q = Counter(map(output_key, first)), Counter(map(output_key, second))
        self._table: dict[Hashable, float] = {
            key: float(np.log((p[key] + 0.5) / (q[key] + 0.5))) for key in p.keys() | q.keys()
        }

    def __call__(self, outputs: Sequence[Any]) -> Numbers:
        """For each of these outputs; 0 for one that was never seen."""
        return np.array([self._table.get(output_key(output), 0.0) for output in outputs])


class Columns:
    """The sum of what each number of an output says by itself: right where they are independent of each other."""

    def __init__(self, rows: FeatureRows, sides: Numbers) -> None:
        self._tables = [_table(column, sides) for column in rows.T]

    def __call__(self, rows: FeatureRows) -> Numbers:
        """For each of these rows."""
        pairs = zip(rows.T, self._tables, strict=True)
        return np.asarray(sum(odds[np.searchsorted(cuts, column)] for column, (cuts, odds) in pairs))


def _table(column: Numbers, sides: Numbers) -> tuple[Numbers, Numbers]:
    """Cuts of a column, and ln(p/q) between them."""
    cuts = np.unique(np.quantile(column, np.linspace(0, 1, 21), method="lower"))[:-1]
    place = np.searchsorted(cuts, column)
    p = np.bincount(place, weights=sides, minlength=len(cuts) + 1)
    n = np.bincount(place, minlength=len(cuts) + 1)
    return cuts, np.log((p + 0.5) / (n - p + 0.5))


class Classifier:
    """A decision tree over the numbers in an output, over the best linear combination of them, and over what they say
    one by one."""

    def __init__(self, first: Sequence[Any], second: Sequence[Any]) -> None:
        self._encoder = Encoder([*first, *second])
        rows = np.vstack([self._encoder.rows(first), self._encoder.rows(second)])
        sides = np.repeat([1.0, 0.0], [len(first), len(second)])
        self._columns = Columns(rows, sides)
        self._scale = np.where(np.abs(rows) < 1e8, rows, 0).mean(axis=0), np.clip(rows, -1e8, 1e8).std(axis=0) + 1e-12
        self._weights = _logistic(self._scaled(rows), sides)
        self._root = _grown(self._widened(rows), sides, _DEPTH)

    def __call__(self, outputs: Sequence[Any]) -> Numbers:
        """For each of these outputs."""
        rows = self._widened(self._encoder.rows(outputs))
        found = np.zeros(len(outputs))
        _fill(self._root, rows, np.arange(len(outputs)), found)
        return found

    def _scaled(self, rows: FeatureRows) -> FeatureRows:
        return np.asarray(np.clip((np.clip(rows, -1e8, 1e8) - self._scale[0]) / self._scale[1], -10, 10))

    def _widened(self, rows: FeatureRows) -> FeatureRows:
        return np.column_stack([rows, self._scaled(rows) @ self._weights, self._columns(rows)])


def _logistic(rows: FeatureRows, sides: Numbers) -> Numbers:
    """The weights of a logistic regression, by a few steps of Newton's method."""
    weights = np.zeros(rows.shape[1])
    for _ in range(6):
        shares = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        bend = (rows * (shares * (1 - shares))[:, None]).T @ rows + np.eye(rows.shape[1])
        weights = weights + np.linalg.solve(bend, rows.T @ (sides - shares) - weights)
    return weights


_Node = tuple[int, float, Any, Any] | float


def _grown(rows: FeatureRows, sides: Numbers, depth: int) -> _Node:
    """The split that tells the sides apart best, and so on below; a leaf is ln(p/q)."""
    p = sides.sum()
    q = len(sides) - p
    leaf = float(np.log((p + 0.5) / (q + 0.5)))
    if depth == 0 or len(sides) < 2 * _LEAF or p == 0 or q == 0:
        return leaf
    gain, column, cut = max(
        (_best_cut(rows[:, column], sides, column) for column in range(rows.shape[1])), default=(0.0, 0, 0.0)
    )
    if gain <= 2.0:  # nats: what chance alone gives
        return leaf
    below = rows[:, column] <= cut
    return column, cut, _grown(rows[below], sides[below], depth - 1), _grown(rows[~below], sides[~below], depth - 1)


def _best_cut(values: Numbers, sides: Numbers, column: int) -> tuple[float, int, float]:
    """The gain in log-likelihood of the best cut of one column, and the cut."""
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _CUTS), method="lower"))[:-1]
    if len(cuts) == 0:
        return 0.0, column, 0.0
    place = np.searchsorted(cuts, values)
    n = np.cumsum(np.bincount(place, minlength=len(cuts) + 1))[:-1]
    p = np.cumsum(np.bincount(place, weights=sides, minlength=len(cuts) + 1))[:-1]
    total, ones = len(values), sides.sum()
    gains = _likelihood(p, n) + _likelihood(ones - p, total - n) - _likelihood(ones, total)
    gains[(n < _LEAF) | (total - n < _LEAF)] = 0
    best = int(np.argmax(gains))
    return float(gains[best]), column, float(cuts[best])


def _likelihood(ones: Any, total: Any) -> Any:
    """The log-likelihood of a number of ones, at their own rate."""
    rate = (ones + 0.5) / (total + 1)
    return ones * np.log(rate) + (total - ones) * np.log(1 - rate)


def _fill(node: _Node, rows: FeatureRows, which: NDArray[np.intp], found: Numbers) -> None:
    if isinstance(node, float):
        found[which] = node
        return
    column, cut, low, high = node
    below = rows[which, column] <= cut
    _fill(low, rows, which[below], found)
    _fill(high, rows, which[~below], found)
