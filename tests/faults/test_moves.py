"""`expost ledger move`, killed before and after each of its commits: there is never more than one budget."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from doom import Doom
from expost import Cost, Ledger
from expost.ledger.durable import DurableStore
from expost.ledger.entry import Note
from expost.ledger.postgres.engine import PostgresEngine
from expost.ledger.sqlite.engine import SqliteEngine
from expost.ledger.transfer import move_ledger
from faulty import GUARANTEE, NAME, child, make
from toys import Fixed

NOTE = Note("me", "a new machine")


def doomed(moment: int, *move: Any) -> None:
    doom = Doom(moment)
    for engine in (SqliteEngine, PostgresEngine):
        doom.in_the_end_of(engine, "transaction")
    doom.on(SqliteEngine, "_transact")
    doom.on(PostgresEngine, "_write")
    doom.on(DurableStore, "verify")
    move_ledger(*move)


def is_open(url: str) -> bool:
    """Whether anything can be spent there now."""
    try:
        return not Ledger.load(url, NAME, read_only=True).closed
    except xp.errors.ExpostError:
        return False


def remaining(url: str) -> Cost:
    ledger = Ledger.load(url, NAME)
    ledger.verify()
    return ledger.remaining


@pytest.mark.parametrize("way", ["sqlite sqlite", "sqlite postgres", "postgres sqlite", "postgres postgres"])
def test_killed_at_every_commit(way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Found: the copy was open while it was verified, and the original, too; both spent to the end."""
    new: dict[str, Callable[[], str]] = {
        name: request.getfixturevalue(f"{name}_url") for name in ("sqlite", "postgres") if name in way
    }
    moment, both, done, neither = 0, 0, False, 0
    while not done:
        moment += 1
        here, there = (new[name]() for name in way.split())
        ledger = make(here)
        ledger.run(Fixed(GUARANTEE, 7, part="small"), key="seven")
        left, lines = ledger.remaining, ledger.verify().sequence
        ledger._store._engine.close()  # type: ignore[attr-defined]
        pid = child(lambda moment=moment, here=here, there=there: doomed(moment, here, NAME, there, NOTE))  # type: ignore[misc]
        _, status = os.waitpid(pid, 0)
        done = os.waitstatus_to_exitcode(status) == 0
        open_now = is_open(here) + is_open(there)
        both, neither = both + (open_now > 1), neither + (not open_now)
        assert done or os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        head = move_ledger(here, NAME, there, NOTE)  # once more
        assert is_open(there)
        assert not is_open(here)
        assert remaining(there) == left
        assert Ledger.load(there, NAME).output("seven") == 7
        assert head.sequence == lines + 2
        remaining(here)
    assert not both
    assert neither
    assert moment > 6
