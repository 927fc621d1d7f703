"""Books in PostgreSQL, for many processes and machines: one statement a batch, exactly once.

The rules are functions of the database (``schema/postgres``), which takes steps together whose order does not matter. A
batch carries a token; if the connection breaks while it is under way, it is sent again on a new one, and the database
applies it once.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import ref

from expost.canonical import canonical, sha256
from expost.errors import AlreadyExists, InvalidValue, LedgerCorrupt, LedgerUnavailable, MissingDependency
from expost.forks import here
from expost.ledger import schema
from expost.ledger.engine import UNREADABLE, Answer, Hold, Lost, Operation, Outcome, Refused, Rows, alone
from expost.ledger.liveness import TTL, identity

if TYPE_CHECKING:
    import psycopg

OLDEST = 130000
"""The oldest PostgreSQL that is supported, in its own way of counting."""
PATIENCE = 15.0
"""Seconds for which a lost connection is made again before a request fails."""
TURN = 2.0
"""Seconds for which tables that are to be brought up to date are waited for at a time: so long all others wait, too."""

_APPLY = "SELECT expost_apply(%s, %s, %s, %s, %s, %s::text::jsonb, %s::text::jsonb)"
_PLANS = (
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; "
    "SET enable_mergejoin = off; SET jit = off"
)  # a plan lasts as long as the connection: it must not be one for tables that are small
_LOCK = 7091847  # an advisory lock: migrations run one after the other
_MARK = (
    f"CREATE TABLE {schema.MARK} (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "name TEXT NOT NULL, digest TEXT NOT NULL)"
)


class PostgresEngine:
    """One database. Writes go through one connection, reads through another, each snapshot has its own; none lives
    across a fork.

    Proof: lem-together
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None
        self._shown: list[ref[psycopg.Connection[Any]]] = []
        """Those of snapshots."""
        self._reading = RLock()
        """Held while one question is answered."""
        self._fork = Hold(self._reading)
        self._process = here()
        self._before: dict[str, set[str]] = {}
        """The names of this process, in order, and the batch, or batches, that the database may have seen last
        under each."""
        try:
            with _translated():
                self._migrate()
        except BaseException:
            self.close()
            raise

    def apply(self, ledger: int, operations: list[Operation]) -> list[Outcome]:
        """All operations, in order, in one durable transaction."""
        import psycopg

        owner = self._owner(operations)
        batch = secrets.token_hex(8)
        before, steps = canonical(sorted(self._before[owner])), json.dumps(operations)
        values = (ledger, owner, identity(os.getpid()), TTL, batch, before, steps)
        self._before[owner].add(batch)  # from here on, until the answer is known
        try:
            answer = self._steady(lambda: self._write(_APPLY, values))
        except psycopg.IntegrityError as error:
            broken = error.diag.message_primary or "a rule of the tables"  # its detail shows rows
            raise LedgerCorrupt(
                f"the tables refused a step that the rules allow: {broken}; see verify_chain()"
            ) from None
        outcomes = answer[0] if answer is not None else None
        if not isinstance(outcomes, list):
            raise LedgerCorrupt("another process speaks to the database under this one's name")
        self._before[owner] = {batch}
        return outcomes

    def _owner(self, operations: list[Operation]) -> str:
        """Under which name this process writes: the last one that it was given. A step that comes late, still under
        an older name, goes under this one, too."""
        if self._process != here():
            self._process, self._before = here(), {}
        for operation in operations:
            if operation.get("owner"):
                self._before.setdefault(operation["owner"], set())
        if not self._before:
            self._before[secrets.token_hex(8)] = set()
        return next(reversed(self._before))

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """What a question gives, from what is committed."""
        question = sql.replace("?", "%s")
        return self._steady(lambda: alone(self._reading, lambda: self._ask(question, values)))

    def _ask(self, question: str, values: tuple[Any, ...]) -> list[Any]:
        """On the reader. After an interrupt nobody knows what is under way on a connection: it is given up."""
        import psycopg

        reader, self._reader = self._reader, None
        reader = self._usable(reader)
        try:
            found = reader.execute(question, values).fetchall()
        except psycopg.Error:
            self._reader = reader
            raise
        except BaseException:
            reader.close()
            raise
        self._reader = reader
        return found

    @contextmanager
    def snapshot(self) -> Iterator[Rows]:
        """A way to ask, all about one instant: on a connection of its own, which is never used for anything else."""
        import psycopg

        def opened() -> psycopg.Connection[Any]:
            reader = self._connect()
            self._shown = [*(known for known in self._shown if known()), ref(reader)]
            reader.isolation_level, reader.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
            reader.autocommit = False
            return reader

        def ask(question: str, values: tuple[Any, ...]) -> list[Any]:
            with _lost():
                return reader.execute(question, values).fetchall()

        def rows(sql: str, *values: Any) -> list[Any]:
            return alone(self._reading, lambda: ask(sql.replace("?", "%s"), values))

        reader = self._steady(lambda: alone(self._reading, opened))
        try:
            yield rows
        finally:
            alone(self._reading, reader.close)

    def _usable(self, connection: psycopg.Connection[Any] | None) -> psycopg.Connection[Any]:
        """The connection, or a new one if nothing can be asked on it, or only about what held before."""
        import psycopg

        if connection is not None:
            if not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                return connection
            connection.close()
        return self._connect()

    def create(self, name: str, row: Operation) -> None:
        """A new ledger and its own account."""
        with _translated():
            sql = "SELECT expost_create(%s, %s::text::jsonb)"
            made = self._write(sql, (name, json.dumps(row)))
        if made is None or not made[0]:
            raise AlreadyExists("ledger", name)

    def close(self) -> None:
        """Let go of the database. Whoever asks next connects again."""
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

    def _write(self, sql: str, values: tuple[Any, ...]) -> Any:
        """A statement's one row. After an interrupt nobody knows what is under way on a connection: it is given up."""
        import psycopg

        writer, self._writer = self._writer, None
        writer = self._usable(writer)
        try:
            answer = writer.execute(sql, values).fetchone()
        except psycopg.Error:
            self._writer = writer
            raise
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        return answer

    def _steady(self, work: Callable[[], Answer]) -> Answer:
        """Work that may be done again: after a lost connection, on a new one, for a while."""
        import psycopg

        until = time.monotonic() + PATIENCE
        while True:
            try:
                return work()
            except psycopg.IntegrityError:
                raise
            except psycopg.Error as error:
                if not _passing(error):
                    raise Refused(_said(error)) from error
                if time.monotonic() > until:
                    raise LedgerUnavailable(_said(error)) from error
                time.sleep(0.02)

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        try:
            connection: psycopg.Connection[Any] = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except psycopg.ProgrammingError:  # its words may hold a part of the password
            raise InvalidValue(UNREADABLE) from None
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        """A server that would forget what it acknowledged is refused."""
        if connection.info.server_version < OLDEST:
            raise InvalidValue(f"PostgreSQL {connection.info.server_version} is too old: 13 or newer is needed")
        rows = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"
        ).fetchall()
        settings = dict(rows)
        for name in ("fsync", "full_page_writes"):
            if settings[name] != "on":
                raise InvalidValue(f"this PostgreSQL has {name} = {settings[name]}: it would forget; turn it on")
        if settings["synchronous_commit"] == "off":
            connection.execute("SET synchronous_commit = on")
        connection.execute(_PLANS)

    def _migrate(self) -> None:
        """Bring the tables up to date; in turns, if somebody uses them, so that others can write in between."""
        from psycopg import errors

        connection = self._writer = self._connect()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return _run_missing(connection)
            except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
                if time.monotonic() > until:
                    raise LedgerUnavailable(
                        "the tables have to be brought up to date for this expost, but a long query or an open "
                        "transaction uses them; nothing was changed: try again when it has ended"
                    ) from error
                time.sleep(0.1)


