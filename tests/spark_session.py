"""A session of Spark for tests, one for the whole run of a worker, quiet and small; and hostile rows in it."""

from __future__ import annotations

import atexit
import random
import shutil
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import duckdb
import pyarrow.parquet as pq

import expost as xp
from hostile_tables import COLUMNS, PLAIN, Names, Row, fill, quoted

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -Xmn600m -XX:MetaspaceSize=512m"
"""What runs once is not optimized, and little garbage is collected."""
WHY_NOT = "" if shutil.which("java") else "Java is not installed, and Spark needs it"


@cache
def _events() -> Path:
    """A folder for Spark's event log, of this worker."""
    folder = Path(mkdtemp(prefix="spark-events-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def event_log() -> str:
    """What Spark wrote down so far."""
    return "".join(file.read_text() for file in sorted(_events().rglob("*")) if file.is_file())


@cache
def session() -> Any:
    """Spark's; of one that was stopped, ``session.cache_clear()`` makes a new one, in the same machine of Java."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tests")
    for setting, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": _events().as_uri(),
    }.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()


def write_parquet(some: list[Row], path: Path, names: Names = PLAIN) -> None:
    """Hostile rows as Parquet, which has no whole numbers of 128 bits and no dates without an end."""
    connection = duckdb.connect(config={"threads": 1})
    fill(connection, some)
    finite = [f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" for name in "dtz"]
    finite.append("CASE WHEN isfinite(e) THEN e::TIMESTAMP END AS e")
    whole = f"SELECT * REPLACE (TRY_CAST(h AS BIGINT) AS h, {', '.join(finite)}) FROM t"
    named = ", ".join(f"{name} AS {quoted(names[name])}" for name in COLUMNS)
    connection.execute(f"COPY (SELECT person, {named} FROM ({whole})) TO '{path}' (FORMAT parquet)")


def of_file(path: Path) -> Any:
    return session().read.parquet(str(path))


def of_values(path: Path) -> Any:
    """Rows that are part of the plan: Spark computes with them while it optimizes."""
    return session().createDataFrame(pq.read_table(path), of_file(path).schema)


def of_memory(path: Path) -> Any:
    """Columns in memory, with the least and the largest value of each."""
    return of_file(path).cache()


def of_checkpoint(path: Path) -> Any:
    return of_file(path).localCheckpoint()


FRAMES = [of_file, of_values, of_memory, of_checkpoint]


def in_spark(folder: Path) -> Callable[[random.Random, Any, Names], Callable[[list[Row]], xp.PrivateTable]]:
    """Frames of one kind for a table and its neighbours, as the search for leaks reads them."""
    files = (folder / f"{number}.parquet" for number in count())

    def of(chance: random.Random, unit: Any, names: Names) -> Callable[[list[Row]], xp.PrivateTable]:
        frame = chance.choice(FRAMES)

        def read(some: list[Row]) -> xp.PrivateTable:
            session().catalog.clearCache()
            path = next(files)
            write_parquet(some, path, names)
            return xp.read(frame(path), unit=unit, neighbours="add-remove", key=7)

        return read

    return of
