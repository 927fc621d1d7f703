"""DuckDB as an engine: Parquet and CSV files, data frames, tables of a database, an open connection."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from expost.data import files
from expost.data.duckdb import csv, held, parquet, postgres, sources
from expost.data.duckdb.settings import CAREFUL, careful, refuse_locked, refuse_shadows
from expost.data.duckdb.sql import fill, identifier, kind_of, prefix_decides, stated, string, unmarked, whole
from expost.data.expression import Kind, Tree
from expost.data.expression.tree import LONGEST_READ, Call, Reference, Stated
from expost.data.gzipped import refuse_damaged
from expost.data.stopping import stoppable
from expost.data.waiting import waiting
from expost.errors import EngineFailed, InvalidValue
from expost.mentions import Argument

if TYPE_CHECKING:
    from expost.data.frames import PlainColumn

_INTERRUPTED = "Query interrupted"
"""The message that DuckDB raises instead of KeyboardInterrupt."""
_VIEW, _BLANK = "expost_source", "expost_blank"


class DuckDB:
    """One table, view or set of files, in DuckDB. Data stays inside, and may be larger than memory.

    No rendered SQL can fail or depend on other rows, whatever DuckDB's optimizer does with it. As a second line of
    defence, the optimizers that use statistics or move parts of expressions are off while a query runs, and all
    settings that could affect a result are at their defaults. These settings belong to the whole database: on a
    caller's connection they are set for the query and restored, one query at a time. Only built-in functions are found
    by name, so macros of the same names change nothing.
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
            for setting, value in CAREFUL.items():
                connection.execute(f"SET {setting} = {string(value)}")
        self._names, self._shared = sources.found_table(connection, table)
        if not self._shared:
            refuse_shadows(connection)
        if not self._own:
            refuse_locked(self._cursor())
            sources.refuse_scans(self._cursor(), self._names, table)
        self.name = name
        self.ordered = True  # a row's values do not decide its position
        self._origin = origin or id(connection)  # the connection lives as long as this object
        self._bound: set[str] = set()
        self._marked: set[str] = set()  # columns of marked text
        self._replaced = False  # whether DuckDB itself replaced bytes that are not UTF-8
        self._awaited: csv.Copied | None = None
        self._lock = RLock()
        with self._lock:
            blank_source = self.quote(blank) if blank else self.source
            described = sources.public(self._cursor(), f"DESCRIBE SELECT * FROM {blank_source}", name)
        self.types: Mapping[str, str] = {column: str(kind) for column, kind, *_ in described}
        self.schema: Mapping[str, Kind] = {column: kind_of(kind) for column, kind in self.types.items()}

    def __eq__(self, other: object) -> bool:
        """Whether both read the same table of the same database, or the same files in the same way."""
        same = isinstance(other, DuckDB) and (self._origin, self._names) == (other._origin, other._names)
        return same

    def __hash__(self) -> int:
        return hash((self._origin, self._names))

    @classmethod
    def of(cls, source: Any, table: str | None, form: files.Form) -> DuckDB:
        """The engine for a path, a pattern, a database, a frame, or an open connection."""
        if isinstance(source, duckdb.DuckDBPyConnection):
            if not isinstance(table, str) or not table:
                raise InvalidValue("a connection has many tables: name one with table='visits'")
            form.refuse("a table of a connection")
            return cls(source, table, table)
        library = held.library_of(source)
        if library is not None:
            if table is not None:
                raise InvalidValue(f"a frame is one table: leave out table={table!r}")
            form.refuse(f"a {library} frame", "schema")
            return cls._of_columns(held.frame_columns(source, library, form.schema), f"{library} frame")
        if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
            return cls._of_columns(*postgres.read_table(source, table, form))
        path, *more = files.as_paths(source)
        way, form = files.ending(path), replace(form, also=tuple(more))
        if way == "database":
            if not isinstance(table, str) or not table:
                raise InvalidValue(
                    f"{path} is a database with many tables: name one with ", Argument("table", "visits")
                )
            form.refuse("a database")
            return cls(sources.open_database(path), table, f"{path}:{table}", origin=str(Path(path).resolve()))
        if table is not None:
            raise InvalidValue(f"{path} is one table, not a database: leave out ", Argument("table", table))
        name = f"{path} and {len(form.also)} more" if form.also else path
        return cls._of_parquet(path, form, name) if way == "parquet" else cls._of_csv(path, form, name)

    @classmethod
    def _of_columns(cls, columns: Sequence[PlainColumn], name: str) -> DuckDB:
        """The engine for a copy of the columns, on a connection of its own."""
        engine = cls(held.copied(columns, _VIEW), _VIEW, name, _VIEW)._spilling()
        engine._marked = {column.name for column in columns if column.may_have_marks}
        return engine

    @classmethod
    def _of_parquet(cls, path: str, form: files.Form, name: str) -> DuckDB:
        form.refuse("a Parquet file, which has its own types,", "partitions")
        connection = sources.open_database(":memory:")
        connection.execute("SET parquet_metadata_cache = true")  # reloaded for files that have changed
        scanned = parquet.scan(connection, path, form)
        rows = scanned.query
        sources.public(connection, f"CREATE VIEW {_VIEW} AS {rows}", path)
        sources.public(connection, f"CREATE TABLE {_BLANK} ({scanned.blank})", path)
        engine = cls(connection, _VIEW, name, _BLANK, f"{Path.cwd()}: {rows}")._spilling()
        engine.ordered, engine._replaced = not form.partitions, True
        return engine

    @classmethod
    def _of_csv(cls, path: str, form: files.Form, name: str) -> DuckDB:
        """The engine for CSV files, which are copied when the first query runs."""
        form.refuse("CSV files", "schema", "delimiter", "quote", "decimal", "encoding")
        refuse_damaged(form.files(path))
        connection, copied = held.new_database(), csv.Copied(path, form)
        copied.stage(connection)
        held.new_table(connection, _VIEW, copied.rows)
        engine = cls(connection, _VIEW, name, _VIEW, f"{Path.cwd()}: {path}: {form}")._spilling()
        engine._marked = {column for column, kind in engine.schema.items() if kind == "text"}
        engine._awaited = copied
        return engine

    # ---- parts of queries

    @property
    def source(self) -> str:
        """The table's qualified name."""
        return ".".join(map(self.quote, self._names))

    def quote(self, name: str) -> str:
        """The name in double quotes."""
        return identifier(name)

    def render(self, tree: Tree, derived: Collection[str] = ()) -> str:
        """DuckDB's SQL for an expression, which never fails. A text column by itself is not cut."""
        if isinstance(tree, Stated):
            return stated(tree)
        if isinstance(tree, Reference):
            return self._whole(tree.name, derived)
        args = [self._argument(tree, part, derived) for part in tree.arguments]
        template = tree.operator.duckdb
        return fill(template, args) if isinstance(template, str) else template(args)

    def _argument(self, call: Call, part: Tree, derived: Collection[str]) -> str:
        """An argument in SQL. Long texts are cut, unless comparing with literals needs only their beginning anyway."""
        rendered = self.render(part, derived)
        if not isinstance(part, Reference) or part.kind != "text" or prefix_decides(call, part):
            return rendered
        return (
            f"(CASE WHEN strlen({rendered}) > {LONGEST_READ} THEN left({rendered}, {LONGEST_READ}) ELSE {rendered} END)"
        )

    def _whole(self, name: str, derived: Collection[str]) -> str:
        """A column as a value of its kind; values outside the kind's range are NULL."""
        if name in derived:
            return self.quote(name)
        column = self.quote(name)
        return whole(unmarked(column) if name in self._marked else column, self.types[name])

    def owner(self, name: str) -> str:
        """The column unchanged; text by its bytes, those that are question marks elsewhere told apart.

        From a Parquet file DuckDB gives a question mark for each byte that is not UTF-8, by which several people would
        become one. So there a text with a question mark names nobody.
        """
        if self.schema[name] != "text":
            return self.quote(name)
        own = self.bytes_of(self.quote(name))
        if self._replaced and self.types[name] == "VARCHAR":
            return f"CASE WHEN NOT contains({self.quote(name)}, '?') THEN {own} END"
        return own

    def names_nobody(self, name: str) -> str:
        """Which values of a column besides NULL are the name of no unit, in words; empty if all are."""
        return "contains a question mark" if self._replaced and self.types[name] == "VARCHAR" else ""

    def bytes_of(self, text: str) -> str:
        """The text's bytes in UTF-8."""
        return f"encode(CAST({text} AS VARCHAR))"

    def scramble(self, key: int, columns: Sequence[str]) -> str:
        """DuckDB's 64-bit hash, applied twice: once does not mix several columns well enough to order rows evenly."""
        return f"hash(hash({string(str(key))}, {', '.join(columns)}))"

    def total(self, column: str) -> str:
        """The sum of 64-bit integers, which DuckDB computes in 128 bits."""
        return f"sum(CAST({column} AS BIGINT))"

    # ---- running queries

    def check(self, query: str) -> str:
        """The query; raises unless it is one SELECT that DuckDB can bind, so that errors come before the charge."""
        with self._lock:
            if query not in self._bound:
                self._bind(query)
            if self._own:  # the tables of a caller's connection may change
                self._bound.add(query)
        return query

    def _bind(self, text: str) -> None:
        cursor = self._cursor()
        try:
            kinds = [statement.type for statement in cursor.extract_statements(text)]
        except duckdb.Error:
            kinds = []
        if kinds != [duckdb.StatementType.SELECT]:
            raise InvalidValue("the question does not make exactly one query: simplify its expressions")
        sources.public(cursor, f"DESCRIBE {text}", self.name)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        rows: list[tuple[Any, ...]] = self._run(query, lambda cursor: cursor.fetchall())
        return rows

    def arrays(self, query: str) -> list[NDArray[np.float64]]:
        """The columns of a query as NumPy arrays."""
        columns = self._run(query, lambda cursor: cursor.fetchnumpy().values())
        return [np.ma.filled(np.ma.asarray(column, np.float64), np.nan) for column in columns]

    def _spilling(self) -> Self:
        """Spill what does not fit in memory to a folder that only this user can read, removed with the engine."""
        folder = tempfile.mkdtemp(prefix="expost-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._connection.execute(f"SET temp_directory = {string(folder)}")
        return self

    def _run(self, query: str, read: Callable[[duckdb.DuckDBPyConnection], Any]) -> Any:
        try:
            with self._lock:
                cursor = self._cursor()
                if not self._shared:
                    refuse_shadows(cursor)
                with nullcontext() if self._own else careful(cursor), waiting(self.name):
                    self._copy()  # for all who ask: it is never stopped halfway
                    with stoppable(cursor.interrupt):
                        return read(cursor.execute(query))
        except InvalidValue:
            raise
        except Exception as error:  # any message may quote data
            kind = type(error).__name__
            interrupted = kind == "RuntimeError" and str(error) == _INTERRUPTED
        if interrupted:
            raise KeyboardInterrupt
        raise EngineFailed(kind)  # outside the handler, so that not even the context quotes data

    def _copy(self) -> None:
        """Copy the rows that are awaited."""
        if self._awaited is not None:
            self._awaited.fill(self._connection, self._names[-1])
            self._awaited = None

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection that sees the table: only their own connection sees temporary tables."""
        return sources.apart(self._connection) if self._shared and not self._own else self._connection
