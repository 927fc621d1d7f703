"""The books do not tell how long anything took."""

from __future__ import annotations

import json
import time

import pytest

from carriers import GUARANTEE
from clocks import Clock
from expost import Ledger


def books(ledger: Ledger) -> str:
    """Everything that the books tell of times."""
    times = [entry.when.isoformat() for entry in ledger.entries()]
    return json.dumps([times, [event.at for event in ledger.audit_trail()]])


HOUR = 3_600_000_000


@pytest.mark.parametrize("ending", ["settle", "forfeit", "void"])
def test_the_books_do_not_tell_how_long_it_took(ledger: Ledger, clock: Clock, ending: str) -> None:
    """Found: ``ended − reserved`` told 1.5 s from 0.25 s, for one chosen person. Also around a full hour."""
    turn = clock.set_on(ledger)
    start = (time.time_ns() // 1000 // HOUR + 1) * HOUR
    for begun, took in ((start + 5, 250_000), (start + 5, 1_500_000), (start + HOUR - 1_000_000, 1_500_000)):
        turn(begun)
        spending = ledger.reserve(GUARANTEE, begin=ending != "void")
        before = books(ledger)
        turn(begun + took)
        spending.settle("small") if ending == "settle" else getattr(spending, ending)()
        after = json.loads(books(ledger))
        assert after[0] == json.loads(before)[0]
        assert after[1][:-1] == json.loads(before)[1]
        assert after[1][-1] == after[1][-2] == start
    ledger.verify()


def test_the_clock_of_the_books_shows_full_hours(ledger: Ledger, clock: Clock) -> None:
    turn = clock.set_on(ledger)
    start = (time.time_ns() // 1000 // HOUR + 1) * HOUR
    for at in (start + 1, start + HOUR - 1, start + HOUR + 1_234_567, start):
        turn(at)
        ledger.reserve(GUARANTEE).settle("small")
    when = [int(entry.reserved_at * 1e6) for entry in ledger.entries()]
    assert when == [start, start, start + HOUR, start + HOUR]  # a clock that went backwards stands still
    assert all(event.at % HOUR == 0 for event in ledger.audit_trail())
    ledger.create_account("new", epsilon=1)
    ledger.close(by="me", reason="done")
    assert all(event.at % HOUR == 0 for event in ledger.audit_trail())
    ledger.verify()
