"""Sources of rows in Spark: a frame that is a plain scan, a table, or Parquet files; read in a separate session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expost.data.expression import Kind
from expost.data.spark.rendering import spark_identifier
from expost.data.spark.scans import rows_of
from expost.data.spark.settings import session_beside
from expost.errors import EngineFailed, InvalidValue, MissingDependency
from expost.mentions import Argument, brief

VIEW = "expost_source"
_DISCREET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "ERROR",
}
"""Settings of a session that expost starts: its web pages and logs would show exact counts."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "varchar", "char"), "text"),
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
}


def start_session() -> Any:
    """The active session, or a new one without web pages and logs."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder
    for setting, value in _DISCREET.items():
        builder = builder.config(setting, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # no Java, mostly
        failed = type(error).__name__
    raise InvalidValue(
        f"Spark does not start ({failed}): it needs Java 17 or newer; is JAVA_HOME set, or java on the PATH?"
    )


Opened = tuple["Viewed", str, Any]
"""A separate session that has the rows as a view, their name, and what identifies them."""


@dataclass(frozen=True)
class Viewed:
    """A separate session with a view of the columns that can be read; and the types of all columns."""

    session: Any
    types: dict[str, str]
    read: frozenset[str]

    def kind(self, column: str) -> Kind:
        """The kind of a column; other if it cannot be read."""
        return spark_kind(self.types[column]) if column in self.read else "other"


def open_source(source: Any, table: str | None) -> Opened:
    """The rows of a frame, a table of a session, or files."""
    try:
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.dataframe import DataFrame
    except ModuleNotFoundError:
        raise MissingDependency("tables in Spark", "pyspark", "spark") from None
    if isinstance(source, SparkSession):
        return _of_table(source, table)
    if table is not None:
        raise InvalidValue(f"a frame or a path is one table: leave out table={table!r}, or pass a session with it")
    if isinstance(source, DataFrame):
        return _of_frame(source)
    return _of_paths(source)


def _of_table(theirs: Any, table: str | None) -> Opened:
    if not isinstance(table, str) or not table:
        raise InvalidValue("a session has many tables: name one with table='visits'")
    refuse_closed(theirs)
    name = f"spark:{table}"
    ours = _viewed(theirs, lambda _: theirs.table(table), f"table {brief(table)}: is its name right?")
    return ours, name, f"{theirs.sparkContext.applicationId}: {name}"


def _of_frame(frame: Any) -> Opened:
    refuse_closed(frame.sparkSession)
    return _viewed(frame.sparkSession, lambda _: frame, "the frame: are its files still there?"), "spark frame", frame


def _of_paths(source: Any) -> Opened:
    """Parquet files, whose types must agree."""
    listed = source if isinstance(source, list | tuple) and source else [source]
    if not all(isinstance(path, str | Path) for path in listed):
        raise InvalidValue(
            Argument("engine", "spark"),
            " reads a frame of Spark, a session with ",
            Argument("table", "visits"),
            f", or paths of Parquet files; got {type(source).__module__}.{type(source).__name__}: frames of Spark "
            "Connect cannot be read, and others are read without ",
            Argument("engine"),
        )
    theirs, paths = start_session(), [str(path) for path in listed]
    name = ", ".join(paths)
    wrong = f"{brief(name)}: is the path right, are all files Parquet, and do their columns agree?"
    ours = _viewed(theirs, lambda session: session.read.option("mergeSchema", "true").parquet(*paths), wrong)
    return ours, name, f"{theirs.sparkContext.applicationId}: {name}"


def refuse_closed(session: Any) -> None:
    """Raise if a session was stopped."""
    context = session.sparkContext
    if context._jsc is None or context._jsc.sc().isStopped():
        raise InvalidValue("the Spark session is closed: start another, and read the table again")


def _viewed(theirs: Any, frame_in: Callable[[Any], Any], wrong: str) -> Viewed:
    """A separate session with the rows as a view; ``wrong`` is the rest of the error if they cannot be read.

    Spark's messages are not passed on, because they may quote data.
    """
    try:
        ours = session_beside(theirs)
        frame = frame_in(ours)
        _refuse_names(frame.columns)
        rows, failing = rows_of(frame, ours)
        types = dict(rows.dtypes)
        read = [name for name, kind in types.items() if spark_kind(kind) != "other" and name not in failing]
        rows.select(*map(spark_identifier, _some(read))).createOrReplaceTempView(VIEW)
        return Viewed(ours, types, frozenset(read))
    except (InvalidValue, EngineFailed):
        raise
    except Exception as error:
        failed = type(error).__name__
    if failed in ("AnalysisException", "ParseException", "SparkException", "Py4JJavaError"):
        raise InvalidValue(f"Spark cannot read {wrong} ({failed})")
    raise EngineFailed(failed)


def _some(columns: list[str]) -> list[str]:
    if not columns:
        raise InvalidValue(
            "no column can be read, because all are lists, structures, bytes, times in milliseconds or the like: add a "
            "column of numbers, text, booleans or times in microseconds, or pass frame.localCheckpoint()"
        )
    return columns


def _refuse_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise InvalidValue("the frame has a column without a name: give it one")
        if name.lower() in seen:
            raise InvalidValue(f"the frame has two columns {name!r}, ignoring case: rename one of them")
        seen.add(name.lower())


def spark_kind(declared: str) -> Kind:
    """The kind of a column of one of Spark's types."""
    return _KINDS.get(declared.split("(")[0].split(" ")[0], "other") if "<" not in declared else "other"
