"""Spark frames that are plain scans, which can be read in another session."""

from __future__ import annotations

from typing import Any

from expost.errors import InvalidValue

_NAMES_ONLY = (".logical.SubqueryAlias", ".logical.View")
"""Plans that only name the plan below them."""
_TYPED = (".parquet.ParquetFileFormat", ".orc.OrcFileFormat")
"""The endings of class names of file readers that parse no text and query no other database."""


def rows_of(frame: Any, ours: Any) -> Any:
    """The rows of a plain scan as a frame of another session, read under that session's settings.

    Raises for a frame that computes anything, because that may fail for some values.
    """
    from pyspark.sql.classic.dataframe import DataFrame

    plan = _leaf(frame._jdf.queryExecution().analyzed())
    name = plan.getClass().getName()
    if name.endswith(".datasources.LogicalRelation"):
        plan = _of_ours(plan, ours)
    elif name.endswith(".execution.LogicalRDD"):
        if not plan.rdd().isCheckpointed():
            raise _refused(name)
    elif not name.endswith(".logical.LocalRelation"):
        raise _refused(name)
    return DataFrame(ours._jvm.org.apache.spark.sql.classic.Dataset.ofRows(ours._jsparkSession, plan), ours)


def _leaf(plan: Any) -> Any:
    while plan.getClass().getName().endswith(_NAMES_ONLY):
        plan = plan.children().apply(0)
    return plan


def _refused(name: str) -> InvalidValue:
    name = name.rpartition(".")[2]
    if name.endswith("Relation"):  # another database or format
        return _unread(name)
    return InvalidValue(
        f"the frame is not a plain table but computes something ({name}), and a value in it could make a query "
        "fail: pass frame.localCheckpoint(), or read the plain table and use its where() and derive()"
    )


def _unread(reader: str) -> InvalidValue:
    return InvalidValue(
        f"the frame is read by {reader}, which may fail for some values or skip rows by their statistics: pass "
        "frame.localCheckpoint(), or read Parquet or ORC files"
    )


def _of_ours(plan: Any, ours: Any) -> Any:
    """A scan of files under our session's settings: a reader takes them from the session of its relation.

    An additional option makes it differ from any cached relation, which was read under other settings.
    """
    relation = plan.relation()
    _refuse_readers(relation)
    files = relation.copy(
        relation.location(),
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options().updated("expost", "true"),
        ours._jsparkSession,
    )
    return plan.copy(files, plan.output(), plan.catalogTable(), plan.isStreaming(), plan.stream())


def _refuse_readers(relation: Any) -> None:
    """Raise unless the files have typed values: with some options, parsing text or old dates fails for some rows."""
    files = relation.getClass().getName().endswith(".HadoopFsRelation")
    reader = (relation.fileFormat() if files else relation).getClass().getName()
    if not files or not reader.endswith(_TYPED):
        raise _unread(reader.rpartition(".")[2])
    for option in ("datetimeRebaseMode", "int96RebaseMode"):
        mode = relation.options().get(option)
        if mode.isDefined() and mode.get().upper() == "EXCEPTION":
            raise InvalidValue(f"with {option}='EXCEPTION' an old date makes a query fail: use 'CORRECTED'")
