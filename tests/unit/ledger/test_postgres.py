"""What only PostgreSQL can do, or do wrong."""

from __future__ import annotations

import builtins
import contextlib
import gc
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import expost as xp
from books import CLAIM, OWNER, beat, disarm, execute, make, steps_of
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
    ledger.reserve(CLAIM).settle("small")  # turned on
    store: Any = ledger._store
    store._engine._writer.execute("SET synchronous_commit = off")
    with pytest.raises(xp.LedgerUnavailable, match="synchronous_commit is off"):
        ledger.reserve(CLAIM)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(xp.LedgerUnavailable, match="does not answer"):
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
    with pytest.raises(xp.MissingDependency, match=r"pip install 'expost\[postgres\]'"):
        Ledger.load("postgresql://nowhere/none", "study")


def test_a_server_that_goes_away_and_comes_back() -> None:
    server = Server()
    try:
        ledger = make(server.url, settings=Settings(patience=0.1))
        spending = ledger.reserve(CLAIM)
        server.stop("immediate")
        with pytest.raises(xp.LedgerUnavailable, match="does not answer") as lost:
            spending.settle("small")
        assert "stays reserved" in lost.value.__notes__[-1]
        server.start()
        beat(ledger)
        assert (ledger.spent, ledger.reserved) == (CLAIM.worst_case, Cost(0))
        ledger.verify()
    finally:
        server.remove()


def test_a_batch_whose_answer_was_lost_is_applied_once(postgres_url: Callable[[], str]) -> None:
    """The connection breaks after the commit: sent again, the batch gives the answer that was lost."""
    ledger = make(postgres_url())
    store: Any = ledger._store
    ledger.reserve(CLAIM)
    engine = store._engine
    real, broken = engine._write, list[Any]()

    def breaks(sql: str, values: Any) -> Any:
        answer = real(sql, values)
        if not broken:
            broken.append(answer)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answer

    engine._write = breaks
    assert ledger.reserve(CLAIM).id == 2
    assert broken[0][0]["outcomes"][0]["entry"] == 2
    assert len(list(ledger.entries())) == 2
    engine._session(store._ledger).before = {"never heard of"}
    with pytest.raises(xp.LedgerCorrupt, match="another process writes"):
        ledger.reserve(CLAIM)


def test_an_interrupted_batch_is_not_lost_track_of(postgres_url: Callable[[], str]) -> None:
    ledger = make(postgres_url())
    store: Any = ledger._store
    ledger.reserve(CLAIM)
    engine = store._engine
    real = engine._write

    def interrupted(sql: str, values: Any) -> Any:
        real(sql, values)
        raise KeyboardInterrupt

    engine._write = interrupted
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve(CLAIM)
    engine._write = real
    assert ledger.reserve(CLAIM).id == 3  # the second one is there, and held, but nobody was told
    assert ledger.reserved == CLAIM.worst_case * 3
    ledger.verify()


