"""Histograms whose total is public: noise that adds up to zero."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_confidence, as_whole, check_fields, finite
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimates import EstimateArray
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.numbers import OfArrays, shape_of, within_reach
from expost.noise import NoiseSource, bernoulli_exp, vector
from expost.noise.sums import LaplaceSteps

_MOST = 10_000  # cells: the time of a draw grows like their number to the power of 1.5
_AT_ONCE = 2**14  # numbers drawn at once
_SAFE = 2**40  # cells of this size add up without overflow


@dataclass(frozen=True, kw_only=True)
class Histogram(OfArrays, FixedCost[NDArray[Any], NDArray[np.int64]]):
    """How many records lie between public edges, with pure ε, where the number of records is public.

    Exchanging a record moves one count up and another one down. So the noise need not hide the total: it is discrete
    Laplace noise of rate ε/2 on every count, given that all of it adds up to zero. The counts add up to the number of
    records, and with a large ε they are far more often exact than with independent noise.

    Counts may be negative: :func:`expost.mechanisms.consistent` moves them as little as possible so that none is.

    The data is a one-dimensional array with one value per person; neighbours exchange one.

    Parameters
    ----------
    epsilon
        The whole budget.
    edges
        Ascending numbers, at least two. A cell contains its lower edge, and the last one its upper edge, too. Values
        outside count in the nearest cell.
    missing
        What NaN counts as.

    >>> Histogram(epsilon=8, edges=(0, 10, 20, 50)).error_bound(0.95)
    1

    Proof: thm-histogram
    """

    epsilon: Number
    edges: Any
    missing: Number = 0

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "missing")
        if not isinstance(self.edges, tuple | list) or len(self.edges) < 2:
            raise InvalidValue(f"edges are a list of at least two ascending numbers, got {self.edges!r}")
        object.__setattr__(self, "edges", tuple(finite(edge, "each of edges") for edge in self.edges))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise InvalidValue(f"edges are in ascending order, got {self.edges!r}")
        as_whole(self.cells, "the number of cells", most=_MOST)
        vector.check_rate(self._rate)

    @property
    def cells(self) -> int:
        """How many counts there are."""
        return len(self.edges) - 1

    @property
    def _rate(self) -> Fraction:
        return exact(self.epsilon, "ε") / 2

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers; how many is public."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 1:
            raise InvalidValue(f"a histogram is about a one-dimensional array, got shape {dimensions}: try .ravel()")

    def sample(self, data: Any, noise: NoiseSource) -> NDArray[np.int64]:
        """The counts with noise."""
        drawn = balanced_laplace(noise, self._rate, self.cells)
        return np.array(noisy_counts(self.counts(data), drawn), np.int64)

    def counts(self, data: Any) -> NDArray[np.int64]:
        """The true counts. Private."""
        values = np.nan_to_num(np.asarray(data, np.float64), nan=float(self.missing))
        places = np.searchsorted(np.array(self.edges), values, side="right") - 1
        return np.bincount(np.clip(places, 0, self.cells - 1), minlength=self.cells)

    def error_bound(self, confidence: Number) -> int:
        """How far off all counts are at most, with this confidence.

        Proof: lem-histogram-error
        """
        return LaplaceSteps(self._rate).reach((1 - as_confidence(confidence)) / self.cells)

    @property
    def what(self) -> str:
        """Counts."""
        return "records"

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """An array of counts with their errors, whose rows are called by their edges.

        The noise of all counts adds up to zero, so that it is not independent: each has a bound of its own.
        """
        cells = tuple(pairwise(self.edges))
        return EstimateArray.of(output, origin, bound=self._reach, what=self.what, names=("from", "to"), keys=cells)

    def _reach(self, miss: Fraction) -> int:
        """How far off one count is.

        Proof: lem-histogram-error
        """
        return LaplaceSteps(self._rate).reach(miss)

    def describe(self, output: Any) -> str:
        """How many counts, and how far off they may be."""
        return f"{len(output)} counts, all ± {self.error_bound('0.95')} at 95 %"


def noisy_counts(counts: NDArray[np.int64], noise: list[int]) -> list[int]:
    """Counts with their noise, clamped to ±2^60."""
    return [within_reach(count + number) for count, number in zip(counts.tolist(), noise, strict=True)]


def balanced_laplace(
    source: NoiseSource, rate: Fraction, size: int, draw: vector.Draw = vector.discrete_laplace
) -> list[int]:
    """Whole numbers that add up to zero, with probability proportional to e^−(rate·sum of sizes).

    Proof: lem-balanced-laplace
    """
    rows = max(1, _AT_ONCE // size)
    while True:
        for row in draw(source, rate, (rows, size - 1)):
            small = np.abs(row).max(initial=0) < _SAFE
            drawn = row if small else np.array([vector.completed(source, rate, x) for x in row.tolist()], dtype=object)
            last = -int(drawn.sum())
            if bernoulli_exp(source, rate * abs(last)):
                return [*drawn.tolist(), last]
