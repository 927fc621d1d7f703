"""Joins with public tables: each row looks up its key.

A lookup is an expression, a binary search among the public keys, not a join of the engine. So it depends on its row
alone, keeps the order of rows, and gives one row for each. An engine whose rows have no order may run a left join with
the public table instead, in which each key occurs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from expost.data.expression import Expression, Kind, is_text
from expost.data.expression.tree import Stated, fits
from expost.data.steps import TableStep
from expost.errors import InvalidValue
from expost.mentions import brief

if TYPE_CHECKING:
    from expost.data.engine import Engine

MOST_LOOKED_UP = 5_000
_KINDS: dict[type, Kind] = {
    bool: "boolean", int: "integer", float: "number", str: "text", datetime: "timestamp", date: "date",
}  # fmt: skip


@dataclass(frozen=True)
class LookupStep(TableStep):
    """A column that is looked up by a key; or, without a column, a filter that keeps rows whose key is found."""

    keys: tuple[Any, ...] = ()
    """Distinct, in the engine's order."""
    values: tuple[Any, ...] = ()
    kind: Kind = "boolean"

    @property
    def description(self) -> str:
        """What is looked up by what."""
        where = "is in a public table" if self.column is None else "looked up in a public table"
        return f"{self.expression} {where}"

    @property
    def size(self) -> int:
        """One part per comparison."""
        return len(self.keys)

    def looked_up(self, engine: Engine, rows: str, name: str) -> tuple[str, str]:
        """The rows for a FROM clause, in which the key has this name, and the value looked up by it, in SQL."""
        keys = [engine.render(Stated(each, self.expression.kind)) for each in self.keys]
        if self.expression.kind == "text":
            keys = [engine.bytes_of(each) for each in keys]
        values = [engine.render(Stated(each, self.kind)) for each in self.values]
        join = getattr(engine, "join_public", None)
        return (rows, _searched(keys, values, engine.quote(name))) if join is None else join(rows, name, keys, values)


def _searched(keys: Sequence[str], values: Sequence[str], key: str) -> str:
    if len(keys) == 1:
        return f"CASE WHEN {key} = {keys[0]} THEN {values[0]} END"
    half = len(keys) // 2
    below, above = (_searched(keys[part], values[part], key) for part in (slice(half), slice(half, None)))
    return f"CASE WHEN {key} < {keys[half]} THEN {below} ELSE {above} END"


def lookup_steps(by: Expression, public: Any, on: str, keep: str) -> list[LookupStep]:
    """The steps that add the columns of a public table, looked up in its column ``on``."""
    if keep not in ("all", "matched"):
        raise InvalidValue(f"keep is which rows are kept, 'all' or 'matched'; got {brief(keep)}")
    columns = _columns(public)
    if on not in columns:
        raise InvalidValue(f"the public table has no column {on!r}: it has {', '.join(map(repr, columns))}")
    keys = columns.pop(on)
    if not 1 <= len(keys) <= MOST_LOOKED_UP or len(set(keys)) < len(keys):
        raise InvalidValue(
            f"a public table has 1 to {MOST_LOOKED_UP} rows with different keys; this one has {len(keys)} rows and "
            f"{len(set(keys))} different keys {on!r}"
        )
    wanted = {"text": str, "integer": int, "boolean": bool}[str(by.kind)]
    if any(type(key) is not wanted for key in keys) or (wanted is str and not all(map(is_text, keys))):
        raise InvalidValue(
            f"{on!r} holds {by.kind}, but some keys of the public table are of another kind: convert them"
        )
    if wanted is int and any(not fits(key) for key in keys):
        raise InvalidValue(f"some keys {on!r} of the public table have more than 64 bits, which no row has: drop them")
    order = sorted(range(len(keys)), key=lambda place: keys[place].encode() if wanted is str else keys[place])
    ordered = tuple(keys[place] for place in order)
    kinds = {name: _kind(name, values) for name, values in columns.items()}
    steps = [
        LookupStep(by, name, ordered, tuple(_value(values[place], kinds[name]) for place in order), kinds[name])
        for name, values in columns.items()
    ]
    if keep == "matched":
        steps.append(LookupStep(by, None, ordered, (True,) * len(ordered)))
    return steps


def _columns(public: Any) -> dict[str, list[Any]]:
    """The columns of a frame of pandas or Polars, of an Arrow table, or of a mapping."""
    if hasattr(public, "to_pydict"):
        found = public.to_pydict()
    elif hasattr(public, "columns"):
        found = {str(name): public[name].to_list() for name in public.columns}
    elif isinstance(public, dict):
        found = {str(name): list(values) for name, values in public.items()}
    else:
        raise InvalidValue(f"a public table is a frame, or a mapping from columns to values; got {brief(public)}")
    if len({len(values) for values in found.values()}) != 1:
        raise InvalidValue("the columns of the public table have different lengths: make them equally long")
    return {name: [_plain(value) for value in values] for name, values in found.items()}


def _plain(value: Any) -> Any:
    for way in ("to_pydatetime", "item"):
        value = getattr(value, way)() if hasattr(value, way) else value
    return None if value is None or type(value).__name__ in ("NAType", "NaTType") else value


def _kind(name: str, values: Sequence[Any]) -> Kind:
    found = {type(value) for value in values if value is not None and value == value}
    if found == {int, float}:
        found = {float}
    if len(found) != 1 or (kind := _KINDS.get(found.pop())) is None:
        raise InvalidValue(
            f"column {name!r} of the public table needs values of one kind: numbers, texts, dates or booleans"
        )
    if kind == "text" and not all(is_text(value) for value in values if value is not None and value == value):
        raise InvalidValue(f"column {name!r} of the public table has text with NUL or not valid in UTF-8: remove it")
    if kind == "integer" and any(not fits(value) for value in values if value is not None):
        raise InvalidValue(
            f"column {name!r} of the public table has whole numbers of more than 64 bits: make them floats"
        )
    return kind


def _value(value: Any, kind: Kind) -> Any:
    if value is None or (value != value and kind != "number"):
        return None
    return float(value) if kind == "number" else value
