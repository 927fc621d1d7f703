"""What a quantile is chosen from: multiples of a grid within bounds or, without bounds, numbers of single precision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cost import exact
from expost.errors import InvalidValue
from expost.mechanisms.numbers import whole_numbers

_FARTHEST = 2**53  # multiples of the step beyond this are not distinct floats
_DEFAULT_CELLS = 2**20
_FINEST = Fraction(1, 10**300)
_COARSEST = 10**200  # 2^60 of it are a float
_LARGEST = np.finfo(np.float32).max
_TIMES = 1000
_EXACT = 2**24  # whole numbers up to this all have single precision


class Candidates(ABC):
    """Numbers in ascending order, counted from 0, and which of them is nearest to a record."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of candidates."""

    @abstractmethod
    def value(self, index: int) -> float:
        """The candidate as it is published: an int, or the nearest float."""

    def answers(self, index: int) -> bool:
        """Whether the candidate is a number; if not, nothing is published."""
        return True

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        return self.value(0), self.value(self.size - 1)

    @abstractmethod
    def indices(self, values: NDArray[Any], missing: float) -> NDArray[np.int64]:
        """The candidate nearest to each value, counted from 0. Never decreases in the value; NaN is ``missing``."""

    @abstractmethod
    def around(self, value: float, *, floats: bool) -> tuple[float, float]:
        """The lowest and the highest record that a candidate is nearest to."""

    @abstractmethod
    def rule(self, *, floats: bool) -> str:
        """How records are rounded, for people; nothing if they are not."""


def candidates(bounds: tuple[float, float] | None, grid: Any, *, floats: bool) -> Candidates:
    """Those within the bounds or, if there are none, all numbers of single precision, and more that are none."""
    if bounds is None:
        return OrNothing(Unbounded.of(grid, floats=floats))
    return Lattice.of(bounds, grid, floats=floats)


def as_step(grid: Any) -> Fraction:
    """The distance between neighbouring answers: as a float neither 0 nor infinite."""
    step = exact(grid, "grid")
    if not _FINEST <= step <= 1 / _FINEST:
        raise InvalidValue(f"grid is the distance between neighbouring answers, from 1e-300 to 1e300, got {step}")
    return step


@dataclass(frozen=True)
class Lattice(Candidates):
    """The multiples of ``step`` from ``first`` to ``last`` times it: what a quantile is chosen from."""

    step: Fraction
    first: int
    last: int
    whole: bool
    """Whether values are published as whole numbers."""

    @classmethod
    def of(cls, bounds: tuple[float, float], grid: Any, *, floats: bool) -> Lattice:
        """The lattice between the bounds; by default of whole numbers, or for floats of 2^20 cells and more."""
        low, high = (exact(end, "each of bounds") for end in bounds)
        step = _default_step(high - low, floats) if grid is None else as_step(grid)
        first, last = ceil(low / step), floor(high / step)
        if first > last:
            raise InvalidValue(
                f"no multiple of the grid {step} lies from {float(low):g} to {float(high):g}: take a finer grid"
            )
        if max(-first, last) > _FARTHEST:
            raise InvalidValue(
                f"bounds from {float(low):g} to {float(high):g} reach beyond 2^53 steps of the grid {step}: take a "
                "coarser grid"
            )
        return cls(step, first, last, whole=not floats and step.denominator == 1)

    def rounding(self, *, floats: bool) -> Fraction:
        """How far records are moved at most when they are rounded to the lattice."""
        return self.step / 2 if floats or self.step != 1 else Fraction(0)

    def around(self, value: float, *, floats: bool) -> tuple[float, float]:
        """Half a step on either side, unless records are whole numbers and stay what they are."""
        if not self.rounding(floats=floats):
            return value, value
        number = round(Fraction(value) / self.step)
        return _widened((number - Fraction(1, 2)) * self.step, (number + Fraction(1, 2)) * self.step, self.step)

    def rule(self, *, floats: bool) -> str:
        """Half the step, if records are rounded at all."""
        half = self.rounding(floats=floats)
        return f" of records rounded by up to {float(half):.3g}" if half else ""

    @property
    def size(self) -> int:
        """The number of candidates."""
        return self.last - self.first + 1

    def value(self, index: int) -> float:
        """The candidate as it is published: an int, or the nearest float."""
        number = (self.first + index) * self.step
        return int(number) if self.whole else float(number)

    def indices(self, values: NDArray[Any], missing: float) -> NDArray[np.int64]:
        """The multiple of the step nearest to each value."""
        if values.dtype.kind != "f" and self.step == 1:
            return np.asarray(np.clip(whole_numbers(values), self.first, self.last) - self.first)
        with np.errstate(over="ignore"):
            points = np.floor(np.nan_to_num(values.astype(np.float64), nan=missing) / float(self.step) + 0.5)
        return np.asarray(np.clip(points, self.first, self.last).astype(np.int64) - self.first)


