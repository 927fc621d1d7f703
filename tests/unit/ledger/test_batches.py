"""Batches that are lost, interrupted, late, or many at once, on a server."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import expost as xp
from books import ALONE, GUARANTEE, OWNER, disarm, execute, make, steps_of
from expost import Cost, Ledger
from expost.ledger import Settings


def test_a_batch_whose_answer_was_lost_is_applied_once(postgres_url: Callable[[], str]) -> None:
    """The connection breaks after the commit: sent again, the batch gives the answer that was lost."""
    ledger = make(postgres_url())
    store: Any = ledger._store
    ledger.reserve(GUARANTEE)
    engine = store._engine
    real, broken = engine._write, list[Any]()

    def breaks(sql: str, values: Any) -> Any:
        answer = real(sql, values)
        if not broken:
            broken.append(answer)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answer

    engine._write = breaks
    assert ledger.reserve(GUARANTEE).id == 2
    assert broken[0][0]["outcomes"][0]["entry"] == 2
    assert len(list(ledger.entries())) == 2
    engine._session(store._ledger).before = {"never heard of"}
    with pytest.raises(xp.errors.LedgerCorrupt, match="another process writes"):
        ledger.reserve(GUARANTEE)


def test_an_interrupted_batch_is_not_lost_track_of(postgres_url: Callable[[], str]) -> None:
    ledger = make(postgres_url())
    store: Any = ledger._store
    ledger.reserve(GUARANTEE)
    engine = store._engine
    real = engine._write

    def interrupted(sql: str, values: Any) -> Any:
        real(sql, values)
        raise KeyboardInterrupt

    engine._write = interrupted
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve(GUARANTEE)
    engine._write = real
    assert ledger.reserve(GUARANTEE).id == 3  # the second one is there, but nobody was told, so it was ended
    assert [entry.state for entry in ledger.entries()] == ["reserved", "forfeited", "reserved"]
    ledger.verify()


@pytest.mark.parametrize("which", ["_writer", "_reader"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_connection_that_was_interrupted_is_not_used_again(
    postgres_url: Callable[[], str], which: str, error: type[BaseException]
) -> None:
    ledger = make(postgres_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    ledger.reserve(GUARANTEE)
    assert ledger.reserved == GUARANTEE.worst_case
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
        ledger.reserve(GUARANTEE) if which == "_writer" else ledger.remaining
    assert (closed, getattr(engine, which)) == ([1], None)
    assert ledger.reserve(GUARANTEE).id == 2
    assert ledger.reserved == GUARANTEE.worst_case * 2
    real.close()
    ledger.verify()


def test_a_process_that_is_silent_for_a_month_is_forgotten(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger: Any = make(url)
    ledger.reserve(GUARANTEE)
    month, more = 31 * 86400 * 10**6, {"sqlite": ("", ""), "postgresql": (", batch, outcomes", ", '', '[]'")}
    columns, values = more[url.partition(":")[0]]
    for name, age in (("old", month), ("young", 0), ("holding", month)):
        execute(
            url,
            f"INSERT INTO expost_owner (id, ledger, identity, seen, expired{columns}) "
            f"SELECT '{name}', id, '?', at - 1 - {age}, 1{values} FROM expost_books",
        )
    spending = ledger.reserve(GUARANTEE)
    disarm(url, "expost_entry")
    execute(url, f"UPDATE expost_entry SET owner = 'holding' WHERE number = {spending.id}")

    def known(expired: int) -> set[str]:
        rows = ledger._store._engine.rows("SELECT id FROM expost_owner WHERE expired = ?", expired)
        return {name for (name,) in rows}

    alive = known(0)
    assert known(1) == {"old", "young", "holding"}
    assert ledger.recover() == 1  # what that one reserved is forfeited first, and then nothing of it is open
    assert known(1) == {"young"}
    assert known(0) == alive
    ledger.verify()


def test_a_process_that_was_given_up_goes_on_under_another_name(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger = make(url, settings=ALONE)
    store: Any = ledger._store
    first = ledger.reserve(GUARANTEE)
    old = store._engine.owner(store._ledger)
    execute(url, f"UPDATE expost_owner SET expired = 1 WHERE id = '{old}'")
    second = ledger.reserve(GUARANTEE)
    assert store._engine.owner(store._ledger) != old
    store.beat()
    assert ledger.reserve(GUARANTEE).settle("small").id == 3
    assert second.settle("small").charged == GUARANTEE.cost_of("small")
    assert first.settle("small").charged == GUARANTEE.cost_of("small")
    ledger.verify()


def test_a_late_step_under_an_older_name_goes_under_a_new_one(postgres_url: Callable[[], str]) -> None:
    """What a process sent under a name under which it was given up."""
    url = postgres_url()
    ledger = make(url, settings=ALONE)
    store: Any = ledger._store
    first, session = ledger.reserve(GUARANTEE), store._engine._session(store._ledger)
    old = session.owner
    execute(url, f"UPDATE expost_owner SET expired = 1 WHERE id = '{old}'")
    second = ledger.reserve(GUARANTEE)
    with psycopg.connect(url) as server:
        ((last,),) = server.execute("SELECT batch FROM expost_owner WHERE id = %s", (old,)).fetchall()
    session.owner, session.before = old, {last}
    store.beat()
    third = ledger.reserve(GUARANTEE)
    assert session.owner != old
    for spending in (first, second, third):
        assert spending.settle("small").charged == GUARANTEE.cost_of("small")
    assert third.id == 3
    ledger.verify()


def test_a_first_batch_that_fails_is_not_the_last(postgres_url: Callable[[], str]) -> None:
    ledger = make(postgres_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real, given = engine._write, ledger.reserve(GUARANTEE)
    engine._sessions.clear()

    def fails(sql: str, values: Any) -> Any:
        raise psycopg.DataError("not now")

    engine._write = fails
    with pytest.raises(xp.errors.LedgerUnavailable, match="not now"):
        ledger.reserve(GUARANTEE)  # the first batch under a new name
    engine._write = real
    assert ledger.reserve(GUARANTEE).settle("small").id == 2
    given.settle("small")
    ledger.verify()


def test_many_steps_at_once(new_url: Callable[[], str]) -> None:
    """One commit: what fits happens, what does not is refused, each step as if it had come by itself."""
    ledger = make(new_url())
    store: Any = ledger._store
    alice = ledger.create_account("team", epsilon=4, delta=1e-4).create_account("alice", epsilon=2, delta=1e-4)
    one, two = ledger.reserve(GUARANTEE), alice.reserve(GUARANTEE, key="two")
    three, four = alice.reserve(GUARANTEE, begin=False), ledger.reserve(GUARANTEE, lease=60)
    plain = steps_of(
        store,
        lambda: store.settle(one.id, "small", None),
        lambda: store.forfeit(two.id),
        lambda: ledger.reserve(GUARANTEE, key="five"),
        lambda: store.void(three.id),
        lambda: ledger.reserve(GUARANTEE, begin=False, lease=30, label="six"),
        lambda: store.settle(four.id, "large", None),
    )
    done = store._engine.apply(store._ledger, plain)
    assert [entry.id for entry in done] == [1, 2, 5, 3, 6, 4]
    assert ledger.spent == GUARANTEE.cost_of("small") + GUARANTEE.worst_case + GUARANTEE.cost_of("large")
    assert (ledger.reserved, alice.spent, alice.reserved) == (GUARANTEE.worst_case * 2, GUARANTEE.worst_case, Cost(0))
    states = ["settled", "forfeited", "voided", "settled", "reserved", "reserved"]
    assert [entry.state for entry in ledger.entries()] == states
    ledger.verify()
    last = ledger.reservation(5)
    mixed = steps_of(
        store,
        lambda: alice.reserve(GUARANTEE),  # fits, but not with the next one
        lambda: alice.reserve(GUARANTEE),
        lambda: store.settle(last.id, "small", None),
        lambda: store.forfeit(last.id),
        lambda: store.begin(6),
        lambda: ledger.reserve(GUARANTEE, key="new"),
        lambda: ledger.reserve(GUARANTEE, key="new"),
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
        thread.join(60)
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
