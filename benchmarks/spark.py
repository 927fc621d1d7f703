"""Private tables in Spark: ours against the raw Spark job in the same application, and against Tumult Analytics.

Ours is everything from the question to the receipt: planning, reserving, the job, exact noise, settling. The raw job is
the query alone, written by hand, in a session with Spark's own settings; for units by person it cuts units down to
their rows as ours does. Each number is the median of runs taken in turn, after two that warm up.

Tumult Analytics has an environment of its own. On Python 3.11 it needs PySpark before 3.6, so it runs on Spark 3.5 and
ours on Spark 4, with the same Java, cores and settings. The raw job takes about as long on either, as the last row
says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import expost as xp
from data import CARRIERS, medians, write
from report import Row, at_least, at_most, peer, report

SIZE, PEOPLE, MOST = 2_000_000, 200_000, 10
RUNS, WARM = 5, 2
GOAL, TUMULT_GOAL = 1.3, 2.0
MONTHS = list(range(1, 13))
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def start() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()


def raw_groups() -> str:
    """At most ten rows of each person, chosen by a hash, counted by carrier and month."""
    numbered = "SELECT *, row_number() OVER (PARTITION BY person, carrier, month ORDER BY NULL) AS j FROM visits"
    order = "xxhash64(xxhash64('12345', person, carrier, month, j), '12345'), carrier, month, j"
    kept = (
        f"SELECT carrier, month, row_number() OVER (PARTITION BY person ORDER BY {order}) AS p "
        f"FROM (SELECT person, carrier, month, j FROM ({numbered}))"
    )
    return f"SELECT carrier, month, count(*) FROM ({kept}) WHERE p <= {MOST} GROUP BY carrier, month"


def main() -> None:
    """Write the file, ask, and report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        write(path, SIZE, PEOPLE, row_group=SIZE // 8)  # four for each core
        spark = start()
        spark.read.parquet(str(path)).createOrReplaceTempView("visits")
        rows = xp.read(spark, table="visits", unit="row", neighbours="add-remove")
        people = xp.read(spark, table="visits", unit=xp.Unit("person", rows=MOST), neighbours="add-remove")
        groups = people.by("carrier", "month", keys={"carrier": CARRIERS, "month": MONTHS})
        ledger = xp.Ledger(epsilon=1000)
        cell = "CASE WHEN amount >= 0 AND amount < 1000 THEN CAST(floor(amount / 10) AS INTEGER) END AS c"
        asked: dict[str, tuple[Callable[[], xp.Mechanism], str]] = {
            f"count of {SIZE:,} rows where age >= 18": (
                lambda: rows.where("age >= 18").count().mechanism(epsilon=0.1),
                "SELECT count(*) FROM visits WHERE age >= 18",
            ),
            f"histogram of {SIZE:,} rows in 100 bins": (
                lambda: rows.histogram("amount", bins=100, bounds=(0, 1000)).mechanism(epsilon=0.1),
                f"SELECT c, count(*) FROM (SELECT {cell} FROM visits) GROUP BY c",
            ),
            f"counts of {SIZE:,} rows by carrier and month, at most {MOST} rows per person": (
                lambda: groups.agg(n=groups.count()).mechanism(epsilon=0.1),
                raw_groups(),
            ),
        }
        found: list[Row] = []
        for name, (ask, raw) in asked.items():
            mine, theirs = medians(
                lambda ask=ask: ledger.run(ask()),  # type: ignore[misc]
                lambda raw=raw: spark.sql(raw).collect(),  # type: ignore[misc]
                RUNS,
                WARM,
            )
            found.append(at_most(f"{name}, the raw Spark job", mine, theirs, "s", mine / theirs, GOAL))
        spark.stop()
        tumult = peer("tumult", "tumult_spark.py", path, MOST, RUNS, WARM, raw_groups())
        for row, name in ((found[0], "filtered"), (found[2], "grouped")):
            what = row.name.replace("the raw Spark job", "Tumult Analytics on Spark 3.5")
            found.append(at_least(what, row.ours, tumult[name], "s", tumult[name] / row.ours, TUMULT_GOAL))
        again = f"the raw Spark job by carrier and month, Spark 4, and Spark {tumult['spark']}"
        ratio = found[2].peer / tumult["raw"]
        report("spark", [*found, Row(again, found[2].peer, tumult["raw"], "s", ratio, "no goal: both are Spark", True)])


if __name__ == "__main__":
    main()
