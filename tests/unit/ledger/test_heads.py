"""Heads beside the data: what was lost is noticed, and a head that cannot be noted or read changes nothing else."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any

import pytest

import expost as xp
from books import ALONE, GUARANTEE, OWNER, backup_of, file_of, make, steps_of
from expost import Ledger
from expost.ledger import Settings, transfer
from expost.ledger.engine import Hold
from expost.ledger.heads import Heads
from expost.ledger.trail import Head


def test_a_note_gives_up_while_somebody_holds_the_file(tmp_path: Path) -> None:
    """The commit is on the disk: it is left to the next one."""
    heads = Heads(f"{tmp_path}/books.db")
    assert heads.note("study", Head(1, "1" * 64))
    other = os.open(heads.path, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert not heads.note("study", Head(2, "2" * 64))
    os.close(other)
    assert heads.noted("study") == (1, "1" * 64)
    assert heads.note("study", Head(3, "3" * 64))
    assert heads.noted("study") == (3, "3" * 64)
    heads.close()


def test_a_file_that_cannot_be_read_again_is_not_trusted(tmp_path: Path) -> None:
    heads: Any = Heads(f"{tmp_path}/books.db")
    assert not heads.is_last("study")
    heads.note("study", Head(1, "1" * 64))
    assert heads.is_last("study")
    assert not heads.is_last("other")
    file, heads._file = heads._file, os.open(tmp_path, os.O_RDONLY)  # a folder has no bytes
    assert not heads.is_last("study")
    os.close(file)
    heads.close()


def test_a_small_cache_is_cleared_and_read_again(sqlite_url: Callable[[], str]) -> None:
    """Whatever of it has grown too large, and nothing else."""
    ledger = make(sqlite_url(), epsilon=1000, settings=Settings(remembered=6))
    reserved = [ledger.reserve(GUARANTEE) for _ in range(9)]
    for one in reversed(reserved):
        one.settle("small")
    assert [entry.state for entry in ledger.entries()] == ["settled"] * 9
    ledger.verify()


def test_a_hold_that_was_not_taken_is_left_alone() -> None:
    lock: Any = RLock()
    hold = Hold(lock)
    hold.leave()
    hold.take()
    hold.take()
    assert lock._is_owned()
    hold.leave()
    assert not lock._is_owned()


def test_a_file_that_was_moved_alone_is_mentioned(
    sqlite_url: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has no noted heads: verification says so, unless a head is given."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(GUARANTEE).settle("small")
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
        ledger.reserve(GUARANTEE).settle("small")
    (tmp_path / "lost").mkdir()
    for suffix in ("", "-heads"):  # and not the log
        shutil.copy(f"{file_of(url)}{suffix}", tmp_path / "lost" / f"books.db{suffix}")
    after = Ledger.load(f"sqlite:///{tmp_path}/lost/books.db", "study", recover=False)
    with pytest.raises(
        xp.errors.LedgerCorrupt, match=r"ends at line 1, but .*-heads notes 11:.*nothing can be reserved"
    ):
        after.reserve(GUARANTEE)
    assert after.spent == xp.Cost(0)  # it can be read
    for reader in (after, Ledger.load(f"sqlite:///{tmp_path}/lost/books.db", "study", read_only=True)):
        with pytest.raises(xp.errors.LedgerCorrupt, match="lines are lost"):
            reader.verify()
    after.close(**OWNER)  # as the documentation advises
    assert Ledger.load(f"sqlite:///{tmp_path}/lost/books.db", "study", recover=False).closed
    with pytest.raises(xp.errors.LedgerCorrupt, match="lines are lost"):
        after.verify()


def test_books_that_went_another_way_are_noticed(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: a longer fork that was put back was accepted, for only the number of lines was compared."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    fork = backup_of(url, tmp_path / "fork")
    ledger.reserve(GUARANTEE).settle("large")
    other: Any = Ledger.load(f"sqlite:///{fork}", "study")
    for _ in range(3):
        other.reserve(GUARANTEE).settle("small")
    other._store._engine.close()
    shutil.copy(f"{file_of(url)}-heads", f"{fork}-heads")
    again = Ledger.load(f"sqlite:///{fork}", "study", recover=False, settings=Settings(patience=14))
    for work in (lambda: again.reserve(GUARANTEE), again.verify):
        with pytest.raises(xp.errors.LedgerCorrupt, match="has another line 5"):
            work()
    again.close(**OWNER)
    with pytest.raises(xp.errors.LedgerCorrupt, match="has another line 5"):
        again.verify()  # still: lines of these books are not noted


def test_heads_that_cannot_be_read(sqlite_url: Callable[[], str]) -> None:
    """Found: an exception of Python."""
    url = sqlite_url()
    ledger = make(url)
    heads = Path(f"{file_of(url)}-heads")
    heads.unlink()
    heads.mkdir()
    for work in (lambda: ledger.reserve(GUARANTEE), ledger.verify):
        with pytest.raises(xp.errors.LedgerUnavailable, match="let this user read the file"):
            work()
    heads.rmdir()
    os.mkfifo(heads)  # found: it was waited for, for ever
    for work in (lambda: ledger.reserve(GUARANTEE), ledger.verify):
        with pytest.raises(xp.errors.LedgerUnavailable, match=r"not a plain file.*let this user read the file"):
            work()
    heads.unlink()
    ledger.adopt_heads(**OWNER)
    ledger.reserve(GUARANTEE).settle("small")


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
    spending = ledger.reserve(GUARANTEE)
    Heads(str(file_of(url))).note("study", Head(9, "0" * 64))
    close, forfeit = steps_of(store, lambda: ledger.close(**OWNER), lambda: store.forfeit(spending.id))
    closed, refused = store._engine.apply(store._ledger, [close, forfeit])
    assert closed is None
    assert isinstance(refused, xp.errors.LedgerCorrupt)
    assert ledger.closed
    assert spending.entry.state == "reserved"


def test_heads_go_to_the_file_of_that_name(sqlite_url: Callable[[], str]) -> None:
    """Found: a file that was removed or replaced while it was open took the heads with it."""
    url = sqlite_url()
    ledger = make(url)
    path = Path(f"{file_of(url)}-heads")
    ledger.reserve(GUARANTEE).settle("small")
    path.unlink()
    spending = ledger.reserve(GUARANTEE)
    assert Heads(str(file_of(url))).noted("study") == ledger.head
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"")
    spending.settle("small")
    assert Heads(str(file_of(url))).noted("study") == ledger.head


def test_a_ledger_created_anew_is_noticed(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    ledger._store._engine.close()
    file_of(url).unlink()
    with pytest.raises(xp.errors.LedgerCorrupt, match=r"ends at line 0.*remove the file of heads"):  # and then
        make(url, settings=Settings(patience=14))
    Path(f"{file_of(url)}-heads").unlink()
    make(url, settings=Settings(patience=14))


def test_heads_of_several_ledgers(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    one, two = make(url), make(url, name="two")
    one.reserve(GUARANTEE).settle("small")
    two.close(**OWNER)
    one.reserve(GUARANTEE).settle("small")
    heads = Heads(str(file_of(url)))
    assert (heads.noted("study"), heads.noted("two")) == (one.verify(), two.verify())
    assert heads.noted("three") is None


@pytest.mark.parametrize("line", [2**40 + 3, 2**63, 10**20 - 1])
def test_a_noted_line_that_no_books_can_have(sqlite_url: Callable[[], str], line: int) -> None:
    """Found: ledger and line are one integer, so line 2^40 + 3 was line 3; and larger ones raised ``OverflowError``."""
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    head = ledger.verify()
    Heads(str(file_of(url))).note("study", Head(line, head.hash))
    for work in (lambda: ledger.reserve(GUARANTEE), ledger.verify):
        with pytest.raises(xp.errors.LedgerCorrupt, match=f"ends at line 3, but .*-heads notes {line}:"):
            work()
    ledger.close(**OWNER)


def test_a_server_that_went_back_is_noticed(postgres_url: Callable[[], str]) -> None:
    ledger = make(postgres_url())
    store: Any = ledger._store
    ledger.reserve(GUARANTEE).settle("small")
    store._engine._session(store._ledger).known = 40
    with pytest.raises(xp.errors.LedgerCorrupt, match="line 40 was acknowledged: lines are lost"):
        ledger.reserve(GUARANTEE)


def lose(path: Path) -> None:
    path.unlink()


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:90])


def flip(path: Path) -> None:
    """One bit of the line that is noted."""
    text = bytearray(path.read_bytes())
    text[19] ^= 1
    path.write_bytes(text)


def flip_the_name(path: Path) -> None:
    text = bytearray(path.read_bytes())
    text[90] ^= 1
    path.write_bytes(text)


def tear(path: Path) -> None:
    path.write_bytes(b"torn" * 100)


def empty(path: Path) -> None:
    path.write_bytes(b"")


HARMS = [lose, cut_off, flip, flip_the_name, tear, empty]


@pytest.mark.parametrize("harm", HARMS)
def test_an_old_backup_spends_nothing_without_its_heads(
    sqlite_url: Callable[[], str], tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Found: whoever lost the heads, or one bit of them, spent from an old backup again without a warning."""
    url = sqlite_url()
    ledger: Any = make(url, settings=ALONE)
    ledger.reserve(GUARANTEE).settle("small")
    ledger._store._engine.close()
    old = file_of(url).read_bytes()
    ledger.reserve(GUARANTEE).settle("large")
    head = ledger.verify()
    ledger._store._engine.close()
    harm(Path(f"{file_of(url)}-heads"))
    file_of(url).write_bytes(old)
    again = Ledger.load(url, "study", recover=False, settings=Settings(patience=14))
    with pytest.raises(xp.errors.LedgerCorrupt, match=r"nothing can be reserved.*adopt_heads"):
        again.reserve(GUARANTEE)
    assert again.spent == GUARANTEE.cost_of("small")  # it can be read
    with pytest.raises(xp.errors.LedgerCorrupt, match="old backup was restored"):
        again.adopt_heads(**OWNER, known=head)
    again.close(**OWNER)


