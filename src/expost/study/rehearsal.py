"""Rows that are made up from a study's schema and bounds alone, to practise on: no value of the data is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from expost.data import PrivateTable, read
from expost.data.expression import Kind
from expost.study.grammar import pairs_of
from expost.study.kinds.groups import group_keys
from expost.study.model import LedgerSection, Study
from expost.study.sources import derived, stated_table, whose

_UNITS = 1_000
"""As many are made up, unless the study states their number."""
_MOST_UNITS = 20_000
_MOST_ROWS = 3
"""Of one unit."""
_NAME = "made_up"
_WORDS = ("a", "b", "c")
_Bounds = tuple[float, float]


def rehearsal_of(study: Study) -> Study:
    """The study with a ledger of its own, in memory, that has the same limit; and without a stated number of units."""
    ledger = LedgerSection("memory:", study.ledger.name, accounting=study.ledger.accounting)
    return replace(study, ledger=ledger, privacy=replace(study.privacy, size=None))


def made_up_table(study: Study) -> PrivateTable:
    """A table with the study's columns and made-up rows: numbers lie within the bounds that questions state."""
    schema = stated_table(study).schema  # says so if DuckDB is missing
    import duckdb

    from expost.data.duckdb.sql import identifier

    units = min(study.privacy.size or _UNITS, _MOST_UNITS)
    rows = units * min(study.privacy.rows or 1, _MOST_ROWS)
    bounds, words = dict(_bounds(study)), dict(_keys(study))
    values = {
        name: _value(kind, place, bounds.get(name), words.get(name))
        for place, (name, kind) in enumerate(schema.items())
    }
    if study.privacy.unit in schema:
        values[study.privacy.unit] = _owner(schema[study.privacy.unit], units)
    columns = [f"{value} AS {identifier(name)}" for name, value in values.items()]
    connection = duckdb.connect(":memory:")
    connection.execute(f"CREATE TABLE {_NAME} AS SELECT {', '.join(columns)} FROM range({rows}) AS made(i)")
    table = read(connection, table=_NAME, unit=whose(study), neighbours=study.privacy.neighbours)
    return derived(study, table)


def _bounds(study: Study) -> Iterator[tuple[str, _Bounds]]:
    """What the study's questions state of columns; what a classifier predicts is 0 or 1."""
    for question in study.questions:
        given = question.values
        stated = [name for name in (*given.get("features", ()), given.get("column")) if name is not None]
        if stated and "bounds" in given:
            yield from zip(stated, pairs_of(given["bounds"], len(stated)), strict=False)
        if "target" in given:
            yield given["target"], tuple(given.get("target_bounds", (0, 1)))


def _keys(study: Study) -> Iterator[tuple[str, list[Any]]]:
    for question in study.questions:
        if "keys" in question.values:
            yield question.values["column"], question.values["keys"]
        if "by_keys" in question.values:
            yield from group_keys(question.values).items()


def _owner(kind: Kind, units: int) -> str:
    return f"'{_NAME} ' || (i % {units})" if kind == "text" else f"i % {units}"


def _value(kind: Kind, place: int, bounds: _Bounds | None, keys: list[Any] | None) -> str:
    """The engine's expression for a value, from a hash of the row's number."""
    low, high = bounds or (0, 100)
    drawn = f"CAST(hash(i, {place}) % 1000003 AS BIGINT)"
    number = f"{float(low)} + {float(high) - float(low)} * {drawn} / 1000003"
    listed = keys or _WORDS
    from expost.data.duckdb.sql import string

    chosen = f"[{', '.join(string(key) if isinstance(key, str) else str(key) for key in listed)}]"
    values = {
        "number": number,
        "integer": f"CAST(floor({number}) AS BIGINT)",
        "boolean": f"{drawn} % 2 = 0",
        "date": f"DATE '2000-01-01' + CAST({drawn} % 9000 AS INTEGER)",
        "timestamp": f"TIMESTAMP '2000-01-01' + INTERVAL ({drawn} % 200000) HOUR",
        "text": f"{chosen}[1 + {drawn} % {len(listed)}]",
    }
    if keys and kind == "integer":
        return f"CAST({values['text']} AS BIGINT)"
    return values.get(kind, "CAST('' AS BLOB)")
