"""Every call to PostgreSQL ends within a stated time, whatever network, server and locks do."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import expost as xp
from books import GUARANTEE, make
from expost import Ledger
from expost.ledger import Settings, deadline
from servers import Proxy, Server

pytestmark = pytest.mark.counted
QUICK = Settings(patience=1.0, deadline=2.0)
BOUND = 30.0
"""Seconds: what is stated is six at most, to which a machine that is busy adds what it likes. Without a deadline it
would be for ever."""
MANY = 20
"""Ledgers of one address. If each waited for those before it, the last would wait for longer than the bound."""


def quick(url: str, name: str = "study") -> Ledger:
    """A new ledger whose calls end soon; to make it may take long."""
    make(url, name=name)
    return Ledger.load(url, name, settings=QUICK)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


def within(work: Callable[[], Any]) -> Any:
    """What a call raises, and that it ends in time."""
    start = time.monotonic()
    with pytest.raises(xp.errors.LedgerUnavailable) as error:
        work()
    assert time.monotonic() - start < BOUND
    return error.value


def test_a_dropped_flow(server: Server, proxy: Proxy, postgres_url: Callable[[], str]) -> None:
    url = postgres_url().replace(f":{server.port}/", f":{proxy.port}/")
    ledger = quick(url)
    spending = ledger.reserve(GUARANTEE)
    proxy.swallowing = True
    error = within(lambda: spending.settle("small"))
    assert "does not answer: no answer within 2 seconds; what was reserved stays reserved" in str(error)
    within(lambda: ledger.remaining)
    within(lambda: Ledger.load(url, "study", settings=QUICK))
    start = time.monotonic()
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    assert time.monotonic() - start < BOUND
    proxy.swallowing = False
    ledger._store.tend()  # type: ignore[attr-defined]
    assert spending.entry.state in ("settled", "forfeited")
    ledger.verify()


def test_a_stopped_server(tmp_path: Path) -> None:
    server = Server()
    try:
        ledger = quick(server.url)
        ledger.reserve(GUARANTEE).settle("small")
        engine: Any = ledger._store._engine  # type: ignore[attr-defined]
        backend = engine._writer.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            within(lambda: ledger.reserve(GUARANTEE))
        finally:
            os.kill(backend, signal.SIGCONT)
        ledger.reserve(GUARANTEE).settle("small")
        ledger.verify()
    finally:
        server.remove()


def test_a_lock_that_somebody_holds(postgres_url: Callable[[], str]) -> None:
    locks = ("SELECT 1 FROM expost_ledger FOR UPDATE", "LOCK TABLE expost_entry")
    urls = [postgres_url() for _ in locks]
    ledgers = [make(url, settings=replace(QUICK, deadline=8.0)) for url in urls]  # a busy machine answers late
    with contextlib.ExitStack() as rude, ThreadPoolExecutor(len(locks)) as threads:
        for url, lock in zip(urls, locks, strict=True):
            rude.enter_context(psycopg.connect(url)).execute(lock)
        errors = list(threads.map(lambda ledger: within(lambda: ledger.reserve(GUARANTEE)), ledgers))
    assert [type(error) for error in errors] == [xp.errors.Busy, xp.errors.Busy]
    for ledger in ledgers:
        ledger.reserve(GUARANTEE).settle("small")


def test_many_ledgers_of_one_address_wait_no_longer_than_one(new_url: Callable[[], str]) -> None:
    """Found: they were tried one after the other, each for its whole patience."""
    url = new_url()
    patient = replace(QUICK, patience=2.0)
    for number in range(MANY):
        make(url, name=f"n{number}")
    ledgers = [Ledger.load(url, f"n{number}", settings=patient) for number in range(MANY)]
    for ledger in ledgers:
        ledger.reserve(GUARANTEE).settle("small")
    with locked(url), ThreadPoolExecutor(MANY) as threads:
        took = list(threads.map(lambda ledger: timed(lambda: ledger.reserve(GUARANTEE)), ledgers))
    assert min(took) >= 0.9 * patient.patience
    assert max(took) < BOUND
    for ledger in ledgers:
        ledger.reserve(GUARANTEE).settle("small")


def test_many_readers_of_an_address_out_of_reach_wait_no_longer_than_one(
    server: Server, proxy: Proxy, postgres_url: Callable[[], str]
) -> None:
    """Found: each waited for its turn to find out once more that nobody answers."""
    url = postgres_url().replace(f":{server.port}/", f":{proxy.port}/")
    ledgers = [quick(url, f"n{number}") for number in range(MANY)]
    proxy.swallowing = True
    with ThreadPoolExecutor(MANY) as threads:
        took = list(threads.map(lambda ledger: timed(lambda: ledger.remaining), ledgers))
    assert max(took) < BOUND
    proxy.swallowing = False
    assert ledgers[0].remaining


@contextlib.contextmanager
def locked(url: str) -> Iterator[None]:
    """Meanwhile another process holds what every reservation needs."""
    if url.startswith("postgres"):
        with psycopg.connect(url) as rude:
            rude.execute("SELECT 1 FROM expost_ledger FOR UPDATE")
            yield
        return
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.close(True)


def timed(work: Callable[[], object]) -> float:
    """How long it takes to fail."""
    start = time.monotonic()
    with pytest.raises(xp.errors.LedgerUnavailable):
        work()
    return time.monotonic() - start


def test_loading_is_patient_during_a_restart() -> None:
    server = Server()
    try:
        make(server.url)
        server.stop()
        starting = threading.Timer(0.3, server.start)
        starting.start()
        assert Ledger.load(server.url, "study", settings=Settings(patience=30)).remaining
        starting.join()  # it waits for the server, too, which must not be gone before
    finally:
        server.remove()


def test_fsync_that_is_turned_off_later_is_noticed() -> None:
    server = Server()
    try:
        ledger = make(server.url)
        ledger.reserve(GUARANTEE).settle("small")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        until = time.monotonic() + 60

        def spend() -> None:
            while time.monotonic() < until:
                ledger.reserve(GUARANTEE, begin=False).void()

        with pytest.raises(xp.errors.LedgerUnavailable, match=r"fsync.*is off"):
            spend()
    finally:
        server.remove()


STATED = 4.0
SETTINGS = Settings(patience=2.0, deadline=2.0)


def left_behind(spending: xp.ledger.Reservation, before: Callable[[], object], *, settle: bool = True) -> float:
    """Leave a block, or fail to settle in it, after something went wrong; how long that took."""
    error: Any = None
    try:
        with spending:
            before()
            begun = time.monotonic()
            if settle:
                spending.settle("small")
    except xp.errors.LedgerUnavailable as raised:
        error = raised
    took = time.monotonic() - begun
    assert error.__notes__ == [f"expost: entry {spending.id} stays reserved, and will be charged its worst case"]
    return took


@pytest.mark.parametrize("settle", [True, False])
def test_a_block_ends_within_one_deadline(
    server: Server, proxy: Proxy, postgres_url: Callable[[], str], settle: bool
) -> None:
    """Found: the settlement, a forfeit, a look at the entry and another forfeit, each with a deadline of its own."""
    url = postgres_url()
    make(url)
    ledger = Ledger.load(url.replace(f":{server.port}/", f":{proxy.port}/"), "study", settings=SETTINGS)
    spending = ledger.reserve(GUARANTEE)
    took = left_behind(spending, lambda: setattr(proxy, "swallowing", True), settle=settle)
    assert took < 2 * STATED  # it took sixteen seconds
    proxy.swallowing = False
    ledger._store.tend()  # type: ignore[attr-defined]
    assert spending.entry.state in ("settled", "forfeited")


def test_a_block_on_a_locked_file_ends_within_its_patience(sqlite_url: Callable[[], str]) -> None:
    url = sqlite_url()
    ledger = make(url, settings=Settings(patience=3))
    spending = ledger.reserve(GUARANTEE)
    rude = apsw.Connection(url.removeprefix("sqlite:///"))
    assert left_behind(spending, lambda: rude.execute("BEGIN IMMEDIATE")) < 6  # it took nine seconds
    rude.close()
    ledger._store.tend()  # type: ignore[attr-defined]
    assert spending.entry.state == "forfeited"


def test_deadlines_within_each_other() -> None:
    def left(seconds: float = 60) -> float:
        return deadline.time_left(seconds)

    assert 49 < deadline.all_within(50, left) <= 50
    assert deadline.all_within(50, left, 1) == 1
    assert deadline.all_within(50, deadline.all_within, 100, left) <= 50
    assert deadline.all_within(50, deadline.all_within, 0, left) == 0
    assert left() == 60


@pytest.mark.uncounted  # an interrupt within the counter would leave it locked
def test_an_interrupt_leaves_no_deadline_behind() -> None:
    """Found: one that was over stayed if Ctrl-C came just as it was set back, and every later call failed."""
    struck, until = 0, time.monotonic() + 20
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        while struck < 300 and time.monotonic() < until:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + struck % 7 * 0.00003)
                while True:
                    deadline.all_within(0, deadline.all_within, 0, len, "")
            except KeyboardInterrupt:
                struck += 1
            assert deadline.time_left(60) == 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert struck > 50


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
