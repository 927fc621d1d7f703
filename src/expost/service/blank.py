"""Tables without rows: what is publicly wrong with a question is found on them, and nothing private can be read.

A server plans on one, so that neither the answer nor the time of a plan depends on data or on other people's jobs. A
client asks on one, so that its questions are the same Python as with a local table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expost.data import PrivateTable, Unit, read
from expost.errors import MissingDependency
from expost.guarantee import Neighbours

_TABLE = "expost_blank"
_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def blank_table(
    name: str,
    schema: Mapping[str, str],
    *,
    unit: Unit,
    neighbours: Neighbours,
    size: int | None = None,
) -> PrivateTable:
    """A table with these columns and no rows. ``size`` is the public number of units, under substitution."""
    try:
        import duckdb

        from expost.data.duckdb import DuckDB
        from expost.data.duckdb.sql import identifier
    except ModuleNotFoundError as error:  # pragma: no cover - the development environment has it
        raise MissingDependency("tables", str(error.name), "data") from None
    connection: Any = duckdb.connect(":memory:")
    columns = ", ".join(f"{identifier(column)} {_TYPES.get(kind, 'BLOB')}" for column, kind in schema.items())
    connection.execute(f"CREATE TABLE {_TABLE} ({columns})")
    engine = DuckDB(connection, _TABLE, name, _TABLE, name)
    return read(engine, unit=unit, neighbours=neighbours, size=size, key=0)
