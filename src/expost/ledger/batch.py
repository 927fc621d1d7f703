"""Many callers, one commit: a writer thread commits whatever has come while it committed what came before.

A caller who finds nobody at it commits its own request itself: two changes of threads would cost half as much as the
commit. Nobody depends on such a caller but for its turn, which ends with it, however it ends. Whoever is interrupted,
while it waits or while it commits, leaves what it had asked for done as a whole or not at all.
"""

from __future__ import annotations

import os
import sys
import weakref
from queue import Empty, SimpleQueue
from threading import Lock, RLock, Thread, current_thread
from typing import Any

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
        self.taken: list[_Ticket | None] = []
        """What the thread commits, or will as soon as it is its turn."""
        self._ledger = ledger
        self._turn: Any = RLock()
        """Held by whoever commits."""
        self._busy = False
        """Whether somebody does; if an interrupt leaves it so, the thread puts it right."""
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

    def at_once(self, operation: Operation) -> Outcome | None:
        """Commit in the caller's own thread; None if somebody else is committing, or waits to."""
        if self._turn._is_owned():
            raise LedgerUnavailable(
                "this thread was interrupted in the middle of writing to the ledger: a signal handler or a finalizer "
                "cannot write in between; let it leave a note, and write afterwards"
            )
        if self._busy or self.taken or not self.waiting.empty():
            return None
        try:
            with self._turn:
                self._busy = True
                try:
                    return self.engine.apply(self._ledger, [operation])[0]
                finally:
                    self._busy = False
        finally:
            if self._turn._is_owned():  # struck after it was taken and before the block: newer Pythons look there
                self._turn.release()

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
            self.taken.append(self.waiting.get())
            with self._turn:
                self._busy = True
                self._take()
                running = None not in self.taken
                tickets = [ticket for ticket in self.taken if ticket is not None and not ticket.given_up]
                self._commit(tickets)
                self._busy = False
            for ticket in tickets:
                ticket.done.release()
            self.taken.clear()
            tickets.clear()
        self.engine.close()

    def _take(self) -> None:
        """Everybody who waits by now."""
        try:
            while len(self.taken) < MOST:
                self.taken.append(self.waiting.get_nowait())
        except Empty:
            pass

    def _commit(self, tickets: list[_Ticket]) -> None:
        """One transaction; but if one of them is refused for its own sake, the others must not suffer."""
        if not tickets:
            return
        try:
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

    # ---- forks

    def pause(self) -> None:
        """Before a fork: wait until nobody is committing, and let go of the database."""
        self._starting.acquire()
        self._turn.acquire()
        self.engine.pause()

    def resume(self, *, child: bool = False) -> None:
        """After a fork, on both sides."""
        if child:  # the thread, and those who wait for it, stayed behind
            self.waiting, self.taken, self._thread, self._busy = SimpleQueue(), [], None, False
        self.engine.resume()
        self._turn.release()
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
        outcome = self._writer.at_once(operation)
        if outcome is not None:
            return outcome
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