def _default_step(width: Fraction, floats: bool) -> Fraction:
    if not floats or not width:
        return Fraction(1)
    finest = width / _DEFAULT_CELLS
    exponent = finest.numerator.bit_length() - finest.denominator.bit_length()
    step = Fraction(2) ** exponent
    return step if step <= finest else step / 2


@dataclass(frozen=True)
class Unbounded(Candidates):
    """Numbers with 24 significant bits: all of single precision or, with a step, its multiples up to 2^60 of it.

    They are dense where numbers are small, so that no bounds are needed: a number is as near to a candidate as it is
    large. Up to 2^24 steps, every multiple is a candidate.

    Proof: lem-unbounded
    """

    step: Fraction | None
    whole: bool
    """Whether values are published as whole numbers."""

    @classmethod
    def of(cls, grid: Any, *, floats: bool) -> Unbounded:
        """By default of whole numbers, or for floats without a step."""
        if grid is None:
            return cls(None if floats else Fraction(1), whole=not floats)
        step = as_step(grid)
        if step > _COARSEST:
            raise InvalidValue(f"a grid without bounds is at most 1e200, got {step}: measure in another unit")
        return cls(step, whole=not floats and step.denominator == 1)

    @property
    def size(self) -> int:
        """On either side of 0, and 0."""
        return 2 * self._last + 1

    @property
    def _last(self) -> int:
        return int(_places(np.array([_LARGEST if self.step is None else 2.0**60], np.float32), self._dense)[0])

    @property
    def _dense(self) -> int:
        """From which number on single precision decides: below, places are numbers."""
        return 0 if self.step is None else _EXACT

    def value(self, index: int) -> float:
        """The candidate as it is published."""
        number = self._number(index) * (self.step or 1)
        return int(number) if self.whole else float(number)

    def _number(self, index: int) -> Fraction:
        """The candidate in steps."""
        place = index - self._last
        size, start = abs(place), int(_bits(np.float32(self._dense)))
        found = size if size <= self._dense else float(np.int32(start + size - self._dense).view(np.float32))
        return Fraction(found if place >= 0 else -found)

    def indices(self, values: NDArray[Any], missing: float) -> NDArray[np.int64]:
        """The number of single precision nearest to each value, in steps."""
        return self._last + _places(self._numbers(values, missing), self._dense)

    def _numbers(self, values: NDArray[Any], missing: float) -> NDArray[np.float32]:
        if values.dtype.kind != "f" and self.step == 1:
            return whole_numbers(values).astype(np.float32)
        known = np.nan_to_num(values.astype(np.float64), nan=missing)
        if self.step is None:
            return np.clip(known, -_LARGEST, _LARGEST).astype(np.float32)
        with np.errstate(over="ignore"):
            points = np.floor(known / float(self.step) + 0.5)
        return np.clip(points, -(2.0**60), 2.0**60).astype(np.float32)

    def around(self, value: float, *, floats: bool) -> tuple[float, float]:
        """Half way to the next candidates; with a step, records are rounded to its multiples first, and these then."""
        low, high = self._ends(int(self.indices(np.array([value], np.float64), 0.0)[0]), floats=floats)
        if self.step == 1 and not floats:
            return int(low), int(high)
        return (float(low), float(high)) if self.step is None else _widened(low, high, self.step)

    def _ends(self, index: int, *, floats: bool) -> tuple[Fraction, Fraction]:
        """The same, if division were exact."""
        before, number, after = (self._number(min(max(index + i, 0), self.size - 1)) for i in (-1, 0, 1))
        low, high = (before + number) / 2, (number + after) / 2
        if self.step is None:
            return low, high
        half = Fraction(0) if self.step == 1 and not floats else Fraction(1, 2)
        return (ceil(low) - half) * self.step, (floor(high) + half) * self.step

    def within(self, chosen: int, distance: Fraction, *, floats: bool) -> range:
        """The candidates that only records within a distance of the one chosen are rounded to; they may be none.

        What division may be off by, the last digit of a record, is not counted.
        """
        value = self._number(chosen) * (self.step or 1)
        ends = [_float(end, up=up) for end, up in ((value - distance, True), (value + distance, False))]
        first, last = (int(index) for index in self.indices(np.array(ends), 0.0))
        if self._ends(first, floats=floats)[0] < value - distance:
            first += 1
        if self._ends(last, floats=floats)[1] > value + distance:
            last -= 1
        return range(first, last + 1)

    def rule(self, *, floats: bool) -> str:
        """The step, if records are rounded to one, and the bits."""
        plain = self.step is None or (self.step == 1 and not floats)
        return f" of records rounded to {'' if plain else f'multiples of {float(self.step or 1):.3g} and to '}24 bits"


