"""Labels of parts: what names a part of the outputs of a mechanism. Ledgers keep them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, TypeAlias, cast

from expost.errors import InvalidValue
from expost.mentions import brief

Part: TypeAlias = int | str | tuple["Part", ...]
"""A label: an int (of at most 1,000 digits), a string, or a tuple of labels (at most 32 deep). Ledgers keep it."""

_BOUND = 10**1000  # of integers in labels


def as_part(label: Any) -> Part:
    """``label`` itself, if it may name a part."""
    if not is_part(label):
        raise InvalidValue(
            f"a part is named by an int, a string or a tuple of such, got {brief(label)}: numbers have at most 1,000 "
            "digits, and tuples are nested at most 32 deep"
        )
    return cast(Part, label)


def is_part(label: object, deepest: int = 32) -> bool:
    """Whether it may name a part."""
    kind = type(label)  # exact types: True would be the same key as 1, and numpy's ints do not go to JSON
    if kind is tuple:
        return deepest > 0 and all(is_part(item, deepest - 1) for item in cast(tuple[object, ...], label))
    return kind is str or (kind is int and abs(cast(int, label)) < _BOUND)


def part_from_json(label: Any) -> Part:
    """A label from JSON, in which tuples are lists."""
    return tuple(part_from_json(item) for item in label) if isinstance(label, list) else as_part(label)


def as_parts(labels: Any) -> Iterable[Part]:
    """One label, or the labels of a set that is not empty."""
    if isinstance(labels, Set):
        if not labels:
            raise InvalidValue("a part must become at least one part; an empty set is not allowed")
        return [as_part(label) for label in labels]
    return [as_part(labels)]
