"""Heads are noted and adopted in steps: whichever was the last before a kill, nothing is lost or in the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from doom import Doom
from expost import Ledger
from expost.ledger.heads import Heads
from expost.ledger.sqlite.engine import SqliteEngine
from faulty import GUARANTEE, NAME, child, make

OWNER = {"by": "me", "reason": "because"}


def killed(work: Callable[[], object], moment: int) -> bool:
    """Do it in a process that is killed at that moment; whether it was."""

    def doomed() -> None:
        doom = Doom(moment)
        for name in ("prepare", "note", "renew", "_write"):
            doom.on(Heads, name)
        doom.on(SqliteEngine, "_transact")
        work()

    code = os.waitstatus_to_exitcode(os.waitpid(child(doomed), 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def moments(new: Callable[[], str], set_up: Callable[[str], object], work: Callable[[str], object]) -> list[str]:
    """The addresses of ledgers, each killed at another moment of the work."""
    urls: list[str] = []
    while True:
        urls.append(new())
        set_up(urls[-1])
        if not killed(lambda: work(urls[-1]), len(urls)):
            break
    assert len(urls) > 4
    return urls


def test_killed_while_a_ledger_is_made(sqlite_url: Callable[[], str]) -> None:
    """It is there as a whole or not at all, and its heads are not missed."""
    for url in moments(sqlite_url, lambda url: None, make):
        try:
            ledger = Ledger.load(url, NAME)
        except xp.errors.ExpostError:
            ledger = make(url)
        ledger.reserve(GUARANTEE).settle("small")
        assert ledger.verify() == Heads(url.removeprefix("sqlite:///")).noted(NAME)


def test_killed_while_spending(sqlite_url: Callable[[], str]) -> None:
    def spend(url: str) -> None:
        ledger = Ledger.load(url, NAME)
        for _ in range(2):
            ledger.reserve(GUARANTEE).settle("small")

    for url in moments(sqlite_url, make, spend):
        ledger = Ledger.load(url, NAME)
        ledger.reserve(GUARANTEE).settle("small")
        assert ledger.verify() == Heads(url.removeprefix("sqlite:///")).noted(NAME)


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_killed_while_heads_are_adopted(sqlite_url: Callable[[], str], harm: str) -> None:
    """Nothing is spent before they are adopted, and the same command finishes it."""

    def lose(url: str) -> None:
        ledger = make(url)
        ledger.reserve(GUARANTEE).settle("small")
        ledger._store._engine.close()  # type: ignore[attr-defined]
        path = Path(f"{url.removeprefix('sqlite:///')}-heads")
        path.unlink() if harm == "missing" else path.write_bytes(b"?" * 300)

    refused = 0
    for url in moments(sqlite_url, lose, lambda url: Ledger.load(url, NAME).adopt_heads(**OWNER)):
        ledger = Ledger.load(url, NAME)
        try:
            ledger.reserve(GUARANTEE).settle("small")
        except xp.errors.LedgerCorrupt:
            refused += 1
            ledger.adopt_heads(**OWNER)
            ledger.reserve(GUARANTEE).settle("small")
        assert ledger.verify() == Heads(url.removeprefix("sqlite:///")).noted(NAME)
        assert 1 <= [event.kind for event in ledger.audit_trail()].count("remark") <= 2
    assert refused > 2


def test_two_processes_note_heads_in_turn(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    make(url)._store._engine.close()  # type: ignore[attr-defined]

    def spend() -> None:
        ledger = Ledger.load(url, NAME)
        for _ in range(40):
            ledger.reserve(GUARANTEE).settle("small")

    pids = [child(spend) for _ in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 3
    ledger = Ledger.load(url, NAME)
    assert ledger.verify().sequence == 1 + 2 * 120
    noted = Heads(url.removeprefix("sqlite:///")).noted(NAME)
    assert noted is not None
    assert ledger.verify(noted)
    ledger.reserve(GUARANTEE).settle("small")
    assert Heads(url.removeprefix("sqlite:///")).noted(NAME) == ledger.head
