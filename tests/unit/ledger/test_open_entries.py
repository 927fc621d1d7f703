"""Open entries in SQLite: the first ones in the ledger's own row, all others in an index."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import apsw
import pytest

import expost as xp
from books import ALONE, GUARANTEE, execute, make
from expost.ledger.sqlite.books import OPEN_IN_ROW


def rows(url: str, sql: str) -> list[Any]:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_any_number_of_open_entries_is_found(sqlite_url: Callable[[], str]) -> None:
    """Reserved and ended in any order, past the end of the row's list and back."""
    url = sqlite_url()
    ledger, draw = make(url, epsilon=1000), random.Random(7)
    reserved: dict[int, xp.ledger.Reservation] = {}
    crowded = 0
    for chance in (0.9, 0.3, 0.7, 0.1):
        for _ in range(3 * OPEN_IN_ROW):
            if not reserved or draw.random() < chance:
                one = ledger.reserve(GUARANTEE)
                reserved[one.id] = one
            else:
                reserved.pop(draw.choice(sorted(reserved))).settle("small")
            found = [number for (number,) in rows(url, "SELECT number FROM expost_open")]
            assert sorted(found) == sorted(reserved)
            crowded = max(crowded, len(reserved))
        ledger.verify()
        assert {one.entry.id for one in ledger._store.open_entries()} == set(reserved)  # type: ignore[attr-defined]
    assert crowded > 2 * OPEN_IN_ROW  # both kinds were there
    assert rows(url, "SELECT max(json_array_length(open)) <= 32 FROM expost_account") == [(1,)]


def test_all_open_entries_are_forfeited(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger: Any = make(url, epsilon=1000, settings=ALONE)
    count = OPEN_IN_ROW + 3
    reserved = [ledger.reserve(GUARANTEE) for _ in range(count)]
    execute(url, "UPDATE expost_owner SET expired = 1")
    assert ledger._store.recover() == count
    assert rows(url, "SELECT count(*) FROM expost_open") == [(0,)]
    assert rows(url, "SELECT state, count(*) FROM expost_entry GROUP BY state") == [("forfeited", count)]
    with pytest.raises(xp.errors.ReservationClosed):
        reserved[-1].settle("small")
    ledger.verify()


@pytest.mark.parametrize("listed", ["[]", "[2]", "[1,1]", '[1,"1"]', "nonsense", "{}", "7"])
def test_a_changed_list_is_found(sqlite_url: Callable[[], str], listed: str) -> None:
    """By hand: then nothing can be reserved, and verification says why."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE)
    execute(url, f"UPDATE expost_account SET open = '{listed}'")
    wrong = "listed twice" if listed.count("1") == 2 else "entry 1 is not as the audit trail records it"
    with pytest.raises(xp.errors.LedgerCorrupt, match=wrong):
        ledger.verify()
    with pytest.raises(xp.errors.LedgerCorrupt):
        xp.Ledger.load(url, "study").reserve(GUARANTEE)
