"""DuckDB as an engine: files of Parquet and CSV, tables of a database, an open connection."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from threading import RLock
from typing import Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from expost.data import files
from expost.data.expression import Kind, Tree
from expost.data.expression.operators import CASTS
from expost.data.expression.patterns import literal
from expost.data.expression.tree import LONGEST_READ, Call, Reference, Stated
from expost.errors import EngineFailed, InvalidValue

_VIEW, _BLANK = "expost_source", "expost_blank"
_WIDER_THAN_64 = ("UBIGINT", "HUGEINT", "UHUGEINT")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", *_WIDER_THAN_64)
_TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "number"),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), "text"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(_TIMES, "timestamp"),
}
_TYPES: Mapping[Kind, str] = {
    "integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip


class DuckDB:
    """One table, view or set of files, through DuckDB. Data stays inside; larger than memory is fine.

    Nothing that we render can fail or depend on other rows, whatever DuckDB's optimizer does with it. As a second line
    of defence the optimizers that look at statistics, or move parts of expressions, are off while a query of ours runs,
    and all settings that could decide a result are at their defaults. Such settings belong to the whole database: on a
    connection of one's own they are set for the query and put back, one query at a time. Functions are looked up among
    the built-in ones alone, so that macros under their names change nothing.
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
                connection.execute(f"SET {setting} = {_text(value)}")
        self._names, self._shared = _found(connection, table)
        if not self._own:
            _refuse_locked(self._cursor())
            _refuse_frames(self._cursor(), self.source, table)
        if not self._shared:
            _refuse_shadows(connection)
        self.name = name
        self._origin = origin or id(connection)  # the connection lives as long as this does
        self._bound: set[str] = set()
        self._lock = RLock()
        with self._lock:
            blank_source = self.quote(blank) if blank else self.source
            described = _public(self._cursor(), f"DESCRIBE SELECT * FROM {blank_source}", name)
        self.types: Mapping[str, str] = {column: str(kind) for column, kind, *_ in described}
        self.schema: Mapping[str, Kind] = {column: _kind(kind) for column, kind in self.types.items()}

    def __eq__(self, other: object) -> bool:
        """Whether both read the same table of the same database, or the same files in the same way."""
        same = isinstance(other, DuckDB) and (self._origin, self._names) == (other._origin, other._names)
        return same

    def __hash__(self) -> int:
        return hash((self._origin, self._names))

    @classmethod
    def of(cls, source: Any, table: str | None, form: files.Form) -> DuckDB:
        """The engine for a path, a pattern of paths, a database file, or an open connection."""
        if isinstance(source, duckdb.DuckDBPyConnection):
            if not isinstance(table, str) or not table:
                raise InvalidValue("a connection has many tables: say which, with table='visits'")
            form.refuse("a table of a connection")
            return cls(source, table, table)
        if not isinstance(source, str | Path):
            raise InvalidValue(
                f"read takes a path, or an open DuckDB connection with table=…, got {type(source).__name__}"
            )
        path = str(source)
        way = files.ending(path)
        if way == "database":
            if not isinstance(table, str) or not table:
                raise InvalidValue(f"{path} is a database with many tables: say which, with table='visits'")
            form.refuse("a database")
            return cls(_open(path), table, f"{path}:{table}", origin=str(Path(path).resolve()))
        if table is not None:
            raise InvalidValue(f"{path} is a file of rows, not a database: leave out table={table!r}")
        if way == "parquet":
            form.refuse("a Parquet file, which states its columns itself,")
        return cls._of_files(path, way, form)

    @classmethod
    def _of_files(cls, path: str, way: str, form: files.Form) -> DuckDB:
        connection = _open(":memory:")
        if way == "parquet":
            connection.execute("SET parquet_metadata_cache = true")  # of files that have not changed since
            rows = _parquet(connection, path)
        else:
            rows = _csv(path, form)
        _public(connection, f"CREATE VIEW {_VIEW} AS {rows}", path)
        _public(connection, f"CREATE TABLE {_BLANK} AS SELECT * FROM {_VIEW} LIMIT 0", path)
        return cls(connection, _VIEW, path, _BLANK, f"{Path.cwd()}: {rows}")._spilling()

    # ---- what queries are made of

    @property
    def source(self) -> str:
        """The table."""
        return ".".join(map(self.quote, self._names))

    def quote(self, name: str) -> str:
        """In double quotes."""
        return _name(name)

    def render(self, tree: Tree, derived: Collection[str] = ()) -> str:
        """DuckDB's SQL for an expression, none of which can fail. A column by itself keeps its length."""
        if isinstance(tree, Stated):
            return stated(tree)
        if isinstance(tree, Reference):
            return self._whole(tree.name, derived)
        said = [self._argument(tree, part, derived) for part in tree.arguments]
        template = tree.operator.duckdb
        return fill(template, said) if isinstance(template, str) else template(said)

    def _argument(self, call: Call, part: Tree, derived: Collection[str]) -> str:
        """What an operator is given. It reads the beginning of a long text, unless stated values decide it anyway."""
        rendered = self.render(part, derived)
        if not isinstance(part, Reference) or part.kind != "text" or _prefix_decides(call, part):
            return rendered
        return (
            f"(CASE WHEN strlen({rendered}) > {LONGEST_READ} THEN left({rendered}, {LONGEST_READ}) ELSE {rendered} END)"
        )

    def _whole(self, name: str, derived: Collection[str]) -> str:
        """A column as a value of its kind: what lies outside of the kind is NULL."""
        if name in derived:
            return self.quote(name)
        column, kind = self.quote(name), self.types[name]
        base = kind.split("(")[0]
        if base in _WIDER_THAN_64:
            return f"TRY_CAST({column} AS BIGINT)"
        if base == "DECIMAL":
            return _of_decimal(column, kind)
        if self.schema[name] == "text":
            return f'({column if base == "VARCHAR" else f"CAST({column} AS VARCHAR)"} COLLATE "binary")'
        if base in ("DATE", *_TIMES):
            return _in_range(column, base)
        wanted = _TYPES[self.schema[name]]
        return column if base == wanted else f"CAST({column} AS {wanted})"

    def owner(self, name: str) -> str:
        """The column as it is; text by its bytes."""
        return self.bytes_of(self.quote(name)) if self.schema[name] == "text" else self.quote(name)

    def bytes_of(self, text: str) -> str:
        """In UTF-8."""
        return f"encode(CAST({text} AS VARCHAR))"

    def scramble(self, key: int, columns: Sequence[str]) -> str:
        """DuckDB's 64-bit hash, twice: once, it mixes several columns too little to order rows evenly."""
        return f"hash(hash({_text(str(key))}, {', '.join(columns)}))"

    def total(self, column: str) -> str:
        """A sum of 64-bit integers has 128 bits."""
        return f"sum(CAST({column} AS BIGINT))"

    # ---- running them

    def check(self, query: str) -> str:
        """One SELECT, which DuckDB has bound, so that what is publicly wrong shows before the charge."""
        with self._lock:
            if query not in self._bound:
                self._bind(query)
            if self._own:  # another's tables may change
                self._bound.add(query)
        return query

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
        """One that sees the table: temporary tables are seen by their own connection only."""
        return _apart(self._connection) if self._shared and not self._own else self._connection


