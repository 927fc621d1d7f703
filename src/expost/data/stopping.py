"""Ending queries from another thread: of a job whose time is over, and whose answer nobody waits for any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition, Thread

_AGAIN = 0.05
"""Seconds between two interrupts: one that comes just before a query begins is forgotten by the engine."""


class QueryStopped(Exception):
    """Nobody waits for the answer of a query: it is not begun."""


class Stopper:
    """Ends what a thread asks of engines: the query that runs, and all that would follow it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._interrupt: Callable[[], object] | None = None
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether it was told to end what the thread asks."""
        return self._stopped

    def stop(self) -> None:
        """End the query that runs now, if there is one, and let no other begin. Returns at once."""
        with self._changed:
            if self._stopped:
                return
            self._stopped = True
            if self._interrupt is not None:
                Thread(target=self._press, name="expost-stopper", daemon=True).start()

    def _press(self) -> None:
        with self._changed:
            while self._interrupt is not None:
                self._interrupt()
                self._changed.wait(_AGAIN)

    @contextmanager
    def within(self) -> Iterator[None]:
        """Queries of this thread can be stopped meanwhile."""
        token = _STOPPER.set(self)
        try:
            yield
        finally:
            _STOPPER.reset(token)

    @contextmanager
    def running(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """A query runs, which ``interrupt`` ends. Raises :class:`QueryStopped` if it is too late."""
        with self._changed:
            if self._stopped:
                raise QueryStopped
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._changed:  # after this, nothing of another thread is interrupted
                self._interrupt = None
                self._changed.notify_all()


_STOPPER: ContextVar[Stopper | None] = ContextVar("expost stopper", default=None)


@contextmanager
def stoppable(interrupt: Callable[[], object]) -> Iterator[None]:
    """While a query runs: it ends early if somebody stops what this thread asks."""
    stopper = _STOPPER.get()
    if stopper is None:
        yield
        return
    with stopper.running(interrupt):
        yield
