"""What only PostgreSQL can do, or do wrong."""

from __future__ import annotations

import builtins
import gc
import re
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import expost as xp
from books import GUARANTEE, OWNER, beat, execute, make
from expost import Cost, Ledger
from expost.ledger import Settings
from expost.ledger.postgres.connection import bounded
from expost.ledger.postgres.engine import PostgresEngine
from expost.ledger.postgres.errors import meaning
from servers import Server
from toys import Fixed


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_forgets_is_refused(setting: str) -> None:
    server = Server(f"{setting}=off")
    try:
        with pytest.raises(xp.InvalidValue, match=f"{setting} = off"):
            make(server.url)
    finally:
        server.remove()


def test_a_session_that_does_not_wait_for_the_disk(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    make(url)
    ledger = Ledger.load(f"{url}%20-csynchronous_commit%3Doff", "study")
    ledger.reserve(GUARANTEE).settle("small")  # turned on
    store: Any = ledger._store
    store._engine._writer.execute("SET synchronous_commit = off")
    with pytest.raises(xp.errors.LedgerUnavailable, match="synchronous_commit is off"):
        ledger.reserve(GUARANTEE)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(xp.errors.LedgerUnavailable, match="does not answer"):
        Ledger.load("postgresql://expost@127.0.0.1:1/none", "study", settings=Settings(patience=0.1))


def test_a_server_that_is_too_old(postgres_url: Callable[[], str]) -> None:
    class Demanding(PostgresEngine):
        oldest_server = 10**9

    with pytest.raises(xp.InvalidValue, match="too old"):
        Demanding(postgres_url(), Settings())


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *rest: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(xp.errors.MissingDependency, match=r"pip install 'expost\[postgres\]'"):
        Ledger.load("postgresql://nowhere/none", "study")


def test_a_server_that_goes_away_and_comes_back() -> None:
    server = Server()
    try:
        ledger = make(server.url, settings=Settings(patience=0.1))
        spending = ledger.reserve(GUARANTEE)
        server.stop("immediate")
        with pytest.raises(xp.errors.LedgerUnavailable, match="does not answer") as lost:
            spending.settle("small")
        assert "stays reserved" in lost.value.__notes__[-1]
        server.start()
        beat(ledger)
        assert (ledger.spent, ledger.reserved) == (GUARANTEE.worst_case, Cost(0))
        ledger.verify()
    finally:
        server.remove()


def test_what_a_database_says_again_and_again_is_told_once() -> None:
    error = psycopg.OperationalError("sending failed: another command is already in progress\n" * 300 + "  try later\n")
    told = str(meaning(error))
    assert told.count("in progress") == 1
    assert "progress try later; what was reserved" in told


def test_missing_rights_are_named(server: Server) -> None:
    name = f"rights_{secrets.token_hex(4)}"
    url = server.new_database(name)
    execute(url, f"CREATE ROLE {name} LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    theirs = url.replace("expost@", f"{name}@")
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=r"denied the request: permission denied for schema.*needs CREATE"
    ):
        make(theirs)
    make(url)
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=r"denied the request: permission denied for table.*grant this user USAGE"
    ):
        Ledger.load(theirs, "study")
    execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    ledger = Ledger.load(theirs, "study")
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=r"denied the request: permission denied for function expost_spend"
    ):
        ledger.reserve(GUARANTEE)
    execute(url, f"GRANT EXECUTE ON FUNCTION expost_spend TO {name}")
    ledger.run(Fixed(GUARANTEE, 7, part="small"), key="k")
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=r"denied the request: permission denied for function expost_govern"
    ):
        ledger.create_account("alice", epsilon=1)
    execute(url, f"GRANT EXECUTE ON FUNCTION expost_govern TO {name}")
    ledger.create_account("alice", epsilon=1).reserve(GUARANTEE.uniform(0.5)).settle("any")
    ledger.recover()
    ledger.verify()


def test_analysts_spend_and_owners_govern(server: Server) -> None:
    """With the documented grants an analyst can neither raise a limit nor write a table; each line says who it was."""
    name = f"analyst_{secrets.token_hex(4)}"
    url = server.new_database(name)
    make(url)
    execute(
        url,
        f"CREATE ROLE {name} LOGIN",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
        f"GRANT EXECUTE ON FUNCTION expost_spend TO {name}",
    )
    theirs = url.replace("expost@", f"{name}@")
    analyst = Ledger.load(theirs, "study")
    analyst.reserve(GUARANTEE).settle("small")
    for work in (
        lambda: analyst.raise_limit(epsilon=100, by="ethics board", reason="none"),
        lambda: analyst.create_account("more", epsilon=1),
        lambda: analyst.close(**OWNER),
        lambda: make(theirs, name="mine"),
    ):
        with pytest.raises(xp.errors.LedgerUnavailable, match="denied the request"):
            work()
    for table in ("ledger", "account", "guarantee", "owner", "entry", "event"):
        for statement in (f"UPDATE expost_{table} SET ledger = 1", f"DELETE FROM expost_{table}"):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedColumn)):
                execute(theirs, statement)
    assert [event.user for event in analyst.audit_trail()] == ["expost", name, name]
    assert analyst.limit == Cost(5, delta=1e-3)


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_connection_that_is_dropped_is_closed(postgres_url: Callable[[], str]) -> None:
    """A dropped ledger drops its connection. No warning, and the server sees it go."""
    url = postgres_url()
    connection = bounded(5.0).connect(url, autocommit=True)
    process = connection.info.backend_pid
    del connection
    gc.collect()
    with psycopg.connect(url, autocommit=True) as other:
        for _ in range(100):
            left = other.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (process,)).fetchone()
            if left == (0,):
                break
            time.sleep(0.05)
    assert left == (0,)


