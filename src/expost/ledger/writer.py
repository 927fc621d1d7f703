"""Group commit: a writer thread commits together all requests that arrived during its last commit.

When the writer is idle, a caller commits in its own thread: two thread switches would cost half as much as the commit.
A request that is interrupted, while it waits or is committed, takes effect as a whole or not at all.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Lock, RLock, Thread, current_thread
from typing import Any

from expost.errors import Busy, LedgerUnavailable, RequestRejected
from expost.forks import around_forks
from expost.ledger.engine import Engine, Hold, Outcome, Step, is_out_of_reach
from expost.ledger.entry import Entry
from expost.ledger.gate import GATE

MOST = 128
"""The most steps in one commit."""


class _Ticket:
    """One caller's step, and its outcome. ``done`` is locked until the outcome is known."""

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
        """Claim it, to commit it or to give it up; False if it was claimed before."""
        return self._taken.acquire(blocking=False)


class _Writer:
    """The thread that commits. It does not refer to the store, so that it ends when the store is garbage."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waiting: SimpleQueue[_Ticket | None] = SimpleQueue()
        self._turn: Any = RLock()
        """Held by whoever commits."""
        self._fork = Hold(self._turn)
        self._busy = False
        """Whether somebody is committing; if an interrupt leaves it set, the thread resets it."""
        self._wanted = False
        """Whether the thread has a request, which nobody may overtake."""
        self._thread: Thread | None = None
        """The thread. A second one, started by an interrupt or by two callers at once, notices and ends."""
        _ALL.add(self)

    def start(self) -> None:
        """Start the thread, if it does not run in this process yet."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._run, name="expost-writer", daemon=True)
            self._thread.start()

    def at_once(self, ledger: int, step: Step) -> list[Outcome]:
        """Commit in the caller's own thread, if nobody else is committing or waiting to; otherwise return nothing."""
        if self._turn._is_owned() or (self._thread is not None and self._thread is current_thread()):
            raise LedgerUnavailable(
                "this thread was interrupted while it wrote to the ledger, and a signal handler or finalizer cannot "
                "write meanwhile: write afterwards"
            )
        if self._busy or self._wanted or not self.waiting.empty():
            return []
        try:
            with self._turn:
                self._busy = True
                try:
                    return self.engine.apply(ledger, [step])
                finally:
                    self._busy = False
        finally:
            if self._turn._is_owned():  # interrupted just before the block was entered or left
                self._turn.release()

    def stop(self) -> None:
        """Finish all requests, and close the database."""
        self.waiting.put(None)
        if self._thread is None:
            self._close()
        elif self._thread is not current_thread():
            self._thread.join(10)

    def _close(self) -> None:
        """Close the database once nobody commits; give up after a while, because the process is ending."""
        if self._turn.acquire(timeout=10):
            self.engine.close()
            self._turn.release()

    def _run(self) -> None:
        while self._thread is current_thread() and self._serve(self.waiting.get()):
            pass

    def _serve(self, first: _Ticket | None) -> bool:
        """Commit this request and all that are waiting; False if the writer is to stop."""
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
        """This request, and all that are waiting."""
        tickets = [first]
        try:
            while len(tickets) < MOST:
                tickets.append(self.waiting.get_nowait())
        except Empty:
            pass
        return tickets

    def _commit_all(self, asked: list[_Ticket]) -> list[_Ticket]:
        """Commit requests ledger by ledger, and return those that were not given up. If the database cannot be reached
        for one ledger, it is not tried for the others."""
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
        """Commit requests in one transaction; if the database rejects it, each in a transaction of its own."""
        if not tickets:
            return
        try:
            outcomes = self.engine.apply(tickets[0].ledger, [ticket.step for ticket in tickets])
        except BaseException as error:
            if len(tickets) > 1 and (isinstance(error, RequestRejected) or not isinstance(error, LedgerUnavailable)):
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
        """Called before a fork: wait until nobody is committing, and close the connections that nobody uses."""
        self._fork.take()
        self.engine.pause()

    def resume(self, *, child: bool = False) -> None:
        """Called after a fork, in both processes."""
        if child:  # the thread and those who wait for it are in the parent
            self.waiting, self._thread, self._busy, self._wanted = SimpleQueue(), None, False, False
        self.engine.resume(child=child)
        self._fork.leave()


class Writer:
    """An engine's ``apply`` for all threads of this process. Closes the engine when it is garbage."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer, self._ticket = _Writer(engine), _Ticket
        weakref.finalize(self, self._writer.stop)

    def submit(self, ledger: int, step: Step) -> Entry | int | None:
        """The outcome of a step, once it is on disk. Raises if the step is not allowed."""
        _refuse_ending()
        outcomes = self._writer.at_once(ledger, step)
        outcome = outcomes[0] if outcomes else self._wait(self._ticket(ledger, step))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def submit_all(self, ledger: int, steps: Sequence[Step]) -> list[Outcome]:
        """The outcomes of steps, once all are on disk, in order: in as few commits as there can be.

        A step that is not allowed has its error as outcome. Raises if some could not be committed; others may be then.
        """
        _refuse_ending()
        tickets = [self._ticket(ledger, step) for step in steps]
        self._writer.start()
        try:
            for ticket in tickets:
                self._writer.waiting.put(ticket)
            for ticket in tickets:
                self._await(ticket)
        except BaseException:
            for ticket in tickets:
                ticket.take()  # if nobody has claimed it yet, nobody will
            raise
        lost = next((ticket.error for ticket in tickets if ticket.error is not None), None)
        if lost is not None:
            raise lost
        return [ticket.outcome for ticket in tickets]

    def _wait(self, ticket: _Ticket) -> Outcome:
        self._writer.start()
        try:
            self._writer.waiting.put(ticket)
            self._await(ticket)
        except BaseException:
            ticket.take()  # if nobody has claimed it yet, nobody will
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
                f"other requests of this process to the same database took more than {patience:g} seconds; nothing was "
                "recorded: try again"
            )
        ticket.done.acquire()


def _refuse_ending() -> None:
    if sys.is_finalizing():
        raise LedgerUnavailable("the process is ending: what it has reserved will be charged at its worst case")


def _again(error: BaseException) -> BaseException:
    """A copy of an error, for another caller: an exception object has one traceback."""
    try:
        copy = type(error)(*error.args)
    except Exception:
        copy = LedgerUnavailable(str(error))
    copy.__cause__ = error
    return copy


_ALL: weakref.WeakSet[_Writer] = weakref.WeakSet()
_PAUSED: list[_Writer] = []


def _before() -> None:
    """Pause everything before a fork. An interrupt must not leave it half paused: it is raised at the end."""
    struck = _surely(GATE.take)
    for writer in list(_ALL):
        _PAUSED.append(writer)
        struck = _surely(writer.pause) or struck
    if struck is not None:
        raise struck  # Python prints it, and forks


def _surely(step: Callable[[], None]) -> BaseException | None:
    """Repeat an idempotent step until it succeeds, or has failed too often; returns the last exception."""
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
    GATE.leave(child=child)


around_forks(before=_before, parent=lambda: _after(child=False), child=lambda: _after(child=True))
