"""Reservations that end elsewhere, in another process, or in the middle of a change: money is neither lost nor made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, OWNER, make
from expost import Cost, Guarantee, Ledger
from expost.forks import Process
from expost.ledger import MemoryStore, Settings
from expost.ledger.entry import Request
from expost.ledger.reservation import MechanismReservation, spend
from toys import Fixed

HALF = Guarantee({"none": 0, "half": "0.5"})
ELSEWHERE = Process(1, object())
"""Another process than this."""


class Struck(MemoryStore):
    """Interrupted, once, before the change that was just written down is complete."""

    strike = False

    def _complete(self) -> None:
        if self.strike:
            self.strike = False
            raise KeyboardInterrupt
        super()._complete()


def struck(work: Callable[[Struck, Request], object]) -> Struck:
    """A store of 1 where this was interrupted, after it had reserved a half."""
    store = Struck("ledger", Cost(1), None)
    request = Request("reserve", ("ledger",), HALF, HALF, None, None)
    store.reserve(request, begin=True)
    store.strike = True
    with pytest.raises(KeyboardInterrupt):
        work(store, request)
    return store


def test_a_reservation_that_was_interrupted_counts_for_whoever_reads() -> None:
    store = struck(lambda store, request: store.reserve(request, begin=True))
    assert [balance.reserved.cost for balance in store.balances(("ledger",))] == [Cost(1)]
    store.verify(None)


def test_a_reservation_that_was_interrupted_counts_for_the_next_one() -> None:
    store = struck(lambda store, request: store.reserve(request, begin=True))
    with pytest.raises(xp.BudgetExceeded) as refused:
        store.reserve(Request("reserve", ("ledger",), HALF, HALF, None, None), begin=True)
    assert refused.value.remaining == Cost(0)
    assert store.count == 2


def test_an_ending_that_was_interrupted_has_happened_once() -> None:
    store = struck(lambda store, request: store.settle(1, "half", None))
    with pytest.raises(xp.errors.ReservationClosed) as closed:
        store.settle(1, "none", None)
    assert (closed.value.entry.state, closed.value.entry.part) == ("settled", "half")
    assert [(each.charged.cost, each.reserved.cost) for each in store.balances(("ledger",))] == [(Cost("0.5"), Cost(0))]


def test_a_copy_in_another_process_is_read_and_not_spent() -> None:
    ledger = Ledger(epsilon=1)
    store: Any = ledger._store
    ledger.reserve(HALF)
    store._process = ELSEWHERE
    for work in (lambda: ledger.reserve(HALF), lambda: ledger.create_account("a", epsilon=1), lambda: store.forfeit(1)):
        with pytest.raises(xp.errors.LedgerUnavailable):
            work()
    assert (ledger.reserved, ledger.spent, ledger.accounts) == (Cost("0.5"), Cost(0), ())


def running(ledger: Ledger) -> tuple[MechanismReservation, Fixed]:
    mechanism = Fixed(HALF, "said", "none")
    return spend(ledger._store, ledger._request("run", mechanism, HALF, None, None), begin=False), mechanism


def test_another_process_publishes_nothing_for_a_reservation() -> None:
    """A forked copy would publish a second output for one charge."""
    ledger = Ledger(epsilon=1)
    spending, mechanism = running(ledger)
    spending._process = ELSEWHERE
    for work in (
        lambda: spending.publish(mechanism, "said"),
        lambda: spending.abandon(mechanism),
        lambda: spending.forfeit(),
    ):
        with pytest.raises(xp.InvalidValue, match="forked process"):
            work()
    error = RuntimeError("what happened there")
    assert spending.forfeit(error).state == "reserved"
    (note,) = error.__notes__
    assert "nothing was charged here" in note
    assert (ledger.reserved, ledger.spent) == (Cost("0.5"), Cost(0))


def test_what_was_ended_elsewhere_stays_as_it_ended() -> None:
    """An error that comes afterwards is raised as it is, and charges nothing more."""
    ledger = Ledger(epsilon=1)
    spending = ledger.reserve(HALF)
    ledger.reservation(spending.id).settle("none")
    error = RuntimeError("later")
    spending.forfeit(error)
    assert not hasattr(error, "__notes__")
    with pytest.raises(xp.errors.ReservationClosed):
        spending.forfeit()
    assert (ledger.spent, ledger.reserved, spending.entry.state) == (Cost(0), Cost(0), "settled")


def test_what_cannot_be_forfeited_now_says_that_it_will_be() -> None:
    ledger = Ledger(epsilon=1)
    spending = ledger.reserve(HALF)
    ledger._store._process = ELSEWHERE  # type: ignore[attr-defined]  # out of reach
    error = RuntimeError("while it sampled")
    spending.forfeit(error)
    (note,) = error.__notes__
    assert "will be charged its worst case" in note


def test_a_refused_reservation_that_fits_by_now_is_made(postgres_url: Callable[[], str]) -> None:
    """The limit was raised between the refusal and the look at why."""
    url = postgres_url()
    ledger, other = make(url), Ledger.load(url, "study", settings=Settings(patience=14))
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real, sent = engine._spend, list[Any]()

    def spend_and_raise(*given: Any) -> Any:
        sent.append(real(*given))
        if len(sent) == 1:
            other.raise_limit(epsilon=9, **OWNER)
        return sent[-1]

    engine._spend = spend_and_raise
    spending = ledger.reserve(Guarantee.uniform(7))
    assert "refused" in sent[0][0]
    assert (spending.id, ledger.reserved) == (1, Cost(7))
    ledger.verify()


def test_a_process_that_reserved_nothing_has_no_heartbeat(new_url: Callable[[], str]) -> None:
    ledger = make(new_url())
    store: Any = ledger._store
    store.beat()
    assert store._engine.rows("SELECT * FROM expost_owner") == []
    ledger.reserve(GUARANTEE)
    ((seen,),) = store._engine.rows("SELECT seen FROM expost_owner")
    store.beat()
    ((later,),) = store._engine.rows("SELECT seen FROM expost_owner")
    assert later >= seen
