"""Where durable ledgers are, and what they must be told."""

from __future__ import annotations

import pickle
import secrets
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expost as xp
from books import GUARANTEE, OWNER, execute, held, make
from clocks import Clock
from expost import Cost, Guarantee, Ledger
from expost.ledger import Settings, durable, texts
from expost.ledger.engine import wall
from expost.ledger.entry import Note
from toys import Fixed


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
    with pytest.raises(xp.errors.UnknownEntry, match=r"no ledger 'c' in the database \(it has 'a', 'b'\)"):
        Ledger.load(url, "c")
    first.close(**OWNER)
    assert (xp.ledgers(url)[0].closed, xp.ledgers(url)[0].remaining) == (True, Cost(0))


def test_what_a_lasting_ledger_must_say(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    with pytest.raises(TypeError):
        Ledger.create(url, "study", epsilon=1)  # type: ignore[call-arg]
    with pytest.raises(xp.InvalidValue, match="pass neighbours="):
        make(url, neighbours=None)
    with pytest.raises(xp.InvalidValue, match="SeededNoise"):
        make(url, noise=xp.SeededNoise(1))
    with pytest.raises(xp.InvalidValue, match="no '/'"):
        make(url, name="a/b")
    with pytest.raises(xp.InvalidValue, match="a unit must not contain"):
        make(url, unit="per\0son")
    with pytest.raises(xp.InvalidValue, match="there is no ledger file"):
        Ledger.load(url, "study")
    ledger = make(url, noise=xp.noise.SystemNoise())
    with pytest.raises(xp.InvalidValue, match="predictable"):
        Ledger.load(url, "study", noise=xp.SeededNoise(1))
    for wrong in ("sqlite://study.db", "sqlite:///", "sqlite:///:memory:", "mysql://x", "study.db", 7):
        with pytest.raises(xp.InvalidValue, match="needs an address such as"):
            Ledger.load(wrong, "study")
    for label in ("a\0b", "\ud800"):
        with pytest.raises(xp.InvalidValue, match="a label must"):
            ledger.reserve(GUARANTEE, label=label)
        with pytest.raises(xp.InvalidValue, match="an account's name has characters that are seen"):
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
    with pytest.raises(xp.InvalidValue, match="no key can be used for"):
        ledger.run(Fixed(GUARANTEE, object()), key="k")
    assert list(ledger.entries()) == []
    assert ledger.run(Fixed(GUARANTEE, None, part="small"), on=lambda: object()).part == "small"  # no key: not kept
    array = ledger.run(Fixed(GUARANTEE, None, part="small"), on=lambda: np.arange(3), key="array").value
    again = Ledger.load(*ledger._store.address or ("", "")).run(Fixed(GUARANTEE, None, part="small"), key="array").value
    assert np.array_equal(array, again)


def test_an_output_without_a_key_leaves_nothing(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    release = ledger.run(xp.mechanisms.Coin(epsilon=1, sensitivity=1, heads=1), on=3)
    told = [event.body for event in ledger.audit_trail()][-1]
    assert told["output"] is None
    assert ledger._store.output(release.entry.id) is None
    with pytest.raises(xp.errors.UnknownEntry):
        ledger._store.output(0)


def test_tuple_parts_come_back(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    guarantee = Guarantee({(0, ("a", 1)): 0.5, "x": 1})
    spending = ledger.reserve(guarantee)
    assert Ledger.load(*ledger._store.address or ("", "")).reservation(spending.id).settle((0, ("a", 1))).part == (
        0,
        ("a", 1),
    )
    assert next(ledger.entries()).part == (0, ("a", 1))
    assert next(ledger.entries()).guarantee == guarantee
    ledger.verify()


BAD: dict[str, Callable[[Ledger], Any]] = {
    "a long key": lambda ledger: ledger.reserve(GUARANTEE, key=secrets.token_hex(6000)),
    "a long label": lambda ledger: ledger.reserve(GUARANTEE, label="x" * 10_001),
    "half a character": lambda ledger: ledger.run(Fixed(GUARANTEE, 1, part="small"), label="odd \ud800"),
    "zero": lambda ledger: ledger.run(Fixed(GUARANTEE, 1, part="small"), label="odd \0"),
    "half a character under a key": lambda ledger: ledger.run(
        Fixed(GUARANTEE, 1, part="small"), key="k", label="\ud800"
    ),
    "a mechanism that prints too much": lambda ledger: ledger.run(Fixed(GUARANTEE, "x" * 10**6, part="small")),
    "a key that is no text": lambda ledger: ledger.run(Fixed(GUARANTEE, 1, part="small"), key="\ud800"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_no_database_can_keep_is_refused_before_it_is_asked_for(new_url: Callable[[], str], bad: str) -> None:
    """And whoever asks at the same time does not notice."""
    ledger = make(new_url())
    spending = ledger.reserve(GUARANTEE)
    with held(ledger) as answers:
        answers.ask(lambda: BAD[bad](ledger))
        answers.ask(lambda: spending.settle("small"))
    assert isinstance(answers[0], xp.InvalidValue)
    assert answers[1].charged == GUARANTEE.cost_of("small")
    assert ledger.reserved == Cost(0)
    ledger.create_account("x" * 400, epsilon=1)
    with pytest.raises(xp.InvalidValue, match="at most 500 characters"):
        ledger.account("x" * 400).create_account("y" * 100, epsilon=1)
    with pytest.raises(xp.InvalidValue, match="at most 500 characters"):
        ledger.reservation("x" * 501)


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
    with pytest.raises((xp.InvalidValue, xp.errors.LedgerUnavailable)) as refused:
        Ledger.load(url, "study", settings=Settings(patience=0.1))
    told = "".join(traceback.format_exception(refused.value))
    shown = told.replace(url, "")  # the test's own line
    assert "secret" not in shown.replace("test_errors", "")
    assert "sec%ret" not in shown
    assert "secret" not in repr(durable.Address(url, "study"))


def test_a_pickled_ledger_is_opened_as_it_was(new_url: Callable[[], str]) -> None:
    """Found: a ledger for reading only could spend after pickling, and its settings were forgotten."""
    url, settings = new_url(), Settings(patience=7, beat=3600)
    left = make(url, settings=settings).reserve(GUARANTEE)
    ledger: Any = Ledger.load(url, "study", settings=settings)
    execute(url, """UPDATE expost_owner SET identity = replace(identity, '"started":"', '"started":"1')""")
    again: Any = pickle.loads(pickle.dumps(ledger))
    assert again._store.manner == ledger._store.manner == (settings, False)
    reader = pickle.loads(pickle.dumps(Ledger.load(url, "study", read_only=True)))
    with pytest.raises(xp.InvalidValue, match="opened read-only"):
        reader.reserve(GUARANTEE)
    assert left.entry.state == "reserved"  # nothing was forfeited by unpickling
    assert Ledger.load(url, "study", settings=Settings(patience=8)).reserved == Cost(0)


def test_without_recovery_balances_are_checked_all_the_same(new_url: Callable[[], str]) -> None:
    """Found: what was reserved, and lowered by hand, could be reserved once more."""
    url = new_url()
    make(url).reserve(GUARANTEE)
    execute(url, "UPDATE expost_account SET reserved_epsilon = 0, reserved_delta = 0")
    with pytest.raises(xp.errors.LedgerCorrupt, match="changed by hand"):
        Ledger.load(url, "study", recover=False, settings=Settings(patience=9)).reserve(GUARANTEE)


def test_a_ledger_that_was_idle_for_two_years(sqlite_url: Callable[[], str]) -> None:
    """Its owner confirms the clock, and goes on."""
    url, year = sqlite_url(), 366 * 86400 * 10**6
    make(url, settings=Settings(clock=lambda: wall() - 2 * year))
    ledger = Ledger.load(url, "study")
    with pytest.raises(xp.errors.LedgerUnavailable, match="more than a year after the last line"):
        ledger.raise_limit(epsilon=6, **OWNER)
    ledger.set_clock(**OWNER)
    ledger.raise_limit(epsilon=6, **OWNER)
    ledger.reserve(GUARANTEE).settle("small")
    ledger.close(**OWNER)
    ledger.verify()


def test_a_ledger_that_was_idle_can_be_closed(new_url: Callable[[], str]) -> None:
    """Found: somebody had to confirm the clock first."""
    clock = Clock()
    ledger = make(new_url(), settings=clock.settings())
    last = next(ledger.audit_trail()).at
    clock.set_on(ledger)(clock.at + 2 * 366 * 86400 * 10**6)
    ledger.close(**OWNER)
    assert ledger.closed
    assert [event.at for event in ledger.audit_trail()] == [last, last]
    ledger.verify()


def test_a_ledger_in_memory_has_a_clock_to_confirm() -> None:
    ledger = Ledger(epsilon=1)
    ledger.set_clock(**OWNER)
    assert [event.kind for event in ledger.audit_trail()] == ["create", "clock"]
    ledger.verify()


def test_what_is_not_there_is_named(new_url: Callable[[], str]) -> None:
    """By the rules, too, for whoever asks the store itself."""
    ledger: Any = make(new_url())
    store = ledger._store
    with pytest.raises(xp.errors.UnknownEntry, match="no entry 99 in ledger 'study'"):
        store.forfeit(99)
    with pytest.raises(xp.errors.UnknownEntry, match="'study' has no account 'none'"):
        store.close(("study", "none"), Note("me", "because"))
    request = ledger._request("reserve", GUARANTEE, GUARANTEE, None, None)._replace(account=("study", "none"))
    with pytest.raises(xp.errors.UnknownEntry, match="'study' has no account 'none'"):
        store.reserve(request, begin=True)
    with pytest.raises(xp.errors.UnknownEntry, match="entry"):
        store.settle(99, "small", None)
    assert ledger.verify().sequence == 1


def test_a_database_without_ledgers(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    assert xp.ledgers(url) == ()
    with pytest.raises(xp.InvalidValue, match="has no ledgers"):
        Ledger.load(url, "study", read_only=True)


@pytest.mark.parametrize("identity", ["", "[]", "{}", "1", "{"])
def test_a_process_that_cannot_be_described_is_unknown(identity: str) -> None:
    assert texts.described_owner(identity) == "unknown"
    assert texts.described_owner(None) == "lease"
