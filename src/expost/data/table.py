"""`read` and `PrivateTable`: a table of private data, of which only the schema is shown."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from expost.cost import Number, said
from expost.data import query
from expost.data.column import Column
from expost.data.discovery import Discovery
from expost.data.engine import Engine
from expost.data.expression import HEAVIEST, Kind, Tree, find_column, is_text, parse, weight
from expost.data.expression.tree import Reference
from expost.data.files import Form
from expost.data.groups import Groups
from expost.data.histograms import Histogram
from expost.data.lookups import lookup_steps
from expost.data.moment_questions import MomentQuestions
from expost.data.quantiles import Ranks
from expost.data.questions import Count
from expost.data.showing import ShownTable
from expost.data.steps import TableStep
from expost.data.sums import Clipped, Sum
from expost.data.unit import Unit, as_unit
from expost.errors import InvalidValue, MissingDependency
from expost.fingerprint import DATA
from expost.guarantee import Neighbours, as_neighbours

Of = Literal["rows", "units"]
_MOST_STEPS = 40


def read(
    source: Any,
    *,
    unit: Unit | Literal["row"],
    neighbours: Neighbours,
    table: str | None = None,
    schema: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    partitions: Mapping[str, str] | None = None,
    engine: Literal["duckdb", "spark"] | None = None,
    size: int | None = None,
    key: int | None = None,
) -> PrivateTable:
    """A private table: a Parquet or CSV file, a table of a database, or a data frame.

    ``source`` is a path, a pattern such as ``"visits-*.parquet"``, a folder of Parquet files, or a list of these, whose
    rows are read together; a ``.duckdb`` file or an open connection to DuckDB, with ``table``; the address of a
    PostgreSQL database, with ``table``; a frame of pandas, Polars (lazy ones are collected), Arrow (a table, a batch, a
    list or a reader of batches) or DuckDB (a relation). Frames, and tables of PostgreSQL, are copied when they are
    read: what becomes of them later changes nothing. A frame of Spark (or its session, with ``table``) is asked where
    it is, by Spark; so are Parquet files with ``engine="spark"``.

    ``unit`` is whose privacy is protected: ``"row"``, or ``Unit("person", rows=10)`` for the values of a column, with
    the most rows of each that count. ``neighbours`` is which databases differ by one unit: ``"add-remove"``, or
    ``"substitute"``, under which the number of units is public (``size``, if it is known).

    ``table`` names a table of a database. ``partitions`` names the columns that folders state, ``year=2024/``, and
    their kinds: ``{"year": "integer"}``; what does not fit is NULL.

    In a frame, what a column holds follows from its type alone. A column of objects needs a declared kind, in
    ``schema``, and its values that do not fit are NULL. In pandas NaN is NULL, and the index is not read. Bytes of a
    text that are not UTF-8 are read as question marks. Lists, structures and the like cannot be asked about.

    ``schema`` also declares the kinds of a CSV file's
    columns, ``{"age": "integer", "born": "date"}``: integer, number, text, boolean, date or timestamp; columns left out
    are text. Fields that do not fit are NULL. The first line of a CSV file names its columns. Every other line is a
    row, if it is UTF-8; a bare carriage return ends a line, too. A field may be quoted, ``quote='"'``, and a doubled
    mark within is one mark; ``quote=''`` means that no field is. No field contains the end of a line: where people's
    own words are in the file, use Parquet: whoever puts the end of a line into a field of CSV makes two rows of one.
    Several files have the same first line, or, in Parquet, columns of the same names and types. ``decimal=","`` is for
    numbers such as 1,5 (fields are then separated by semicolons, unless ``delimiter`` says otherwise), and
    ``encoding="latin-1"`` for files that are not UTF-8: they are read through a converted copy in a temporary folder
    that only this user can read, removed when the process ends.

    ``key`` fixes which rows count where a unit has too many; by default it is random and secret.

    ``source`` may also be an :class:`~expost.data.Engine` of your own.
    """
    found = _engine(source, table, Form(schema, delimiter, quote, decimal, encoding, partitions), engine)
    whose, relation = as_unit(unit), as_neighbours(neighbours)
    if relation is None:
        raise InvalidValue("neighbours is missing: 'add-remove' or 'substitute'")
    if whose.column is not None:
        try:
            owner = find_column(whose.column, found.schema)
        except InvalidValue as error:
            error.about = ("unit",)
            raise
        if found.schema[owner] in ("number", "other"):
            raise InvalidValue(
                f"column {owner!r} holds {found.schema[owner]!r} and cannot identify units: take a column of whole "
                "numbers or text",
                about=("unit",),
            )
        whose = Unit(owner, rows=whose.rows, groups=whose.groups)
    if size is not None and relation != "substitute":
        raise InvalidValue("under 'add-remove' the number of units is private: leave out size=, or count() it")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise InvalidValue(f"size is the number of units, got {said(size)}")
    if key is not None and (isinstance(key, bool) or not isinstance(key, int)):
        raise InvalidValue("a key is a whole number")
    columns, secret = tuple(found.schema.items()), secrets.randbits(128) if key is None else key
    return PrivateTable(
        found.name, whose, relation, columns, (), size, found, secret, key, delimiter, quote, decimal, encoding
    )


@dataclass(frozen=True, repr=False)
class PrivateTable(MomentQuestions, ShownTable):
    """Private rows: ask it questions, and run these with a ledger. Printing it shows no data.

    A table never changes; :meth:`where` and :meth:`derive` give new ones. Questions know their sensitivity, and
    mistakes in them are reported before anything is charged. No value in the table ever makes a question fail.

    Proof: thm-table
    """

    name: str
    unit: Unit
    neighbours: Neighbours
    columns: tuple[tuple[str, Kind], ...]
    """Names and what they hold."""
    steps: tuple[TableStep, ...]
    """Filters and derived columns."""
    declared: int | None
    engine: Engine = field(metadata=DATA)
    key: int = field(compare=False)
    chosen_key: int | None = None
    """The key, if it was given: it decides which rows of a unit count."""
    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    """How a CSV file is written, if that was declared."""

    # ---- other tables

    def where(self, condition: str) -> PrivateTable:
        """The rows for which an expression is true: ``visits.where("age >= 18 AND city <> 'Rome'")``.

        Where it is NULL the row is left out. Units are cut down to their rows after filters.
        """
        self._has_room()
        if self._checked(condition).kind != "boolean":
            raise InvalidValue(
                f"a filter is true or false for each row, and {said(condition)} is not: write a comparison",
                about=condition,
            )
        return replace(self, steps=(*self.steps, TableStep(condition)))

    def derive(self, **columns: str) -> PrivateTable:
        """With more columns, each an expression: ``visits.derive(bmi="weight / (height * height)")``.

        What cannot be computed is NULL.
        """
        table = self
        for name, expression in columns.items():
            table._has_room()
            if not name or not is_text(name):
                raise InvalidValue("a column's name is text, not empty, that can be written in UTF-8, without NUL")
            if name.lower() in (known.lower() for known, _ in table.columns):
                raise InvalidValue(f"there is a column {name!r} already: take another name")
            kind = table._checked(expression).kind
            if kind is None:
                raise InvalidValue(f"{name!r} would be NULL in every row: give it a kind, with CAST(NULL AS TEXT)")
            steps = (*table.steps, TableStep(expression, name))
            table = replace(table, columns=(*table.columns, (name, kind)), steps=steps)
        return table

    def join(self, public: Any, *, on: str, keep: Literal["all", "matched"] = "all") -> PrivateTable:
        """With the columns of a public table, looked up by ``on``, a column of both, which names each of its rows once.

        Rows whose key is not there have NULL in these columns, or are left out, with ``keep="matched"``.
        """
        table, (steps, kinds) = self, lookup_steps(self, public, on, keep)
        for step in steps:
            table._has_room()
            if step.column is not None and step.column.lower() in (known.lower() for known, _ in table.columns):
                raise InvalidValue(f"there is a column {step.column!r} already: rename that of the public table")
            more = () if step.column is None else ((step.column, kinds[step.column]),)
            table = replace(table, columns=(*table.columns, *more), steps=(*table.steps, step))
        return table

    def by(self, *values: Any, keys: Any = None) -> Groups:
        """Groups of rows by one or several columns or expressions: ``visits.by("city", "year", keys=…)``.

        ``keys`` are a list of values (of tuples, for several columns), a mapping from each column to its values, for
        all combinations, or a public frame with these columns. Without keys, those that enough units have are found.
        See :meth:`Groups.answers` and :meth:`Groups.ask`.
        """
        if values and not isinstance(values[-1], str) and keys is None:
            values, keys = values[:-1], values[-1]
        return Groups.of(self, values, keys)

    # ---- questions

    def count(self, *, of: Of = "rows") -> Count:
        """How many rows there are, or how many units."""
        return Count(self, of)

    def sum(
        self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop", grid: Number | None = None
    ) -> Sum:
        """The sum of a column or an expression, its values clamped to ``bounds`` and rounded to ``grid``.

        NULL and NaN count as ``missing``, or not at all. ``grid`` is the distance between the values that
        are summed, a power of two; by default 1 for whole numbers, and otherwise too fine to matter.
        """
        return Sum(self, Clipped.of(self, value, bounds, missing, grid))

    def histogram(
        self,
        value: str,
        *,
        keys: Any = None,
        bins: Any = None,
        bounds: tuple[Number, Number] | None = None,
        other: str | None = "other",
        of: Of = "rows",
    ) -> Histogram:
        """How many rows, or units, have each of the stated ``keys``, or lie in each of the ``bins``.

        ``bins`` is a list of edges; or a number of bins of equal width, between ``bounds``. A bin contains its lower
        edge, not its upper one. All that is in none of them, NULL and NaN included, is in ``other``; with
        ``other=None`` it is not counted.
        """
        return Histogram.of_values(self, value, keys, bins, bounds, other, of)

    def quantile(
        self,
        value: str,
        quantile: Any,
        *,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
    ) -> Ranks:
        """A quantile of a column or an expression, or several (a list of them, chosen jointly); as :meth:`sum`.

        ``grid`` is by default 1 for whole numbers, and otherwise about a millionth of the bounds. Without bounds,
        values may have any size and are rounded to 24 significant bits.
        """
        return Ranks.of(self, value, quantile, bounds, missing, grid)

    def median(
        self,
        value: str,
        *,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
    ) -> Ranks:
        """The median of a column or an expression; as :meth:`quantile`."""
        return self.quantile(value, Fraction(1, 2), bounds=bounds, missing=missing, grid=grid)

    def discover(self, value: str, *, of: Of = "units") -> Discovery:
        """How many units, or rows, have each value that enough of them have: the keys need not be known."""
        return Discovery.of_values(self, value, of)

    def column(self, *names: str) -> Column:
        """Columns for statistics of ranks and regressions: one row for each unit, unfiltered, under substitution."""
        return Column.of(self, names)

    # ---- public facts

    @property
    def schema(self) -> dict[str, Kind]:
        """The columns and what they hold."""
        return dict(self.columns)

    @property
    def filtered(self) -> bool:
        """Whether a unit may have no row."""
        return any(step.column is None for step in self.steps)

    @property
    def ordered(self) -> bool:
        """Whether a row that is exchanged stays where it is among the others."""
        return bool(getattr(self.engine, "ordered", True))

    @property
    def fewest(self) -> int:
        """The fewest rows that a unit of the table can have: 1, or 0 after a filter."""
        return 0 if self.filtered else 1

    @property
    def size(self) -> int:
        """The number of units, which is public under substitution."""
        if self.neighbours != "substitute":
            raise InvalidValue(
                "under 'add-remove' the number of units is private: ask count(of='units'); or, only if anybody may "
                "know it, read the table with neighbours='substitute'"
            )
        if self.declared is not None:
            return self.declared
        return self.counted()

    def counted(self) -> int:
        """The number of units in the engine; only where it is public. What was declared must be true."""
        whole = replace(self, steps=())
        found = int(self.engine.fetch(self.engine.check(query.count_units(whole)))[0][0])
        if self.declared is not None and self.declared != found:
            raise InvalidValue(
                f"{self.name} has {found} units, and size={self.declared} was declared: declare {found}",
                about=("size",),
            )
        return found

    def expression(self, value: Any, kinds: tuple[Kind, ...], purpose: str) -> Tree:
        """A column or an expression that holds one of these kinds."""
        schema = self.schema
        plain = isinstance(value, str) and value in schema
        tree = Reference(value, schema[value]) if plain else self._checked(value)
        if tree.kind not in kinds:
            wanted, found = " or ".join(kinds), tree.kind or "NULL"
            raise InvalidValue(
                f"{purpose} needs {wanted}, and {said(value)} holds {found}: {_remedy(value, tree, kinds)}", about=value
            )
        return tree

    def _checked(self, expression: str) -> Tree:
        tree = parse(expression, self.schema)
        if weight(tree, self._weights()) > HEAVIEST:
            raise InvalidValue(
                f"{said(expression)} is too large, with the derived columns it uses: write it in fewer parts",
                about=expression,
            )
        return tree

    def _weights(self) -> dict[str, int]:
        """How much the derived columns are, written out."""
        weights: dict[str, int] = {}
        for step in self.steps:
            if step.column is not None:
                weights[step.column] = step.size + weight(parse(step.expression, self.schema), weights)
        return weights

    def _has_room(self) -> None:
        if len(self.steps) >= _MOST_STEPS:
            raise InvalidValue(
                f"a table has at most {_MOST_STEPS} filters and derived columns: write fewer, larger ones"
            )

    @property
    def title(self) -> str:
        """Its name and its filters."""
        wheres = [step.said for step in self.steps if step.column is None]
        return f"{self.name} where {' and '.join(wheres)}" if wheres else self.name

    def __repr__(self) -> str:
        return f"<private table {self.title}: unit {self.unit!r}, {self.neighbours}>"

    def __str__(self) -> str:
        unit = self.unit
        whose = (
            "every row is a unit"
            if unit.column is None
            else f"each {unit.column!r} is a unit; at most {unit.rows} rows and {unit.groups} groups of each count, "
            "chosen by a keyed hash; rows without one do not count"
        )
        derived = {step.column: step.said for step in self.steps if step.column is not None}
        width = max((len(name) for name, _ in self.columns), default=0)
        lines = [f"private table {self.name!r}", f"  unit        {whose}", f"  neighbours  {self.neighbours}"]
        if self.declared is not None:
            lines.append(f"  units       {self.declared}")
        lines += [f"  where       {step.said}" for step in self.steps if step.column is None]
        for name, kind in self.columns:
            meant = f" = {derived[name]}" if name in derived else ""
            lines.append(f"  {name:<{width}}  {kind}{meant}")
        return "\n".join(lines)


def _remedy(value: str, tree: Tree, kinds: tuple[Kind, ...]) -> str:
    if tree.kind in ("date", "timestamp") and "text" in kinds:
        return f"CAST({value} AS TEXT)"
    if tree.kind == "text":
        return f"if these are numbers as text, CAST({value} AS DOUBLE); other texts are then NULL"
    return "derive what is meant"


def _engine(source: Any, table: str | None, form: Form, engine: str | None) -> Engine:
    if engine not in (None, "duckdb", "spark"):
        raise InvalidValue(f"engine is what computes, 'duckdb' or 'spark'; got {said(engine)}")
    if hasattr(type(source), "scramble") and isinstance(source, Engine):  # a frame's own attributes are not touched
        return source
    if engine == "spark" or type(source).__module__.startswith("pyspark."):
        from expost.data.spark import Spark

        return Spark.of(source, table, form, engine)
    try:
        from expost.data.duckdb import DuckDB
    except ModuleNotFoundError as error:  # pragma: no cover - the development environment has it
        raise MissingDependency("tables", str(error.name), "data") from None
    return DuckDB.of(source, table, form)
