"""Rows into tables of DuckDB, all at once: a statement for each row takes a hundred times as long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb


def insert(connection: duckdb.DuckDBPyConnection, table: str, kinds: Sequence[str], rows: Sequence[Any]) -> None:
    """Add rows to a table whose columns are of these kinds."""
    if rows:
        lists = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
        connection.execute(f"INSERT INTO {table} SELECT {lists}", [list(column) for column in zip(*rows, strict=True)])
