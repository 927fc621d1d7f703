"""Copies of ledgers: only what verifies is copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import expost as xp
from books import GUARANTEE, disarm, execute, make
from expost import Ledger
from expost.accounting.capacities import RenyiAccounting
from expost.ledger import transfer
from expost.ledger.entry import Note
from expost.ledger.metered import capacity_of
from expost.ledger.trail import Head
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
    with pytest.raises(xp.errors.UnknownEntry, match="no ledger 'none' in the database"):
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


@pytest.mark.parametrize("cut", ["the closing line", "lines", "within a line"])
def test_an_export_without_its_end_is_not_imported(cut: str, new_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: the first lines of an export were imported, and everything added up: charges were forgotten."""
    file, url, last = tmp_path / "export", new_url(), spent(new_url()).export(tmp_path / "export")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join({"the closing line": lines[:-1], "lines": lines[:1]}.get(cut, [*lines[:2], lines[2][:90]])))
    with pytest.raises(xp.InvalidValue, match=r"lacks its end: .*line \d is not the head given"):
        transfer.import_export(str(file), url, NOTE)
    assert xp.ledgers(url) == ()
    if cut == "the closing line":
        transfer.import_export(str(file), url, NOTE, known=last)
    else:
        with pytest.raises(xp.errors.LedgerCorrupt, match="before the noted line 3"):
            transfer.import_export(str(file), url, NOTE, known=last, is_incomplete=True)
        transfer.import_export(str(file), url, NOTE, is_incomplete=True)
    kept = [event.body.get("reason") for event in Ledger.load(url, "study").audit_trail() if event.kind == "remark"]
    assert kept == ([] if cut == "the closing line" else ["imported without its end: because"])


def test_a_known_head_within_an_export_is_not_its_end(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    file, ledger = tmp_path / "export", spent(sqlite_url())
    head = ledger.verify()
    ledger.run(Fixed(GUARANTEE, 7, part="small"))
    ledger.export(file)
    whole = file.read_text()
    file.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    with pytest.raises(xp.InvalidValue, match="lacks its end"):
        transfer.import_export(str(file), sqlite_url(), NOTE, known=head)
    file.write_text(whole)
    transfer.import_export(str(file), sqlite_url(), NOTE, known=head)
    with pytest.raises(xp.errors.LedgerCorrupt, match="the trail was rewritten"):
        transfer.import_export(str(file), sqlite_url(), NOTE, known=Head(head.sequence, "0" * 64))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: [*lines, lines[0]], "it goes on after its closing line"),
        (lambda lines: [*lines, lines[-1]], "it goes on after its closing line"),
        (lambda lines: [*lines[:2], lines[-1]], "its closing line ends line 3"),
        (lambda lines: [*lines[:-1], '{"end":"nothing"}\n'], "InvalidValue"),
        (lambda lines: ['{"end":"0:' + "0" * 64 + '"}\n'], "nothing to copy"),
    ],
)
def test_closing_lines_that_close_nothing(
    change: Callable[[list[str]], list[str]], why: str, sqlite_url: Callable[[], str], tmp_path: Path
) -> None:
    file, url = tmp_path / "export", sqlite_url()
    spent(sqlite_url()).export(file)
    file.write_text("".join(change(file.read_text().splitlines(keepends=True))))
    with pytest.raises(xp.InvalidValue, match=why):
        transfer.import_export(str(file), url, NOTE)
    assert xp.ledgers(url) == ()


def test_a_ledger_moves_into_one_place_only(new_url: Callable[[], str]) -> None:
    """However often it is asked, by whatever address; and one that has the name already is not replaced."""
    here, there, other, taken = new_url(), new_url(), new_url(), new_url()
    ledger = spent(here)
    make(taken)
    with pytest.raises(xp.errors.AlreadyExists):
        transfer.move_ledger(here, "study", taken, NOTE)
    assert not ledger.closed
    head = transfer.move_ledger(here, "study", there, NOTE)
    lines = ledger.verify()
    assert transfer.move_ledger(here, "study", there, NOTE) == head
    for place in (other, taken):
        with pytest.raises(xp.InvalidValue, match=r"was closed to be moved to .*, and goes on there or nowhere"):
            transfer.move_ledger(here, "study", place, NOTE)
    moved = Ledger.load(there, "study")
    assert ledger.verify() == lines
    assert (moved.spent, moved.output("seven"), moved.closed, ledger.closed) == (ledger.spent, 7, False, True)
    moved.run(Fixed(GUARANTEE, 8, part="small"), key="eight")
    assert transfer.move_ledger(here, "study", there, NOTE) == moved.verify()  # it goes on, and arrived long ago
    third = transfer.move_ledger(there, "study", other, NOTE)
    onward = Ledger.load(other, "study")
    assert (onward.verify(third), onward.output("eight"), moved.closed) == (third, 8, True)
    assert [event.kind for event in onward.audit_trail()].count("reopen") == 2


