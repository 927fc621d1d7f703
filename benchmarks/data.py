"""Private tables: a count and a histogram of 20 million rows of Parquet, against the same question in plain DuckDB.

Ours is everything from the question to the receipt: planning, reserving, the query, exact noise, settling. The peer is
the query alone, written by hand, on a connection of its own, as DuckDB sets it up; for units by person it cuts units
down to their rows as ours does. Ours keeps a file's footer from one question to the next, which DuckDB does if told:
where the footer is all that is read, a second peer is told, and that row has no goal. Each number is the median of
runs taken in turn, now one and now the other first, after one that warms up.

A frame of pandas is compared with the same rows as a Parquet file, both ours: the frame was copied when it was read,
which has a row of its own, against pandas reading the file, and no goal.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd

import expost as xp
from report import Row, at_most, report

SIZE = 20_000_000
PEOPLE = 2_000_000
MOST = 10
RUNS, RUNS_WITH_UNITS = 15, 5
GOAL, FRAME_GOAL = 1.2, 1.3
FRAME = 10_000_000
SMALL, RUNS_SMALL, SMALL_GOAL = 1_000, 201, 2
CARRIERS = [f"{letter}{letter}" for letter in "ABCDEFGHIJKLMN"]
FOOTER = 0.010
"""Seconds: where next to nothing is read, planning, ledger and noise are all there is."""


def write(path: Path, size: int, people: int, row_group: int = 122_880) -> None:
    """Write rows of people to Parquet. Each person has ten on average; some of those who have more do not count."""
    duckdb.sql(
        f"""COPY (
            SELECT CAST(random() * {people} AS BIGINT) AS person, CAST(random() * 90 AS INTEGER) AS age,
                   random() * 1000 AS amount, list_value({", ".join(map(repr, CARRIERS))})[
                       1 + CAST(floor(random() * {len(CARRIERS)}) AS INTEGER)] AS carrier,
                   1 + CAST(floor(random() * 12) AS INTEGER) AS month
            FROM range({size})
        ) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {row_group})"""
    )


def medians(ours: Callable[[], object], peer: Callable[[], object], runs: int, warm: int = 1) -> tuple[float, float]:
    """The median seconds of each, run in turn, after some runs that warm up."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(runs + warm):
        for work, kept in list(zip((ours, peer), times, strict=True))[:: 1 if turn % 2 else -1]:
            start = time.perf_counter()
            work()
            if turn >= warm:
                kept.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def compare(name: str, ask: Callable[[], xp.Mechanism], raw: str, peer: duckdb.DuckDBPyConnection, runs: int) -> Row:
    ledger = xp.Ledger(epsilon=1000)
    mine, theirs = medians(lambda: ledger.run(ask()), lambda: peer.execute(raw).fetchall(), runs)
    return at_most(f"{name}, the query alone", mine, theirs, "s", mine / theirs, GOAL)


def within(row: Row) -> Row:
    """The goal is a time, not a ratio."""
    return replace(row, goal=f"≤ {FOOTER * 1000:.0f} ms", holds=row.ours <= FOOTER)


def grouped(people: xp.PrivateTable, raw: str, peer: duckdb.DuckDBPyConnection) -> Row:
    """How many flights of each carrier in each month, and their mean amount, of at most ten rows of each person."""
    groups = people.by("carrier", "month", keys={"carrier": CARRIERS, "month": list(range(1, 13))})
    content = "carrier, month, amount"
    numbered = f"SELECT person, {content}, row_number() OVER (PARTITION BY person, {content}) AS j FROM {raw}"
    order = f"hash(hash('12345678901234567890', person, {content}, j)), {content}, j"
    kept = f"SELECT {content}, row_number() OVER (PARTITION BY person ORDER BY {order}) AS p FROM ({numbered})"
    return compare(
        f"counts and means of {SIZE:,} rows by carrier and month, at most {MOST} rows per person",
        lambda: groups.agg(n=groups.count(), mean=groups.mean("amount", bounds=(0, 1000))).mechanism(epsilon=0.1),
        f"SELECT carrier, month, count(*), avg(amount) FROM ({kept}) WHERE p <= {MOST} GROUP BY carrier, month",
        peer,
        RUNS_WITH_UNITS,
    )


def frames(raw: str, folder: Path) -> list[Row]:
    """A filtered count of a frame, against the same rows as a file; of numbers, and of texts."""
    path = folder / "frame.parquet"
    duckdb.sql(f"COPY (SELECT * FROM {raw} LIMIT {FRAME}) TO '{path}' (FORMAT parquet)")
    frame, ledger = pd.read_parquet(path), xp.Ledger(epsilon=1000)
    held, file = (xp.read(each, unit="row", neighbours="add-remove") for each in (frame, path))
    rows = []
    for condition in ("age >= 18", "carrier = 'CC' AND month > 6"):

        def ask(table: xp.PrivateTable, condition: str = condition) -> object:
            return ledger.run(table.where(condition).count().mechanism(epsilon=0.1))

        mine, theirs = medians(lambda: ask(held), lambda: ask(file), RUNS)
        name = f"count of {FRAME:,} rows where {condition}: a pandas frame, the same Parquet file"
        rows.append(at_most(name, mine, theirs, "s", mine / theirs, FRAME_GOAL))
    mine, theirs = medians(
        lambda: xp.read(frame, unit="row", neighbours="add-remove"), lambda: pd.read_parquet(path), RUNS_WITH_UNITS
    )
    name = f"reading a pandas frame of {FRAME:,} rows, once; pandas reads its file"
    return [*rows, Row(name, mine, theirs, "s", mine / theirs, "no goal: it is done once", True)]


