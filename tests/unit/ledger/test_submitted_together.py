"""Steps that one caller submits together: in few commits, all of them known when it returns."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import expost as xp
from books import wait_until, waiting
from expost.ledger.engine import Settings
from expost.ledger.writer import MOST, Writer, _surely


class Steps:
    """An engine whose steps are their own outcomes; it can fail, or wait."""

    local = True

    def __init__(self, patience: float = 10) -> None:
        self.settings = Settings(patience=patience)
        self.batches: list[list[Any]] = []
        self.errors: dict[int, BaseException] = {}
        """What is raised by the commit of that number."""
        self.go = threading.Event()
        self.go.set()
        self.closed = 0

    def apply(self, ledger: int, steps: list[Any]) -> list[Any]:
        self.batches.append(steps)
        assert self.go.wait(60)
        error = self.errors.get(len(self.batches))
        if error is not None:
            raise error
        return list(steps)

    def pause(self) -> None:
        pass

    def resume(self, *, child: bool) -> None:
        pass

    def leave(self) -> None:
        """It is nowhere known."""

    def close(self) -> None:
        self.closed += 1


def writer(engine: Steps) -> Writer:
    return Writer(engine)  # type: ignore[arg-type]


def test_outcomes_come_in_order_of_steps() -> None:
    engine = Steps()
    steps = [*range(3 * MOST)]
    refused = xp.errors.UnknownEntry("not allowed")
    asked: list[Any] = [*steps, refused]  # a step that is not allowed has its error as outcome
    assert writer(engine).submit_all(1, asked) == asked
    assert [step for batch in engine.batches for step in batch] == asked
    assert max(map(len, engine.batches)) <= MOST


def test_they_are_committed_together() -> None:
    """While one commit is under way the others wait for the next: of as many as there can be."""
    engine, found = Steps(), list[Any]()
    batch = writer(engine)
    engine.go.clear()
    caller = threading.Thread(target=lambda: found.extend(batch.submit_all(1, [*range(2 * MOST)])))
    caller.start()
    wait_until(lambda: engine.batches and batch._writer.waiting.qsize() + len(engine.batches[0]) == 2 * MOST)
    engine.go.set()
    caller.join(60)
    assert found == [*range(2 * MOST)]
    assert len(engine.batches) <= 3


def test_nothing_is_asked_of_the_database_for_no_steps() -> None:
    engine = Steps()
    assert writer(engine).submit_all(1, []) == []
    assert engine.batches == []


def test_a_commit_that_is_lost_is_raised() -> None:
    """After the others are known: whoever asks again knows that nothing of it is under way."""
    engine = Steps()
    batch = writer(engine)
    engine.go.clear()
    raised: list[BaseException] = []

    def call() -> None:
        try:
            batch.submit_all(1, [1, 2, 3])
        except xp.errors.LedgerUnavailable as error:
            raised.append(error)

    lost = xp.errors.LedgerUnavailable("gone")
    engine.errors = {1: lost, 2: lost}
    caller = threading.Thread(target=call)
    caller.start()
    wait_until(lambda: engine.batches)
    engine.go.set()
    caller.join(60)
    assert [type(error) for error in raised] == [xp.errors.LedgerUnavailable]
    engine.errors = {}
    assert batch.submit_all(1, [1, 2, 3]) == [1, 2, 3]


def test_what_its_turn_does_not_reach_within_patience_is_not_committed() -> None:
    engine = Steps(patience=0.05)
    batch = writer(engine)
    engine.go.clear()
    first = threading.Thread(target=lambda: batch.submit(1, 0))  # type: ignore[arg-type]
    first.start()
    wait_until(lambda: engine.batches)
    since = time.monotonic()
    with pytest.raises(xp.errors.Busy):
        batch.submit_all(1, [1, 2])  # type: ignore[list-item]
    assert time.monotonic() - since < 30
    engine.go.set()
    first.join(60)
    wait_until(lambda: not waiting(batch))
    assert batch.submit_all(1, [3]) == [3]  # type: ignore[list-item,comparison-overlap]
    assert engine.batches == [[0], [3]]  # and no commit of nothing


def test_what_was_begun_is_waited_for() -> None:
    """A step that is being committed is told of, however long that takes: nobody may take it for undone."""
    engine, found = Steps(patience=0.02), list[Any]()
    batch = writer(engine)
    engine.go.clear()
    caller = threading.Thread(target=lambda: found.extend(batch.submit_all(1, [1])))  # type: ignore[list-item]
    caller.start()
    wait_until(lambda: engine.batches)
    time.sleep(0.1)
    assert found == []
    engine.go.set()
    caller.join(60)
    assert found == [1]


def test_a_writer_that_is_garbage_ends_its_thread_and_closes_its_database() -> None:
    engine = Steps()
    batch = writer(engine)
    assert batch.submit_all(1, [1]) == [1]  # type: ignore[list-item,comparison-overlap]
    thread = batch._writer._thread
    assert thread is not None
    del batch
    wait_until(lambda: not thread.is_alive())
    assert engine.closed == 1


def test_nothing_is_submitted_while_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Steps()
    monkeypatch.setattr("sys.is_finalizing", lambda: True)
    with pytest.raises(xp.errors.LedgerUnavailable):
        writer(engine).submit_all(1, [1])  # type: ignore[list-item]
    assert engine.batches == []


def test_a_step_before_a_fork_is_tried_often_and_not_for_ever() -> None:
    """An interrupt must not leave it half done, and what never succeeds must not hang the process."""
    tries: list[int] = []

    def fails(times: int) -> None:
        tries.append(1)
        if len(tries) <= times:
            raise KeyboardInterrupt

    assert _surely(lambda: fails(0)) is None
    tries.clear()
    assert isinstance(_surely(lambda: fails(3)), KeyboardInterrupt)
    assert len(tries) == 4
    tries.clear()
    assert isinstance(_surely(lambda: fails(10**9)), KeyboardInterrupt)
    assert len(tries) == 100
