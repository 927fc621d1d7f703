"""Spark as an engine: rows stay in the cluster, which bounds and aggregates them, and only aggregates are collected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.data.duckdb.sql import fill, prefix_decides
from expost.data.expression import Kind, Tree
from expost.data.expression.tree import LONGEST_READ, Call, Reference, Stated
from expost.data.files import Form
from expost.data.spark import sources
from expost.data.spark.rendering import SPARK_TYPES, rendering, spark_identifier, spark_stated, spark_string
from expost.errors import EngineFailed, InvalidValue


class Spark:
    """A Spark frame that is a plain scan, a table of a session, or Parquet files.

    Queries run in a separate session, whose settings do not affect the caller's. Spark's logs, web pages and event log
    may show exact counts: keep them as private as the data.
    """

    ordered = False
    any_order = " ORDER BY NULL"
    """Spark needs an order to number rows."""

    def __init__(self, viewed: sources.Viewed, name: str, origin: Any) -> None:
        self._session, self.name, self._origin = viewed.session, name, origin
        self.types: Mapping[str, str] = viewed.types
        self.schema: Mapping[str, Kind] = {column: viewed.kind(column) for column in self.types}

    @classmethod
    def of(cls, source: Any, table: str | None, form: Form, engine: str | None = None) -> Spark:
        """The engine for a frame, a session and a table, or a path."""
        if engine == "duckdb":
            raise InvalidValue("a Spark frame needs Spark as its engine: leave out engine='duckdb'")
        form.refuse("tables in Spark")
        return cls(*sources.open_source(source, table))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spark) and bool(self._origin == other._origin)

    def __hash__(self) -> int:
        return hash(self._origin)

    # ---- parts of queries

    @property
    def source(self) -> str:
        """The view in the separate session."""
        return sources.VIEW

    def quote(self, name: str) -> str:
        """The name in backquotes."""
        return spark_identifier(name)

    def render(self, tree: Tree, derived: Collection[str] = ()) -> str:
        """Spark's SQL for an expression, which never fails."""
        if isinstance(tree, Stated):
            return spark_stated(tree)
        if isinstance(tree, Reference):
            return self._whole(tree.name, derived)
        written, template = [self._argument(tree, part, derived) for part in tree.arguments], rendering(tree)
        return fill(template, written) if isinstance(template, str) else template(written)

    def _argument(self, call: Call, part: Tree, derived: Collection[str]) -> str:
        rendered = self.render(part, derived)
        if not isinstance(part, Reference) or part.kind != "text" or prefix_decides(call, part):
            return rendered
        cut = f"left({rendered}, {LONGEST_READ})"
        return f"(CASE WHEN octet_length({rendered}) > {LONGEST_READ} THEN {cut} ELSE {rendered} END)"

    def _whole(self, name: str, derived: Collection[str]) -> str:
        """A column as a value of its kind: invalid UTF-8 in text is replaced, and times outside the range are NULL."""
        column = self.quote(name)
        if name in derived:
            return column
        kind = self.schema[name]
        if kind == "text":
            return f"make_valid_utf8(collate(CAST({column} AS STRING), 'UTF8_BINARY'))"
        if kind in ("date", "timestamp"):
            type_ = SPARK_TYPES[kind]
            last = "9999-12-31" if kind == "date" else "9999-12-31 23:59:59.999999"
            low, high = f"CAST('0001-01-01' AS {type_})", f"CAST('{last}' AS {type_})"
            plain = f"CAST({column} AS {type_})"
            return f"(CASE WHEN {plain} BETWEEN {low} AND {high} THEN least(greatest({plain}, {low}), {high}) END)"
        if self.types[name].startswith("decimal"):
            return f"CAST(CAST({column} AS STRING) AS DOUBLE)"
        return f"CAST({column} AS {SPARK_TYPES[kind]})"

    def owner(self, name: str) -> str:
        """The column unchanged; text by its bytes, before any of them is replaced."""
        return self.bytes_of(self.quote(name)) if self.schema[name] == "text" else self.quote(name)

    def bytes_of(self, text: str) -> str:
        """The text's bytes in UTF-8."""
        return f"CAST({text} AS BINARY)"

    def scramble(self, key: int, columns: Sequence[str]) -> str:
        """Spark's 64-bit hash, applied twice."""
        return f"xxhash64(xxhash64({spark_string(str(key))}, {', '.join(columns)}), {spark_string(str(key))})"

    def total(self, column: str) -> str:
        """The sum of 64-bit integers, in 38 decimal digits."""
        return f"sum(CAST({column} AS DECIMAL(38, 0)))"

    def join_public(self, rows: str, name: str, keys: Sequence[str], values: Sequence[str]) -> tuple[str, str]:
        """A join with a public table: a search among thousands of keys would take Spark a minute to compile."""
        found, listed = self.quote(f"{name} found"), ", ".join(map("({}, {})".format, keys, values))
        joined = f"{rows} LEFT JOIN VALUES {listed} AS p(k, v) ON r.{self.quote(name)} = p.k"
        return f"(SELECT /*+ BROADCAST(p) */ r.*, p.v AS {found} FROM {joined}) AS r", found

    # ---- running queries

    def check(self, query: str) -> str:
        """The query; raises unless it is a SELECT that Spark can analyse."""
        if not query.startswith("SELECT "):
            raise InvalidValue("the question does not make exactly one query: simplify its expressions")
        self.refuse_closed()
        failed = self._failure(lambda: self._session.sql(query))[0]
        if failed == "AnalysisException" or failed == "ParseException":
            raise InvalidValue(f"{self.name}: Spark cannot analyse the query ({failed}): is the table still there?")
        if failed:
            self._raise(failed)
        return query

    def refuse_closed(self) -> None:
        """Raise if the session was stopped."""
        sources.refuse_closed(self._session)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query, which has aggregates only."""
        failed, rows = self._failure(lambda: self._session.sql(query).collect())
        if failed:
            self._raise(failed)
        return [tuple(map(_plain, row)) for row in rows]

    def arrays(self, query: str) -> list[NDArray[np.float64]]:
        """The columns of a query as NumPy arrays, by way of Arrow."""
        failed, table = self._failure(lambda: self._session.sql(query).toArrow())
        if failed:
            self._raise(failed)
        return [
            np.array([np.nan if value is None else float(value) for value in column.to_pylist()], np.float64)
            for column in table.columns
        ]

    def _failure(self, work: Any) -> tuple[str, Any]:
        """The type of an exception, or an empty text, and the result. Spark's messages quote data and whole plans."""
        try:
            return "", work()
        except Exception as error:
            return type(error).__name__, None

    def _raise(self, failed: str) -> None:
        self.refuse_closed()
        raise EngineFailed(failed)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
