"""Where rows come from in Spark: a frame that is a plain scan, a table, or Parquet files; in a session of ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from expost.cost import said
from expost.data.expression import Kind
from expost.errors import EngineFailed, InvalidValue, MissingDependency

VIEW = "expost_source"
SPARK_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.cbo.enabled": "false",
}
"""What decides results, or lets a reader look at statistics, as our queries need it: of our own session."""
_PLAIN = {
    "org.apache.spark.sql.execution.LogicalRDD",
    "org.apache.spark.sql.execution.datasources.LogicalRelation",
    "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation",
    "org.apache.spark.sql.catalyst.plans.logical.LocalRelation",
    "org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias",
    "org.apache.spark.sql.catalyst.plans.logical.View",
    "org.apache.spark.sql.catalyst.catalog.HiveTableRelation",
}
_TYPED = ("ParquetFileFormat", "OrcFileFormat", "ParquetTable", "OrcTable", "iceberg.spark.source.SparkTable")
"""Readers, as the names of their classes end, that parse nothing and ask no other database."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "varchar", "char"), "text"),
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
}


def is_spark(source: Any) -> bool:
    """Whether it is a frame or a session of Spark."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import DataFrame, SparkSession

    return isinstance(source, DataFrame | SparkSession)


def start_session() -> Any:
    """The session that is there, or a local one."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise MissingDependency("tables in Spark", str(error.name), "spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    try:
        return SparkSession.builder.getOrCreate()
    except Exception as error:  # no Java, mostly
        failed = type(error).__name__
    raise InvalidValue(
        f"Spark does not start ({failed}): it needs Java 17 or newer; is JAVA_HOME set, or java on the PATH?"
    )


def open_source(source: Any, table: str | None) -> tuple[Any, str, str]:
    """Our session, in which the rows are a view; what they are called; and what tells them apart from others."""
    from pyspark.sql import SparkSession

    try:
        if isinstance(source, str | Path):
            theirs, path = start_session(), str(source)
            return *_ours(theirs, theirs.read.parquet(path)), path, f"{theirs.sparkContext.applicationId}: {path}"
        theirs = source if isinstance(source, SparkSession) else source.sparkSession
        _refuse_closed(theirs)
        if isinstance(source, SparkSession):
            if not isinstance(table, str) or not table:
                raise InvalidValue("a session has many tables: name one with table='visits'")
            name = f"spark:{table}"
            return *_ours(theirs, theirs.table(table)), name, f"{theirs.sparkContext.applicationId}: {name}"
        if table is not None:
            raise InvalidValue(f"a frame is one table: leave out table={table!r}")
        return *_ours(theirs, source), "spark frame", f"{id(source)}"
    except (InvalidValue, EngineFailed, MissingDependency):
        raise
    except Exception as error:
        failed = type(error).__name__
    if failed == "AnalysisException":
        raise InvalidValue(f"Spark cannot read {said(table or str(source))}: is the name or path right?")
    raise EngineFailed(failed)


def _refuse_closed(theirs: Any) -> None:
    context = theirs.sparkContext
    if context._jsc is None or context._jsc.sc().isStopped():
        raise InvalidValue("the Spark session is closed: start another, and read the table again")


def _ours(theirs: Any, frame: Any) -> tuple[Any]:
    """A session of ours with the frame as a view: its settings hold for our queries, and theirs for theirs."""
    from pyspark.sql.classic.dataframe import DataFrame

    plan = frame._jdf.queryExecution().analyzed()
    _refuse_plans(plan)
    _refuse_names(frame.columns)
    ours = theirs.newSession()
    for setting, value in SPARK_SETTINGS.items():
        ours.conf.set(setting, value)
    dataset = theirs._jvm.org.apache.spark.sql.classic.Dataset.ofRows(ours._jsparkSession, plan)
    DataFrame(dataset, ours).createOrReplaceTempView(VIEW)
    return (ours,)


def _refuse_plans(plan: Any) -> None:
    """Only what is scanned as it is: other plans compute by their own rules, and may fail for some values."""
    name = plan.getClass().getName()
    children = plan.children()
    if name not in _PLAIN or (name.endswith(".LogicalRDD") and not plan.rdd().isCheckpointed()):
        raise InvalidValue(
            f"the frame is not a plain table but computes something ({name.rpartition('.')[2]}), and a value in it "
            "could make an answer fail: pass frame.localCheckpoint(), or where() and derive() of the table"
        )
    if name.endswith((".LogicalRelation", ".DataSourceV2Relation")):
        _refuse_readers(plan.relation() if name.endswith(".LogicalRelation") else plan.table())
    for place in range(children.size()):
        _refuse_plans(children.apply(place))


def _refuse_readers(relation: Any) -> None:
    """Only files of typed values, read as they are: parsing fails for some rows if options say so, and so do dates."""
    files = relation.getClass().getSimpleName() == "HadoopFsRelation"
    reader = (relation.fileFormat() if files else relation).getClass().getName()
    if not reader.endswith(_TYPED):
        raise InvalidValue(
            f"the frame is read by {reader.rpartition('.')[2]}, and a value that it cannot read could make an answer "
            "fail: pass frame.localCheckpoint(), or read Parquet or ORC files"
        )
    for option in ("datetimeRebaseMode", "int96RebaseMode") if files else ():
        mode = relation.options().get(option)
        if mode.isDefined() and mode.get().upper() == "EXCEPTION":
            raise InvalidValue(f"with {option}='EXCEPTION' an old date makes an answer fail: write 'CORRECTED'")


def _refuse_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name.lower() in seen:
            raise InvalidValue(f"the frame has two columns {name!r}, capitals aside: rename one of them")
        seen.add(name.lower())


def spark_kind(declared: str) -> Kind:
    """What a column of one of Spark's types holds."""
    return _KINDS.get(declared.split("(")[0].split(" ")[0], "other") if "<" not in declared else "other"
