"""Tables held in memory: columns from frames and other databases, copied into a DuckDB database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb

from expost.data.duckdb import sources
from expost.data.duckdb.sql import identifier
from expost.errors import EngineFailed, InvalidValue, MissingDependency

if TYPE_CHECKING:
    from expost.data.frames import PlainColumn

_LIBRARIES = ("pandas", "polars", "pyarrow", "duckdb", "_duckdb")
_ARROW, _HELD = "_expost_arrow", "expost_held"


def library_of(source: Any) -> str | None:
    """The library of a frame; None for anything else."""
    first = source[0] if isinstance(source, list | tuple) and source else source
    if type(first).__module__.partition(".")[0] not in _LIBRARIES and not hasattr(first, "iloc"):
        return None
    try:
        from expost.data.frames import is_frame
    except ModuleNotFoundError as error:  # pragma: no cover - the development environment has it
        raise MissingDependency("data frames", str(error.name), "frames") from None
    return is_frame(source)


def frame_columns(source: Any, library: str, schema: Mapping[str, str] | None) -> list[PlainColumn]:
    """The columns of a frame."""
    from expost.data.frames import columns_of

    return columns_of(source, library, schema)


def new_database() -> duckdb.DuckDBPyConnection:
    """A connection to a new database in memory, where tables are compressed."""
    connection = sources.open_database(":memory:")
    return connection.execute(f"ATTACH ':memory:' AS {_HELD} (COMPRESS)").execute(f"USE {_HELD}")


def new_table(connection: duckdb.DuckDBPyConnection, table: str, rows: str) -> None:
    """An empty table with the columns of a query."""
    described = connection.execute(f"DESCRIBE {rows}").fetchall()
    typed = [f"{identifier(name)} {kind}{_kept_as(kind)}" for name, kind, *_ in described]
    connection.execute(f"CREATE TABLE {identifier(table)} ({', '.join(typed)})")


def copied(columns: Sequence[PlainColumn], table: str) -> duckdb.DuckDBPyConnection:
    """A new connection that has a copy of the columns as a table."""
    from expost.data.frames import arrow_table

    if all(column.values is None for column in columns):
        raise InvalidValue(
            "no column can be read, because all are lists, structures, bytes, durations or the like: add a column of "
            "numbers, text, booleans or times"
        )
    connection = new_database()
    made = [
        f"{column.sql.replace('$0', f'c{place}')} AS {identifier(column.name)}" for place, column in enumerate(columns)
    ]
    try:
        connection.register(_ARROW, arrow_table(columns))
        rows = f"SELECT {', '.join(made)} FROM {_ARROW}"
        new_table(connection, table, rows)
        connection.execute(f"INSERT INTO {identifier(table)} {rows}").execute("CHECKPOINT")
        connection.unregister(_ARROW)
        return connection
    except Exception as error:  # any message may quote data
        kind = type(error).__name__
    raise EngineFailed(kind)  # outside the handler, so that not even the context quotes data


def _kept_as(kind: str) -> str:
    """Compress texts, so that each distinct one is processed once; numbers are read faster uncompressed."""
    return "" if kind == "VARCHAR" else " USING COMPRESSION uncompressed"
