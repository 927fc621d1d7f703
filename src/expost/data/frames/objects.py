"""Columns of Python objects as values of a declared kind. Values that do not fit are NULL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from expost.data.encodings import marked
from expost.data.expression import Kind

ARROW: dict[Kind, Any] = {
    "integer": pa.int64(), "number": pa.float64(), "text": pa.large_string(), "boolean": pa.bool_(),
    "date": pa.date32(), "timestamp": pa.timestamp("us"),
}  # fmt: skip
"""The Arrow type of each kind."""


def of_objects(values: Iterable[Any], kind: Kind) -> Any:
    """An Arrow array of the objects that are values of the kind; all others are NULL."""
    read = _READERS[kind]
    return pa.array([read(value) for value in values], ARROW[kind])


def _text(value: Any) -> str | None:
    return marked(value) if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, float | np.floating):
        whole = float(value)
        value = int(whole) if whole.is_integer() else None
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(value) if -(2**63) <= int(value) < 2**63 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating | Decimal):
        return None
    try:
        return float(value)
    except (OverflowError, ValueError):  # a whole number beyond all floats, a signalling NaN
        return None


def _boolean(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _timestamp(value: Any) -> datetime | None:
    """A time, in UTC if it has a time zone. pandas' NaT is a datetime that is not equal to itself."""
    if not isinstance(value, date) or value != value:
        return None
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    plain = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    if value.tzinfo is None:
        return plain
    try:
        shift = value.utcoffset()
        return plain if shift is None else plain - shift
    except Exception:  # outside the years 1 to 9999; or the time zone is an object whose code raises anything
        return None


def _date(value: Any) -> date | None:
    found = _timestamp(value)
    return None if found is None else found.date()


_READERS: dict[Kind, Callable[[Any], Any]] = {
    "integer": _integer, "number": _number, "text": _text, "boolean": _boolean, "date": _date, "timestamp": _timestamp,
}  # fmt: skip
