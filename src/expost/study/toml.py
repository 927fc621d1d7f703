"""Values and remedies as a study's author writes them: in TOML, not in Python."""

from __future__ import annotations

import json
from typing import Any

from expost.mentions import Action, Argument, GivenValue, Mention, brief


def toml_text(value: Any) -> str:
    """A value as TOML writes it, cut short if it is long."""
    try:
        text = _toml(value)
    except RecursionError:  # tables within tables, thousands of them
        return "…"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return "nothing" if value is None else brief(value)


def toml_words(mention: Mention) -> str:
    """What a message mentions, as a study's author writes it."""
    match mention:
        case Argument(name, None):
            return f"'{name}'"
        case Argument(name, value):
            return f"{name} = {toml_text(value)}"
        case Action():
            return mention.command
        case GivenValue(value):
            return toml_text(value)
