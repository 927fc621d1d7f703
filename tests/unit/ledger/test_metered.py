"""Ledgers with several meters, in memory: what is admitted, charged and shown."""

from __future__ import annotations

import copy
import pickle
from contextlib import suppress

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.accounting.capacities import RenyiAccounting
from expost.accounting.losses import GaussianNoise
from expost.ledger.entry import Remaining
from toys import Fixed

SESSION = Guarantee({"worst": "0.01", "third": "1/300"})
NOISE = xp.Gaussian(epsilon=0.1, delta=1e-7, sensitivity=1)


def new(epsilon: object = 1, delta: object = "1e-6", **options: object) -> Ledger:
    return Ledger(epsilon, delta, accounting=options.pop("accounting", "renyi"), **options)  # type: ignore[arg-type]


def test_many_small_questions_fit() -> None:
    ledger = new()
    for _ in range(10 * 297):
        ledger.reserve(SESSION).settle("third")
    for _ in range(1000):
        with suppress(xp.BudgetExceeded):
            ledger.reserve(SESSION).settle("third")
    with pytest.raises(xp.BudgetExceeded, match=r"no meter of 'ledger' has room for it: the largest affordable ε is"):
        ledger.reserve(SESSION)
    assert ledger.spent.epsilon > 11
    assert ledger.remaining.epsilon > 0
    ledger.verify()


def test_a_few_large_questions_fit_as_in_the_simple_sum() -> None:
    ledger = new()
    for _ in range(10):
        ledger.reserve(Guarantee.uniform("0.1")).settle("done")
    assert ledger.spent == Cost(1)
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.reserve(Guarantee.uniform("1e-12"))
    assert refused.value.short == ("epsilon",)


def test_everything_that_remains_can_be_asked_for_and_no_more() -> None:
    ledger = new()
    for _ in range(2000):
        ledger.reserve(SESSION).settle("third")
    left = ledger.remaining
    assert isinstance(left, Remaining)
    assert 0 < left.epsilon < 0.5
    ledger.reserve(Guarantee.uniform(left.exact_epsilon), begin=False).void()
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.reserve(Guarantee.uniform(left.exact_epsilon + Cost("1e-12").exact_epsilon))
    assert refused.value.affordable == left
    assert refused.value.affordable_epsilon == left.epsilon
    ledger.run(xp.DiscreteGaussian(rho=left.rho, delta=1e-9, sensitivity=1), on=0)
    assert ledger.remaining.rho < 1e-9  # type: ignore[attr-defined]
    ledger.verify()


def test_normal_noise_needs_no_delta_and_fills_the_simple_sum() -> None:
    ledger = new()
    release = ledger.run(NOISE, on=5)
    assert ledger.spent == Cost(0)
    assert release.entry.amounts is not None
    assert release.entry.amounts.unpriced == 1
    simple, renyi, normal = ledger.meters
    assert (simple.is_full, renyi.is_full, normal.is_full) == (True, False, False)
    ledger.reserve(SESSION).settle("third")
    assert ledger.meters[2].is_full  # what is not normal noise has no ε there
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.run(xp.Gaussian(epsilon=3, delta=1e-7, sensitivity=1), on=0)
    assert refused.value.short == ("rho",)
    assert "or ρ" in str(refused.value)
    assert str(refused.value).startswith("asked for ρ ")
    assert pickle.loads(pickle.dumps(refused.value)).affordable.rho == refused.value.affordable.rho  # type: ignore[attr-defined]


def test_a_voided_run_of_normal_noise_leaves_no_trace() -> None:
    ledger = new()
    walk = xp.Iterative(steps=(GaussianNoise(50),) * 20, stops=(5, 20), delta=1e-6, sensitivity=1)
    with ledger.open(walk):
        assert ledger.meters[0].is_full
    assert not ledger.meters[0].is_full
    assert ledger.remaining == Cost(1, delta="2.5e-7")


def test_steps_are_paid_one_by_one_whatever_the_number_of_stops() -> None:
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


