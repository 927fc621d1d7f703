"""Tumult Analytics on Spark: a filtered count, and counts by two columns with units by person. Prints JSON."""

import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

warnings.filterwarnings("ignore")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Dio.netty.tryReflectionSetAccessible=true",
    "spark.executor.extraJavaOptions": "-Dio.netty.tryReflectionSetAccessible=true",
}


def median(work: Callable[[], Any], runs: int, warm: int) -> float:
    times = []
    for turn in range(runs + warm):
        start = time.perf_counter()
        work()
        if turn >= warm:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    path, most, runs, warm, raw = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    spark = builder.config("spark.sql.warehouse.dir", f"{path}.warehouse").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    visits = spark.read.parquet(path)
    visits.createOrReplaceTempView("visits")
    budget, asked = PureDPBudget(1000), PureDPBudget(0.1)
    by_row = Session.from_dataframe(budget, "visits", visits.select("age"), protected_change=AddOneRow())
    by_person = Session.from_dataframe(
        budget, "visits", visits.select("person", "carrier", "month"), protected_change=AddRowsWithID("person")
    )
    filtered = QueryBuilder("visits").filter("age >= 18").count()
    carriers = [f"{letter}{letter}" for letter in "ABCDEFGHIJKLMN"]
    keys = KeySet.from_dict({"carrier": carriers, "month": list(range(1, 13))})
    grouped = QueryBuilder("visits").enforce(MaxRowsPerID(most)).groupby(keys).count()
    found = {
        "filtered": median(lambda: by_row.evaluate(filtered, asked).collect(), runs, warm),
        "grouped": median(lambda: by_person.evaluate(grouped, asked).collect(), runs, warm),
        "raw": median(lambda: spark.sql(raw).collect(), runs, warm),
        "spark": spark.version,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
