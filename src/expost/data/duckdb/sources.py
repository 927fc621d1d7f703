"""Sources of rows: tables that a connection sees, database files, and Parquet files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from expost.data import files
from expost.data.duckdb.sql import identifier, of_text, string
from expost.data.expression import is_text
from expost.data.expression.patterns import literal
from expost.errors import EngineFailed, InvalidValue
from expost.mentions import Argument, brief


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


def parquet(connection: duckdb.DuckDBPyConnection, path: str, form: files.Form) -> str:
    """The query that reads Parquet files, which must have the same columns: casts to other types could fail."""
    listed = f"[{', '.join(map(string, (path, *form.also)))}]"
    columns = "list(name || ' ' || duckdb_type ORDER BY name, duckdb_type)"
    of_files = f"SELECT file_name, {columns} FROM parquet_schema({listed}) WHERE column_id > 0 GROUP BY file_name"
    found = public(connection, f"{of_files} ORDER BY file_name", path)
    for file, named in found[1:]:
        if named != found[0][1]:
            raise InvalidValue(
                f"{file} has other columns than {found[0][0]}: files that are read together need columns of the same "
                "names and types"
            )
    how = "utf8_validation = 'replace', hive_partitioning = false"  # folders are not columns unless declared
    if not form.partitions:
        return f"SELECT * FROM read_parquet({listed}, {how})"
    _check_partitions(form.partitions, [str(file) for file, _ in found], [each.split(" ")[0] for each in found[0][1]])
    stated = [f"{_of_folder(name, kind)} AS {identifier(name)}" for name, kind in form.partitions.items()]
    rows = f"SELECT * FROM read_parquet({listed}, {how}, filename = {string(_FILE)})"
    return f"SELECT * EXCLUDE ({_FILE}), {', '.join(stated)} FROM ({rows})"


_FILE = "expost_file"


def _check_partitions(partitions: Mapping[str, str], paths: list[str], columns: list[str]) -> None:
    """Raise unless every file is in a folder of each name. The folders' values are private: no message quotes one."""
    for name in partitions:
        if not is_text(name) or not name or "/" in name:
            raise InvalidValue(
                f"partitions map names of folders to kinds, got the name {brief(name)}: write for instance ",
                Argument("partitions", {"year": "integer"}),
            )
        if name.lower() in (column.lower() for column in columns):
            raise InvalidValue(f"{name!r} is already a column of the files: leave it out of partitions")
        if not all(f"/{name}=" in path for path in paths):
            raise InvalidValue(f"some files are not in a folder {name}=…: leave {name!r} out of partitions")


def _of_folder(name: str, declared: str) -> str:
    """The value in a folder's name, converted to its kind; NULL if it does not fit, or is Hive's name for NULL."""
    found = f"regexp_extract({_FILE}, {string(f'/{literal(name)}=([^/]*)/')}, 1)"
    text = f"coalesce(TRY(url_decode({found})), {found})"
    known = f"nullif({text}, '__HIVE_DEFAULT_PARTITION__')"
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
        raise InvalidValue(f"{name} cannot be read: {type(error).__name__}") from None


def refuse_scans(cursor: duckdb.DuckDBPyConnection, source: str, table: str) -> None:
    """Raise unless the source is a table or a view of tables: other sources can fail for some values.

    A Python frame fails for text that is not valid Unicode, and a view over a file for values that do not fit a type
    guessed from other rows.
    """
    plan = str(public(cursor, f"EXPLAIN SELECT * FROM {source}", table)).upper()
    scans = set(re.findall(r"FUNCTION: (\w+)", plan)) - {"SEQ_SCAN"}
    if scans:
        raise InvalidValue(
            f"{table!r} is not a table but reads a data frame or a file ({', '.join(sorted(scans)).lower()}), and a "
            "value in it could make a query fail: make a table of it, CREATE TABLE visits AS SELECT …, or pass "
            "read() the frame itself or the path of the file"
        )
