"""Many callers, one commit: a writer thread commits whatever has come while it committed what came before.

Signals strike the main thread only, so an interrupt never comes between a commit and its end: a caller that is
interrupted stops waiting, and what it had asked for happens as a whole or not at all.
"""

from __future__ import annotations

import os
import sys
import weakref
from queue import Empty, SimpleQueue
from threading import Lock, RLock, Thread, current_thread

from expost.errors import LedgerUnavailable
from expost.ledger.engine import Engine, Operation, Outcome, Refused

MOST = 128
"""Operations in one commit."""


class _Ticket:
    """One caller's operation, and what became of it. ``done`` is locked until that is known."""

    __slots__ = ("done", "error", "given_up", "operation", "outcome")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.given_up = False
        self.done = Lock()
        self.done.acquire()


class _Writer:
    """The thread that commits. It knows nothing of the store, so that it ends when nobody has the store any more."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        self.engine = engine
        self.waiting: SimpleQueue[_Ticket | None] = SimpleQueue()
        self._ledger = ledger
        self._committing = Lock()
        self._starting = Lock()
        self._thread: Thread | None = None
        _ALL.add(self)

    def start(self) -> None:
        """Let it run, if it does not run in this process yet. (Were there two, they would take turns.)"""
        with self._starting:
            if self._thread is None:
                thread = Thread(target=self._run, name="expost-writer", daemon=True)
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        """Finish what was asked for, and let go of the database."""
        self.waiting.put(None)
        if self._thread is None:
            self.engine.close()
        elif self._thread is not current_thread():
            self._thread.join(10)

    def _run(self) -> None:
        running = True
        while running:
            taken: list[_Ticket | None] = [self.waiting.get()]
            try:
                while len(taken) < MOST:
                    taken.append(self.waiting.get_nowait())
            except Empty:
                pass
            running = None not in taken
            self._commit([ticket for ticket in taken if ticket is not None and not ticket.given_up])
        self.engine.close()

    def _commit(self, tickets: list[_Ticket]) -> None:
        """One transaction; but if one of them is refused for its own sake, the others must not suffer."""
        if not tickets:
            return
        try:
            with self._committing:
                outcomes = self.engine.apply(self._ledger, [ticket.operation for ticket in tickets])
        except BaseException as error:
            if len(tickets) > 1 and (isinstance(error, Refused) or not isinstance(error, LedgerUnavailable)):
                for ticket in tickets:
                    self._commit([ticket])
                return
            for ticket in tickets:
                ticket.error = error if len(tickets) == 1 else _again(error)
        else:
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                ticket.outcome = outcome
        for ticket in tickets:
            ticket.done.release()

    # ---- forks

    def pause(self) -> None:
        """Before a fork: wait until nobody is committing, and let go of the database."""
        self._starting.acquire()
        self._committing.acquire()
        self.engine.pause()

    def resume(self, *, child: bool = False) -> None:
        """After a fork, on both sides."""
        if child:  # the thread, and those who wait for it, stayed behind
            self.waiting, self._thread = SimpleQueue(), None
        self.engine.resume()
        self._committing.release()
        self._starting.release()


class Batch:
    """The way to an engine's ``apply`` for all threads of this process. It lets go of the engine at its end."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        self._writer = _Writer(engine, ledger)
        weakref.finalize(self, self._writer.stop)

    def submit(self, operation: Operation) -> Outcome:
        """What became of the operation, once that is on the disk."""
        if sys.is_finalizing():
            raise LedgerUnavailable("the process is ending: what was set aside will be charged its worst case")
        ticket = _Ticket(operation)
        self._writer.start()
        try:
            self._writer.waiting.put(ticket)
            ticket.done.acquire()
        except BaseException:
            ticket.given_up = True  # if it was not taken up yet, it never will be
            raise
        if ticket.error is not None:
            raise ticket.error
        assert ticket.outcome is not None
        return ticket.outcome


def _again(error: BaseException) -> BaseException:
    """The same error for each caller: an exception object carries one traceback."""
    try:
        copy = type(error)(*error.args)
    except Exception:
        copy = LedgerUnavailable(str(error))
    copy.__cause__ = error
    return copy


_ALL: weakref.WeakSet[_Writer] = weakref.WeakSet()
_PAUSED: list[_Writer] = []
OPENING = RLock()
"""Held while a database is open outside of any batch."""


def _before() -> None:
    OPENING.acquire()
    for writer in list(_ALL):
        writer.pause()
        _PAUSED.append(writer)


def _after(*, child: bool) -> None:
    while _PAUSED:
        _PAUSED.pop().resume(child=child)
    OPENING.release()


os.register_at_fork(
    before=_before, after_in_parent=lambda: _after(child=False), after_in_child=lambda: _after(child=True)
)
