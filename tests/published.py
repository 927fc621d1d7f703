"""Values that must not have been withheld."""

from __future__ import annotations

from typing import TypeVar

from expost.mechanism import Withheld

T = TypeVar("T")


def published(value: T | Withheld) -> T:
    """The value; fails if there is none."""
    assert not isinstance(value, Withheld)
    return value