@pytest.mark.parametrize("harm", HARMS)
def test_whoever_knows_that_nothing_is_lost_adopts_the_books(
    sqlite_url: Callable[[], str], harm: Callable[[Path], None]
) -> None:
    url = sqlite_url()
    ledger, other = make(url), make(url, name="other")
    ledger.reserve(GUARANTEE).settle("small")
    head, path = ledger.verify(), Path(f"{file_of(url)}-heads")
    harm(path)
    ledger = Ledger.load(url, "study", recover=False, settings=Settings(patience=14))
    with pytest.raises(xp.errors.LedgerCorrupt):
        ledger.reserve(GUARANTEE)
    adopted = ledger.adopt_heads(**OWNER, known=head)
    line = list(ledger.audit_trail())[-1]
    assert (line.kind, line.body["by"], line.body["reason"]) == ("remark", "me", "heads noted anew: because")
    assert Heads(str(file_of(url))).noted("study") == adopted == ledger.verify(head)
    ledger.reserve(GUARANTEE).settle("small")
    assert ledger.verify(adopted).sequence == adopted.sequence + 2
    with pytest.raises(xp.InvalidValue, match="nothing is to be adopted"):
        ledger.adopt_heads(**OWNER)
    if harm in (flip, flip_the_name):  # only its own record was damaged
        other.reserve(GUARANTEE).settle("small")


