"""Settings of a database that affect results: set for each query, and restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import duckdb

from expost.data.duckdb.sql import string
from expost.errors import InvalidValue

_OFF = "common_subexpressions,filter_pushdown,in_clause,statistics_propagation"
"""Optimizers that use statistics, let the reader of a file use them, or move parts of expressions."""
CAREFUL = {
    "disabled_optimizers": _OFF,
    "preserve_insertion_order": "true",
    "ieee_floating_point_ops": "true",
    "integer_division": "false",
    "default_collation": "",
    "default_order": "ASC",
    "default_null_order": "NULLS_LAST",
}
"""The settings that affect results, as queries need them."""
_SETTINGS = RLock()


@contextmanager
def careful(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Set what queries need, and restore it afterwards. Settings belong to the whole database, hence the one lock."""
    with _SETTINGS:
        asked = ", ".join(f"current_setting('{name}')" for name in CAREFUL)
        found = [str(value) for value in cursor.execute(f"SELECT {asked}").fetchall()[0]]
        before = dict(zip(CAREFUL, found, strict=True))
        theirs = set(filter(None, before["disabled_optimizers"].split(",")))
        off = ",".join(sorted(theirs | set(_OFF.split(","))))
        wanted = {**CAREFUL, "disabled_optimizers": off}
        changed = [name for name in wanted if not _same_setting(wanted[name], before[name])]
        try:
            for name in changed:
                cursor.execute(f"SET {name} = {string(wanted[name])}")
            yield
        finally:
            for name in changed:
                cursor.execute(f"SET {name} = {string(before[name])}")


def _same_setting(wanted: str, found: str) -> bool:
    words = [{word.removesuffix("ending") for word in each.lower().split(",")} for each in (wanted, found)]
    return words[0] == words[1]  # lists may be in any order, and ASC is shown as ASCENDING


def refuse_locked(cursor: duckdb.DuckDBPyConnection) -> None:
    """Raise if the settings cannot be changed."""
    try:
        with careful(cursor):
            pass
    except duckdb.Error:
        needed = "; ".join(f"SET {name} = '{value}'" for name, value in CAREFUL.items())
        raise InvalidValue(f"the connection's settings are locked: before locking them, run {needed}") from None


def refuse_shadows(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise if a macro on the caller's connection would replace a built-in function of the same name."""
    both = "GROUP BY function_name HAVING bool_or(internal) AND NOT bool_and(internal)"
    named = connection.execute(f"SELECT function_name FROM duckdb_functions() {both}").fetchall()
    found = sorted(str(name) for (name,) in named)
    if found:
        raise InvalidValue(
            f"the database defines functions with the names of built-in ones ({', '.join(found)}): drop or rename "
            "them, or read a table that is not temporary"
        )
