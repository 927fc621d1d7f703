"""Copies of ledgers: only what verifies is copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, disarm, execute, make
from expost import Ledger
from expost.accounting.capacities import RenyiAccounting
from expost.ledger import transfer
from expost.ledger.durable import DurableStore
from expost.ledger.entry import Note
from expost.ledger.metered import capacity_of
from toys import Fixed

NOTE = Note("me", "because")


def spent(url: str) -> Ledger:
    ledger = make(url)
    ledger.run(Fixed(GUARANTEE, 7, part="small"), key="seven")
    return ledger


def test_a_copy_does_not_replace_a_ledger(new_url: Callable[[], str]) -> None:
    here, there = new_url(), new_url()
    spent(here)
    other = make(there)
    with pytest.raises(xp.errors.AlreadyExists):
        transfer.copy_ledger(here, "study", there, NOTE)
    assert other.verify().sequence == 1
    with pytest.raises(xp.errors.UnknownEntry, match="no ledger 'none' in the source"):
        transfer.copy_ledger(here, "none", there, NOTE)


def test_an_output_that_was_changed_is_not_copied(new_url: Callable[[], str]) -> None:
    here, there = new_url(), new_url()
    spent(here)
    disarm(here, "expost_entry")
    execute(here, "UPDATE expost_entry SET output = '8'")
    with pytest.raises(xp.errors.LedgerCorrupt, match="the stored output of entry 1 is not the one that was published"):
        transfer.copy_ledger(here, "study", there, NOTE)
    assert xp.ledgers(there) == ()


def test_what_is_open_is_forfeited_in_the_copy(new_url: Callable[[], str]) -> None:
    """Whoever reserved it knows the ledger it was copied from, and no other."""
    here, there = new_url(), new_url()
    ledger = spent(here)
    ledger.reserve(GUARANTEE, begin=False).begin()
    head = transfer.copy_ledger(here, "study", there, NOTE)
    copy = Ledger.load(there, "study")
    assert head == ledger.verify()
    assert [entry.state for entry in copy.entries()] == ["settled", "forfeited"]
    assert [entry.state for entry in ledger.entries()] == ["settled", "reserved"]
    assert copy.output("seven") == 7
    copy.verify(head)


@pytest.mark.parametrize("text", ["", "{}\n", "nothing\n", '{"line":{"event":"create"},"hash":"0"}\n', "\xff\n"])
def test_what_is_not_an_export_is_not_imported(text: str, new_url: Callable[[], str], tmp_path: Path) -> None:
    (tmp_path / "export").write_text(text)
    url = new_url()
    with pytest.raises((xp.InvalidValue, xp.errors.LedgerCorrupt)):
        transfer.import_export(str(tmp_path / "export"), url, NOTE)
    assert xp.ledgers(url) == ()


@pytest.mark.parametrize("change", [("small", "large"), ('"at":', '"at":1'), ('"sequence":3', '"sequence":4')])
def test_an_export_that_was_changed_is_not_imported(
    change: tuple[str, str], sqlite_url: Callable[[], str], tmp_path: Path
) -> None:
    file, url = tmp_path / "export", sqlite_url()
    spent(sqlite_url()).export(file)
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(xp.errors.LedgerCorrupt):
        transfer.import_export(str(file), url, NOTE)


def test_a_ledger_that_is_spent_from_as_it_is_closed_does_not_move(
    sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the last look and the closing: then nobody can spend from either."""
    here, there = sqlite_url(), sqlite_url()
    ledger, look = spent(here), DurableStore.balances

    def late(store: DurableStore, path: Any) -> Any:
        found = look(store, path)
        if store is not ledger._store and not found[0].closed:
            ledger.reserve(GUARANTEE)
        return found

    monkeypatch.setattr(DurableStore, "balances", late)
    with pytest.raises(xp.errors.Busy, match="the copy lacks lines and was closed: the ledger was closed, too"):
        transfer.move_ledger(here, "study", there, NOTE)
    assert Ledger.load(there, "study").closed


def test_a_database_is_not_an_export(sqlite_url: Callable[[], str]) -> None:
    here, there = sqlite_url(), sqlite_url()
    spent(here)
    with pytest.raises(xp.InvalidValue, match=r"is not an export of a ledger .* make one with `expost ledger export`"):
        transfer.import_export(here.removeprefix("sqlite:///"), there, NOTE)
    assert xp.ledgers(there) == ()


def test_a_recorded_capacity_that_the_limit_does_not_have() -> None:
    limit = xp.Cost(1, "1e-6")
    meters = RenyiAccounting().under(limit)
    now = meters.capacity(limit)
    assert capacity_of(meters, limit, now) == now
    with pytest.raises(xp.InvalidValue, match="is not a capacity of the limit"):
        capacity_of(meters, limit, now._replace(renyi=2 * now.renyi))
