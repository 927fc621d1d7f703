"""Interrupts at any moment. Not measured by coverage, whose own locks an interrupt may strand."""

from __future__ import annotations

import gc
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from expost import Ledger
from expost.ledger.verify.tables import Verification
from faulty import GUARANTEE, NAME, check, make
from soak import SOAK

pytestmark = pytest.mark.filterwarnings(  # an interrupt may strike in what Python does when something is collected
    "ignore:(?s).*KeyboardInterrupt:pytest.PytestUnraisableExceptionWarning"
)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of a connection that was interrupted while it was made
def test_interrupts_at_any_moment(new_url: Callable[[], str]) -> None:
    """Ctrl-C, again and again, at random moments: the ledger goes on, and nothing is half done."""
    assert sys.gettrace() is None, "an interrupt would strand the locks of what counts branches"
    url = new_url()
    ledger, other = make(url), Ledger.load(url, NAME)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    moments, struck = random.Random(8), 0
    try:
        for _ in range(150 + SOAK):
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 4e-3))
                for _ in range(50):
                    ledger.reserve(GUARANTEE).settle("small")
            except KeyboardInterrupt:
                struck += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:  # the last one came late
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert struck > 100
    for party in (ledger, other):
        assert party.reserve(GUARANTEE).settle("small").state == "settled"
    check(ledger, [])
    gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interrupt_at_the_end_of_a_snapshot(new_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """At every line between the last query of a snapshot and the return: later answers are right."""
    url = new_url()
    ledger = make(url)
    compare, line, spent = Verification._instant, 0, 0
    while line < 30:
        line += 1
        strike = Strike(line)
        monkeypatch.setattr(Verification, "_instant", lambda *given, strike=strike: (compare(*given), strike.arm())[0])
        before = sys.gettrace()
        try:
            ledger.verify()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        monkeypatch.undo()
        if not strike.struck:
            break
        ledger.reserve(GUARANTEE).settle("small")
        spent += 1
        assert ledger.spent == GUARANTEE.cost_of("small") * spent
        assert answers_others(ledger)
    assert line > 5
    ledger.verify()


class Strike:
    """An interrupt at the so-manieth line from when it is armed, in whatever the armed function's caller calls."""

    def __init__(self, line: int) -> None:
        self._left = line
        self.struck = False

    def arm(self) -> None:
        sys.settrace(self._trace)
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "verify":
            frame.f_trace = self._trace
            frame = frame.f_back

    def _trace(self, frame: Any, event: str, _: object) -> Any:
        if event == "line" and not self._finalizes(frame) and "/tests/" not in frame.f_code.co_filename:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                raise KeyboardInterrupt
        return self._trace

    def _finalizes(self, frame: Any) -> bool:
        """Whether an interrupt there would reach nobody."""
        return frame is not None and (frame.f_code.co_name == "__del__" or self._finalizes(frame.f_back))


def answers_others(ledger: Ledger) -> bool:
    """Whether another thread gets an answer."""
    other = threading.Thread(target=lambda: ledger.remaining, daemon=True)
    other.start()
    other.join(30)
    return not other.is_alive()


def test_an_alarm_in_the_middle_of_a_question(postgres_url: Callable[[], str]) -> None:
    """Not every signal's handler raises KeyboardInterrupt."""
    ledger = make(postgres_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]

    def late(*_: object) -> None:
        raise RuntimeError("too late")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(RuntimeError, match="too late"):
            engine.rows("SELECT pg_sleep(30)")
        signal.setitimer(signal.ITIMER_REAL, 60)
        assert ledger.remaining == ledger.limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_reads_while_a_change_takes_effect() -> None:
    """A signal handler or a finalizer may read at any line of a ledger in memory: every change still counts once."""
    ledger, pairs, passed = Ledger(epsilon=8, delta=1), 150, 0

    def read(frame: Any, event: str, argument: Any) -> Any:
        nonlocal passed
        if frame.f_code.co_filename.endswith("ledger/memory.py"):
            passed += 1
            if passed == moment:
                ledger.remaining  # noqa: B018  # not traced itself
        return read

    for moment in range(1, pairs + 1):  # noqa: B007  # read() compares it
        passed = 0
        sys.settrace(read)
        try:
            ledger.reserve(GUARANTEE).settle("large")
        finally:
            sys.settrace(None)
    assert passed < pairs  # so every moment was tried
    assert ledger.spent == pairs * GUARANTEE.cost_of("large")
    assert [entry.id for entry in ledger.entries(last=2)] == [pairs - 1, pairs]
    ledger.verify()
