"""`read` and `PrivateTable`: a table of private data, which shows only its schema."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, overload

from expost.cost import Number
from expost.data import rows
from expost.data.column import Column
from expost.data.discovery import Discovery
from expost.data.engine import Engine
from expost.data.expression import (
    HEAVIEST,
    KEY_KINDS,
    NUMBER_KINDS,
    Expression,
    Kind,
    find_column,
    is_text,
    read_expression,
    read_value,
    unusable,
    weight,
)
from expost.data.files import Form
from expost.data.groups import Groups
from expost.data.histograms import Histogram
from expost.data.lookups import lookup_steps
from expost.data.lost import Lost
from expost.data.place import check_stated, place_of
from expost.data.quantiles import Ranks
from expost.data.searched import Searched
from expost.data.showing import ShownTable
from expost.data.steps import TableStep
from expost.data.unit import Of, Unit, as_unit
from expost.data.winsorized import WinsorizedMean
from expost.errors import InvalidValue, MissingDependency
from expost.fingerprint import DATA, DataFacts
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanism import PrivateData
from expost.mentions import Argument, brief, printable
from expost.questions.cells import CountedCells
from expost.questions.clamped_mean import ClampedMean
from expost.questions.count import Count
from expost.questions.covariance import Correlation, Covariance
from expost.questions.found import Discover
from expost.questions.lost_values import LostValues
from expost.questions.mean import Mean
from expost.questions.quantile import Median, Quantile
from expost.questions.ratio import Ratio
from expost.questions.record import AQuestion, QuestionRecord
from expost.questions.regression import LinearRegression
from expost.questions.share import Share
from expost.questions.statistic import Statistic
from expost.questions.statistics import NumericStatistic, Statistics
from expost.questions.sum import Sum
from expost.questions.variance import Variance

_MOST_STEPS = 40
_BEHIND = frozenset(
    [
        "check_as_data",
        "chosen_key",
        "counted",
        "decimal",
        "declared",
        "delimiter",
        "encoding",
        "engine",
        "expression",
        "fewest",
        "filtered",
        "key",
        "narrowed",
        "nobody",
        "ordered",
        "place",
        "quote",
        "relation",
        "steps",
    ]
)
"""What questions, engines and ledgers use of a table, and nobody types."""


def read(
    source: Any,
    *,
    unit: Unit | str,
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
    name: str | None = None,
    version: str | None = None,
) -> PrivateTable:
    """Read a private table: Parquet or CSV files, a table of a database, or a data frame.

    Parameters
    ----------
    source
        A path, a pattern such as ``"visits-*.parquet"``, a folder of Parquet files, or a list of these, whose rows are
        read together; a ``.duckdb`` file or an open connection to DuckDB, with ``table``; the address of a PostgreSQL
        database, with ``table``; a frame of pandas, Polars (lazy ones are collected), Arrow (a table, a batch, a list
        or a reader of batches), DuckDB (a relation) or Spark (or its session, with ``table``); or an
        :class:`~expost.data.Engine` of your own.
    unit
        Whose privacy is protected: ``"row"``, or ``Unit("person", rows=10)`` for the values of a column, with the most
        rows of each that count. A ledger of another unit refuses the table's questions. To say what a row is, as some
        ledgers want: ``"visit (one row each)"``.
    neighbours
        Which databases differ by one unit: ``"add-remove"`` (unbounded DP), or ``"substitute"`` (bounded DP), under
        which the number of units is public.
    table
        The name of a table of a database.
    schema
        The kinds of a CSV file's columns, ``{"age": "integer", "born": "date"}``: integer, number, text, boolean, date
        or timestamp. Columns left out are text, and fields that do not fit are NULL. Of a frame's column of objects,
        too, which questions cannot use without a kind.
    delimiter
        The character between the fields of a CSV file.
    quote
        The character around the fields of a CSV file, by default ``"``; doubled within a field, it is one.
        ``""`` if no field is quoted.
    decimal
        ``","`` for a CSV file with numbers such as 1,5; its fields are then separated by semicolons, unless
        ``delimiter`` is given.
    encoding
        The encoding of a CSV file that is not UTF-8, such as ``"latin-1"``.
    partitions
        The columns that are named by folders, as in ``year=2024/``, and their kinds: ``{"year": "integer"}``. Values
        that do not fit are NULL.
    engine
        What runs the queries: ``"duckdb"``, or ``"spark"`` for Parquet files; frames of Spark always use Spark.
    size
        The number of units, if it is known, under ``"substitute"``.
    key
        Fixes which rows count where a unit has too many; by default it is random and secret.
    name
        What the data is called. With a version, tables of one name have the same rows, wherever they are read from.
    version
        Which version of the data it is, as ``"2026-11"``: the same rows whenever it is stated. Then a question that was
        published before, in this ledger and account, with at least the accuracy that is asked for, is answered from the
        books and costs nothing. Say another version when a row changes: nobody compares contents, because whether they
        changed is private. Files need no name beside it, as their path says which they are; frames, connections,
        addresses of databases and engines do. Without a version every question is paid for. A ``key`` that was chosen
        belongs to a question, because another one is another sample of rows; the random one does not.

    Frames, and tables of PostgreSQL, are copied when they are read, and CSV files when the first question is asked, so
    later changes to them have no effect; Spark reads its frames anew for each query.

    The kind of a frame's column follows from its type alone. In pandas NaN is NULL, and the index is not read.
    Questions cannot use lists, structures and the like, nor in Parquet times in milliseconds. A view is not read: make
    a table of it, or pass ``connection.sql("FROM visits")``, which is copied.

    The first line of a CSV file names its columns. Every other line is a row, whatever its bytes are. A line ends with
    a line feed; one carriage return before it belongs to it, and any other is a character of a field. An empty line is
    a row of NULLs, and of a line only the first 4,194,304 characters are read. No field contains a line feed: one that
    is typed into a field makes two rows of one, so use Parquet for text that people write. Files that are read together
    have the same first line or, in Parquet, columns of the same names and types.

    Bytes of a text that are not UTF-8, or not in the stated encoding, are read as question marks. Units whose names
    differ in such bytes only are still different units; in a Parquet file that DuckDB reads, a unit's name with a
    question mark names nobody.
    """
    check_stated(name, "name")
    check_stated(version, "version")
    found = _engine(source, table, Form(schema, delimiter, quote, decimal, encoding, partitions), engine)
    place = place_of(source, name, table, partitions, found)
    if version is not None and place is None:
        raise InvalidValue(
            "a version is that of something with a name, and nothing says what this data is called: pass ",
            Argument("name", "visits"),
            ", too",
        )
    whose, relation = as_unit(unit), as_neighbours(neighbours)
    if relation is None:
        raise InvalidValue("neighbours is missing: pass 'add-remove' or 'substitute'")
    if whose.column is not None:
        try:
            owner = find_column(whose.column, found.schema)
        except InvalidValue as error:
            error.about = ("unit",)
            raise
        if found.schema[owner] == "other":
            raise InvalidValue(unusable(owner), about=("unit",))
        if found.schema[owner] in ("number", "timestamp"):
            raise InvalidValue(
                f"column {owner!r} holds {found.schema[owner]!r} and cannot identify units: use a column of whole "
                "numbers or text",
                about=("unit",),
            )
        whose = Unit(owner, rows=whose.rows, groups=whose.groups, name=whose.name)
    if size is not None and relation != "substitute":
        raise InvalidValue("under 'add-remove' the number of units is private: leave size out, and ask for a count")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise InvalidValue(f"size is the number of units, a whole number from 0, got {brief(size)}")
    if key is not None and (isinstance(key, bool) or not isinstance(key, int)):
        raise InvalidValue("key is a whole number, and something else was given: pass one, or leave key out")
    columns, secret = tuple(found.schema.items()), secrets.randbits(128) if key is None else key
    return PrivateTable(
        name or found.name, whose, relation, columns, (), size, found, secret, key, delimiter, quote, decimal, encoding,
        version, place,
    )  # fmt: skip


@dataclass(frozen=True, repr=False)
class PrivateTable(PrivateData, ShownTable):
    """A table of private rows, made by :func:`read`. A ledger runs its questions. Printing it shows no data.

    A table is immutable; :meth:`where` and :meth:`derive` return new ones. Questions know their sensitivity, and
    mistakes in them are reported before anything is charged. No value in the table ever makes a question fail.

    Attributes
    ----------
    name
        Where the rows come from, as shown to people.
    unit
        Whose privacy is protected.
    neighbours
        Which databases differ by one unit.
    columns
        Their names and kinds.
    steps
        Filters and derived columns.
    declared
        The number of units, if it was declared.
    engine
        What holds the rows.
    key
        The key of the hash that decides which of a unit's rows count.
    chosen_key
        That key, if the caller chose it.
    delimiter, quote, decimal, encoding
        The format of a CSV file, as far as it was declared.
    version
        Which version of the data it is, if that was stated.
    place
        Where the rows are, or what they are called, and what reads them; None if nothing says it.

    Proof: thm-table
    """

    name: str
    unit: Unit
    neighbours: Neighbours
    columns: tuple[tuple[str, Kind], ...]
    steps: tuple[TableStep, ...]
    declared: int | None
    engine: Engine = field(metadata=DATA)
    key: int = field(compare=False)
    chosen_key: int | None = None
    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    version: str | None = None
    place: str | None = field(default=None, compare=False)

    # ---- other tables

    def where(self, condition: str) -> PrivateTable:
        """The rows for which an expression is true: ``visits.where("age >= 18 AND city <> 'Rome'")``.

        Rows for which it is NULL are left out. Each unit's rows are bounded after filtering.
        """
        return self.narrowed(read_expression(condition, self.schema))

    def narrowed(self, condition: Expression) -> PrivateTable:
        """The rows for which a condition over the columns of this table is true."""
        self._has_room()
        if self._checked(condition).kind != "boolean":
            raise InvalidValue(
                f"a filter is true or false for each row, and {brief(condition.text)} is neither: write a comparison",
                about=condition.text,
            )
        return replace(self, steps=(*self.steps, TableStep(condition)))

    def derive(self, /, **columns: str) -> PrivateTable:
        """The table with more columns, each an expression: ``visits.derive(bmi="weight / (height * height)")``.

        Values that cannot be computed are NULL.
        """
        table = self
        for name, expression in columns.items():
            table._has_room()
            if not name or not is_text(name):
                raise InvalidValue(f"the name of a column is text, not empty, valid UTF-8, without NUL; got {name!r}")
            if table._has(name):
                raise InvalidValue(f"there is already a column {name!r}: choose another name")
            value = table._checked(read_expression(expression, table.schema))
            if value.kind is None:
                raise InvalidValue(f"{name!r} would be NULL in every row: give it a kind, as in CAST(NULL AS TEXT)")
            table = table._with(TableStep(value, name), value.kind)
        return table

    def join(self, public: Any, *, on: str, keep: Literal["all", "matched"] = "all") -> PrivateTable:
        """The table with the columns of a public one, looked up by ``on``: a column of both, unique in the public one.

        Rows whose key is not in the public table have NULL in these columns; ``keep="matched"`` leaves them out.
        """
        table = self
        for step in lookup_steps(self.expression(on, KEY_KINDS, "a key"), public, on, keep):
            table._has_room()
            if step.column is not None and table._has(step.column):
                raise InvalidValue(f"there is already a column {step.column!r}: rename that of the public table")
            table = table._with(step, step.kind)
        return table

    def _with(self, step: TableStep, kind: Kind) -> PrivateTable:
        more = () if step.column is None else ((step.column, kind),)
        return replace(self, columns=(*self.columns, *more), steps=(*self.steps, step))

    def _has(self, name: str) -> bool:
        """Whether there is a column of this name, to an engine that does not tell capitals from small letters."""
        return name.lower() in (known.lower() for known, _ in self.columns)

    def by(self, *values: Any, keys: Any = None) -> Groups:
        """Group rows by one or several columns or expressions: ``visits.by("city", "year", keys=…)``.

        ``keys`` is a list of values (of tuples, for several columns), a mapping from each column to its values, for
        all combinations, or a public frame with these columns. Without it, the keys that enough units have are
        discovered. See :meth:`Groups.agg` and :meth:`Groups.ask`.
        """
        if values and not isinstance(values[-1], str) and keys is None:
            values, keys = values[:-1], values[-1]
        return Groups.of(self, values, keys)

    # ---- questions

    def count(self, *, of: Of = "rows") -> NumericStatistic[int]:
        """The number of rows, or of units."""
        return self.asked(Count(of))

    def sum(
        self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop", grid: Number | None = None
    ) -> NumericStatistic[float]:
        """The sum of a column or an expression, its values clamped to ``bounds`` and rounded to ``grid``.

        NULL and NaN count as ``missing``; with ``"drop"`` they do not count. ``grid`` is the distance between the
        values that are summed, a power of two; by default 1 for whole numbers, and otherwise too fine to matter.
        """
        return self.asked(Sum(value, bounds, missing, grid))

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
        """The number of rows, or units, for each of the given ``keys``, or in each of the ``bins``.

        ``bins`` is a list of edges; or a number of bins of equal width, between ``bounds``. A bin contains its lower
        edge, not its upper one. All other values, NULL and NaN included, are counted as ``other``; with
        ``other=None`` they are not counted.
        """
        return self.asked(CountedCells(value, keys, bins, bounds, of, other))

    def quantile(
        self,
        value: str,
        quantile: Any,
        *,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
        interval: bool = False,
    ) -> Ranks:
        """A quantile of a column or an expression, or several (a list of them, chosen jointly).

        With ``interval`` the same ε also gives two values that the true quantile lies between, with 95 % confidence;
        the value itself is then off by about three times as many ranks.

        ``missing`` is as for :meth:`sum`. ``grid`` is by default 1 for whole numbers, and otherwise about a millionth
        of the width of the bounds. Without bounds, values may have any size: whole numbers are clamped to ±2^60, and
        others are rounded to 24 significant bits.
        """
        return self.asked(Quantile(value, quantile, bounds, missing, grid, interval))

    def median(
        self,
        value: str,
        *,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
        interval: bool = False,
    ) -> Ranks:
        """The median of a column or an expression; as :meth:`quantile`."""
        return self.asked(Median(value, bounds, missing, grid, interval))

    @overload
    def mean(
        self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop", grid: Number | None = None
    ) -> Statistics: ...
    @overload
    def mean(self, value: str, *, bounds: None = None, missing: Number | str = "drop") -> Searched: ...
    def mean(
        self,
        value: str,
        *,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
    ) -> Statistics | Searched:
        """The mean of a column or an expression; parameters as for :meth:`sum`.

        Without bounds, a search finds a range first, and the ε that it does not use is refunded.
        """
        return self.asked(Mean(value, bounds, missing, grid))

    def winsorized_mean(
        self,
        value: str,
        *,
        trim: Number,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
    ) -> WinsorizedMean:
        """The mean of values clamped to their quantiles ``trim`` and 1 − ``trim``; otherwise as :meth:`quantile`.

        Bounds may be loose, or left out.
        """
        return self.asked(ClampedMean(value, trim, bounds, missing, grid))

    def ratio(
        self, over: str, under: str, *, bounds: Sequence[tuple[Number, Number]], missing: Number | str = "drop"
    ) -> Statistics:
        """The sum of one column or expression over that of another: ``visits.ratio("cost", "days", bounds=[…, …])``.

        ``bounds`` are two pairs (lowest, highest). With ``missing="drop"`` a row counts only if it has both values.
        """
        return self.asked(Ratio((over, under), bounds, missing))

    def share(self, condition: str, *, missing: bool | str = "drop") -> Statistics:
        """The share of rows for which a condition is true, of those that count: ``visits.share("cost > 100")``.

        A condition that is NULL counts as ``missing``, True or False; with ``"drop"`` such rows do not count.
        """
        return self.asked(Share(condition, missing))

    @overload
    def variance(self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop") -> Statistics: ...
    @overload
    def variance(self, value: str, *, bounds: None = None, missing: Number | str = "drop") -> Searched: ...
    def variance(
        self, value: str, *, bounds: tuple[Number, Number] | None = None, missing: Number | str = "drop"
    ) -> Statistics | Searched:
        """The variance of a column or an expression (divided by n), its values clamped to ``bounds``.

        Bounds may be left out, as for :meth:`mean`.
        """
        return self.asked(Variance(value, bounds, missing))

    @overload
    def covariance(
        self, first: str, second: str, *, bounds: Sequence[Any], missing: Number | str = "drop"
    ) -> Statistics: ...
    @overload
    def covariance(
        self, first: str, second: str, *, bounds: None = None, missing: Number | str = "drop"
    ) -> Searched: ...
    def covariance(
        self, first: str, second: str, *, bounds: Sequence[Any] | None = None, missing: Number | str = "drop"
    ) -> Statistics | Searched:
        """The covariance of two columns or expressions; ``bounds`` are two pairs (lowest, highest), or left out."""
        return self.asked(Covariance((first, second), bounds, missing))

    @overload
    def correlation(
        self, first: str, second: str, *, bounds: Sequence[Any], missing: Number | str = "drop"
    ) -> Statistics: ...
    @overload
    def correlation(
        self, first: str, second: str, *, bounds: None = None, missing: Number | str = "drop"
    ) -> Searched: ...
    def correlation(
        self, first: str, second: str, *, bounds: Sequence[Any] | None = None, missing: Number | str = "drop"
    ) -> Statistics | Searched:
        """The correlation of two columns or expressions; as :meth:`covariance`."""
        return self.asked(Correlation((first, second), bounds, missing))

    def regression(
        self,
        features: Sequence[str],
        target: str,
        *,
        bounds: Any,
        target_bounds: tuple[Number, Number],
        missing: Number | str = "drop",
    ) -> Statistics:
        """Linear regression of a target on features; ``bounds`` has a pair (lowest, highest) for each of them."""
        return self.asked(LinearRegression(features, target, bounds, target_bounds, missing))

    def agg(self, **statistics: Statistic) -> Statistics:
        """Several statistics in one charge: ``visits.agg(n=xp.Count(), cost=xp.Mean("cost", bounds=(0, 500)))``.

        ε is split among them evenly. At most ``unit.rows`` rows of a unit count, the same ones for all of them, whether
        or not they have a value.
        """
        if not statistics:
            raise InvalidValue("agg() takes statistics by name, at least one: table.agg(n=xp.Count())")
        for name, each in statistics.items():
            if not isinstance(each, Statistic):
                raise InvalidValue(
                    f"agg() takes statistics, and {name!r} is a {type(each).__name__}: write it without the table, as "
                    "xp.Count() or xp.Median('cost')"
                )
        return Statistics.several(self, statistics)

    def asked(self, record: QuestionRecord[AQuestion]) -> AQuestion:
        """What a record asks of this table, as a question: ``visits.asked(xp.Count())`` is ``visits.count()``."""
        if not isinstance(record, QuestionRecord):
            raise InvalidValue(
                f'a table is asked a statistic, such as xp.Count() or xp.Mean("cost", bounds=…); got {brief(record)}'
            )
        return record.question(self)

    def discover(self, value: str, *, of: Of = "units") -> Discovery:
        """Count the units, or rows, of each value that enough of them have: partition selection, without known keys."""
        return self.asked(Discover(value, of))

    def lost(self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop") -> Lost:
        """How much a sum or a mean within these bounds does not see.

        The share of values that are moved to a bound, and of units that have more rows than count. It has a price of
        its own, and tells whether bounds and the unit's ``rows`` fit the data.
        """
        return self.asked(LostValues(value, bounds, missing))

    def column(self, *names: str) -> Column:
        """Columns for rank statistics and regressions: one row per unit, unfiltered, under substitution."""
        return Column.of(self, [self.expression(name, NUMBER_KINDS, "a column") for name in names])

    # ---- public facts

    @property
    def unit_name(self) -> str:
        """Whose privacy is protected, in words: a ledger compares it with its own."""
        return self.unit.title

    @property
    def relation(self) -> Neighbours:
        """As :attr:`neighbours`."""
        return self.neighbours

    def check_as_data(self) -> None:
        """A table is asked its own questions."""
        raise InvalidValue(
            "on= is a private table, which is asked questions of its own: run table.mean(…) or table.count() without "
            "on=, as in ledger.run(table.count(), epsilon=0.1); a mechanism for arrays runs on=table.column(…)"
        )

    @property
    def _public_facts(self) -> DataFacts:
        """All of it but the rows and the secret key: by that a ledger tells whether a question was published before."""
        said = [each.name for each in fields(self) if each.compare and not each.metadata.get("data")]
        facts = {each: getattr(self, each) for each in said if each != "name"} | {"place": self.place}
        named = self.version is not None and self.place is not None
        return DataFacts(facts, named, self.engine if self.place is None else None)

    @property
    def schema(self) -> dict[str, Kind]:
        """The columns and their kinds."""
        return dict(self.columns)

    @property
    def filtered(self) -> bool:
        """Whether a unit may have no row."""
        return any(step.column is None for step in self.steps)

    @property
    def ordered(self) -> bool:
        """Whether rows have an order that does not depend on their values."""
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
                "under 'add-remove' the number of units is private: ask for a count of units; or, only if anybody may "
                "know it, read the table with ",
                Argument("neighbours", "substitute"),
            )
        if self.declared is not None:
            return self.declared
        return self.counted()

    def counted(self) -> int:
        """The number of units in the engine; call it only where that is public. Checks the declared size."""
        whole = replace(self, steps=())
        found = int(self.engine.fetch(self.engine.check(rows.count_units(whole)))[0][0])
        if self.declared is not None and self.declared != found:
            raise InvalidValue(
                f"{self.name} has {found} units, but ",
                Argument("size", self.declared),
                f" was declared: declare {found}",
                about=("size",),
            )
        return found

    def expression(self, value: Any, kinds: tuple[Kind, ...], purpose: str) -> Expression:
        """A column or an expression, parsed; raises if it holds none of these kinds."""
        read = self._checked(value if isinstance(value, Expression) else read_value(value, self.schema))
        if read.kind == "other":
            raise InvalidValue(unusable(str(value)), about=value)
        if read.kind not in kinds:
            wanted, found = " or ".join(kinds), read.kind or "NULL"
            raise InvalidValue(
                f"{purpose} needs {wanted}, but {brief(value)} holds {found}: {_remedy(read, kinds)}",
                about=value,
            )
        return read

    def key_column(self, value: Any, *, stated: bool) -> Expression:
        """A column, or an expression, that keys are of.

        Of a column of numbers, keys that are stated are whole, and what is not whole is none of them: frames hold whole
        numbers with gaps as such a column. Whether all its values are whole is private, so none are discovered there.
        """
        if not stated:
            return self.expression(value, KEY_KINDS, "a key")
        read = self.expression(value, (*KEY_KINDS, "number"), "a key")
        return self.expression(read.as_whole(), KEY_KINDS, "a key") if read.kind == "number" else read

    def _checked(self, expression: Expression) -> Expression:
        if weight(expression.tree, self._weights()) > HEAVIEST:
            raise InvalidValue(
                f"{brief(expression.text)} is too large, counting the derived columns it uses: write it in fewer parts",
                about=expression.text,
            )
        return expression

    def _weights(self) -> dict[str, int]:
        """The size of each derived column, written out."""
        weights: dict[str, int] = {}
        for step in self.steps:
            if step.column is not None:
                weights[step.column] = step.size + weight(step.expression.tree, weights)
        return weights

    def _has_room(self) -> None:
        if len(self.steps) >= _MOST_STEPS:
            raise InvalidValue(f"a table has at most {_MOST_STEPS} filters and derived columns: combine some of them")

    @property
    def title(self) -> str:
        """The name and the filters."""
        wheres = [step.description for step in self.steps if step.column is None]
        return f"{self.name} where {' and '.join(wheres)}" if wheres else self.name

    def __repr__(self) -> str:
        return f"<private table {printable(self.title)}: unit {self.unit!r}, {self.neighbours}>"

    @property
    def nobody(self) -> str:
        """Which names of units name nobody, in words: with some sources, not only NULL does. Public."""
        names_nobody = getattr(self.engine, "names_nobody", None)
        return "" if names_nobody is None or self.unit.column is None else str(names_nobody(self.unit.column))

    @property
    def _nobody(self) -> str:
        return f", and rows in which it {self.nobody}," if self.nobody else ""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _BEHIND]

    def __str__(self) -> str:
        unit = self.unit
        named = "" if unit.name is None else f", one {unit.name}"
        whose = (
            f"every row{named}"
            if unit.column is None
            else f"each {unit.column!r}{named}: at most {unit.rows} rows and {unit.groups} groups count, chosen by a "
            f"keyed hash; rows without {unit.column!r}{self._nobody} do not count"
        )
        derived = {step.column: step.description for step in self.steps if step.column is not None}
        columns = [(printable(name), kind, derived.get(name)) for name, kind in self.columns]
        width = max((len(name) for name, *_ in columns), default=0)
        lines = [f"private table {self.name!r}", f"  unit        {whose}", f"  neighbours  {self.neighbours}"]
        if self.declared is not None:
            lines.append(f"  units       {self.declared}")
        lines += [f"  where       {printable(step.description)}" for step in self.steps if step.column is None]
        for name, kind, meant in columns:
            lines.append(f"  {name:<{width}}  {kind}{'' if meant is None else f' = {printable(meant)}'}")
        return "\n".join(lines)


def _remedy(value: Expression, kinds: tuple[Kind, ...]) -> str:
    if value.kind == "date" and "text" in kinds:
        return f"CAST({value} AS TEXT), as in '2024-01-31'"
    if value.kind == "timestamp" and "text" in kinds:  # as text it has a time of day, which keys are rarely stated with
        return f"CAST(CAST({value} AS DATE) AS TEXT), as in '2024-01-31'"
    if value.kind == "text":
        return f"if these are numbers as text, CAST({value} AS DOUBLE); other texts are then NULL"
    if value.kind == "number" and kinds == KEY_KINDS:
        return f"if its numbers are whole, write whole({value}); or state the keys, which are whole; or ask for bins"
    if kinds == ("boolean",):
        return "write a comparison"
    return "derive a column of that kind"


def _engine(source: Any, table: str | None, form: Form, engine: str | None) -> Engine:
    if engine not in (None, "duckdb", "spark"):
        raise InvalidValue(f"engine is what runs the queries, 'duckdb' or 'spark'; got {brief(engine)}")
    if hasattr(type(source), "scramble") and isinstance(source, Engine):  # reads no attribute of a frame
        return source
    if engine == "spark" or type(source).__module__.startswith("pyspark."):
        from expost.data.spark import Spark

        return Spark.of(source, table, form, engine)
    try:
        from expost.data.duckdb import DuckDB
    except ModuleNotFoundError as error:  # pragma: no cover - the development environment has it
        raise MissingDependency("tables", str(error.name), "data") from None
    return DuckDB.of(source, table, form)
