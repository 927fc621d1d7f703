"""Which file it is, what damage does to it, and how much of it is read."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, backup_of, file_of, make
from expost import Ledger
from expost.ledger import Settings, ledgers
from expost.ledger.address import open_store
from expost.ledger.sqlite.identity import identity_of

pytestmark = pytest.mark.slow


def test_a_removed_file_is_not_written(sqlite_url: Callable[[], str]) -> None:
    """Found: a live process went on acknowledging, and a ledger created anew paid again."""
    url = sqlite_url()
    ledger = make(url)
    spending = ledger.reserve(GUARANTEE)
    for file in file_of(url).parent.glob(f"{file_of(url).name}*"):
        file.unlink()
    for work in (lambda: ledger.reserve(GUARANTEE), lambda: spending.settle("small")):
        with pytest.raises(xp.errors.LedgerUnavailable, match="was removed or renamed"):
            work()
    make(url, settings=Settings(patience=14))
    with pytest.raises(xp.errors.LedgerUnavailable, match="was replaced by another file"):
        ledger.reserve(GUARANTEE)


def refuses_other_files(url: str, ending: str, lost: str, others: str) -> None:
    """Nothing is written while a file beside the database is away, or another is in its place."""
    ledger, file = make(url), Path(f"{file_of(url)}{ending}")
    ledger.reserve(GUARANTEE).settle("small")
    file.rename(f"{file}.away")
    with pytest.raises(xp.errors.LedgerUnavailable, match=lost):
        ledger.reserve(GUARANTEE)
    file.write_bytes(b"")
    with pytest.raises(xp.errors.LedgerUnavailable, match=others):
        ledger.reserve(GUARANTEE)
    Path(f"{file}.away").replace(file)
    ledger.reserve(GUARANTEE).settle("small")


def test_a_removed_log_is_not_written(sqlite_url: Callable[[], str]) -> None:
    """Found: a live process went on acknowledging, and all of it was lost with the process."""
    refuses_other_files(sqlite_url(), "-wal", "lost its write-ahead log", "was given another write-ahead log")


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_log_that_is_replaced_before_the_first_commit_is_not_written(
    sqlite_url: Callable[[], str], ending: str
) -> None:
    """Found: the first commit took the files beside the database for those that were opened."""
    url = sqlite_url()
    make(url)
    ledger = Ledger.load(url, "study", recover=False, settings=Settings(patience=13))
    file = Path(f"{file_of(url)}{ending}")
    file.rename(f"{file}.away")
    file.write_bytes(b"")
    with pytest.raises(xp.errors.LedgerUnavailable, match=f"ending in {ending}"):
        ledger.reserve(GUARANTEE)
    Path(f"{file}.away").replace(file)
    ledger.reserve(GUARANTEE).settle("small")


def test_removed_locks_are_not_relied_on(sqlite_url: Callable[[], str]) -> None:
    """Another process would make new ones, and neither would see what the other locks."""
    refuses_other_files(sqlite_url(), "-shm", "lost its locks", "was given other locks")


def test_a_second_name_is_refused(sqlite_url: Callable[[], str]) -> None:
    """Found: by a hard link, 20 acknowledged settlements vanished and both files verified."""
    url = sqlite_url()
    ledger = make(url)
    os.link(file_of(url), f"{file_of(url)}-link")
    with pytest.raises(xp.errors.LedgerUnavailable, match=r"got 2 names \(hard links\)"):
        ledger.reserve(GUARANTEE)
    for read_only in (False, True):
        with pytest.raises(xp.errors.LedgerUnavailable, match="hard links"):
            Ledger.load(f"{url}-link", "study", read_only=read_only)
    os.unlink(f"{file_of(url)}-link")
    ledger.reserve(GUARANTEE).settle("small")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    for ask in (lambda url: Ledger.load(url, "study"), make, ledgers):
        with pytest.raises(xp.InvalidValue, match="is a folder, and a ledger is a file: name one in it"):
            ask(f"sqlite:///{tmp_path}")


def test_a_symbolic_link_is_the_file(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    url = sqlite_url()
    ledger = make(url)
    os.symlink(file_of(url), tmp_path / "link.db")
    again = Ledger.load(f"sqlite:///{tmp_path}/link.db", "study")
    again.reserve(GUARANTEE).settle("small")
    assert again._store.address == ledger._store.address
    assert not (tmp_path / "link.db-wal").exists()


def test_flipped_bits_never_raise_anything_else(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: 305 of 4,000 flipped bits made verify raise an exception of Python or SQLite."""
    url = sqlite_url()
    ledger = make(url)
    for number in range(12):
        ledger.reserve(GUARANTEE, key=f"k{number}").settle("small")
    ledger.reserve(GUARANTEE)
    whole, chance, found = backup_of(url, tmp_path / "whole").read_bytes(), random.Random(3), 0
    for number in range(250):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        file = tmp_path / f"{number}.db"
        file.write_bytes(damaged)
        try:
            store = open_store(f"sqlite:///{file}", "study", read_only=True)
            store.verify(None)
            list(store.view(("study",)).entries)
        except xp.ExpostError:
            found += 1
        file.unlink()
    assert found > 20


