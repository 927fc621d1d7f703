"""`Engine`: what a durable store needs of a database, atomic batches of operations and queries; and its `Settings`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from expost.errors import Busy, ExpostError, LedgerCorrupt, LedgerUnavailable, RequestRejected
from expost.ledger.entry import Entry
from expost.ledger.liveness import Processes, SystemProcesses
from expost.ledger.operations import Create, Operation, Remark

if TYPE_CHECKING:
    from expost.ledger.trail import Head

UNREADABLE = "the database's address cannot be parsed: write @ : / % in its password as %40 %3A %2F %25"


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
    """Settings of a durable ledger: timeouts, heartbeats, clocks.

    Parameters
    ----------
    patience
        Seconds for which a request waits for other processes, or for a server that restarts.
    deadline
        Seconds that a server may take to answer one request. ``patience + deadline`` bounds every call, and a
        settlement with the forfeit that is tried when it fails; twice the patience plus the deadline bounds a call that
        waits for another one of this process to the same address.
    beat
        Seconds between two heartbeats of a process.
    silence
        Seconds without a heartbeat after which a process on another machine is given up.
    clock, timer
        The machine's clock, in microseconds since 1970; and a monotonic clock, in seconds.
    pause
        Waits for that many seconds before a request to a server is tried again.
    processes
        Which process this one is, and which others are alive.
    user
        The user in the audit trail, where the database does not know it: by default the operating system's user.
    heads
        Whether a file holds the last head of each ledger: beside an SQLite file; of a server's ledgers on each client's
        machine, ``expost/heads`` in ``$XDG_STATE_HOME``, which is ``~/.local/state`` if it is not set.
    standby
        Whether nothing is spent unless a synchronous standby has it, too (PostgreSQL only).
    turn
        Seconds for which a migration waits at a time for others to release the tables, which makes new users of the
        tables wait, too (PostgreSQL only).
    page
        How many rows are read at a time.
    remembered
        How many accounts, guarantees and open entries of one ledger are cached between requests (SQLite only).
    synchronous, vfs
        How SQLite writes. Anything but the defaults is for tests.
    connect
        How PostgreSQL is connected to, with the arguments of ``psycopg.connect``. Only tests say otherwise.
    """

    patience: float = 15.0
    deadline: float = 10.0
    beat: float = 15.0
    silence: float = 60.0
    clock: Callable[[], int] = wall
    timer: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    processes: Processes = SystemProcesses()  # noqa: RUF009  # it has no state
    user: str | None = field(default_factory=login)
    heads: bool = True
    standby: bool = False
    turn: float = 2.0
    page: int = 500
    remembered: int = 4096
    synchronous: str = "EXTRA"
    vfs: str | None = None
    connect: Callable[..., Any] | None = None


class Beat(NamedTuple):
    """A heartbeat of this process."""


class Recover(NamedTuple):
    """Forfeit the open entries of these processes, and those whose lease is over."""

    dead: tuple[str, ...]


Step: TypeAlias = Operation | Beat | Recover
Outcome: TypeAlias = Entry | int | ExpostError | None
"""The new state of the entry, the number of entries forfeited, or None; or the error of a rejected step."""
Rows: TypeAlias = Callable[..., list[Any]]
"""Runs a query with its values, and returns its rows."""
Returned = TypeVar("Returned")


def is_out_of_reach(engine: Engine, error: BaseException) -> bool:
    """Whether the whole database is unavailable now. A busy server may serve other ledgers; a locked file cannot."""
    if isinstance(error, RequestRejected) or not isinstance(error, LedgerUnavailable):
        return False
    return isinstance(error, Busy) == engine.local


def alone(lock: Any, work: Callable[..., Returned], *values: Any) -> Returned:
    """Call a function under a re-entrant lock, which is released however the call ends, interrupts included."""
    held = lock._is_owned()
    try:
        with lock:
            return work(*values)
    finally:
        if not held and lock._is_owned():  # interrupted just before the block was entered or left
            lock.release()


class NotedHeads(Protocol):
    """The last head of each ledger, noted outside its books: books that end before it, or differ, have lost lines."""

    path: str
    """Where they are noted."""
    is_beside: bool
    """Whether they are beside the books, where every ledger has one; else only what was written to from here."""

    def noted(self, name: str) -> Head | None:
        """The head that was noted last. Raises ``LedgerUnavailable`` if it cannot be read."""

    def compare(
        self, noted: Head, name: str, sequence: int, hash_of: Callable[[int], str | None]
    ) -> LedgerCorrupt | None:
        """The error if books that end at that line do not contain this head, by the hashes of their lines."""

    def note(self, name: str, head: Head) -> bool:
        """Note a head, unless a later one is noted, and return whether it was."""


class Engine(Protocol):
    """A database of ledgers. ``apply`` acts exactly once: when it returns, everything is on disk."""

    settings: Settings
    read_only: bool
    local: bool
    """Whether all processes that use it are on one machine."""
    open_entries: str
    """The open entries, as ``e``; others may be among them."""
    accounts: str
    """The table of accounts, as verification reads it: the rows, and no index, which is another copy of their names."""
    lost_entries: str
    """The table of entries, as ``e``, with a hint to the index of those that were forfeited or voided."""
    account_entries: str
    """The table of entries, as ``e``, with a hint to the index by account."""
    lines: str
    """A query for sequence numbers, texts and hashes of a ledger's lines: after one, up to another, and how many."""
    new_line: str
    """A statement that writes a line: its ledger, sequence, text and hash."""

    @property
    def heads(self) -> NotedHeads | None:
        """The noted heads; None if nobody wants them."""

    def noted_as(self, ledger: int, name: str) -> str:
        """The name under which heads of a ledger are noted."""

    def keep_heads(self, run: Rows, ledger: int, name: str, line: int) -> None:
        """Within :meth:`transaction`, which makes a ledger: make a place for its heads, noted from a line on."""

    def adopt(self, ledger: int, step: Remark) -> None:
        """Record by a line that heads are noted anew, because those that were noted are missing or damaged; and note
        one. Raises if lines are known to be lost, or if nothing is missing."""

    def apply(self, ledger: int, steps: list[Step]) -> list[Outcome]:
        """Apply all steps, in order, in one durable transaction; a rejected step changes nothing.

        If it fails, none of them is applied: ``LedgerUnavailable``, ``RequestRejected``, or ``LedgerCorrupt`` if
        constraints of the tables forbid what the rules allow.
        """

    def owner(self, ledger: int) -> str | None:
        """The name under which this process reserves; None before its first reservation."""

    def now(self) -> int:
        """The clock of the column ``seen`` of processes, in microseconds since 1970."""

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a query, on committed data. Placeholders are ``?``."""

    def snapshot(self) -> AbstractContextManager[Rows]:
        """A consistent read-only view; raises ``SnapshotLost`` if the connection drops. Never blocks writers."""

    def await_disk(self) -> None:
        """Wait until everything that could be read before is on the disk."""

    def create(self, operation: Create) -> None:
        """Create a ledger and its own account. Raises ``AlreadyExists``."""

    def transaction(self) -> AbstractContextManager[Rows]:
        """A transaction that writes tables directly, for copies of whole ledgers."""

    def size(self) -> int:
        """How many bytes the database takes on its disk."""

    def mark(self) -> str:
        """What tells this database from others, wherever it is and however it is addressed; made if there is none."""

    def backup(self, path: str) -> None:
        """Copy the whole database into a new SQLite file."""

    def leave(self) -> None:
        """Called when the process ends, or nobody needs the database any more: forget this process, in ledgers in which
        no process has anything open. Otherwise it stays: later ones may count on when it wrote last, to give up others.
        Tried once."""

    def close(self) -> None:
        """Close all connections. They are opened again when needed."""

    def pause(self) -> None:
        """Called before a fork, while nobody commits: closes connections, which two processes must not share."""

    def resume(self, *, child: bool) -> None:
        """Called after a fork, in both processes."""


class Hold:
    """A re-entrant lock that is held over a fork. Idempotent: safe to repeat after an interrupt."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._taken = False

    def take(self) -> None:
        """Acquire it, unless this thread holds it already."""
        self._taken = self._taken or not self._lock._is_owned()
        while not self._lock._is_owned():
            self._lock.acquire()

    def take_if_free(self) -> bool:
        """Acquire it, unless another thread holds it; whether this thread holds it now."""
        if not self._lock._is_owned() and self._lock.acquire(blocking=False):
            self._taken = True
        return bool(self._lock._is_owned())

    def leave(self) -> None:
        """Release it, if :meth:`take` acquired it."""
        if self._taken:
            self._taken = False
            self._lock.release()
