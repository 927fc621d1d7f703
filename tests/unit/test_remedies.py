"""No remedy in an error leads to a worse answer: no second budget, no number made public that was private."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

import expost as xp
from expost import mechanisms as mech
from expost.accounting import optimal_composition
from expost.errors import AlreadyExists, KeyConflict, LedgerClosed, NeighbourMismatch

pytestmark = pytest.mark.counted
ROOT = Path(__file__).resolve().parents[2]


def visits(neighbours: str = "add-remove", **unit: int) -> xp.PrivateTable:
    database = duckdb.connect()
    database.execute("CREATE TABLE visits AS SELECT i % 5 AS person, i % 80 AS age FROM range(100) t(i)")
    who = xp.Unit("person", **unit) if unit else "row"
    return xp.read(database, table="visits", unit=who, neighbours=neighbours)  # type: ignore[arg-type]


def used_key() -> None:
    ledger = xp.Ledger(epsilon=1)
    ledger.run(mech.Coin(epsilon=0.25, sensitivity=1), on=1, key="k")
    ledger.run(mech.Coin(epsilon=0.5, sensitivity=1), on=1, key="k")


def closed() -> None:
    ledger = xp.Ledger(epsilon=1)
    ledger.close(by="me", reason="done")
    ledger.reserve(xp.Guarantee.uniform(0.5))


def other_neighbours() -> None:
    ledger = xp.Ledger(epsilon=1, neighbours="substitute")
    ledger.run(visits().count().mechanism(epsilon=0.5))


PUBLIC = "only if anybody may know"
CASES: dict[str, tuple[Callable[[], object], str]] = {
    "another ledger adds to the budget": (
        lambda: (_ for _ in ()).throw(AlreadyExists("ledger", "x")), "adds to this one's for the same people",
    ),
    "a closed ledger": (closed, "a new ledger is for other people"),
    "a used key": (used_key, "repeat that request as it was to get its answer again, or take a new .* charged anew"),
    "another relation": (other_neighbours, PUBLIC),
    "sensitivities of another relation": (
        lambda: (_ for _ in ()).throw(NeighbourMismatch("substitute", "add-remove", "'x'")), "sensitivity for .* anew",
    ),
    "a missing file": (lambda: xp.Ledger.load("sqlite:///none/none.db", "x"), "check the path, or begin a new budget"),
    "a missing account": (lambda: xp.Ledger(epsilon=1).account("bob"), "check its name, or create it"),
    "a filter": (lambda: visits("substitute").where("age > 3").column("age"), "use the filtered table's own median"),
    "a private number of rows": (lambda: visits().column("age"), PUBLIC),
    "a private size": (lambda: visits().size, PUBLIC),
    "several rows of a person": (lambda: visits("substitute", rows=3).column("age"), "use the table's own median"),
    "masked values": (
        lambda: xp.Ledger(epsilon=1).run(
            mech.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="substitute"), on=np.ma.masked_equal([1, 2], 2)
        ),
        "make what is masked NaN, which follows missing=",
    ),
    "monotone values": (
        lambda: xp.SparseVector(
            threshold=1, at_most=1, epsilon=1, sensitivity=1, monotone=True, neighbours="substitute"
        ),
        "leave monotone out",
    ),
    "too little delta": (lambda: optimal_composition([(0.1, 0.1), (0.2, 0.1)]).epsilon(0.1), "less δ per step"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_it_advises(case: str) -> None:
    act, advice = CASES[case]
    with pytest.raises((xp.ExpostError, KeyConflict, LedgerClosed)) as caught:
        act()
    assert re.search(advice, str(caught.value)), str(caught.value)


HARM = re.compile(r"take another name|new ledger for|raise (the|its) limit|restore (a|an old|the) backup")
"""A second budget, a larger one, or one that forgot."""


def test_no_text_advises_harm() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if HARM.search(line) and "column" not in line
    ]
    assert found == []
    assert HARM.search('"load it, or take another name"')
