"""The tables: one migration each, and rules of their own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import apsw
import psycopg
import pytest

import expost as xp
from books import GUARANTEE, beat, disarm, execute, held, make, steps_of
from expost import Guarantee, Ledger
from expost.accounting.amounts import Amounts
from expost.ledger import Settings, schema
from expost.ledger.trail import link
from toys import Fixed

pytestmark = pytest.mark.slow


def test_tables_that_are_not_ours_are_refused(new_url: Callable[[], str]) -> None:
    url = new_url()
    make(url)
    execute(url, f"INSERT INTO {schema.MARK} (name, digest) VALUES ('9999_future', 'x')")
    with pytest.raises(xp.InvalidValue, match="a newer expost"):
        Ledger.load(url, "study")
    other = new_url()
    make(other)
    execute(other, f"UPDATE {schema.MARK} SET digest = 'x' WHERE name = '0001_books'")
    for read_only in (False, True):
        with pytest.raises(xp.InvalidValue, match=r"'0001_books' differs from its own.*begin a new ledger"):
            Ledger.load(other, "study", read_only=read_only)


def test_migrations_are_named_and_ordered() -> None:
    for backend in ("sqlite", "postgres"):
        names = [name for name, _ in schema.migrations(backend)]
        assert names == sorted(names)
        assert names[0] == "0001_books"


STRANGE = {"zero": Guarantee({"a\0b": 0.25, "c": 0.5}), "half": Guarantee({"\ud800": 0.25, "c": 0.5})}


@pytest.mark.parametrize("part", STRANGE)
def test_parts_that_a_database_does_not_take_for_text(new_url: Callable[[], str], part: str) -> None:
    url, guarantee = new_url(), STRANGE[part]
    key = '\U0001f600"key":"x","label":\\' * 18  # long, and close to how it is written down
    make(url).reserve(guarantee, key=key).settle("c")
    ledger = Ledger.load(url, "study")
    ledger.reserve(guarantee, key=key + "y").settle("c")
    with pytest.raises(xp.errors.AlreadyReserved):
        ledger.reserve(guarantee, key=key)
    other = make(url, name="other")
    other.reserve(guarantee, key=key).settle("c")
    for entry in (1, 2):
        disarm(url, "expost_entry")
        execute(url, f"DELETE FROM expost_entry WHERE ledger = 1 AND number = {entry}")
        with pytest.raises(xp.errors.LedgerCorrupt, match="the tables rejected a step"):
            ledger.reserve(guarantee, key=key + "y" * (entry - 1))
    other.verify()


def charged(epsilon: Any = 0, delta: Any = "reserved_delta") -> str:
    """Charges of an entry, and nothing on other meters."""
    return ", ".join(f"charged_{count} = {units}" for count, units in Amounts(epsilon, delta)._asdict().items())


OVERSPENDING = [
    "UPDATE expost_account SET charged_epsilon = limit_epsilon + 1",
    "UPDATE expost_account SET reserved_epsilon = limit_epsilon - charged_epsilon + 1",
    "UPDATE expost_account SET reserved_delta = limit_delta - charged_delta + 1",
    "UPDATE expost_account SET charged_epsilon = 0",
    "UPDATE expost_account SET limit_epsilon = limit_epsilon - 1",
    "UPDATE expost_account SET reserved_epsilon = -1",
    "DELETE FROM expost_account",
    f"UPDATE expost_entry SET state = 'voided', {charged(0, 0)} WHERE number = 2",
    "UPDATE expost_entry SET reserved_epsilon = 1 WHERE number = 2",
    "UPDATE expost_entry SET charged_epsilon = 0 WHERE number = 1",
    f"UPDATE expost_entry SET state = 'forfeited', {charged()} WHERE number = 2",
    f"UPDATE expost_entry SET state = 'settled', part = '1', {charged('reserved_epsilon + 1')} WHERE number = 2",
    f"UPDATE expost_entry SET state = 'settled', part = '1', {charged(delta=0)} WHERE number = 2",
    "UPDATE expost_entry SET state = 'settled', part = '1', charged_epsilon = 0, charged_delta = reserved_delta "
    "WHERE number = 2",
    "UPDATE expost_entry SET begun = 0 WHERE number = 2",
    "DELETE FROM expost_entry",
    "UPDATE expost_event SET line = '{}'",
    "DELETE FROM expost_event",
    "UPDATE expost_guarantee SET json = '{}'",
    "DELETE FROM expost_guarantee",
    "UPDATE expost_account SET line = 1 WHERE parent IS NULL",
    "DELETE FROM expost_ledger",
]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_no_hand_typed_update_overspends(backend: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(f"{backend}_url")()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    ledger.reserve(GUARANTEE)
    head = ledger.verify()
    for statement in OVERSPENDING:
        with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError)):
            execute(url, statement)
    assert ledger.verify() == head


REPLACING = {
    "expost_ledger": "SELECT id, name, neighbours, unit, accounting FROM expost_ledger",
    "expost_account (id, ledger, parent, path, limit_epsilon, limit_delta)": (
        "SELECT id, ledger, parent, path, limit_epsilon, limit_delta FROM expost_account"
    ),
    "expost_account (ledger, parent, path, limit_epsilon, limit_delta)": (
        "SELECT ledger, parent, path, limit_epsilon, limit_delta FROM expost_account"
    ),
    "expost_guarantee": "SELECT ledger, digest, '{}' FROM expost_guarantee",
    "expost_entry (ledger, number, account, operation, subject, fingerprint, guarantee, "
    "reserved_epsilon, reserved_delta, owner, begun, reserved_at)": (
        "SELECT ledger, number, account, operation, subject, fingerprint, guarantee, 0, 0, owner, 0, 0 "
        "FROM expost_entry"
    ),
    "expost_entry (ledger, number, account, operation, subject, fingerprint, guarantee, "
    "reserved_epsilon, reserved_delta, owner, begun, reserved_at, key)": (
        "SELECT ledger, 9, account, operation, subject, fingerprint, guarantee, 0, 0, owner, 0, 0, key "
        "FROM expost_entry WHERE key = 'k'"
    ),
    "expost_event (id, line, hash)": "SELECT id, line || ' ', hash FROM expost_event",
    "expost_event (line, hash)": "SELECT line, hash FROM expost_event WHERE sequence = 2",  # its key is unique
}


@pytest.mark.parametrize("table", REPLACING)
def test_nothing_is_replaced_in_sqlite(sqlite_url: Callable[[], str], table: str) -> None:
    url = sqlite_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE, key="k").settle("small")
    ledger.reserve(GUARANTEE)
    with pytest.raises(apsw.ConstraintError, match="expost: "):
        execute(url, f"INSERT OR REPLACE INTO {table} {REPLACING[table]}")
    ledger.verify()


@pytest.mark.parametrize("place", ["1 << 40", "(1 << 40) - 1", "-1", "NULL"])
def test_lines_have_a_ledger_and_a_number_in_sqlite(sqlite_url: Callable[[], str], place: str) -> None:
    """A line 0, or a line of no ledger, would be read by nobody."""
    url = sqlite_url()
    make(url)
    with pytest.raises(apsw.ConstraintError):
        execute(url, f"INSERT INTO expost_event (id, line, hash) SELECT {place}, line, hash FROM expost_event")


def test_a_key_whose_entry_was_removed_is_not_sampled_again(new_url: Callable[[], str]) -> None:
    """It is recorded in the audit trail: nobody has to verify that first."""
    url = new_url()
    ledger, told, sampled = make(url), Fixed(GUARANTEE, None, part="small"), list[int]()
    ledger.run(told, on=lambda: 7, key='k "quoted" \u00e9')
    ledger.run(told, on=lambda: 7, key="another")
    disarm(url, "expost_entry")
    execute(url, "DELETE FROM expost_entry WHERE number = 1")
    for party in (ledger, Ledger.load(url, "study")):
        with pytest.raises(xp.errors.LedgerCorrupt, match="the tables rejected a step"):
            party.run(told, on=lambda: sampled.append(1), key='k "quoted" \u00e9')
        assert party.run(told, key="another").value == 7
        assert party.run(told, on=lambda: 8, key=f"new {id(party)}").value == 8
    assert not sampled
    with pytest.raises(xp.errors.LedgerCorrupt, match="entry 1 is in the audit trail, but was removed"):
        ledger.verify()


@pytest.mark.parametrize("step", ["settle", "forfeit", "void", "begin"])
def test_an_entry_that_was_removed_does_not_end(new_url: Callable[[], str], step: str) -> None:
    """What is not there is not acknowledged."""
    url = new_url()
    ledger = make(url)
    store: Any = ledger._store
    first, second = (ledger.reserve(GUARANTEE, begin=False).id for _ in range(2))
    lines = len(list(ledger.audit_trail()))
    disarm(url, "expost_entry")
    execute(url, f"DELETE FROM expost_entry WHERE number = {first}")
    rest = ("small", None) if step == "settle" else ()
    with pytest.raises(xp.errors.LedgerCorrupt, match=r"expost: entry 1 was removed; see verify\(\)"):
        getattr(store, step)(first, *rest)
    work = partial(store.void, second), partial(getattr(store, step), first, *rest)
    with pytest.raises(xp.errors.LedgerCorrupt, match=r"expost: entry 1 was removed; see verify\(\)"):
        store._engine.apply(store._ledger, steps_of(store, *work))
    assert len(list(ledger.audit_trail())) == lines
    store.void(second)
    with pytest.raises(xp.errors.LedgerCorrupt, match="entry 1 was removed"):
        store.forfeit(first)
    beat(ledger)  # tries again in vain, and looks
    with pytest.raises(xp.errors.LedgerCorrupt, match="not the sum of its open entries"):
        ledger.reserve(GUARANTEE)


OWN_RULES = {
    "sqlite": "CREATE TRIGGER ours BEFORE INSERT ON expost_entry WHEN NEW.label = 'bad' "
    "BEGIN SELECT RAISE(ABORT, 'broke \"ours\"'); END",
    "postgresql": "ALTER TABLE expost_entry ADD CONSTRAINT ours CHECK (label <> 'bad')",
}


def test_a_rule_of_the_custodians_own_is_named_and_harms_nobody_else(new_url: Callable[[], str]) -> None:
    """One step of a batch breaks it; the others are committed all the same."""
    url = new_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    execute(url, OWN_RULES[url.partition(":")[0]])
    with held(ledger) as answers:
        for label in ("bad", "good", "bad"):
            answers.ask(partial(ledger.reserve, GUARANTEE, label=label))
    assert [type(answer) for answer in answers] == [
        xp.errors.LedgerCorrupt,
        xp.ledger.Reservation,
        xp.errors.LedgerCorrupt,
    ]
    with pytest.raises(xp.errors.LedgerCorrupt, match=r'the tables rejected a step that the rules allow.*"ours"'):
        ledger.reserve(GUARANTEE, label="bad")
    assert answers[1].settle("small").id == 2
    ledger.verify()


def test_a_ledger_is_not_created_again(new_url: Callable[[], str]) -> None:
    """A line with a right hash that starts over, and balances to match: found also by whoever noted the head."""
    url = new_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("large")
    head, event = ledger.verify(), next(ledger.audit_trail())
    line = event.line.replace('"sequence":1,', f'"sequence":{head.sequence + 1},')
    digest = link(head.hash, line)
    disarm(url, "expost_account")
    new_line = ledger._store._engine.new_line.replace("?", "{}")  # type: ignore[attr-defined]
    execute(
        url,
        new_line.format(1, head.sequence + 1, f"'{line}'", f"'{digest}'"),
        f"UPDATE expost_account SET line = line + 1, head = '{digest}' WHERE parent IS NULL",
        f"UPDATE expost_account SET charged_epsilon = 0, charged_delta = 0, line = {head.sequence + 1}",
    )
    for known in (None, head):
        with pytest.raises(xp.errors.LedgerCorrupt, match="created once"):
            ledger.verify(known)
    with pytest.raises(xp.errors.LedgerCorrupt):
        ledger.verify(head, since=True)


def test_a_part_that_was_not_paid_for_is_found(new_url: Callable[[], str]) -> None:
    """The line, its hash, the entry and the balance agree on what the smaller part costs."""
    url = new_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("large")
    *_, before, last = ledger.audit_trail()
    large, small = GUARANTEE.cost_of("large").epsilon_units, GUARANTEE.cost_of("small").epsilon_units
    line = last.line.replace(f"[{large},", f"[{small},")
    assert line.count(str(small)) == 2
    digest = link(before.hash, line)
    for table in ("expost_event", "expost_entry", "expost_account"):
        disarm(url, table)
    execute(
        url,
        f"UPDATE expost_event SET line = '{line}', hash = '{digest}' WHERE sequence = 3",
        f"UPDATE expost_account SET head = '{digest}' WHERE parent IS NULL",
        f"UPDATE expost_entry SET charged_epsilon = {small}",
        f"UPDATE expost_account SET charged_epsilon = {small}",
    )
    with pytest.raises(
        xp.errors.LedgerCorrupt, match=r"line 3 .*\(settle\) cannot have happened: the rules would have"
    ):
        ledger.verify()


# ---- tables that change


@pytest.fixture
def outdated(postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, Ledger]:
    """The address of a ledger whose tables lack what a newer expost needs, and the ledger as it was opened before."""
    url, known = postgres_url(), schema.migrations("postgres")
    ledger = make(url)
    newer = ("0002_later", "ALTER TABLE expost_entry ADD COLUMN later TEXT; ALTER TABLE expost_ledger ADD later TEXT")
    monkeypatch.setattr(schema, "migrations", lambda backend: [*known, newer])
    return url, ledger


@contextlib.contextmanager
def loading(url: str, turn: float) -> Iterator[list[Any]]:
    """Somebody else changes the tables, and waits to; afterwards the list holds the ledger, or the error."""
    got: list[Any] = []

    def load() -> None:
        try:
            got.append(Ledger.load(url, "study", settings=Settings(patience=15, deadline=20, turn=turn)))
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


def test_a_reader_that_takes_long_stops_no_writer(outdated: tuple[str, Ledger]) -> None:
    """Who waits to change the tables lets go of them again and again."""
    url, ledger = outdated
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM expost_entry")
        with pytest.raises(xp.errors.Busy, match=r"must be migrated.*nothing was changed: try again"):
            Ledger.load(url, "study", settings=Settings(patience=0.5, turn=0.3))
        with loading(url, 0.3) as got:
            ledger.reserve(GUARANTEE).settle("small")
            assert not got
            reader.rollback()
    got[0].reserve(GUARANTEE).settle("small")
    ledger.reserve(GUARANTEE).settle("small")
    assert got[0].verify() == ledger.verify()


def test_changing_tables_survives_a_deadlock(outdated: tuple[str, Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    url, _ = outdated
    later = "ALTER TABLE expost_ledger ADD later TEXT; ALTER TABLE expost_entry ADD COLUMN later TEXT"
    known = schema.migrations("postgres")[:1]
    monkeypatch.setattr(schema, "migrations", lambda backend: [*known, ("0002_later", later)])
    with psycopg.connect(url) as reader:
        reader.execute("SET deadlock_timeout = '10s'")  # the other one is the victim
        reader.execute("SELECT count(*) FROM expost_entry")
        with loading(url, 20) as got:
            reader.execute("SELECT count(*) FROM expost_ledger")
            assert not got
            reader.rollback()
    got[0].reserve(GUARANTEE).settle("small")
    got[0].verify()
