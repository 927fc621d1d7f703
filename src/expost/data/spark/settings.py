"""A session of ours beside that of the caller: its settings hold for our queries, and theirs stay as they are."""

from __future__ import annotations

from typing import Any

_MOVERS = ("PushDownPredicates", "PushPredicateThroughNonJoin")
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
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.sql.hive.metastorePartitionPruning": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in _MOVERS
    ),
}
"""What decides results as our queries need it.

Nothing leaves out rows by statistics, which forget NaN. Filters stay where they are written: moved below what they are
about, they would contain it once for each time that it is named, and groups by many columns would not be compiled.
"""
_KEPT = (
    "spark.sql.adaptive.", "spark.sql.artifact.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout",
    "spark.sql.catalog", "spark.sql.debug.", "spark.sql.files.", "spark.sql.hive.", "spark.sql.maxPlanStringLength",
    "spark.sql.redaction.", "spark.sql.shuffle.", "spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.ui.",
    "spark.sql.warehouse.",
)  # fmt: skip
"""Settings of the application that say where data is, how work is shared out, and what is shown of it."""


def session_beside(theirs: Any) -> Any:
    """A new session of the same application.

    It begins with the application's settings. Those that could decide a result are put back to Spark's defaults.
    """
    ours = theirs.newSession()
    for setting in ours.conf.getAll:
        if setting.startswith("spark.sql.") and not setting.startswith(_KEPT) and ours.conf.isModifiable(setting):
            ours.conf.unset(setting)
    for setting, value in SPARK_SETTINGS.items():
        ours.conf.set(setting, value)
    return ours
