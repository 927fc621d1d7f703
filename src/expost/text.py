"""Mechanisms as text for people, in entries, audit trails and exports.

The text shows parameters, never what a function or an object carries with it: callables print by module and qualified
name, and other people's objects by their class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, Fraction, Decimal, date, datetime, time, timedelta),
    *(type(Ellipsis), range),
)
_BRACKETS: dict[type, str] = {list: "[]", tuple: "()", set: "{}"}


def text_of(value: Any) -> str:
    """A mechanism, or one of its parameters, as text.

    >>> text_of((len, {"a": text_of}))
    "(builtins:len, {'a': expost.text:text_of})"
    """
    try:
        return _text(value)
    except Exception:  # it holds itself, or a number with too many digits, or lacks one of its fields
        return f"<{type(value).__module__}:{type(value).__qualname__}>"


def _text(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in _BRACKETS:
        return _many(value, _BRACKETS[kind])
    if kind is dict:
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if kind is frozenset:
        return f"frozenset({_many(value, '{}')})"
    if isinstance(value, Enum):
        return f"{kind.__qualname__}.{value.name}"
    return _callable(value) if callable(value) else _object(value)


def shown(value: Any) -> str:
    """The ``__repr__`` of what may hold functions or other people's objects."""
    return text_of(value)


def _many(values: Any, brackets: str) -> str:
    comma = "," if brackets == "()" and len(values) == 1 else ""
    return f"{brackets[0]}{', '.join(map(_text, values))}{comma}{brackets[1]}"


def _callable(value: Callable[..., Any]) -> str:
    if isinstance(value, partial):
        return f"<partial of {_text(value.func)}>"
    named: Any = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module is None else f"{module}:{named.__qualname__}"


def _object(value: Any) -> str:
    kind = type(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return f"<array of {' × '.join(map(str, value.shape)) or 'one'} {value.dtype}>"
    if numpy is not None and kind.__module__ == "numpy" and isinstance(value, numpy.generic):
        return "<numpy:void>" if value.dtype.hasobject else repr(value)
    if kind.__module__.partition(".")[0] == "expost" and getattr(kind, "__repr__", None) is not shown:
        return repr(value)
    if _of_ours(kind) and (is_dataclass(value) or hasattr(kind, "_fields")):
        parts = (f"{name}={_text(getattr(value, name))}" for name in _names(value))
        return f"{kind.__qualname__}({', '.join(parts)})"
    return f"<{kind.__module__}:{kind.__qualname__}>"


def _of_ours(kind: type) -> bool:
    """Whether it is a mechanism, a proposal, a test: its fields are public parameters. Other records may be data."""
    return any(base.__module__.partition(".")[0] == "expost" for base in kind.__mro__)


def _names(value: Any) -> Iterator[str]:
    if is_dataclass(value):
        return (field.name for field in fields(value) if field.repr and not field.metadata.get("data"))
    return iter(value._fields)
