"""Copies of ledgers, and ledgers that move between databases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.ledger.durable import DurableStore
from ledger_commands import failing, furnished, run, told


def test_copies(clinic: str, tmp_path: Path) -> None:
    ledger, note = xp.Ledger.load(clinic, "patients"), ("--by", "me", "--reason", "disk died")
    head = ledger.verify()
    (copied,) = told("backup", clinic, str(tmp_path / "monday.db"))
    assert (copied["line"], copied["hash"]) == tuple(head)
    failing(2, "backup", clinic, str(tmp_path / "monday.db"))
    new = f"sqlite:///{tmp_path}/restored.db"
    run("restore", str(tmp_path / "monday.db"), new, "patients", "--known", str(head), *note)
    assert xp.Ledger.load(new, "patients").spent == ledger.spent
    late = f"{head.sequence + 1}:{head.hash}"
    failing(4, "restore", str(tmp_path / "monday.db"), f"{new}2", "patients", "--known", late, *note)
    run("export", clinic, "patients", str(tmp_path / "trail.jsonl"))
    (made,) = told("import", f"{new}3", "patients", str(tmp_path / "trail.jsonl"), *note)
    assert made["line"] == head.sequence + 1  # and a line that says that outputs were not imported
    (tmp_path / "cut.jsonl").write_text((tmp_path / "trail.jsonl").read_text().rpartition('{"end"')[0])
    cut = failing(2, "import", f"{new}6", "patients", str(tmp_path / "cut.jsonl"), *note)
    assert "export again" in cut.stderr.replace("\n", " ")
    run("import", f"{new}6", "patients", str(tmp_path / "cut.jsonl"), "--known", str(head), *note)
    (made,) = told("import", f"{new}7", "patients", str(tmp_path / "cut.jsonl"), "--incomplete", *note)
    assert made["line"] == head.sequence + 2
    (moved,) = told("move", clinic, "patients", f"{new}4", *note)
    assert moved["line"] == head.sequence + 2  # the line that closed it here, and the one that opened it there
    assert ledger.closed
    assert not xp.Ledger.load(f"{new}4", "patients").closed
    failing(2, "import", f"{new}5", "patients", str(tmp_path / "none"), *note)
    wrong = failing(2, "import", f"{new}5", "other", str(tmp_path / "trail.jsonl"), *note)
    assert "export of ledger 'patients', which keeps its name, got 'other'" in wrong.stderr.replace("\n", " ")


@pytest.mark.parametrize("way", ["to the server", "from the server"])
def test_ledgers_move_between_databases(
    way: str, sqlite_url: Callable[[], str], postgres_url: Callable[[], str], tmp_path: Path
) -> None:
    """With accounts, outputs, what is open and the trail, byte by byte; and back up to a file."""
    here, there = (sqlite_url(), postgres_url()) if way == "to the server" else (postgres_url(), sqlite_url())
    ledger, note = xp.Ledger.load(furnished(here), "patients"), ("--by", "me", "--reason", "a new server")
    ledger.account("alice").reserve(xp.Guarantee.uniform("0.125"), lease=10**-6)
    ledger.raise_limit(epsilon=4, by="the board \u00e9", reason="\U0001f600")
    ledger.recover()
    trail, statement, answer = (
        [event.line for event in ledger.audit_trail()],
        ledger.statement(),
        ledger.output("count"),
    )
    (copied,) = told("backup", here, str(tmp_path / "monday.db"))
    (moved,) = told("move", here, "patients", there, *note)
    again = xp.Ledger.load(there, "patients")
    assert ledger.closed
    lines = [event.line for event in again.audit_trail()]
    assert (lines[:-2], again.statement()) == (trail, statement)
    assert copied["line"] == len(trail) == moved["line"] - 2
    assert lines[-2] == list(ledger.audit_trail())[-2].line  # then a remark says where it went
    assert again.output("count") == answer
    alice = again.account("alice")
    alice.reserve(xp.Guarantee({"small": 0.25, "large": 0.5})).settle("small")
    alice.create_account("below", epsilon=1).reserve(xp.Guarantee.uniform("0.125")).settle("any")
    again.verify()
    with pytest.raises(xp.errors.LedgerClosed):
        ledger.reserve(xp.Guarantee.uniform("0.125"))


def test_nothing_is_spent_while_a_ledger_moves(
    clinic: str, sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: both could be spent from until the copy was verified. What was open before ends where it was."""
    ledger, there, verify = xp.Ledger.load(clinic, "patients"), sqlite_url(), DurableStore.verify
    before, asked = ledger.reserve(xp.Guarantee.uniform("0.125")), []

    def slow(store: DurableStore, head: Any) -> Any:
        """The last step of copying."""
        with pytest.raises(xp.errors.LedgerClosed):
            ledger.reserve(xp.Guarantee.uniform("0.125"))
        asked.append(before.settle("any"))
        return verify(store, head)

    note = ("--by", "me", "--reason", "a new server")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(DurableStore, "verify", slow)
        told("move", clinic, "patients", there, *note)
    moved = xp.Ledger.load(there, "patients")
    assert asked
    assert ledger.closed
    assert not moved.closed
    assert [entry.state for entry in moved.entries()][-1] == "forfeited"  # nobody there knows how it ended
    moved.verify()
    ledger.verify()