@pytest.mark.parametrize("which", ["_writer", "_reader"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_connection_that_was_interrupted_is_not_used_again(
    postgres_url: Callable[[], str], which: str, error: type[BaseException]
) -> None:
    ledger = make(postgres_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    ledger.reserve(CLAIM)
    assert ledger.reserved == CLAIM.worst_case
    real, closed = getattr(engine, which), list[int]()

    class Struck:
        closed = False
        info = real.info

        def execute(self, *_: object) -> None:
            raise error

        def close(self) -> None:
            closed.append(1)

    setattr(engine, which, Struck())
    with pytest.raises(error):
        ledger.reserve(CLAIM) if which == "_writer" else ledger.remaining
    assert (closed, getattr(engine, which)) == ([1], None)
    assert ledger.reserve(CLAIM).id == 2
    assert ledger.reserved == CLAIM.worst_case * 2
    real.close()
    ledger.verify()


def test_what_a_database_says_again_and_again_is_told_once() -> None:
    error = psycopg.OperationalError("sending failed: another command is already in progress\n" * 300 + "  try later\n")
    told = str(meaning(error))
    assert told.count("in progress") == 1
    assert "progress try later; what was reserved" in told


def test_a_process_that_is_silent_for_a_month_is_forgotten(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger: Any = make(url)
    ledger.reserve(CLAIM)
    month, more = 31 * 86400 * 10**6, {"sqlite": ("", ""), "postgresql": (", batch, outcomes", ", '', '[]'")}
    columns, values = more[url.partition(":")[0]]
    for name, age in (("old", month), ("young", 0), ("holding", month)):
        execute(
            url,
            f"INSERT INTO expost_owner (id, ledger, identity, seen, expired{columns}) "
            f"SELECT '{name}', id, '?', at - 1 - {age}, 1{values} FROM expost_books",
        )
    spending = ledger.reserve(CLAIM)
    disarm(url, "expost_entry")
    execute(url, f"UPDATE expost_entry SET owner = 'holding' WHERE number = {spending.id}")

    def known(expired: int) -> set[str]:
        rows = ledger._store._engine.rows("SELECT id FROM expost_owner WHERE expired = ?", expired)
        return {name for (name,) in rows}

    alive = known(0)
    assert known(1) == {"old", "young", "holding"}
    assert ledger.recover() == 1  # what that one held is forfeited first, and then it holds nothing
    assert known(1) == {"young"}
    assert known(0) == alive
    ledger.verify()


def test_a_process_that_was_given_up_goes_on_under_another_name(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger = make(url)
    store: Any = ledger._store
    first = ledger.reserve(CLAIM)
    old = store._engine.owner(store._ledger)
    execute(url, f"UPDATE expost_owner SET expired = 1 WHERE id = '{old}'")
    second = ledger.reserve(CLAIM)
    assert store._engine.owner(store._ledger) != old
    store.beat()
    assert ledger.reserve(CLAIM).settle("small").id == 3
    assert second.settle("small").charged == CLAIM.cost_of("small")
    assert first.settle("small").charged == CLAIM.cost_of("small")
    ledger.verify()


def test_a_late_step_under_an_older_name_goes_under_a_new_one(postgres_url: Callable[[], str]) -> None:
    """What a process sent under a name under which it was given up."""
    url = postgres_url()
    ledger = make(url)
    store: Any = ledger._store
    first, session = ledger.reserve(CLAIM), store._engine._session(store._ledger)
    old = session.owner
    execute(url, f"UPDATE expost_owner SET expired = 1 WHERE id = '{old}'")
    second = ledger.reserve(CLAIM)
    with psycopg.connect(url) as server:
        ((last,),) = server.execute("SELECT batch FROM expost_owner WHERE id = %s", (old,)).fetchall()
    session.owner, session.before = old, {last}
    store.beat()
    third = ledger.reserve(CLAIM)
    assert session.owner != old
    for spending in (first, second, third):
        assert spending.settle("small").charged == CLAIM.cost_of("small")
    assert third.id == 3
    ledger.verify()


def test_a_first_batch_that_fails_is_not_the_last(postgres_url: Callable[[], str]) -> None:
    ledger = make(postgres_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real, given = engine._write, ledger.reserve(CLAIM)
    engine._sessions.clear()

    def fails(sql: str, values: Any) -> Any:
        raise psycopg.DataError("not now")

    engine._write = fails
    with pytest.raises(xp.LedgerUnavailable, match="not now"):
        ledger.reserve(CLAIM)  # the first batch under a new name
    engine._write = real
    assert ledger.reserve(CLAIM).settle("small").id == 2
    given.settle("small")
    ledger.verify()


def test_many_steps_at_once(new_url: Callable[[], str]) -> None:
    """One commit: what fits happens, what does not is refused, each step as if it had come by itself."""
    ledger = make(new_url())
    store: Any = ledger._store
    alice = ledger.create_account("team", epsilon=4, delta=1e-4).create_account("alice", epsilon=2, delta=1e-4)
    one, two = ledger.reserve(CLAIM), alice.reserve(CLAIM, key="two")
    three, four = alice.reserve(CLAIM, begin=False), ledger.reserve(CLAIM, lease=60)
    plain = steps_of(
        store,
        lambda: store.settle(one.id, "small", None),
        lambda: store.forfeit(two.id),
        lambda: ledger.reserve(CLAIM, key="five"),
        lambda: store.void(three.id),
        lambda: ledger.reserve(CLAIM, begin=False, lease=30, label="six"),
        lambda: store.settle(four.id, "large", None),
    )
    done = store._engine.apply(store._ledger, plain)
    assert [entry.id for entry in done] == [1, 2, 5, 3, 6, 4]
    assert ledger.spent == CLAIM.cost_of("small") + CLAIM.worst_case + CLAIM.cost_of("large")
    assert (ledger.reserved, alice.spent, alice.reserved) == (CLAIM.worst_case * 2, CLAIM.worst_case, Cost(0))
    states = ["settled", "forfeited", "voided", "settled", "reserved", "reserved"]
    assert [entry.state for entry in ledger.entries()] == states
    ledger.verify()
    last = ledger.reservation(5)
    mixed = steps_of(
        store,
        lambda: alice.reserve(CLAIM),  # fits, but not with the next one
        lambda: alice.reserve(CLAIM),
        lambda: store.settle(last.id, "small", None),
        lambda: store.forfeit(last.id),
        lambda: store.begin(6),
        lambda: ledger.reserve(CLAIM, key="new"),
        lambda: ledger.reserve(CLAIM, key="new"),
    )
    done = store._engine.apply(store._ledger, mixed)
    assert [type(outcome).__name__ for outcome in done][:4] == ["Entry", "BudgetExceeded", "Entry", "ReservationClosed"]
    assert [type(outcome).__name__ for outcome in done][5:] == ["Entry", "AlreadyReserved"]
    assert (done[0].id, done[5].id, done[6].entry.id) == (7, 8, 8)
    ledger.verify()


def test_two_owners_raise_a_limit_at_once(new_url: Callable[[], str]) -> None:
    """The second one's raise is judged by what the first one did."""
    url = new_url()
    ledger, other = make(url), Ledger.load(url, "study", settings=Settings(patience=14))

    def lift(party: Ledger, epsilon: float) -> None:
        with contextlib.suppress(xp.InvalidValue):
            party.raise_limit(epsilon=epsilon, **OWNER)

    parties = (ledger, other) * 8
    threads = [threading.Thread(target=lift, args=(party, 6 + k / 16)) for k, party in enumerate(parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert ledger.limit == Cost(6 + 15 / 16, delta=1e-3)
    with pytest.raises(xp.InvalidValue, match="can only be raised"):
        other.raise_limit(epsilon=6, **OWNER)
    ledger.verify()


def test_a_limit_that_somebody_raises_meanwhile(postgres_url: Callable[[], str]) -> None:
    """Found: the limit was read twice, and what came in between was taken for a change by hand."""
    url = postgres_url()
    ledger, other = make(url), Ledger.load(url, "study", settings=Settings(patience=14))
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real = engine.rows

    def slow(sql: str, *values: Any) -> Any:
        found = real(sql, *values)
        if "FROM expost_account" in sql:
            engine.rows = real
            other.raise_limit(epsilon=7, **OWNER)
        return found

    engine.rows = slow
    with pytest.raises(xp.InvalidValue, match="can only be raised"):
        ledger.raise_limit(epsilon=6, **OWNER)
    assert ledger.limit == Cost(7, delta=1e-3)


def test_missing_rights_are_named(server: Server) -> None:
    name = f"rights_{secrets.token_hex(4)}"
    url = server.new_database(name)
    execute(url, f"CREATE ROLE {name} LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    theirs = url.replace("expost@", f"{name}@")
    with pytest.raises(xp.LedgerUnavailable, match=r"denied the request: permission denied for schema.*needs CREATE"):
        make(theirs)
    make(url)
    with pytest.raises(
        xp.LedgerUnavailable, match=r"denied the request: permission denied for table.*grant this user USAGE"
    ):
        Ledger.load(theirs, "study")
    execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    ledger = Ledger.load(theirs, "study")
    with pytest.raises(xp.LedgerUnavailable, match=r"denied the request: permission denied for function expost_spend"):
        ledger.reserve(CLAIM)
    execute(url, f"GRANT EXECUTE ON FUNCTION expost_spend TO {name}")
    ledger.run(Fixed(CLAIM, 7, part="small"), key="k")
    with pytest.raises(xp.LedgerUnavailable, match=r"denied the request: permission denied for function expost_govern"):
        ledger.create_account("alice", epsilon=1)
    execute(url, f"GRANT EXECUTE ON FUNCTION expost_govern TO {name}")
    ledger.create_account("alice", epsilon=1).reserve(CLAIM.uniform(0.5)).settle("any")
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
    analyst.reserve(CLAIM).settle("small")
    for work in (
        lambda: analyst.raise_limit(epsilon=100, by="ethics board", reason="none"),
        lambda: analyst.create_account("more", epsilon=1),
        lambda: analyst.close(**OWNER),
        lambda: make(theirs, name="mine"),
    ):
        with pytest.raises(xp.LedgerUnavailable, match="denied the request"):
            work()
    for table in ("ledger", "account", "claim", "owner", "entry", "event"):
        for statement in (f"UPDATE expost_{table} SET ledger = 1", f"DELETE FROM expost_{table}"):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedColumn)):
                execute(theirs, statement)
    assert [event.user for event in analyst.audit()] == ["expost", name, name]
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
    thread = threading.Thread(target=lambda: ledger.reserve(CLAIM).settle("small"))
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SET synchronous_commit = local")
        other.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        other.execute("SELECT pg_reload_conf()")
        try:
            _see(other, "SELECT 1 WHERE current_setting('synchronous_standby_names') = 'absent'")
            thread.start()
            _see(other, "SELECT 1 FROM expost_entry")
            _see(other, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            other.execute("SELECT 1 FROM expost_ledger FOR UPDATE NOWAIT")
            assert thread.is_alive()
            assert other.execute("SELECT state FROM expost_entry").fetchall() == [("reserved",)]
        finally:
            other.execute("ALTER SYSTEM RESET synchronous_standby_names")
            other.execute("SELECT pg_reload_conf()")
    thread.join(30)
    assert ledger.spent == CLAIM.cost_of("small")
    ledger.verify()


def _see(connection: psycopg.Connection[Any], sql: str) -> None:
    """Wait until a query has rows."""
    for _ in range(1000):
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
    Ledger.load(url.replace("expost@", f"{name}@"), "study").reserve(CLAIM).settle("small")
    assert ledger.spent == CLAIM.cost_of("small")
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
    assert ledger.spent == sum((CLAIM.cost_of("small") for _ in range(4 * 25)), Cost(0))
    ledger.verify()


def _spend_often(ledger: Ledger) -> None:
    for _ in range(25):
        ledger.reserve(CLAIM).settle("small")


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
