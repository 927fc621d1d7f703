"""Values and remedies as a study's author writes them: in TOML, not in Python."""

from __future__ import annotations

import json
import re
from typing import Any

_PYTHON = (
    (re.compile(r"unit=Unit\('([^']*)', rows=(\d+)\)"), r'unit = "\1" and rows = \2'),
    (re.compile(r"\b([a-z_]+)='([^']*)'"), r'\1 = "\2"'),
    (re.compile(r"\b([a-z_]+)=(?=[\d\[\-({])"), r"\1 = "),
    (re.compile(r"\b([a-z_]+)=(?=[\s,;:.)]|$)"), r"'\1'"),
    (re.compile(r"\b([a-z_]+)\(\)"), r"'\1'"),
    (re.compile(r"\bNone\b"), "nothing"),
    (re.compile(r"\(lowest, highest\)"), "[lowest, highest]"),
    (re.compile(r"\bgot \(([-+.\w, ]+)\)"), r"got [\1]"),
)
"""What Python's remedies look like, and what a study says instead."""
_QUOTED = re.compile(r"""(?<![\w=(\[])('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
"""What somebody wrote, which is shown as it is."""


def toml_text(value: Any) -> str:
    """A value as TOML writes it, cut short if it is long."""
    text = _toml(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def in_toml(message: str) -> str:
    """An error of the library, with its remedy as a study writes it."""
    parts = _QUOTED.split(message)
    for pattern, words in _PYTHON:
        parts[::2] = [pattern.sub(words, part) for part in parts[::2]]
    return "".join(parts)
