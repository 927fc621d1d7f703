"""Reading while others write, fork or lose their connection."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

import expost as xp
from books import GUARANTEE, execute, make
from expost import Cost, Guarantee
from expost.ledger import Settings, liveness
from expost.ledger.verify.tables import Verification

pytestmark = pytest.mark.slow


def test_a_reader_that_is_not_idle_is_not_used(new_url: Callable[[], str]) -> None:
    """However it came to that: it would show what held before."""
    ledger = make(new_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    assert ledger.spent == Cost(0)
    server = isinstance(engine._reader, psycopg.Connection)
    engine._reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ" if server else "BEGIN")
    engine._reader.execute("SELECT count(*) FROM expost_entry").fetchall()
    ledger.reserve(GUARANTEE).settle("small")
    assert ledger.spent == GUARANTEE.cost_of("small")
    ledger.verify()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_the_books_are_read(new_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for the end: they are read again, from the beginning. No connection lives on in two."""
    ledger = make(new_url())
    ledger.reserve(GUARANTEE)
    real, times = Verification._instant, list[int]()
    reading, forked = threading.Event(), threading.Event()

    def instant(*given: Any) -> Any:
        times.append(1)
        reading.set()
        assert forked.wait(60)
        return real(*given)

    monkeypatch.setattr(Verification, "_instant", instant)
    verifier = threading.Thread(target=ledger.verify)
    verifier.start()
    assert reading.wait(60)
    pid = os.fork()
    if not pid:
        os._exit(int(ledger.reserved != GUARANTEE.worst_case))
    forked.set()
    assert os.waitpid(pid, 0)[1] == 0
    verifier.join()
    assert len(times) == 2


def test_a_connection_that_is_lost_while_reading(
    postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is compared with what was read at another instant: it is read again, or the reader is told."""
    url = postgres_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    store: Any = ledger._store
    real, losses = Verification._instant, [1]

    def lose(*given: Any) -> Any:
        ledger.reserve(GUARANTEE).settle("small")
        if losses and losses.pop():
            execute(url, f"SELECT pg_terminate_backend({store._engine._shown[-1]().info.backend_pid})")
        return real(*given)

    monkeypatch.setattr(Verification, "_instant", lose)
    assert ledger.verify().sequence == 5  # the second time it was read, which began after the first loss
    losses[:] = [1] * 5
    with pytest.raises(xp.errors.LedgerUnavailable, match="lost while the ledger was being read"):
        ledger.verify()
    monkeypatch.undo()
    ledger.verify()
    entries = ledger.entries()
    first = next(entries)
    execute(url, f"SELECT pg_terminate_backend({store._engine._reader.info.backend_pid})")
    assert first.state == "settled"
    assert "remaining" in ledger.statement()
    execute(url, f"SELECT pg_terminate_backend({store._engine._reader.info.backend_pid})")
    assert len(list(ledger.entries())) == ledger.verify().sequence // 2


def test_a_heart_beats_while_a_ledger_is_verified(new_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(new_url())
    ledger.reserve(GUARANTEE)
    store: Any = ledger._store
    real, reading, beaten = Verification._instant, threading.Event(), threading.Event()

    def instant(*given: Any) -> Any:
        reading.set()
        assert beaten.wait(60)
        return real(*given)

    monkeypatch.setattr(Verification, "_instant", instant)
    verifier = threading.Thread(target=ledger.verify)
    heart = liveness.Heart(600)
    heart._stores.add(store)
    beat = threading.Thread(target=lambda: (heart.beat(), ledger.remaining, beaten.set()))
    verifier.start()
    assert reading.wait(60)
    beat.start()
    in_time = beaten.wait(30)
    beaten.set()
    verifier.join()
    beat.join()
    assert in_time


@pytest.mark.parametrize("last", [None, 9])
def test_entries_are_as_they_were_when_they_were_asked_for(new_url: Callable[[], str], last: int | None) -> None:
    """What ended meanwhile was reserved then, and what was reserved meanwhile was not there."""
    ledger = make(new_url())
    first, second = ledger.reserve(GUARANTEE), ledger.reserve(GUARANTEE)
    first.settle("small")
    entries, before, lines = ledger.entries(last=last), ledger.statement(), ledger.statement_lines()
    second.settle("small")
    ledger.reserve(GUARANTEE)
    found = list(entries)
    assert [entry.state for entry in found] == ["settled", "reserved"]
    assert [entry.charged for entry in found] == [GUARANTEE.cost_of("small"), None]
    assert "\n".join(lines) == before


def test_memory_does_not_grow_with_the_number_of_entries(sqlite_url: Callable[[], str]) -> None:
    """Verification, statements and exports of many entries are read page by page: in one page, they take far more."""
    url, guarantee = sqlite_url(), Guarantee.uniform("0.5")
    paged = make(url, epsilon=10**4, delta=1, settings=Settings(synchronous="OFF", heads=False, page=20))
    whole = xp.Ledger.load(url, "study", recover=False, settings=Settings(heads=False, page=10**4))

    def spend(count: int) -> list[tuple[float, float]]:
        for _ in range(count):
            paged.reserve(guarantee).settle("done")
        return list(zip(peaks(paged), peaks(whole), strict=True))

    for (few, few_at_once), (more, more_at_once) in zip(spend(150), spend(150), strict=True):
        assert more_at_once > 1.7 * few_at_once
        assert more - few < (more_at_once - few_at_once) / 3  # some is kept, up to a limit, to be used again


def peaks(ledger: Any) -> list[float]:
    """The most memory that each pass over all entries takes."""
    by_day = partial(ledger.statement_lines, by="day")
    passes: list[Callable[[], Iterator[object]]] = [ledger.entries, ledger.statement_lines, by_day, ledger.audit_trail]
    return [peak(ledger.verify), *(peak(partial(exhaust, work)) for work in passes)]


def exhaust(work: Callable[[], Iterator[object]]) -> None:
    deque(work(), maxlen=0)


def peak(work: Callable[[], object]) -> float:
    """The most memory that Python takes during a call, the second time: some is kept to be used again."""
    gc.collect()
    work()
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_verification_and_statements_hold_no_snapshot(sqlite_url: Callable[[], str]) -> None:
    """Found: a verification held one snapshot to its end, and SQLite's log grew by 20 kB with every pair meanwhile."""
    url = sqlite_url()
    ledger: Any = make(url, epsilon=100)
    for _ in range(3):
        ledger.reserve(GUARANTEE).settle("small")
    reader: Any = xp.Ledger.load(url, "study")
    engine = reader._store._engine
    real, log = engine.rows, ledger._store._engine._connect()
    held: list[int] = []

    def is_held() -> int:
        """Whether somebody reads what is not the newest: then the log cannot be emptied."""
        ledger.reserve(GUARANTEE).settle("small")
        found: int = log.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return found

    def rows(sql: str, *values: Any) -> list[Any]:
        found: list[Any] = real(sql, *values)
        held.append(is_held())
        return found

    engine.rows = rows
    reader.verify()
    list(reader.statement_lines())
    assert len(held) > 4
    assert not any(held)
    log.set_busy_timeout(0)
    with engine.snapshot() as ask:
        ask("SELECT count(*) FROM expost_event")
        assert is_held() == 1  # what the test is there to find, it finds
