"""A separate Spark session for queries: its settings leave those of the caller's session unchanged."""

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
"""The settings that affect results, as queries need them.

No reader skips rows by statistics, which ignore NaN. Filters stay where they are written: pushed below a projection,
they would repeat its expressions wherever these are used, and groups by many columns would not be compiled.
"""
_KEPT = (
    "spark.sql.adaptive.", "spark.sql.artifact.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout",
    "spark.sql.catalog", "spark.sql.debug.", "spark.sql.files.", "spark.sql.hive.", "spark.sql.maxPlanStringLength",
    "spark.sql.redaction.", "spark.sql.shuffle.", "spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.ui.",
    "spark.sql.warehouse.",
)  # fmt: skip
"""Settings of the application about where data is, how work is distributed, and what is shown of it."""


def session_beside(theirs: Any) -> Any:
    """A new session of the same application.

    Of the application's settings, those that could affect a result are reset to Spark's defaults.
    """
    ours = theirs.newSession()
    for setting in ours.conf.getAll:
        if setting.startswith("spark.sql.") and not setting.startswith(_KEPT) and ours.conf.isModifiable(setting):
            ours.conf.unset(setting)
    for setting, value in SPARK_SETTINGS.items():
        ours.conf.set(setting, value)
    return ours
