"""Forms for kinds of questions: fields from the study's own table of keys, and what was typed as a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from expost.service.limits import is_finite
from expost.service.served import Served
from expost.study.grammar import COMMON, Key
from expost.study.kinds import KINDS
from expost.study.kinds.kind import QuestionKind

_ASKED = ("name", "label", "epsilon", "delta")
_LISTS = ("texts", "keys")
_HINTS = {
    "pair": "two numbers, such as 0, 100",
    "numbers": "numbers, such as 0.25, 0.75",
    "texts": "names, separated by commas",
    "keys": "values, separated by commas",
    "pairs": "pairs of numbers, such as 0, 100; 0, 9",
    "columns": "a column, or several, separated by semicolons",
    "group keys": "values, separated by commas; of several columns, such as Rome, 2024; Oslo, 2025",
    "ranges": "two numbers, such as 0, 100; or a pair for each, such as 0, 100; 0, 9",
    "switch": "true or false",
    "bins": "a number of bins, or edges separated by commas",
}


class Field(NamedTuple):
    """One field of a form."""

    name: str
    help: str
    hint: str
    required: bool
    choices: tuple[str, ...]
    value: str
    columns: bool
    """Whether the names of columns are offered."""


def fields_of(kind: str, data: Served, typed: Mapping[str, str]) -> list[Field]:
    """The fields of a kind of question, with what was typed, or what the data set states."""
    own = KINDS[kind]
    common = [key for key in COMMON if key.name in _ASKED and (key.name != "delta" or _takes_delta(own))]
    return [_field(key, kind, data, typed) for key in (*common, *own.keys)]


def question_of(kind: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """What was typed as a question. What cannot be read is left as it is: the study's reader says what is wrong."""
    keys = (*(each for each in COMMON if each.name in _ASKED), *KINDS[kind].keys)
    given = {key.name: _value(key, typed[key.name].strip()) for key in keys if typed.get(key.name, "").strip()}
    return {"kind": kind, **given}


def _takes_delta(kind: QuestionKind) -> bool:
    return kind.delta or kind.of_groups is not None or any(key.needs_delta for key in kind.keys)


def _field(key: Key, kind: str, data: Served, typed: Mapping[str, str]) -> Field:
    required = key.required or (key.name == "epsilon" and not any(each.name == "accuracy" for each in KINDS[kind].keys))
    value = typed.get(key.name, kind if key.name == "name" else "")
    return Field(
        key.name, key.help, _HINTS.get(key.type, ""), required, key.choices, value, key.name in ("column", "target")
    )  # fmt: skip


def _value(key: Key, text: str) -> Any:
    if key.type in ("text", "mark"):
        return text
    if key.type in _LISTS:
        return [part if key.type == "texts" else _scalar(part) for part in _parts(text)]
    if key.type in ("pair", "numbers") or (key.type == "ranges" and ";" not in text):
        return [_scalar(part) for part in _parts(text)]
    if key.type == "columns":
        return [part.strip() for part in text.split(";")] if ";" in text else text
    if key.type == "switch":
        return {"true": True, "false": False}.get(text.lower(), text)
    if key.type == "group keys" and ";" not in text:
        return [_scalar(part) for part in _parts(text)]
    if key.type in ("pairs", "ranges", "group keys"):
        return [[_scalar(part) for part in _parts(pair)] for pair in text.split(";")]
    if key.type in ("bins", "widths") and "," in text:
        return [_scalar(part) for part in _parts(text)]
    return _scalar(text)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _scalar(text: str) -> Any:
    """A number, if it is one that a request may have: nan and 1e999 stay text, which no key of a number takes."""
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        if is_finite(number):
            return number
    return text
