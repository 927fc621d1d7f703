"""What forks wait for, besides commits: databases in a file that are being opened, or written without a writer.

A forked copy of a process must not inherit an SQLite connection: the library would believe that it holds locks which
only the parent has. Connections to a server are left alone in the child, so no fork waits for a server that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident


class ForkGate:
    """Many threads may be inside at once, each as often as it likes; a fork waits until all others have left."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside: dict[int, int] = {}
        """How often each thread is inside."""
        self._forking: int | None = None
        """The thread that forks, or waits to."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be inside, however the block ends."""
        me = get_ident()
        before = self._inside.get(me, 0)
        try:
            self._enter(me)
            yield
        finally:
            self._back(me, before)

    def _enter(self, me: int) -> None:
        with self._changed:
            while self._forking not in (None, me) and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def _back(self, me: int, before: int) -> None:
        with self._changed:
            if before:
                self._inside[me] = before
            else:
                self._inside.pop(me, None)
            self._changed.notify_all()

    def take(self) -> None:
        """Called before a fork: wait until no other thread is inside, and let none in. Idempotent."""
        me = get_ident()
        with self._changed:
            while self._forking not in (None, me):
                self._changed.wait()
            self._forking = me
            while self._inside.keys() - {me}:
                self._changed.wait()

    def leave(self, *, child: bool) -> None:
        """Called after a fork, in both processes; the child has one thread."""
        if child:
            me = get_ident()
            self._changed, self._inside = Condition(), {me: self._inside[me]} if me in self._inside else {}
        with self._changed:
            self._forking = None
            self._changed.notify_all()


GATE = ForkGate()
"""The one of this process."""
