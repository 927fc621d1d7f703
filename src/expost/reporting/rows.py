"""The rows of an answer, as a study shows them: in words, as lines for other programs, and told apart by their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from expost.comparison import Comparison
from expost.frame import ABOVE, NUMBERS, WHAT, Frame, number_text, with_error
from expost.mentions import printable

EACH, ALL = "each ± {} at 95 %", "all ± {} at 95 %"
"""Errors of numbers each by itself, of which one in twenty is passed; and one that none passes, in 95 of 100 cases."""
_PLAIN = "value"
_PLACE = "place"
_MOST_WORDS = 1_000
_WITHHELD = "withheld"


class NumberLine(NamedTuple):
    """A published number, or what was found instead of one."""

    what: str
    keys: dict[str, Any]
    value: Any
    low: float | None = None
    high: float | None = None
    error: float | None = None
    note: str = ""
    """Why it has no value, or no error."""


def named(frame: Frame, name: str) -> Frame:
    """The frame, in which numbers that have no name of their own go by that of their question."""
    if not frame.is_numbers:
        return frame
    return replace(frame, rows=tuple((name if row[0] == _PLAIN else row[0], *row[1:]) for row in frame.rows))


def number_lines(frame: Frame) -> list[NumberLine]:
    """A line for each number of a frame; of frames that have others than numbers, for each thing that was found."""
    if not frame.is_numbers:
        return list(_found(frame))
    why = "; ".join(frame.notes)
    return [
        NumberLine(
            str(row[0]),
            dict(zip(frame.names[1:-4], row[1:-4], strict=True)),
            row[-4],
            row[-3],
            row[-2],
            row[-1],
            _note(row, why),
        )
        for row in frame.rows
    ]


def _note(row: Sequence[Any], why: str) -> str:
    if row[-4] is None:
        return _WITHHELD
    return why if row[-1] is None else ""


def _found(frame: Frame) -> Iterator[NumberLine]:
    """Columns of numbers, and what was compared, by the columns of words before them."""
    said = [name == ABOVE or _is_numbers(frame[name]) for name in frame.names]
    said[-1] = said[-1] or not any(said)
    for row in frame.rows:
        keys = {name: cell for name, cell, is_said in zip(frame.names, row, said, strict=True) if not is_said}
        for name, cell, is_said in zip(frame.names, row, said, strict=True):
            if is_said and cell is not None:
                yield NumberLine(name, keys, str(cell) if isinstance(cell, Comparison) else cell)


def _is_numbers(column: Sequence[Any]) -> bool:
    known = [cell for cell in column if cell is not None]
    return bool(known) and all(is_number(cell) for cell in known)


def is_number(value: Any) -> bool:
    """Whether it is one, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def key_text(parts: Sequence[Any]) -> str:
    """The parts of a key beside each other; one that has a comma in it stands in quotes."""
    shown = ["" if part is None else str(part) for part in parts]
    if len(shown) == 1:
        return printable(shown[0])
    return printable(", ".join(f'"{part}"' if "," in part or '"' in part or not part else part for part in shown))


def row_labels(frame: Frame) -> list[str]:
    """What each row of numbers is called beside the others: by its key, and by what it is where that differs."""
    several = len({row[0] for row in frame.rows}) > 1
    return [key_text([*([row[0]] if several or len(row) == 5 else []), *row[1:-4]]) for row in frame.rows]


def words_of(frame: Frame) -> str:
    """A frame on one line, as a run says its answers."""
    if not frame.rows:
        return "none"
    if not frame.is_numbers:
        return _found_words(frame)
    rows, left = frame.rows[:_MOST_WORDS], len(frame) - _MOST_WORDS
    more = f"; and {left:,} more" if left > 0 else ""
    if len(frame) == 1 and len(frame.names) == 1 + len(NUMBERS):
        return _value_words(rows[0]) + _why_none(frame)
    if frame.names == (WHAT, _PLACE, *NUMBERS) and not _is_numbers(frame["value"]):
        return ", ".join(_text(row[-4]) for row in rows) + more
    labels, errors = row_labels(frame), {row[-1] for row in rows}
    if len(errors) == 1 and None not in errors:
        values = (f"{label}: {_text(row[-4])}" for label, row in zip(labels, rows, strict=False))
        return f"{', '.join(values)}{more}; {EACH.format(number_text(errors.pop()))}"
    values = (f"{label}: {_value_words(row)}" for label, row in zip(labels, rows, strict=False))
    return "; ".join(values) + more + ("; each at 95 %" if errors != {None} else "") + _why_none(frame)


def _why_none(frame: Frame) -> str:
    return f" (no error: {'; '.join(frame.notes)})" if frame.notes else ""


def _value_words(row: Sequence[Any]) -> str:
    return _WITHHELD if row[-4] is None else with_error(row[-4], row[-1]) if is_number(row[-4]) else _text(row[-4])


def _text(value: Any) -> str:
    return number_text(value) if is_number(value) else printable(str(value))


def _is_below(word: str) -> bool:
    return word == Comparison.BELOW


def _found_words(frame: Frame) -> str:
    lines = number_lines(frame)[:_MOST_WORDS]
    by_word: dict[str, list[str]] = {}  # what few are is said before what most are
    for line in lines:
        if line.what == ABOVE:
            by_word.setdefault(str(line.value), []).append(key_text([*line.keys.values()]))
    if by_word:
        return "; ".join(f"{word}: {', '.join(by_word[word])}" for word in sorted(by_word, key=_is_below))
    several = len({line.what for line in lines}) > 1
    return "; ".join(
        f"{key_text([*line.keys.values(), *([line.what] if several else [])])}: {_text(line.value)}" for line in lines
    )
