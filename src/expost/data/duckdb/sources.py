"""Sources of rows: tables that a connection sees, and database files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb

from expost.data import files
from expost.data.duckdb.sql import identifier, of_text, string
from expost.data.expression import is_text
from expost.data.expression.patterns import literal
from expost.errors import EngineFailed, InvalidValue


def apart(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection to the same database that finds only built-in functions by unqualified names, and no macros."""
    return connection.cursor().execute("SET search_path = 'system.main'")


def found_table(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[tuple[str, ...], bool]:
    """The table's qualified name, and whether other connections see it, too."""
    if not is_text(table):
        raise InvalidValue("the name of a table is valid UTF-8 without NUL: pass another")
    parts = tuple(table.split("."))
    ways = [(table,), parts] if 1 < len(parts) <= 3 and all(parts) else [(table,)]
    here = public(connection, "SELECT current_database(), current_schema()", table)[0]
    elsewhere = apart(connection)
    for names in [(*here[: 3 - len(way)], *way) for way in ways] + ways[1:]:
        if _sees(elsewhere, names):
            return names, True
    return next((way for way in ways if _sees(connection, way)), (table,)), False


def _sees(cursor: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> bool:
    try:
        cursor.execute(f"DESCRIBE SELECT * FROM {'.'.join(map(identifier, names))}")
    except duckdb.Error:
        return False
    return True


def open_database(path: str) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a database file, or a connection to a new database in memory."""
    if path != ":memory:" and not Path(path).is_file():
        raise InvalidValue(f"there is no database {path!r}: is the path right?")
    try:
        connection = duckdb.connect(path, read_only=path != ":memory:")
    except duckdb.Error as error:
        raise InvalidValue(
            f"{path!r} cannot be opened ({type(error).__name__}): is it a DuckDB database that nobody is writing to?"
        ) from None
    return connection


def of_folder(path: str, name: str, declared: str) -> str:
    """The value in a folder's name, converted to its kind; NULL if it does not fit, or is Hive's name for NULL."""
    found = f"regexp_extract({path}, {string(f'/{literal(name)}=([^/]*)/')}, 1)"
    known = f"nullif(TRY(url_decode({found})), '__HIVE_DEFAULT_PARTITION__')"
    return of_text(known, files.declared_kind(name, declared))


def public(connection: duckdb.DuckDBPyConnection, statement: str, name: str) -> list[tuple[Any, ...]]:
    """Run a statement that reads no private values: its errors are about names and types, and may be shown."""
    try:
        return connection.execute(statement).fetchall()
    except (duckdb.FatalException, duckdb.InternalException) as error:  # an earlier query may have left it so
        raise EngineFailed(type(error).__name__) from None
    except duckdb.IOException:
        raise InvalidValue(f"{name} cannot be read: is the path right?") from None
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
        raise InvalidValue(f"{name}: {str(error).splitlines()[0]}") from None
    except (duckdb.Error, UnicodeError) as error:
        raise InvalidValue(f"{name} cannot be read{_why(name)} ({type(error).__name__})") from None


def _why(name: str) -> str:
    """What is probably wrong with a file; nothing of anything else."""
    path = Path(name)
    if not path.is_file() or files.ending(name) != "parquet":
        return ""
    with open(path, "rb") as file:
        begun = file.read(4)
    if begun == b"PAR1":
        return ": it begins as a Parquet file does, and is cut off or damaged; copy it again"
    return ": it is no Parquet file; if it is CSV, name it .csv" if begun else ": it is empty"


def refuse_scans(cursor: duckdb.DuckDBPyConnection, names: tuple[str, ...], table: str) -> None:
    """Raise unless the source is a table whose values are all stored: what is computed can fail for some values.

    A view may cast, a generated column too; a Python frame fails for text that is not valid Unicode, and a file for
    values that do not fit a type guessed from other rows. The catalog is asked first, since planning may fail as well.
    """
    stored = not _listed(cursor, "views", names, table)
    if stored:
        plan = str(public(cursor, f"EXPLAIN SELECT * FROM {'.'.join(map(identifier, names))}", table)).upper()
        others = set(re.findall(r"FUNCTION: (\w+)", plan)) - {"SEQ_SCAN"}
        stored = not others and bool(_listed(cursor, "tables", names, table))
    if not stored:
        raise InvalidValue(
            f"{table!r} is not a table but a view, or reads a data frame or a file, and a value in it could make a "
            "query fail: make a table of it, CREATE TABLE visits AS SELECT …, or pass read() the frame itself, the "
            "path of the file, or connection.sql('FROM visits'), which is computed and copied once"
        )
    generated = [column for column, *_ in _listed(cursor, "columns", names, table, " AND is_generated")]
    if generated:
        raise InvalidValue(
            f"{table!r} computes {', '.join(map(repr, generated))} whenever it is read, and a value in it could make a "
            "query fail: make a table of it, CREATE TABLE visits AS SELECT …, or drop the column and use derive()"
        )


def _listed(
    cursor: duckdb.DuckDBPyConnection, what: str, names: tuple[str, ...], table: str, more: str = ""
) -> list[tuple[Any, ...]]:
    """The tables, views or columns of a qualified name in the catalog, by their own names."""
    *within, name = map(string, names)
    one = {"tables": "table_name", "views": "view_name", "columns": "column_name"}[what]
    of = "view_name" if what == "views" else "table_name"
    placed = [f" AND lower({place}) IN (lower(database_name), lower(schema_name))" for place in within]
    found = f"SELECT {one} FROM duckdb_{what}() WHERE lower({of}) = lower({name})"
    return public(cursor, f"{found}{''.join(placed)}{more}", table)
