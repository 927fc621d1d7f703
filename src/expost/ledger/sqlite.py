"""Books in an SQLite file: one writer at a time, durable at every commit.

SQLite itself is the one that apsw brings along. Write-ahead log, ``synchronous=EXTRA``: a commit that
returned is on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from threading import RLock
from typing import Any
from weakref import ref

import apsw

from expost.canonical import sha256
from expost.errors import AlreadyExists, Busy, InvalidValue, LedgerCorrupt, LedgerUnavailable
from expost.ledger import schema
from expost.ledger.engine import Hold, Lost, Operation, Outcome, Refused, Rows, alone
from expost.ledger.trail import TICKS, full_hour, link, write_line

OLDEST = (3, 51, 3)
"""SQLite before this has a race in resetting its write-ahead log that can corrupt it."""
SYNCHRONOUS = "EXTRA"
"""A commit returns when it is on the disk. EXTRA is FULL, and makes sure of the file's first transaction, too: the one
that turns the write-ahead log on removes a journal, which must not be back after a power cut."""
VFS: str | None = None
"""How files are read and written: the operating system's way. (Tests cut the power here.)"""
PATIENCE = 10.0
"""Seconds that a request waits for other processes to finish theirs."""


def now() -> int:
    """Microseconds since 1970, by the wall clock. It may go backwards; what uses it allows for that."""
    return time.time_ns() // 1000


class SqliteEngine:
    """One file. Writes go through one connection, reads through another, each snapshot has its own; nothing is open
    across a fork."""

    def __init__(self, path: str, *, create: bool) -> None:
        version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        if version < OLDEST:
            raise InvalidValue(f"SQLite {apsw.sqlite_lib_version()} can corrupt its log: install a newer apsw")
        if not create and not FilePath(path).exists():
            raise InvalidValue(f"there is no ledger file {path!r}: create a ledger there first")
        self._path = path
        self._writer: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._shown: list[ref[apsw.Connection]] = []
        """Those of snapshots."""
        self._reading = RLock()
        """Held while one question is answered."""
        self._fork = Hold(self._reading)
        try:
            with _translated():
                self._migrate(create)
        except BaseException:
            self.close()
            raise

    def apply(self, ledger: int, operations: list[Operation]) -> list[Outcome]:
        """All operations, in order, in one durable transaction."""
        with _translated():
            writer = self._writing()
            try:
                outcomes: list[Outcome] = _transact(writer, lambda _: Transaction(writer, ledger).apply(operations))
            except apsw.ConstraintError as error:
                raise _refused(error) from error
        return outcomes

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """What a question gives, from what is committed."""
        with _translated():
            return alone(self._reading, lambda: self._ask(sql, values))

    def _ask(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """On the reader, which is put back when it is known to be idle: after an interrupt nobody knows."""
        reader, self._reader = self._reader, None
        if reader is not None and reader.in_transaction:  # it would show what held before
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
        return found

    @contextmanager
    def snapshot(self) -> Iterator[Rows]:
        """A way to ask, all about one instant: on a connection of its own, which is never used for anything else."""

        def opened() -> apsw.Connection:
            reader = self._connect()
            self._shown = [*(known for known in self._shown if known()), ref(reader)]
            reader.execute("BEGIN")
            return reader

        def ask(sql: str, values: tuple[Any, ...]) -> list[Any]:
            try:
                return reader.execute(sql, values).fetchall()
            except apsw.ConnectionClosedError:
                raise Lost("a process was forked while the ledger was being read: try again") from None

        def rows(sql: str, *values: Any) -> list[Any]:
            with _translated():
                return alone(self._reading, lambda: ask(sql, values))

        with _translated():
            reader = alone(self._reading, opened)
        try:
            yield rows
        finally:
            alone(self._reading, lambda: reader.close(True))

    def create(self, name: str, row: Operation) -> None:
        """A new ledger and its own account, or nothing if the name is taken."""
        with _translated():
            _transact(self._writing(), lambda writer: _create(writer, name, row))

    def close(self) -> None:
        """Let go of the file. Whoever asks next opens it again."""
        connections = (self._reader, self._writer, *(known() for known in self._shown))
        self._reader, self._writer, self._shown = None, None, []
        for connection in connections:
            if connection is not None:
                connection.close()

    def pause(self) -> None:
        """Before a fork: no connection may live on in two processes."""
        self._fork.take()
        self.close()

    def resume(self) -> None:
        """After a fork, on both sides."""
        self._fork.leave()

    def _writing(self) -> apsw.Connection:
        if self._writer is not None and self._writer.in_transaction:  # not even a rollback was possible
            stuck, self._writer = self._writer, None
            stuck.close()
        if self._writer is None:
            self._writer = self._connect()
        return self._writer

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self._path, vfs=VFS)
        connection.set_busy_handler(_patience())
        connection.execute("PRAGMA foreign_keys = ON").fetchall()
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}").fetchall()
        return connection

    def _migrate(self, create: bool) -> None:
        writer = self._writing()
        known = writer.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (schema.MARK,)).fetchall()
        if not create and not known:
            raise InvalidValue(f"the database {self._path!r} holds no ledgers: create one there first")
        if writer.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise InvalidValue(f"{self._path!r} cannot keep a write-ahead log: put the ledger on a local disk")
        mark = f"CREATE TABLE IF NOT EXISTS {schema.MARK} (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT)"

        def run(writer: apsw.Connection) -> None:
            writer.execute(mark).fetchall()
            done: list[Any] = writer.execute(f"SELECT name, digest FROM {schema.MARK} ORDER BY number").fetchall()
            for name, text in schema.missing("sqlite", done):
                writer.execute(text).fetchall()
                writer.execute(
                    f"INSERT INTO {schema.MARK} (name, digest) VALUES (?, ?)", (name, sha256(text))
                ).fetchall()

        _transact(writer, run)