def test_lines_that_are_known_to_be_lost_are_not_adopted(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger = make(url)
    Heads(str(file_of(url))).note("study", Head(9, "0" * 64))
    with pytest.raises(xp.errors.LedgerCorrupt, match="lines are lost"):
        ledger.adopt_heads(**OWNER)
    with pytest.raises(xp.InvalidValue, match="in memory"):
        Ledger(epsilon=1).adopt_heads(**OWNER)
    quiet = make(sqlite_url(), settings=Settings(heads=False))
    with pytest.raises(xp.InvalidValue, match="heads=True"):
        quiet.adopt_heads(**OWNER)


def test_heads_are_kept_from_then_on_where_they_were_not(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    quiet = make(url, settings=Settings(heads=False))
    quiet.reserve(GUARANTEE).settle("small")
    path = Path(f"{file_of(url)}-heads")
    assert not path.exists()
    Ledger.load(url, "study").reserve(GUARANTEE).settle("small")
    assert path.exists()
    path.unlink()
    with pytest.raises(xp.errors.LedgerCorrupt, match="noted since its line 3"):
        Ledger.load(url, "study", settings=Settings(patience=14)).reserve(GUARANTEE)


def test_a_backup_is_adopted_before_it_is_spent_from(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    transfer.back_up(url, str(tmp_path / "backup.db"))
    copy = Ledger.load(f"sqlite:///{tmp_path}/backup.db", "study")
    assert copy.verify() == ledger.head
    with pytest.raises(xp.errors.LedgerCorrupt, match="may be an old backup"):
        copy.reserve(GUARANTEE)
    copy.adopt_heads(**OWNER, known=ledger.head)
    copy.reserve(GUARANTEE).settle("small")


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o664])
def test_heads_are_for_whoever_may_use_the_database(sqlite_url: Callable[[], str], mode: int) -> None:
    """Found: for a second user, who may write the database, they could not be written."""
    url = sqlite_url()
    make(url, settings=Settings(heads=False))._store._engine.close()  # type: ignore[attr-defined]
    file_of(url).chmod(mode)
    Ledger.load(url, "study").reserve(GUARANTEE)
    assert stat.S_IMODE(os.stat(f"{file_of(url)}-heads").st_mode) == mode


def test_a_note_that_fails_twice_is_logged(sqlite_url: Callable[[], str], caplog: pytest.LogCaptureFixture) -> None:
    """Found: heads that a reader kept locked were never noted, and nobody was told."""
    url = sqlite_url()
    ledger = make(url)
    path = f"{file_of(url)}-heads"
    other = os.open(path, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    spending = ledger.reserve(GUARANTEE)
    assert caplog.messages == []
    spending.settle("small")
    ledger.reserve(GUARANTEE).settle("small")
    assert [message.partition(":")[0] for message in caplog.messages] == [
        f"heads cannot be noted in {path} (somebody else keeps it locked)"
    ]
    os.close(other)
    ledger.reserve(GUARANTEE).settle("small")
    assert Heads(str(file_of(url))).noted("study") == ledger.head


def test_where_no_heads_can_be_noted_it_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A disk that is full: nothing says later that heads are missing."""
    Path(f"{tmp_path}/full.db-heads").symlink_to("/dev/full")
    url = f"sqlite:///{tmp_path}/full.db"
    with pytest.raises(xp.errors.LedgerUnavailable, match="cannot be read"):
        make(url)
    Path(f"{tmp_path}/full.db-heads").unlink()
    assert not Heads(f"{tmp_path}/none/books.db").prepare("study")
    assert "lines could be lost unnoticed" in caplog.messages[-1]


def test_killed_between_the_place_and_the_first_head(sqlite_url: Callable[[], str]) -> None:
    """A place without a head is not a missing one, whether or not the ledger was made."""
    url = sqlite_url()
    Heads(str(file_of(url))).prepare("study")
    Heads(str(file_of(url))).prepare("never")
    ledger = make(url)
    assert Heads(str(file_of(url))).noted("study") == ledger.head
    make(url, name="never").reserve(GUARANTEE).settle("small")
