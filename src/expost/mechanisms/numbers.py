"""Reading numeric data, and noise on a grid: added safely, and its size known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, isqrt, prod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_positive, common_unit
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mechanism import PrivateData, private_data
from expost.noise import NoiseSource, SystemNoise
from expost.noise.grid import FARTHEST, Grid

Numeric: TypeAlias = int | float | np.number[Any] | NDArray[Any]
"""One number, or an array of numbers."""


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
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidValue("masked arrays are not read: make what is masked NaN, which follows missing=")
    dtype = getattr(data, "dtype", None)
    if not isinstance(dtype, np.dtype):
        raise InvalidValue(
            f"numeric data is an int, a float or a numpy array, got {type(data).__name__}: {_instead_of(data)}"
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InvalidValue(f"numeric data has whole numbers or floats of at most 64 bits, got dtype {dtype}")
    return Shape(dtype.kind == "f", None if isinstance(data, np.generic) else tuple(map(int, data.shape)))


def as_array(data: Any) -> Any:
    """A list, a series or a frame of numbers as an array; anything else as it is.

    A frame of one column, and a series, have one dimension. A list is read as floats, and what is no number in it as
    NaN: types of a list's entries are private, too.
    """
    if isinstance(data, list | tuple) and not hasattr(data, "_fields"):
        return np.array([_number(each) for each in data], np.float64)
    if not hasattr(data, "to_numpy") or not (hasattr(data, "dtype") or hasattr(data, "columns")):
        return data
    columns = [_column(data)] if hasattr(data, "dtype") else [_column(data[name]) for name in data.columns]
    found = [column for column in columns if column is not None]
    if not found or len(found) < len(columns):
        return data
    return found[0] if len(found) == 1 else np.column_stack(found)


def _column(series: Any) -> NDArray[Any] | None:
    """A series as an array whose dtype follows from that of the series alone, not from whether a value is missing."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return np.asarray(series.to_numpy())
    if callable(numeric := getattr(dtype, "is_numeric", None)):  # Polars
        return np.asarray(series.to_numpy(), np.float64) if numeric() else None
    if getattr(dtype, "kind", "O") in "biuf":  # nullable columns of pandas
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return None


_NUMBERS = frozenset(map(id, (bool, int, float, Decimal, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8,
                              np.uint16, np.uint32, np.uint64, np.longlong, np.ulonglong, np.float16, np.float32,
                              np.float64)))  # fmt: skip
"""What is a number in a list, by identity: even ``==`` and ``hash`` of a type may be somebody's code."""


def _number(each: Any) -> float:
    """A number of a list. An entry is read only if its type is exactly a known one: no code of an entry ever runs."""
    if id(type(each)) not in _NUMBERS:
        return float("nan")
    try:
        return float(each)
    except OverflowError:  # a whole number beyond all floats
        return float("inf") if each > 0 else float("-inf")
    except ValueError:  # a signalling NaN
        return float("nan")


class OfArrays:
    """A mechanism for arrays of numbers, which are also read from lists, series and frames."""

    def reads(self, data: Any) -> Any:
        """The data as an array."""
        return as_array(data)


def _instead_of(data: Any) -> str:
    """What to do about data that is no array."""
    if data is None:
        return "on= is missing: say what to run it on, as in ledger.run(mechanism, on=ages)"
    if isinstance(data, str):
        return "read a file with xp.read(…) and ask its table, as in ledger.run(table.mean(…), epsilon=0.1)"
    if hasattr(data, "columns"):
        return (
            "pass one of its columns as an array, as in on=frame['cost'].to_numpy(); or read it with xp.read(…), which "
            "asks whom rows are about, and ask the table"
        )
    if hasattr(data, "dtype"):
        return f"it holds {data.dtype}, and numbers are needed: convert it, as in pd.to_numeric(ages, errors='coerce')"
    return "try np.asarray(…)"


