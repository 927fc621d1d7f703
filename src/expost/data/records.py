"""Records that are no table: arrays, lists, series and frames in which every row is one unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from expost.data.unit import ROW, UnitOfLedger
from expost.errors import InvalidValue, MissingDependency
from expost.guarantee import Neighbours
from expost.mechanism import PrivateData
from expost.mechanisms.numbers import as_array

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

ONLY_COLUMN = "value"
"""What the column of an array is called."""
_LARGEST = 100
"""Columns of an array."""


def table_of_records(data: Any, neighbours: Neighbours | None, unit: str | None) -> PrivateTable:
    """A private table with a row for each record.

    Parameters
    ----------
    data
        An array of one or two dimensions, a list of numbers, a series, or a frame. In a list, what is no number is
        missing.
    neighbours, unit
        Those of the ledger that asks: nothing else says whose the records are.
    """
    from expost.data.table import read

    if neighbours is None:
        raise InvalidValue(
            "nothing says yet which data are neighbours: Ledger(…, neighbours='add-remove'), or 'substitute' where the "
            "number of records is public"
        )
    whose = ROW if unit is None else UnitOfLedger(None, rows=1, name=unit)
    return read(_frame_of(data), unit=whose, neighbours=neighbours)


def _frame_of(data: Any) -> Any:
    """The data as a frame."""
    if data is None:
        raise InvalidValue("on= is missing: say what is asked, as in ledger.run(xp.Mean(bounds=(0, 100)), on=ages, …)")
    if isinstance(data, str | bytes | dict | PrivateData):
        raise InvalidValue(
            f"a statistic is asked of a table, its groups, or an array of records; got a {type(data).__name__}: read a "
            "file with xp.read(…), and ask its table"
        )
    if hasattr(type(data), "columns") or hasattr(type(data), "column_names"):  # a lazy frame warns when it is asked
        return data
    if hasattr(data, "to_frame"):  # a series
        return data.to_frame(name=ONLY_COLUMN)
    return _arrow(dict(zip(*_columns(_array(data)), strict=True)))


def _array(data: Any) -> np.ndarray[Any, Any]:
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidValue("masked arrays are not read: make what is masked NaN, which follows missing=")
    if isinstance(data, np.ndarray):
        array = np.asarray(data)
    elif isinstance(data, list | tuple):
        array = np.asarray(as_array(data))
    else:
        raise InvalidValue(
            f"records are an array, a list of numbers, a series or a frame; got a {type(data).__name__}: try "
            "np.asarray(…)"
        )
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or array.ndim not in (1, 2):
        raise InvalidValue(
            f"an array of records has numbers of at most 64 bits in one or two dimensions; got {array.ndim} dimensions "
            f"of {array.dtype}: make a frame of anything else"
        )
    return array


def _columns(array: np.ndarray[Any, Any]) -> tuple[list[str], list[Any]]:
    if array.ndim == 1:
        return [ONLY_COLUMN], [array]
    if not 1 <= array.shape[1] <= _LARGEST:
        raise InvalidValue(f"an array of records has from 1 to {_LARGEST} columns, got {array.shape[1]}")
    return [f"{ONLY_COLUMN}{place}" for place in range(array.shape[1])], list(array.T)


def _arrow(columns: dict[str, Any]) -> Any:
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:  # pragma: no cover - the development environment has it
        raise MissingDependency("statistics of arrays", str(error.name), "frames") from None
    return pa.table({name: pa.array(_native(column)) for name, column in columns.items()})


def _native(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers one after the other, their bytes in the order of this machine."""
    return np.ascontiguousarray(column, column.dtype.newbyteorder("="))