# ---- expressions


def fill(template: str, said: Sequence[str]) -> str:
    """A template of the table of operators with its arguments."""
    return re.sub(r"\$(\d)", lambda place: said[int(place[1])], template)


def stated(tree: Stated) -> str:
    """A stated value, with its type."""
    if tree.value is None:
        return "NULL" if tree.kind is None else f"CAST(NULL AS {_TYPES[tree.kind]})"
    if isinstance(tree.value, bool):
        return "TRUE" if tree.value else "FALSE"
    written = tree.value.isoformat() if isinstance(tree.value, date) else f"{tree.value}"
    return _text(written) if tree.kind == "text" else f"CAST({_text(written)} AS {_TYPES[tree.kind or 'text']})"


def _prefix_decides(call: Call, part: Tree) -> bool:
    """Whether all that a text is compared with is stated, and so shorter than what is read of it."""
    return call.operator.prefix and all(isinstance(other, Stated) for other in call.arguments if other is not part)


def _in_range(column: str, kind: str) -> str:
    """A date or timestamp in the years 1 to 9999, NULL outside of them.

    The value is clamped as well, where it is none of these: so what is computed from it never fails, even where an
    engine computes it for a row that it then leaves out.
    """
    if kind in ("TIMESTAMP_NS", "TIMESTAMP"):
        column, kind = (f"CAST({column} AS TIMESTAMP)" if kind == "TIMESTAMP_NS" else column), "TIMESTAMP"
    zone = "+00" if kind == "TIMESTAMP WITH TIME ZONE" else ""
    ends = ("0001-01-01", "9999-12-31") if kind == "DATE" else (f"0001-01-01 00:00:00{zone}", f"{_LAST[kind]}{zone}")
    low, high = (f"CAST('{end}' AS {kind})" for end in ends)
    clamped = f"least(greatest({column}, {low}), {high})"
    if zone:
        clamped = f"make_timestamp(epoch_us({clamped}))"
    elif kind not in ("DATE", "TIMESTAMP"):
        clamped = f"CAST({clamped} AS TIMESTAMP)"
    return f"(CASE WHEN {column} BETWEEN {low} AND {high} THEN {clamped} END)"