class OwnedArray(np.ndarray[Any, np.dtype[Any]], PrivateData):
    """An array made of data that says whose it is. So do the arrays that numpy computes from it."""

    _whose: tuple[str, Neighbours]

    def __array_finalize__(self, made_of: Any) -> None:
        """Pass it on to slices and results."""
        whose = getattr(made_of, "_whose", None)
        if whose is not None:
            self._whose = whose

    @property
    def unit_name(self) -> str:
        """That of the data."""
        return self._whose[0]

    @property
    def relation(self) -> Neighbours:
        """That of the data."""
        return self._whose[1]


def owned(values: Any, *sources: Any) -> Any:
    """The values, saying whose they are if what they were made of does: so a ledger still compares it."""
    found = [each for source in sources for each in private_data(source)]
    if not found:
        return values
    array = np.asarray(values).view(OwnedArray)
    array._whose = str(common_unit(each.unit_name for each in found)), found[0].relation
    return array


class NoiseLaw(NamedTuple):
    """Whole-numbered noise with one parameter, a rate or a variance: how it is drawn."""

    one: Callable[[NoiseSource, Fraction], int]
    many: Callable[[NoiseSource, Fraction, int], NDArray[np.int64]]
    """Also where parameters out of range are refused."""


class GridNoise(ABC):
    """Whole-numbered noise for whole numbers, or for floats on a grid.

    Subclasses say how much noise, and which. Data and results are clamped to ±2^60 steps; NaN counts as
    ``missing``.
    """

    _law: ClassVar[NoiseLaw]

    sensitivity: Number
    grid: Number | None
    missing: Number

    def __post_init__(self) -> None:
        as_positive(self.sensitivity, "sensitivity")
        exact(self.missing, "missing")
        if self.grid is not None:
            Grid.of(self.grid)

    @abstractmethod
    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        """The grid, and the parameter (rate or variance) of the noise on it. A function of public facts."""

    def check(self, data: Any) -> None:
        """Numbers, of a kind and a size that the noise can be made for."""
        _, parameter = self._calibrate(shape_of(data))
        self._law.many(SystemNoise(), parameter, 0)

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """The data with noise. Whole numbers stay whole.

        Proof: lem-saturation
        """
        shape = shape_of(data)
        grid, parameter = self._calibrate(shape)
        points = self.points(data, grid)
        if shape.dimensions is None:
            total = within_reach(points + self._law.one(noise, parameter))
            return grid.value(total) if shape.floats else total
        totals = self._law.many(noise, parameter, shape.size).reshape(shape.dimensions)
        totals += points
        np.clip(totals, -FARTHEST, FARTHEST, out=totals)
        return grid.values(totals) if shape.floats else totals

    def points(self, data: Any, grid: Grid) -> Any:
        """The data in steps of the grid: a whole number, or an array of them."""
        shape, missing = shape_of(data), exact(self.missing, "missing")
        if shape.dimensions is None:
            return grid.round(float(data), missing) if shape.floats else within_reach(int(data))
        return grid.round_all(np.asarray(data), missing) if shape.floats else whole_numbers(data)

    def grid_for(self, shape: Shape, finest: Fraction) -> Grid:
        """The grid given, or one with a thousand steps in ``finest``."""
        if not shape.floats:
            return Grid(0)
        if self.grid is not None:
            return Grid.of(self.grid)
        return Grid.within(finest / 1024)


def without_nan(values: NDArray[Any], missing: float) -> NDArray[Any]:
    """A copy in which NaN counts as ``missing``. Floats are of double precision; whole numbers stay as they are."""
    if values.dtype.kind != "f":
        return np.array(values)
    filled = np.array(values, np.float64)
    filled[np.isnan(filled)] = missing
    return filled


def whole_numbers(data: Any) -> NDArray[np.int64]:
    """An array of whole numbers of any width, clamped to ±2^60."""
    return Grid(0).round_integers(np.asarray(data))


def root_above(number: Fraction) -> Fraction:
    """A rational number just above the square root."""
    return Fraction(isqrt(ceil(number * 4**64)) + 1, 2**64)


def within_reach(number: int) -> int:
    """The number within ±2^60."""
    return max(-FARTHEST, min(FARTHEST, number))
