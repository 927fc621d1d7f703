"""What a durable store needs of a database: atomic batches of operations, and questions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from expost.errors import LedgerUnavailable

UNREADABLE = "the database's address cannot be read: write @ : / % in its password as %40 %3A %2F %25"

Operation: TypeAlias = dict[str, Any]
"""One step, as plain JSON values: ``do`` names it, ``body`` is its line in the audit trail."""
Outcome: TypeAlias = dict[str, Any]
"""What became of it, as plain JSON values. A refusal is an outcome, too."""
Rows: TypeAlias = Callable[..., list[Any]]
"""What a question and its values give."""
Answer = TypeVar("Answer")


class Refused(LedgerUnavailable):
    """The database answers, but not to this: another operation may be welcome."""


class Lost(LedgerUnavailable):
    """The connection was lost inside a snapshot: what was read and what would be read are not of one instant."""


def alone(lock: Any, work: Callable[[], Answer]) -> Answer:
    """Work that holds the lock, and does not hold it on, however it ends."""
    held = lock._is_owned()
    try:
        with lock:
            return work()
    finally:
        if not held and lock._is_owned():  # struck after it was taken and before the block: newer Pythons look there
            lock.release()


class Engine(Protocol):
    """A database. ``apply`` is exactly once: when it returns, everything is on the disk."""

    def apply(self, ledger: int, operations: list[Operation]) -> list[Outcome]:
        """All operations, in order, in one durable transaction.

        Otherwise none of them: ``LedgerUnavailable``, ``Refused``, or ``LedgerCorrupt`` where the tables' own rules
        forbid what the ledger's allow.
        """

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """What a question gives, from what is committed. Placeholders are ``?``."""

    def snapshot(self) -> AbstractContextManager[Rows]:
        """A way to ask, all about one instant; or it raises ``Lost``. Nobody waits for its end."""

    def create(self, name: str, row: Operation) -> None:
        """A new ledger and its own account; ``InvalidValue`` if the name is taken."""

    def close(self) -> None:
        """Let go of the database. Whoever asks next opens it again."""

    def pause(self) -> None:
        """Before a fork: no connection may live on in two processes."""

    def resume(self) -> None:
        """After a fork, on both sides."""


class Hold:
    """A re-entrant lock that is held over a fork. To take it twice, after an interrupt, is to take it once."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._taken = False

    def take(self) -> None:
        """Wait for it, unless this thread has it already."""
        self._taken = self._taken or not self._lock._is_owned()
        while not self._lock._is_owned():
            self._lock.acquire()

    def leave(self) -> None:
        """Let it go, if it was taken."""
        if self._taken:
            self._taken = False
            self._lock.release()