def test_ledgers_of_an_address_share_its_connections(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledgers: list[Any] = [make(url, name=f"n{k}") for k in range(4)]
    assert len({id(ledger._store._engine) for ledger in ledgers}) == 1
    for ledger in ledgers:
        ledger.reserve(GUARANTEE).settle("small")
        ledger.verify()


def test_beats_and_loads_read_open_entries_only(sqlite_url: Callable[[], str]) -> None:
    """Found: the planner ignored the index, and read every entry, partly under the write lock."""
    url = sqlite_url()
    store: Any = make(url)._store
    seen: list[str] = []
    real = store._engine.rows

    def rows(sql: str, *values: Any) -> Any:
        seen.append(sql)
        return real(sql, *values)

    store._engine.rows = rows
    store.recover()
    store.open_entries()
    del store._engine.rows
    plans = [str(real(f"EXPLAIN QUERY PLAN {sql}", *(1,) * sql.count("?"))) for sql in seen]
    scans = [plan for plan in plans if "SCAN e " in plan or "SCAN expost" in plan or "SCAN l" in plan]
    searches = [found for plan in plans for found in re.findall("SEARCH e [^']*", plan)]
    scans += [one for one in searches if "expost_entry_open" not in one and "(ledger=? AND number=?)" not in one]
    assert len(plans) >= 4
    assert len(searches) >= 4
    assert scans == []


def test_entries_of_an_account_are_found_by_account(sqlite_url: Callable[[], str]) -> None:
    """Found: the entries of each account below were filtered out of all entries."""
    ledger = make(sqlite_url())
    alice = ledger.create_account("alice", epsilon=1, delta="1e-5")
    alice.create_account("job", epsilon=1, delta="1e-5").reserve(GUARANTEE).settle("small")
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    seen: list[str] = []
    real = engine.rows

    def rows(sql: str, *values: Any) -> Any:
        seen.append(sql)
        return real(sql, *values)

    engine.rows = rows
    assert [[entry.id for entry in alice.entries(last=last)] for last in (None, 5)] == [[1], [1]]
    del engine.rows
    plans = [str(real(f"EXPLAIN QUERY PLAN {sql}", *(1,) * sql.count("?"))) for sql in seen if "e.account = ?" in sql]
    assert len(plans) >= 4
    assert all("expost_entry_account (account=? AND number>? AND number<?)" in plan for plan in plans), plans


def test_a_file_is_identified_without_asking_for_its_times(tmp_path: Path) -> None:
    """By any of its names, and as an open file; another one is another."""
    path, other, link = tmp_path / "books.db", tmp_path / "other.db", tmp_path / "link.db"
    path.write_bytes(b"x")
    other.write_bytes(b"x")
    os.link(path, link)
    file = os.open(path, os.O_RDONLY)
    assert identity_of(bytes(path)) == identity_of(bytes(link)) == identity_of(file)
    assert identity_of(bytes(path)) != identity_of(bytes(other))
    os.close(file)
    for gone in (bytes(tmp_path / "none.db"), file):
        with pytest.raises(OSError, match="Errno"):
            identity_of(gone)