def _run_missing(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        (there,) = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (schema.MARK,)).fetchone() or (False,)
        if not there:  # asked first: who may not create tables may still use them
            connection.execute(_MARK)
        done = connection.execute(f"SELECT name, digest FROM {schema.MARK} ORDER BY number").fetchall()
        connection.execute("SELECT set_config('lock_timeout', %s, TRUE)", (f"{TURN * 1000:.0f}",))
        for name, text in schema.missing("postgres", done):
            connection.execute(text)
            connection.execute(
                f"INSERT INTO {schema.MARK} (name, digest) VALUES (%s, %s)",
                (name, sha256(text)),
            )


def _passing(error: psycopg.Error) -> bool:
    """Whether it may be over in a while: a lost connection, a restart, a lock, a conflict."""
    import psycopg

    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    return code[:2] in ("08", "40", "57") or code in ("53300", "55P03")


def _said(error: psycopg.Error) -> str:
    if error.sqlstate == "42501":
        return (
            f"the database denies this: {error.diag.message_primary}; let its owner grant this user USAGE on the "
            "schema, SELECT, INSERT and UPDATE on the tables expost_*, and EXECUTE on the functions (who creates the "
            "first ledger there, or comes first with a newer expost, owns them and needs CREATE on the schema); "
            "nothing was recorded"
        )
    if not _passing(error):
        return f"the database refuses this: {_line(error)}; nothing was recorded"
    return f"the database does not answer: {_line(error)}; what was set aside stays set aside"


def _line(error: psycopg.Error) -> str:
    """What the database said, each line of it once: a connection that is tried again says it again."""
    return " ".join(dict.fromkeys(line.strip() for line in str(error).splitlines() if line.strip()))


@contextmanager
def _lost() -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        if not _passing(error):
            raise Refused(_said(error)) from error
        raise Lost(f"the connection was lost while the ledger was being read: {_line(error)}; try again") from error


@contextmanager
def _translated() -> Iterator[None]:
    try:
        import psycopg
    except ImportError:
        raise MissingDependency("PostgreSQL ledgers", "psycopg", "postgres") from None
    try:
        yield
    except psycopg.Error as error:
        raise LedgerUnavailable(_said(error)) from error