def test_delta_of_rounds_is_what_the_shares_leave() -> None:
    ledger = new()
    risky = Guarantee({"yes": "0.1", "no": 0}, "1e-7")
    for _ in range(2):
        ledger.run(Fixed(risky, 0, part="no"))
    assert ledger.remaining.delta_units == 5 * 10**10
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.run(Fixed(risky, 0, part="no"))
    assert refused.value.short == ("delta",)


def test_a_run_that_needs_a_delta_is_priced_by_its_tangent_and_a_reservation_by_its_epsilon() -> None:
    ledger, risky = new(), Guarantee({"yes": "0.1", "no": "0.02"}, "1e-9")
    run = ledger.run(Fixed(risky, 0, part="no")).entry
    reserved = ledger.reserve(risky).settle("no")
    assert run.amounts is not None
    assert reserved.amounts is not None
    assert run.amounts.renyi < reserved.amounts.renyi == 2 * 10**10


def test_forfeited_entries_cost_the_worst_case_on_every_meter() -> None:
    ledger = new()
    entry = ledger.reserve(SESSION).forfeit()
    assert entry.amounts == entry.reserved_amounts
    assert ledger.meters[1].spent == entry.amounts.renyi  # type: ignore[union-attr]
    with pytest.raises(xp.UnknownPart), ledger.reserve(SESSION) as spending:
        spending.settle("half")
    assert ledger.meters[1].spent == 2 * entry.amounts.renyi  # type: ignore[union-attr]


def test_small_accounts_have_the_simple_sum_alone_and_say_so() -> None:
    ledger = new()
    small, large = ledger.create_account("small", "0.1", "1e-6"), ledger.create_account("large", "0.9", "1e-6")
    assert [str(reading) for reading in small.meters][1:] == [
        "Rényi prices at order 24.5391: not here, the limit is too small",
        "normal noise (μ²): not here, the limit is too small",
    ]
    assert "not here, the limit is too small" in small.statement()
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


def test_raised_limits_hold_more_at_the_same_order() -> None:
    ledger = new()
    before = [reading.capacity for reading in ledger.meters]
    ledger.raise_limit(epsilon=2, delta="2e-6", by="me", reason="more")
    assert all(new > old for new, old in zip([r.capacity for r in ledger.meters], before, strict=True))  # type: ignore[operator]
    assert ledger.remaining.delta_units == 5 * 10**11
    ledger.verify()


def test_quotes_price_a_plan_on_every_meter() -> None:
    ledger = new()
    quote = ledger.quote([SESSION] * 20 + [NOISE] * 2)
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


def test_keys_replay() -> None:
    ledger = new()
    first = ledger.run(NOISE, on=5, key="k")
    again = ledger.run(NOISE, on=6, key="k")
    assert (again.value, again.replayed) == (first.value, True)
    assert ledger.meters[1].spent == first.entry.amounts.renyi  # type: ignore[union-attr]


def test_closed_ledgers_reserve_nothing() -> None:
    ledger = new()
    ledger.close(by="me", reason="done")
    with pytest.raises(xp.LedgerClosed):
        ledger.reserve(SESSION)
    assert ledger.remaining == Cost(0)
    assert copy.copy(ledger) is ledger


@pytest.mark.parametrize(
    ("accounting", "message"),
    [
        ("rényi", "accounting is 'simple', 'renyi' or RenyiAccounting"),
        (RenyiAccounting(order=1), "an order is above 1"),
        (RenyiAccounting(delta=1e-6), "parts of the limit's δ"),
    ],
)
def test_bad_settings_are_refused(accounting: object, message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=message):
        new(accounting=accounting)


def test_a_request_without_prices_is_refused_where_there_are_meters() -> None:
    ledger, simple = new(), Ledger(1)
    for one, other in ((ledger, simple), (simple, ledger)):
        request = one._request("reserve", SESSION, SESSION, None, None)
        with pytest.raises(xp.InvalidValue, match="prices on the meters of its ledger"):
            other._store.reserve(request, begin=True)


def test_a_simple_ledger_shows_one_meter_and_no_others() -> None:
    ledger = Ledger(1)
    assert [reading.name for reading in ledger.meters] == ["simple sum (ε)"]
    assert ledger.statement().endswith("remaining ε 1")
