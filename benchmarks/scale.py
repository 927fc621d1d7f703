"""A durable ledger of 10⁶ entries and 1,000 accounts against one of 10⁴: what is asked costs the same.

The large ledger is built by the library in large transactions that are not synced. Memory is the most that a process of
its own held, SQLite's included. ``EXPOST_ENTRIES`` sets another size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any, cast

import expost as xp
from expost.ledger import Settings
from expost.ledger.trail import Head
from report import ROOT, Row, at_most, report

FEW, MANY, ACCOUNTS = 10_000, int(os.environ.get("EXPOST_ENTRIES", "1000000")), 1_000
GUARANTEE = xp.Guarantee({"answered": "0.000002", "nothing": "0.000001"})
REPEATS = 30
MEMORY = {"verify": "ledger.verify()", "a statement": "sum(1 for _ in ledger.statement_lines())"}


def grown(folder: str, entries: int) -> str:
    """A ledger with that many settled entries, written in large transactions without syncing."""
    url = f"sqlite:///{folder}/{entries}.db"
    fast = Settings(synchronous="OFF", heads=False)
    ledger = xp.Ledger.create(url, "study", epsilon=10_000, neighbours="add-remove", unit="person", settings=fast)
    accounts = [ledger.create_account(f"a{k}", epsilon=10_000) for k in range(ACCOUNTS)]
    store: Any = ledger._store
    from expost.ledger.operations import Reserve, Settle

    requests = [account._request("reserve", GUARANTEE, GUARANTEE, None, None) for account in accounts]
    for start in range(0, entries, 1_000):
        reserves = [Reserve(requests[n % ACCOUNTS], True) for n in range(start, start + 1_000)]
        made = store._engine.apply(store._ledger, reserves)
        store._engine.apply(store._ledger, [Settle(entry.id, "nothing") for entry in made])
    return url


def took(works: list[Callable[[], object]], repeats: int = REPEATS) -> list[float]:
    """The median time of calls that take turns, in milliseconds."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, column in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            column.append(time.perf_counter() - start)
    return [median(column) * 1e3 for column in times]


_CHILD = """
import json, sys, time
import expost as xp
ledger = xp.Ledger.load(sys.argv[1], "study", read_only=True)
start = time.perf_counter()
{work}
(most,) = (int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([most, time.perf_counter() - start]))
"""


def peak(url: str, work: str) -> float:
    """The most memory that a process held that did this, in MB."""
    command = [sys.executable, "-c", _CHILD.replace("{work}", work), url]
    most, seconds = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"  {work}: {most:.0f} MB, {seconds:.1f} s")
    return float(most)


def quick(url: str) -> dict[str, Callable[[], object]]:
    """What must not take longer in a large ledger."""
    whole = xp.Ledger.load(url, "study")
    ledger, store = whole.account("a7"), cast(Any, whole._store)
    open_now: list[Any] = []
    return {
        "reserve": lambda: open_now.append(ledger.reserve(GUARANTEE)),
        "settle": lambda: open_now.pop().settle("nothing"),
        "beat": lambda: (store.beat(), store.recover()),
        "load": lambda: xp.Ledger.load(url, "study"),
        "last 20 entries": lambda: list(whole.entries(last=20)),
        "last 20 entries of an account": lambda: list(ledger.entries(last=20)),
    }


def since_a_head(url: str) -> float:
    """How long it takes to verify 1,000 new lines, in milliseconds."""
    ledger = xp.Ledger.load(url, "study")
    ((sequence, last),) = cast(Any, ledger._store)._engine.rows("SELECT sequence, head FROM expost_books")
    for _ in range(500):
        ledger.account("a7").reserve(GUARANTEE).settle("nothing")
    return took([lambda: ledger.verify(Head(sequence, last), since=True)], 3)[0]


def main() -> None:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        urls = [grown(folder, entries) for entries in (FEW, MANY)]
        few, many = (quick(url) for url in urls)
        for name in few:
            small, large = took([few[name], many[name]])
            said = f"{name}: {MANY} entries (ours), {FEW} (peer)"
            rows.append(at_most(said, large, small, "ms", large / small, 3.0 if "last" in name else 1.5))
        for name, work in MEMORY.items():
            small, large = (peak(url, work) for url in urls)
            said = f"memory of {name}: {MANY} entries (ours), {FEW} (peer)"
            rows.append(at_most(said, large, small, "MB", large / small, 1.5))
        new = since_a_head(urls[1])
    rows.append(at_most(f"verify of 1,000 new lines of {MANY} entries, 2 s", new, 2000, "ms", new / 2000, 1))
    report("scale", rows)


if __name__ == "__main__":
    main()
