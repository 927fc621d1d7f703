"""Ledgers with several meters, wherever their books are kept: what is admitted, charged and shown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import psycopg
import pytest

import expost as xp
from books import disarm, execute
from expost import Cost, Guarantee, Ledger
from expost.accounting.capacities import RenyiAccounting
from expost.accounting.losses import GaussianNoise
from expost.ledger.entry import Note, Remaining
from expost.ledger.trail import GENESIS, link
from expost.ledger.transfer import copy_ledger, import_export
from toys import Fixed

pytestmark = pytest.mark.counted
INTERACTION = Guarantee({"worst": "0.01", "third": "1/300"})
NOISE = xp.Gaussian(epsilon=0.1, delta=1e-7, sensitivity=1)


LIMIT = Cost(1, delta="1e-6")
New: TypeAlias = Callable[..., Ledger]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def new(request: pytest.FixtureRequest) -> New:
    """Makes an empty ledger of the store under test."""

    def memory(limit: Cost = LIMIT, accounting: Any = "renyi") -> Ledger:
        return Ledger(limit, accounting=accounting)

    def durable(limit: Cost = LIMIT, accounting: Any = "renyi") -> Ledger:
        url = request.getfixturevalue(f"{request.param}_url")()
        return Ledger.create(url, "ledger", limit, neighbours="add-remove", unit="person", accounting=accounting)

    return memory if request.param == "memory" else durable


def test_many_small_questions_fit() -> None:
    ledger = Ledger(LIMIT, accounting="renyi")
    for _ in range(10 * 297):
        ledger.reserve(INTERACTION).settle("third")
    for _ in range(1000):
        with suppress(xp.BudgetExceeded):
            ledger.reserve(INTERACTION).settle("third")
    with pytest.raises(xp.BudgetExceeded, match=r"no meter of 'ledger' has room for it: the largest affordable ε is"):
        ledger.reserve(INTERACTION)
    assert ledger.meters[0].spent > 11 * 10**12
    assert 0.9 < ledger.spent.epsilon <= 1
    assert ledger.remaining.epsilon > 0
    ledger.verify()


def test_a_few_large_questions_fit_as_in_the_basic_sum(new: New) -> None:
    ledger = new()
    for _ in range(10):
        ledger.reserve(Guarantee.uniform("0.1")).settle("done")
    assert ledger.spent == Cost(1, "1e-6")
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.reserve(Guarantee.uniform("1e-12"))
    assert refused.value.short == ("epsilon",)


def test_everything_that_remains_can_be_asked_for_and_no_more() -> None:
    ledger = Ledger(LIMIT, accounting="renyi")
    for _ in range(2000):
        ledger.reserve(INTERACTION).settle("third")
    remaining = ledger.remaining
    assert isinstance(remaining, Remaining)
    assert 0 < remaining.epsilon < 0.5
    ledger.reserve(Guarantee.uniform(remaining.exact_epsilon), begin=False).void()
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.reserve(Guarantee.uniform(remaining.exact_epsilon + Cost("1e-12").exact_epsilon))
    assert refused.value.affordable == remaining
    assert refused.value.affordable_epsilon == remaining.epsilon
    ledger.run(xp.DiscreteGaussian(rho=remaining.rho, delta=1e-9, sensitivity=1), on=0)
    assert ledger.remaining.rho < 1e-9  # type: ignore[attr-defined]
    ledger.verify()


def test_normal_noise_needs_no_delta_and_fills_the_basic_sum(new: New) -> None:
    ledger = new()
    release = ledger.run(NOISE, on=5)
    assert 0 < ledger.spent.epsilon < 0.2
    assert release.entry.amounts is not None
    assert release.entry.amounts.unpriced == 1
    basic, renyi, normal = ledger.meters
    assert (basic.is_full, renyi.is_full, normal.is_full) == (True, False, False)
    ledger.reserve(INTERACTION).settle("third")
    assert ledger.meters[2].is_full  # what is not Gaussian noise has no ε there
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.run(xp.Gaussian(epsilon=3, delta=1e-7, sensitivity=1), on=0)
    assert refused.value.short == ("rho",)
    assert "or ρ" in str(refused.value)
    assert str(refused.value).startswith("asked for ρ ")
    assert pickle.loads(pickle.dumps(refused.value)).affordable.rho == refused.value.affordable.rho  # type: ignore[attr-defined]


def test_a_voided_run_of_normal_noise_leaves_no_trace(new: New) -> None:
    ledger = new()
    walk = xp.Iterative(steps=(GaussianNoise(50),) * 20, stops=(5, 20), delta=1e-6, sensitivity=1)
    with ledger.open(walk):
        assert ledger.meters[0].is_full
    assert not ledger.meters[0].is_full
    assert ledger.remaining == Cost(1, delta="2.5e-7")


def test_steps_are_paid_one_by_one_whatever_the_number_of_stops(new: New) -> None:
    ledger = new()
    many = xp.Iterative(steps=(GaussianNoise(50),) * 20, stops=tuple(range(1, 21)), delta=1e-6, sensitivity=1)
    with ledger.open(many) as walk:
        for step in walk:
            step(0.0)
            if len(walk.transcript) == 5:
                break
    _, renyi, normal = ledger.meters
    assert normal.spent == 5 * 10**12 // 2500
    assert renyi.spent == -(-int(5 * 10**12 * float(ledger._store.meters.order)) // 5000)  # type: ignore[union-attr]
    assert (renyi.reserved, normal.reserved) == (0, 0)


def test_delta_of_rounds_is_what_the_shares_leave(new: New) -> None:
    ledger = new()
    risky = Guarantee({"yes": "0.1", "no": 0}, "1e-7")
    for _ in range(2):
        ledger.run(Fixed(risky, 0, part="no"))
    assert ledger.remaining.delta_units == 5 * 10**10
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.run(Fixed(risky, 0, part="no"))
    assert refused.value.short == ("delta",)


def test_a_run_that_needs_a_delta_is_priced_by_its_tangent_and_a_reservation_by_its_epsilon(new: New) -> None:
    ledger, risky = new(), Guarantee({"yes": "0.1", "no": "0.02"}, "1e-9")
    run = ledger.run(Fixed(risky, 0, part="no")).entry
    reserved = ledger.reserve(risky).settle("no")
    assert run.amounts is not None
    assert reserved.amounts is not None
    assert run.amounts.renyi < reserved.amounts.renyi == 2 * 10**10


def test_forfeited_entries_cost_the_worst_case_on_every_meter(new: New) -> None:
    ledger = new()
    entry = ledger.reserve(INTERACTION).forfeit()
    assert entry.amounts == entry.reserved_amounts
    assert ledger.meters[1].spent == entry.amounts.renyi  # type: ignore[union-attr]
    with pytest.raises(xp.errors.UnknownPart), ledger.reserve(INTERACTION) as spending:
        spending.settle("half")
    assert ledger.meters[1].spent == 2 * entry.amounts.renyi  # type: ignore[union-attr]


def test_sums_that_no_database_can_hold_are_refused(new: New) -> None:
    """Found: PostgreSQL added up past its integers, and the ledger could not be verified any more."""
    ledger = new(Cost(9_000_000, delta="1e-6"))
    large = Guarantee({"a": 2_500_000, "b": 0})
    ledger.reserve(large).settle("a")
    for _ in range(2):
        with pytest.raises(xp.BudgetExceeded):
            ledger.reserve(large)
    ledger.reserve(Guarantee.uniform(1)).settle("all")
    ledger.verify()


def test_small_accounts_have_the_basic_sum_alone_and_say_so(new: New) -> None:
    ledger = new()
    small, large = ledger.create_account("small", "0.1", "1e-6"), ledger.create_account("large", "0.9", "1e-6")
    assert [str(reading) for reading in small.meters][1:] == [
        "Rényi prices at order 24.6719: none, because the limit is too small",
        "Gaussian noise (μ², fixed at creation): none, because the limit is too small",
    ]
    assert "none, because the limit is too small" in small.statement()
    assert large.meters[1].capacity is not None
    assert small.run(NOISE, on=1).charged == Cost("0.1", "1e-7")  # with its δ: there is no other meter
    assert not ledger.meters[0].is_full
    with pytest.raises(xp.BudgetExceeded, match="no meter of 'ledger/small' has room"):
        small.run(NOISE, on=1)
    small.raise_limit(epsilon="0.9", by="me", reason="more")
    assert small.meters[1].capacity is None
    large.run(NOISE, on=1)
    assert ledger.meters[0].is_full
    ledger.verify()


def test_raised_limits_hold_more_at_the_same_order_but_no_more_gaussian_noise(new: New) -> None:
    ledger = new()
    basic, renyi, normal = (reading.capacity for reading in ledger.meters)
    for epsilon in (2, 3):
        ledger.raise_limit(epsilon=epsilon, delta=f"{epsilon}e-6", by="me", reason="more")
        found = [reading.capacity for reading in ledger.meters]
        assert (found[0] > basic, found[1] > renyi, found[2]) == (True, True, normal)  # type: ignore[operator]
        basic, renyi = found[:2]
    assert ledger.remaining.delta_units == 75 * 10**10
    assert "Gaussian noise (μ², fixed at creation): 0 of 0.052480827251" in ledger.statement()
    ledger.verify()


def test_after_a_raise_gaussian_noise_goes_on_by_its_renyi_price(new: New) -> None:
    ledger, worth = new(), xp.Gaussian(epsilon=0.9, delta=2.5e-7, sensitivity=1)
    ledger.run(worth, on=1)
    with pytest.raises(xp.BudgetExceeded):
        ledger.run(worth, on=1)
    ledger.raise_limit(epsilon=2, by="me", reason="more")
    ledger.run(worth, on=1)
    _, renyi, normal = ledger.meters
    assert (renyi.is_full, normal.is_full) == (False, True)
    ledger.verify()


def test_quotes_price_a_plan_on_every_meter(new: New) -> None:
    ledger = new()
    quote = ledger.quote([INTERACTION] * 20 + [NOISE] * 2)
    assert quote.fits
    assert (quote.worst, quote.best) == (Cost("0.2"), Cost("0.06666666668"))
    assert quote.worst_amounts is not None
    assert quote.best_amounts is not None
    assert quote.worst_amounts.unpriced == 2
    assert quote.best_amounts.renyi < quote.worst_amounts.renyi
    assert not ledger.quote([Guarantee.uniform(1), NOISE]).fits
    assert ledger.quote([Guarantee.uniform(1)]).fits
    assert not ledger.quote([Guarantee.uniform(1)] * 2).fits
    assert ledger.quote([]).fits


def test_keys_replay(new: New) -> None:
    ledger = new()
    first = ledger.run(NOISE, on=5, key="k")
    again = ledger.run(NOISE, on=6, key="k")
    assert (again.value, again.replayed) == (first.value, True)
    assert ledger.meters[1].spent == first.entry.amounts.renyi  # type: ignore[union-attr]


def test_closed_ledgers_reserve_nothing(new: New) -> None:
    ledger = new()
    ledger.close(by="me", reason="done")
    with pytest.raises(xp.errors.LedgerClosed):
        ledger.reserve(INTERACTION)
    assert ledger.remaining == Cost(0)
    assert copy.copy(ledger) is ledger


@pytest.mark.parametrize(
    ("accounting", "message"),
    [
        ("rényi", "accounting is 'basic', 'renyi' or RenyiAccounting"),
        (RenyiAccounting(order=1), "an order is above 1"),
        (RenyiAccounting(delta=1e-6), "parts of the limit's δ"),
    ],
)
def test_bad_settings_are_refused(new: New, accounting: object, message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=message):
        new(accounting=accounting)


def test_a_request_without_prices_is_refused_where_there_are_meters(new: New) -> None:
    ledger, basic = new(), Ledger(1)
    for one, other in ((ledger, basic), (basic, ledger)):
        request = one._request("reserve", INTERACTION, INTERACTION, None, None)
        with pytest.raises(xp.InvalidValue, match="prices do not fit the meters"):
            other._store.reserve(request, begin=True)


def test_a_basic_ledger_shows_one_meter_and_no_others() -> None:
    ledger = Ledger(1)
    assert [reading.name for reading in ledger.meters] == ["basic sum (ε)"]
    assert ledger.statement().endswith("remaining ε 1")


# ---- durable ledgers


DURABLE = pytest.mark.parametrize("store", ["sqlite", "postgres"])


def filled(url: str) -> Ledger:
    """A ledger with everything in it that meters count."""
    ledger = Ledger.create(url, "study", LIMIT, neighbours="add-remove", unit="person", accounting="renyi")
    small = ledger.create_account("small", "0.2", "1e-6")
    for account in (ledger, small):
        account.run(NOISE, on=1, key=f"{account.name} noise")
        account.reserve(INTERACTION).settle("third")
        account.reserve(INTERACTION, begin=False).void()
        account.reserve(INTERACTION).forfeit()
    ledger.raise_limit(epsilon=2, by="me", reason="more")
    return ledger


@DURABLE
def test_a_loaded_ledger_counts_on(store: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(f"{store}_url")()
    ledger = filled(url)
    again = Ledger.load(url, "study")
    assert again.meters == ledger.meters
    assert list(again.entries()) == list(ledger.entries())
    assert again.account("small").meters == ledger.account("small").meters
    assert xp.ledgers(url)[0].limit == Cost(2, "1e-6")
    head = ledger.verify()
    again.run(NOISE, on=1)
    spending = again.reserve(INTERACTION)
    assert again.verify(head, since=True) == again.verify()
    spending.settle("worst")
    pickle.loads(pickle.dumps(again)).verify()


@DURABLE
def test_copies_have_the_same_meters(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url, ends = request.getfixturevalue(f"{store}_url")(), f"sqlite:///{tmp_path}/copy.db"
    ledger, note = filled(url), Note("me", "copy")
    head = ledger.verify()
    assert copy_ledger(url, "study", ends, note) == head
    assert Ledger.load(ends, "study").meters == ledger.meters
    ledger.export(tmp_path / "trail.jsonl")
    imported = request.getfixturevalue("sqlite_url")()
    import_export(str(tmp_path / "trail.jsonl"), imported, note)
    assert Ledger.load(imported, "study").meters == ledger.meters
    back = request.getfixturevalue("postgres_url")()
    copy_ledger(ends, "study", back, note)
    assert Ledger.load(back, "study").meters == ledger.meters


CHANGES = {
    "more capacity": "UPDATE expost_account SET capacity_delta = capacity_delta + 100000000000",
    "less spent": "UPDATE expost_account SET charged_renyi = 1",
    "more Gaussian noise": "UPDATE expost_account SET capacity_normal = 60000000000",
    "no meters": "UPDATE expost_account SET capacity_renyi = -1, capacity_normal = -1, capacity_others = -1",
    "a cheaper entry": "UPDATE expost_entry SET charged_renyi = 0, charged_others = 0 WHERE number = 1",
    "a cheaper reservation": "UPDATE expost_entry SET reserved_renyi = charged_renyi WHERE number = 2",
    "other meters": "UPDATE expost_ledger SET accounting = replace(accounting, '1579/64', '1580/64')",
}


@DURABLE
@pytest.mark.parametrize("change", CHANGES)
def test_changes_by_hand_are_refused_by_the_tables_and_seen(
    store: str, change: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(f"{store}_url")()
    ledger = filled(url)
    statement = CHANGES[change]
    if change != "more capacity":  # limits may grow
        with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError)):
            execute(url, statement)
        ledger.verify()
    for table in ("expost_account", "expost_entry", "expost_ledger"):
        disarm(url, table)
    before = [str(row) for row in ledger.meters]
    try:
        execute(url, statement)
    except (apsw.ConstraintError, psycopg.IntegrityError):  # not even without its guards
        assert [str(row) for row in Ledger.load(url, "study").meters] == before
        return
    with pytest.raises(xp.errors.LedgerCorrupt):
        Ledger.load(url, "study", recover=False).verify()


@DURABLE
def test_what_is_reserved_on_meters_is_compared_with_open_entries(store: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(f"{store}_url")()
    ledger = filled(url)
    spending = ledger.reserve(INTERACTION)
    disarm(url, "expost_account")
    execute(url, "UPDATE expost_account SET reserved_renyi = reserved_renyi - 1 WHERE reserved_renyi > 0")
    with pytest.raises(xp.errors.LedgerCorrupt, match="changed by hand"):
        ledger.recover()
    with pytest.raises(xp.errors.LedgerCorrupt, match="changed by hand"):
        ledger.reserve(INTERACTION)
    assert spending.entry.state == "reserved"


def forged(ledger: Ledger, tmp_path: Path, old: str, new: str) -> str:
    """An export in which a number was changed, and all hashes made anew."""
    head, lines = GENESIS, []
    for event in ledger.audit_trail():
        line = event.line.replace(old, new)
        head = link(head, line)
        lines.append(f'{{"hash":"{head}","line":{line}}}')
    lines.append(f'{{"end":"{event.sequence}:{head}"}}')
    (tmp_path / "forged.jsonl").write_text("\n".join(lines) + "\n", encoding="ascii")
    return str(tmp_path / "forged.jsonl")


FORGERIES = {
    "more capacity": (",531882244433,", ",531882244533,"),
    "more for Gaussian noise": (",52480827251,", ",52490827251,"),
    "more for Gaussian noise under a raised limit": (",1531882244433,52480827251,", ",1531882244433,60000000000,"),
    "more δ for rounds": (",250000000000,531882244433,", ",250000000001,531882244433,"),
    "a cheaper interaction": ('"renyi":[157104038,1361996413]', '"renyi":[157104037,1361996413]'),
    "a larger share": ('"renyi":250000000000}', '"renyi":350000000000}'),
    "a meter that was not there": (",-1,-1,0],", ",5,-1,0],"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_trails_are_not_imported(forgery: str, sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    ledger = filled(sqlite_url())
    old, new = FORGERIES[forgery]
    assert any(old in event.line for event in ledger.audit_trail())
    with pytest.raises(xp.errors.LedgerCorrupt):
        import_export(forged(ledger, tmp_path, old, new), sqlite_url(), Note("me", "copy"))
    import_export(forged(ledger, tmp_path, "no such text", ""), sqlite_url(), Note("me", "copy"))
