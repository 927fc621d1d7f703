"""Many callers, one commit; and callers that are interrupted."""

from __future__ import annotations

import copy
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, held, make, wait_until, waiting
from expost import Cost
from expost.ledger import writer as writer_module
from expost.ledger.engine import Settings, alone
from expost.ledger.operations import CreateAccount
from expost.ledger.writer import Writer


class Slow:
    """An engine that can be told to wait, to fail, or to be interrupted; it counts its commits."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.go = threading.Event()
        self.error: BaseException | None = None
        self.local = True
        self.settings = Settings()

    def pause(self) -> None:
        pass

    def resume(self, *, child: bool) -> None:
        pass

    leave = close = pause

    def apply(self, ledger: int, steps: list[Any]) -> list[Any]:
        self.batches.append(steps)
        assert self.go.wait(60)
        if self.error is not None and any(steps):
            raise copy.copy(self.error)
        return list(steps)


def queued(batch: Writer, count: int) -> Callable[[], bool]:
    return lambda: waiting(batch) >= count


def crowd(batch: Writer, count: int, engine: Slow) -> list[Any]:
    results: list[Any] = [None] * count

    def call(n: int) -> None:
        try:
            results[n] = batch.submit(1, n)
        except BaseException as error:
            results[n] = error

    threads = [threading.Thread(target=call, args=(n,)) for n in range(count)]
    threads[0].start()
    wait_until(lambda: engine.batches)
    batch._writer.start()  # two callers at once may start two threads, of which each takes a request
    for thread in threads[1:]:
        thread.start()
    wait_until(queued(batch, count - 1))
    engine.go.set()
    for thread in threads:
        thread.join(60)
    return results


def test_callers_that_wait_are_committed_together() -> None:
    engine = Slow()
    assert crowd(Writer(engine), 20, engine) == list(range(20))  # type: ignore[arg-type]
    assert [len(batch) for batch in engine.batches] == [1, 19]


@pytest.mark.parametrize("error", [xp.errors.LedgerUnavailable("gone"), RuntimeError(), KeyboardInterrupt()])
def test_a_commit_that_fails_fails_for_all_who_were_in_it(error: BaseException) -> None:
    engine = Slow()
    engine.error = error
    batch = Writer(engine)  # type: ignore[arg-type]
    first, *others = crowd(batch, 5, engine)
    assert first == 0
    assert all(isinstance(other, type(error) | xp.errors.LedgerUnavailable) for other in others)
    assert len({id(other) for other in others}) == 4
    together = [1, 4] if isinstance(error, xp.errors.LedgerUnavailable) else [1, 4, 1, 1, 1, 1]
    assert [len(operations) for operations in engine.batches] == together
    engine.error = None
    assert batch.submit(1, 9) == 9


POISON = {"lone": "\ud800", "zero": "\0", "long": secrets.token_hex(6000)}


@pytest.mark.parametrize("poison", POISON)
def test_a_step_that_the_database_refuses_harms_nobody_else(new_url: Callable[[], str], poison: str) -> None:
    """Whatever slips through the checks: the rest of the batch goes on, at once, each step by itself."""
    ledger = make(new_url())
    spending, store = ledger.reserve(GUARANTEE), ledger._store
    bad = CreateAccount(("study", POISON[poison]), Cost.of_units(2**70))
    since = time.monotonic()
    with held(ledger) as answers:
        answers.ask(lambda: store._do(bad))  # type: ignore[attr-defined]
        answers.ask(lambda: spending.settle("small"))
    assert isinstance(answers[0], Exception)
    assert answers[1].charged == GUARANTEE.cost_of("small")
    assert time.monotonic() - since < Settings().patience  # nobody waited for the database to change its mind
    ledger.verify()


def test_an_interrupt_while_the_writer_starts_starts_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is committed once, and nobody waits for ever."""
    engine = Slow()
    engine.go.set()
    batch: Any = Writer(engine)  # type: ignore[arg-type]
    batch._writer._busy = True  # so that the thread is needed
    start, struck = threading.Thread.start, [0]

    def striking(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "expost-writer" and struck[0] < 2:
            struck[0] += 1
            thread._started.clear()  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", striking)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            batch.submit(1, -1)
    monkeypatch.undo()
    done: list[Any] = []
    real = engine.apply
    monkeypatch.setattr(engine, "apply", lambda *given: (time.sleep(0.001), real(*given))[1])

    def ask(first: int) -> None:
        done.extend(batch.submit(1, n) for n in range(first, first + 50))

    threads = [threading.Thread(target=ask, args=(50 * k,), daemon=True) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(300))
    asked = [step for steps in engine.batches for step in steps]
    assert sorted(n for n in asked if n >= 0) == list(range(300))
    assert sum(getattr(thread, "_target", None) == batch._writer._run for thread in threading.enumerate()) == 1


def test_a_finalizer_in_the_writer_thread_is_refused() -> None:
    """It would wait for its own thread; it may run at any call there, also between two turns."""
    engine = Slow()
    engine.go.set()
    batch: Any = Writer(engine)  # type: ignore[arg-type]
    batch._writer._busy = True
    refused: list[BaseException] = []

    class Collecting(threading.Event):
        """What the garbage collector does while a ticket is given back."""

        def release(self) -> None:
            try:
                batch.submit(1, 1)
            except xp.errors.LedgerUnavailable as error:
                refused.append(error)
            self.set()

        def acquire(self, timeout: float = -1) -> bool:
            assert self.wait(60)
            return True

    class Collected(writer_module._Ticket):
        def __init__(self, ledger: int, step: Any) -> None:
            super().__init__(ledger, step)
            self.done = Collecting()  # type: ignore[assignment]

    usual, batch._ticket = batch._ticket, Collected
    assert batch.submit(1, 0) == 0
    batch._ticket = usual
    assert "finalizer" in str(refused[0])
    assert batch.submit(1, 2) == 2


def test_an_interrupt_while_a_fork_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held is given back, nothing lives on in two processes, and the next one is served."""
    engine = Slow()
    batch: Any = Writer(engine)  # type: ignore[arg-type]
    rested: list[str] = []
    monkeypatch.setattr(engine, "pause", lambda: rested.append("pause"))
    monkeypatch.setattr(engine, "resume", lambda *, child: rested.append("resume"))
    committing = threading.Thread(target=batch.submit, args=(1, 0))
    committing.start()
    wait_until(lambda: engine.batches)
    before, struck = signal.getsignal(signal.SIGALRM), []

    def strike(*_: Any) -> None:
        struck.append(1)
        engine.go.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            writer_module._before()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (struck, rested) == ([1], ["pause"])
    writer_module._after(child=False)
    assert rested == ["pause", "resume"]
    committing.join(60)
    served = threading.Thread(target=batch.submit, args=(1, 1), daemon=True)
    served.start()
    served.join(60)
    assert [operations[0] for operations in engine.batches] == [0, 1]


def test_a_process_may_end_while_a_thread_commits(new_url: Callable[[], str]) -> None:
    """Daemon threads are cut off; the database is let go of between two commits, without a word."""
    url = new_url()
    make(url)
    program = (
        "import sys, threading, time, expost as xp\n"
        "ledger = xp.Ledger.load(sys.argv[1], 'study')\n"
        "guarantee = xp.Guarantee({'small': '0.000001', 'large': '0.000002'})\n"
        "def spend():\n"
        "    while True:\n"
        "        ledger.reserve(guarantee).settle('small')\n"
        "threading.Thread(target=spend, daemon=True).start()\n"
        "time.sleep(0.2)\n"
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, timeout=600)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_caller_that_is_interrupted_takes_nobody_along() -> None:
    """It stops waiting; what was not taken up yet is not done, and the next one is served."""
    engine = Slow()
    batch = Writer(engine)  # type: ignore[arg-type]

    class Interrupted:
        def acquire(self, timeout: float = -1) -> None:
            raise KeyboardInterrupt

        release = acquire

    waiting = threading.Thread(target=batch.submit, args=(1, 0))
    waiting.start()
    wait_until(lambda: engine.batches)

    class Struck(writer_module._Ticket):
        def __init__(self, ledger: int, step: Any) -> None:
            super().__init__(ledger, step)
            self.done = Interrupted()  # type: ignore[assignment]

    usual, batch._ticket = batch._ticket, Struck
    with pytest.raises(KeyboardInterrupt):
        batch.submit(1, 1)
    batch._ticket = usual
    engine.go.set()
    waiting.join(60)
    assert batch.submit(1, 2) == 2
    assert [list(steps) for steps in engine.batches] == [[0], [2]]


@pytest.mark.parametrize(("error", "tried"), [(xp.errors.Busy("locked"), 2), (xp.errors.LedgerCorrupt("broken"), 4)])
def test_a_database_that_is_out_of_reach_is_tried_once_for_all_that_wait(error: Exception, tried: int) -> None:
    """Three ledgers wait for a fourth. An error about one ledger is no reason not to try the others."""
    engine = Slow()
    batch = Writer(engine)  # type: ignore[arg-type]
    results: dict[int, BaseException] = {}

    def call(ledger: int) -> None:
        try:
            batch.submit(ledger, 1)
        except xp.ExpostError as refused:
            results[ledger] = refused

    threads = [threading.Thread(target=call, args=(ledger,)) for ledger in range(4)]
    threads[0].start()
    wait_until(lambda: engine.batches)
    for number, thread in enumerate(threads[1:], 1):
        thread.start()
        wait_until(queued(batch, number))
    engine.error = error
    engine.go.set()
    for thread in threads:
        thread.join(60)
    assert [type(results[ledger]) for ledger in range(4)] == [type(error)] * 4
    assert len(engine.batches) == tried


def test_patience_without_end_waits() -> None:
    engine = Slow()
    engine.settings = Settings(patience=float("inf"))
    batch = Writer(engine)  # type: ignore[arg-type]
    results = crowd(batch, 3, engine)
    assert results == [0, 1, 2]


def test_a_caller_waits_for_others_no_longer_than_its_patience() -> None:
    """It gives up what was not taken up; nothing of it is recorded later."""
    engine = Slow()
    engine.settings = Settings(patience=0.05)
    batch = Writer(engine)  # type: ignore[arg-type]
    first = threading.Thread(target=batch.submit, args=(1, 0))
    first.start()
    wait_until(lambda: engine.batches)
    with pytest.raises(xp.errors.Busy, match=r"took more than 0\.05 seconds; nothing was recorded"):
        batch.submit(1, 1)
    engine.settings = Settings()  # the thread has the step that was given up to pass over, which may take a while
    engine.go.set()
    first.join(60)
    assert batch.submit(1, 2) == 2
    assert [list(steps) for steps in engine.batches] == [[0], [2]]


def test_steps_that_are_submitted_together_are_lost_together() -> None:
    engine = Slow()
    engine.go.set()
    engine.error = xp.errors.LedgerUnavailable("gone")
    batch = Writer(engine)  # type: ignore[arg-type]
    steps: Any = [1, 2, 3]
    with pytest.raises(xp.errors.LedgerUnavailable, match="gone"):
        batch.submit_all(1, steps)
    engine.error = None
    assert batch.submit_all(1, steps) == steps


def test_steps_that_nobody_took_up_in_time_are_not_recorded_later() -> None:
    engine = Slow()
    engine.settings = Settings(patience=0.05)
    batch = Writer(engine)  # type: ignore[arg-type]
    first = threading.Thread(target=batch.submit, args=(1, 0))
    first.start()
    wait_until(lambda: engine.batches)
    steps: Any = [1, 2, 3]
    with pytest.raises(xp.errors.Busy, match="nothing was recorded"):
        batch.submit_all(1, steps)
    engine.settings = Settings()
    engine.go.set()
    first.join(60)
    assert batch.submit_all(1, steps) == steps
    assert [list(batch) for batch in engine.batches if batch] == [[0], steps]


def test_a_caller_that_is_interrupted_as_its_turn_comes() -> None:
    """Between taking the lock and the block under it: Python may look for signals there."""
    engine = Slow()
    engine.go.set()
    batch = Writer(engine)  # type: ignore[arg-type]
    writer = batch._writer
    real = writer._turn

    class Struck:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def __enter__(self) -> None:
            real.acquire()
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            raise AssertionError

    writer._turn = Struck()
    with pytest.raises(KeyboardInterrupt):
        batch.submit(1, 1)
    writer._turn = real
    others = [threading.Thread(target=batch.submit, args=(1, n), daemon=True) for n in (2, 3)]
    for thread in others:
        thread.start()
        thread.join(60)
    assert [list(steps) for steps in engine.batches] == [[2], [3]]


def test_a_signal_handler_cannot_write_in_the_middle_of_writing(new_url: Callable[[], str]) -> None:
    """It would wait for itself. Told so, it may leave a note; what it came upon is done."""
    ledger = make(new_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real = engine.apply

    def struck(*given: Any) -> Any:
        with pytest.raises(xp.errors.LedgerUnavailable, match="interrupted while it wrote"):
            ledger.reserve(GUARANTEE)
        return real(*given)

    engine.apply = struck
    assert ledger.reserve(GUARANTEE).id == 1
    del engine.apply
    assert ledger.reserve(GUARANTEE).id == 2
    ledger.verify()


def test_nothing_is_begun_while_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slow()
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    with pytest.raises(xp.errors.LedgerUnavailable, match="the process is ending"):
        Writer(engine).submit(1, 1)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert engine.batches == []


def test_a_lock_is_not_held_on_by_whoever_was_interrupted_as_it_got_it() -> None:
    class Struck:
        def __init__(self, real: Any) -> None:
            self._acquire, self._is_owned, self.release = real.acquire, real._is_owned, real.release

        def __enter__(self) -> None:
            self._acquire()
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            raise AssertionError

    lock = Struck(threading.RLock())
    with pytest.raises(KeyboardInterrupt):
        alone(lock, int)
    assert not lock._is_owned()
