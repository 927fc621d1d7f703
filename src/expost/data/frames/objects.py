"""Columns of Python objects as values of a declared kind. Values that do not fit are NULL.

An object is read only if its type is exactly one of a few known types; an object of any other type, of a subclass of
these too, is NULL. So no code of an object ever runs: what it does, fails with or waits for would depend on who is in
the data. Types are compared by identity, since even ``isinstance``, ``==`` and ``hash`` of a type may be such code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from expost.data.encodings import marked
from expost.data.expression import Kind
from expost.data.expression.calendar import FIRST_INSTANT, LAST_INSTANT

ARROW: dict[Kind, Any] = {
    "integer": pa.int64(), "number": pa.float64(), "text": pa.large_string(), "boolean": pa.bool_(),
    "date": pa.date32(), "timestamp": pa.timestamp("us"),
}  # fmt: skip
"""The Arrow type of each kind."""


def of_objects(values: Iterable[Any], kind: Kind) -> Any:
    """An Arrow array of the objects that are values of the kind; all others are NULL."""
    read = _READERS[kind]
    return pa.array([read(value) for value in values], ARROW[kind])


def _ids(*types: type) -> frozenset[int]:
    return frozenset(map(id, types))


_TEXTS = _ids(str, np.str_)
_BOOLEANS = _ids(bool, np.bool_)
_INTEGERS = _ids(int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.longlong,
                 np.ulonglong)  # fmt: skip
_FLOATS = _ids(float, np.float16, np.float32, np.float64, np.longdouble)
_NUMBERS = _INTEGERS | _FLOATS | _ids(Decimal)
_ZONES = _ids(timezone, ZoneInfo)
_EPOCH = datetime(1970, 1, 1)


def _text(value: Any) -> str | None:
    return marked(str(value)) if id(type(value)) in _TEXTS else None


def _integer(value: Any) -> int | None:
    if id(type(value)) in _FLOATS:
        found = float(value)
        return _in_64_bits(int(found)) if found.is_integer() else None
    return _in_64_bits(int(value)) if id(type(value)) in _INTEGERS else None


def _in_64_bits(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _number(value: Any) -> float | None:
    if id(type(value)) not in _NUMBERS:
        return None
    try:
        return float(value)
    except (OverflowError, ValueError):  # a whole number beyond all floats, a signalling NaN
        return None


def _boolean(value: Any) -> bool | None:
    return bool(value) if id(type(value)) in _BOOLEANS else None


def _timestamp(value: Any) -> datetime | None:
    """A time, in UTC if it has a time zone. pandas' NaT is of a type of its own, and so NULL."""
    own = type(value)
    if own is date:
        return datetime(value.year, value.month, value.day)
    if own is datetime:
        return _in_utc(value)
    pandas = sys.modules.get("pandas")
    return _of_pandas(value) if pandas is not None and own is pandas.Timestamp else None


def _in_utc(value: datetime) -> datetime | None:
    if value.tzinfo is None:
        return value
    if id(type(value.tzinfo)) not in _ZONES:
        return None
    try:
        shift = value.utcoffset()
        return None if shift is None else value.replace(tzinfo=None) - shift
    except (OverflowError, ValueError):  # outside the years 1 to 9999
        return None


def _of_pandas(value: Any) -> datetime | None:
    """A time of pandas, which may lie far outside the years 1 to 9999; it has counted in UTC all along."""
    exact = value.to_datetime64()
    seconds = exact.astype("datetime64[s]")
    whole = int(seconds.astype(np.int64))
    if not FIRST_INSTANT <= whole * 1_000_000 <= LAST_INSTANT:
        return None
    return _EPOCH + timedelta(seconds=whole, microseconds=int((exact - seconds).astype("m8[us]").astype(np.int64)))


def _date(value: Any) -> date | None:
    found = _timestamp(value)
    return None if found is None else found.date()


_READERS: dict[Kind, Callable[[Any], Any]] = {
    "integer": _integer, "number": _number, "text": _text, "boolean": _boolean, "date": _date, "timestamp": _timestamp,
}  # fmt: skip
