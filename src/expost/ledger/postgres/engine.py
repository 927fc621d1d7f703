"""The engine of durable ledgers in PostgreSQL, for many processes and machines: one statement per batch, exactly once.

The rules are functions of the database (``schema/postgres``). A batch has a token; if the connection breaks while it is
under way, it is sent again on a new one, and the database applies it once. Every request has a deadline, whatever the
network and the server do.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

from expost.canonical import canonical, sha256
from expost.errors import AlreadyExists, Busy, ExpostError, InvalidValue, LedgerCorrupt, LedgerUnavailable, NoLedgers
from expost.forks import Process, here
from expost.ledger import schema
from expost.ledger.deadline import all_within, time_left
from expost.ledger.engine import UNREADABLE, Hold, Outcome, Returned, Rows, Settings, Step, alone
from expost.ledger.heads import Heads, of_this_machine
from expost.ledger.operations import Close, Create, Remark
from expost.ledger.postgres.disk import await_disk
from expost.ledger.postgres.errors import is_passing, lost_snapshot, meaning, translated
from expost.ledger.postgres.steps import Governing, Steps, TableView, denied
from expost.ledger.remedies import VERIFY
from expost.ledger.trail import Head

if TYPE_CHECKING:
    import psycopg

_SPEND = "CALL expost_commit(%s, %s, %s, %s, %s::text::jsonb, %s, %s::text::jsonb, NULL)"
_GOVERN = "SELECT expost_govern(%s, %s, %s, %s::text::jsonb)"
_PLANS = (
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; "
    "SET enable_mergejoin = off; SET jit = off; SET default_transaction_isolation = 'read committed'"
)  # a plan is kept as long as the connection, and must suit tables that grow
_PARTING = 1.0  # seconds for which a process that ends waits for a server
_LOCK = 7091847  # an advisory lock, so that migrations run one after the other
_random = getattr(os, "getrandom", os.urandom)  # urandom would let all threads run that were just answered
_MARK = (
    f"CREATE TABLE {schema.MARK} (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "name TEXT NOT NULL, digest TEXT NOT NULL)"
)


class _Session:
    """This process as a writer to one ledger: its name, and the batches that the database may have seen last."""

    def __init__(self) -> None:
        self.owner = secrets.token_hex(8)
        self.before: set[str] = set()
        """The batches that the database may have seen last under this name."""
        self.known = 0
        """The last line that was acknowledged."""
        self.compared: Callable[[], object] = lambda: None
        """The connection on which the books were compared with the head that was noted last."""

    def rename(self) -> None:
        """Continue under another name, because this process was given up."""
        self.owner, self.before = secrets.token_hex(8), set()


class PostgresEngine:
    """One PostgreSQL database. One connection writes, another reads, and each snapshot has its own; none is open across
    a fork.

    Proof: thm-durable
    """

    local = False
    accounts = "expost_account"
    open_entries = lost_entries = account_entries = "expost_entry e"
    lines = (
        "SELECT sequence, line, hash FROM expost_event WHERE ledger = ? AND sequence > ? AND sequence <= ? "
        "ORDER BY sequence LIMIT ?"
    )
    new_line = "INSERT INTO expost_event VALUES (?, ?, ?, ?)"
    oldest_server = 130000
    """The oldest PostgreSQL that is supported, as its ``server_version_num``."""

    def __init__(self, url: str, settings: Settings, *, read_only: bool = False) -> None:
        self.settings = settings
        self._url, self.read_only = url, read_only
        self.heads = Heads(url, of_this_machine()) if settings.heads else None
        self._noted_as: dict[int, str] = {}
        self._warned: WeakKeyDictionary[psycopg.Connection[Any], list[str]] = WeakKeyDictionary()
        """What the server told each connection while it waited for a standby."""
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None
        self._shown: list[ref[psycopg.Connection[Any]]] = []
        """The connections of snapshots."""
        self._made: WeakSet[psycopg.Connection[Any]] = WeakSet()
        """All connections, so that a forked copy of this process can let go of those that are in use."""
        self._reading = RLock()
        """Held during each query."""
        self._fork = Hold(self._reading)
        self._lost: tuple[float, str] | None = None
        """When the server could not be reached last, and the error."""
        self._sessions: dict[tuple[Process, int], _Session] = {}
        self._steps = Steps(self.rows)
        try:
            with translated():
                self._open()
        except BaseException:
            self.close()
            raise

    # ---- writing

    def apply(self, ledger: int, steps: list[Step]) -> list[Outcome]:
        """Apply all steps, in order: in one durable transaction, or one each if some are administration."""
        self._refuse_reading()
        if any(self._steps.governs(step) for step in steps):
            return [outcome for step in steps for outcome in self._apart(ledger, step)]
        outcomes = self._spend(ledger, steps)
        return [self._settled(ledger, step, outcome) for step, outcome in zip(steps, outcomes, strict=True)]

    def _apart(self, ledger: int, step: Step) -> list[Outcome]:
        if not self._steps.governs(step):
            return self.apply(ledger, [step])
        try:
            self._govern(ledger, step)
        except (LedgerUnavailable, LedgerCorrupt):
            raise
        except ExpostError as refused:
            return [refused]
        return [None]

    def _settled(self, ledger: int, step: Step, outcome: Any) -> Outcome:
        """The outcome of a step. The rules explain a rejection; if they would allow the step now, it is sent again."""
        while True:
            if "denied" in outcome:
                return denied(step, outcome["denied"])
            if outcome.get("expired"):
                self._session(ledger).rename()
            elif not outcome.get("refused"):
                return self._steps.outcome(ledger, step, outcome)
            elif (why := self._steps.refusal(ledger, step)) is not None:
                return why
            (outcome,) = self._spend(ledger, [step])

    def _spend(self, ledger: int, steps: list[Step]) -> list[Any]:
        session = self._session(ledger)
        batch = _random(8).hex()
        sent = json.dumps([self._steps.sent(ledger, step) for step in steps])
        before = canonical(sorted(session.before))
        values = (ledger, session.owner, self.settings.processes.me(), batch, before)
        session.before.add(batch)  # from here on, until the answer is known

        def sent_once() -> Any:
            self._compare(ledger, session)
            return self._write(_SPEND, (*values, session.known, sent))

        answer = self._guarded(lambda: self._steady(sent_once))
        found = answer[0] if answer is not None else None
        if not isinstance(found, dict) or "outcomes" not in found:
            raise LedgerCorrupt("another process writes to the database under this process's name")
        session.before, session.known = {batch}, max(session.known, found["sequence"])
        if self.heads is not None and found["head"]:
            self.heads.note(self.noted_as(ledger, ""), Head(found["sequence"], found["head"]))
        return list(found["outcomes"])

    def _session(self, ledger: int) -> _Session:
        whose = here(), ledger
        if whose not in self._sessions:
            self._sessions[whose] = _Session()
        return self._sessions[whose]

    def owner(self, ledger: int) -> str | None:
        """The name under which this process reserves."""
        found = self._sessions.get((here(), ledger))
        return None if found is None else found.owner

    def create(self, operation: Create) -> None:
        """Create a ledger and its own account."""
        self._refuse_reading()
        governing = self._steps.creation(operation)
        if not self._decide(0, governing):
            raise AlreadyExists("ledger", operation.name)

    def _compare(self, ledger: int, session: _Session | None = None) -> None:
        """Raise if the books lack the head that this machine noted last: the server went back, or a standby took its
        place. Asked once on each connection."""
        if self.heads is None:
            return
        writer = self._writer = self._usable(self._writer)
        if session is not None and session.compared() is writer:
            return
        noted = self.heads.noted(self.noted_as(ledger, ""))
        if noted is not None:
            lost = self.heads.compare(noted, *self._last(ledger))
            if lost is not None:
                raise lost
        if session is not None:
            session.known = max(session.known, 0 if noted is None else noted.sequence)
            session.compared = ref(writer)  # if it was replaced meanwhile, it is asked again

    def _last(self, ledger: int) -> tuple[str, int, Callable[[int], str | None]]:
        """The ledger's name, its last line, and the hashes of its lines."""

        def hash_of(line: int) -> str | None:
            found = self._write("SELECT hash FROM expost_event WHERE ledger = %s AND sequence = %s", (ledger, line))
            return None if found is None else str(found[0])

        name, sequence = self._write("SELECT name, sequence FROM expost_books WHERE id = %s", (ledger,))
        return name, sequence, hash_of

    def noted_as(self, ledger: int, name: str) -> str:
        """The server's address, which stays as it is restored or replaced, and the hash of the ledger's first line."""
        if ledger not in self._noted_as:
            (found,) = self.rows(
                "SELECT current_database(), current_schema(), hash FROM expost_event WHERE ledger = ? AND sequence = 1",
                ledger,
            )
            self._noted_as[ledger] = " ".join((_server_of(self._url), *found))
        return self._noted_as[ledger]

    def keep_heads(self, run: Rows, ledger: int, name: str, line: int) -> None:
        """Nothing: nobody expects a head on a machine that wrote nothing."""

    def adopt(self, ledger: int, step: Remark) -> None:
        """Record that this machine's noted head is damaged, and note it anew."""
        self._refuse_reading()
        heads = self.heads
        if heads is None:
            raise InvalidValue("no heads are noted with these settings: load the ledger with heads=True")
        with translated():
            heads.refuse_intact(self.noted_as(ledger, ""), *self._last(ledger)[1:])
        self._decided(ledger, step)
        with translated():
            _, last, hash_of = self._last(ledger)
            heads.renew(self.noted_as(ledger, ""), Head(last, str(hash_of(last))))

    def _govern(self, ledger: int, step: Any) -> None:
        """Apply a step of administration. With lost lines an account can only be closed."""
        if not isinstance(step, Close):
            self._guarded(lambda: self._steady(lambda: self._compare(ledger)))
        self._decided(ledger, step)

    def _decided(self, ledger: int, step: Any) -> None:
        """Apply a step of administration. Raises if it is not allowed; tried again if another one came first."""
        while True:
            governing = self._steps.governing(TableView(self.rows, ledger), step)
            if self._decide(ledger, governing):
                return

    def _decide(self, ledger: int, governing: Governing) -> bool:
        """Send it once, and return whether it was recorded; not known if the connection is lost."""
        with translated():
            self._writer = self._steady(lambda: self._usable(self._writer))
        values = (ledger, governing.kind, governing.path, json.dumps(governing.values))
        answer = self._guarded(lambda: self._write(_GOVERN, values))
        return bool(answer and answer[0])

    def _guarded(self, work: Callable[[], Any]) -> Any:
        import psycopg

        try:
            with translated():
                return work()
        except psycopg.IntegrityError as error:
            broken = error.diag.message_primary or "a constraint"  # the error's detail shows rows
            raise LedgerCorrupt(f"the tables rejected a step that the rules allow: {broken}; see ", VERIFY) from None

    def _refuse_reading(self) -> None:
        if self.read_only:
            raise InvalidValue("the database was opened read-only: load the ledger without read_only=True")

    # ---- reading

    def now(self) -> int:
        """The server's clock."""
        ((now,),) = self.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(now)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a query, on committed data."""
        question = sql.replace("?", "%s")

        def once() -> list[Any]:
            since = time.monotonic()
            return alone(self._reading, lambda: self._ask(question, values, since))

        return self._steady(once)

    def _ask(self, question: str, values: tuple[Any, ...], since: float) -> list[Any]:
        """Query on the reader, which is closed after an interrupt, when its state is not known."""
        import psycopg

        if self._lost is not None and self._lost[0] > since:  # found out while this thread waited
            raise psycopg.OperationalError(self._lost[1])
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
        """A consistent read-only view, on a connection of its own."""
        import psycopg

        def opened() -> psycopg.Connection[Any]:
            reader = self._connect()
            self._shown = [*(known for known in self._shown if known()), ref(reader)]
            reader.isolation_level, reader.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
            reader.autocommit = False
            return reader

        def ask(question: str, values: tuple[Any, ...]) -> list[Any]:
            with lost_snapshot():
                return reader.execute(question, values).fetchall()

        def rows(sql: str, *values: Any) -> list[Any]:
            return alone(self._reading, lambda: ask(sql.replace("?", "%s"), values))

        reader = self._steady(lambda: alone(self._reading, opened))
        try:
            await_disk(rows, self.rows)
            yield rows
        finally:
            alone(self._reading, reader.close)

    def await_disk(self) -> None:
        """Wait until everything that could be read before is on the disk."""
        await_disk(self.rows, self.rows)

    # ---- connections

    @contextmanager
    def transaction(self) -> Iterator[Rows]:
        """A transaction that writes tables directly."""
        with translated():
            writer, self._writer = self._usable(self._writer), None  # in use: a fork does not close it

            def run(sql: str, *values: Any) -> list[Any]:
                cursor = writer.execute(sql.replace("?", "%s"), values)
                return cursor.fetchall() if cursor.description else []

            with writer.transaction():
                yield run
            self._refuse_unconfirmed(writer)
            self._writer = writer

    def size(self) -> int:
        """The bytes of the tables and their indexes."""
        sql = (
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
            "WHERE c.relkind = 'r' AND c.relname LIKE 'expost\\_%' AND c.relnamespace = current_schema()::regnamespace"
        )
        ((size,),) = self.rows(sql.replace("%", "%%"))
        return int(size)

    def mark(self) -> str:
        """The numbers of the server and of the database in it, and the schema."""
        sql = (
            "SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())::bigint, "
            "current_schema() FROM pg_control_system()"
        )
        ((server, database, schema),) = self.rows(sql)
        return sha256(f"{server}-{database}-{schema}")[:16]

    def backup(self, path: str) -> None:
        """Not supported: a server has no file, so its ledgers are copied one by one."""
        raise NotImplementedError

    def leave(self) -> None:
        """Have this process's rows deleted, where nobody has anything open; tried once."""
        mine = [(ledger, session.owner) for (who, ledger), session in self._sessions.items() if who == here()]
        writer, self._writer = self._writer, None
        self._sessions.clear()
        if writer is None or self.read_only:
            return
        with suppress(Exception), closing(writer), all_within(_PARTING):
            for whose in mine:
                writer.execute("SELECT expost_leave(%s, %s)", whose)

    def close(self) -> None:
        """Close all connections."""
        if self.heads is not None:
            self.heads.close()
        connections = (self._reader, self._writer, *(known() for known in self._shown))
        self._reader, self._writer, self._shown = None, None, []
        for connection in connections:
            if connection is not None:
                connection.close()

    def pause(self) -> None:
        """Called before a fork: closes connections that nobody uses. Whoever is being answered is not waited for."""
        if self.heads is not None:
            self.heads.close()
        if self._fork.take_if_free():
            self.close()
        elif (writer := self._writer) is not None:
            self._writer = None
            writer.close()

    def resume(self, *, child: bool) -> None:
        """Called after a fork, in both processes. Connections that are in use stay the parent's: the child does not end
        them, but must not keep them open either, or the server would not notice that the parent is gone."""
        if child:
            if not self._fork.take_if_free():
                self._reading = RLock()
                self._fork = Hold(self._reading)
            _let_go(self._made)
            self._reader, self._writer, self._shown, self._made = None, None, [], WeakSet()
        self._fork.leave()

    def _usable(self, connection: psycopg.Connection[Any] | None) -> psycopg.Connection[Any]:
        """The connection, or a new one if it is closed or inside a transaction."""
        import psycopg

        if connection is not None:
            if not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                return connection
            connection.close()
        return self._connect()

    def _write(self, sql: str, values: tuple[Any, ...]) -> Any:
        """The one row of a statement on the writer, which is closed after an interrupt, when its state is not known."""
        import psycopg

        writer, self._writer = self._writer, None
        writer = self._usable(writer)
        try:
            self._warned.get(writer, []).clear()
            answer = writer.execute(sql, values).fetchone()
            self._refuse_unconfirmed(writer)
        except psycopg.Error:
            self._writer = writer
            raise
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        return answer

    def _refuse_unconfirmed(self, writer: psycopg.Connection[Any]) -> None:
        """Raise if the wait for a synchronous standby was cancelled, which the server answers with a warning only. What
        is sent again waits again."""
        import psycopg

        if self._warned.get(writer):
            raise psycopg.OperationalError("no synchronous standby confirmed it in time")

    def _steady(self, work: Callable[[], Returned]) -> Returned:
        """Do idempotent work, again after a transient error, until patience ends: all of it within patience and one
        deadline, or what is left to the call that it is part of."""
        import psycopg

        settings = self.settings
        until = settings.timer() + settings.patience
        with all_within(settings.patience + settings.deadline):
            if not time_left(settings.deadline):
                raise LedgerUnavailable("the database did not answer in time; what was reserved stays reserved")
            while True:
                try:
                    return work()
                except psycopg.IntegrityError:
                    raise
                except psycopg.Error as error:
                    if not is_passing(error) or settings.timer() > until or not time_left(settings.deadline):
                        raise meaning(error) from error
                    settings.pause(0.02)

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        from expost.ledger.postgres.connection import bounded

        deadline = max(1, time_left(self.settings.deadline))
        try:
            connection: psycopg.Connection[Any] = (self.settings.connect or bounded(self.settings.deadline).connect)(
                self._url,
                autocommit=True,
                connect_timeout=max(2, int(deadline)),
                keepalives_idle=30,
                tcp_user_timeout=int(deadline * 1000),
            )
        except psycopg.ProgrammingError:  # its message may contain a part of the password
            raise InvalidValue(UNREADABLE) from None
        except psycopg.OperationalError as error:
            if is_passing(error):
                self._lost = time.monotonic(), str(error)
            raise
        self._made.add(connection)
        heard: list[str] = []
        self._warned[connection] = heard
        connection.add_notice_handler(partial(_hear, heard))
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        """Raise for a server that could lose acknowledged commits, unless it is only read; and set up the session."""
        if connection.info.server_version < self.oldest_server:
            raise InvalidValue(f"PostgreSQL {connection.info.server_version} is too old: use 13 or newer")
        rows = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"
        ).fetchall()
        settings = dict(rows)
        for name in ("fsync", "full_page_writes"):
            if settings[name] != "on" and not self.read_only:
                raise InvalidValue(
                    f"this PostgreSQL has {name} = {settings[name]}, and could lose what it acknowledged: turn it on"
                )
        if settings["synchronous_commit"] == "off" and not self.read_only:
            connection.execute("SET synchronous_commit = on")
        if self.read_only:
            connection.execute("SET default_transaction_read_only = on")
        if self.settings.standby:
            connection.execute("SET expost.standby = on")
        timeout = int(self.settings.deadline * 900)  # less than the deadline, so that the server reports the reason
        connection.execute(f"{_PLANS}; SET statement_timeout = {timeout}")

    def _open(self) -> None:
        """Check the tables, and create them unless it is opened read-only."""
        if self.read_only:
            if not self.rows("SELECT 1 WHERE to_regclass(?) IS NOT NULL", schema.MARK):
                raise NoLedgers("this database has no ledgers, or this user may not read them: check the address")
            return schema.refuse_unknown("postgres", self.rows(schema.DONE))
        until = time.monotonic() + self.settings.patience
        while not self._steady(lambda: self._migrated(until)):
            time.sleep(0.1)

    def _migrated(self, until: float) -> bool:
        """Run the migrations; False if somebody uses the tables, so that others can write before the next attempt."""
        from psycopg import errors

        connection = self._writer = self._usable(self._writer)
        try:
            _run_missing(connection, self.settings.turn)
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if time.monotonic() > until:
                raise Busy(
                    "the tables must be migrated for this expost, but a long query or an open transaction uses them; "
                    "nothing was changed: try again when it has ended"
                ) from error
            return False
        return True


