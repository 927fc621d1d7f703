"""The engine of durable ledgers in an SQLite file: one writer at a time, durable at every commit.

It uses the SQLite of apsw, with a write-ahead log and ``synchronous=EXTRA``: a commit that returned is on disk.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import ref

import apsw

from expost.canonical import sha256
from expost.errors import (
    Busy,
    ExpostError,
    InvalidValue,
    LedgerCorrupt,
    LedgerUnavailable,
    RequestRejected,
    SnapshotLost,
)
from expost.forks import Process, here
from expost.ledger import schema
from expost.ledger.deadline import time_left
from expost.ledger.engine import Hold, Outcome, Rows, Settings, Step, alone
from expost.ledger.gate import GATE
from expost.ledger.heads import Heads
from expost.ledger.operations import Create, Remark
from expost.ledger.remedies import VERIFY, no_file, no_ledgers
from expost.ledger.sqlite.books import LINES, NEW_LINE, SqliteBooks, create_books, note_since
from expost.ledger.sqlite.guard import Guard
from expost.ledger.sqlite.identity import Files
from expost.ledger.trail import Head

OLDEST_LIBRARY = (3, 51, 3)
"""Older SQLite libraries have a race in resetting the write-ahead log that can corrupt it."""
_Done = TypeVar("_Done")
_PARTING = 100  # milliseconds for which a process that ends waits for others
_LEAVE = (
    "DELETE FROM expost_owner WHERE id = ?1 AND ledger = ?2 "
    "AND NOT EXISTS (SELECT 1 FROM expost_open e WHERE e.ledger = ?2 AND e.owner IS NOT NULL)"
)
_LOG = 4000  # pages in the write-ahead log before a checkpoint: pages that changed often are written once


class SqliteEngine:
    """One SQLite file. One connection writes, another reads, each snapshot has its own; none is open across a fork."""

    local = True
    open_entries = "expost_open e"
    accounts = "expost_account NOT INDEXED"
    lost_entries = "expost_entry e INDEXED BY expost_entry_ended"
    account_entries = "expost_entry e INDEXED BY expost_entry_account"
    lines, new_line = LINES, NEW_LINE

    def __init__(self, path: str, settings: Settings, *, create: bool = False, read_only: bool = False) -> None:
        library = apsw.sqlite_lib_version()
        if tuple(int(part) for part in library.split(".")) < OLDEST_LIBRARY:
            raise InvalidValue(f"SQLite {library} can corrupt its write-ahead log: install a newer apsw")
        if not create and not os.path.exists(path):
            raise no_file(path)
        self.settings = settings
        self._path, self._create, self.read_only = path, create, read_only
        self.heads = Heads(path) if settings.heads else None
        self._owners: dict[tuple[Process, int], str] = {}
        self._writer: apsw.Connection | None = None
        self._version: int | None = None
        self._known: dict[int, SqliteBooks] = {}
        """The books of ledgers, as of the version of the file that the writer committed last."""
        self._reader: apsw.Connection | None = None
        self._still: tuple[Any, ...] | None = None
        """The state of the file when it was opened as one that nobody changes."""
        self._copy: tuple[tuple[int, ...], TemporaryDirectory[str]] | None = None
        """A private copy, and the state of the file that it was made from."""
        self._shown: list[ref[apsw.Connection]] = []
        """The connections of snapshots."""
        self._reading = RLock()
        """Held during each query."""
        self._fork = Hold(self._reading)
        self._guard = Guard(path)
        self.files = Files(path, self._guard.beginning)
        try:
            with self._translated():
                self._open()
        except BaseException:
            self.close()
            raise

    # ---- writing

    def apply(self, ledger: int, steps: list[Step]) -> list[Outcome]:
        """Apply all steps, in order, in one durable transaction."""
        self._refuse_reading()
        whose = here(), ledger
        owner = self._owners.setdefault(whose, secrets.token_hex(8))  # kept also if the answer is lost

        def work(cursor: apsw.Cursor) -> tuple[SqliteBooks, list[Outcome]]:
            books = self._known.pop(ledger, None) or SqliteBooks(ledger, self.settings)  # dropped if this fails
            books.start(cursor, owner)
            if self.heads is not None and not (books.is_noted and self.heads.is_last(books.root[0])):
                self._look_for_lost(books, self.heads)
            return books, books.apply(steps)

        try:
            books, outcomes = self._transact(work)
        except apsw.ConstraintError as error:
            raise LedgerCorrupt(f"the tables rejected a step that the rules allow: {error}; see ", VERIFY) from error
        except _TROUBLE as error:
            raise self._meaning(error) from error
        self._owners[whose] = books.owner
        if books.lost is None:
            self._known[ledger] = books
            if self.heads is not None and (books.has_moved or not books.is_noted):
                books.is_noted = self.heads.note(books.root[0], Head(books.sequence, books.head))
        return outcomes

    def _look_for_lost(self, books: SqliteBooks, heads: Heads) -> None:
        """Compare books with the noted head; from now on it is noted, if it was not before."""
        name = books.root[0]
        books.lost = heads.lost(name, books.sequence, books.hash_of, books.noted_since)
        if books.lost is not None:
            self.files.check()  # heads may be those of a ledger that was created in its place
        elif books.noted_since is None and heads.prepare(name):
            books.note_since_now()

    def owner(self, ledger: int) -> str | None:
        """The name under which this process reserves."""
        return self._owners.get((here(), ledger))

    def create(self, operation: Create) -> None:
        """Create a ledger and its own account."""
        self._refuse_reading()

        def work(cursor: apsw.Cursor) -> str:
            ledger, head = create_books(cursor, operation, self.settings)
            lost = None if self.heads is None else self.heads.lost(operation.name, 0, lambda line: None)
            if lost is not None:
                raise lost
            self.keep_heads(lambda sql, *values: cursor.execute(sql, values).fetchall(), ledger, operation.name, 1)
            return head

        with GATE.held(), self._translated():
            head = self._transact(work)
        if self.heads is not None:
            self.heads.note(operation.name, Head(1, head))

    def keep_heads(self, run: Rows, ledger: int, name: str, line: int) -> None:
        """Within a transaction that makes a ledger: its heads are noted from a line on."""
        if self.heads is not None and self.heads.prepare(name):
            note_since(run, ledger, line)

    def noted_as(self, ledger: int, name: str) -> str:
        """The name of a ledger in the file of heads."""
        return name

    def adopt(self, ledger: int, step: Remark) -> None:
        """Record that heads are noted anew, because those that were noted are missing or damaged; and note one."""
        self._refuse_reading()
        heads = self.heads
        if heads is None:
            raise InvalidValue("no heads are noted with these settings: load the ledger with heads=True")

        def work(cursor: apsw.Cursor) -> SqliteBooks:
            books = SqliteBooks(ledger, self.settings)
            books.start(cursor, secrets.token_hex(8))
            heads.refuse_intact(books.root[0], books.sequence, books.hash_of)
            for refused in books.apply([step]):
                if isinstance(refused, ExpostError):
                    raise refused
            books.note_since_now()
            return books

        with GATE.held(), self._translated():
            books = self._transact(work)
            heads.renew(books.root[0], Head(books.sequence, books.head))

    def _transact(self, work: Callable[[apsw.Cursor], _Done]) -> _Done:
        """Do the work and commit it, or change nothing. Even an interrupt leaves no transaction open.

        It is no block: the generator of one that was interrupted rolls back when it is collected, which may be in the
        middle of a later transaction.
        """
        writer = self._writing()
        cursor = writer.cursor()  # one for all statements: to make one for each takes longer
        try:
            cursor.execute("BEGIN IMMEDIATE")
            if self._guard.is_wanted:
                self._guard.hold()
            if writer.data_version() != self._version:  # another connection wrote
                self._known.clear()
            result = work(cursor)
            self.files.check()
            self._version = None
            cursor.execute("COMMIT")
            self.files.check()  # what is in a log that was removed meanwhile is not acknowledged
            self._version = writer.data_version()
        except BaseException:
            cursor.close(True)
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise
        return result

    def _refuse_reading(self) -> None:
        if self.read_only:
            raise InvalidValue(f"{self._path!r} was opened read-only: load it without read_only=True")

    # ---- reading

    def now(self) -> int:
        """This machine's clock."""
        return self.settings.clock()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a query, on committed data."""
        with self._translated():
            return alone(self._reading, lambda: self._ask(sql, values))

    def _ask(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """Query on the reader, which is kept only if it is known to be idle: not after an interrupt."""
        reader, self._reader = self._reader, None
        if reader is not None and (reader.in_transaction or self._has_changed()):  # it would show an old state
            reader.close(True)
            reader = None
        if reader is None:
            reader = self._connect()
        try:
            found = reader.execute(sql, values).fetchall()
        except BaseException:
            reader.close(True)
            raise
        self._reader = reader
        if self._still is None and self._guard.is_wanted:
            self._guard.hold()
        return self._ask(sql, values) if self._has_changed() else found

    @contextmanager
    def snapshot(self) -> Iterator[Rows]:
        """A consistent read-only view, on a connection of its own."""

        def opened() -> apsw.Connection:
            reader = self._connect()
            self._shown = [*(known for known in self._shown if known()), ref(reader)]
            reader.execute("BEGIN")
            return reader

        def ask(sql: str, values: tuple[Any, ...]) -> list[Any]:
            try:
                found = reader.execute(sql, values).fetchall()
            except apsw.ConnectionClosedError:
                raise SnapshotLost("a process was forked while the ledger was being read: try again") from None
            if self._has_changed():
                raise SnapshotLost("another process opened the file while it was being read: try again")
            return found

        def rows(sql: str, *values: Any) -> list[Any]:
            with self._translated():
                return alone(self._reading, lambda: ask(sql, values))

        with self._translated():
            reader = alone(self._reading, opened)
        try:
            yield rows
        finally:
            alone(self._reading, lambda: reader.close(True))

    def await_disk(self) -> None:
        """A commit is on the disk before others can read it."""

    # ---- connections

    def close(self) -> None:
        """Close all connections."""
        connections = (self._reader, self._writer, *(known() for known in self._shown))
        self._reader, self._writer, self._shown = None, None, []
        self._guard.loosen()
        for connection in connections:
            if connection is not None:
                connection.close()
        self._guard.release()
        if self.heads is not None:
            self.heads.close()
        self.files.close()
        self._remove_copy()

    def _remove_copy(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy[1].cleanup()

    def leave(self) -> None:
        """Delete this process's rows, where nobody has anything open. Nobody waits for that, and it may be lost."""
        mine = [(name, ledger) for (who, ledger), name in self._owners.items() if who == here()]
        writer = self._writer
        if writer is None or not mine or writer.in_transaction:
            return
        self._owners.clear()
        self._known.clear()  # they know that this process is there
        with suppress(apsw.Error, OSError, ExpostError):
            writer.set_busy_timeout(_PARTING)
            writer.execute("PRAGMA synchronous = NORMAL").fetchall()
            for whose in mine:
                writer.execute(_LEAVE, whose).fetchall()

    def pause(self) -> None:
        """Called before a fork: closes connections, which two processes must not share."""
        self._fork.take()
        self.close()

    def resume(self, *, child: bool) -> None:
        """Called after a fork, in both processes."""
        self._fork.leave()

    @contextmanager
    def transaction(self) -> Iterator[Rows]:
        """A transaction that writes tables directly."""
        with GATE.held(), self._translated():
            writer, self._version = self._writing(), None
            try:
                writer.execute("BEGIN IMMEDIATE")
                yield lambda sql, *values: writer.execute(sql, values).fetchall()
                self.files.check()
                writer.execute("COMMIT")
                self.files.check()
            finally:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")

    def size(self) -> int:
        """The bytes of the file and its log."""
        return sum(os.stat(name).st_size for name in (self._path, f"{self._path}-wal") if os.path.exists(name))

    def mark(self) -> str:
        """The user version in the file's header, which nothing else uses; drawn if there is none."""

        def drawn(cursor: apsw.Cursor) -> int:
            known: Any = cursor.execute("PRAGMA user_version").get
            number: int = known or 1 + secrets.randbelow(2**31 - 1)
            if not known:
                cursor.execute(f"PRAGMA user_version = {number}").fetchall()
            return number

        self._refuse_reading()
        with GATE.held(), self._translated():
            return f"{self._transact(drawn):08x}"

    def backup(self, path: str) -> None:
        """Copy a snapshot of the whole database into a new file."""
        with GATE.held(), self._translated():
            source = self._connect()
            try:
                source.execute("VACUUM INTO ?", (path,)).fetchall()
            finally:
                source.close(True)

    def _writing(self) -> apsw.Connection:
        if self._writer is not None and self._writer.in_transaction:  # not even its rollback succeeded
            stuck, self._writer = self._writer, None
            stuck.close()
        if self._writer is None:
            self.files.close()
            self._writer, self._version = self._connect(), None
        return self._writer

    def _connect(self) -> apsw.Connection:
        if self.read_only:
            return self._connect_reading()
        if self.files.is_known or os.path.exists(self._path):
            self.files.check_file()
        new = apsw.SQLITE_OPEN_CREATE if self._create and not self.files.is_known else 0
        connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE | new, vfs=self.settings.vfs)
        self.files.check_file()
        connection.set_busy_handler(_patience(self.settings.patience))
        connection.execute("PRAGMA foreign_keys = ON").fetchall()
        connection.execute(f"PRAGMA synchronous = {self.settings.synchronous}").fetchall()
        connection.wal_autocheckpoint(_LOG)
        return connection

    def _connect_reading(self) -> apsw.Connection:
        """A read-only connection. Without a write-ahead log, or its shared-memory file, nobody has the file open for
        writing: then reading leaves no trace."""
        self.files.check_file()
        state = self._state()
        logged = state[0] > 0
        still = not logged or not os.path.exists(f"{self._path}-shm")
        self._still = state if still else None
        path = self._copied(state) if logged and still else self._path
        uri = f"file:{quote(path)}?mode=ro" + "&immutable=1" * (not logged)
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        connection.set_busy_handler(_patience(self.settings.patience))
        return connection

    def _copied(self, state: tuple[int, ...]) -> str:
        """The path of a private copy of the file and its log: reading them in place would leave a file behind."""
        if self._copy is None or self._copy[0] != state:
            self._remove_copy()
            self._copy = (), TemporaryDirectory(prefix="expost-")  # of no state, until it is complete
            for ending in ("", "-wal"):
                shutil.copyfile(f"{self._path}{ending}", f"{self._copy[1].name}/books.db{ending}")
            if self._state() != state:
                raise SnapshotLost("another process opened the file while it was being read: try again")
            self._copy = state, self._copy[1]
        return f"{self._copy[1].name}/books.db"

    def _state(self) -> tuple[int, ...]:
        """The size of the log, and numbers that change when somebody writes."""
        found = os.stat(self._path)
        try:
            log = os.stat(f"{self._path}-wal")
        except FileNotFoundError:
            return 0, 0, found.st_size, found.st_mtime_ns
        return log.st_size, log.st_mtime_ns, found.st_size, found.st_mtime_ns

    def _has_changed(self) -> bool:
        return self._still is not None and self._still != self._state()

    def _open(self) -> None:
        """Check the tables, and create them if that is wanted."""
        find = "SELECT 1 FROM sqlite_master WHERE name = ?"
        if self.read_only:
            if not self.rows(find, schema.MARK):
                raise no_ledgers(self._path)
            return schema.refuse_unknown("sqlite", self.rows(schema.DONE))
        writer = self._writing()
        if not self._create and not writer.execute(find, (schema.MARK,)).fetchall():
            raise no_ledgers(self._path)
        if self._journal_mode(writer) != "wal":
            raise InvalidValue(f"{self._path!r} cannot have a write-ahead log: put the ledger on a local disk")
        mark = f"CREATE TABLE IF NOT EXISTS {schema.MARK} (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT)"

        def done() -> Any:
            return writer.execute(schema.DONE).fetchall()

        if writer.execute(find, (schema.MARK,)).fetchall() and not schema.missing("sqlite", done()):
            return self.files.check()  # a log that is replaced before the first commit is noticed, too

        def run(cursor: apsw.Cursor) -> None:
            cursor.execute(mark).fetchall()
            for name, text in schema.missing("sqlite", done()):
                cursor.execute(text).fetchall()
                cursor.execute(f"INSERT INTO {schema.MARK} (name, digest) VALUES (?, ?)", (name, sha256(text)))

        self._transact(run)

    def _journal_mode(self, writer: apsw.Connection) -> Any:
        """Switch to the write-ahead log, and return the mode. Processes that create a file at the same time wait for
        each other here, because SQLite does not call their busy handlers."""
        until = time.monotonic() + self.settings.patience
        while True:
            try:
                return writer.execute("PRAGMA journal_mode = WAL").get
            except apsw.BusyError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.002)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _TROUBLE as error:
            raise self._meaning(error) from error

    def _meaning(self, error: Exception) -> LedgerUnavailable | LedgerCorrupt:
        """An error of SQLite or the file as an error of the ledger."""
        if isinstance(error, apsw.BusyError):
            return Busy(
                f"another process kept the ledger's file locked for more than {self.settings.patience:g} seconds; "
                "nothing was recorded: try again"
            )
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            return LedgerCorrupt(f"{self._path!r} is not an SQLite database, or is damaged ({error}): check the path")
        if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
            what = (
                "read: copy it, with the file ending in -wal beside it, to a folder that can be written"
                if self.read_only
                else "written: let this user read and write it, its folder, and the files ending in -wal and -shm "
                "beside it; nothing was acknowledged"
            )
            return LedgerUnavailable(f"the ledger's file cannot be {what} ({error})")
        if isinstance(error, apsw.FullError | apsw.IOError):
            return LedgerUnavailable(
                f"the ledger's file cannot be written: {error}; nothing was acknowledged. Is the disk full?"
            )
        if isinstance(error, UnicodeDecodeError):
            return LedgerCorrupt("the ledger's file is damaged: a text in it is not valid UTF-8")
        if isinstance(error, OSError):
            return LedgerUnavailable(f"the ledger's file {self._path!r} cannot be read: {error.strerror}")
        return RequestRejected(
            f"SQLite rejected the request: {error}; nothing was acknowledged: repeat it, and report it if that fails"
        )


_TROUBLE = (apsw.Error, OSError, UnicodeDecodeError)


def _patience(seconds: float) -> Callable[[int], bool]:
    """A busy handler that waits in short steps, so that nobody starves, and gives up after that many seconds, or those
    that are left to the call."""
    until = [0.0]

    def wait(attempt: int) -> bool:
        if attempt == 0:
            until[0] = time.monotonic() + time_left(seconds)
        time.sleep(0.0005 if attempt < 20 else 0.002)
        return time.monotonic() < until[0]

    return wait
