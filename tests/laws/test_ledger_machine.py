"""A ledger against a ten-line model, through random reserve, settle, forfeit, void, accounts and threads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.accounting.amounts import together
from expost.accounting.capacities import RenyiAccounting
from expost.accounting.tariff import tariff_of_guarantee
from expost.ledger import Reservation
from servers import Server, new_schema
from soak import SOAK
from toys import Fixed, Responses

pytestmark = pytest.mark.slow
LIMIT = Cost(2, delta="1e-5")
GUARANTEES = [
    Guarantee({"low": "0.1", "high": "0.3"}),
    Guarantee({"low": "0", "high": "0.5"}, delta="2e-6"),
    Guarantee.from_subsets({"low": ("0.2", "1e-6"), "high": ("0.9", "1e-6")}),
]
NOISE = xp.Gaussian(epsilon="0.4", delta="1e-6", sensitivity=1)
WORKERS = [ThreadPoolExecutor(1) for _ in range(3)]


Manner = Literal["run", "open", "reserve"]


class Model:
    """What every account has charged and reserved; nothing more."""

    def __init__(self, limit: Cost) -> None:
        self.limits: dict[tuple[str, ...], Cost] = {}
        self.open: dict[int, tuple[tuple[str, ...], Any]] = {}
        self.talks: dict[int, tuple[tuple[str, ...], Any]] = {}
        self.charged: list[tuple[tuple[str, ...], Any]] = []
        self.allow(("ledger",), limit)

    def allow(self, path: tuple[str, ...], limit: Cost) -> None:
        self.limits[path] = limit

    def cost(self, guarantee: Guarantee, part: Any = None, manner: Manner = "reserve") -> Any:
        """Of a part, or at worst."""
        return guarantee.worst_case if part is None else guarantee.cost_of(part)

    def noise(self, path: tuple[str, ...]) -> Any:
        """Of Gaussian noise."""
        return NOISE.guarantee.worst_case

    def used(self, path: tuple[str, ...]) -> Any:
        held = [*self.open.values(), *self.talks.values(), *self.charged]
        return sum((cost for who, cost in held if who[: len(path)] == path), Cost(0))

    def fits(self, path: tuple[str, ...], worst: Any) -> bool:
        return all(self.fits_at(path[:k], self.used(path[:k]) + worst) for k in range(1, len(path) + 1))

    def fits_at(self, path: tuple[str, ...], used: Any) -> bool:
        return bool(used <= self.limits[path])

    def compare(self, account: Ledger, path: tuple[str, ...]) -> None:
        """The account counts what the model counts, and it is allowed."""
        assert account.spent + account.reserved == self.used(path)
        assert self.fits_at(path, self.used(path))


class Counts(list[int]):
    """ε, δ, Rényi price, μ², others, rounds without ε, those without μ: they add up one by one."""

    def __add__(self, other: Any) -> Any:
        return Counts(a + b for a, b in zip(self, other, strict=True))

    def __radd__(self, other: Any) -> Any:
        return self


class MeteredModel(Model):
    """The same on several meters."""

    def __init__(self, limit: Cost) -> None:
        self.meters = RenyiAccounting().under(limit)
        self.held: dict[tuple[str, ...], Any] = {}
        super().__init__(limit)

    def allow(self, path: tuple[str, ...], limit: Cost) -> None:
        before = self.held.get(path)
        self.held[path] = self.meters.capacity(limit) if before is None else self.meters.raised(limit, before)
        super().allow(path, limit)

    def cost(self, guarantee: Guarantee, part: Any = None, manner: Manner = "reserve") -> Any:
        tariff = tariff_of_guarantee(guarantee, self.meters.order, interactive=manner != "run")
        return Counts(tariff.worst if part is None else tariff.of(part))

    def noise(self, path: tuple[str, ...]) -> Any:
        order = self.meters.order
        prices = NOISE.renyi_prices(order).worst, NOISE.gaussian_prices().worst
        if all(self.held[path[:k]].renyi >= 0 for k in range(1, len(path) + 1)):
            return Counts([0, 0, *prices, 0, 1, 0])
        worst = NOISE.guarantee.worst_case
        return Counts([worst.epsilon_units, worst.delta_units, *prices, 0, 0, 0])

    def used(self, path: tuple[str, ...]) -> Any:
        held = [*self.open.values(), *self.talks.values(), *self.charged]
        return sum((cost for who, cost in held if who[: len(path)] == path), Counts([0] * 7))

    def fits_at(self, path: tuple[str, ...], used: Any) -> bool:
        epsilon, delta, renyi, normal, others, unpriced, foreign = used
        _, rounds, renyi_most, normal_most, others_most, *_ = self.held[path]
        basic = epsilon <= self.limits[path].epsilon_units and unpriced == 0
        gaussian = normal <= normal_most and others <= others_most and foreign == 0
        return bool(delta <= rounds and (basic or renyi <= renyi_most or gaussian))

    def compare(self, account: Ledger, path: tuple[str, ...]) -> None:
        balance = account._store.balances(path)[-1]
        assert account.spent + account.reserved <= account.limit
        assert [*balance.used] == self.used(path)
        assert balance.capacity == self.held[path]
        assert self.fits_at(path, self.used(path))


class LedgerMachine(RuleBasedStateMachine):
    """Each step runs on one of three threads; bursts run on all of them at once."""

    accounts: Bundle[Any] = Bundle("accounts")
    reservations: Bundle[Any] = Bundle("reservations")
    interactions: Bundle[Any] = Bundle("interactions")

    model_of: type[Model] = Model
    accounting: Literal["basic", "renyi"] = "basic"

    def make(self) -> Ledger:
        return Ledger(LIMIT, accounting=self.accounting)

    @initialize(target=accounts)
    def begin(self) -> Ledger:
        self.ledger = self.make()
        self.model = self.model_of(LIMIT)
        self.kept: list[Any] = []
        return self.ledger

    def on_thread(self, worker: int, step: Callable[[], Any]) -> Any:
        return WORKERS[worker].submit(step).result()

    def ended(self, spending: Reservation, attempt: Callable[[], Any]) -> bool:
        """Whether it ended before; what is then attempted is refused."""
        if spending.id in self.model.open:
            return False
        with pytest.raises(xp.errors.ReservationClosed):
            attempt()
        return True

    @rule(target=accounts, parent=accounts, epsilon=st.sampled_from(["0.4", "1", "3"]), worker=st.integers(0, 2))
    def create_account(self, parent: Ledger, epsilon: str, worker: int) -> Ledger:
        name = f"a{len(self.model.limits)}"
        account: Ledger = self.on_thread(worker, lambda: parent.create_account(name, epsilon=epsilon, delta="1e-4"))
        self.model.allow((*path(parent), name), Cost(epsilon, delta="1e-4"))
        return account

    @rule(
        target=reservations,
        account=accounts,
        guarantee=st.sampled_from(GUARANTEES),
        begin=st.booleans(),
        worker=st.integers(0, 2),
    )
    def reserve(self, account: Ledger, guarantee: Guarantee, begin: bool, worker: int) -> Any:
        worst = self.model.cost(guarantee)
        if not self.model.fits(path(account), worst):
            with pytest.raises(xp.BudgetExceeded) as refused:
                self.on_thread(worker, lambda: account.reserve(guarantee, begin=begin))
            assert self.accounting == "renyi" or not guarantee.worst_case <= refused.value.remaining
            return None
        spending = self.on_thread(worker, lambda: account.reserve(guarantee, begin=begin))
        self.model.open[spending.id] = (path(account), worst)
        return spending

    @rule(spending=consumes(reservations), part=st.sampled_from(["low", "high"]), worker=st.integers(0, 2))
    def settle(self, spending: Reservation | None, part: str, worker: int) -> None:
        if spending is None or self.ended(spending, lambda: spending.settle(part)):
            return
        entry = self.on_thread(worker, lambda: self.ledger.reservation(spending.id).settle(part))
        who, _ = self.model.open.pop(spending.id)
        self.model.charged.append((who, self.model.cost(entry.guarantee, part)))
        assert entry.charged == entry.guarantee.cost_of(part)
        with pytest.raises(xp.errors.ReservationClosed):
            spending.forfeit()

    @rule(spending=consumes(reservations), worker=st.integers(0, 2))
    def forfeit(self, spending: Reservation | None, worker: int) -> None:
        if spending is None or self.ended(spending, spending.forfeit):
            return
        self.on_thread(worker, spending.forfeit)
        self.model.charged.append(self.model.open.pop(spending.id))

    @rule(spending=reservations, worker=st.integers(0, 2))
    def void(self, spending: Reservation | None, worker: int) -> None:
        if spending is None or self.ended(spending, spending.void):
            return
        if spending.entry.begun:
            with pytest.raises(xp.errors.ReservationClosed):
                self.on_thread(worker, spending.void)
        else:
            self.on_thread(worker, spending.void)
            del self.model.open[spending.id]

    @rule(spending=reservations)
    def begin_sampling(self, spending: Reservation | None) -> None:
        if spending is not None and spending.id in self.model.open:
            spending.begin()

    @rule(account=accounts, guarantee=st.sampled_from(GUARANTEES), key=st.sampled_from("xyz"))
    def keyed(self, account: Ledger, guarantee: Guarantee, key: str) -> None:
        """A key buys once; asking again, or for something else, changes nothing."""
        fits = self.model.fits(path(account), self.model.cost(guarantee))
        try:
            account.reserve(guarantee, key=key).settle("high")
        except xp.BudgetExceeded:
            assert not fits
        except (xp.errors.AlreadyReserved, xp.errors.KeyConflict):
            assert self.ledger.reservation(key).entry.state == "settled"
        else:
            assert fits
            self.model.charged.append((path(account), self.model.cost(guarantee, "high")))

    @rule(account=accounts, guarantee=st.sampled_from(GUARANTEES), part=st.sampled_from(["low", "high", "lost"]))
    def run(self, account: Ledger, guarantee: Guarantee, part: str) -> None:
        """A run charges its part; one whose part is unknown, its worst case."""
        fits = self.model.fits(path(account), self.model.cost(guarantee, None, "run"))
        try:
            account.run(Fixed(guarantee, None, part=part))
        except xp.BudgetExceeded:
            assert not fits
            return
        except xp.errors.UnknownPart:
            assert part == "lost"
        assert fits
        cost = self.model.cost(guarantee, None if part == "lost" else part, "run")
        self.model.charged.append((path(account), cost))

    @rule(account=accounts)
    def normal_noise(self, account: Ledger) -> None:
        """Gaussian noise: with several meters, and room on them, it needs no δ."""
        cost = self.model.noise(path(account))
        if not self.model.fits(path(account), cost):
            with pytest.raises(xp.BudgetExceeded):
                account.run(NOISE, on=0)
            return
        account.run(NOISE, on=0)
        self.model.charged.append((path(account), cost))

    @rule(target=interactions, account=accounts, worker=st.integers(0, 2))
    def open(self, account: Ledger, worker: int) -> Any:
        mechanism = Responses(Fraction(11, 10), 3)
        worst = self.model.cost(mechanism.guarantee, None, "open")
        if not self.model.fits(path(account), worst):
            with pytest.raises(xp.BudgetExceeded):
                account.open(mechanism)
            return None
        ask = self.on_thread(worker, lambda: account.open(mechanism))
        self.model.talks[id(ask)] = (path(account), worst)
        return ask

    @rule(ask=interactions, worker=st.integers(0, 2))
    def question(self, ask: Any, worker: int) -> None:
        if ask is None:
            return
        if ask.closed:
            with pytest.raises(xp.errors.InteractionClosed):
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
        who, _ = self.model.talks.pop(id(ask))
        if ask.transcript:
            guarantee = ask.release.entry.guarantee
            self.model.charged.append((who, self.model.cost(guarantee, len(ask.transcript), "open")))
        self.kept.append(ask)  # so that no id is used twice

    @rule(account=accounts, guarantee=st.sampled_from(GUARANTEES))
    def burst(self, account: Ledger, guarantee: Guarantee) -> None:
        """Six equal requests at once: exactly as many are admitted as fit."""

        def attempt() -> bool:
            try:
                account.reserve(guarantee).settle("high")
            except xp.BudgetExceeded:
                return False
            return True

        admitted = sum(future.result() for future in [WORKERS[i % 3].submit(attempt) for i in range(6)])
        worst, cost = self.model.cost(guarantee), self.model.cost(guarantee, "high")
        for _ in range(admitted):
            assert self.model.fits(path(account), worst)
            self.model.charged.append((path(account), cost))
        if admitted < 6 and cost == worst:
            assert not self.model.fits(path(account), worst)

    @rule(account=accounts, more=st.sampled_from(["0.1", "1"]))
    def raise_limit(self, account: Ledger, more: str) -> None:
        """The owner allows more."""
        limit = self.model.limits[path(account)] + Cost(more)
        account.raise_limit(limit.exact_epsilon, by="the owner", reason="more")
        self.model.allow(path(account), limit)

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
            self.model.compare(account, where)
        entries = list(self.ledger.entries())
        books = self.ledger._store.balances(self.ledger._path)[-1]
        assert together(e.amounts for e in entries if e.amounts is not None) == books.charged
        assert together(e.reserved_amounts for e in entries if e.state == "reserved") == books.reserved


def path(ledger: Ledger) -> tuple[str, ...]:
    return tuple(ledger.name.split("/"))


TestMemoryLedger = LedgerMachine.TestCase
TestMemoryLedger.settings = settings(max_examples=500 if SOAK else 30, stateful_step_count=40)


class SqliteMachine(LedgerMachine):
    """The same on a file."""

    def make(self) -> Ledger:
        self.folder = tempfile.TemporaryDirectory()
        return durable(f"sqlite:///{self.folder.name}/books.db", self.accounting)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


class PostgresMachine(LedgerMachine):
    """The same on a server."""

    def make(self) -> Ledger:
        return durable(new_schema(server()), self.accounting)


@cache
def server() -> Server:
    return Server()


def durable(url: str, accounting: Literal["basic", "renyi"]) -> Ledger:
    return Ledger.create(url, "ledger", LIMIT, neighbours="add-remove", unit="person", accounting=accounting)


class MeteredMachine(LedgerMachine):
    """The same on several meters."""

    model_of, accounting = MeteredModel, "renyi"


class MeteredSqliteMachine(SqliteMachine):
    """The same on a file."""

    model_of, accounting = MeteredModel, "renyi"


class MeteredPostgresMachine(PostgresMachine):
    """The same on a server."""

    model_of, accounting = MeteredModel, "renyi"


TestSqliteLedger = SqliteMachine.TestCase
TestSqliteLedger.settings = settings(max_examples=50 if SOAK else 12, stateful_step_count=30)
TestPostgresLedger = PostgresMachine.TestCase
TestPostgresLedger.settings = settings(max_examples=25 if SOAK else 6, stateful_step_count=25)
TestMeteredMemoryLedger = MeteredMachine.TestCase
TestMeteredMemoryLedger.settings = settings(max_examples=500 if SOAK else 25, stateful_step_count=40)
TestMeteredSqliteLedger = MeteredSqliteMachine.TestCase
TestMeteredSqliteLedger.settings = settings(max_examples=50 if SOAK else 8, stateful_step_count=30)
TestMeteredPostgresLedger = MeteredPostgresMachine.TestCase
TestMeteredPostgresLedger.settings = settings(max_examples=25 if SOAK else 4, stateful_step_count=25)
