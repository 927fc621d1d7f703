"""Spark frames that are plain scans, which can be read in another session; and which of their columns can be read.

Spark fails for a time in milliseconds that it cannot hold in microseconds, for times in ORC that are far away, and for
a decimal with more digits than declared. The types in the files decide which columns hold such; they are never read.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from expost.errors import InvalidValue

_NAMES_ONLY = (".logical.SubqueryAlias", ".logical.View")
"""Plans that only name the plan below them."""
_TYPED = (".parquet.ParquetFileFormat", ".orc.OrcFileFormat")
"""The endings of class names of file readers that parse no text and query no other database."""


def rows_of(frame: Any, ours: Any) -> tuple[Any, frozenset[str]]:
    """The rows of a plain scan as a frame of another session, and the columns that may fail to be read.

    The frame is read under the other session's settings. Raises for a frame that computes anything, because that may
    fail for some values.
    """
    from pyspark.sql.classic.dataframe import DataFrame

    plan, failing = _leaf(frame._jdf.queryExecution().analyzed()), frozenset[str]()
    name = plan.getClass().getName()
    if name.endswith(".datasources.LogicalRelation"):
        plan = _of_ours(plan, ours)
        failing = _failing(plan.relation(), dict(frame.dtypes), ours)
    elif name.endswith(".execution.LogicalRDD"):
        if not plan.rdd().isCheckpointed():
            raise _refused(name)
    elif not name.endswith(".logical.LocalRelation"):
        raise _refused(name)
    return DataFrame(ours._jvm.org.apache.spark.sql.classic.Dataset.ofRows(ours._jsparkSession, plan), ours), failing


_AT_ONCE = 16
"""How many files are opened at the same time, to look at their types."""


def _failing(relation: Any, types: dict[str, str], ours: Any) -> frozenset[str]:
    """The columns of times and decimals that are stored in a way in which Spark fails for some values."""
    doubtful = {name for name, kind in types.items() if kind.startswith(("timestamp", "decimal"))}
    if relation.fileFormat().getClass().getName().endswith(".OrcFileFormat"):
        return frozenset(doubtful)
    if not doubtful:
        return frozenset()
    settings = ours._jsparkSession.sessionState().newHadoopConf()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda file: _stored(file, doubtful, settings, ours._jvm), relation.location().inputFiles())
        stored = [pair for of_file in found for pair in of_file]
    return frozenset(name for name, how in stored if not _total(types[name], *how))


def _stored(file: str, names: set[str], settings: Any, jvm: Any) -> list[tuple[str, tuple[str, str]]]:
    """How a Parquet file stores the columns: their physical types, and what is said about them."""
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
    opened = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, settings)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(opened)
    try:
        schema = reader.getFooter().getFileMetaData().getSchema()
    finally:
        reader.close()
    wanted, found = {name.lower(): name for name in names}, list[tuple[str, tuple[str, str]]]()
    for place in range(schema.getFieldCount()):
        each = schema.getType(place)
        name = wanted.get(each.getName().lower())
        if name is not None:
            annotated = each.getLogicalTypeAnnotation()
            physical = each.asPrimitiveType().getPrimitiveTypeName().toString()
            found.append((name, (physical, "" if annotated is None else annotated.toString())))
    return found


def _total(kind: str, physical: str, annotated: str) -> bool:
    """Whether Spark reads every value that can be stored so. All types are listed in ``tests/odd_parquet.py``."""
    if kind.startswith("timestamp"):
        return physical == "INT96" or annotated.startswith("TIMESTAMP(MICROS")
    digits = int(re.findall(r"\d+", kind)[0])
    return physical in ("INT32", "INT64") or (physical == "FIXED_LEN_BYTE_ARRAY" and digits <= _DIGITS_OF_LONG)


_DIGITS_OF_LONG = 18


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