def test_the_next_batch_does_not_wait_for_the_disk(server: Server) -> None:
    """The lock is released before the commit is safe, here on a standby that is absent; the answer waits for it."""
    url = server.new_database(f"early_{secrets.token_hex(4)}")
    ledger = make(url)
    thread = threading.Thread(target=lambda: ledger.reserve(GUARANTEE).settle("small"))
    waits = threading.Event()
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()"

    def commits() -> None:
        """Until one waits: what a connection shows as the setting, commits may not heed yet."""
        with psycopg.connect(url, autocommit=True, application_name="probe") as connection:
            while not waits.is_set():
                connection.execute("SELECT pg_current_xact_id()")

    probe = threading.Thread(target=commits)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SET synchronous_commit = local")
        other.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        other.execute("SELECT pg_reload_conf()")
        try:
            probe.start()
            _see(other, f"{waiting} AND application_name = 'probe'")
            waits.set()
            thread.start()
            _see(other, "SELECT 1 FROM expost_entry")
            _see(other, f"{waiting} AND application_name <> 'probe'")
            other.execute("SELECT 1 FROM expost_ledger FOR UPDATE NOWAIT")
            assert thread.is_alive()
            assert other.execute("SELECT state FROM expost_entry").fetchall() == [("reserved",)]
        finally:
            waits.set()
            other.execute("ALTER SYSTEM RESET synchronous_standby_names")
            other.execute("SELECT pg_reload_conf()")
    probe.join(30)
    thread.join(30)
    assert ledger.spent == GUARANTEE.cost_of("small")
    ledger.verify()


def _see(connection: psycopg.Connection[Any], sql: str) -> None:
    """Wait until a query has rows; a busy server takes its time to notice new settings."""
    for _ in range(20_000):
        if connection.execute(sql).fetchall():
            return
        time.sleep(0.01)
    pytest.fail(f"never seen: {sql}")


def test_who_may_not_write_to_the_log_waits_with_the_lock(server: Server) -> None:
    """Found: it was said that nothing was recorded, and something was."""
    url = server.new_database(f"silent_{secrets.token_hex(4)}")
    ledger = make(url)
    name = f"role_{secrets.token_hex(4)}"
    execute(
        url, f"CREATE ROLE {name} LOGIN", f"GRANT USAGE ON SCHEMA public TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", f"GRANT EXECUTE ON FUNCTION expost_spend TO {name}",
        "REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) FROM PUBLIC",
    )  # fmt: skip
    Ledger.load(url.replace("expost@", f"{name}@"), "study").reserve(GUARANTEE).settle("small")
    assert ledger.spent == GUARANTEE.cost_of("small")
    ledger.verify()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_stricter_isolation_changes_nothing(server: Server, level: str) -> None:
    """Found: what others reserved meanwhile was taken for damage."""
    url = server.new_database(f"strict_{secrets.token_hex(4)}")
    execute(url, f"ALTER DATABASE {url.rsplit('/', 1)[1]} SET default_transaction_isolation = '{level}'")
    ledger = make(url, epsilon=10**4)
    ledgers = [Ledger.load(f"{url}?application_name=n{k}", "study") for k in range(4)]  # each with its own connections
    threads = [threading.Thread(target=_spend_often, args=(one,)) for one in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent == sum((GUARANTEE.cost_of("small") for _ in range(4 * 25)), Cost(0))
    ledger.verify()


def _spend_often(ledger: Ledger) -> None:
    for _ in range(25):
        ledger.reserve(GUARANTEE).settle("small")


def test_a_head_is_read_when_it_is_on_the_disk(server: Server) -> None:
    """Found: a crash could take back a head that somebody had noted, and it looked like a trail that was rewritten."""
    url = server.new_database(f"head_{secrets.token_hex(4)}")
    ledger = make(url)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SET synchronous_commit = off")
        for k in range(20):
            other.execute(f"CREATE TABLE t{k} ()")
            place = other.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
            ledger.verify() if k % 2 else ledger.head
            flushed = other.execute("SELECT pg_wal_lsn_diff(%s, pg_current_wal_flush_lsn()) <= 40", place).fetchone()
            assert flushed == (True,)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (lambda url: re.sub(r":\d+/", ":1/", url), "start the server, or correct host and port"),
        (lambda url: re.sub(r"/postgres\b", "/none", url), "check database and user"),
        (lambda url: url.replace("expost@", "nobody@"), "check database and user"),
    ],
)
def test_errors_of_the_server_say_what_to_do(
    postgres_url: Callable[[], str], change: Callable[[str], str], remedy: str
) -> None:
    with pytest.raises(xp.errors.ExpostError, match=f"To mend it: {remedy}"):
        Ledger.load(change(postgres_url()), "study", settings=Settings(patience=0, deadline=9))


def test_a_server_that_only_reads_says_so(postgres_url: Callable[[], str]) -> None:
    """As a standby does."""
    url = postgres_url()
    make(url)
    ledger = Ledger.load(f"{url}%20-cdefault_transaction_read_only%3Don", "study", recover=False)
    with pytest.raises(xp.errors.RequestRejected, match="To mend it: this server only reads, as a standby does"):
        ledger.reserve(GUARANTEE)
