"""Data in order of its candidates: the record of any rank, and how many records lie below a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidValue
from expost.mechanisms.numbers import shape_of, without_nan
from expost.mechanisms.quantiles.candidates import Candidates

MOST_ALIKE = 2**32  # records of one value in a tally: a constant, and all of them add up in 64 bits


@dataclass(frozen=True, eq=False)
class Tally:
    """Values, and how often each occurs: data that was counted already, by a database for instance.

    Parameters
    ----------
    values
        A one-dimensional array of numbers. Fastest if it is sorted.
    counts
        How many records have each of them, whole numbers from 0 to 2^32; others are moved there.

    >>> len(Tally(np.array([1, 2]), np.array([10, 5])))
    2
    """

    values: NDArray[Any]
    counts: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)


class Ordered(ABC):
    """Records in order, each as the candidate nearest to it. Private."""

    def __init__(self, size: int, lattice: Candidates) -> None:
        self.size = size
        self.lattice = lattice

    def points(self, ranks: list[int]) -> list[int]:
        """The record of each rank from 1, as a candidate; before the first and after the last, the bounds."""
        inside = np.array([min(max(rank, 1), max(self.size, 1)) for rank in ranks], np.int64)
        known = self._records(inside) if self.size else np.zeros(len(ranks), np.int64)
        last = self.lattice.size - 1
        return [0 if r < 1 else last if r > self.size else p for r, p in zip(ranks, known.tolist(), strict=True)]

    @abstractmethod
    def _records(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The records of ranks that exist."""

    @abstractmethod
    def below(self, candidate: int) -> int:
        """How many records lie below a candidate."""

    def up_to(self, candidate: int) -> int:
        """How many records lie at a candidate or below."""
        return self.below(candidate + 1)


class _Sorted(Ordered):
    """Records in an array, one value each."""

    def __init__(self, values: NDArray[Any], lattice: Candidates, missing: float) -> None:
        super().__init__(len(values), lattice)
        self._missing = missing
        self._values = without_nan(values, missing)
        self._values.sort()

    def _records(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.lattice.indices(self._values[ranks - 1], self._missing)

    def below(self, candidate: int) -> int:
        """By bisection, as indices never decrease along sorted values."""
        return bisect_left(range(self.size), candidate, key=self._record)

    def _record(self, place: int) -> int:
        return int(self.lattice.indices(self._values[place : place + 1], self._missing)[0])


class _Counted(Ordered):
    """Records counted by value."""

    def __init__(self, tally: Tally, lattice: Candidates, missing: float) -> None:
        indices = lattice.indices(np.asarray(tally.values), missing)
        counts = np.clip(np.asarray(tally.counts), 0, MOST_ALIKE).astype(np.int64)
        if np.any(indices[1:] < indices[:-1]):
            order = np.argsort(indices, kind="stable")
            indices, counts = indices[order], counts[order]
        self._indices, self._ends = indices, np.cumsum(counts)
        super().__init__(int(self._ends[-1]) if len(indices) else 0, lattice)

    def _records(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._indices[np.searchsorted(self._ends, ranks)]

    def below(self, candidate: int) -> int:
        """The records of all smaller values."""
        place = int(np.searchsorted(self._indices, candidate))
        return int(self._ends[place - 1]) if place else 0


def arrange(data: NDArray[Any] | Tally, lattice: Candidates, missing: float) -> Ordered:
    """The data in order."""
    if isinstance(data, Tally):
        return _Counted(data, lattice, missing)
    return _Sorted(np.asarray(data), lattice, missing)


def records_in(data: Any) -> int:
    """How many records there are: public under substitution."""
    if not isinstance(data, Tally):
        return len(data)
    return int(np.clip(np.asarray(data.counts), 0, MOST_ALIKE).astype(np.int64).sum())


def has_floats(data: Any, what: str) -> bool:
    """Whether the data has floats; refuses what is not one-dimensional. Looks at types and shapes only."""
    if isinstance(data, Tally):
        counts = shape_of(data.counts)
        if counts.floats or counts.dimensions != shape_of(data.values).dimensions:
            raise InvalidValue("a tally has a whole count for each value: two one-dimensional arrays of one length")
        data = data.values
    shape = shape_of(data)
    if shape.dimensions is None or len(shape.dimensions) != 1:
        given = "a single number" if shape.dimensions is None else f"shape {shape.dimensions}"
        raise InvalidValue(
            f"{what} is about a one-dimensional array with one value per person, got {given}: try .ravel()"
        )
    return shape.floats
