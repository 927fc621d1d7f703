"""Another SQLite library in the process that spends: it does not see the locks of ours, and ours not those of it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, file_of, make
from expost import Ledger
from expost.ledger.sqlite.guard import Guard
from expost.ledger.sqlite.identity import Files
from faulty import child

TRIALS = 10
locked = pytest.mark.skipif(not Guard.is_supported, reason="this system has no locks of open file descriptions")


def look(file: Path) -> int:
    """How many lines there are, as somebody reads them who knows nothing of ledgers."""
    with closing(sqlite3.connect(file)) as other:
        ((count,),) = other.execute("SELECT count(*) FROM expost_event").fetchall()
    return int(count)


def others_of(file: Path) -> set[str]:
    return {each.name.removeprefix(file.name) for each in file.parent.glob(f"{file.name}?*")}


@locked
def test_the_log_stays_while_another_library_looks(sqlite_url: Callable[[], str]) -> None:
    """Found: the ledger could not be used until the process was started again."""
    url = sqlite_url()
    ledger, file = make(url), file_of(url)
    for number in range(3):
        ledger.reserve(GUARANTEE).settle("small")
        assert look(file) == 1 + 2 * (number + 1)
        assert {"-wal", "-shm"} <= others_of(file)
    assert ledger.verify().sequence == 7
    ledger._store._engine.close()  # type: ignore[attr-defined]
    assert others_of(file) == {"-heads"}  # who is the last to close it tidies up, as ever


@locked
def test_readers_hold_it_too(sqlite_url: Callable[[], str]) -> None:
    """One engine that closes does not take the other's lock along."""
    url = sqlite_url()
    ledger, file = make(url), file_of(url)
    reading = Ledger.load(url, "study", read_only=True)
    assert reading.remaining == ledger.remaining
    for engine in (reading._store._engine, ledger._store._engine):  # type: ignore[attr-defined]
        engine.close()
        ledger.reserve(GUARANTEE).settle("small")
        look(file)
        assert {"-wal", "-shm"} <= others_of(file)
        assert reading.remaining == ledger.remaining
    for store in (reading._store, ledger._store):
        store._engine.close()  # type: ignore[attr-defined]
    still = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert not [each for each in still if each.startswith(str(file))]


@locked
def test_nothing_acknowledged_is_lost(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """Found: 23 of 25 processes that were looked into and then killed lost a settlement that was acknowledged."""
    for trial in range(TRIALS):
        url, log = sqlite_url(), tmp_path / f"{trial}.log"
        make(url)

        def work(url: str = url, log: Path = log) -> None:
            ledger = Ledger.load(url, "study")
            for _ in range(3):
                ledger.reserve(GUARANTEE).settle("small")
                look(file_of(url))
                ledger.reserve(GUARANTEE).settle("small")
                log.write_text(json.dumps(len(list(ledger.entries()))))
            os.kill(os.getpid(), signal.SIGKILL)

        _, status = os.waitpid(child(work), 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        ledger = Ledger.load(url, "study")
        assert len(list(ledger.entries())) == json.loads(log.read_text()) == 6
        ledger.verify()


@locked
def test_other_processes_do_not_start_over_with_the_locks(sqlite_url: Callable[[], str]) -> None:
    """Who opens a database that seems unused empties the file of locks, which others may be using."""
    url = sqlite_url()
    ledger, file = make(url), file_of(url)
    ledger.reserve(GUARANTEE).settle("small")
    for _ in range(3):
        look(file)
        pid = child(lambda: Ledger.load(url, "study").reserve(GUARANTEE).settle("small"))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        ledger.reserve(GUARANTEE).settle("small")
    assert ledger.verify().sequence == 1 + 2 * 7


@locked
def test_engines_that_open_and_close_at_once(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger, file = make(url, epsilon=50), file_of(url)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                xp.ledgers(url)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        ledger.reserve(GUARANTEE).settle("small")
    for thread in threads:
        thread.join()
    assert not failures
    look(file)
    ledger.reserve(GUARANTEE).settle("small")
    assert ledger.verify().sequence == 1 + 2 * 21


def test_without_such_locks_the_cause_is_named(sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "is_supported", False)
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    look(file_of(url))
    with pytest.raises(xp.errors.LedgerUnavailable, match=r"lost its write-ahead log.*sqlite3, pandas.*to_pandas\(\)"):
        ledger.reserve(GUARANTEE)


def test_a_log_that_goes_during_a_commit_acknowledges_nothing(
    sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look before the commit and the commit itself."""
    url = sqlite_url()
    ledger, check = make(url), Files.check
    ledger.reserve(GUARANTEE).settle("small")

    def late(files: Files) -> Any:
        check(files)
        Path(f"{file_of(url)}-wal").unlink(missing_ok=True)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Files, "check", late)
        with pytest.raises(xp.errors.LedgerUnavailable, match=r"lost its write-ahead log.*nothing was acknowledged"):
            ledger.reserve(GUARANTEE)
    with pytest.raises(xp.errors.LedgerUnavailable, match="lost its write-ahead log"):
        ledger.reserve(GUARANTEE)


@pytest.mark.skipif(not Guard.is_supported, reason="the system has no such locks")
def test_a_file_that_cannot_be_locked_yet_is_not_closed(tmp_path: Path) -> None:
    """Its closing would release SQLite's own locks: it stays for the next try, and is opened once."""
    path = tmp_path / "books.db"
    path.touch()
    guard = Guard(str(path))
    for _ in range(3):
        guard.hold()
        assert guard.is_wanted
        assert opened(path) == 1
    (tmp_path / "books.db-shm").touch()
    guard.hold()
    assert not guard.is_wanted
    assert opened(path) == 1
    guard.loosen()
    guard.release()
    assert opened(path) == 0


def opened(path: Path) -> int:
    """How often this process has a file open."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return sum(os.path.exists(link) and os.readlink(link) == str(path) for link in links)


@pytest.mark.parametrize("place", ["", "-wal", "-shm", "-heads"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    sqlite_url: Callable[[], str], place: str, read_only: bool
) -> None:
    """Found: to open it for reading waits until somebody writes into it, for ever."""
    url = sqlite_url()
    make(url)._store._engine.close()  # type: ignore[attr-defined]
    path = Path(f"{file_of(url)}{place}")
    path.unlink(missing_ok=True)
    os.mkfifo(path)

    def work() -> None:
        signal.alarm(60)
        try:
            ledger = Ledger.load(url, "study", read_only=read_only)
            if read_only:
                ledger.verify()
            else:
                ledger.reserve(GUARANTEE)
        except xp.errors.ExpostError:
            os._exit(7)
        os._exit(8)

    ended = os.waitstatus_to_exitcode(os.waitpid(child(work), 0)[1])
    assert ended in (7, 8)
    assert ended == 7 or (read_only and place in ("-wal", "-shm"))  # nothing of it is read there
