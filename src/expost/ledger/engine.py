"""What a durable store needs of a database: atomic batches of operations, and queries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from expost.errors import Busy, ExpostError, LedgerUnavailable
from expost.ledger.entry import Entry
from expost.ledger.heads import Heads
from expost.ledger.rules import Create, Operation

UNREADABLE = "the database's address cannot be read: write @ : / % in its password as %40 %3A %2F %25"


def login() -> str | None:
    """The name of the user that this process runs as."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return None


def wall() -> int:
    """Microseconds since 1970, by this machine's clock."""
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Settings:
    """How a durable ledger waits, and what it goes by.

    Parameters
    ----------
    patience
        Seconds for which a request waits for other processes, or for a server that restarts.
    deadline
        Seconds that a server may take to answer one request. ``patience + deadline`` bounds every call, and twice the
        patience and the deadline one that waits for another of this process to the same address.
    beat
        Seconds between two signs of life of a process.
    silence
        Seconds without one after which a process on another machine is given up.
    clock, timer
        The machine's clock, in microseconds since 1970; and seconds that only ever go on.
    user
        Who the audit trail says it was, where no database knows better: the operating system's user.
    heads
        A file beside the database that holds the last head of each ledger (SQLite only).
    turn
        Seconds for which a change of tables waits for those who use them, at a time: meanwhile all others wait, too
        (PostgreSQL only).
    page
        Rows that are read at a time.
    remembered
        How many accounts, guarantees and open entries of one ledger are remembered between requests (SQLite only).
    synchronous, vfs
        How SQLite writes. Anything but the defaults is for tests.
    """

    patience: float = 15.0
    deadline: float = 10.0
    beat: float = 15.0
    silence: float = 60.0
    clock: Callable[[], int] = wall
    timer: Callable[[], float] = time.monotonic
    user: str | None = login()
    heads: bool = True
    turn: float = 2.0
    page: int = 500
    remembered: int = 4096
    synchronous: str = "EXTRA"
    vfs: str | None = None


class Beat(NamedTuple):
    """A sign of life of this process."""


class Recover(NamedTuple):
    """Forfeit what these processes left open, and what was open past its lease."""

    dead: tuple[str, ...]


Step: TypeAlias = Operation | Beat | Recover
Outcome: TypeAlias = Entry | int | ExpostError | None
"""The entry afterwards, how many were forfeited, nothing; or why a step was refused."""
Rows: TypeAlias = Callable[..., list[Any]]
"""What a query and its values give."""
Returned = TypeVar("Returned")


class Refused(LedgerUnavailable):
    """The database answers, but refuses this request; it may take others."""


class SnapshotLost(LedgerUnavailable):
    """The connection was lost inside a snapshot: what is read next would be of another instant."""


def is_out_of_reach(engine: Engine, error: BaseException) -> bool:
    """Whether nothing at the address can be done now. A busy server may serve its other ledgers; a locked file not."""
    if isinstance(error, Refused) or not isinstance(error, LedgerUnavailable):
        return False
    return isinstance(error, Busy) == engine.local


def alone(lock: Any, work: Callable[..., Returned], *values: Any) -> Returned:
    """Work under a re-entrant lock, which is released however the work ends, interrupts included."""
    held = lock._is_owned()
    try:
        with lock:
            return work(*values)
    finally:
        if not held and lock._is_owned():  # interrupted between taking it and the block, or before it was left
            lock.release()


class Engine(Protocol):
    """A database. ``apply`` is exactly once: when it returns, everything is on the disk."""

    settings: Settings
    read_only: bool
    local: bool
    """Whether all processes that use it are on one machine."""
    open_entries: str
    """The table of entries, as ``e``, for queries that need open ones only: it names the index."""
    account_entries: str
    """The same for those of one account."""

    @property
    def heads(self) -> Heads | None:
        """The heads noted beside it, if they are."""

    def apply(self, ledger: int, steps: list[Step]) -> list[Outcome]:
        """All steps, in order, in one durable transaction; a refused step changes nothing.

        Otherwise none of them: ``LedgerUnavailable``, ``Refused``, or ``LedgerCorrupt`` where the tables' own rules
        forbid what the ledger's allow.
        """

    def owner(self, ledger: int) -> str | None:
        """The name under which this process reserves; None before it did."""

    def now(self) -> int:
        """The clock by which processes are recorded as ``seen``, in microseconds since 1970."""

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """What a query gives, from what is committed. Placeholders are ``?``."""

    def snapshot(self) -> AbstractContextManager[Rows]:
        """A consistent read-only view; raises ``SnapshotLost`` if the connection drops. Never blocks writers."""

    def create(self, operation: Create) -> None:
        """A new ledger and its own account. Raises ``AlreadyExists``."""

    def transaction(self) -> AbstractContextManager[Rows]:
        """A way to write tables directly, all or nothing: for copies of whole ledgers."""

    def backup(self, path: str) -> None:
        """Copy the whole database into a new SQLite file."""

    def close(self) -> None:
        """Close all connections. They are opened again when needed."""

    def pause(self) -> None:
        """Before a fork: no connection may live on in two processes."""

    def resume(self) -> None:
        """After a fork, on both sides."""


class Hold:
    """A re-entrant lock that is held over a fork. Idempotent: safe to repeat after an interrupt."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._taken = False

    def take(self) -> None:
        """Wait for it, unless this thread has it already."""
        self._taken = self._taken or not self._lock._is_owned()
        while not self._lock._is_owned():
            self._lock.acquire()

    def leave(self) -> None:
        """Release it, if it was taken."""
        if self._taken:
            self._taken = False
            self._lock.release()