def small(raw: str) -> Row:
    """The mean of few rows of a frame, where planning, ledger and noise weigh most: against its sums by hand."""
    peer, ledger = duckdb.connect(), xp.Ledger(epsilon=1000)
    frame = peer.sql(f"SELECT * FROM {raw} LIMIT {SMALL}").df()
    peer.execute("CREATE TABLE few AS SELECT * FROM frame")
    rows = xp.read(frame, unit="row", neighbours="add-remove")
    steps = "CAST(round(least(greatest(amount, 0), 1000) * 1048576) AS BIGINT)"
    query = f"SELECT sum({steps}), count(amount) FROM few WHERE amount IS NOT NULL AND NOT isnan(amount)"
    question = rows.mean("amount", bounds=(0, 1000))
    mine, theirs = medians(
        lambda: ledger.run(question, epsilon=0.1, again=True), lambda: peer.execute(query).fetchall(), RUNS_SMALL
    )
    name = f"mean of {SMALL:,} rows of a pandas frame, its sums in plain DuckDB"
    return at_most(name, mine * 1000, theirs * 1000, "ms", mine / theirs, SMALL_GOAL)


def main() -> None:
    """Write the file, ask, and report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        write(path, SIZE, PEOPLE)
        peer, keeping = duckdb.connect(), duckdb.connect()
        keeping.execute("SET parquet_metadata_cache = true")
        rows = xp.read(path, unit="row", neighbours="add-remove")
        people = xp.read(path, unit=xp.Unit("person", rows=MOST), neighbours="add-remove")
        raw = f"read_parquet('{path}')"
        cell = "CASE WHEN amount >= 0 AND amount < 1000 THEN CAST(floor(amount / 10) AS INTEGER) END AS c"
        numbered = (
            f"SELECT u, c, row_number() OVER (PARTITION BY u, c) AS j FROM (SELECT person AS u, {cell} FROM {raw})"
        )
        order = "hash(hash('12345678901234567890', u, c, j)), c, j"
        kept = f"SELECT c, row_number() OVER (PARTITION BY u ORDER BY {order}) AS p FROM ({numbered})"
        each = f"SELECT count(*) AS n FROM {raw} GROUP BY person"
        with_units = f"at most {MOST} rows per person"
        report(
            "data",
            [
                compare(
                    f"count of {SIZE:,} rows where age >= 18",
                    lambda: rows.where("age >= 18").count().mechanism(epsilon=0.1),
                    f"SELECT count(*) FROM {raw} WHERE age >= 18",
                    peer,
                    RUNS,
                ),
                compare(
                    f"histogram of {SIZE:,} rows in 100 bins",
                    lambda: rows.histogram("amount", bins=100, bounds=(0, 1000)).mechanism(epsilon=0.1),
                    f"SELECT c, count(*) FROM (SELECT {cell} FROM {raw}) GROUP BY c",
                    peer,
                    RUNS,
                ),
                compare(
                    f"count of {SIZE:,} rows, {with_units}",
                    lambda: people.count().mechanism(epsilon=0.1),
                    f"SELECT sum(least(n, {MOST})) FROM ({each})",
                    peer,
                    RUNS_WITH_UNITS,
                ),
                compare(
                    f"histogram of {SIZE:,} rows in 100 bins, {with_units}",
                    lambda: people.histogram("amount", bins=100, bounds=(0, 1000)).mechanism(epsilon=0.1),
                    f"SELECT c, count(*) FROM ({kept}) WHERE p <= {MOST} GROUP BY c",
                    peer,
                    RUNS_WITH_UNITS,
                ),
                grouped(people, raw, peer),
                *frames(raw, Path(folder)),
                small(raw),
                within(
                    compare(
                        f"count of all {SIZE:,} rows, which is in the file's footer",
                        lambda: rows.count().mechanism(epsilon=0.1),
                        f"SELECT count(*) FROM {raw}",
                        peer,
                        RUNS,
                    )
                ),
                replace(
                    compare(
                        f"count of all {SIZE:,} rows, where both keep the footer",
                        lambda: rows.count().mechanism(epsilon=0.1),
                        f"SELECT count(*) FROM {raw}",
                        keeping,
                        RUNS,
                    ),
                    goal="no goal: next to nothing is read, and the rest is planning, ledger and noise",
                    holds=True,
                ),
            ],
        )


if __name__ == "__main__":
    main()
