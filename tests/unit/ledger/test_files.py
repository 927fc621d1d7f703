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
from books import GUARANTEE, backup_of, execute, file_of, make
from expost import Ledger
from expost.ledger import Settings, ledgers
from expost.ledger.address import open_store
from expost.ledger.entry import Note
from expost.ledger.sqlite.guard import Guard
from expost.ledger.sqlite.identity import Header

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


def checkpoint(url: str) -> None:
    """By another process, as it were."""
    execute(url, "PRAGMA wal_checkpoint(TRUNCATE)")


def spend(ledger: Ledger, times: int) -> None:
    for _ in range(times):
        ledger.reserve(GUARANTEE).settle("small")


@pytest.mark.parametrize("locks", [True, False])
@pytest.mark.parametrize("older", ["shorter", "as long", "a piece", "nothing of the kind"])
def test_a_backup_that_is_copied_over_the_file_is_noticed(
    sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch, locks: bool, older: str
) -> None:
    """Found: in place, so that it was the same file; 4,000 more entries were acknowledged into one that nobody could
    open."""
    monkeypatch.setattr(Guard, "is_supported", locks and Guard.is_supported)
    url = sqlite_url()
    ledger, file = make(url, epsilon=10**4, delta=0.5), file_of(url)
    spend(ledger, 60)
    checkpoint(url)
    old = file.read_bytes()
    spend(ledger, 60)
    checkpoint(url)
    spend(ledger, 1)
    length = file.stat().st_size
    assert len(old) < length
    with open(file, "r+b") as over:  # as cp does
        text = {"shorter": old, "as long": old.ljust(length, b"\0"), "a piece": old[:5000]}.get(older, b"x" * length)
        over.truncate(0)
        over.write(text)
    if not Guard.is_supported and len(text) == length:
        return  # only the length is known there
    for work in (lambda: ledger.reserve(GUARANTEE), lambda: ledger.close(by="me", reason="x")):
        with pytest.raises(xp.errors.LedgerUnavailable, match=r"was written over .* nothing was acknowledged"):
            work()


@pytest.mark.skipif(not Guard.is_supported, reason="only the length is known there")
def test_what_others_do_to_the_file_rightly_is_no_overwriting(sqlite_url: Callable[[], str]) -> None:
    """Checkpoints, a mark for moves, and an administrator who shortens the file."""
    url = sqlite_url()
    ledger: Any = make(url, epsilon=10**4, delta=0.5)
    for _ in range(5):
        spend(ledger, 20)
        checkpoint(url)
    assert ledger._store._engine.mark()
    spend(ledger, 20)
    checkpoint(url)
    ledger._store.drop_outputs(50, Note("me", "old"))
    length = file_of(url).stat().st_size
    execute(url, "CREATE TABLE filling AS SELECT randomblob(500000) AS x", "DROP TABLE filling", "VACUUM")
    checkpoint(url)
    spend(ledger, 20)
    assert file_of(url).stat().st_size <= length + 10**5
    ledger.verify()


def test_headers_that_follow_one_another() -> None:
    text = bytearray(100)
    text[:16] = b"SQLite format 3\0"
    text[24:32] = b"\0\0\0\5\0\0\0\7"
    before = Header.read(bytes(text))
    assert before == (5, 7, 0)
    assert [Header(*later).follows(before) for later in ((5, 7, 0), (6, 3, 9), (5, 8, 0))] == [True] * 3
    assert [Header(*later).follows(before) for later in ((4, 9, 0), (5, 6, 0))] == [False] * 2
    assert not Header(9, 9, 2).follows(before._replace(mark=1))
    assert Header.read(bytes(text[:99])) is None


@pytest.mark.parametrize("state", ["reserved", "forfeited", "voided"])
def test_few_entries_are_found_by_state(sqlite_url: Callable[[], str], state: Any) -> None:
    """Found: all entries were read to show those that were forfeited."""
    ledger: Any = make(sqlite_url())
    engine, seen, real = ledger._store._engine, list[str](), ledger._store._engine.rows

    def rows(sql: str, *values: Any) -> Any:
        seen.append(sql)
        return real(sql, *values)

    engine.rows = rows
    assert list(ledger.entries(state=state)) == []
    del engine.rows
    (sql,) = [sql for sql in seen if "e.state" in sql]
    plan = str(real(f"EXPLAIN QUERY PLAN {sql}", *(1,) * sql.count("?")))
    assert ("expost_entry_open" if state == "reserved" else "expost_entry_ended") in plan, plan
