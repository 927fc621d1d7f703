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


def copied(columns: Sequence[PlainColumn], table: str) -> tuple[duckdb.DuckDBPyConnection, dict[str, str]]:
    """A new connection with a copy of the columns as a table; and the columns of bytes that are not UTF-8, by name."""
    from expost.data.frames import arrow_table

    if all(column.values is None for column in columns):
        raise InvalidValue(
            "no column can be read, because all are lists, structures, bytes, durations or the like: add a column of "
            "numbers, text, booleans or times"
        )
    connection = sources.open_database(":memory:")
    connection.execute(f"ATTACH ':memory:' AS {_HELD} (COMPRESS)").execute(f"USE {_HELD}")
    made = [
        f"{column.sql.replace('$0', f'c{place}')} AS {identifier(column.name)}" for place, column in enumerate(columns)
    ]
    raw = _places_of_bytes(columns)
    made += [
        f"CAST(r{place} AS BLOB) AS {identifier(raw[column.name])}"
        for place, column in enumerate(columns)
        if column.name in raw
    ]
    try:
        connection.register(_ARROW, arrow_table(columns))
        rows = f"SELECT {', '.join(made)} FROM {_ARROW}"
        described = connection.execute(f"DESCRIBE {rows}").fetchall()
        typed = [f"{identifier(name)} {kind}{_kept_as(kind)}" for name, kind, *_ in described]
        connection.execute(f"CREATE TABLE {identifier(table)} ({', '.join(typed)})")
        connection.execute(f"INSERT INTO {identifier(table)} {rows}").execute("CHECKPOINT")
        connection.unregister(_ARROW)
        return connection, raw
    except Exception as error:  # any message may quote data
        kind = type(error).__name__
    raise EngineFailed(kind)  # outside the handler, so that not even the context quotes data


def _places_of_bytes(columns: Sequence[PlainColumn]) -> dict[str, str]:
    """For each column of text that may not be UTF-8, a name that no column has."""
    taken, places = {column.name.lower() for column in columns}, dict[str, str]()
    for column in columns:
        if column.raw is not None:
            name = f"expost bytes {len(places)}"
            while name in taken:
                name += "_"
            places[column.name] = name
    return places


def _kept_as(kind: str) -> str:
    """Compress texts, so that each distinct one is processed once; numbers are read faster uncompressed."""
    return "" if kind in ("VARCHAR", "BLOB") else " USING COMPRESSION uncompressed"
