"""A server that goes back behind what it acknowledged, and standbys that do not confirm."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import expost as xp
from archive import Archive
from books import GUARANTEE, OWNER, make
from expost import Cost, Ledger
from expost.ledger import Settings
from expost.ledger.heads import Heads, of_this_machine
from faulty import child
from servers import Server

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
LATER = Settings(patience=14)
"""Of another process, as it were: with connections of its own, and nothing in memory."""


@pytest.fixture
def gone_back(postgres_url: Callable[[], str]) -> tuple[str, Archive]:
    """A ledger of which the server lost what was acknowledged last."""
    url = postgres_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    archive = Archive(url)
    ledger.reserve(GUARANTEE).settle("large")
    ledger._store._engine.close()  # type: ignore[attr-defined]
    archive.restore()
    return url, archive


def test_a_server_that_went_back_is_noticed_by_the_next_process(gone_back: tuple[str, Archive]) -> None:
    """Found: only the process that had written knew; every other one spent from the old books."""
    url, _ = gone_back
    later = Ledger.load(url, "study", settings=LATER)
    for work in (
        lambda: later.reserve(GUARANTEE),
        lambda: later.raise_limit(epsilon=9, **OWNER),
        later.verify,
        Ledger.load(url, "study", read_only=True).verify,
    ):
        with pytest.raises(xp.errors.LedgerCorrupt, match=r"ends at line 3, but .* notes 5:.* lines are lost"):
            work()
    with pytest.raises(xp.errors.LedgerCorrupt, match="lines are lost"):
        later.adopt_heads(**OWNER)
    assert later.spent == GUARANTEE.cost_of("small")
    later.close(**OWNER)
    assert later.closed


def test_books_that_went_another_way_are_noticed(gone_back: tuple[str, Archive]) -> None:
    url, _ = gone_back
    elsewhere = Ledger.load(url, "study", settings=Settings(heads=False))  # from another machine
    for _ in range(3):
        elsewhere.reserve(GUARANTEE).settle("small")
    with pytest.raises(xp.errors.LedgerCorrupt, match="has another line 5"):
        Ledger.load(url, "study", settings=LATER).reserve(GUARANTEE)


def test_a_server_that_goes_back_under_a_process_is_noticed(postgres_url: Callable[[], str]) -> None:
    """When it connects again, also if the books are longer by then."""
    url = postgres_url()
    ledger: Any = make(url)
    archive = Archive(url)
    ledger.reserve(GUARANTEE).settle("small")
    archive.restore()
    elsewhere = Ledger.load(url, "study", settings=Settings(heads=False))
    for _ in range(3):
        elsewhere.reserve(GUARANTEE).settle("large")
    ledger._store._engine._writer.close()
    with pytest.raises(xp.errors.LedgerCorrupt, match="has another line 3"):
        ledger.reserve(GUARANTEE)


def test_heads_of_servers_are_in_one_file_of_this_machine(postgres_url: Callable[[], str]) -> None:
    urls = [postgres_url(), postgres_url()]
    ledgers = [make(url) for url in urls]
    for ledger in ledgers:
        ledger.reserve(GUARANTEE).settle("small")
    heads = Heads("", of_this_machine())
    for url, ledger in zip(urls, ledgers, strict=True):
        key = ledger._store._engine.noted_as(1, "")  # type: ignore[attr-defined]
        assert heads.noted(key) == ledger.head
        assert "expost@" not in key  # whoever asks
        assert ledger.verify(ledger.head)
        again = Ledger.load(url, "study", settings=LATER)
        again.reserve(GUARANTEE).settle("small")
        assert heads.noted(key) == again.head
    assert os.stat(of_this_machine()).st_mode & 0o077 == 0


def test_heads_of_a_machine_that_are_damaged_are_adopted(
    postgres_url: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = postgres_url()
    make(url).reserve(GUARANTEE).settle("small")
    path = Path(of_this_machine())
    text = bytearray(path.read_bytes())
    text[30] ^= 1
    path.write_bytes(text)
    later = Ledger.load(url, "study", settings=LATER)
    with pytest.raises(xp.errors.LedgerCorrupt, match=r"are damaged.*adopt_heads"):
        later.reserve(GUARANTEE)
    later.adopt_heads(**OWNER)
    later.reserve(GUARANTEE).settle("small")
    assert [event.kind for event in later.audit_trail()] == [
        "create",
        "reserve",
        "settle",
        "remark",
        "reserve",
        "settle",
    ]
    with pytest.raises(xp.InvalidValue, match="heads=True"):
        Ledger.load(url, "study", settings=Settings(heads=False)).adopt_heads(**OWNER)


@pytest.mark.parametrize("place", ["nowhere", "a file"])
def test_where_no_heads_can_be_noted_spending_goes_on(
    postgres_url: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, place: str,
) -> None:  # fmt: skip
    """A service whose user has no home. It is told."""
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none" if place == "nowhere" else str(tmp_path / place))
    ledger = make(postgres_url())
    for _ in range(2):
        ledger.reserve(GUARANTEE).settle("small")
    assert len([each for each in caplog.messages if "heads cannot be noted" in each]) == 1
    ledger.verify()


def test_forked_copies_note_heads_in_turn(postgres_url: Callable[[], str]) -> None:
    """They have the file open each for itself."""
    url = postgres_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")

    def work() -> None:
        for _ in range(5):
            Ledger.load(url, "study").reserve(GUARANTEE, begin=False).void()

    pids = [child(work) for _ in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 3
    key = ledger._store._engine.noted_as(1, "")  # type: ignore[attr-defined]
    assert Heads("", of_this_machine()).noted(key) == ledger.head
    ledger.verify()


# ---- standbys


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    server = Server()
    yield server
    server.remove()


def wait_for_standby(server: Server, names: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        connection.execute("SELECT pg_reload_conf()")
    while True:
        with psycopg.connect(server.url, autocommit=True) as connection:
            ((now,),) = connection.execute("SHOW synchronous_standby_names").fetchall()
            if now == names:
                return


SOON = Settings(patience=1, deadline=9, beat=3600)


@contextmanager
def impatient(server: Server) -> Iterator[None]:
    """Somebody cancels all who wait for a standby, as operators do when one is gone."""
    over = threading.Event()

    def cancel() -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            while not over.wait(0.05):
                connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    thread = threading.Thread(target=cancel)
    thread.start()
    yield
    over.set()
    thread.join()


def test_a_cancelled_wait_for_a_standby_is_no_acknowledgement(primary: Server) -> None:
    """Found: the server warns and says that it is done; the standby that took over knew nothing of it."""
    url = primary.new_database("cancelled")
    ledger: Any = make(url, settings=SOON)
    spending = ledger.reserve(GUARANTEE)
    wait_for_standby(primary, "nobody")
    try:
        with impatient(primary):
            for work in (
                lambda: ledger.reserve(GUARANTEE),
                lambda: ledger.raise_limit(epsilon=9, **OWNER),
                lambda: spending.settle("small"),
            ):
                with pytest.raises(xp.errors.LedgerUnavailable, match="no synchronous standby confirmed it in time"):
                    work()
    finally:
        wait_for_standby(primary, "")
    ledger._store.beat()
    ledger._store.tend()
    assert ledger.reserved == Cost(0)
    ledger.verify()


def test_nothing_is_spent_without_a_standby_if_that_is_wanted(primary: Server) -> None:
    """By the settings of a process, or by the server for a role."""
    url = primary.new_database("wanted")
    ledger = make(url)
    careful = Ledger.load(url, "study", settings=Settings(standby=True))
    roled = Ledger.load(f"{url}?options=-cexpost.standby%3Don", "study")
    for each in (careful, roled):
        for work in (lambda each=each: each.reserve(GUARANTEE), lambda each=each: each.close(**OWNER)):
            with pytest.raises(xp.errors.RequestRejected, match="nothing is spent without a synchronous standby"):
                work()
    ledger.reserve(GUARANTEE).settle("small")
    assert careful.spent == GUARANTEE.cost_of("small")
