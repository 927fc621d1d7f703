"""Files that others open, change or lock meanwhile, and disks that cannot hold a ledger."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from books import GUARANTEE, file_of, make
from expost import Ledger
from expost.errors import SnapshotLost
from expost.ledger import Settings


@pytest.fixture
def copy(sqlite_url: Callable[[], str], tmp_path: Path) -> Path:
    """A copy of a ledger's file with its log, which nobody has open."""
    url, copy = sqlite_url(), tmp_path / "copy.db"
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    for ending in ("", "-wal"):
        shutil.copyfile(f"{file_of(url)}{ending}", f"{copy}{ending}")
    return copy


def write(copy: Path) -> None:
    """As somebody does who writes into the log."""
    later = os.stat(f"{copy}-wal").st_mtime_ns + 10**9
    os.utime(f"{copy}-wal", ns=(later, later))


def test_a_snapshot_of_a_copy_that_changes_is_lost(copy: Path) -> None:
    """What is read afterwards could be of another state."""
    reader: Any = Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    with reader._store._engine.snapshot() as rows:
        assert rows("SELECT count(*) FROM expost_entry") == [(1,)]
        write(copy)
        with pytest.raises(SnapshotLost):
            rows("SELECT count(*) FROM expost_entry")
    assert reader.spent == GUARANTEE.cost_of("small")
    reader.verify()


def test_a_copy_that_changes_while_it_is_copied_is_not_read(copy: Path) -> None:
    """The file and its log would not belong together."""
    reader: Any = Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    engine = reader._store._engine
    real = engine._state

    def writing() -> Any:
        found = real()
        write(copy)
        return found

    engine._state = writing
    for _ in range(2):
        with pytest.raises(SnapshotLost):
            reader._store.balances(("study",))
    engine._state = real
    assert reader.spent == GUARANTEE.cost_of("small")


def new(path: Path, **settings: Any) -> Ledger:
    return make(f"sqlite:///{path}", settings=Settings(**settings))


def locked(path: Path) -> apsw.Connection:
    """Another program has the new file for itself."""
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE something (x)").fetchall()
    other.execute("BEGIN EXCLUSIVE").fetchall()
    return other


def test_a_new_file_that_stays_locked_is_waited_for_as_long_as_patience(tmp_path: Path) -> None:
    other = locked(tmp_path / "books.db")
    with pytest.raises(xp.errors.Busy):
        new(tmp_path / "books.db", patience=0.05)
    other.close()
    new(tmp_path / "books.db").verify()


def test_a_new_file_is_opened_once_it_is_free(tmp_path: Path) -> None:
    other = locked(tmp_path / "books.db")

    def let_go() -> None:
        time.sleep(0.1)
        other.execute("COMMIT").fetchall()

    thread = threading.Thread(target=let_go)
    thread.start()
    new(tmp_path / "books.db", patience=60).verify()
    thread.join()
    other.close()


def test_a_disk_that_cannot_have_a_log_is_refused(tmp_path: Path) -> None:
    """Without shared memory there is no write-ahead log, and a commit would not be what is promised."""
    with pytest.raises(xp.InvalidValue, match="local disk"):
        new(tmp_path / "books.db", vfs="unix-dotfile")
