"""A ledger against a ten-line model, through random reserve, settle, forfeit, void, accounts and threads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import expost as xp
from expost import Cost, Guarantee, Ledger, Reservation
from servers import Server, new_schema
from soak import SOAK
from toys import Fixed, Responses

LIMIT = Cost(2, delta="1e-5")
CLAIMS = [
    Guarantee({"low": "0.1", "high": "0.3"}),
    Guarantee({"low": "0", "high": "0.5"}, delta="2e-6"),
    Guarantee.from_subsets({"low": ("0.2", "1e-6"), "high": ("0.9", "1e-6")}),
]
WORKERS = [ThreadPoolExecutor(1) for _ in range(3)]


class Model:
    """What every account has charged and reserved; nothing more."""

    def __init__(self, limit: Cost) -> None:
        self.limits: dict[tuple[str, ...], Cost] = {("ledger",): limit}
        self.open: dict[int, tuple[tuple[str, ...], Guarantee]] = {}
        self.talks: dict[int, tuple[tuple[str, ...], Guarantee]] = {}
        self.charged: list[tuple[tuple[str, ...], Cost]] = []

    def used(self, path: tuple[str, ...]) -> Cost:
        held = [(who, claim.worst_case) for who, claim in [*self.open.values(), *self.talks.values()]]
        return sum((cost for who, cost in held + self.charged if who[: len(path)] == path), Cost(0))

    def fits(self, path: tuple[str, ...], worst: Cost) -> bool:
        return all(self.used(path[:k]) + worst <= self.limits[path[:k]] for k in range(1, len(path) + 1))


class LedgerMachine(RuleBasedStateMachine):
    """Each step runs on one of three threads; bursts run on all of them at once."""

    accounts: Bundle[Any] = Bundle("accounts")
    reservations: Bundle[Any] = Bundle("reservations")
    interactions: Bundle[Any] = Bundle("interactions")

    def make(self) -> Ledger:
        return Ledger(LIMIT.epsilon, LIMIT.delta)

    @initialize(target=accounts)
    def begin(self) -> Ledger:
        self.ledger = self.make()
        self.model = Model(LIMIT)
        self.kept: list[Any] = []
        return self.ledger

    def on_thread(self, worker: int, step: Callable[[], Any]) -> Any:
        return WORKERS[worker].submit(step).result()

    def ended(self, spending: Reservation, attempt: Callable[[], Any]) -> bool:
        """Whether it ended before; what is then attempted is refused."""
        if spending.id in self.model.open:
            return False
        with pytest.raises(xp.ReservationClosed):
            attempt()
        return True

    @rule(target=accounts, parent=accounts, epsilon=st.sampled_from(["0.4", "1", "3"]), worker=st.integers(0, 2))
    def create_account(self, parent: Ledger, epsilon: str, worker: int) -> Ledger:
        name = f"a{len(self.model.limits)}"
        account: Ledger = self.on_thread(worker, lambda: parent.create_account(name, epsilon=epsilon, delta="1e-4"))
        self.model.limits[(*path(parent), name)] = Cost(epsilon, delta="1e-4")
        return account

    @rule(
        target=reservations,
        account=accounts,
        claim=st.sampled_from(CLAIMS),
        begin=st.booleans(),
        worker=st.integers(0, 2),
    )
    def reserve(self, account: Ledger, claim: Guarantee, begin: bool, worker: int) -> Any:
        if not self.model.fits(path(account), claim.worst_case):
            with pytest.raises(xp.BudgetExceeded) as refused:
                self.on_thread(worker, lambda: account.reserve(claim, begin=begin))
            assert not claim.worst_case <= refused.value.remaining
            return None
        spending = self.on_thread(worker, lambda: account.reserve(claim, begin=begin))
        self.model.open[spending.id] = (path(account), claim)
        return spending

    @rule(spending=consumes(reservations), part=st.sampled_from(["low", "high"]), worker=st.integers(0, 2))
    def settle(self, spending: Reservation | None, part: str, worker: int) -> None:
        if spending is None or self.ended(spending, lambda: spending.settle(part)):
            return
        entry = self.on_thread(worker, lambda: self.ledger.reservation(spending.id).settle(part))
        who, claim = self.model.open.pop(spending.id)
        self.model.charged.append((who, claim.cost_of(part)))
        assert entry.charged == claim.cost_of(part)
        with pytest.raises(xp.ReservationClosed):
            spending.forfeit()

    @rule(spending=consumes(reservations), worker=st.integers(0, 2))
    def forfeit(self, spending: Reservation | None, worker: int) -> None:
        if spending is None or self.ended(spending, spending.forfeit):
            return
        self.on_thread(worker, spending.forfeit)
        who, claim = self.model.open.pop(spending.id)
        self.model.charged.append((who, claim.worst_case))

    @rule(spending=reservations, worker=st.integers(0, 2))
    def void(self, spending: Reservation | None, worker: int) -> None:
        if spending is None or self.ended(spending, spending.void):
            return
        if spending.entry.begun:
            with pytest.raises(xp.ReservationClosed):
                self.on_thread(worker, spending.void)
        else:
            self.on_thread(worker, spending.void)
            del self.model.open[spending.id]

    @rule(spending=reservations)
    def begin_sampling(self, spending: Reservation | None) -> None:
        if spending is not None and spending.id in self.model.open:
            spending.begin()

    @rule(account=accounts, claim=st.sampled_from(CLAIMS), key=st.sampled_from("xyz"))
    def keyed(self, account: Ledger, claim: Guarantee, key: str) -> None:
        """A key buys once; asking again, or for something else, changes nothing."""
        fits = self.model.fits(path(account), claim.worst_case)
        try:
            account.reserve(claim, key=key).settle("high")
        except xp.BudgetExceeded:
            assert not fits
        except (xp.AlreadyReserved, xp.KeyConflict):
            assert self.ledger.reservation(key).entry.state == "settled"
        else:
            assert fits
            self.model.charged.append((path(account), claim.cost_of("high")))

    @rule(account=accounts, claim=st.sampled_from(CLAIMS), part=st.sampled_from(["low", "high", "lost"]))
    def run(self, account: Ledger, claim: Guarantee, part: str) -> None:
        """A run charges its part; one whose part is unknown, its worst case."""
        fits = self.model.fits(path(account), claim.worst_case)
        try:
            account.run(Fixed(claim, None, part=part))
        except xp.BudgetExceeded:
            assert not fits
            return
        except xp.UnknownPart:
            assert part == "lost"
        assert fits
        cost = claim.worst_case if part == "lost" else claim.cost_of(part)
        self.model.charged.append((path(account), cost))

    @rule(target=interactions, account=accounts, worker=st.integers(0, 2))
    def open(self, account: Ledger, worker: int) -> Any:
        mechanism = Responses(Fraction(11, 10), 3)
        if not self.model.fits(path(account), mechanism.guarantee.worst_case):
            with pytest.raises(xp.BudgetExceeded):
                account.open(mechanism)
            return None
        ask = self.on_thread(worker, lambda: account.open(mechanism))
        self.model.talks[id(ask)] = (path(account), mechanism.guarantee)
        return ask

    @rule(ask=interactions, worker=st.integers(0, 2))
    def question(self, ask: Any, worker: int) -> None:
        if ask is None:
            return
        if ask.closed:
            with pytest.raises(xp.InteractionClosed):
                ask(True)
            return
        self.on_thread(worker, lambda: ask(lambda: True))
        if ask.closed:
            self.talk_ended(ask)

    @rule(ask=consumes(interactions), worker=st.integers(0, 2))
    def close(self, ask: Any, worker: int) -> None:
        if ask is not None and not ask.closed:
            self.on_thread(worker, ask.close)
            self.talk_ended(ask)

    def talk_ended(self, ask: Any) -> None:
        who, claim = self.model.talks.pop(id(ask))
        if ask.transcript:
            self.model.charged.append((who, claim.cost_of(len(ask.transcript))))
        self.kept.append(ask)  # so that no id is used twice

    @rule(account=accounts, claim=st.sampled_from(CLAIMS))
    def burst(self, account: Ledger, claim: Guarantee) -> None:
        """Six equal requests at once: exactly as many are admitted as fit."""

        def attempt() -> bool:
            try:
                account.reserve(claim).settle("high")
            except xp.BudgetExceeded:
                return False
            return True

        admitted = sum(future.result() for future in [WORKERS[i % 3].submit(attempt) for i in range(6)])
        for _ in range(admitted):
            assert self.model.fits(path(account), claim.worst_case)
            self.model.charged.append((path(account), claim.cost_of("high")))
        high_is_worst = claim.cost_of("high") == claim.worst_case
        if admitted < 6 and high_is_worst:
            assert not self.model.fits(path(account), claim.worst_case)

    @rule(account=accounts, more=st.sampled_from(["0.1", "1"]))
    def raise_limit(self, account: Ledger, more: str) -> None:
        """The owner allows more."""
        limit = self.model.limits[path(account)] + Cost(more)
        account.raise_limit(limit.exact_epsilon, by="the owner", reason="more")
        self.model.limits[path(account)] = limit

    def teardown(self) -> None:
        """In the end the audit trail adds up to what the ledger says."""
        if hasattr(self, "ledger"):
            self.ledger.verify()

    @invariant()
    def agrees_with_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        for where in self.model.limits:
            account: Ledger = self.ledger
            for name in where[1:]:
                account = account.account(name)
            assert account.spent + account.reserved == self.model.used(where)
            assert self.model.used(where) <= account.limit
        entries = list(self.ledger.entries())
        assert sum((e.charged for e in entries if e.charged is not None), Cost(0)) == self.ledger.spent
        assert sum((e.reserved for e in entries if e.state == "reserved"), Cost(0)) == self.ledger.reserved


def path(ledger: Ledger) -> tuple[str, ...]:
    return tuple(ledger.name.split("/"))


TestMemoryLedger = LedgerMachine.TestCase
TestMemoryLedger.settings = settings(max_examples=500 if SOAK else 50, stateful_step_count=40)


class SqliteMachine(LedgerMachine):
    """The same on a file."""

    def make(self) -> Ledger:
        self.folder = tempfile.TemporaryDirectory()
        return durable(f"sqlite:///{self.folder.name}/books.db")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


class PostgresMachine(LedgerMachine):
    """The same on a server."""

    def make(self) -> Ledger:
        return durable(new_schema(server()))


@cache
def server() -> Server:
    return Server()


def durable(url: str) -> Ledger:
    return Ledger.create(url, "ledger", LIMIT.epsilon, LIMIT.delta, neighbours="add-remove", unit="person")


TestSqliteLedger = SqliteMachine.TestCase
TestSqliteLedger.settings = settings(max_examples=50 if SOAK else 12, stateful_step_count=30)
TestPostgresLedger = PostgresMachine.TestCase
TestPostgresLedger.settings = settings(max_examples=25 if SOAK else 6, stateful_step_count=25)
