"""Which file it is, what reading leaves behind, and heads beside the data."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from books import CLAIM, OWNER, disarm, execute, make, steps_of
from expost import Ledger
from expost.ledger import Settings
from expost.ledger.address import open_store
from expost.ledger.sqlite.heads import Heads
from expost.ledger.sqlite.identity import identity_of
from expost.ledger.trail import Head


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def backup_of(url: str, folder: Path) -> Path:
    """A copy of a ledger's file, with open entries, as a process that died left it."""
    folder.mkdir()
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.execute("VACUUM INTO ?", (str(folder / "books.db"),)).fetchall()
    connection.close()
    return folder / "books.db"


# ---- reading changes nothing


def test_reading_a_write_protected_backup_changes_nothing(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: show appended a line and forked the trail, and verify migrated."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
    ledger.reserve(CLAIM)
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
            again.reserve(CLAIM)
        assert os.listdir(copy.parent) == ["books.db"]
        assert copy.read_bytes() == before
    finally:
        copy.parent.chmod(0o755)
    assert Ledger.load(url, "study", recover=False).reserved == CLAIM.worst_case


def test_a_later_schema_can_be_read(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    make(url).reserve(CLAIM).settle("small")
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
    writer.reserve(CLAIM).settle("small")
    assert reader.spent == CLAIM.cost_of("small")
    assert reader.verify() == writer.verify()


def test_a_copy_with_its_log_is_read_without_a_trace(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: a file ending in -shm was left beside the log."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
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
    ledger.reserve(CLAIM).settle("small")
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
            with pytest.raises(xp.LedgerUnavailable, match="No space left"):
                Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    reader: Any = Ledger.load(f"sqlite:///{copy}", "study", read_only=True)
    reader._store._engine.close()
    with monkeypatch.context() as disk:
        disk.setattr(shutil, "copyfile", full)
        for _ in range(2):
            with pytest.raises(xp.LedgerUnavailable, match="No space left"):
                assert reader.spent
    assert reader.spent == ledger.spent == CLAIM.cost_of("small")


def test_a_file_that_is_gone_is_not_made_anew_by_reading(sqlite_url: Callable[[], str]) -> None:
    """Found: FileNotFoundError from one that was opened read-only, and an empty file from the other."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger._store._engine.close()
    reader: Any = Ledger.load(url, "study", read_only=True)
    file_of(url).unlink()
    for work in (lambda: ledger.remaining, ledger.statement, ledger.verify, lambda: reader.remaining, reader.verify):
        with pytest.raises(xp.LedgerUnavailable, match=r"was removed or renamed|cannot be read: No such file"):
            work()
    assert not file_of(url).exists()


def test_texts_that_cannot_be_read_are_damage(sqlite_url: Callable[[], str]) -> None:
    """Found: UnicodeDecodeError."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(CLAIM, label="work").settle("small")
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET label = CAST(x'ff77' AS TEXT)")
    for work in (ledger.statement, ledger.verify, lambda: list(ledger.entries())):
        with pytest.raises(xp.LedgerCorrupt, match="damaged"):
            work()


# ---- which file is it?


def test_a_removed_file_is_not_written(sqlite_url: Callable[[], str]) -> None:
    """Found: a live process went on acknowledging, and a ledger created anew paid again."""
    url = sqlite_url()
    ledger = make(url)
    spending = ledger.reserve(CLAIM)
    for file in file_of(url).parent.glob(f"{file_of(url).name}*"):
        file.unlink()
    for work in (lambda: ledger.reserve(CLAIM), lambda: spending.settle("small")):
        with pytest.raises(xp.LedgerUnavailable, match="was removed or renamed"):
            work()
    make(url, settings=Settings(patience=14))
    with pytest.raises(xp.LedgerUnavailable, match="was replaced by another file"):
        ledger.reserve(CLAIM)


def test_a_removed_log_is_not_written(sqlite_url: Callable[[], str]) -> None:
    """Found: a live process went on acknowledging, and all of it was lost with the process."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(CLAIM).settle("small")
    log = Path(f"{file_of(url)}-wal")
    log.rename(f"{log}.away")
    with pytest.raises(xp.LedgerUnavailable, match="lost its write-ahead log"):
        ledger.reserve(CLAIM)
    log.write_bytes(b"")
    with pytest.raises(xp.LedgerUnavailable, match="was given another write-ahead log"):
        ledger.reserve(CLAIM)
    Path(f"{log}.away").replace(log)
    ledger.reserve(CLAIM).settle("small")


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
    with pytest.raises(xp.LedgerUnavailable, match=f"ending in {ending}"):
        ledger.reserve(CLAIM)
    Path(f"{file}.away").replace(file)
    ledger.reserve(CLAIM).settle("small")


def test_removed_locks_are_not_relied_on(sqlite_url: Callable[[], str]) -> None:
    """Another process would make new ones, and neither would see what the other locks."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
    locks = Path(f"{file_of(url)}-shm")
    locks.rename(f"{locks}.away")
    with pytest.raises(xp.LedgerUnavailable, match="lost its locks"):
        ledger.reserve(CLAIM)
    locks.write_bytes(b"")
    with pytest.raises(xp.LedgerUnavailable, match="was given other locks"):
        ledger.reserve(CLAIM)
    Path(f"{locks}.away").replace(locks)
    ledger.reserve(CLAIM).settle("small")


def test_a_second_name_is_refused(sqlite_url: Callable[[], str]) -> None:
    """Found: by a hard link, 20 acknowledged settlements vanished and both files verified."""
    url = sqlite_url()
    ledger = make(url)
    os.link(file_of(url), f"{file_of(url)}-link")
    with pytest.raises(xp.LedgerUnavailable, match=r"got 2 names \(hard links\)"):
        ledger.reserve(CLAIM)
    for read_only in (False, True):
        with pytest.raises(xp.LedgerUnavailable, match="hard links"):
            Ledger.load(f"{url}-link", "study", read_only=read_only)
    os.unlink(f"{file_of(url)}-link")
    ledger.reserve(CLAIM).settle("small")


def test_a_symbolic_link_is_the_file(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    url = sqlite_url()
    ledger = make(url)
    os.symlink(file_of(url), tmp_path / "link.db")
    again = Ledger.load(f"sqlite:///{tmp_path}/link.db", "study")
    again.reserve(CLAIM).settle("small")
    assert again._store.address == ledger._store.address
    assert not (tmp_path / "link.db-wal").exists()


# ---- heads beside the data


def test_a_file_that_was_moved_alone_is_mentioned(
    sqlite_url: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has no noted heads: verification says so, unless a head is given."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(CLAIM).settle("small")
    head = ledger.verify()
    assert caplog.messages == []
    ledger._store._engine.close()
    (tmp_path / "moved").mkdir()
    moved = Ledger.load(f"sqlite:///{file_of(url).rename(tmp_path / 'moved' / 'books.db')}", "study", read_only=True)
    assert moved.verify(head) == head
    assert caplog.messages == []
    assert moved.verify() == head
    assert "only a head that was noted elsewhere can show" in caplog.messages[0]


def test_a_lost_log_is_noticed(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: a lost write-ahead log turned 60 entries into none, and verify passed."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger._store._engine.close()
    ledger = Ledger.load(url, "study")
    for _ in range(5):
        ledger.reserve(CLAIM).settle("small")
    (tmp_path / "lost").mkdir()
    for suffix in ("", "-heads"):  # and not the log
        shutil.copy(f"{file_of(url)}{suffix}", tmp_path / "lost" / f"books.db{suffix}")
    after = Ledger.load(f"sqlite:///{tmp_path}/lost/books.db", "study", recover=False)
    with pytest.raises(xp.LedgerCorrupt, match=r"ends at line 1, but .*-heads notes 11:.*nothing can be reserved"):
        after.reserve(CLAIM)
    assert after.spent == xp.Cost(0)  # it can be read
    for reader in (after, Ledger.load(f"sqlite:///{tmp_path}/lost/books.db", "study", read_only=True)):
        with pytest.raises(xp.LedgerCorrupt, match="lines are lost"):
            reader.verify()
    after.close(**OWNER)  # as the documentation advises
    assert Ledger.load(f"sqlite:///{tmp_path}/lost/books.db", "study", recover=False).closed
    with pytest.raises(xp.LedgerCorrupt, match="lines are lost"):
        after.verify()


def test_books_that_went_another_way_are_noticed(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: a longer fork that was put back was accepted, for only the number of lines was compared."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(CLAIM).settle("small")
    fork = backup_of(url, tmp_path / "fork")
    ledger.reserve(CLAIM).settle("large")
    other: Any = Ledger.load(f"sqlite:///{fork}", "study")
    for _ in range(3):
        other.reserve(CLAIM).settle("small")
    other._store._engine.close()
    shutil.copy(f"{file_of(url)}-heads", f"{fork}-heads")
    again = Ledger.load(f"sqlite:///{fork}", "study", recover=False, settings=Settings(patience=14))
    for work in (lambda: again.reserve(CLAIM), again.verify):
        with pytest.raises(xp.LedgerCorrupt, match="has another line 5"):
            work()
    again.close(**OWNER)
    with pytest.raises(xp.LedgerCorrupt, match="has another line 5"):
        again.verify()  # still: lines of these books are not noted


def test_heads_that_cannot_be_read(sqlite_url: Callable[[], str]) -> None:
    """Found: an exception of Python."""
    url = sqlite_url()
    ledger = make(url)
    heads = Path(f"{file_of(url)}-heads")
    heads.unlink()
    heads.mkdir()
    for work in (lambda: ledger.reserve(CLAIM), ledger.verify):
        with pytest.raises(xp.LedgerUnavailable, match="let this user read the file"):
            work()
    heads.rmdir()
    ledger.reserve(CLAIM).settle("small")


def test_heads_that_cannot_be_written_stop_nobody(tmp_path: Path) -> None:
    """The commit is on the disk already. An earlier head, and one beyond a full disk, are not noted either."""
    Heads(f"{tmp_path}/none/books.db").note("study", Head(1, "0" * 64))
    heads = Heads(f"{tmp_path}/books.db")
    heads.note("study", Head(2, "2" * 64))
    heads.note("study", Head(1, "1" * 64))
    assert heads.noted("study") == (2, "2" * 64)
    Path(f"{tmp_path}/full.db-heads").symlink_to("/dev/full")
    Heads(f"{tmp_path}/full.db").note("study", Head(1, "0" * 64))


@pytest.mark.parametrize("other", ["x", "y"])
def test_notes_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    """Found: of two notes at once one was lost, or the earlier one was the last."""
    path, real, threads = str(tmp_path / "books.db"), os.pwrite, list[threading.Thread]()
    Heads(path).note("x", Head(1, "a" * 64))

    def racing(file: int, record: bytes, at: int) -> int:
        monkeypatch.setattr(os, "pwrite", real)
        threads.append(threading.Thread(target=lambda: Heads(path).note(other, Head(60, "b" * 64))))
        threads[0].start()
        threads[0].join(0.05)
        return real(file, record, at)

    monkeypatch.setattr(os, "pwrite", racing)
    Heads(path).note("z" if other == "y" else "x", Head(10, "c" * 64))
    threads[0].join()
    assert Heads(path).noted(other) == (60, "b" * 64)


def test_with_lost_lines_a_batch_closes_and_does_nothing_else(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger: Any = make(url)
    store = ledger._store
    spending = ledger.reserve(CLAIM)
    Heads(str(file_of(url))).note("study", Head(9, "0" * 64))
    close, forfeit = steps_of(store, lambda: ledger.close(**OWNER), lambda: store.forfeit(spending.id))
    closed, refused = store._engine.apply(store._ledger, [close, forfeit])
    assert closed is None
    assert isinstance(refused, xp.LedgerCorrupt)
    assert ledger.closed
    assert spending.entry.state == "reserved"


def test_heads_go_to_the_file_of_that_name(sqlite_url: Callable[[], str]) -> None:
    """Found: a file that was removed or replaced while it was open took the heads with it."""
    url = sqlite_url()
    ledger = make(url)
    path = Path(f"{file_of(url)}-heads")
    ledger.reserve(CLAIM).settle("small")
    path.unlink()
    spending = ledger.reserve(CLAIM)
    assert Heads(str(file_of(url))).noted("study") == ledger.head
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"")
    spending.settle("small")
    assert Heads(str(file_of(url))).noted("study") == ledger.head


def test_a_ledger_created_anew_is_noticed(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(CLAIM).settle("small")
    ledger._store._engine.close()
    file_of(url).unlink()
    with pytest.raises(xp.LedgerCorrupt, match=r"ends at line 0.*remove the file of heads"):
        make(url, settings=Settings(patience=14))
    Path(f"{file_of(url)}-heads").unlink()
    make(url, settings=Settings(patience=14))


def test_heads_of_several_ledgers(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    one, two = make(url), make(url, name="two")
    one.reserve(CLAIM).settle("small")
    two.close(**OWNER)
    one.reserve(CLAIM).settle("small")
    heads = Heads(str(file_of(url)))
    assert (heads.noted("study"), heads.noted("two")) == (one.verify(), two.verify())
    assert heads.noted("three") is None
    Path(heads.path).write_bytes(b"torn" * 100)
    one.reserve(CLAIM).settle("small")
    assert heads.noted("study") == one.verify()


@pytest.mark.parametrize("line", [2**40 + 3, 2**63, 10**20 - 1])
def test_a_noted_line_that_no_books_can_have(sqlite_url: Callable[[], str], line: int) -> None:
    """Found: ledger and line are one integer, so line 2^40 + 3 was line 3; and larger ones raised ``OverflowError``."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
    head = ledger.verify()
    Heads(str(file_of(url))).note("study", Head(line, head.hash))
    for work in (lambda: ledger.reserve(CLAIM), ledger.verify):
        with pytest.raises(xp.LedgerCorrupt, match=f"ends at line 3, but .*-heads notes {line}:"):
            work()
    ledger.close(**OWNER)


def test_a_server_that_went_back_is_noticed(postgres_url: Callable[[], str]) -> None:
    ledger = make(postgres_url())
    store: Any = ledger._store
    ledger.reserve(CLAIM).settle("small")
    store._engine._session(store._ledger).known = 40
    with pytest.raises(xp.LedgerCorrupt, match="line 40 was acknowledged: lines are lost"):
        ledger.reserve(CLAIM)


# ---- damage


def test_flipped_bits_never_raise_anything_else(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: 305 of 4,000 flipped bits made verify raise an exception of Python or SQLite."""
    url = sqlite_url()
    ledger = make(url)
    for number in range(12):
        ledger.reserve(CLAIM, key=f"k{number}").settle("small")
    ledger.reserve(CLAIM)
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


# ---- connections


def test_ledgers_of_an_address_share_its_connections(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledgers: list[Any] = [make(url, name=f"n{k}") for k in range(4)]
    assert len({id(ledger._store._engine) for ledger in ledgers}) == 1
    for ledger in ledgers:
        ledger.reserve(CLAIM).settle("small")
        ledger.verify()


# ---- scans


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
    alice.create_account("job", epsilon=1, delta="1e-5").reserve(CLAIM).settle("small")
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