@dataclass(frozen=True)
class OrNothing(Candidates):
    """Other candidates, and a thousand times as many on either side of them that are no number: none is published.

    A choice that the data hardly guides falls on one of these, and not on a number far from all records.

    Proof: lem-nothing-beyond
    """

    numbers: Unbounded

    @property
    def size(self) -> int:
        """All of them."""
        return self.numbers.size + 2 * self._beyond

    @property
    def _beyond(self) -> int:
        return _TIMES * self.numbers.size

    def answers(self, index: int) -> bool:
        """Whether the candidate is a number."""
        return self._beyond <= index < self._beyond + self.numbers.size

    @property
    def ends(self) -> tuple[float, float]:
        """Of the numbers."""
        return self.numbers.ends

    def value(self, index: int) -> float:
        """The number; for a candidate that is none, the nearest."""
        return self.numbers.value(min(max(index - self._beyond, 0), self.numbers.size - 1))

    def indices(self, values: NDArray[Any], missing: float) -> NDArray[np.int64]:
        """The number nearest to each value."""
        return self._beyond + self.numbers.indices(values, missing)

    def around(self, value: float, *, floats: bool) -> tuple[float, float]:
        """As for the numbers."""
        return self.numbers.around(value, floats=floats)

    def rule(self, *, floats: bool) -> str:
        """As for the numbers."""
        return self.numbers.rule(floats=floats)


def _widened(low: Fraction, high: Fraction, step: Fraction) -> tuple[float, float]:
    """The ends of what is rounded to a multiple of the step, widened by what division may be off by.

    Records are divided by the step, and half is added, in floating point: each of four roundings (of the record and of
    the step, too) is off by at most one part in 2^53, so that all of them together are off by less than one in 2^50.
    """
    off = (abs(low) + abs(high) + 2 * step) / 2**50
    return _float(low - off, up=False), _float(high + off, up=True)


def _float(number: Fraction, *, up: bool) -> float:
    """The nearest float that is not below (or not above) a number."""
    try:
        near = float(number)
    except OverflowError:
        return inf if number > 0 else -inf
    if up:
        return near if Fraction(near) >= number else nextafter(near, inf)
    return near if Fraction(near) <= number else nextafter(near, -inf)


def _places(numbers: NDArray[np.float32], dense: int) -> NDArray[np.int64]:
    """How many numbers lie between 0 and each: whole ones up to ``dense``, then those of single precision."""
    sizes = np.abs(numbers)
    above = dense + _bits(sizes).astype(np.int64) - int(_bits(np.float32(dense)))
    places = np.where(sizes <= dense, sizes.astype(np.int64) if dense else 0, above)
    return np.asarray(np.where(numbers < 0, -places, places), np.int64)


def _bits(sizes: Any) -> Any:
    """Numbers of single precision at least 0, counted from 0: their bits."""
    return np.asarray(sizes, np.float32).view(np.int32)
