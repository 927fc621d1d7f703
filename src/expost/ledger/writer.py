"""Group commit: a writer thread commits together all requests that arrived during its last commit.

When the writer is idle, a caller commits in its own thread: two thread switches would cost half as much as the commit.
A request that is interrupted, while it waits or is committed, takes effect as a whole or not at all.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Lock, RLock, Thread, current_thread
from typing import Any

from expost.errors import (
    Busy,
    ExpostError,
    LedgerCorrupt,
    LedgerUnavailable,
    RequestRejected,
    ReservationClosed,
    UnknownEntry,
)
from expost.forks import around_forks
from expost.ledger.deadline import time_left
from expost.ledger.engine import Engine, Hold, Outcome, Step, is_out_of_reach
from expost.ledger.entry import Entry
from expost.ledger.gate import GATE
from expost.ledger.operations import Ending, Forfeit, Reserve, Settle, Void

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


class _Given:
    """The entries that callers of this process were given, and of which ledgers an answer may be lost.

    A reservation may be in the books although nobody was told: a connection broke before the answer, or the caller was
    interrupted while it waited. Nobody can end it, so it is ended with the next commit: charged as the rules say, as
    sampling counts as begun, or voided if it does not. Used by whoever commits.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._entries: dict[int, dict[int, Entry]] = {}
        """By ledger and number; those with a lease are anybody's, and not among them."""
        self._unsure: set[int] = set()
        self.unwanted: deque[_Ticket] = deque()
        """Reservations of callers who did not wait for the outcome."""

    def entry(self, ledger: int, number: int) -> Entry | None:
        """An open entry that a caller of this process was given, as it was reserved."""
        return self._entries.get(ledger, {}).get(number)

    def applied(self, ledger: int, steps: list[Step]) -> list[Outcome]:
        """Apply steps; then end what nobody was given, if an earlier answer was lost."""
        reserves = any(type(step) is Reserve for step in steps)
        try:
            outcomes = self._engine.apply(ledger, steps)
        except (RequestRejected, LedgerCorrupt):
            raise
        except BaseException:
            if reserves:
                self._unsure.add(ledger)
            raise
        self._note(ledger, steps, outcomes)
        if self.unwanted:
            self._give_back()
        if ledger in self._unsure:
            self._surely_end(ledger, outcomes)
        return outcomes

    def _note(self, ledger: int, steps: list[Step], outcomes: list[Outcome]) -> None:
        entries = self._entries.setdefault(ledger, {})
        for step, outcome in zip(steps, outcomes, strict=True):
            if isinstance(step, (Settle, Forfeit, Void)):  # a union is slow
                if isinstance(outcome, Entry | UnknownEntry) or _has_ended(outcome):
                    entries.pop(step.entry, None)
            elif type(step) is Reserve and step.lease is None and isinstance(outcome, Entry):
                entries[outcome.id] = outcome

    def _give_back(self) -> None:
        """What callers who are gone would have been given."""
        for _ in range(len(self.unwanted)):
            ticket = self.unwanted.popleft()
            if isinstance(ticket.outcome, Entry):
                self._entries.setdefault(ticket.ledger, {}).pop(ticket.outcome.id, None)
                self._unsure.add(ticket.ledger)
            elif ticket.outcome is None and ticket.error is None:
                self.unwanted.append(ticket)  # it is committed next

    def _surely_end(self, ledger: int, outcomes: list[Outcome]) -> None:
        """Try it: the outcomes are known, and are told whether or not this succeeds. Who is interrupted here is told
        nothing, so what was just reserved is not given either."""
        try:
            self._end(ledger)
        except ExpostError:
            pass  # with the next commit
        except BaseException:
            for each in outcomes:
                if isinstance(each, Entry):
                    self._entries[ledger].pop(each.id, None)
            raise

    def _end(self, ledger: int) -> None:
        rows = self._engine.rows(
            f"SELECT e.number, e.begun FROM {self._engine.open_entries} "
            "WHERE e.ledger = ? AND e.state = 'reserved' AND e.owner = ? ORDER BY e.number",
            ledger, self._engine.owner(ledger),
        )  # fmt: skip
        mine, given = dict(rows), self._entries.setdefault(ledger, {})
        for ended in given.keys() - mine.keys():  # by others
            del given[ended]
        ends: list[Ending] = [
            Forfeit(number) if begun else Void(number) for number, begun in mine.items() if number not in given
        ]
        if ends:
            self._engine.apply(ledger, list(ends))
        self._unsure.discard(ledger)


def _has_ended(outcome: Outcome) -> bool:
    return isinstance(outcome, ReservationClosed) and outcome.entry.state != "reserved"


class _Writer:
    """The thread that commits. It does not refer to the store, so that it ends when the store is garbage."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.given = _Given(engine)
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
                    return self.given.applied(ledger, [step])
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
            self.engine.leave()
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
            outcomes = self.given.applied(tickets[0].ledger, [ticket.step for ticket in tickets])
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
            self.given = _Given(self.engine)
        self.engine.resume(child=child)
        self._fork.leave()


class Writer:
    """An engine's ``apply`` for all threads of this process. Closes the engine when it is garbage."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer, self._ticket = _Writer(engine), _Ticket
        weakref.finalize(self, self._writer.stop)

    def given(self, ledger: int, number: int) -> Entry | None:
        """An open entry that a caller of this process was given."""
        return self._writer.given.entry(ledger, number)

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
                self._leave(ticket)
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
            self._leave(ticket)
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.outcome

    def _leave(self, ticket: _Ticket) -> None:
        """Nobody waits for it any more: if nobody has claimed it yet, nobody will."""
        if not ticket.take() and type(ticket.step) is Reserve:
            self._writer.given.unwanted.append(ticket)

    def _await(self, ticket: _Ticket) -> None:
        patience = time_left(self.engine.settings.patience)
        if ticket.done.acquire(timeout=min(patience, TIMEOUT_MAX)):
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
