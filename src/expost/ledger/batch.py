"""Many callers, one commit: whoever comes first commits for all who have come meanwhile.

There is no writer thread to hand work to. A caller that finds nobody committing commits its own operation
at once; callers that come while a commit is under way wait, and one of them commits everything that waits.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from threading import Condition, Lock, RLock

from expost.errors import LedgerUnavailable
from expost.ledger.engine import Engine, Operation, Outcome

MOST = 128
"""Operations in one commit."""


class _Ticket:
    __slots__ = ("error", "operation", "outcome")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.outcome is not None or self.error is not None


class Batch:
    """The way to an engine's ``apply`` for all threads of this process."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        self._engine = engine
        self._ledger = ledger
        self._turn = Condition(Lock())
        self._waiting: list[_Ticket] = []
        self._taken: list[_Ticket] = []
        self._busy = False
        _ALL.add(self)

    def submit(self, operation: Operation) -> Outcome:
        """What became of the operation, once that is on the disk."""
        ticket, leading = _Ticket(operation), False
        try:
            with self._turn:
                self._waiting.append(ticket)
                while self._busy and not ticket.done:
                    self._turn.wait()
                leading = not ticket.done
                if leading:
                    self._busy = True
            while leading and not ticket.done:
                with self._turn:
                    self._taken = self._waiting[:MOST]
                    del self._waiting[:MOST]
                self._commit(self._taken)
        finally:
            self._leave(ticket, leading)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.outcome is not None
        return ticket.outcome

    def _leave(self, ticket: _Ticket, leading: bool) -> None:
        """Let the next one lead. If an interrupt struck, what was taken may or may not have been committed."""
        if ticket.done and not leading:
            return
        with self._turn:
            with suppress(ValueError):  # an interrupted caller that was not taken up yet never will be
                self._waiting.remove(ticket)
            if leading:
                for taken in self._taken:
                    if not taken.done:
                        taken.error = LedgerUnavailable("the commit was interrupted; what was set aside stays so")
                self._taken, self._busy = [], False
                self._turn.notify_all()

    def _commit(self, taken: list[_Ticket]) -> None:
        try:
            outcomes = self._engine.apply(self._ledger, [ticket.operation for ticket in taken])
        except Exception as error:
            for ticket in taken:
                ticket.error = error if len(taken) == 1 else _again(error)
        else:
            for ticket, outcome in zip(taken, outcomes, strict=True):
                ticket.outcome = outcome

    # ---- forks

    def pause(self) -> None:
        """Before a fork: wait until nobody is committing, and let go of the database."""
        self._turn.acquire()
        while self._busy:
            self._turn.wait()
        self._engine.pause()

    def resume(self, *, child: bool = False) -> None:
        """After a fork, on both sides."""
        if child:
            self._waiting.clear()  # their threads stayed behind
        self._engine.resume()
        self._turn.release()


def _again(error: Exception) -> Exception:
    """The same error for each caller: an exception object carries one traceback."""
    try:
        copy = type(error)(*error.args)
    except Exception:
        copy = LedgerUnavailable(str(error))
    copy.__cause__ = error
    return copy


_ALL: weakref.WeakSet[Batch] = weakref.WeakSet()
_PAUSED: list[Batch] = []
OPENING = RLock()
"""Held while a database is open outside of any batch."""


def _before() -> None:
    OPENING.acquire()
    for batch in list(_ALL):
        batch.pause()
        _PAUSED.append(batch)


def _after(*, child: bool) -> None:
    while _PAUSED:
        _PAUSED.pop().resume(child=child)
    OPENING.release()


os.register_at_fork(
    before=_before, after_in_parent=lambda: _after(child=False), after_in_child=lambda: _after(child=True)
)
