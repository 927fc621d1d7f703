"""Durable reserve + settle against the raw limit, on the same file and the same server, in one run.

The raw limit is what the database itself can do: one row updated and committed, again and again, with the same
settings. Ours does two commits per pair, each with balances at every level, an entry and a line of the audit chain; so
the ratio is 2 × pairs/s ÷ raw commits/s. How long a disk takes changes from second to second, so raw and ours take
turns, and what counts is the median of the turns' ratios. A rented disk that is kept busy is slowed down after ten
seconds or so, and then stalls for tens of milliseconds, whoever writes: waiting times come first, and turns are short.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import apsw
import psycopg

import expost as xp
from expost.ledger import Settings
from expost.ledger.sqlite.engine import SqliteEngine
from report import ROOT, Row, at_least, at_most, report

sys.path.insert(0, str(ROOT / "tests"))
from servers import Server

WARM, PERIOD, ROUNDS = 0.5, 3.0, 5
TURN, TURNS = 0.2, 15
GUARANTEE = xp.Guarantee({"answered": "0.000002", "nothing": "0.000001"})


def pair(ledger: xp.Ledger) -> None:
    ledger.reserve(GUARANTEE).settle("nothing")


def rate(work: Callable[[], object], warm: float = WARM, period: float = PERIOD) -> float:
    """Times a second, from one caller."""
    for seconds in (warm, period):
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            work()
            done += 1
    return done / elapsed


def crowd(callers: int, work: Callable[[], object]) -> tuple[float, list[float]]:
    """Times a second from threads of one process, and how long each took."""
    took: list[float] = []
    start = time.perf_counter()

    def call() -> None:
        while time.perf_counter() - start < WARM + PERIOD:
            before = time.perf_counter()
            work()
            after = time.perf_counter()
            if before - start > WARM:
                took.append(after - before)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(took) / PERIOD, took


def sqlite() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        url = f"sqlite:///{folder}/books.db"
        ledger = xp.Ledger.create(url, "study", epsilon=1000, neighbours="add-remove", unit="person")
        both, took = crowd(8, lambda: pair(ledger))
        raw = SqliteEngine(str(Path(folder) / "books.db"), Settings())._connect()
        raw.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, n INTEGER) STRICT")
        raw.execute("INSERT INTO raw VALUES (1, 0)")
        works: list[Callable[[], object]] = [lambda: _raw_sqlite(raw), lambda: pair(ledger)]
        rounds = [[rate(work, TURN / 10, TURN) for work in works] for _ in range(TURNS)]
        raw.close()
        commits, pairs = (median(column) for column in zip(*rounds, strict=True))
        ledger.verify()
    slowest = sorted(took)[int(0.99 * len(took))] * 1e3
    print(f"SQLite: {commits:.0f} raw commits/s, {pairs:.0f} pairs/s; 8 threads {both:.0f} pairs/s")
    one, eight = "SQLite, one writer: 2 × pairs, raw commits", "SQLite, 8 threads: p99 of a pair, 25 ms"
    return [
        at_least(one, 2 * pairs, commits, "1/s", median(2 * ours / raw for raw, ours in rounds), 0.45),
        at_most(eight, slowest, 25, "ms", slowest / 25, 1),
    ]


def _raw_sqlite(connection: apsw.Connection) -> None:
    connection.execute("UPDATE raw SET n = n + 1 WHERE id = 1")


def postgres() -> list[Row]:
    server = Server(on_disk=True)
    url = server.new_database("bench")
    xp.Ledger.create(url, "study", epsilon=1000, neighbours="add-remove", unit="person")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE raw (id INT PRIMARY KEY, n BIGINT) WITH (fillfactor = 10)")
        connection.execute("INSERT INTO raw VALUES (1, 0)")
    rounds = []
    for _ in range(ROUNDS):
        raw, pairs = processes(8, hot_row, url), processes(8, hot_ledger, url)
        ledger = xp.Ledger.load(url, "study")
        batched = crowd(32, lambda ledger=ledger: pair(ledger))[0]  # type: ignore[misc]
        rounds.append((raw, pairs, batched))
    xp.Ledger.load(url, "study").verify()
    server.remove()
    raw, pairs, batched = (median(column) for column in zip(*rounds, strict=True))
    print(f"PostgreSQL: {raw:.0f} hot-row updates/s, {pairs:.0f} pairs/s, batched {batched:.0f} pairs/s")
    hot = "PostgreSQL, 8 connections, one hot ledger: 2 × pairs, hot-row updates"
    many = "PostgreSQL, 32 callers batched: 2 × pairs, hot-row updates"
    return [
        at_least(hot, 2 * pairs, raw, "1/s", median(2 * ours / one for one, ours, _ in rounds), 0.38),
        at_least(many, 2 * batched, raw, "1/s", median(2 * ours / one for one, _, ours in rounds), 1.7),
    ]


def processes(count: int, work: Callable[[str], float], url: str) -> float:
    """The sum of what processes of their own, each with its own connection, manage at once."""
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        pool.map(time.sleep, [0.2] * count)  # all are there
        return sum(pool.map(work, [url] * count, chunksize=1))


def hot_row(url: str) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        return rate(lambda: connection.execute("UPDATE raw SET n = n + 1 WHERE id = 1"))


def hot_ledger(url: str) -> float:
    ledger = xp.Ledger.load(url, "study")
    return rate(lambda: pair(ledger))


def main() -> None:
    report("durable", [*sqlite(), *postgres()])


if __name__ == "__main__":
    main()
