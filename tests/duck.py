"""Databases of DuckDB and their rows, for tests that need many of either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import duckdb

import expost as xp

OTHERS = "(select max(i) from t)"
"""What an analyst may not ask: a value of all rows, for each row."""

SECRET = "Xanthippe"
"""A value of the data that nothing may show."""

_NUMBERS = count()


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an empty database, all of which are in one instance of DuckDB: another takes 17 ms to start.

    They share settings, so this is not for tests that change any.
    """
    name = f"database_{next(_NUMBERS)}"
    with _instance().cursor() as connection:
        connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
        yield connection
        connection.execute(f"USE memory; DETACH {name}")


def insert(connection: duckdb.DuckDBPyConnection, table: str, kinds: Sequence[str], rows: Sequence[Any]) -> None:
    """Add rows to a table with columns of these kinds, all at once: one by one they take a hundred times as long."""
    if rows:
        lists = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
        connection.execute(f"INSERT INTO {table} SELECT {lists}", [list(column) for column in zip(*rows, strict=True)])


class Remembering:
    """An engine that answers a query once, and then the same."""

    def __init__(self, engine: Any) -> None:
        self._engine, self._answers = engine, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def check(self, query: str) -> str:
        return query

    def fetch(self, query: str) -> Any:
        if query not in self._answers:
            self._answers[query] = self._engine.fetch(query)
        return self._answers[query]


def remembering(table: xp.PrivateTable) -> xp.PrivateTable:
    """The table, whose rows do not change, so that it is asked each query once."""
    return replace(table, engine=Remembering(table.engine))
