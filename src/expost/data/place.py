"""Where private rows are, in public words: by them a ledger tells whether a question was published before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expost.canonical import canonical
from expost.data.engine import Engine
from expost.data.expression import is_text
from expost.errors import InvalidValue
from expost.mentions import brief


def place_of(
    source: Any, name: str | None, table: str | None, partitions: Mapping[str, str] | None, engine: Engine
) -> str | None:
    """What is stated of where rows are, and which class of engine reads them; None if nothing is.

    It is the name, or else the paths, seen from the root: the same path from another folder is another file. Nothing
    is read: no contents, sizes or times, and no names of files that a pattern or a folder stands for. Addresses are no
    names, because they may have a password.
    """
    stated = _paths(source) if name is None else [name]
    if stated is None:
        return None
    kind = type(engine)
    columns = sorted((partitions or {}).items())
    return canonical(["path" if name is None else "name", stated, table, columns, f"{kind.__module__}.{kind.__name__}"])


def _paths(source: Any) -> list[str] | None:
    """The paths, if that is what was given."""
    listed = list(source) if isinstance(source, list | tuple) else [source]
    if not listed or not all(isinstance(each, str | Path) and "://" not in str(each) for each in listed):
        return None
    return [os.path.abspath(each) for each in listed]


def check_stated(text: Any, what: str) -> None:
    """Raise unless it is a text, or was not stated."""
    if text is not None and (not isinstance(text, str) or not text or not is_text(text)):
        raise InvalidValue(f"a {what} is a text that is not empty and valid UTF-8, without NUL; got {brief(text)}")
