"""Accounts, neighbours, quotes and printing in every store."""

import copy
from collections.abc import Callable
from typing import Any, get_args

import pytest

import expost as xp
from books import GUARANTEE, NewLedger, settle
from expost import Cost, Guarantee, Ledger
from expost.ledger.entry import State


def test_a_charge_counts_at_every_level_or_at_none(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, name="study")
    team = ledger.create_account("team", epsilon=0.75)
    alice = team.create_account("alice", epsilon=2)
    settle(alice, Guarantee.uniform(0.5), "any")
    assert [level.spent for level in (ledger, team, alice)] == [Cost(0.5)] * 3
    assert [level.remaining for level in (ledger, team, alice)] == [Cost(0.5), Cost(0.25), Cost(0.25)]
    with pytest.raises(xp.BudgetExceeded) as refused:
        alice.reserve(Guarantee.uniform(0.3))
    assert refused.value.ledger == "study/team"
    assert refused.value.affordable_epsilon == 0.25
    assert [level.spent for level in (ledger, team, alice)] == [Cost(0.5)] * 3
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.create_account("bob", epsilon=9).reserve(Guarantee.uniform(0.6))
    assert refused.value.ledger == "study"


def test_an_over_ask_names_the_level_that_is_short_of_what(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon="0.8684946", name="study")
    alice = ledger.create_account("alice", epsilon=0.1, delta=1e-5)
    with pytest.raises(xp.BudgetExceeded) as refused:
        alice.reserve(Guarantee.uniform(0.5, 1e-6))
    assert (refused.value.ledger, refused.value.short) == ("study/alice", ("epsilon",))
    assert refused.value.affordable == Cost(0.1)
    with pytest.raises(xp.BudgetExceeded, match=r"largest affordable ε is 0\.8684946;"):
        ledger.reserve(Guarantee.uniform(1))


def test_a_statement_knows_the_limits_above(new_ledger: NewLedger) -> None:
    account = new_ledger(epsilon=1, name="study").create_account("rich", epsilon=5)
    assert account.statement().endswith("limit ε 5 · spent ε 0 · reserved ε 0 · remaining ε 1")


def test_accounts_are_found_by_name(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, unit="person")
    ledger.create_account("alice", epsilon=0.5).create_account("thesis", epsilon=0.1)
    assert ledger.account("alice").account("thesis").limit == Cost(0.1)
    assert [account.name for account in ledger.accounts] == ["ledger/alice"]
    assert ledger.accounts[0].unit == "person"
    with pytest.raises(xp.errors.UnknownEntry, match="has no account 'bob' \\(it has 'alice'\\)"):
        ledger.account("bob")
    with pytest.raises(xp.errors.UnknownEntry, match="it has none"):
        ledger.account("alice").account("thesis").account("x")
    with pytest.raises(xp.errors.AlreadyExists, match="exists already"):
        ledger.create_account("alice", epsilon=1)
    assert ledger.create_account("carol", Cost(0.25, delta=1e-9)).limit == Cost(0.25, delta=1e-9)
    with pytest.raises(xp.InvalidValue, match="not both"):
        ledger.create_account("dora", Cost(0.25), delta=0.1)
    with pytest.raises(xp.InvalidValue, match="an account's name"):
        ledger.create_account("a/b", epsilon=1)


def test_entries_of_an_account(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    alice, bob = ledger.create_account("alice", epsilon=1), ledger.create_account("bob", epsilon=1)
    for account in (alice, bob, ledger):
        settle(account, Guarantee.uniform(0.1), "any")
    assert [entry.account for entry in ledger.entries()] == ["ledger/alice", "ledger/bob", "ledger"]
    assert [entry.id for entry in bob.entries()] == [2]


def test_the_first_relation_fixes_it() -> None:
    ledger = Ledger(epsilon=10)
    settle(ledger, Guarantee.uniform(1), "any")
    assert ledger.neighbours is None
    with pytest.raises(xp.BudgetExceeded):
        ledger.reserve(Guarantee.uniform(100, neighbours="add-remove"))
    assert ledger.neighbours is None  # a refusal changes nothing
    settle(ledger, Guarantee.uniform(1, neighbours="substitute"), "any")
    assert ledger.neighbours == "substitute"
    guarantee = Guarantee.uniform(1, neighbours="add-remove")
    with pytest.raises(xp.errors.NeighbourMismatch, match=r"guarantee\.under\('substitute'\)"):
        ledger.reserve(guarantee)
    settle(ledger, guarantee.under("substitute"), "any")
    assert ledger.spent == Cost(4)


def test_one_relation_in_one_ledger(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, neighbours="add-remove")
    with pytest.raises(xp.errors.NeighbourMismatch):
        ledger.reserve(Guarantee.uniform(1, neighbours="substitute"))
    settle(ledger, Guarantee.uniform(1, neighbours="add-remove"), "any")
    assert ledger.neighbours == "add-remove"


def test_a_quote_charges_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, delta=1e-6)
    quote = ledger.quote([xp.mechanisms.Coin(epsilon=1, sensitivity=1), GUARANTEE])
    assert (quote.worst, quote.best) == (Cost(1.75, delta="1e-6"), Cost(0.25, delta="1e-6"))
    assert quote.fits
    assert not ledger.quote([GUARANTEE, GUARANTEE]).fits
    assert ledger.quote([]).worst == Cost(0)
    assert list(ledger.entries()) == []
    assert ledger.quote(GUARANTEE) == ledger.quote([GUARANTEE])
    free = Guarantee.uniform(0)
    assert ledger.quote(free).fits
    ledger.close(by="me", reason="done")  # what costs nothing is not reserved either; no question always fits
    assert (ledger.quote(free).fits, ledger.quote([]).fits) == (False, True)


def test_a_ledger_is_never_copied(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger


def test_how_ledgers_look(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6, name="study")
    assert repr(ledger) == "<ledger 'study': ε 1, δ 1e-6 remaining of ε 1, δ 1e-6>"
    settle(ledger, GUARANTEE)
    ledger.reserve(Guarantee.uniform(0.25), label="a label that is much too long to be printed in a table cell")
    lines = ledger.statement().splitlines()
    assert lines[0].split() == ["#", "account", "what", "state", "came", "out", "reserved", "charged", "refunded"]
    assert "settled" in lines[2]
    assert "…" in lines[3]
    assert lines[-1] == "study: limit ε 1, δ 1e-6 · spent ε 0.25, δ 1e-6 · reserved ε 0.25 · remaining ε 0.5"


def test_entries_in_a_state(new_ledger: NewLedger) -> None:
    """Of a ledger and of an account, all of them or the last ones."""
    ledger = new_ledger(epsilon=100, delta="1e-3")
    alice = ledger.create_account("alice", epsilon=50, delta="1e-3")
    ends: list[Callable[[Any], object]] = [
        lambda one: one.settle("small"), lambda one: one.forfeit(), lambda one: one.void(), lambda one: None,
    ]  # fmt: skip
    for end in ends * 3:
        for account in (ledger, alice):
            end(account.reserve(GUARANTEE, begin=False))
    for account in (ledger, alice):
        whole = list(account.entries())
        for state in get_args(State):
            expected = [entry for entry in whole if entry.state == state]
            assert list(account.entries(state=state)) == expected
            assert list(account.entries(state=state, last=2)) == expected[-2:]
            assert len(expected) == (6 if account is ledger else 3)
    with pytest.raises(xp.InvalidValue, match="an entry's state is one of"):
        ledger.entries(state="gone")  # type: ignore[arg-type]
