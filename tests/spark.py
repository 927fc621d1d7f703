"""A session of Spark for tests: one for the whole run of a worker, quiet and small."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any

WHY_NOT = "" if shutil.which("java") else "Java is not installed, and Spark needs it"


@cache
def session() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tests")
    for setting, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()
