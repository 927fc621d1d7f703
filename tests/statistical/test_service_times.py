"""Time tells nothing: with answer times that leave a margin, the slot and the moment of delivery do not depend on data.

Two data sets that differ in one person, who has a million rows, or one text of a million characters.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import duckdb
import httpx
import pytest
from scipy.stats import ks_2samp  # type: ignore[import-untyped]

from expost import Ledger
from serving import Running, submit
from soak import SOAK, some

RUNS = min(SOAK, 200) or 1
EVERY = {"rows": 2.0, "text": 1.0} if SOAK else {"rows": 1.0}
"""Seconds between answer times: several times what the slower of two neighbours takes."""
DATA = """
[data.{name}]
path = "{name}.parquet"
ledger = "visits"

[data.{name}.privacy]
unit = "person"
rows = 10
neighbours = "add-remove"
"""
ROWS = "SELECT i % 1000 AS person, i % 50 AS cost, 'abc' AS note FROM range(20000) t(i)"
MORE = {
    "rows": f"{ROWS} UNION ALL SELECT 1000, i % 50, 'abc' FROM range(1000000) t(i)",
    "text": f"{ROWS} UNION ALL SELECT 1000, 1, repeat('x', 1000000)",
}
SUM = {"name": "total", "kind": "sum", "column": "cost", "bounds": [0, 50], "where": "note <> 'xyz'", "epsilon": 0.001}
NEXT = {"name": "n", "kind": "count", "epsilon": 0.001}


def write(folder: Path, name: str, sql: str) -> None:
    duckdb.sql(f"COPY ({sql}) TO '{folder}/{name}.parquet' (FORMAT parquet)")


def slot_and_offset(client: httpx.Client, job: str, every: float) -> tuple[int, float]:
    """How many answer times after acceptance it was delivered, and how long after that time it arrived here."""
    found = client.get(f"/v1/jobs/{job}", params={"wait": 30}).json()
    arrived = time.time()
    accepted, answered = (datetime.fromisoformat(found[name]).timestamp() for name in ("accepted_at", "answered_at"))
    return round(answered / every) - int(accepted // every), arrived - answered


@pytest.mark.parametrize("kind", some(list(MORE), 2))
def test_neighbours_are_answered_in_the_same_slot(tmp_path: Path, kind: str) -> None:
    every = EVERY[kind]
    write(tmp_path, "base", ROWS)
    write(tmp_path, "more", MORE[kind])
    running = Running(
        tmp_path, server=f"answer_every = {every}\nmargin = 0\njobs_at_once = 1\nqueue = 5000",
        more=DATA.format(name="base") + DATA.format(name="more"),
    )  # fmt: skip
    ledger = Ledger.create(running.url, "visits", 10_000, neighbours="add-remove", unit="person (column person)")
    ledger.create_account("alice", 10_000)
    ledger.create_account("bob", 10_000)
    running.add_tokens(("v-alice", "analyst", "visits/alice"), ("v-bob", "analyst", "visits/bob"))
    slots: dict[str, list[int]] = {"base": [], "more": []}
    offsets: dict[tuple[str, str], list[float]] = {(who, data): [] for who in ("alice", "bob") for data in slots}
    running.start()
    try:
        with running.client("v-alice") as alice, running.client("v-bob") as bob:
            for number in range(2 * RUNS):
                data = ("base", "more")[number % 2]
                if time.time() % every > 0.1 * every:  # submit right after an answer time
                    time.sleep(every - time.time() % every + 0.01)
                first = submit(alice, f"a{number}", SUM, data=data).json()["id"]
                second = submit(bob, f"b{number}", NEXT, data="base").json()["id"]  # queued behind the other
                for who, client, job in (("alice", alice, first), ("bob", bob, second)):
                    slot, offset = slot_and_offset(client, job, every)
                    slots[data].append(slot)
                    offsets[who, data].append(offset)
    finally:
        running.stop()
    assert all(slot >= 1 for found in slots.values() for slot in found)  # never before an answer time
    assert all(offset >= 0 for found in offsets.values() for offset in found)
    if SOAK:  # on a machine that does nothing else: a missed slot is outside the guarantee
        assert set(slots["base"]) == set(slots["more"]) == {1}, slots
        for who in ("alice", "bob"):
            found = ks_2samp(offsets[who, "base"], offsets[who, "more"])
            print(kind, who, "p =", found.pvalue, "medians", sorted(offsets[who, "base"])[RUNS // 2])
            assert found.pvalue > 0.01, (kind, who, found)
