"""What only ledgers that last do: addresses, migrations, tables that defend themselves, tampering found."""

from __future__ import annotations

import builtins
import contextlib
import copy
import os
import resource
import secrets
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psycopg
import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.canonical import canonical
from expost.forks import here
from expost.ledger import codec, durable, liveness, postgres, schema
from expost.ledger import trail as trails
from expost.ledger import writer as writer_module
from expost.ledger.engine import Operation, Outcome, alone
from expost.ledger.writer import Batch
from servers import Server
from toys import Fixed

CLAIM = Guarantee({"large": 0.75, "small": 0.25}, delta="1e-6")
OWNER = {"by": "me", "reason": "because"}


def make(url: str, **options: Any) -> Ledger:
    given = {"epsilon": 5, "delta": 1e-3, "neighbours": "add-remove", "unit": "person", **options}
    return Ledger.create(url, given.pop("name", "study"), **given)


def execute(url: str, *statements: str) -> None:
    """By hand, past every rule of the library."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        for statement in statements:
            connection.execute(statement).fetchall()
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            for statement in statements:
                server.execute(statement)


# ---- addresses


def test_creating_loading_listing(new_url: Callable[[], str]) -> None:
    url = new_url()
    make(url, name="b").create_account("alice", epsilon=1)
    first = make(url, name="a", epsilon=2, neighbours="substitute", unit="household")
    first.reserve(Guarantee.uniform(0.5)).settle("any")
    first.reserve(Guarantee.uniform(1))
    found = xp.ledgers(url)
    assert [summary.name for summary in found] == ["a", "b"]
    assert (found[0].limit, found[0].spent, found[0].reserved) == (Cost(2, delta=1e-3), Cost(0.5), Cost(1))
    assert (found[0].remaining, found[0].neighbours, found[0].unit) == (
        Cost(0.5, delta=1e-3),
        "substitute",
        "household",
    )
    with pytest.raises(xp.InvalidValue, match="exists already"):
        make(url, name="a")
    with pytest.raises(xp.UnknownEntry, match=r"no ledger 'c' there \(it has 'a', 'b'\)"):
        Ledger.load(url, "c")
    first.close(**OWNER)
    assert (xp.ledgers(url)[0].closed, xp.ledgers(url)[0].remaining) == (True, Cost(0))


def test_what_a_lasting_ledger_must_say(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    with pytest.raises(TypeError):
        Ledger.create(url, "study", epsilon=1)  # type: ignore[call-arg]
    with pytest.raises(xp.InvalidValue, match="give neighbours="):
        make(url, neighbours=None)
    with pytest.raises(xp.InvalidValue, match="nobody may be able to predict SeededNoise"):
        make(url, noise=xp.SeededNoise(1))
    with pytest.raises(xp.InvalidValue, match="no '/'"):
        make(url, name="a/b")
    with pytest.raises(xp.InvalidValue, match="a unit must not contain"):
        make(url, unit="per\0son")
    with pytest.raises(xp.InvalidValue, match="there is no ledger file"):
        Ledger.load(url, "study")
    ledger = make(url, noise=xp.SystemNoise())
    with pytest.raises(xp.InvalidValue, match="nobody may be able to predict"):
        Ledger.load(url, "study", noise=xp.SeededNoise(1))
    for wrong in ("sqlite://study.db", "sqlite:///", "sqlite:///:memory:", "mysql://x", "study.db", 7):
        with pytest.raises(xp.InvalidValue, match="lasts at an address such as"):
            Ledger.load(wrong, "study")
    for label in ("a\0b", "\ud800"):
        with pytest.raises(xp.InvalidValue, match="a label must"):
            ledger.reserve(CLAIM, label=label)
        with pytest.raises(xp.InvalidValue, match="an account's name must"):
            ledger.create_account(label, epsilon=1)
        with pytest.raises(xp.InvalidValue, match="a reason must"):
            ledger.close(by="me", reason=label)


def test_an_address_is_the_same_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = make("sqlite:///books.db")
    assert ledger._store.address == (f"sqlite:///{tmp_path}/books.db", "study")
    assert (tmp_path / "books.db").exists()


def test_keys_need_mechanisms_that_another_process_recognises(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    with pytest.raises(xp.InvalidValue, match="no key can stand for"):
        ledger.run(Fixed(CLAIM, object()), key="k")
    assert list(ledger.entries()) == []
    assert ledger.run(Fixed(CLAIM, None, part="small"), on=lambda: object()).part == "small"  # no key: not kept
    array = ledger.run(Fixed(CLAIM, None, part="small"), on=lambda: np.arange(3), key="array").value
    again = Ledger.load(*ledger._store.address or ("", "")).run(Fixed(CLAIM, None, part="small"), key="array").value
    assert np.array_equal(array, again)


def test_an_output_without_a_key_is_known_by_its_hash(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    release = ledger.run(xp.Coin(epsilon=1, sensitivity=1, heads=1), on=3)
    told = [event.body for event in ledger.audit()][-1]
    assert told["output"] == codec.digest_of(release.value)
    assert ledger._store.output(release.entry.id) is None
    with pytest.raises(xp.UnknownEntry):
        ledger._store.output(0)


def test_tuple_parts_come_back(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    claim = Guarantee({(0, ("a", 1)): 0.5, "x": 1})
    spending = ledger.reserve(claim)
    assert Ledger.load(*ledger._store.address or ("", "")).reservation(spending.id).settle((0, ("a", 1))).part == (
        0,
        ("a", 1),
    )
    assert next(ledger.entries()).part == (0, ("a", 1))
    assert next(ledger.entries()).guarantee == claim
    ledger.verify_chain()


# ---- migrations


def test_tables_that_are_not_ours_are_refused(new_url: Callable[[], str]) -> None:
    url = new_url()
    make(url)
    execute(url, f"INSERT INTO {schema.MARK} (name, digest) VALUES ('9999_future', 'x')")
    with pytest.raises(xp.InvalidValue, match="a newer expost"):
        Ledger.load(url, "study")
    other = new_url()
    make(other)
    execute(other, f"UPDATE {schema.MARK} SET digest = 'x' WHERE name = '0001_books'")
    with pytest.raises(xp.InvalidValue, match="not the one that expost knows"):
        Ledger.load(other, "study")


def test_migrations_are_named_and_ordered() -> None:
    for backend in ("sqlite", "postgres"):
        names = [name for name, _ in schema.migrations(backend)]
        assert names == sorted(names)
        assert names[0] == "0001_books"


def make_old(url: str, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger in a database as the first release made it."""
    released, every = {"sqlite": 1, "postgres": 2}, schema.migrations
    with monkeypatch.context() as then:
        then.setattr(schema, "migrations", lambda backend: every(backend)[: released[backend]])
        return make(url)


STRANGE = {"zero": Guarantee({"a\0b": 0.25, "c": 0.5}), "half": Guarantee({"\ud800": 0.25, "c": 0.5})}


