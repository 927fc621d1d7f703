"""Records of ledgers: what they count, how they are shown, and what is not taken for one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from books import GUARANTEE, disarm, execute, make
from expost import Cost, Guarantee, Ledger
from expost.accounting.amounts import CONCENTRATED, NO_AMOUNTS, Amounts, basic_capacity
from expost.accounting.capacities import RenyiAccounting
from expost.canonical import sha256
from expost.estimates import EstimateArray
from expost.ledger import codec
from expost.ledger.clock import HOUR, TRUST, tick
from expost.ledger.entry import Balance, Note, Used
from expost.ledger.memory import MemoryStore
from expost.ledger.metered import with_held, with_reserved
from expost.ledger.operations import Begin, Close, Forfeit, Remark, SetClock, Settle, Void
from expost.ledger.rows import guarantee_of

HELD = Amounts(25 * 10**10, 10**9, 7, 6, 5, 4, 3)


def metered(epsilon: Any = 1) -> Balance:
    (balance,) = Ledger(epsilon, "1e-6", accounting="renyi")._store.balances(("ledger",))
    return balance


def test_what_is_held_counts_as_reserved_on_every_meter() -> None:
    before = metered()
    after = with_held(with_held(before, HELD), HELD)
    assert (after.reserved, after.charged) == (Amounts(5 * 10**11, 2 * 10**9, 14, 12, 10, 8, 6), NO_AMOUNTS)
    assert (after.limit, after.capacity) == (before.limit, before.capacity)


def test_what_is_held_counts_where_there_are_no_other_meters() -> None:
    before = Balance.basic(Cost(1))._replace(charged=Amounts(5 * 10**11), reserved=Amounts(25 * 10**10))
    after = with_held(before, HELD)
    assert (after.reserved.cost, after.charged.cost) == (Cost("0.5", delta="1e-9"), Cost("0.5"))
    assert not after.is_metered


def test_what_is_held_may_be_more_than_fits_and_then_nothing_does() -> None:
    """It was set aside before; what comes after is what is refused."""
    full = with_held(metered(), Amounts(5 * 10**12, 0, 2**50, 2**50, 2**50))
    assert with_reserved(full, Amounts(1, 0, 1, 1, 1)) is None


def test_an_account_without_the_meters_of_its_ledger_spends_nothing() -> None:
    ledger = Ledger(1, "1e-4", accounting="renyi")
    spending, store = ledger.reserve(GUARANTEE), ledger._store
    assert isinstance(store, MemoryStore)
    store._accounts["ledger",] = store._accounts["ledger",]._replace(capacity=basic_capacity(ledger.limit))
    for work in (lambda: ledger.reserve(GUARANTEE), lambda: store.settle(spending.id, "small", None)):
        with pytest.raises(xp.errors.LedgerCorrupt):
            work()


def test_charges_are_shown_on_the_meter_that_counts_them_by_name() -> None:
    pure = Used.of(Amounts(5 * 10**11, 0, 3, 0, 5))
    normal = Used.of(Amounts(0, 0, 3, 2 * 10**10, 0, 1, 0))
    zcdp = Used.of(Amounts(0, 0, 3, 10**10, 0, 1, CONCENTRATED))
    other = Used.of(Amounts(0, 0, 10**9, 0, 0, 1, 1))
    assert [str(used) for used in (pure, normal, zcdp, other)] == [
        "ε 0.5", "ρ 0.01", "ρ 0.005", "Rényi price 0.001",
    ]  # fmt: skip
    assert str(pure.plus(normal).plus(other)) == "ε 0.5 + ρ 0.01 + Rényi price 0.001"
    assert str(pure.plus(normal).minus(pure)) == "ρ 0.01"
    assert Used.of(Amounts(5 * 10**11)) == Used(Cost("0.5"))


def test_a_ledger_without_a_share_for_gaussian_noise_has_no_such_meter() -> None:
    names = [
        [reading.name.partition(" ")[0] for reading in Ledger(1, "1e-6", accounting=accounting).meters]
        for accounting in (RenyiAccounting(gaussian_delta=0), RenyiAccounting())
    ]
    assert names == [["basic", "Rényi"], ["basic", "Rényi", "Gaussian"]]


def test_endings_move_no_clock() -> None:
    """When work ended may depend on data."""
    at, now = 5 * HOUR, 9 * HOUR + 17
    for ending in (Begin(1), Settle(1, "a"), Forfeit(1), Void(1)):
        assert tick(at, now, ending) == at
    note = Note("me", "because")
    assert tick(at, now, Remark(("ledger",), note)) == 9 * HOUR
    assert tick(now, at, Remark(("ledger",), note)) == now  # never backwards
    assert tick(now, at, SetClock(note)) == at
    assert tick(at, at + TRUST + HOUR, Close(("ledger",), note)) == at
    with pytest.raises(xp.errors.LedgerUnavailable):
        tick(at, at + TRUST + HOUR, Remark(("ledger",), note))


@pytest.mark.parametrize(
    "name", ["..", ".", "a%2fb", "a\\b", "a?b", "a#b", " a", "a ", "a\u202eb", "e\u0301", "a/b", ""]
)
def test_names_that_mean_or_look_like_something_else_are_refused(name: str) -> None:
    ledger = Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.create_account(name, epsilon=1)
    assert ledger.accounts == ()


def test_arrays_of_estimates_are_stored_as_plain_numbers() -> None:
    """Their noise is remembered by their entry, and not by what is stored."""
    found = EstimateArray.of(np.array([7, 0, 2]), "entry 1", bound=lambda miss: 3)
    read = codec.decode(codec.kept(found))
    assert type(read) is np.ndarray
    assert read.tolist() == [7, 0, 2]
    assert codec.encode(found) == codec.encode(np.array([7, 0, 2]))


def test_a_guarantee_is_read_as_what_its_hash_says() -> None:
    """However many were read before."""
    many = [Guarantee.uniform(Fraction(n, 10**6)) for n in range(1, 600)]
    for _ in range(2):
        for guarantee in many:
            text = codec.guarantee_text(guarantee)
            assert guarantee_of(sha256(text), text) == guarantee
    with pytest.raises(xp.errors.LedgerCorrupt):
        guarantee_of(sha256("another"), codec.guarantee_text(GUARANTEE))


@pytest.mark.parametrize("account", ["study", "study/team"])
def test_an_entry_that_is_marked_as_one_of_another_level_is_not_read(
    sqlite_url: Callable[[], str], account: str
) -> None:
    """By that mark the entries of a ledger's own account are found."""
    url = sqlite_url()
    ledger = make(url)
    team = ledger.create_account("team", epsilon=1, delta="1e-4")
    (team if account == "study/team" else ledger).reserve(GUARANTEE).settle("small")
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET below = 1 - below")
    with pytest.raises(xp.errors.LedgerCorrupt):
        ledger.reservation(1)
    with pytest.raises(xp.errors.LedgerCorrupt):
        ledger.verify()
