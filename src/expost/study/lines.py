"""The line of every table and key of a TOML file."""

from __future__ import annotations

import re
from collections import Counter

Place = tuple[str | int, ...]

_HEADER = re.compile(r"""^\s*+(\[\[?)([\w."'\- \t]++)\]\]?\s*+(#.*)?$""")
_KEY = re.compile(r"""^\s*([\w\-]+|"[^"]*"|'[^']*')\s*(?:\.[^=]*)?=""")
_STRINGS = re.compile(r'"(?:\\.|[^"\\])*+"?|\'[^\']*+\'?|#.*')
"""Nothing here is looked at twice: a text can be as long as a request."""


def line_index(text: str) -> dict[Place, int]:
    """{path: line}. Tables of an array are numbered: ("question", 0, "epsilon")."""
    index: dict[Place, int] = {}
    seen: Counter[str] = Counter()
    table: Place = ()
    depth, fence = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if fence in line else fence
            continue
        header = _HEADER.match(line) if depth == 0 else None
        if header:
            name = header[2].strip().strip("\"'")
            table = (name, seen[name]) if header[1] == "[[" else tuple(part.strip("\"' ") for part in name.split("."))
            seen[name] += header[1] == "[["
            index.setdefault(table, number)
            continue
        key = _KEY.match(line) if depth == 0 else None
        if key:
            index.setdefault((*table, key[1].strip("\"'")), number)
        fence = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
        bare = _STRINGS.sub("", line)
        depth = max(0, depth + sum(map(bare.count, "[{")) - sum(map(bare.count, "]}")))
    return index


def line_of(index: dict[Place, int], path: Place) -> int | None:
    """The line of a path, or of the nearest thing around it."""
    while path and path not in index:
        path = path[:-1]
    return index.get(path)
