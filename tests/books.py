"""What tests of durable ledgers share."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import psycopg
import pytest

from expost import Guarantee, Ledger
from expost.ledger.engine import Beat, Settings, Step
from expost.ledger.liveness import Heart

GUARANTEE = Guarantee({"large": 0.75, "small": 0.25}, delta="1e-6")

OWNER = {"by": "me", "reason": "because"}

NewLedger: TypeAlias = Callable[..., Ledger]
"""Makes an empty ledger, given a limit and options."""


ALONE = Settings(beat=3600)
"""For tests that change by hand whose process is alive: no heartbeat comes between, which would forfeit entries."""


def make(url: str, **options: Any) -> Ledger:
    given = {"epsilon": 5, "delta": 1e-3, "neighbours": "add-remove", "unit": "person", **options}
    return Ledger.create(url, given.pop("name", "study"), **given)


def execute(url: str, *statements: str) -> None:
    """By hand, past every rule of the library."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(10_000)
        for statement in statements:
            connection.execute(statement).fetchall()
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            for statement in statements:
                server.execute(statement)


def disarm(url: str, table: str) -> None:
    """By hand: a table no longer defends itself."""
    if url.startswith("postgres"):
        execute(url, f"ALTER TABLE {table} DISABLE TRIGGER USER")
        return
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.set_busy_timeout(10_000)
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,))
    for (trigger,) in found.fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.close()


def wait_until(reached: Callable[[], Any]) -> None:
    """Wait until something holds, for a few minutes at most."""
    until = time.monotonic() + 240
    while not reached():
        assert time.monotonic() < until, "it did not happen within four minutes"
        time.sleep(0.0005)


def waiting(batch: Any) -> int:
    """How many wait for their turn."""
    return int(batch._writer.waiting.qsize() + batch._writer._wanted)


def beat(*ledgers: Ledger) -> None:
    """One beat for these ledgers only: others of this process may be on servers that are gone, and cost patience."""
    heart = Heart(600)
    heart._stores.update(ledger._store for ledger in ledgers)  # type: ignore[misc]
    heart.beat()


class Answers(list[Any]):
    """What callers got who came while a commit was under way, in the order in which they came."""

    def __init__(self, ledger: Ledger) -> None:
        self._batch = ledger._store._writer  # type: ignore[attr-defined]
        self.threads: list[threading.Thread] = []

    def ask(self, work: Callable[[], Any]) -> None:
        place = len(self)
        self.append(None)

        def call() -> None:
            try:
                self[place] = work()
            except BaseException as error:
                self[place] = error

        self.threads.append(threading.Thread(target=call))
        before = waiting(self._batch)
        self.threads[-1].start()
        wait_until(lambda: waiting(self._batch) > before or not self.threads[-1].is_alive())


@contextlib.contextmanager
def held(ledger: Ledger) -> Iterator[Answers]:
    """Until the block ends a commit is under way; whoever asks inside is committed together afterwards."""
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    started, go, real = threading.Event(), threading.Event(), engine.apply

    def slow(*given: Any) -> Any:
        engine.apply = real
        started.set()
        assert go.wait(60)
        return real(*given)

    engine.apply = slow
    first = threading.Thread(
        target=lambda: ledger._store._do(Beat())  # type: ignore[attr-defined]
    )
    first.start()
    assert started.wait(60)
    answers = Answers(ledger)
    yield answers
    go.set()
    for thread in (first, *answers.threads):
        thread.join(60)


class Noted:
    """In a writer's place: notes the steps, and takes none."""

    def __init__(self, real: Any) -> None:
        self.steps: list[Step] = []
        self.given = real.given

    def submit(self, ledger: int, step: Step) -> Any:
        self.steps.append(step)
        raise InterruptedError


def steps_of(store: Any, *works: Callable[[], object]) -> list[Step]:
    """The steps that these would take, without taking them."""
    noted, real = Noted(store._writer), store._writer
    store._writer = noted
    for work in works:
        with pytest.raises(InterruptedError):
            work()
    store._writer = real
    store._orphans.clear()
    return noted.steps


def settle(ledger: Ledger, guarantee: Guarantee, part: str = "small") -> None:
    with ledger.reserve(guarantee) as spending:
        spending.settle(part)


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def backup_of(url: str, folder: Path) -> Path:
    """A copy of a ledger's file and heads, with open entries, as a process that died left it."""
    folder.mkdir()
    shutil.copy(f"{file_of(url)}-heads", folder / "books.db-heads")
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.execute("VACUUM INTO ?", (str(folder / "books.db"),)).fetchall()
    connection.close()
    return folder / "books.db"
