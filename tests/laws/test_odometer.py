"""What a ledger with several meters says was spent: valid for whoever stops when it pays; shortcuts are caught."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import exp

import numpy as np
import pytest

from expost import Cost, Guarantee, Ledger
from expost.accounting.amounts import Amounts
from expost.accounting.capacities import RenyiAccounting
from expost.accounting.odometer import reading
from expost.accounting.renyi.orders import epsilon_at
from expost.accounting.tariff import Tariff, tariff_of_guarantee
from expost.cost import EPSILON_UNITS
from expost.mechanisms import DiscreteGaussian, Gaussian

LIMIT = Cost(1, "0.1")
ACCOUNTING = RenyiAccounting(delta="0.08", gaussian_delta=0)
METERS = ACCOUNTING.under(LIMIT)
HOLDS = METERS.capacity(LIMIT)

Reading = Callable[[int, int], float]
"""The ε that is shown after so many rounds, of which so many leaked."""


def best_stop(step: str, leak: str, most: int, shown: Reading) -> float:
    """The largest Σ (P − e^{ε(v)}·Q)₊ of an adversary who asks rounds of randomised response, and stops at will."""
    size, chance = float(step), float(leak)
    ratio, up = np.exp(size * np.arange(-most - 1, most + 2)), 1 / (1 + exp(size))
    leaks_most = int(HOLDS.delta / 10**18 / chance + 1e-9) if chance else 0

    def asked(value: np.ndarray) -> np.ndarray:
        return np.asarray(up * np.roll(value, -1) + (1 - up) * np.roll(value, 1))

    @cache
    def value(rounds: int, leaks: int) -> np.ndarray:
        found = np.maximum(ratio - exp(shown(rounds, leaks)), 0)
        if rounds == most:
            return np.asarray(found)
        found = np.maximum(found, asked(value(rounds + 1, leaks)))
        if leaks < leaks_most:
            found = np.maximum(found, chance * ratio + (1 - chance) * asked(value(rounds + 1, leaks + 1)))
        return np.asarray(found)

    return float(value(0, 0)[most + 1])


def tariff(step: str, leak: str) -> Tariff:
    return tariff_of_guarantee(Guarantee.uniform(step, leak), METERS.order, interactive=False)


def counted(step: str, leak: str, rounds: int, leaks: int) -> Amounts:
    plain, leaking = tariff(step, "0").worst, tariff(step, leak).worst
    found = plain.times(rounds - leaks).plus(leaking.times(leaks))
    return found._replace(epsilon=int(Fraction(step) * EPSILON_UNITS) * rounds, delta=0)


def fitting(step: str) -> int:
    """How many rounds the ledger admits."""
    epsilon, price = int(Fraction(step) * EPSILON_UNITS), tariff(step, "0").worst.renyi
    return max(LIMIT.epsilon_units // epsilon, HOLDS.renyi // price)


@pytest.mark.parametrize(("step", "leak"), [("0.25", "0"), ("0.25", "0.01"), ("0.1", "0.005"), ("0.5", "0.02")])
def test_stopping_when_it_pays_stays_within_delta(step: str, leak: str) -> None:
    def shown(rounds: int, leaks: int) -> float:
        return reading(METERS, LIMIT, HOLDS, counted(step, leak, rounds, leaks)).epsilon

    assert 0.01 < best_stop(step, leak, fitting(step), shown) <= 0.1


def test_the_best_of_orders_that_share_no_delta_is_caught() -> None:
    step, share = "0.1", Fraction(1, 100)
    orders = [1 + Fraction(5, 4) ** k for k in range(-12, 24)]
    prices = [tariff_of_guarantee(Guarantee.uniform(step), order, interactive=False).renyi[0] for order in orders]

    def best_of(share: Fraction) -> float:
        def shown(rounds: int, leaks: int) -> float:
            sums = (Fraction(rounds * price, EPSILON_UNITS) for price in prices)
            return float(min(epsilon_at(order, total, share) for order, total in zip(orders, sums, strict=True)))

        return best_stop(step, "0", 400, shown)

    assert best_of(share / len(orders)) <= share
    assert best_of(share) > share


def test_a_reading_of_half_the_prices_is_caught() -> None:
    def shown(rounds: int, leaks: int) -> float:
        halved = Amounts(*(each // 2 for each in counted("0.1", "0", rounds, leaks)))
        return reading(METERS, LIMIT, HOLDS, halved).epsilon

    assert best_stop("0.1", "0", fitting("0.1"), shown) > 0.1


# ---- what is read


def gaussian(ratio: str) -> Gaussian:
    return Gaussian(epsilon=ratio, delta="1e-7", sensitivity=1)


def test_a_negligible_gaussian_answer_reads_as_next_to_nothing_and_never_as_nothing() -> None:
    ledger = Ledger(1, "1e-6", accounting="renyi")
    assert ledger.spent == Cost(0)
    release = ledger.run(gaussian("0.0001"), on=1)
    assert 0 < ledger.spent.epsilon < 0.005
    assert ledger.spent.delta == 1e-6
    assert "ε 0" not in str(release)
    assert "charged ρ " in str(release)


class Sampled(DiscreteGaussian):
    """Noise of which the price at one order is known, and no ρ."""

    def concentrated_prices(self) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize("order", [False, True])
def test_a_negligible_discrete_gaussian_answer_does_too(order: bool) -> None:
    """It is ρ-zCDP: αρ at every order, so that it is read at the further ones; also beside other noise."""
    ledger = Ledger(1, "1e-6", accounting="renyi")
    asked = [DiscreteGaussian(rho="5e-9", delta="1e-7", sensitivity=1), gaussian("0.0001")]
    for mechanism in reversed(asked) if order else asked:
        release = ledger.run(mechanism, on=1)
        assert "charged ρ " in str(release)
    ledger.reserve(Guarantee.uniform("0.0001")).settle("done")
    assert 0 < ledger.spent.epsilon < 0.005
    assert ledger.meters[2].is_full  # the Gaussian meter has no room for what is no Gaussian noise
    ledger.run(Sampled(rho="5e-9", delta="1e-7", sensitivity=1), on=1)
    assert ledger.spent.epsilon > 0.4  # of that only the price at the ledger's own order is known


def test_the_price_of_discrete_gaussian_noise_holds_at_the_further_orders() -> None:
    """Rényi divergence of the law on whole numbers from itself moved by one, at most αρ; half of that is caught."""
    rho = 0.05
    steps = np.arange(-100, 101)
    law = np.exp(-rho * steps**2.0)
    law /= law.sum()
    for order in (1.5, 2, 9, 65):
        moved = np.exp(order * np.log(law[1:]) + (1 - order) * np.log(law[:-1]))
        divergence = np.log(moved.sum()) / (order - 1)
        assert order * rho / 2 < divergence <= order * rho * (1 + 1e-9)


def test_readings_grow_with_what_is_charged_and_never_pass_the_limit() -> None:
    ledger, before = Ledger(1, "1e-6", accounting="renyi"), 0.0
    for _ in range(150):
        if ledger.remaining.rho < 0.0003:  # type: ignore[attr-defined]
            break
        ledger.run(gaussian("0.1"), on=1)
        assert min(before, 0.999) < ledger.spent.epsilon <= 1
        before = ledger.spent.epsilon
    assert before > 0.9
    assert ledger.meters[2].spent <= ledger.meters[2].capacity  # type: ignore[operator]


def test_pure_answers_past_the_basic_sum_read_within_the_limit() -> None:
    ledger = Ledger(1, "1e-6", accounting="renyi")
    for _ in range(1500):
        ledger.reserve(Guarantee({"w": "0.01", "u": "0.003"})).settle("u")
    assert ledger.meters[0].spent > 4 * EPSILON_UNITS
    assert 0.5 < ledger.spent.epsilon < 1


def test_what_is_open_adds_up_with_what_is_spent_to_at_most_the_limit() -> None:
    ledger = Ledger(1, "1e-6", accounting="renyi")
    ledger.run(gaussian("0.3"), on=1)
    spent = ledger.spent
    with ledger.reserve(Guarantee.uniform("0.2")) as spending:
        assert ledger.spent == spent
        assert ledger.reserved.epsilon > 0
        assert ledger.spent + ledger.reserved <= ledger.limit
        both = ledger.spent + ledger.reserved
        spending.settle("done")
    assert ledger.spent == both
    assert ledger.reserved == Cost(0)