def _run_missing(connection: psycopg.Connection[Any], turn: float) -> None:
    if _has_tables(connection) and not schema.missing("postgres", connection.execute(schema.DONE).fetchall()):
        return
    with connection.transaction():
        connection.execute("SELECT set_config('lock_timeout', %s, TRUE)", (f"{turn * 1000:.0f}",))
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if not _has_tables(connection):  # checked first, for users who may not create tables but use them
            connection.execute(_MARK)
        for name, text in schema.missing("postgres", connection.execute(schema.DONE).fetchall()):
            connection.execute(text)
            connection.execute(f"INSERT INTO {schema.MARK} (name, digest) VALUES (%s, %s)", (name, sha256(text)))


def _hear(heard: list[str], told: psycopg.errors.Diagnostic) -> None:
    """Keep what a server tells of waiting for a standby: texts are in the server's language, functions are not."""
    if (told.source_function or "").startswith("SyncRep"):
        heard.append(told.source_function or "")


def _server_of(url: str) -> str:
    """Where a server is, whoever asks."""
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(url)
    return canonical({name: str(known[name]) for name in ("service", "host", "hostaddr", "port") if name in known})


def _let_go(connections: Iterable[psycopg.Connection[Any]]) -> None:
    """Close this process's ends of connections without a word to the server."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for connection in list(connections):
        with suppress(Exception):  # it was closed
            os.dup2(nothing, connection.fileno(), inheritable=False)  # the number stays taken, whoever still has it
    os.close(nothing)


def _has_tables(connection: psycopg.Connection[Any]) -> bool:
    """Whether the table of migrations exists; by pg_class, because to_regclass may be out of date after a lock wait."""
    sql = "SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"
    return bool(connection.execute(sql, (schema.MARK,)).fetchall())