def test_a_file_that_was_moved_is_not_moved_into_again(sqlite_url: Callable[[], str]) -> None:
    """Where the copy was there is no ledger; it is somewhere else."""
    here, there = sqlite_url(), sqlite_url()
    spent(here)
    transfer.move_ledger(here, "study", there, NOTE)
    empty = sqlite_url()
    make(empty, name="another")
    execute(empty, f"PRAGMA user_version = {mark_of(there)}")
    with pytest.raises(xp.InvalidValue, match=r"was moved to .* before, and is not there now"):
        transfer.move_ledger(here, "study", empty, NOTE)


def mark_of(url: str) -> int:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    ((number,),) = connection.execute("PRAGMA user_version").fetchall()
    connection.close()
    return int(number)


def test_a_ledger_that_its_owner_closed_stays_closed(new_url: Callable[[], str]) -> None:
    here, there = new_url(), new_url()
    ledger = spent(here)
    ledger.close(by="me", reason="the end")
    assert transfer.move_ledger(here, "study", there, NOTE) == ledger.verify()
    assert Ledger.load(there, "study").closed


def test_closing_for_good_ends_a_move(new_url: Callable[[], str]) -> None:
    """A move that was interrupted goes on only as long as its owner does not decide otherwise."""
    here, there = new_url(), new_url()
    ledger = spent(here)
    ledger._store.leave("elsewhere 1234", NOTE)  # type: ignore[attr-defined]
    with pytest.raises(xp.InvalidValue, match="was closed before: it cannot be moved"):
        ledger._store.leave("elsewhere 5678", NOTE)  # type: ignore[attr-defined]
    ledger.close(by="me", reason="never mind")
    transfer.move_ledger(here, "study", there, NOTE)
    assert Ledger.load(there, "study").closed


@pytest.mark.parametrize("sequence", [1, 2, 4])
def test_a_copy_that_quotes_another_line_does_not_verify(sequence: int, new_url: Callable[[], str]) -> None:
    """Whoever writes the tables by hand can open a copy only by a line that anybody can check."""
    here, there = new_url(), new_url()
    ledger = spent(here)
    ledger._store.leave("elsewhere 1234", NOTE)  # type: ignore[attr-defined]
    digest = "0" * 64 if sequence == 4 else list(ledger.audit_trail())[sequence - 1].hash
    with pytest.raises(xp.errors.LedgerCorrupt, match="is not the one that closed the ledger to move it"):
        transfer.copy_ledger(here, "study", there, NOTE, left=Head(sequence, digest))
    assert xp.ledgers(there) == ()


def test_an_opened_copy_verifies_from_every_head(new_url: Callable[[], str]) -> None:
    here, there = new_url(), new_url()
    spent(here)
    last = transfer.move_ledger(here, "study", there, NOTE)
    moved = Ledger.load(there, "study")
    for event in moved.audit_trail():
        head = Head(event.sequence, event.hash)
        assert moved.verify(head) == moved.verify(head, since=True) == last


def test_only_missing_outputs_are_dropped_in_a_copy(sqlite_url: Callable[[], str]) -> None:
    """Found: one output that had been dropped was enough to drop all of them in every copy."""
    here, there = sqlite_url(), sqlite_url()
    ledger = spent(here)
    ledger._store.drop_outputs(1, NOTE)  # type: ignore[attr-defined]
    ledger.run(Fixed(GUARANTEE, 8, part="small"), key="eight")
    head = transfer.copy_ledger(here, "study", there, NOTE)
    copy = Ledger.load(there, "study")
    assert (head, copy.output("eight")) == (ledger.verify(), 8)


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