class Transaction:
    """Operations on one ledger inside one transaction: the rules, and the audit trail beside them.

    Proof: thm-durable
    """

    def __init__(self, connection: apsw.Connection, ledger: int) -> None:
        self._connection = connection
        self._ledger = ledger
        row = self._row("SELECT sequence, entries, at, head FROM expost_ledger WHERE id = ?", ledger)
        self._sequence, self._entries, self._at, self._head = row
        self._now = now()
        """For leases; the books have a clock of their own."""

    def apply(self, operations: list[Operation]) -> list[Outcome]:
        """What became of each."""
        before = self._sequence
        if any(operation["do"] in TICKS for operation in operations):
            self._at = max(self._at, full_hour(self._now))
        outcomes = [getattr(self, operation["do"])(operation) for operation in operations]
        if self._sequence > before:
            self._run(
                "UPDATE expost_ledger SET sequence = ?, entries = ?, at = ?, head = ? WHERE id = ?",
                self._sequence, self._entries, self._at, self._head, self._ledger,
            )  # fmt: skip
        return outcomes

    def reserve(self, op: Operation) -> Outcome:
        """Set the worst case aside at every level, or say why not."""
        if op["key"] is not None:
            used = self._row("SELECT number FROM expost_entry WHERE ledger = ? AND key = ?", self._ledger, op["key"])
            if used is not None:
                return {"used": used[0]}
        levels = [self._row(_LEVEL, account) for account in op["levels"]]
        if any(closed or epsilon < op["epsilon"] or delta < op["delta"] for *_, closed, epsilon, delta in levels):
            return {"levels": [list(level[:7]) for level in levels]}
        if op["owner"] is not None and not self._alive(op):
            return {"expired": True}
        for account in op["levels"]:
            self._run(
                "UPDATE expost_account SET epsilon_reserved = epsilon_reserved + ?1, "
                "delta_reserved = delta_reserved + ?2 WHERE id = ?3 AND closed = 0 "
                "AND ?1 <= epsilon_limit - epsilon_spent - epsilon_reserved "
                "AND ?2 <= delta_limit - delta_spent - delta_reserved",
                op["epsilon"], op["delta"], account,
            )  # fmt: skip
        if op["claim_text"] is not None:
            self._run("INSERT OR IGNORE INTO expost_claim VALUES (?, ?)", op["claim"], op["claim_text"])
        self._entries += 1
        self._run(
            "INSERT INTO expost_entry (ledger, number, account, operation, subject, fingerprint, claim, label, key, "
            "epsilon, delta, owner, lease_until, begun, reserved_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            self._ledger, self._entries, op["levels"][-1], op["operation"], op["subject"], op["fingerprint"],
            op["claim"], op["label"], op["key"], op["epsilon"], op["delta"], op["owner"],
            None if op["lease"] is None else self._now + op["lease"], int(op["begun"]), self._at,
        )  # fmt: skip
        self._note("reserve", self._entries, op["body"])
        return {"entry": self._entries, "at": self._at}

    def begin(self, op: Operation) -> Outcome:
        """Sampling starts."""
        state, begun = self._entry(op["entry"])[:2]
        if state != "reserved":
            return {"ended": state}
        if not begun:
            self._run("UPDATE expost_entry SET begun = 1 WHERE ledger = ? AND number = ?", self._ledger, op["entry"])
            self._note("begin", op["entry"], "{}")
        return {"at": self._at}

    def end(self, op: Operation) -> Outcome:
        """Settle, forfeit or void."""
        state, begun, account, epsilon, delta = self._entry(op["entry"])
        if state != "reserved" or (op["state"] == "voided" and begun):
            return {"ended": state}
        self._finish(op, op["levels"] if op["levels"][-1] == account else self._levels(account), epsilon, delta)
        return {"at": self._at}

    def recover(self, op: Operation) -> Outcome:
        """Forfeit what belongs to processes that are gone or silent, and what was left past its own lease."""
        self._run(
            "UPDATE expost_owner SET expired = 1 WHERE ledger = ? AND expired = 0 AND ((deadline < ? AND id <> ?) "
            "OR id IN (SELECT value FROM json_each(?)))",
            self._ledger, self._now, op["by"], op["dead"],
        )  # fmt: skip
        lost: list[Any] = self._connection.execute(
            "SELECT e.number, e.account, e.epsilon, e.delta FROM expost_entry e LEFT JOIN expost_owner o "
            "ON o.id = e.owner WHERE e.ledger = ? AND e.state = 'reserved' AND (o.expired = 1 OR e.lease_until < ?) "
            "ORDER BY e.number",
            (self._ledger, self._now),
        ).fetchall()
        for number, account, epsilon, delta in lost:
            body = f'{{"charged":[{epsilon},{delta}],"output":null,"part":null}}'
            ending = {"entry": number, "state": "forfeited", "epsilon": epsilon, "delta": delta, "body": body}
            self._finish(ending, self._levels(account), epsilon, delta)
        return {"forfeited": len(lost)}

    def beat(self, op: Operation) -> Outcome:
        """Say that the process is alive."""
        return {"alive": self._alive(op)}

    def account(self, op: Operation) -> Outcome:
        """A new account under another."""
        if self._row("SELECT 1 FROM expost_account WHERE ledger = ? AND path = ?", self._ledger, op["path"]):
            return {"exists": True}
        self._run(
            "INSERT INTO expost_account (ledger, parent, path, epsilon_limit, delta_limit) VALUES (?, ?, ?, ?, ?)",
            self._ledger, op["parent"], op["path"], op["epsilon"], op["delta"],
        )  # fmt: skip
        self._note("account", None, op["body"])
        return {"at": self._at}

    def limit(self, op: Operation) -> Outcome:
        """Raise a limit, if it is still what the owner saw."""
        self._run(
            "UPDATE expost_account SET epsilon_limit = ?, delta_limit = ? WHERE id = ? AND epsilon_limit = ? "
            "AND delta_limit = ?", op["epsilon"], op["delta"], op["account"], *op["seen"],
        )  # fmt: skip
        if not self._connection.changes():
            return {"moved": True}
        self._note("raise", None, op["body"])
        return {"at": self._at}

    def close(self, op: Operation) -> Outcome:
        """Allow nothing more."""
        self._run("UPDATE expost_account SET closed = 1 WHERE id = ?", op["account"])
        self._note("close", None, op["body"])
        return {"at": self._at}

    # ---- inside

    def _finish(self, op: Operation, levels: list[int], epsilon: int, delta: int) -> None:
        self._run(
            "UPDATE expost_entry SET state = ?, begun = ?, part = ?, charged_epsilon = ?, charged_delta = ?, "
            "output = ?, digest = ?, ended_at = ? WHERE ledger = ? AND number = ? AND state = 'reserved'",
            op["state"], int(op["state"] != "voided"), op.get("part"), op["epsilon"], op["delta"], op.get("output"),
            op.get("digest"), self._at, self._ledger, op["entry"],
        )  # fmt: skip
        for level in levels:
            self._run(
                "UPDATE expost_account SET epsilon_reserved = epsilon_reserved - ?1, "
                "delta_reserved = delta_reserved - ?2, epsilon_spent = epsilon_spent + ?3, "
                "delta_spent = delta_spent + ?4 WHERE id = ?5",
                epsilon, delta, op["epsilon"], op["delta"], level,
            )  # fmt: skip
        self._note(_ENDINGS[op["state"]], op["entry"], op["body"])

    def _levels(self, account: int) -> list[int]:
        found = self._connection.execute(
            "WITH RECURSIVE up(id, parent) AS (SELECT id, parent FROM expost_account WHERE id = ? UNION ALL "
            "SELECT a.id, a.parent FROM expost_account a JOIN up ON a.id = up.parent) SELECT id FROM up ORDER BY id",
            (account,),
        )
        return [level for (level,) in found]

    def _entry(self, number: int) -> Any:
        found = self._row(
            "SELECT state, begun, account, epsilon, delta FROM expost_entry WHERE ledger = ? AND number = ?",
            self._ledger, number,
        )  # fmt: skip
        if found is None:
            raise _refused(f"expost: entry {number} was removed")
        return found

    def _alive(self, op: Operation) -> bool:
        """Whether the process still counts as alive; if it does, it does for a while longer."""
        row = self._row("SELECT deadline, expired FROM expost_owner WHERE id = ?", op["owner"])
        until = self._now + op["ttl"]
        if row is None:
            self._run(
                "INSERT INTO expost_owner (id, ledger, identity, deadline) VALUES (?, ?, ?, ?)",
                op["owner"], self._ledger, op["identity"], until,
            )  # fmt: skip
            return True
        deadline, expired = row
        if not expired and deadline < until - op["ttl"] // 4:
            self._run("UPDATE expost_owner SET deadline = ? WHERE id = ?", until, op["owner"])
        return not expired

    def _note(self, kind: str, entry: int | None, body: str) -> None:
        self._sequence += 1
        line = write_line(self._sequence, self._at, kind, entry, body)
        self._head = link(self._head, line)
        self._run("INSERT INTO expost_event VALUES (?, ?, ?, ?)", self._ledger, self._sequence, line, self._head)

    def _run(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql, values)

    def _row(self, sql: str, *values: Any) -> Any:
        return self._connection.execute(sql, values).fetchone()


