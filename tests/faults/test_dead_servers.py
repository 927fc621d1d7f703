"""A server that accepts connections and never answers holds up those who ask it, and nobody else."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import expost as xp
from books import GUARANTEE, make, wait_until
from expost import Ledger
from expost.ledger import Settings
from expost.ledger.lost import LOST_SERVERS
from servers import Proxy, Server

pytestmark = [pytest.mark.counted, pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")]
ENDLESS = Settings(patience=0, deadline=3000)
"""Nobody gives up before the test is over: what ends does not wait."""


class Mute:
    """A server that accepts and never answers, until it drops everybody."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        port = self._socket.getsockname()[1]
        self.url = f"postgresql://127.0.0.1:{port}/books?sslmode=disable&gssencmode=disable"
        self.callers: list[socket.socket] = []
        self.count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            self.callers.append(caller)
            self.count += 1

    def drop(self) -> None:
        while self.callers:
            self.callers.pop().close()

    def close(self) -> None:
        self._socket.close()
        self.drop()


@pytest.fixture
def mute() -> Iterator[Mute]:
    mute = Mute()
    yield mute
    mute.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def load(mute: Mute) -> Ledger:
    return Ledger.load(mute.url, "study", settings=ENDLESS)


def forked(work: Callable[[], object] = lambda: None) -> int:
    """What a forked copy of this process ends with."""
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"child failed: {error!r}\n".encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_files_and_forks_do_not_wait_for_a_server(
    mute: Mute, threads: ThreadPoolExecutor, sqlite_url: Callable[[], str]
) -> None:
    """Found: there was one lock for all loads, lists of ledgers and forks."""
    asked: list[Future[Any]] = [threads.submit(load, mute), threads.submit(make, mute.url, settings=ENDLESS)]
    wait_until(lambda: mute.count == 2)
    url = sqlite_url()
    make(url).reserve(GUARANTEE).settle("small")
    assert [each.name for each in xp.ledgers(url)] == ["study"]
    assert forked(lambda: Ledger.load(url, "study").reserve(GUARANTEE).settle("small")) == 0
    Ledger.load(url, "study").verify()
    assert not any(each.done() for each in asked)
    mute.drop()
    assert {type(each.exception()) for each in asked} == {xp.errors.LedgerUnavailable}


def test_a_server_that_does_not_answer_is_asked_once(
    mute: Mute, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: four loads waited one after the other, each as long as the first."""
    now = [100.0]
    monkeypatch.setattr(LOST_SERVERS, "now", lambda: now[0])
    asked = [threads.submit(load, mute) for _ in range(4)]
    wait_until(lambda: mute.count)
    mute.drop()
    errors = [each.exception() for each in asked]
    assert {type(error) for error in errors} == {xp.errors.LedgerUnavailable}
    assert mute.count == 1
    for ask in (load, lambda mute: xp.ledgers(mute.url)):
        with pytest.raises(xp.errors.LedgerUnavailable, match=r"does not answer.*so it was 0 seconds ago"):
            ask(mute)
    assert mute.count == 1
    now[0] += LOST_SERVERS.seconds
    again = threads.submit(load, mute)
    wait_until(lambda: mute.count == 2)
    mute.drop()
    assert again.exception()


def test_a_server_that_answers_again_is_used(
    server: Server, postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found for a short while is found anew after it."""
    proxy = Proxy(server.port)
    url = postgres_url()
    make(url)
    through = url.replace(f":{server.port}/", f":{proxy.port}/")
    proxy.swallowing = True
    with pytest.raises(xp.errors.LedgerUnavailable):
        Ledger.load(through, "study", settings=Settings(patience=0, deadline=2))
    proxy.swallowing = False
    with pytest.raises(xp.errors.LedgerUnavailable, match="seconds ago"):
        Ledger.load(through, "study")
    monkeypatch.setattr(LOST_SERVERS, "seconds", 0)
    Ledger.load(through, "study").reserve(GUARANTEE).settle("small")
    assert xp.ledgers(through)
    proxy.close()


def test_a_fork_does_not_wait_for_whoever_is_answered(
    server: Server, postgres_url: Callable[[], str], threads: ThreadPoolExecutor
) -> None:
    """A reader keeps its connection, and the child, which lets go of it, has its own: both go on."""
    url, key = postgres_url(), 4711
    ledger = make(url)
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    blocked = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
    with psycopg.connect(url) as rude:
        rude.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        reading = threads.submit(engine.rows, "SELECT 7 FROM pg_advisory_xact_lock(?)", key)
        wait_until(lambda: rude.execute(blocked, (key,)).fetchall())
        assert forked(lambda: Ledger.load(url, "study").reserve(GUARANTEE).settle("small")) == 0
        assert not reading.done()
    assert reading.result() == [(7,)]
    ledger.reserve(GUARANTEE).settle("small")
    assert ledger.verify().sequence == 5
