"""A durable ledger of 10⁶ entries and 1,000 accounts against one of 10⁴: what is asked costs the same.

The large ledger is built by copying pages of rows past the library, then verified by it once. ``EXPOST_ENTRIES`` sets
another size.
"""

from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

import expost as xp
from expost.ledger import Settings
from report import ROOT, Row, at_most, report

FEW, MANY, ACCOUNTS = 10_000, int(os.environ.get("EXPOST_ENTRIES", "1000000")), 1_000
CLAIM = xp.Guarantee({"answered": "0.000002", "nothing": "0.000001"})
REPEATS = 30


def grown(folder: str, entries: int) -> str:
    """A ledger with that many settled entries, written in large transactions without syncing."""
    url = f"sqlite:///{folder}/{entries}.db"
    fast = Settings(synchronous="OFF", heads=False)
    ledger = xp.Ledger.create(url, "study", epsilon=10_000, neighbours="add-remove", unit="person", settings=fast)
    accounts = [ledger.create_account(f"a{k}", epsilon=10_000) for k in range(ACCOUNTS)]
    store: Any = ledger._store
    from expost.ledger.rules import Reserve, Settle

    requests = [account._request("reserve", CLAIM, CLAIM, None, None) for account in accounts]
    for start in range(0, entries, 1_000):
        reserves = [Reserve(requests[n % ACCOUNTS], True) for n in range(start, start + 1_000)]
        made = store._engine.apply(store._ledger, reserves)
        store._engine.apply(store._ledger, [Settle(entry.id, "nothing") for entry in made])
    return url


def took(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median time of a call, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times) * 1e3


def peak(work: Callable[[], object]) -> float:
    """The most memory that Python held during a call, in MB."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def measured(url: str) -> dict[str, float]:
    ledger = xp.Ledger.load(url, "study").account("a7")
    store: Any = ledger._store
    whole = xp.Ledger.load(url, "study")
    found = {"reserve and settle": took(lambda: ledger.reserve(CLAIM).settle("nothing"))}
    found["beat"] = took(lambda: (store.beat(), store.recover()))
    found["load"] = took(lambda: xp.Ledger.load(url, "study"))
    found["last 20 entries"] = took(lambda: list(whole.entries(last=20)))
    found["last 20 entries of an account"] = took(lambda: list(ledger.entries(last=20)))
    found["memory of verify"] = peak(whole.verify)
    found["memory of a pass over entries"] = peak(lambda: sum(1 for _ in whole.entries()))
    head = whole.verify()
    for _ in range(500):
        ledger.reserve(CLAIM).settle("nothing")
    found["verify of 1,000 new lines"] = took(lambda: whole.verify(head, since=True), 3)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        few, many = (measured(grown(folder, entries)) for entries in (FEW, MANY))
    limits = {"last 20 entries": 3.0, "last 20 entries of an account": 3.0}
    rows: list[Row] = [
        at_most(
            f"{name}: {MANY} entries (ours), {FEW} (peer)", many[name], few[name], "MB" if "memory" in name else "ms",
            many[name] / few[name], limits.get(name, 1.5),
        )
        for name in few
        if "verify of" not in name
    ]  # fmt: skip
    new = many["verify of 1,000 new lines"]
    rows.append(at_most(f"verify of 1,000 new lines of {MANY} entries, 2 s", new, 2000, "ms", new / 2000, 1))
    report("scale", rows)


if __name__ == "__main__":
    main()