_LEVEL = (
    "SELECT epsilon_limit, delta_limit, epsilon_spent, delta_spent, epsilon_reserved, delta_reserved, closed, "
    "epsilon_limit - epsilon_spent - epsilon_reserved, delta_limit - delta_spent - delta_reserved "
    "FROM expost_account WHERE id = ?"
)
_ENDINGS = {"settled": "settle", "forfeited": "forfeit", "voided": "void"}


def _create(writer: apsw.Connection, name: str, row: Operation) -> None:
    if writer.execute("SELECT 1 FROM expost_ledger WHERE name = ?", (name,)).fetchone():
        raise AlreadyExists("ledger", name)
    at = full_hour(now())
    line = write_line(1, at, "create", None, row["body"])
    head = link("0" * 64, line)
    writer.execute(
        "INSERT INTO expost_ledger (name, neighbours, unit, sequence, entries, at, head) VALUES (?, ?, ?, 1, 0, ?, ?)",
        (name, row["neighbours"], row["unit"], at, head),
    )
    ledger = writer.last_insert_rowid()
    writer.execute("INSERT INTO expost_event VALUES (?, 1, ?, ?)", (ledger, line, head))
    writer.execute(
        "INSERT INTO expost_account (ledger, path, epsilon_limit, delta_limit) VALUES (?, ?, ?, ?)",
        (ledger, name, row["epsilon"], row["delta"]),
    )


