"""An entry is charged to a set of accounts, whatever makes the set: here a path, and blocks of data beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost import Cost, Guarantee
from expost.accounting.amounts import Amounts
from expost.accounting.capacities import RenyiAccounting
from expost.ledger import MemoryStore
from expost.ledger.entry import Accounts, Request, lineage
from expost.ledger.prices import prices_of

ROOT, ALICE, WEEKS = ("l",), ("l", "alice"), [("l", f"week {number}") for number in range(3)]
PRICES = Guarantee({"little": "0.25", "all": 1})
LIMIT = Cost(10, delta="1e-6")


class OverBlocks(Request):
    """A request whose footprint is every week."""

    @property
    def accounts(self) -> Accounts:
        return (*lineage(self.account), *WEEKS)


def made(limits: list[str], *, renyi: bool = False) -> tuple[MemoryStore, Request]:
    """Books with an account, and three weeks of these limits; and a request over all of them."""
    meters = RenyiAccounting().under(LIMIT) if renyi else None
    store = MemoryStore("l", LIMIT, None, meters=meters)
    store.create_account(ALICE, Cost(5, delta="1e-6"))
    for week, limit in zip(WEEKS, limits, strict=True):
        store.create_account(week, Cost(limit, delta="1e-6"))
    tariff = None if meters is None else prices_of(meters, "reserve", PRICES, PRICES, basic_alone=False)
    return store, OverBlocks("reserve", ALICE, PRICES, PRICES, None, None, tariff)


def charged(store: MemoryStore) -> list[tuple[Cost, Cost]]:
    """What is charged and reserved: the ledger's own, the account's, and each week's."""
    found = store.levels((ROOT, ALICE, *WEEKS))
    return [(level.charged.cost, level.reserved.cost) for level in found]


@pytest.mark.parametrize("renyi", [False, True])
def test_every_account_of_the_set_is_charged(renyi: bool) -> None:
    store, request = made(["1", "1", "1"], renyi=renyi)
    entry = store.reserve(request, begin=True)
    assert charged(store) == [(Cost(0), Cost(1))] * 5
    store.settle(entry.id, "little", None)
    assert charged(store) == [(Cost("0.25"), Cost(0))] * 5
    levels = store.levels(request.accounts)
    assert {level.charged for level in levels} == {request.price("little")}
    assert store.find(1).amounts == request.price("little")


def test_a_refusal_names_the_account_that_lacks_most_and_charges_none() -> None:
    store, request = made(["1", "0.5", "0.75"])
    before = store.levels((ROOT, ALICE, *WEEKS))
    with pytest.raises(xp.BudgetExceeded, match=r"'l/week 1' has ε 0\.5") as refused:
        store.reserve(request, begin=True)
    assert refused.value.remaining == Cost("0.5", delta="1e-6")
    assert (store.levels((ROOT, ALICE, *WEEKS)), store.count) == (before, 0)


def test_a_closed_account_of_the_set_closes_it() -> None:
    store, request = made(["1", "1", "1"])
    store.close(WEEKS[2], xp.ledger.entry.Note("me", "the week is over"))
    with pytest.raises(xp.errors.LedgerClosed, match="l/week 2"):
        store.reserve(request, begin=True)
    assert charged(store) == [(Cost(0), Cost(0))] * 5


@given(st.lists(st.integers(0, 6), min_size=3, max_size=3), st.lists(st.sampled_from(["little", "all"]), max_size=6))
def test_it_is_admitted_where_every_account_has_room(limits: list[int], parts: list[str]) -> None:
    store, request = made([str(limit / 4) for limit in limits])
    spent = Cost(0)
    for part in parts:
        fits = all(spent + PRICES.worst_case <= Cost(str(limit / 4)) for limit in [*limits, 20, 40])
        if not fits:
            with pytest.raises(xp.BudgetExceeded):
                store.reserve(request, begin=True)
            continue
        store.settle(store.reserve(request, begin=True).id, part, None)
        spent += PRICES.cost_of(part)
        assert [level.charged for level in store.levels(request.accounts)] == [Amounts.of(spent)] * 5
