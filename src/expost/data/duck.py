"""DuckDB as an engine: files of Parquet and CSV, tables of a database, an open connection."""

from __future__ import annotations

import csv
import glob
import gzip
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from expost.cost import said
from expost.data.engine import Kind
from expost.errors import EngineFailed, InvalidValue

_VIEW, _BLANK = "expost_source", "expost_blank"
_LONGEST_LINE = 2**24  # of CSV, in bytes; longer rows are left out
_INTEGERS = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")} - {"UHUGEINT"} | {
    "INTEGER",
    "UINTEGER",
}
_NUMBERS = {"FLOAT", "DOUBLE", "DECIMAL", "UHUGEINT"}
_TEXTS = {"VARCHAR", "UUID", "ENUM"}
_TIMES = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}


class DuckDB:
    """One table, view or set of files, through DuckDB. Data stays inside; larger than memory is fine.

    Two of DuckDB's optimizers compute parts of an expression outside of the TRY that they stand in. They are off while
    a query of ours runs, and so is whatever lets rows lose their order. Both settings belong to the whole database: on
    a connection of one's own they are set for the query and put back, one query at a time. Functions are looked up
    among the built-in ones alone, so that macros under their names change nothing.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        table: str,
        name: str,
        blank: str | None = None,
        origin: str | None = None,
    ) -> None:
        self._connection = connection
        self._own = blank is not None
        if self._own:
            for setting, value in _CAREFUL.items():
                connection.execute(f"SET {setting} = '{value}'")
        self._names, self._shared = _found(connection, table)
        if not self._own:
            _refuse_locked(self._cursor())
        if not self._shared:
            _refuse_shadows(connection)
        self._blank = (blank,) if blank else self._names
        self.name = name
        self._origin = origin or id(connection)  # the connection lives as long as this does
        self._bound: set[str] = set()
        self._lock = RLock()
        self.schema: Mapping[str, Kind] = self.describe(exp.select("*").from_(self.blank()))

    def __eq__(self, other: object) -> bool:
        """Whether both read the same table of the same database, or the same files in the same way."""
        same = isinstance(other, DuckDB) and (self._origin, self._names) == (other._origin, other._names)
        return same

    def __hash__(self) -> int:
        return hash((self._origin, self._names))

    @classmethod
    def of(
        cls,
        source: Any,
        table: str | None,
        schema: Mapping[str, str] | None,
        delimiter: str | None,
        quote: str | None = None,
    ) -> DuckDB:
        """The engine for a path, a pattern of paths, a database file, or an open connection."""
        if isinstance(source, duckdb.DuckDBPyConnection):
            if not isinstance(table, str) or not table:
                raise InvalidValue("a connection has many tables: say which, with table='visits'")
            _refuse("a table of a connection", schema, delimiter, quote)
            return cls(source, table, table)
        if not isinstance(source, str | Path):
            raise InvalidValue(
                f"read takes a path, or an open DuckDB connection with table=…, got {type(source).__name__}"
            )
        path = str(source)
        ending = "".join(Path(path).suffixes[-2:]).lower().removesuffix(".gz")
        if ending.endswith((".duckdb", ".db")):
            if not isinstance(table, str) or not table:
                raise InvalidValue(f"{path} is a database with many tables: say which, with table='visits'")
            _refuse("a database", schema, delimiter, quote)
            return cls(_open(path), table, f"{path}:{table}", origin=str(Path(path).resolve()))
        if table is not None:
            raise InvalidValue(f"{path} is a file of rows, not a database: leave out table={table!r}")
        if ending.endswith((".parquet", ".pq")):
            _refuse("a Parquet file, which states its columns itself,", schema, delimiter, quote)
            connection = _open(":memory:")
            connection.execute("SET parquet_metadata_cache = true")  # of files that have not changed since
            rows = _parquet(connection, path)
        elif ending.endswith((".csv", ".tsv", ".txt")):
            connection = _open(":memory:")
            between = delimiter or ("\t" if ending.endswith(".tsv") else ",")
            rows = _csv(connection, path, schema, between, '"' if quote is None else quote)
        else:
            raise InvalidValue(f"{path} ends in none of .parquet, .csv, .tsv, .duckdb: expost goes by the ending")
        _public(connection, f"CREATE VIEW {_VIEW} AS {rows}", path)
        _public(connection, f"CREATE TABLE {_BLANK} AS SELECT * FROM {_VIEW} LIMIT 0", path)
        return cls(connection, _VIEW, path, _BLANK, f"{Path.cwd()}: {rows}")._spilling()

    def source(self) -> exp.Table:
        """The table."""
        return _table(self._names)

    def blank(self) -> exp.Table:
        """An empty table where the source is files, for these take time to open; else the table itself."""
        return _table(self._blank)

    def describe(self, query: exp.Select) -> Mapping[str, Kind]:
        """Binds the query without running it."""
        with self._lock:
            described = _public(self._cursor(), f"DESCRIBE {_sql(query)}", self.name)
        return {name: _kind(str(kind)) for name, kind, *_ in described}

    @property
    def types(self) -> Mapping[str, str]:
        """What DuckDB calls the columns' types."""
        with self._lock:
            described = _public(self._cursor(), f"DESCRIBE {_sql(exp.select('*').from_(self.blank()))}", self.name)
        return {name: str(kind) for name, kind, *_ in described}

    def attempt(self, expression: exp.Expression) -> exp.Expression:
        """TRY, which gives NULL where it would raise."""
        return exp.Try(this=expression)

    def scramble(self, key: int, columns: Sequence[exp.Expression]) -> exp.Expression:
        """DuckDB's 64-bit hash of the key and the columns."""
        secret = exp.cast(exp.Literal.string(str(key)), "VARCHAR")
        return exp.Anonymous(this="hash", expressions=[secret, *(column.copy() for column in columns)])

    def total(self, column: exp.Expression) -> exp.Expression:
        """A sum of 64-bit integers has 128 bits."""
        return exp.Sum(this=column)

    def text(self, query: exp.Select) -> str:
        """DuckDB's SQL: one SELECT, which DuckDB has bound, so that what is publicly wrong shows before the charge."""
        text = _sql(query)
        with self._lock:
            if text not in self._bound:
                self._bind(text)
            if self._own:  # another's tables may change
                self._bound.add(text)
        return text

    def _bind(self, text: str) -> None:
        cursor = self._cursor()
        try:
            kinds = [statement.type for statement in cursor.extract_statements(text)]
        except duckdb.Error:
            kinds = []
        if kinds != [duckdb.StatementType.SELECT]:
            raise InvalidValue("the question gives no single query: write it more plainly")
        _public(cursor, f"DESCRIBE {text}", self.name)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """All at once."""
        rows: list[tuple[Any, ...]] = self._run(query, lambda cursor: cursor.fetchall())
        return rows

    def arrays(self, query: str) -> list[NDArray[np.float64]]:
        """Straight into numpy."""
        columns = self._run(query, lambda cursor: cursor.fetchnumpy().values())
        return [np.ma.filled(np.ma.asarray(column, np.float64), np.nan) for column in columns]

    def _spilling(self) -> Self:
        """What does not fit in memory goes to a folder that nobody else can read, and that goes with the engine."""
        folder = tempfile.mkdtemp(prefix="expost-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._connection.execute(f"SET temp_directory = {_text(folder)}")
        return self

    def _run(self, query: str, read: Callable[[duckdb.DuckDBPyConnection], Any]) -> Any:
        try:
            with self._lock:
                cursor = self._cursor()
                if not self._shared:
                    _refuse_shadows(cursor)
                with nullcontext() if self._own else _careful(cursor):
                    return read(cursor.execute(query))
        except InvalidValue:
            raise
        except Exception as error:  # whatever it is, it may quote data
            kind = type(error).__name__
        raise EngineFailed(kind)  # outside, so that not even the context quotes data

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """One that sees the table: temporary tables and registered frames are seen by their own connection only."""
        return _apart(self._connection) if self._shared and not self._own else self._connection


_CAREFUL = {"disabled_optimizers": "common_subexpressions,in_clause", "preserve_insertion_order": "true"}
_SETTINGS = RLock()


@contextmanager
def _careful(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Our settings, and afterwards those that were there: they belong to the whole database, hence the one lock."""
    with _SETTINGS:
        asked = ", ".join(f"current_setting('{name}')" for name in _CAREFUL)
        found = [str(value) for value in cursor.execute(f"SELECT {asked}").fetchall()[0]]
        before = dict(zip(_CAREFUL, found, strict=True))
        theirs = set(filter(None, before["disabled_optimizers"].split(",")))
        off = ",".join(sorted(theirs | set(_CAREFUL["disabled_optimizers"].split(","))))
        wanted = {**_CAREFUL, "disabled_optimizers": off}
        changed = [name for name in wanted if set(wanted[name].split(",")) != set(before[name].lower().split(","))]
        try:
            for name in changed:
                cursor.execute(f"SET {name} = {_text(wanted[name])}")
            yield
        finally:
            for name in changed:
                cursor.execute(f"SET {name} = {_text(before[name])}")


def _refuse_locked(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        with _careful(cursor):
            pass
    except duckdb.Error:
        needed = ", ".join(f"{name} = '{value}'" for name, value in _CAREFUL.items())
        raise InvalidValue(f"the connection's settings are locked: before locking, SET {needed}") from None


def _refuse_shadows(connection: duckdb.DuckDBPyConnection) -> None:
    """On a connection that we share with its owner, a macro under the name of a built-in function would replace it."""
    both = "GROUP BY function_name HAVING bool_or(internal) AND NOT bool_and(internal)"
    named = connection.execute(f"SELECT function_name FROM duckdb_functions() {both}").fetchall()
    found = sorted(str(name) for (name,) in named)
    if found:
        raise InvalidValue(
            f"the database has functions of its own under built-in names ({', '.join(found)}): drop or rename them, or "
            "read a table that is not temporary"
        )


def _apart(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection to the same database on which short names are those of built-in things only: no macro is seen."""
    return connection.cursor().execute("SET search_path = 'system.main'")


def _found(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[tuple[str, ...], bool]:
    """The table's names, database and schema first; and whether other connections see it, too."""
    parts = tuple(table.split("."))
    ways = [(table,), parts] if 1 < len(parts) <= 3 and all(parts) else [(table,)]
    here = _public(connection, "SELECT current_database(), current_schema()", table)[0]
    apart = _apart(connection)
    for names in [(*here[: 3 - len(way)], *way) for way in ways] + ways[1:]:
        if _sees(apart, _table(names)):
            return names, True
    return next((way for way in ways if _sees(connection, _table(way))), (table,)), False


def _table(names: tuple[str, ...]) -> exp.Table:
    table, schema, catalog = (*reversed(names), None, None)[:3]
    return exp.table_(table, schema, catalog, quoted=True)


def _sees(cursor: duckdb.DuckDBPyConnection, table: exp.Table) -> bool:
    try:
        cursor.execute(f"DESCRIBE {_sql(exp.select('*').from_(table))}")
    except duckdb.Error:
        return False
    return True


def _sql(query: exp.Select) -> str:
    try:
        return query.sql("duckdb", copy=False, comments=False)
    except RecursionError:
        raise InvalidValue("the question is nested too deeply: write shorter expressions, or fewer of them") from None


def _open(path: str) -> duckdb.DuckDBPyConnection:
    if path != ":memory:" and not Path(path).is_file():
        raise InvalidValue(f"there is no database {path!r}")
    try:
        connection = duckdb.connect(path, read_only=path != ":memory:")
    except duckdb.Error as error:
        raise InvalidValue(f"{path!r} cannot be opened: {type(error).__name__}") from None
    return connection


def _parquet(connection: duckdb.DuckDBPyConnection, path: str) -> str:
    """All files have the same columns: what has another type would be cast, and a cast fails for some values."""
    columns = "list(name || ' ' || duckdb_type ORDER BY name, duckdb_type)"
    of_files = f"SELECT file_name, {columns} FROM parquet_schema({_text(path)}) WHERE column_id > 0 GROUP BY file_name"
    found = _public(connection, f"{of_files} ORDER BY file_name", path)
    for file, named in found[1:]:
        if named != found[0][1]:
            raise InvalidValue(
                f"{file} has other columns than {found[0][0]}: files that are read together have columns of the same "
                "names and types"
            )
    return f"SELECT * FROM read_parquet({_text(path)}, utf8_validation = 'replace')"  # what is no text: question marks


def _csv(
    connection: duckdb.DuckDBPyConnection, path: str, schema: Mapping[str, str] | None, delimiter: str, quote: str
) -> str:
    """Every field is read as text and then cast: a field that does not fit its column's type is NULL.

    Names come from the header. Without a declared schema the types come from a look at the file, and are then public.
    """
    if not isinstance(quote, str) or len(quote) > 1:
        raise InvalidValue(f"quote is the character around fields, or '' for none, got {said(quote)}")
    form = (
        f"header = true, delim = {_text(delimiter)}, quote = {_text(quote)}, escape = {_text(quote)}, nullstr = '', "
        "null_padding = true, ignore_errors = true, strict_mode = false, parallel = false, "
        f"max_line_size = {_LONGEST_LINE}"
    )
    types = dict.fromkeys(_header(path, delimiter, quote), "VARCHAR")
    if schema is None:
        looked = f"DESCRIBE SELECT * FROM read_csv({_text(path)}, {form})"
        found = {name: str(kind) for name, kind, *_ in _public(connection, looked, path)}
        types = {name: found.get(name, kind) for name, kind in types.items()}
    else:
        for name, kind in schema.items():
            if name not in types:
                raise InvalidValue(f"{path} has no column {name!r}: its header says {', '.join(map(repr, types))}")
            types[name] = _type(connection, name, kind)
    texts = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in types)
    casts = ", ".join(f"TRY_CAST({_name(name)} AS {kind}) AS {_name(name)}" for name, kind in types.items())
    return f"SELECT {casts} FROM read_csv({_text(path)}, {form}, auto_detect = false, columns = {{{texts}}})"


def _header(path: str, delimiter: str, quote: str) -> list[str]:
    """The names in the first line, the same in all files: fields are read by their place."""
    files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise InvalidValue(f"{path} cannot be read: is the path right?")
    names = _first_line(files[0], delimiter, quote)
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise InvalidValue(
            f"the first line of {files[0]} should name its columns, each once; is {delimiter!r} between?"
        )
    for file in files[1:]:
        if _first_line(file, delimiter, quote) != names:
            raise InvalidValue(
                f"{file} has another first line than {files[0]}: files that are read together have the same columns "
                "in the same order"
            )
    return names


def _first_line(file: str, delimiter: str, quote: str) -> list[str]:
    opened = gzip.open if file.lower().endswith(".gz") else open
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    try:
        with opened(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            return next(csv.reader(lines, delimiter=delimiter, **quoting), [])
    except (csv.Error, TypeError, OSError, EOFError):
        raise InvalidValue(f"the first line of {file} cannot be read: is it CSV, {delimiter!r} between?") from None


_WORDS = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "time": "TIMESTAMP"}


def _type(connection: duckdb.DuckDBPyConnection, name: str, kind: Any) -> str:
    word = _WORDS.get(kind, kind)
    known = [*_WORDS, "date"]
    if not isinstance(word, str) or not word.replace("_", "").replace(" ", "").isalnum():
        raise InvalidValue(f"column {name!r} cannot be of type {said(kind)}: say one of {', '.join(known)}")
    try:
        connection.execute(f"SELECT CAST(NULL AS {word})")
    except duckdb.Error:
        raise InvalidValue(f"column {name!r} cannot be of type {kind!r}: say one of {', '.join(known)}") from None
    return word


def _public(connection: duckdb.DuckDBPyConnection, statement: str, name: str) -> list[tuple[Any, ...]]:
    """Run what reads no private value: what goes wrong is about names and types, and may be told."""
    try:
        return connection.execute(statement).fetchall()
    except duckdb.IOException:
        raise InvalidValue(f"{name} cannot be read: is the path right?") from None
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
        raise InvalidValue(f"{name}: {str(error).splitlines()[0]}") from None
    except (duckdb.Error, UnicodeError) as error:
        raise InvalidValue(f"{name} cannot be read: {type(error).__name__}") from None


def _refuse(what: str, *options: object) -> None:
    if any(option is not None for option in options):
        raise InvalidValue(f"schema=, delimiter= and quote= are for CSV; {what} has no use for them")


def _kind(declared: str) -> Kind:
    base = declared.split("(")[0]
    if declared.endswith("]"):
        return "other"
    kinds: tuple[tuple[set[str], Kind], ...] = (
        (_INTEGERS, "integer"),
        (_NUMBERS, "number"),
        (_TEXTS, "text"),
        ({"BOOLEAN"}, "boolean"),
        (_TIMES, "time"),
    )
    return next((kind for names, kind in kinds if base in names), "other")


def _text(value: str) -> str:
    return exp.Literal.string(value).sql("duckdb")


def _name(value: str) -> str:
    return exp.to_identifier(value, quoted=True).sql("duckdb")