def _refused(why: object) -> LedgerCorrupt:
    return LedgerCorrupt(f"the tables refused a step that the rules allow: {why}; see verify_chain()")


def _transact(writer: apsw.Connection, work: Callable[[apsw.Connection], Any]) -> Any:
    """Work and commit, or nothing. After an interrupt it is known which: no transaction is left open."""
    try:
        writer.execute("BEGIN IMMEDIATE")
        result = work(writer)
        writer.execute("COMMIT")
    except BaseException:
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        raise
    return result


def _patience() -> Callable[[int], bool]:
    """Wait for another process in short steps, so that nobody starves; give up after :data:`PATIENCE`."""
    since = [0.0]

    def wait(attempt: int) -> bool:
        if attempt == 0:
            since[0] = time.monotonic()
        time.sleep(0.0005 if attempt < 20 else 0.002)
        return time.monotonic() - since[0] < PATIENCE

    return wait


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except apsw.BusyError as error:
        raise Busy(
            f"another process has kept the ledger's file locked for {PATIENCE:g} seconds; nothing was recorded"
        ) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise LedgerCorrupt(f"the ledger's file is no SQLite database, or was damaged: {error}") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise LedgerUnavailable(
            f"the ledger's file cannot be written: {error}; let this user read and write it, its folder, and the files "
            "ending in -wal and -shm beside it; nothing was acknowledged"
        ) from error
    except (apsw.FullError, apsw.IOError) as error:
        raise LedgerUnavailable(f"the ledger's file cannot be written: {error}; nothing was acknowledged") from error
    except apsw.Error as error:
        raise Refused(f"the ledger's file refuses this: {error}; nothing was acknowledged") from error