_LAST = {
    "TIMESTAMP": "9999-12-31 23:59:59.999999",
    "TIMESTAMP WITH TIME ZONE": "9999-12-31 23:59:59.999999",
    "TIMESTAMP_MS": "9999-12-31 23:59:59.999",
    "TIMESTAMP_S": "9999-12-31 23:59:59",
}


def _of_decimal(column: str, kind: str) -> str:
    """The nearest number. From 16 digits on DuckDB's own cast rounds twice, and its cast from text once."""
    width = int(re.findall(r"\d+", kind)[0])
    return f"CAST({column} AS DOUBLE)" if width <= 15 else f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"


def _kind(declared: str) -> Kind:
    return "other" if declared.endswith("]") else _KINDS.get(declared.split("(")[0], "other")


# ---- settings

_OFF = "common_subexpressions,in_clause,statistics_propagation"
_CAREFUL = {
    "disabled_optimizers": _OFF,
    "preserve_insertion_order": "true",
    "ieee_floating_point_ops": "true",
    "integer_division": "false",
    "default_collation": "",
    "default_order": "ASC",
    "default_null_order": "NULLS_LAST",
}
"""What decides results, as our queries need it."""
_SETTINGS = RLock()


@contextmanager
def _careful(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Our settings, and afterwards those that were there: they belong to the whole database, hence the one lock."""
    with _SETTINGS:
        asked = ", ".join(f"current_setting('{name}')" for name in _CAREFUL)
        found = [str(value) for value in cursor.execute(f"SELECT {asked}").fetchall()[0]]
        before = dict(zip(_CAREFUL, found, strict=True))
        theirs = set(filter(None, before["disabled_optimizers"].split(",")))
        off = ",".join(sorted(theirs | set(_OFF.split(","))))
        wanted = {**_CAREFUL, "disabled_optimizers": off}
        changed = [name for name in wanted if not _same_setting(wanted[name], before[name])]
        try:
            for name in changed:
                cursor.execute(f"SET {name} = {_text(wanted[name])}")
            yield
        finally:
            for name in changed:
                cursor.execute(f"SET {name} = {_text(before[name])}")


def _same_setting(wanted: str, found: str) -> bool:
    words = [{word.removesuffix("ending") for word in each.lower().split(",")} for each in (wanted, found)]
    return words[0] == words[1]  # which are listed in any order, and ASC is shown as ASCENDING


def _refuse_locked(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        with _careful(cursor):
            pass
    except duckdb.Error:
        needed = "; ".join(f"SET {name} = '{value}'" for name, value in _CAREFUL.items())
        raise InvalidValue(f"the connection's settings are locked: before locking, {needed}") from None


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


def _refuse_frames(cursor: duckdb.DuckDBPyConnection, source: str, table: str) -> None:
    """What is read from an object of Python is read anew by every query, and fails for text that is not Unicode."""
    plan = str(_public(cursor, f"EXPLAIN SELECT * FROM {source}", table)).upper()
    if "PANDAS_SCAN" in plan or "ARROW_SCAN" in plan:
        raise InvalidValue(
            f"{table!r} is a data frame on the connection, and a value in it could make an answer fail: make a table "
            "of it, CREATE TABLE visits AS SELECT * FROM frame, or write it to a Parquet file"
        )


def _apart(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection to the same database on which short names are those of built-in things only: no macro is seen."""
    return connection.cursor().execute("SET search_path = 'system.main'")


# ---- tables and files


def _found(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[tuple[str, ...], bool]:
    """The table's names, database and schema first; and whether other connections see it, too."""
    parts = tuple(table.split("."))
    ways = [(table,), parts] if 1 < len(parts) <= 3 and all(parts) else [(table,)]
    here = _public(connection, "SELECT current_database(), current_schema()", table)[0]
    apart = _apart(connection)
    for names in [(*here[: 3 - len(way)], *way) for way in ways] + ways[1:]:
        if _sees(apart, names):
            return names, True
    return next((way for way in ways if _sees(connection, way)), (table,)), False


def _sees(cursor: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> bool:
    try:
        cursor.execute(f"DESCRIBE SELECT * FROM {'.'.join(map(_name, names))}")
    except duckdb.Error:
        return False
    return True


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


def _csv(path: str, form: files.Form) -> str:
    """Every line is a row: its fields are cut out of it, each by itself, and read as their columns' kinds.

    DuckDB's own reader would take the lines behind a quotation mark that is never closed into one row. It only finds
    the lines here: no line has the separator in it, and if one had, that line alone would be left out.
    """
    how = (
        f"header = true, delim = '{_NOWHERE}', quote = '', escape = '', nullstr = '', null_padding = true, "
        f"ignore_errors = true, strict_mode = false, auto_detect = false, max_line_size = {files.LONGEST_LINE}, "
        "columns = {'line': 'VARCHAR'}"
    )
    lines = f"SELECT rtrim(line, chr(13)) AS line FROM read_csv({_text(path)}, {how})"
    fields = [
        f"{_of_text(_field(place, path, form), kind)} AS {_name(name)}"
        for place, (name, kind) in enumerate(form.kinds(path).items())
    ]
    return f"SELECT {', '.join(fields)} FROM ({lines}) WHERE line <> ''"


_NOWHERE = "\x1e\x1f\x1e\x1f"


def _field(place: int, path: str, form: files.Form) -> str:
    """A field of a line, which may stand in quotation marks, two of which are one within them; NULL if it is empty."""
    between, mark = form.delimiter_of(path), form.quote_mark
    plain = f"split_part(line, {_text(between)}, {place + 1})"
    if not mark:
        return f"nullif({plain}, '')"
    quoted, sign = f"{literal(mark)}(?:[^{literal(mark)}]|{literal(mark * 2)})*{literal(mark)}", literal(between)
    each = f"(?:{quoted}|[^{sign}]*)"
    found = _text(rf"\A(?:{each}{sign}){{{place}}}({each})(?:{sign}|\z)")
    bare = _text(rf"\A{literal(mark)}((?:.|\n)*){literal(mark)}\z")
    unquoted = f"regexp_replace(regexp_extract(line, {found}, 1), {bare}, '\\1')"
    with_marks = f"replace({unquoted}, {_text(mark * 2)}, {_text(mark)})"
    return f"nullif(CASE WHEN contains(line, {_text(mark)}) THEN {with_marks} ELSE {plain} END, '')"


def _of_text(column: str, kind: Kind) -> str:
    template = CASTS["text", kind].duckdb
    return fill(str(template), [column if kind == "text" else f"left({column}, {LONGEST_READ})"])


def guessed(path: str, form: files.Form) -> dict[str, Kind]:
    """What the columns of a CSV file seem to hold, by a look at its values: for a draft that a person checks."""
    quote = _text(form.quote_mark)
    how = f"header = true, delim = {_text(form.delimiter_of(path))}, quote = {quote}, escape = {quote}"
    looked = f"DESCRIBE SELECT * FROM read_csv({_text(path)}, {how}, ignore_errors = true, strict_mode = false)"
    with _open(":memory:") as connection:
        found = {name: _kind(str(kind)) for name, kind, *_ in _public(connection, looked, path)}
    kinds = form.kinds(path)
    return {name: "text" if found.get(name, "other") == "other" else found[name] for name in kinds}


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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
