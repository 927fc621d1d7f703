"""Reading a ledger's file leaves nothing behind."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from books import ALONE, GUARANTEE, backup_of, disarm, execute, file_of, make
from expost import Ledger
from expost.ledger import Settings


def test_reading_a_write_protected_backup_changes_nothing(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: show appended a line and forked the trail, and verify migrated."""
    url = sqlite_url()
    ledger = make(url, settings=ALONE)
    ledger.reserve(GUARANTEE).settle("small")
    ledger.reserve(GUARANTEE)
    head = ledger.verify()
    execute(url, """UPDATE expost_owner SET identity = replace(identity, '"started":"', '"started":"1')""")
    copy = backup_of(url, tmp_path / "backup")
    before = copy.read_bytes()
    copy.chmod(0o444)
    copy.parent.chmod(0o555)
    try:
        again = Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
        assert again.verify() == head == again.export(tmp_path / "trail")
        assert str(again.statement())
        assert [entry.state for entry in again.entries()] == ["settled", "reserved"]
        assert [summary.name for summary in xp.ledgers(f"sqlite:///{copy}")] == ["study"]
        with pytest.raises(xp.InvalidValue, match="opened read-only"):
            again.reserve(GUARANTEE)
        assert sorted(os.listdir(copy.parent)) == ["books.db", "books.db-heads"]
        assert copy.read_bytes() == before
    finally:
        copy.parent.chmod(0o755)
    assert Ledger.load(url, "study", recover=False).reserved == GUARANTEE.worst_case


def test_a_later_schema_can_be_read(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    make(url).reserve(GUARANTEE).settle("small")
    execute(url, "INSERT INTO expost_schema (name, digest) VALUES ('9999_future', 'x')")
    execute(url, "ALTER TABLE expost_entry ADD COLUMN later TEXT")
    assert Ledger.load(url, "study", read_only=True).verify().sequence == 3
    with pytest.raises(xp.InvalidValue, match="a newer expost"):
        Ledger.load(url, "study", settings=Settings(patience=14))


def test_a_reader_sees_what_is_written_meanwhile(sqlite_url: Callable[[], str]) -> None:
    """A file without a log is read as one that nobody changes, until somebody does."""
    url = sqlite_url()
    writer: Any = make(url)
    writer._store._engine.close()
    reader = Ledger.load(url, "study", read_only=True)
    assert reader.spent == xp.Cost(0)
    writer.reserve(GUARANTEE).settle("small")
    assert reader.spent == GUARANTEE.cost_of("small")
    assert reader.verify() == writer.verify()


def test_a_copy_with_its_log_is_read_without_a_trace(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: a file ending in -shm was left beside the log."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "books.db"
    for ending in ("", "-wal"):
        shutil.copyfile(f"{file_of(url)}{ending}", f"{copy}{ending}")
    before = {file.name: file.read_bytes() for file in copy.parent.iterdir()}
    again = Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    assert again.verify() == ledger.verify()
    assert again.statement() == ledger.statement()
    assert {file.name: file.read_bytes() for file in copy.parent.iterdir()} == before


def test_a_copy_that_was_not_finished_is_not_read(
    sqlite_url: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its log it would show what was before."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    copy, real = tmp_path / "copy.db", shutil.copyfile
    for ending in ("", "-wal"):
        real(f"{file_of(url)}{ending}", f"{copy}{ending}")

    def full(source: str, target: str) -> None:
        if target.endswith("-wal"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    with monkeypatch.context() as disk:
        disk.setattr(shutil, "copyfile", full)
        for _ in range(2):
            with pytest.raises(xp.errors.LedgerUnavailable, match="No space left"):
                Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    reader: Any = Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    reader._store._engine.close()
    with monkeypatch.context() as disk:
        disk.setattr(shutil, "copyfile", full)
        for _ in range(2):
            with pytest.raises(xp.errors.LedgerUnavailable, match="No space left"):
                assert reader.spent
    assert reader.spent == ledger.spent == GUARANTEE.cost_of("small")


def test_a_file_that_is_gone_is_not_made_anew_by_reading(sqlite_url: Callable[[], str]) -> None:
    """Found: FileNotFoundError from one that was opened read-only, and an empty file from the other."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger._store._engine.close()
    reader: Any = Ledger.load(url, "study", read_only=True)
    file_of(url).unlink()
    for work in (lambda: ledger.remaining, ledger.statement, ledger.verify, lambda: reader.remaining, reader.verify):
        with pytest.raises(xp.errors.LedgerUnavailable, match=r"was removed or renamed|cannot be read: No such file"):
            work()
    assert not file_of(url).exists()


def test_texts_that_cannot_be_read_are_damage(sqlite_url: Callable[[], str]) -> None:
    """Found: UnicodeDecodeError."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE, label="work").settle("small")
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET label = CAST(x'ff77' AS TEXT)")
    for work in (ledger.statement, ledger.verify, lambda: list(ledger.entries())):
        with pytest.raises(xp.errors.LedgerCorrupt, match="damaged"):
            work()
