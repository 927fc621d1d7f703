"""Many entries are made and ended together, in every store, each as if it had come by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, NewLedger, make, steps_of
from expost import Cost, Guarantee, Ledger
from expost.ledger.entry import Note, Request
from expost.ledger.kept import Kept
from expost.ledger.operations import Forfeit, Settle, Void
from toys import Fixed

HALF = Guarantee({"none": 0, "half": "0.5"})


def request(ledger: Ledger, guarantee: Guarantee = HALF, key: str | None = None, operation: Any = "run") -> Request:
    return ledger._request(operation, Fixed(guarantee, None), guarantee, None, key)


def reserved(ledger: Ledger, count: int, *, begin: bool = True) -> list[int]:
    made = ledger._store.reserve_all([request(ledger, key=f"k{n}") for n in range(count)], begin=begin)
    return [entry.id for entry in made if isinstance(entry, xp.ledger.Entry)]


def test_each_is_reserved_that_fits(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    asked = [request(ledger), request(ledger, Guarantee.uniform(1), "large"), request(ledger), request(ledger)]
    one, large, two, late = ledger._store.reserve_all(asked, begin=True)
    assert isinstance(large, xp.BudgetExceeded)
    assert large.requested == Cost(1)
    assert not large.requested <= large.remaining <= Cost("0.5")  # before those behind it, or after them
    assert isinstance(late, xp.BudgetExceeded)
    assert late.remaining == Cost(0)
    assert [(entry.id, entry.state, entry.begun) for entry in (one, two)] == [  # type: ignore[union-attr]
        (1, "reserved", True), (2, "reserved", True),
    ]  # fmt: skip
    assert (ledger.reserved, len(list(ledger.entries()))) == (Cost(1), 2)
    ledger.verify()


def test_of_two_requests_for_a_key_one_is_reserved(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2)
    made, again, other = ledger._store.reserve_all(
        [request(ledger, key="k"), request(ledger, key="k"), request(ledger, Guarantee.uniform(1), "k")], begin=True
    )
    assert isinstance(again, xp.errors.AlreadyReserved)
    assert again.entry == made
    assert isinstance(other, xp.errors.KeyConflict)
    assert (other.key, other.differs) == ("k", "mechanism")
    assert ledger.reserved == Cost("0.5")


def test_each_is_ended_in_its_own_way(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2)
    one, two, three, four = reserved(ledger, 4, begin=False)
    ended = ledger._store.end_all([Settle(three, "none", output=Kept("nothing")), Forfeit(one), Void(two)])
    assert [(entry.id, entry.state, entry.charged) for entry in ended] == [
        (three, "settled", Cost(0)), (one, "forfeited", Cost("0.5")), (two, "voided", Cost(0)),
    ]  # fmt: skip
    assert (ledger.output("k2"), ledger.spent, ledger.reserved) == ("nothing", Cost("0.5"), Cost("0.5"))
    assert ledger._store.find(four).state == "reserved"
    ledger.verify()


def test_one_that_cannot_be_ended_holds_up_no_other(new_ledger: NewLedger) -> None:
    """Found: in memory, those behind it stayed reserved."""
    ledger = new_ledger(epsilon=2)
    one, two, three, four = reserved(ledger, 4)
    ledger._store.forfeit(two)
    with pytest.raises(xp.errors.ReservationClosed) as refused:
        ledger._store.end_all([Settle(one, "half"), Settle(two, "none"), Void(three), Forfeit(four)])
    assert refused.value.entry.id == two  # the first of them
    assert [entry.state for entry in ledger.entries()] == ["settled", "forfeited", "reserved", "forfeited"]
    assert (ledger.spent, ledger.reserved) == (Cost("1.5"), Cost("0.5"))
    ledger.verify()


def test_an_unknown_part_or_entry_ends_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2)
    one, _ = reserved(ledger, 2)
    with pytest.raises(xp.errors.UnknownPart) as refused:
        ledger._store.end_all([Settle(one, "all")])
    assert refused.value.part == "all"
    with pytest.raises(xp.errors.UnknownEntry):
        ledger._store.end_all([Forfeit(99)])
    assert (ledger.spent, ledger.reserved) == (Cost(0), Cost(1))


def test_another_unit_or_relation_is_reserved_nowhere(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, unit="person", neighbours="add-remove")
    for options, error in (
        ({"unit": "house"}, xp.errors.UnitMismatch),
        ({"neighbours": "substitute"}, xp.errors.NeighbourMismatch),
    ):
        foreign = Guarantee({"none": 0, "half": "0.5"}, **options)  # type: ignore[arg-type]
        asked = Request("reserve", ("ledger",), foreign, foreign, None, None)
        with pytest.raises(error):
            raise ledger._store.reserve_all([asked], begin=True)[0]  # type: ignore[misc]
    assert list(ledger.entries()) == []


def test_governing_among_spending(new_url: Callable[[], str]) -> None:
    """Sent together, they happen in order: what came first counts for what follows."""
    ledger = make(new_url(), epsilon=1)
    store: Any = ledger._store
    steps = steps_of(
        store,
        lambda: ledger.reserve(Guarantee.uniform(2)),
        lambda: ledger.raise_limit(epsilon=3, by="me", reason="because"),
        lambda: ledger.reserve(Guarantee.uniform(2)),
        lambda: ledger.raise_limit(epsilon=2, by="me", reason="because"),
        lambda: store.close(("study",), Note("me", "because")),
        lambda: ledger.reserve(GUARANTEE),
    )
    done = store._engine.apply(store._ledger, steps)
    assert [type(outcome).__name__ for outcome in done] == [
        "BudgetExceeded", "NoneType", "Entry", "InvalidValue", "NoneType", "LedgerClosed",
    ]  # fmt: skip
    assert (ledger.limit.epsilon, ledger.reserved) == (3, Cost(2))
    ledger.verify()


def test_nothing_is_reserved_where_a_balance_was_changed(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    store: Any = ledger._store
    store._sound = False
    with pytest.raises(xp.errors.BalanceChanged):
        store.reserve_all([request(ledger)], begin=True)
    assert list(ledger.entries()) == []
