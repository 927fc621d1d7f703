"""What messages mention, and each place writes in its own way: Python, a study file, the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

_OF_RECORDS = ("__array__", "__dataframe__", "__arrow_c_array__", "__arrow_c_stream__", "fetchall")
"""What frames, arrays and results of queries have, whichever library they are from."""


def printable(text: str, keep: str = "") -> str:
    """Text that may come from data, with every character that is not seen written as an escape, but those to keep.

    A key that was found in data can hold anything: codes that command a terminal, new lines, marks that turn the
    direction of writing round, halves of characters that cannot be encoded. Whatever is printed goes through here.

    >>> printable("Rome\\x1b[2J\\nε 0")
    'Rome\\\\x1b[2J\\\\nε 0'
    """
    return (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)
    )


def brief(value: object) -> str:
    """A value that was given, short enough for a message. Frames and arrays may hold people's records: their type is.

    >>> import numpy as np
    >>> print(brief("age"), brief([1, 2]), brief(np.float64(2)), brief(np.array([42, 67])))
    'age' [1, 2] np.float64(2.0) a value of type ndarray
    """
    if holds_records(value):
        return f"a value of type {type(value).__name__}"
    try:
        text = repr(value)
    except ValueError:  # an int too long for Python to write out
        return f"a very long {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}…"


def holds_records(value: object) -> bool:
    """Whether something is an array, a series, a frame or the result of a query, none of which is ever shown."""
    if not any(hasattr(type(value), name) for name in _OF_RECORDS):
        return False
    return getattr(value, "ndim", 1) != 0  # a number of NumPy has no dimensions


def shown_labels(labels: Iterable[object], most: int = 10) -> str:
    """Labels that were published, after a colon; of many the first. Nothing if there are none.

    >>> shown_labels(["flu", ("A", 2)]), shown_labels([]), shown_labels(range(4), most=2)
    (': flu, A / 2', '', ': 0, 1 and 2 more')
    """
    every = [" / ".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in labels]
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return f": {', '.join(every[:most])}{more}" if every else ""


@dataclass(frozen=True)
class Argument:
    """A parameter, and the value that it has or should have, if one is meant.

    >>> print(Argument("delta"), Argument("neighbours", "substitute"))
    delta= neighbours='substitute'
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name}={'' if self.value is None else brief(self.value)}"


@dataclass(frozen=True)
class Action:
    """Something to do: how Python does it, and the command that does it.

    >>> print(Action("close()", "expost ledger close"))
    close()
    """

    python: str
    command: str

    def __str__(self) -> str:
        return self.python


@dataclass(frozen=True)
class GivenValue:
    """A value that was given.

    >>> print(GivenValue((110, 0)))
    (110, 0)
    """

    value: Any

    def __post_init__(self) -> None:
        if not _is_plain(self.value):  # an error is pickled with what it mentions
            object.__setattr__(self, "value", _Shown(brief(self.value)))

    def __str__(self) -> str:
        return brief(self.value)


class _Shown(str):
    """The text of a value that is not kept; it is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _is_plain(value: Any) -> bool:
    """Whether it is a number, a text, or a list or tuple of such."""
    if type(value) in (list, tuple):
        return len(value) <= 100 and all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str, Decimal, Fraction)


Mention: TypeAlias = Argument | Action | GivenValue
Words: TypeAlias = Callable[[Mention], str]
"""How a place writes what a message mentions. Python's are ``str``."""
