"""Many callers, one commit: a writer thread commits whatever was requested while it committed what came before.

When the writer is idle, a caller commits in its own thread: two changes of threads would cost half as much as the
commit. A request that is interrupted, waiting or committing, is done as a whole or not at all.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Lock, RLock, Thread, current_thread
from typing import Any

from expost.errors import Busy, LedgerUnavailable
from expost.forks import around_forks
from expost.ledger.engine import Engine, Hold, Outcome, Refused, Step, alone, is_out_of_reach
from expost.ledger.entry import Entry

MOST = 128
"""Steps in one commit."""


class _Ticket:
    """One caller's step, and its outcome. ``done`` is locked until that is known."""

    __slots__ = ("_taken", "done", "error", "ledger", "outcome", "step")

    def __init__(self, ledger: int, step: Step) -> None:
        self.ledger = ledger
        self.step = step
        self.outcome: Outcome = None
        self.error: BaseException | None = None
        self._taken = Lock()
        self.done = Lock()
        self.done.acquire()

    def take(self) -> bool:
        """Take it up, or give it up: whoever does so first."""
        return self._taken.acquire(blocking=False)


class _Writer:
    """The thread that commits. It knows nothing of the store, so that it ends when nobody has the store any more."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waiting: SimpleQueue[_Ticket | None] = SimpleQueue()
        self._turn: Any = RLock()
        """Held by whoever commits."""
        self._fork = Hold(self._turn)
        self._busy = False
        """Whether somebody does; if an interrupt leaves it so, the thread puts it right."""
        self._wanted = False
        """Whether the thread has somebody's request, and commits it as soon as it is its turn: nobody overtakes it."""
        self._thread: Thread | None = None
        """The thread. Were another one started, by an interrupt or by two callers at once, it would find so and end."""
        _ALL.add(self)

    def start(self) -> None:
        """Let it run, if it does not run in this process yet."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._run, name="expost-writer", daemon=True)
            self._thread.start()

    def at_once(self, ledger: int, step: Step) -> list[Outcome]:
        """Commit in the caller's own thread, if nobody else is committing, or waits to."""
        if self._turn._is_owned() or current_thread() is self._thread:
            raise LedgerUnavailable(
                "this thread was interrupted in the middle of writing to the ledger: a signal handler or a finalizer "
                "cannot write in between; write afterwards"
            )
        if self._busy or self._wanted or not self.waiting.empty():
            return []
        return alone(self._turn, lambda: self._one(ledger, step))

    def _one(self, ledger: int, step: Step) -> list[Outcome]:
        self._busy = True
        try:
            return self.engine.apply(ledger, [step])
        finally:
            self._busy = False

    def stop(self) -> None:
        """Finish what was asked for, and let go of the database."""
        self.waiting.put(None)
        if self._thread is None:
            self._close()
        elif self._thread is not current_thread():
            self._thread.join(10)

    def _close(self) -> None:
        """Once nobody commits. Who does so for ever is left alone: the process is ending."""
        if self._turn.acquire(timeout=10):
            self.engine.close()
            self._turn.release()

    def _run(self) -> None:
        while self._thread is current_thread() and self._serve(self.waiting.get()):
            pass

    def _serve(self, first: _Ticket | None) -> bool:
        """Commit what this one and whoever waits by now asked for; False if there is no more to do."""
        if self._thread is not current_thread():
            self.waiting.put(first)  # for the other thread
            return False
        self._wanted = True
        with self._turn:
            self._busy = True
            tickets = self._take(first)
            asked = [ticket for ticket in tickets if ticket is not None]
            taken = self._commit_all(asked)
            self._busy = self._wanted = False
        for ticket in taken:
            ticket.done.release()
        if None in tickets:
            self._close()
        return None not in tickets

    def _take(self, first: _Ticket | None) -> list[_Ticket | None]:
        """That one, and everybody who waits by now."""
        tickets = [first]
        try:
            while len(tickets) < MOST:
                tickets.append(self.waiting.get_nowait())
        except Empty:
            pass
        return tickets

    def _commit_all(self, asked: list[_Ticket]) -> list[_Ticket]:
        """Ledger by ledger; those that were not given up. If the database is out of reach for one ledger, it is for
        the others."""
        taken: list[_Ticket] = []
        lost: BaseException | None = None
        for ledger in dict.fromkeys(ticket.ledger for ticket in asked):
            tickets = [ticket for ticket in asked if ticket.ledger == ledger and ticket.take()]
            taken += tickets
            if lost is None:
                self._commit(tickets)
                errors = (ticket.error for ticket in tickets if ticket.error is not None)
                lost = next((error for error in errors if is_out_of_reach(self.engine, error)), None)
            else:
                for ticket in tickets:
                    ticket.error = _again(lost)
        return taken

    def _commit(self, tickets: list[_Ticket]) -> None:
        """One transaction; but if one of them is refused for its own sake, the others must not suffer."""
        if not tickets:
            return
        try:
            outcomes = self.engine.apply(tickets[0].ledger, [ticket.step for ticket in tickets])
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
        self._fork.take()
        self.engine.pause()

    def resume(self, *, child: bool = False) -> None:
        """After a fork, on both sides."""
        if child:  # the thread, and those who wait for it, stayed behind
            self.waiting, self._thread, self._busy, self._wanted = SimpleQueue(), None, False, False
        self.engine.resume()
        self._fork.leave()


class Writer:
    """An engine's ``apply`` for all threads of this process. The engine is closed with it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer = _Writer(engine)
        weakref.finalize(self, self._writer.stop)

    def submit(self, ledger: int, step: Step) -> Entry | int | None:
        """The outcome of a step, once it is on the disk. Raises why it was refused."""
        if sys.is_finalizing():
            raise LedgerUnavailable("the process is ending: what was reserved will be charged its worst case")
        outcomes = self._writer.at_once(ledger, step)
        outcome = outcomes[0] if outcomes else self._wait(_Ticket(ledger, step))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _wait(self, ticket: _Ticket) -> Outcome:
        self._writer.start()
        try:
            self._writer.waiting.put(ticket)
            self._await(ticket)
        except BaseException:
            ticket.take()  # if it was not taken up yet, it never will be
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.outcome

    def _await(self, ticket: _Ticket) -> None:
        patience = self.engine.settings.patience
        if ticket.done.acquire(timeout=min(max(patience, 0), TIMEOUT_MAX)):
            return
        if ticket.take():
            raise Busy(
                f"other requests of this process to the same database have taken {patience:g} seconds; nothing was "
                "recorded: try again"
            )
        ticket.done.acquire()


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
"""Held while a database is opened, or is open outside of any writer."""


_OPENING = Hold(OPENING)


def _before() -> None:
    """Everything is at rest during a fork. An interrupt meanwhile must not leave half of it so: it is raised last."""
    struck = _surely(_OPENING.take)
    for writer in list(_ALL):
        _PAUSED.append(writer)
        struck = _surely(writer.pause) or struck
    if struck is not None:
        raise struck  # which Python prints, and forks


def _surely(step: Callable[[], None]) -> BaseException | None:
    """Do what may be done twice until it is done, or has failed too often; and what struck meanwhile."""
    struck: BaseException | None = None
    for _ in range(100):
        try:
            step()
        except BaseException as error:
            struck = error
        else:
            break
    return struck


def _after(*, child: bool) -> None:
    while _PAUSED:
        _PAUSED.pop().resume(child=child)
    _OPENING.leave()


around_forks(before=_before, parent=lambda: _after(child=False), child=lambda: _after(child=True))
