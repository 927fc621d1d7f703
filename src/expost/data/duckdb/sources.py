"""Sources of rows: tables that a connection sees, database files, and CSV files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb

from expost.data import files
from expost.data.duckdb.sql import fill, identifier, kind_of, string
from expost.data.expression import Kind, is_text
from expost.data.expression.operators import CASTS
from expost.data.expression.patterns import literal
from expost.data.expression.tree import LONGEST_READ
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
    text = f"coalesce(TRY(url_decode({found})), {found})"
    known = f"nullif({text}, '__HIVE_DEFAULT_PARTITION__')"
    return _of_text(known, files.declared_kind(name, declared), files.Form())


def csv(path: str, form: files.Form) -> str:
    """The query that reads CSV files. Every line is a row, from which each field is cut and parsed by itself.

    DuckDB's own reader would join all lines after an unclosed quotation mark into one row. Here it only splits the file
    into lines, with a separator that no line contains; a line that did would be left out.
    """
    how = (
        f"header = true, delim = '{_NOWHERE}', quote = '', escape = '', nullstr = '', null_padding = true, "
        f"ignore_errors = true, strict_mode = false, auto_detect = false, max_line_size = {files.LONGEST_LINE}, "
        "new_line = '\\n', hive_partitioning = false, columns = {'line': 'VARCHAR'}"
    )
    listed = ", ".join(map(string, form.in_utf8(path)))
    lines = f"SELECT rtrim(line, chr(13)) AS line FROM read_csv([{listed}], {how})"
    kinds = form.kinds(path)
    if len(kinds) > _FEW:
        lines = f"SELECT line, {_all_fields(path, form)} AS fields FROM ({lines})"
    fields = [
        f"{_of_text(_field(place, path, form, len(kinds)), kind, form)} AS {identifier(name)}"
        for place, (name, kind) in enumerate(kinds.items())
    ]
    return f"SELECT {', '.join(fields)} FROM ({lines}) WHERE line <> ''"


_FEW = 30
"""Up to this number of columns, fields are cut from a line one by one; otherwise all at once."""
_NOWHERE = "\x1e\x1f\x1e\x1f"


def _field(place: int, path: str, form: files.Form, columns: int) -> str:
    """A field of a line, unquoted if it is quoted; NULL if it is empty."""
    mark, between = form.quote_mark, form.delimiter_of(path)
    if columns > _FEW:
        plain = cut = f"fields[{place + 1}]"
    else:
        plain = f"split_part(line, {string(between)}, {place + 1})"
        each, sign = _form_of_field(path, form), literal(between)
        found = rf"\A(?:{each}{sign}){{{place}}}({each})(?:{sign}|\z)"
        cut = f"regexp_extract(line, {string(found)}, 1)"
    if not mark:
        return f"nullif({plain}, '')"
    bare = string(rf"\A{literal(mark)}((?:.|\n)*){literal(mark)}\z")
    unquoted = f"replace(regexp_replace({cut}, {bare}, '\\1'), {string(mark * 2)}, {string(mark)})"
    return f"nullif(CASE WHEN contains(line, {string(mark)}) THEN {unquoted} ELSE {plain} END, '')"


def _all_fields(path: str, form: files.Form) -> str:
    """All fields of a line, as a list."""
    mark, between = form.quote_mark, form.delimiter_of(path)
    plain = f"string_split(line, {string(between)})"
    if not mark:
        return plain
    pattern = string(f"({_form_of_field(path, form)})(?:{literal(between)}|\\z)")
    return f"CASE WHEN contains(line, {string(mark)}) THEN regexp_extract_all(line, {pattern}, 1) ELSE {plain} END"


def _form_of_field(path: str, form: files.Form) -> str:
    mark, sign = form.quote_mark, literal(form.delimiter_of(path))
    quoted = f"{literal(mark)}(?:[^{literal(mark)}]|{literal(mark * 2)})*{literal(mark)}|" if mark else ""
    return f"(?:{quoted}[^{sign}]*)"


def _of_text(column: str, kind: Kind, form: files.Form) -> str:
    """A field as a value of its kind. With decimal commas, a number that contains a point is NULL."""
    template = CASTS["text", kind].duckdb
    if kind == "number" and form.decimal == ",":
        column = f"replace(CASE WHEN NOT contains({column}, '.') THEN {column} END, ',', '.')"
    return fill(str(template), [column if kind == "text" else f"left({column}, {LONGEST_READ})"])


def guessed(path: str, form: files.Form) -> dict[str, Kind]:
    """The kinds of a CSV file's columns, guessed from its values: for a draft that a person checks."""
    quote = string(form.quote_mark)
    how = f"header = true, delim = {string(form.delimiter_of(path))}, quote = {quote}, escape = {quote}"
    how += f", decimal_separator = {string(form.decimal or '.')}, ignore_errors = true, strict_mode = false"
    looked = f"DESCRIBE SELECT * FROM read_csv([{', '.join(map(string, form.in_utf8(path)))}], {how})"
    with open_database(":memory:") as connection:
        found = {name: kind_of(str(kind)) for name, kind, *_ in public(connection, looked, path)}
    kinds = form.kinds(path)
    return {name: "text" if found.get(name, "other") == "other" else found[name] for name in kinds}


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