@pytest.mark.parametrize("part", STRANGE)
def test_parts_that_a_database_does_not_take_for_text(
    new_url: Callable[[], str], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, claim = new_url(), STRANGE[part]
    key = '\U0001f600"key":"x","label":\\' * 18  # long, and close to how it is written down
    make_old(url, monkeypatch).reserve(claim, key=key).settle("c")
    ledger = Ledger.load(url, "study")
    ledger.reserve(claim, key=key + "y").settle("c")
    with pytest.raises(xp.AlreadyReserved):
        ledger.reserve(claim, key=key)
    other = make(url, name="other")
    other.reserve(claim, key=key).settle("c")
    for entry in (1, 2):
        disarm(url, "expost_entry")
        execute(url, f"DELETE FROM expost_entry WHERE ledger = 1 AND number = {entry}")
        with pytest.raises(xp.LedgerCorrupt, match="the tables refused a step"):
            ledger.reserve(claim, key=key + "y" * (entry - 1))
    other.verify_chain()


def test_a_rule_of_the_custodians_own_stays(postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres_url()
    make_old(url, monkeypatch)
    execute(
        url,
        f"ALTER TABLE expost_account ADD CONSTRAINT ours CHECK (epsilon_spent <= {Cost('0.5').epsilon_units})",
        "ALTER TABLE expost_entry ADD CHECK (label IS NULL)",
    )
    ledger = Ledger.load(url, "study")
    ledger.reserve(CLAIM).settle("small")
    with pytest.raises(xp.LedgerCorrupt, match='"ours"'):
        ledger.reserve(CLAIM).settle("large")
    with pytest.raises(xp.LedgerCorrupt, match="expost_entry_label_check"):
        ledger.reserve(CLAIM, label="x")
    with psycopg.connect(url) as server:
        rules = server.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid IN ('expost_account'::regclass, "
            "'expost_entry'::regclass) ORDER BY conname"
        ).fetchall()
    assert [name for (name,) in rules] == [
        "expost_account_holds", "expost_entry_holds", "expost_entry_label_check", "ours",
    ]  # fmt: skip


@contextlib.contextmanager
def loading(url: str) -> Iterator[list[Any]]:
    """Somebody else brings the tables up to date, and waits to; afterwards the list holds the ledger, or the error."""
    got: list[Any] = []

    def load() -> None:
        try:
            got.append(Ledger.load(url, "study"))
        except Exception as error:
            got.append(error)

    thread = threading.Thread(target=load, daemon=True)
    with psycopg.connect(url, autocommit=True) as server:
        thread.start()
        question = "SELECT 1 FROM pg_locks WHERE relation = 'expost_entry'::regclass AND NOT granted"
        while thread.is_alive() and not server.execute(question).fetchall():
            time.sleep(0.01)
    yield got
    thread.join(30)


def test_a_reader_that_takes_long_stops_no_writer(
    postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits to bring the tables up to date lets go of them again and again."""
    url = postgres_url()
    ledger = make_old(url, monkeypatch)
    monkeypatch.setattr(postgres, "TURN", 0.3)
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM expost_entry")
        with monkeypatch.context() as hasty:
            hasty.setattr(postgres, "PATIENCE", 0.5)
            with pytest.raises(xp.LedgerUnavailable, match=r"brought up to date.*nothing was changed: try again"):
                Ledger.load(url, "study")
        with loading(url) as got:
            ledger.reserve(CLAIM).settle("small")
            assert not got
            reader.rollback()
    got[0].reserve(CLAIM).settle("small")
    ledger.reserve(CLAIM).settle("small")
    assert got[0].verify_chain() == ledger.verify_chain()


def test_bringing_tables_up_to_date_survives_a_deadlock(
    postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_url()
    make_old(url, monkeypatch)
    monkeypatch.setattr(postgres, "TURN", 20)
    with psycopg.connect(url) as reader:
        reader.execute("SET deadlock_timeout = '10s'")  # the other one is the victim
        reader.execute("SELECT count(*) FROM expost_entry")
        with loading(url) as got:
            reader.execute("SELECT count(*) FROM expost_ledger")
            assert not got
            reader.rollback()
    got[0].reserve(CLAIM).settle("small")
    got[0].verify_chain()


# ---- the tables defend themselves

OVERSPENDING = [
    "UPDATE expost_account SET epsilon_spent = epsilon_limit + 1",
    "UPDATE expost_account SET epsilon_reserved = epsilon_limit - epsilon_spent + 1",
    "UPDATE expost_account SET delta_reserved = delta_limit - delta_spent + 1",
    "UPDATE expost_account SET epsilon_spent = 0",
    "UPDATE expost_account SET epsilon_limit = epsilon_limit - 1",
    "UPDATE expost_account SET epsilon_reserved = -1",
    "DELETE FROM expost_account",
    "UPDATE expost_entry SET state = 'voided', charged_epsilon = 0, charged_delta = 0 WHERE number = 2",
    "UPDATE expost_entry SET epsilon = 1 WHERE number = 2",
    "UPDATE expost_entry SET charged_epsilon = 0 WHERE number = 1",
    "UPDATE expost_entry SET state = 'forfeited', charged_epsilon = 0, charged_delta = delta WHERE number = 2",
    "UPDATE expost_entry SET state = 'settled', part = '1', charged_epsilon = epsilon + 1, charged_delta = delta "
    "WHERE number = 2",
    "UPDATE expost_entry SET state = 'settled', part = '1', charged_epsilon = 0, charged_delta = 0 WHERE number = 2",
    "UPDATE expost_entry SET begun = 0 WHERE number = 2",
    "DELETE FROM expost_entry",
    "UPDATE expost_event SET line = '{}'",
    "DELETE FROM expost_event",
    "UPDATE expost_claim SET json = '{}'",
    "DELETE FROM expost_claim",
    "UPDATE expost_ledger SET sequence = 1",
    "DELETE FROM expost_ledger",
]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_no_hand_typed_update_overspends(backend: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(f"{backend}_url")()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
    ledger.reserve(CLAIM)
    head = ledger.verify_chain()
    for statement in OVERSPENDING:
        with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError)):
            execute(url, statement)
    assert ledger.verify_chain() == head


REPLACING = {
    "expost_ledger": "SELECT id, name, neighbours, unit, 1, 0, at, head FROM expost_ledger",
    "expost_account (id, ledger, parent, path, epsilon_limit, delta_limit)": (
        "SELECT id, ledger, parent, path, epsilon_limit, delta_limit FROM expost_account"
    ),
    "expost_account (ledger, parent, path, epsilon_limit, delta_limit)": (
        "SELECT ledger, parent, path, epsilon_limit, delta_limit FROM expost_account"
    ),
    "expost_claim": "SELECT digest, '{}' FROM expost_claim",
    "expost_entry (ledger, number, account, operation, subject, fingerprint, claim, epsilon, delta, owner, begun, "
    "reserved_at)": (
        "SELECT ledger, number, account, operation, subject, fingerprint, claim, 0, 0, owner, 0, 0 FROM expost_entry"
    ),
    "expost_entry (ledger, number, account, operation, subject, fingerprint, claim, epsilon, delta, owner, begun, "
    "reserved_at, key)": (
        "SELECT ledger, 9, account, operation, subject, fingerprint, claim, 0, 0, owner, 0, 0, key FROM expost_entry "
        "WHERE key = 'k'"
    ),
    "expost_event": "SELECT ledger, sequence, line || ' ', hash FROM expost_event",
}


@pytest.mark.parametrize("table", REPLACING)
def test_nothing_is_replaced_in_sqlite(sqlite_url: Callable[[], str], table: str) -> None:
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(CLAIM, key="k").settle("small")
    ledger.reserve(CLAIM)
    with pytest.raises(apsw.ConstraintError, match="expost: "):
        execute(url, f"INSERT OR REPLACE INTO {table} {REPLACING[table]}")
    ledger.verify_chain()


TAMPERING = {
    "UPDATE expost_account SET epsilon_limit = epsilon_limit + 1": "balances are not what",
    "UPDATE expost_account SET epsilon_reserved = epsilon_reserved - 1": "balances are not what",
    "UPDATE expost_account SET closed = 1": "balances are not what",
    "UPDATE expost_entry SET state = 'forfeited', charged_epsilon = epsilon, charged_delta = delta WHERE number = 2": (
        "entry 2 is not what the audit trail says"
    ),
    "UPDATE expost_ledger SET entries = entries + 1": "end differently",
    "INSERT INTO expost_event SELECT ledger, sequence + 1, line, hash FROM expost_event WHERE sequence = 4": (
        "line 5 of the audit trail does not follow"
    ),
    "INSERT INTO expost_event SELECT ledger, 5, 'nonsense', hash FROM expost_event WHERE sequence = 4": (
        "cannot be read"
    ),
}


@pytest.mark.parametrize("statement", TAMPERING)
def test_tampering_that_the_tables_allow_is_found(new_url: Callable[[], str], statement: str) -> None:
    url = new_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
    ledger.reserve(CLAIM)
    ledger.verify_chain()
    execute(url, statement)
    with pytest.raises(xp.LedgerCorrupt, match=TAMPERING[statement]):
        ledger.verify_chain()


def test_a_changed_output_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = make(url)
    told = Fixed(CLAIM, None, part="small")
    ledger.run(told, on=lambda: 7, key="k")
    execute(url, "DROP TRIGGER expost_entry_ends_once", "UPDATE expost_entry SET output = '8'")
    with pytest.raises(xp.LedgerCorrupt, match="not the one that was published"):
        ledger.run(told, key="k")


def disarm(url: str, table: str) -> None:
    """By hand: a table no longer defends itself."""
    if url.startswith("postgres"):
        execute(url, f"ALTER TABLE {table} DISABLE TRIGGER USER")
        return
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,))
    for (trigger,) in found.fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.close()


REWRITING = {
    "DELETE FROM expost_entry WHERE number = 1": "entry 1 stands in the audit trail, but was removed",
    "UPDATE expost_entry SET label = 'other' WHERE number = 2": "entry 2 is not what",
    "UPDATE expost_entry SET reserved_at = 1 WHERE number = 2": "entry 2 is not what",
    "UPDATE expost_entry SET ended_at = ended_at + 1 WHERE number = 1": "entry 1 is not what",
    "UPDATE expost_entry SET subject = 'other' WHERE number = 1": "entry 1 is not what",
    "UPDATE expost_entry SET fingerprint = 'other' WHERE number = 1": "entry 1 is not what",
    "UPDATE expost_entry SET operation = 'open' WHERE number = 1": "entry 1 is not what",
    "UPDATE expost_entry SET key = NULL WHERE number = 1": "entry 1 is not what",
    "UPDATE expost_entry SET account = 77 WHERE number = 1": "entry 1 is not what",
    "UPDATE expost_entry SET output = '8' WHERE number = 1": "output kept for entry 1 is not the one",
    "UPDATE expost_entry SET output = '8' WHERE number = 2": "output kept for entry 2 is not the one",
    "UPDATE expost_entry SET output = NULL WHERE number = 1": "output kept for entry 1 was removed",
    "UPDATE expost_claim SET json = '{}'": "entry 1 is not what",
    "UPDATE expost_ledger SET neighbours = 'substitute'": "name, neighbours or unit",
    "UPDATE expost_ledger SET unit = 'device'": "name, neighbours or unit",
}


@pytest.mark.parametrize("statement", REWRITING)
def test_rewriting_past_the_tables_defences_is_found(new_url: Callable[[], str], statement: str) -> None:
    url = new_url()
    ledger = make(url)
    ledger.run(Fixed(CLAIM, None, part="small"), on=lambda: 7, key="k")
    ledger.reserve(CLAIM)
    head = ledger.verify_chain()
    for table in ("expost_entry", "expost_ledger", "expost_claim"):
        disarm(url, table)
    execute(url, statement)
    with pytest.raises(xp.LedgerCorrupt, match=REWRITING[statement]):
        ledger.verify_chain(known=head)


def test_an_output_that_was_removed_is_not_delivered_as_none(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger, told = make(url), Fixed(CLAIM, None, part="small")
    ledger.run(told, on=lambda: 7, key="k")
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET output = NULL")
    with pytest.raises(xp.LedgerCorrupt, match="output kept for entry 1 was removed"):
        ledger.run(told, key="k")


def test_a_key_whose_entry_was_removed_is_not_sampled_again(new_url: Callable[[], str]) -> None:
    """It stands in the audit trail: nobody has to verify that first."""
    url = new_url()
    ledger, told, sampled = make(url), Fixed(CLAIM, None, part="small"), list[int]()
    ledger.run(told, on=lambda: 7, key='k "quoted" \u00e9')
    ledger.run(told, on=lambda: 7, key="another")
    disarm(url, "expost_entry")
    execute(url, "DELETE FROM expost_entry WHERE number = 1")
    for party in (ledger, Ledger.load(url, "study")):
        with pytest.raises(xp.LedgerCorrupt, match="the tables refused a step"):
            party.run(told, on=lambda: sampled.append(1), key='k "quoted" \u00e9')
        assert party.run(told, key="another").value == 7
        assert party.run(told, on=lambda: 8, key=f"new {id(party)}").value == 8
    assert not sampled
    with pytest.raises(xp.LedgerCorrupt, match="entry 1 stands in the audit trail, but was removed"):
        ledger.verify_chain()


@pytest.mark.parametrize("step", ["settle", "forfeit", "void", "begin"])
def test_an_entry_that_was_removed_does_not_end(new_url: Callable[[], str], step: str) -> None:
    """What is not there is not acknowledged."""
    url = new_url()
    ledger = make(url)
    store: Any = ledger._store
    first, second = (ledger.reserve(CLAIM, begin=False).id for _ in range(2))
    lines = len(list(ledger.audit()))
    disarm(url, "expost_entry")
    execute(url, f"DELETE FROM expost_entry WHERE number = {first}")
    rest = ("small", None) if step == "settle" else ()
    with pytest.raises(xp.LedgerCorrupt, match=r"expost: entry 1 was removed; see verify_chain\(\)"):
        getattr(store, step)(first, *rest)
    work = partial(store.void, second), partial(getattr(store, step), first, *rest)
    with pytest.raises(xp.LedgerCorrupt, match=r"expost: entry 1 was removed; see verify_chain\(\)"):
        store._engine.apply(store._ledger, steps_of(store, *work))
    assert len(list(ledger.audit())) == lines
    store.void(second)
    with pytest.raises(xp.LedgerCorrupt, match="entry 1 was removed"):
        store.forfeit(first)
    liveness.HEART.beat()  # tries again in vain, and looks
    with pytest.raises(xp.LedgerCorrupt, match="not the sum of its open entries"):
        ledger.reserve(CLAIM)


def test_a_balance_that_was_changed_by_hand_stops_all_spending(new_url: Callable[[], str]) -> None:
    """What is set aside is compared with the open entries at every load and every beat."""
    url = new_url()
    ledger = make(url)
    spending = ledger.reserve(CLAIM)
    execute(url, "UPDATE expost_account SET epsilon_reserved = epsilon_reserved - 1")
    other = Ledger.load(url, "study")
    liveness.HEART.beat()
    for party in (ledger, other):
        for work in (party.recover, partial(party.reserve, CLAIM)):
            with pytest.raises(xp.LedgerCorrupt, match="not the sum of its open entries"):
                work()
    assert len(list(other.entries())) == 1  # reading goes on
    execute(url, "UPDATE expost_account SET epsilon_reserved = epsilon_reserved + 1")
    other.recover()
    assert other.reserve(CLAIM).settle("small").id == 2
    spending.settle("small")
    ledger.verify_chain()


CHANGES = [
    "UPDATE expost_account SET epsilon_reserved = epsilon_reserved - 1 WHERE path = 'study/team/alice'",
    "UPDATE expost_account SET delta_reserved = 0 WHERE path = 'study/team'",
    "UPDATE expost_account SET epsilon_reserved = 1 WHERE path = 'study/team/bob'",
    "UPDATE expost_account SET epsilon_reserved = epsilon_reserved + 1 WHERE path = 'study'",
    "UPDATE expost_account SET parent = id WHERE path = 'study/team'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_a_balance_that_was_changed_by_hand_is_found_below(new_url: Callable[[], str], statement: str) -> None:
    url = new_url()
    ledger, other = make(url), make(url, name="other")
    team = ledger.create_account("team", epsilon=4, delta=1e-3)
    alice, _ = (team.create_account(name, epsilon=3, delta=1e-3) for name in ("alice", "bob"))
    for account in (alice, alice, team, ledger, other):
        account.reserve(CLAIM, begin=False)
    alice.reserve(CLAIM).settle("small")
    Ledger.load(url, "study").reserve(CLAIM, begin=False).void()
    disarm(url, "expost_account")
    execute(url, statement)
    with pytest.raises(xp.LedgerCorrupt, match="'study' has set aside is not the sum of its open entries"):
        Ledger.load(url, "study").account("team").account("bob").reserve(CLAIM)
    Ledger.load(url, "other").reserve(CLAIM).settle("small")


def test_a_balance_that_was_changed_by_hand_locks_nobody_out(new_url: Callable[[], str], tmp_path: Path) -> None:
    """What a dead process left cannot be forfeited then; it stays set aside, and everything can be read."""
    url = new_url()
    make(url).reserve(CLAIM, label="left")
    execute(
        url,
        """UPDATE expost_owner SET identity = replace(identity, '"started":"', '"started":"1')""",
        "UPDATE expost_account SET epsilon_reserved = 0",
    )
    ledger = Ledger.load(url, "study")
    assert [entry.label for entry in ledger.entries()] == ["left"]
    assert (ledger.spent, ledger.reserved) == (Cost(0), Cost(0, "1e-6"))
    assert str(ledger.statement())
    ledger.export(tmp_path / "trail")
    with pytest.raises(xp.LedgerCorrupt, match="balances are not what the audit trail adds up to"):
        ledger.verify_chain()
    for work in (ledger.recover, partial(ledger.reserve, CLAIM)):
        with pytest.raises(xp.LedgerCorrupt, match="not the sum of its open entries"):
            work()
    ledger.close(**OWNER)
    assert Ledger.load(url, "study").closed


def test_a_ledger_is_not_created_again(new_url: Callable[[], str]) -> None:
    """A line with a right hash that starts over, and balances to match: found even by whoever noted the head."""
    url = new_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("large")
    head = ledger.verify_chain()
    body = trails.create_body("study", ledger.limit, "add-remove", "person")
    line = trails.write_line(head.sequence + 1, list(ledger.audit())[-1].at, "create", None, body)
    digest = trails.link(head.hash, line)
    disarm(url, "expost_account")
    execute(
        url,
        f"INSERT INTO expost_event VALUES (1, {head.sequence + 1}, '{line}', '{digest}')",
        f"UPDATE expost_ledger SET sequence = sequence + 1, head = '{digest}'",
        "UPDATE expost_account SET epsilon_spent = 0, delta_spent = 0",
    )
    with pytest.raises(xp.LedgerCorrupt, match="created once"):
        ledger.verify_chain(known=head)


def test_a_part_that_was_not_paid_for_is_found(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    claim = Guarantee({"small": 0.25, "large": 1})
    store: Any = ledger._store
    spending, levels = ledger.reserve(claim), store._ids(("study",))
    body = trails.end_body(Cost(0), "large")
    step = {"do": "end", "entry": spending.id, "state": "settled", "epsilon": 0, "delta": 0, "part": '"large"'}
    store._do(step | {"body": body, "levels": levels})
    with pytest.raises(xp.LedgerCorrupt, match="another amount than the part's"):
        ledger.verify_chain()


def trail(*events: tuple[str, int | None, dict[str, Any]]) -> list[trails.Event]:
    made = trails.Trail()
    body = {"limit": [10, 0], "name": "l", "neighbours": None, "unit": None}
    every = [("create", None, body), *events]
    return [made.append(0, kind, entry, canonical(told)) for kind, entry, told in every]


PRICES = Guarantee({"all": "6e-12", "some": "5e-12"})
RESERVE = {
    "account": "l", "begun": True, "claim": codec.claim_digest(PRICES), "fingerprint": "", "key": None, "label": None,
    "operation": "run", "subject": "", "worst": [6, 0], "guarantee": PRICES.to_json(),
}  # fmt: skip
CHEAP = Guarantee.uniform("1e-12")
SMALL = RESERVE | {"claim": codec.claim_digest(CHEAP), "worst": [1, 0], "guarantee": CHEAP.to_json()}
UNTOLD = {name: told for name, told in RESERVE.items() if name != "guarantee"}
END = {"charged": [6, 0], "output": None, "part": "all"}


def test_what_may_have_happened() -> None:
    events = [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0], "part": "some"}), ("reserve", 2, SMALL)]
    books, _ = trails.replay(trail(*events))
    assert books.accounts["l"] == (Cost("10e-12"), Cost("5e-12"), Cost("1e-12"), False)


@pytest.mark.parametrize(
    "events",
    [
        [("reserve", 1, RESERVE), ("reserve", 2, RESERVE)],
        [("close", None, {"account": "l"}), ("reserve", 1, RESERVE)],
        [("reserve", 1, RESERVE), ("forfeit", 1, END | {"charged": [5, 0]})],
        [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [7, 0]})],
        [("reserve", 1, RESERVE), ("settle", 1, END), ("settle", 1, END)],
        [("reserve", 1, RESERVE), ("void", 1, END | {"charged": [0, 0]})],
        [("settle", 1, END)],
        [("settle", None, END)],
        [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0]})],
        [("reserve", 1, RESERVE), ("settle", 1, END | {"part": "none"})],
        [("reserve", 1, UNTOLD)],
        [("reserve", 1, RESERVE | {"worst": [5, 0]})],
        [("reserve", 1, RESERVE | {"guarantee": CHEAP.to_json()})],
        [("reserve", 2, RESERVE)],
        [("reserve", 1, SMALL), ("reserve", 1, SMALL)],
        [("reserve", 1, SMALL | {"key": "k"}), ("reserve", 2, SMALL | {"key": "k"})],
        [("create", None, {"limit": [10, 0], "name": "l", "neighbours": None, "unit": None})],
        [("account", None, {"account": "l", "limit": [10, 0]})],
        [
            ("account", None, {"account": "l/x", "limit": [1, 0]}),
            ("account", None, {"account": "l/x", "limit": [1, 0]}),
        ],
        [("account", None, {"account": "l/x/y", "limit": [10, 0]})],
        [("raise", None, {"account": "l", "limit": [9, 0]})],
        [("account", None, {})],
        [("rob", None, {})],
    ],
)
def test_what_cannot_have_happened(events: list[Any]) -> None:
    """A trail whose hashes are right, but whose story is not."""
    with pytest.raises(xp.LedgerCorrupt, match="cannot have happened"):
        trails.replay(trail(*events))


def test_verifying_while_others_spend(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger = make(url, epsilon=1000)
    done = threading.Event()

    def spend() -> None:
        while not done.is_set():
            ledger.reserve(Guarantee.uniform("0.001")).settle("any")

    thread = threading.Thread(target=spend)
    thread.start()
    reader = Ledger.load(url, "study")
    heads = [reader.verify_chain() for _ in range(10)]
    done.set()
    thread.join()
    assert heads == sorted(heads)
    assert heads[0].sequence < reader.verify_chain(known=heads[0]).sequence


def test_two_owners_raise_a_limit_at_once(new_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one sees what the first one did, and its own raise is judged again by that."""
    url = new_url()
    ledger, other = make(url), Ledger.load(url, "study")
    store: Any = ledger._store
    real, first = store.balances, [True]

    def balances(path: Any) -> Any:
        seen = real(path)
        if first.pop() if first else False:
            other.raise_limit(epsilon=7, by="the other", reason="quicker")
        return seen

    monkeypatch.setattr(store, "balances", balances)
    with pytest.raises(xp.InvalidValue, match="only goes up: it is ε 7"):
        ledger.raise_limit(epsilon=6, **OWNER)
    assert ledger.limit == Cost(7, delta=1e-3)
    ledger.verify_chain()


# ---- batches


class Slow:
    """An engine that can be told to wait, to fail, or to be interrupted; it counts its commits."""

    def __init__(self) -> None:
        self.batches: list[list[Operation]] = []
        self.go = threading.Event()
        self.error: BaseException | None = None

    def pause(self) -> None:
        pass

    resume = close = pause

    def apply(self, ledger: int, operations: list[Operation]) -> list[Outcome]:
        self.batches.append(operations)
        assert self.go.wait(10)
        if self.error is not None and any(operation["n"] for operation in operations):
            raise copy.copy(self.error)
        return [{"did": operation["n"]} for operation in operations]


def waiting(batch: Any) -> int:
    """How many wait for their turn."""
    return int(batch._writer.waiting.qsize() + batch._writer._wanted)


def crowd(batch: Batch, count: int, engine: Slow) -> list[Any]:
    results: list[Any] = [None] * count

    def call(n: int) -> None:
        try:
            results[n] = batch.submit({"n": n})
        except BaseException as error:
            results[n] = error

    threads = [threading.Thread(target=call, args=(n,)) for n in range(count)]
    threads[0].start()
    while not engine.batches:
        pass
    for thread in threads[1:]:
        thread.start()
    while waiting(batch) < count - 1:
        pass
    engine.go.set()
    for thread in threads:
        thread.join(10)
    return results


def test_callers_that_wait_are_committed_together() -> None:
    engine = Slow()
    assert crowd(Batch(engine, 1), 20, engine) == [{"did": n} for n in range(20)]  # type: ignore[arg-type]
    assert [len(batch) for batch in engine.batches] == [1, 19]


@pytest.mark.parametrize("error", [xp.LedgerUnavailable("gone"), RuntimeError(), KeyboardInterrupt()])
def test_a_commit_that_fails_fails_for_all_who_were_in_it(error: BaseException) -> None:
    engine = Slow()
    engine.error = error
    batch = Batch(engine, 1)  # type: ignore[arg-type]
    first, *others = crowd(batch, 5, engine)
    assert first == {"did": 0}
    assert all(isinstance(other, type(error) | xp.LedgerUnavailable) for other in others)
    assert len({id(other) for other in others}) == 4
    together = [1, 4] if isinstance(error, xp.LedgerUnavailable) else [1, 4, 1, 1, 1, 1]
    assert [len(operations) for operations in engine.batches] == together
    engine.error = None
    assert batch.submit({"n": 9}) == {"did": 9}


def test_one_broken_step_does_not_break_the_others(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    store: Any = ledger._store
    good = {"do": "close", "account": store._ids(("study",))[-1], "body": "{}"}
    bad = {"do": "account", "parent": 10**9, "path": "nowhere", "epsilon": 1, "delta": 0, "body": "{}"}
    with held(ledger) as answers:
        for step in (bad, good, bad):
            answers.ask(partial(store._do, step))
    assert [type(answer) for answer in answers] == [xp.LedgerCorrupt, dict, xp.LedgerCorrupt]
    assert ledger.closed
    with pytest.raises(xp.LedgerCorrupt, match="the tables refused"):
        store._do(bad)


class Answers(list[Any]):
    """What callers got who came while a commit was under way, in the order in which they came."""

    def __init__(self, ledger: Ledger) -> None:
        self._batch = ledger._store._batch  # type: ignore[attr-defined]
        self.threads: list[threading.Thread] = []

    def ask(self, work: Callable[[], Any]) -> None:
        place = len(self)
        self.append(None)

        def call() -> None:
            try:
                self[place] = work()
            except BaseException as error:
                self[place] = error

        self.threads.append(threading.Thread(target=call))
        before = waiting(self._batch)
        self.threads[-1].start()
        while waiting(self._batch) <= before and self.threads[-1].is_alive():
            time.sleep(0.001)


@contextlib.contextmanager
def held(ledger: Ledger) -> Iterator[Answers]:
    """Until the block ends a commit is under way; whoever asks inside is committed together afterwards."""
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    started, go, real = threading.Event(), threading.Event(), engine.apply

    def slow(*given: Any) -> Any:
        engine.apply = real
        started.set()
        assert go.wait(10)
        return real(*given)

    engine.apply = slow
    first = threading.Thread(target=ledger.recover)
    first.start()
    assert started.wait(10)
    answers = Answers(ledger)
    yield answers
    go.set()
    for thread in (first, *answers.threads):
        thread.join(30)


BAD: dict[str, Callable[[Ledger], Any]] = {
    "a long key": lambda ledger: ledger.reserve(CLAIM, key=secrets.token_hex(6000)),
    "a long label": lambda ledger: ledger.reserve(CLAIM, label="x" * 10_001),
    "half a character": lambda ledger: ledger.run(Fixed(CLAIM, 1, part="small"), label="odd \ud800"),
    "zero": lambda ledger: ledger.run(Fixed(CLAIM, 1, part="small"), label="odd \0"),
    "half a character under a key": lambda ledger: ledger.run(Fixed(CLAIM, 1, part="small"), key="k", label="\ud800"),
    "a mechanism that prints too much": lambda ledger: ledger.run(Fixed(CLAIM, "x" * 10**6, part="small")),
    "a key that is no text": lambda ledger: ledger.run(Fixed(CLAIM, 1, part="small"), key="\ud800"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_no_database_can_keep_is_refused_before_it_is_asked_for(new_url: Callable[[], str], bad: str) -> None:
    """And whoever asks at the same time does not notice."""
    ledger = make(new_url())
    spending = ledger.reserve(CLAIM)
    with held(ledger) as answers:
        answers.ask(lambda: BAD[bad](ledger))
        answers.ask(lambda: spending.settle("small"))
    assert isinstance(answers[0], xp.InvalidValue)
    assert answers[1].charged == CLAIM.cost_of("small")
    assert ledger.reserved == Cost(0)
    ledger.create_account("x" * 400, epsilon=1)
    with pytest.raises(xp.InvalidValue, match="at most 500 characters"):
        ledger.account("x" * 400).create_account("y" * 100, epsilon=1)
    with pytest.raises(xp.InvalidValue, match="at most 500 characters"):
        ledger.reservation("x" * 501)


POISON = {"lone": "\ud800", "zero": "\0", "long": secrets.token_hex(6000)}


@pytest.mark.parametrize("poison", POISON)
def test_a_step_that_the_database_refuses_harms_nobody_else(new_url: Callable[[], str], poison: str) -> None:
    """Whatever slips through the checks: the rest of the batch goes on, at once, each step by itself."""
    ledger = make(new_url())
    spending, store = ledger.reserve(CLAIM), ledger._store
    bad = {"do": "account", "parent": 1, "path": POISON[poison], "epsilon": "x", "delta": 0, "body": "{}"}
    since = time.monotonic()
    with held(ledger) as answers:
        answers.ask(lambda: store._do(bad))  # type: ignore[attr-defined]
        answers.ask(lambda: spending.settle("small"))
    assert isinstance(answers[0], Exception)
    assert answers[1].charged == CLAIM.cost_of("small")
    assert time.monotonic() - since < 8  # nobody waited for the database to change its mind
    ledger.verify_chain()


def test_an_interrupt_while_the_writer_starts_starts_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is committed once, and nobody waits for ever."""
    engine = Slow()
    engine.go.set()
    batch: Any = Batch(engine, 1)  # type: ignore[arg-type]
    batch._writer._busy = True  # so that the thread is needed
    start, struck = threading.Thread.start, [0]

    def striking(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "expost-writer" and struck[0] < 2:
            struck[0] += 1
            thread._started.clear()  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", striking)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            batch.submit({"n": -1})
    monkeypatch.undo()
    done: list[Outcome] = []
    real = engine.apply
    monkeypatch.setattr(engine, "apply", lambda *given: (time.sleep(0.001), real(*given))[1])

    def ask(first: int) -> None:
        done.extend(batch.submit({"n": n}) for n in range(first, first + 50))

    threads = [threading.Thread(target=ask, args=(50 * k,), daemon=True) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(outcome["did"] for outcome in done) == list(range(300))
    asked = [operation["n"] for operations in engine.batches for operation in operations]
    assert sorted(n for n in asked if n >= 0) == list(range(300))
    assert sum(getattr(thread, "_target", None) == batch._writer._run for thread in threading.enumerate()) == 1


def test_a_finalizer_in_the_writer_thread_is_refused() -> None:
    """It would wait for its own thread; it may run at any call there, also between two turns."""
    engine = Slow()
    engine.go.set()
    batch: Any = Batch(engine, 1)  # type: ignore[arg-type]
    batch._writer._busy = True
    refused: list[BaseException] = []

    class Collecting(threading.Event):
        """What the garbage collector does while a ticket is given back."""

        def release(self) -> None:
            try:
                batch.submit({"n": 1})
            except xp.LedgerUnavailable as error:
                refused.append(error)
            self.set()

        def acquire(self) -> None:
            assert self.wait(10)

    real = writer_module._Ticket

    class Collected(real):  # type: ignore[valid-type, misc]
        def __init__(self, operation: Operation) -> None:
            super().__init__(operation)
            self.done = Collecting()

    writer_module._Ticket = Collected  # type: ignore[misc]
    try:
        assert batch.submit({"n": 0}) == {"did": 0}
    finally:
        writer_module._Ticket = real  # type: ignore[misc]
    assert "finalizer" in str(refused[0])
    assert batch.submit({"n": 2}) == {"did": 2}


def test_an_interrupt_while_a_fork_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held is given back, nothing lives on in two processes, and the next one is served."""
    engine = Slow()
    batch: Any = Batch(engine, 1)  # type: ignore[arg-type]
    rested: list[str] = []
    monkeypatch.setattr(engine, "pause", lambda: rested.append("pause"))
    monkeypatch.setattr(engine, "resume", lambda: rested.append("resume"))
    monkeypatch.setattr(writer_module, "_ALL", [batch._writer])
    committing = threading.Thread(target=batch.submit, args=({"n": 0},))
    committing.start()
    while not engine.batches:
        pass
    before, struck = signal.getsignal(signal.SIGALRM), []

    def strike(*_: Any) -> None:
        struck.append(1)
        engine.go.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            writer_module._before()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (struck, rested) == ([1], ["pause"])
    writer_module._after(child=False)
    assert rested == ["pause", "resume"]
    committing.join(10)
    served = threading.Thread(target=batch.submit, args=({"n": 1},), daemon=True)
    served.start()
    served.join(10)
    assert [operations[0]["n"] for operations in engine.batches] == [0, 1]


def test_a_process_may_end_while_a_thread_commits(new_url: Callable[[], str]) -> None:
    """Daemon threads are cut off; the database is let go of between two commits, without a word."""
    url = new_url()
    make(url)
    program = (
        "import sys, threading, time, expost as xp\n"
        "ledger = xp.Ledger.load(sys.argv[1], 'study')\n"
        "claim = xp.Guarantee({'small': '0.000001', 'large': '0.000002'})\n"
        "def spend():\n"
        "    while True:\n"
        "        ledger.reserve(claim).settle('small')\n"
        "threading.Thread(target=spend, daemon=True).start()\n"
        "time.sleep(0.2)\n"
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_caller_that_is_interrupted_takes_nobody_along() -> None:
    """It stops waiting; what was not taken up yet is not done, and the next one is served."""
    engine = Slow()
    batch = Batch(engine, 1)  # type: ignore[arg-type]

    class Interrupted:
        def acquire(self) -> None:
            raise KeyboardInterrupt

        release = acquire

    waiting = threading.Thread(target=batch.submit, args=({"n": 0},))
    waiting.start()
    while not engine.batches:
        pass
    real = writer_module._Ticket

    class Struck(real):  # type: ignore[valid-type, misc]
        def __init__(self, operation: Operation) -> None:
            super().__init__(operation)
            self.done = Interrupted()

    writer_module._Ticket = Struck  # type: ignore[misc]
    try:
        with pytest.raises(KeyboardInterrupt):
            batch.submit({"n": 1})
    finally:
        writer_module._Ticket = real  # type: ignore[misc]
    engine.go.set()
    waiting.join(10)
    assert batch.submit({"n": 2}) == {"did": 2}
    assert [[step["n"] for step in steps] for steps in engine.batches] == [[0], [2]]


def test_a_caller_that_is_interrupted_as_its_turn_comes() -> None:
    """Between taking the lock and the block under it: Python may look for signals there."""
    engine = Slow()
    engine.go.set()
    batch = Batch(engine, 1)  # type: ignore[arg-type]
    writer = batch._writer
    real = writer._turn

    class Struck:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def __enter__(self) -> None:
            real.acquire()
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            raise AssertionError

    writer._turn = Struck()
    with pytest.raises(KeyboardInterrupt):
        batch.submit({"n": 1})
    writer._turn = real
    others = [threading.Thread(target=batch.submit, args=({"n": n},), daemon=True) for n in (2, 3)]
    for thread in others:
        thread.start()
        thread.join(10)
    assert [[step["n"] for step in steps] for steps in engine.batches] == [[2], [3]]


def test_a_signal_handler_cannot_write_in_the_middle_of_writing(new_url: Callable[[], str]) -> None:
    """It would wait for itself. Told so, it may leave a note; what it came upon is done."""
    ledger = make(new_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real = engine.apply

    def struck(*given: Any) -> Any:
        with pytest.raises(xp.LedgerUnavailable, match="in the middle of writing"):
            ledger.reserve(CLAIM)
        return real(*given)

    engine.apply = struck
    assert ledger.reserve(CLAIM).id == 1
    del engine.apply
    assert ledger.reserve(CLAIM).id == 2
    ledger.verify_chain()


def test_nothing_is_begun_while_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slow()
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    with pytest.raises(xp.LedgerUnavailable, match="the process is ending"):
        Batch(engine, 1).submit({"n": 1})  # type: ignore[arg-type]
    monkeypatch.undo()
    assert engine.batches == []


def test_a_transaction_that_could_not_even_be_rolled_back(sqlite_url: Callable[[], str]) -> None:
    ledger = make(sqlite_url())
    ledger.reserve(CLAIM).settle("small")
    ledger._store._engine._writer.execute("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
    ledger.reserve(CLAIM).settle("small")
    ledger.verify_chain()


# ---- the databases themselves


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.4")
    with pytest.raises(xp.InvalidValue, match="can corrupt its log"):
        make(f"sqlite:///{tmp_path}/books.db")


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(xp.LedgerUnavailable, match=r"cannot be written.*let this user read and write it, its folder"):
        make(f"sqlite:///{tmp_path}/no such folder/books.db")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello world " * 100)
    with pytest.raises(xp.LedgerCorrupt, match="no SQLite database"):
        Ledger.load(f"sqlite:///{tmp_path}/notes.txt", "study")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:secret@host/books",
        "postgresql+psycopg://me:secret@host/books",
        "postgresql://me:sec%ret@127.0.0.1:1/books",
        "postgresql://me:secret@127.0.0.1:1/books?bogus=1",
        "postgresql://me:hush@secret@127.0.0.1:1/books",
        "postgresql://me:secret/hush@127.0.0.1:1/books",
        "postgresql://me:secret@127.0.0.1:1/books",
    ],
)
def test_errors_do_not_tell_passwords(url: str) -> None:
    with pytest.raises((xp.InvalidValue, xp.LedgerUnavailable)) as refused:
        Ledger.load(url, "study")
    told = "".join(traceback.format_exception(refused.value))
    shown = told.replace(url, "")  # the test's own line
    assert "secret" not in shown.replace("test_errors", "")
    assert "sec%ret" not in shown
    assert "secret" not in repr(durable.Address(url, "study"))


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


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(xp.LedgerUnavailable, match="does not answer"):
        Ledger.load("postgresql://expost@127.0.0.1:1/none", "study")


def test_a_server_that_is_too_old(postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "OLDEST", 10**9)
    with pytest.raises(xp.InvalidValue, match="too old"):
        make(postgres_url())


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *rest: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(xp.InvalidValue, match=r"pip install 'expost\[postgres\]'"):
        Ledger.load("postgresql://nowhere/none", "study")


def test_a_server_that_goes_away_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    try:
        ledger = make(server.url)
        spending = ledger.reserve(CLAIM)
        server.stop("immediate")
        monkeypatch.setattr(postgres, "PATIENCE", 0.1)
        with pytest.raises(xp.LedgerUnavailable, match="does not answer") as lost:
            spending.settle("small")
        assert "stays reserved" in lost.value.__notes__[-1]
        server.start()
        monkeypatch.setattr(postgres, "PATIENCE", 10)
        liveness.HEART.beat()
        assert (ledger.spent, ledger.reserved) == (CLAIM.worst_case, Cost(0))
        ledger.verify_chain()
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
    assert broken[0][0][0]["entry"] == 2
    assert len(list(ledger.entries())) == 2
    (name,) = {store._owners[here()]}
    engine._before[name] = {"never heard of"}
    with pytest.raises(xp.LedgerCorrupt, match="another process speaks"):
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
    ledger.verify_chain()


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
    ledger.verify_chain()


def test_a_reader_that_is_not_idle_is_not_used(new_url: Callable[[], str]) -> None:
    """However it came to that: it would show what held before."""
    ledger = make(new_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    assert ledger.spent == Cost(0)
    server = isinstance(engine._reader, psycopg.Connection)
    engine._reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ" if server else "BEGIN")
    engine._reader.execute("SELECT count(*) FROM expost_entry").fetchall()
    ledger.reserve(CLAIM).settle("small")
    assert ledger.spent == CLAIM.cost_of("small")
    ledger.verify_chain()


def test_a_file_whose_reader_was_interrupted(sqlite_url: Callable[[], str]) -> None:
    ledger = make(sqlite_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real, closed = engine._reader, list[int]()

    class Struck:
        in_transaction = False

        def execute(self, *_: object) -> None:
            raise KeyboardInterrupt

        def close(self, *_: object) -> None:
            closed.append(1)

    engine._reader = Struck()
    with pytest.raises(KeyboardInterrupt):
        assert ledger.remaining
    assert (closed, engine._reader) == ([1], None)
    assert ledger.remaining == ledger.limit
    real.close()


def test_a_lock_is_not_held_on_by_whoever_was_interrupted_as_it_got_it() -> None:
    class Struck:
        def __init__(self, real: Any) -> None:
            self._acquire, self._is_owned, self.release = real.acquire, real._is_owned, real.release

        def __enter__(self) -> None:
            self._acquire()
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            raise AssertionError

    lock = Struck(threading.RLock())
    with pytest.raises(KeyboardInterrupt):
        alone(lock, int)
    assert not lock._is_owned()


def test_what_a_database_says_again_and_again_is_told_once() -> None:
    error = psycopg.OperationalError("sending failed: another command is already in progress\n" * 300 + "  try later\n")
    told = postgres._said(error)
    assert told.count("in progress") == 1
    assert "progress try later; what was set aside" in told


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_the_books_are_read(new_url: Callable[[], str]) -> None:
    """It does not wait for the end: they are read again, from the beginning. No connection lives on in two."""
    ledger = make(new_url())
    ledger.reserve(CLAIM)
    store: Any = ledger._store
    real, times = store._compare, list[int]()
    reading, forked = threading.Event(), threading.Event()

    def compare(*given: Any) -> None:
        times.append(1)
        reading.set()
        assert forked.wait(60)
        real(*given)

    store._compare = compare
    verifier = threading.Thread(target=ledger.verify_chain)
    verifier.start()
    assert reading.wait(60)
    pid = os.fork()
    if not pid:
        os._exit(int(ledger.reserved != CLAIM.worst_case))
    forked.set()
    assert os.waitpid(pid, 0)[1] == 0
    verifier.join()
    assert len(times) == 2


def test_a_first_batch_that_fails_is_not_the_last(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    make(url)
    ledger = Ledger.load(url, "study")
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real, given = engine._write, ledger.reserve(CLAIM)
    ledger._store._owners.clear()  # type: ignore[attr-defined]

    def fails(sql: str, values: Any) -> Any:
        raise psycopg.DataError("not now")

    engine._write = fails
    with pytest.raises(xp.LedgerUnavailable, match="not now"):
        ledger.reserve(CLAIM)  # the first batch under a new name
    engine._write = real
    assert ledger.reserve(CLAIM).settle("small").id == 2
    given.settle("small")
    ledger.verify_chain()


def test_a_step_under_an_older_name_goes_under_the_new_one(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    ledger = make(url)
    store: Any = ledger._store
    first = ledger.reserve(CLAIM)
    old = store._who(True)
    execute(url, f"UPDATE expost_owner SET expired = 1 WHERE id = '{old['owner']}'")
    second = ledger.reserve(CLAIM)
    assert store._owners[here()] != old["owner"]
    assert store._do({"do": "beat", **old}) == {"alive": True}
    assert ledger.reserve(CLAIM).settle("small").id == 3
    assert second.settle("small").charged == CLAIM.cost_of("small")
    assert first.settle("small").charged == CLAIM.cost_of("small")
    ledger.verify_chain()


APPLY = "(BIGINT, TEXT, TEXT, BIGINT, TEXT, JSONB, JSONB)"


def steps_of(store: Any, *works: Callable[[], object]) -> list[Operation]:
    """The steps that these would take, without taking them."""
    noted: list[Operation] = []

    def note(step: Operation) -> Outcome:
        noted.append(step)
        raise InterruptedError

    store._do = note
    for work in works:
        with pytest.raises(InterruptedError):
            work()
    del store._do
    store._orphans.clear()
    return noted


@pytest.fixture
def no_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody beats for the test's ledgers: it steps into a store's way to its database, which a beat would go, too."""
    heart = liveness.Heart()
    heart._pid = os.getpid()  # as if it ran already
    monkeypatch.setattr(durable, "HEART", heart)


@pytest.mark.usefixtures("no_heart")
def test_many_steps_at_once(new_url: Callable[[], str]) -> None:
    """Where their order does not matter PostgreSQL takes them together: here it has no other way. Else one by one."""
    url = new_url()
    ledger = make(url)
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
    if url.startswith("postgres"):
        execute(url, f"ALTER FUNCTION expost_singly{APPLY} RENAME TO expost_gone")
    done = store._engine.apply(store._ledger, plain)
    assert [outcome.get("entry") for outcome in done] == [None, None, 5, None, 6, None]
    assert all(outcome["at"] == done[0]["at"] for outcome in done)
    assert ledger.spent == CLAIM.cost_of("small") + CLAIM.worst_case + CLAIM.cost_of("large")
    assert (ledger.reserved, alice.spent, alice.reserved) == (CLAIM.worst_case * 2, CLAIM.worst_case, Cost(0))
    states = ["settled", "forfeited", "voided", "settled", "reserved", "reserved"]
    assert [entry.state for entry in ledger.entries()] == states
    ledger.verify_chain()
    last = ledger.reservation(5)
    mixed = steps_of(
        store,
        lambda: alice.reserve(CLAIM),  # fits, but not with the next one
        lambda: alice.reserve(CLAIM),
        lambda: store.settle(last.id, "small", None),
        lambda: store.forfeit(last.id),
        lambda: ledger.reserve(CLAIM, key="two"),
        lambda: ledger.reserve(CLAIM, key="new"),
        lambda: ledger.reserve(CLAIM, key="new"),
    )
    if url.startswith("postgres"):
        with pytest.raises(xp.LedgerUnavailable, match="expost_singly"):
            store._engine.apply(store._ledger, mixed)
        execute(url, f"ALTER FUNCTION expost_gone{APPLY} RENAME TO expost_singly")
    done = store._engine.apply(store._ledger, mixed)
    assert [sorted(outcome) for outcome in done] == [
        *(["at", "entry"], ["levels"], ["at"], ["ended"], ["used"], ["at", "entry"], ["used"])
    ]
    assert (done[4], done[6]) == ({"used": 2}, {"used": 8})
    ledger.verify_chain()


@pytest.mark.parametrize("step", ["reserve", "settle", "void"])
def test_one_step_by_itself(postgres_url: Callable[[], str], step: str) -> None:
    """In PostgreSQL a plain one is taken in its own way, at every level."""
    url = postgres_url()
    ledger = make(url)
    alice = ledger.create_account("team", epsilon=4, delta=1e-4).create_account("alice", epsilon=2, delta=1e-4)
    first = alice.reserve(CLAIM, begin=False)
    execute(url, f"ALTER FUNCTION expost_singly{APPLY} RENAME TO expost_gone")
    if step == "reserve":
        assert (alice.reserve(CLAIM, key="k").id, ledger.reserve(CLAIM).id) == (2, 3)
        with pytest.raises(xp.LedgerUnavailable, match="expost_singly"):
            alice.reserve(CLAIM)  # it does not fit: why is told by the other
    else:
        assert getattr(first, step)(*(["small"] if step == "settle" else [])).id == 1
    execute(url, f"ALTER FUNCTION expost_gone{APPLY} RENAME TO expost_singly")
    reserved = CLAIM.worst_case * (2 if step == "reserve" else 0)
    assert (alice.reserved, ledger.account("team").reserved) == (reserved, reserved)
    assert alice.spent == (CLAIM.cost_of("small") if step == "settle" else Cost(0))
    ledger.verify_chain()


def test_a_process_that_is_silent_for_a_month_is_forgotten(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    ledger = make(url)
    ledger.reserve(CLAIM)
    month = 31 * 86400 * 10**6
    for name, age in (("old", month), ("young", 0), ("holding", month)):
        execute(
            url,
            "INSERT INTO expost_owner (id, ledger, identity, deadline, expired, batch, outcomes) "
            f"SELECT '{name}', id, '?', at - 1 - {age}, 1, '', '[]' FROM expost_ledger",
        )
    spending = ledger.reserve(CLAIM)
    disarm(url, "expost_entry")
    execute(url, f"UPDATE expost_entry SET owner = 'holding' WHERE number = {spending.id}")
    with psycopg.connect(url, autocommit=True) as server:
        alive = {name for (name,) in server.execute("SELECT id FROM expost_owner WHERE expired = 0").fetchall()}

        def known() -> set[str]:
            return {name for (name,) in server.execute("SELECT id FROM expost_owner").fetchall()} - alive

        assert known() == {"old", "young", "holding"}
        assert ledger.recover() == 1  # what that one held is forfeited first, and then it holds nothing
        assert known() == {"young"}
    ledger.verify_chain()


def test_missing_rights_are_named(server: Server) -> None:
    name = f"rights_{secrets.token_hex(4)}"
    url = server.new_database(name)
    execute(url, f"CREATE ROLE {name} LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    theirs = url.replace("expost@", f"{name}@")
    with pytest.raises(xp.LedgerUnavailable, match=r"denies this: permission denied for schema.*needs CREATE"):
        make(theirs)
    make(url)
    with pytest.raises(xp.LedgerUnavailable, match=r"denies this: permission denied for table.*grant this user USAGE"):
        Ledger.load(theirs, "study")
    execute(url, f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {name}")
    with pytest.raises(xp.LedgerUnavailable, match=r"denies this: permission denied for table.*INSERT and UPDATE"):
        Ledger.load(theirs, "study")
    execute(url, f"GRANT UPDATE ON ALL TABLES IN SCHEMA public TO {name}")
    ledger = Ledger.load(theirs, "study")
    ledger.run(Fixed(CLAIM, 7, part="small"), key="k")
    ledger.create_account("alice", epsilon=1).reserve(CLAIM.uniform(0.5)).settle("any")
    ledger.recover()
    ledger.verify_chain()


def test_a_connection_that_is_lost_while_reading(postgres_url: Callable[[], str]) -> None:
    """Nothing is compared with what was read at another instant: it is read again, or the reader is told."""
    url = postgres_url()
    ledger = make(url)
    ledger.reserve(CLAIM).settle("small")
    store: Any = ledger._store
    real, losses = store._compare, [1]

    def lose(*given: Any) -> None:
        ledger.reserve(CLAIM).settle("small")  # what was read so far is of before
        if losses and losses.pop():
            execute(url, f"SELECT pg_terminate_backend({store._engine._shown[-1]().info.backend_pid})")
        real(*given)

    store._compare = lose
    assert ledger.verify_chain().sequence == 5  # the second time it was read
    losses[:] = [1] * durable.TRIES
    with pytest.raises(xp.LedgerUnavailable, match="lost while the ledger was being read"):
        ledger.verify_chain()
    del store._compare
    ledger.verify_chain()
    entries = ledger.entries()
    first = next(entries)
    execute(url, f"SELECT pg_terminate_backend({store._engine._reader.info.backend_pid})")
    assert first.state == "settled"
    assert "remaining" in ledger.statement()
    execute(url, f"SELECT pg_terminate_backend({store._engine._reader.info.backend_pid})")
    assert len(list(ledger.entries())) == ledger.verify_chain().sequence // 2


# ---- hearts


def test_a_process_that_cannot_look_does_not_think_others_dead(new_url: Callable[[], str]) -> None:
    """No file descriptor is left to read about other processes, or about this one."""
    url = new_url()
    ledger = make(url)
    spending, other = ledger.reserve(CLAIM), Ledger.load(url, "study")
    assert other.remaining
    assert other.recover() == 0
    told, opened = liveness.identity(os.getpid()), []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 9, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        assert not liveness.is_gone(told)
        assert other.recover() == 0
    finally:
        for file in opened:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert spending.settle("small").charged == CLAIM.cost_of("small")
    assert liveness.is_gone(canonical({"machine": liveness._machine(), "pid": 2**22 + 1, "started": "1"}))
    assert not liveness.is_gone(canonical({"machine": liveness._machine(), "pid": 10**30, "started": "1"}))
    assert liveness.is_gone(canonical({"machine": liveness._machine(), "pid": os.getpid(), "started": "1"}))


def test_a_heart_beats_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    beaten = threading.Event()

    class Store:
        def beat(self) -> None:
            beaten.set()
            raise RuntimeError("not reached")

        def tend(self) -> None:
            pass

    monkeypatch.setattr(liveness, "BEAT", 0.01)
    heart, store = liveness.Heart(), Store()
    heart.watch(store)
    heart.watch(store)
    assert beaten.wait(5)
    monkeypatch.setattr(liveness, "BEAT", 600)


def test_all_leases_are_renewed_before_anything_else_is_done(caplog: pytest.LogCaptureFixture) -> None:
    """What takes long in one ledger does not cost another its lease."""
    done: list[str] = []

    class Store:
        def beat(self) -> None:
            done.append("beat")

        def tend(self) -> None:
            done.append("tend")
            raise RuntimeError("not reached")

    class Away(Store):
        def beat(self) -> None:
            raise RuntimeError("not reached")

    heart, stores = liveness.Heart(), [Store(), Away(), Store()]
    heart._stores.update(stores)
    heart.beat()
    assert done == ["beat", "beat", "tend", "tend"]
    assert [record.getMessage().rpartition(" to ")[2] for record in caplog.records] == [
        "renew its lease: not reached",
        *["look after what was left behind: not reached"] * 2,
    ]


def test_a_heart_beats_while_a_ledger_is_verified(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    ledger.reserve(CLAIM)
    store: Any = ledger._store
    real, reading, beaten = store._compare, threading.Event(), threading.Event()

    def compare(*given: Any) -> None:
        reading.set()
        assert beaten.wait(10)
        real(*given)

    store._compare = compare
    verifier = threading.Thread(target=ledger.verify_chain)
    heart = liveness.Heart()
    heart._stores.add(store)
    beat = threading.Thread(target=lambda: (heart.beat(), ledger.remaining, beaten.set()))
    verifier.start()
    assert reading.wait(10)
    beat.start()
    in_time = beaten.wait(5)
    beaten.set()
    verifier.join()
    beat.join()
    assert in_time


def test_where_nobody_tells_about_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: Any, *rest: Any) -> str:
        raise OSError

    liveness._machine.cache_clear()
    monkeypatch.setattr(Path, "read_text", absent)
    with contextlib.suppress(OSError):
        assert liveness._machine()
    told = canonical({"machine": liveness._machine(), "pid": 1, "started": None})
    assert not liveness.is_gone(told)
    monkeypatch.undo()
    liveness._machine.cache_clear()


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    other, junk = tmp_path / "other.db", tmp_path / "junk.db"
    apsw.Connection(str(other)).execute("CREATE TABLE theirs (x)").fetchall()
    junk.write_bytes(b"no database " * 100)
    before = other.read_bytes()
    with pytest.raises(xp.InvalidValue, match="holds no ledgers"):
        xp.Ledger.load(f"sqlite:///{other}", "patients")
    assert other.read_bytes() == before
    with pytest.raises(xp.LedgerCorrupt, match="no SQLite database"):
        xp.ledgers(f"sqlite:///{junk}")
