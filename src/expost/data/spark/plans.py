"""Which frames of Spark are plain scans; these are read in a session of ours."""

from __future__ import annotations

from typing import Any

from expost.errors import InvalidValue

_NAMES_ONLY = (".logical.SubqueryAlias", ".logical.View")
"""Plans that give what is below them a name."""
_TYPED = (".parquet.ParquetFileFormat", ".orc.OrcFileFormat")
"""Readers of files, as the names of their classes end, that parse nothing and ask no other database."""


def rows_of(frame: Any, ours: Any) -> Any:
    """A frame with the same rows in another session, if it is a plain scan: the settings of that session hold for it.

    What computes something is refused: it follows rules of its own, and may fail for some values.
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
    if name.endswith("Relation"):  # of other databases and formats
        return _unread(name)
    return InvalidValue(
        f"the frame is not a plain table but computes something ({name}), and a value in it could make an answer "
        "fail: pass frame.localCheckpoint(), or where() and derive() of the table"
    )


def _unread(reader: str) -> InvalidValue:
    return InvalidValue(
        f"the frame is read by {reader}, which may fail for some values or leave out rows by statistics: pass "
        "frame.localCheckpoint(), or read Parquet or ORC files"
    )


def _of_ours(plan: Any, ours: Any) -> Any:
    """A scan of files by our settings: a reader takes them from the session that its relation names.

    One more option makes it another relation than any that is cached: what is cached was read by other settings.
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
    """Only files of typed values, read as they are: parsing fails for some rows if options say so, and so do dates."""
    files = relation.getClass().getName().endswith(".HadoopFsRelation")
    reader = (relation.fileFormat() if files else relation).getClass().getName()
    if not files or not reader.endswith(_TYPED):
        raise _unread(reader.rpartition(".")[2])
    for option in ("datetimeRebaseMode", "int96RebaseMode"):
        mode = relation.options().get(option)
        if mode.isDefined() and mode.get().upper() == "EXCEPTION":
            raise InvalidValue(f"with {option}='EXCEPTION' an old date makes an answer fail: write 'CORRECTED'")
