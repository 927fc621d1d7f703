"""The prices of one request on every meter, and what accounts hold."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost import Cost, Guarantee
from expost.accounting.amounts import ABSENT, CONCENTRATED, Amounts, capacity_with
from expost.accounting.capacities import (
    LedgerMeters,
    RenyiAccounting,
    affordable,
    meters_of,
)
from expost.accounting.losses import GaussianNoise
from expost.accounting.renyi import Prices, tangent_prices
from expost.accounting.tariff import Tariff, tariff_of_guarantee, tariff_of_mechanism
from expost.errors import InvalidValue, UnknownPart

LIMIT = Cost(1, delta=1e-6)
ORDER = Fraction(22)
INTERACTION = Guarantee({"worst": "0.01", "third": Fraction(1, 300)})


def test_a_pure_guarantee_is_priced_on_every_meter() -> None:
    tariff, prices = tariff_of_guarantee(INTERACTION, ORDER, interactive=False), tangent_prices(INTERACTION, ORDER)
    for part in ("worst", "third"):
        cost = INTERACTION.cost_of(part)
        assert tariff.of(part) == Amounts.of(cost)._replace(renyi=prices.of(part), others=cost.epsilon_units)
    assert tariff.worst == tariff.of("worst")
    assert tariff.best == tariff.of("third")
    with pytest.raises(UnknownPart):
        tariff.of("half")


def test_normal_noise_takes_no_delta_unless_the_basic_sum_is_alone() -> None:
    noise = xp.Gaussian(epsilon=0.1, delta=1e-7, sensitivity=1)
    without = tariff_of_mechanism(noise, ORDER, interactive=False)
    squared = noise.gaussian_prices().worst
    assert without.worst == Amounts(0, 0, noise.renyi_prices(ORDER).worst, squared, 0, 1, 0)
    taking = tariff_of_mechanism(noise, ORDER, interactive=False, basic_alone=True)
    assert taking.worst == Amounts(10**11, 10**11, noise.renyi_prices(ORDER).worst, squared, 0, 0, 0)


def test_concentrated_noise_is_foreign_to_the_gaussian_meter() -> None:
    noise = xp.DiscreteGaussian(rho=0.001, delta=1e-7, sensitivity=1)
    assert tariff_of_mechanism(noise, ORDER, interactive=False).worst[3:] == (2 * 10**9, 0, 1, CONCENTRATED)


def test_steps_are_paid_one_by_one() -> None:
    walk = xp.Iterative(steps=(GaussianNoise(50),) * 20, stops=(5, 20), delta=1e-6, sensitivity=1)
    tariff = tariff_of_mechanism(walk, ORDER, interactive=True)
    first, whole = tariff.of(5), tariff.of(20)
    assert (4 * first.renyi, 4 * first.normal) == (whole.renyi, whole.normal)
    assert tariff.worst == whole
    assert not whole.cost


def test_an_interaction_that_needs_a_delta_costs_its_epsilon_at_every_order() -> None:
    guarantee = Guarantee({"yes": "0.1", "no": "0.02"}, "1e-9")
    talk, once = (tariff_of_guarantee(guarantee, ORDER, interactive=kind) for kind in (True, False))
    assert (talk.of("yes").renyi, talk.of("no").renyi) == (10**11, 2 * 10**10)
    assert talk.takes_delta
    assert once.takes_delta
    assert once.of("no").renyi < talk.of("no").renyi


def test_labels_that_are_not_listed_cost_the_most_that_they_may() -> None:
    class Odd:
        guarantee = Guarantee({"a": 1}, otherwise="0.5")

        def renyi_prices(self, order: object) -> object:
            return Prices({"a": 3, "b": 9}, otherwise=4)

        def gaussian_prices(self) -> None:
            return None

        def concentrated_prices(self) -> None:
            return None

    tariff = tariff_of_mechanism(Odd(), ORDER, interactive=False)  # type: ignore[arg-type]
    assert (tariff.of("a").renyi, tariff.of("b").renyi, tariff.of("c").renyi) == (3, 9, 9)


@pytest.mark.parametrize(("renyi", "normal"), [((1,), None), ((1, -1), None), ((1, 2**62), None), ((1, 2), (1,))])
def test_prices_that_no_ledger_can_count_are_refused(renyi: tuple[int, ...], normal: tuple[int, ...] | None) -> None:
    with pytest.raises(InvalidValue, match="2 parts have 2 prices"):
        Tariff(INTERACTION, True, renyi, normal)


@given(st.permutations(["a", "b", (0, "c"), 7]), st.booleans())
def test_tariffs_do_not_depend_on_the_order_of_parts(parts: list[object], rest: bool) -> None:
    prices = {"a": "0.5", "b": "0.1", (0, "c"): "0.2", 7: "0.3"}
    guarantee = Guarantee({part: prices[part] for part in parts}, otherwise=1 if rest else None)  # type: ignore[index,misc]
    other = Guarantee(prices, otherwise=1 if rest else None)
    one, two = (tariff_of_guarantee(each, ORDER, interactive=False) for each in (guarantee, other))
    assert (one, hash(one)) == (two, hash(two))
    assert one.of(7) == two.of(7)
    assert Tariff.from_json(guarantee, two.to_json()) == pickle.loads(pickle.dumps(one))


# ---- what a limit holds


def test_capacities_grow_with_the_limit_and_are_allowed() -> None:
    meters = RenyiAccounting().under(LIMIT)
    capacity = meters.capacity(LIMIT)
    assert meters.allows(LIMIT, capacity)
    for name in ("delta", "renyi", "normal"):
        assert not meters.allows(LIMIT, capacity._replace(**{name: int(getattr(capacity, name) * 1.0001) + 1}))
    assert not meters.allows(LIMIT, capacity._replace(others=1))
    for limit in (LIMIT, Cost(1, "1.000001e-6"), Cost("1.000000000001", 1e-6), Cost(3, 1e-5)):
        raised = meters.raised(limit, capacity)
        assert all(new >= old for new, old in zip(raised, capacity, strict=True))
        assert meters.allows_raised(limit, raised, capacity)
        for other in (raised.normal - 1, raised.normal + 1, meters.capacity(limit).normal + 1, ABSENT):
            assert not meters.allows_raised(limit, raised._replace(normal=other), capacity)
        assert not meters.allows_raised(limit, raised._replace(renyi=capacity.renyi - 1), capacity)
        assert not meters.allows_raised(limit, raised._replace(renyi=ABSENT), capacity)
        assert not meters.allows_raised(limit, raised._replace(renyi=2 * raised.renyi), capacity)
        assert not meters.allows_raised(limit, raised._replace(delta=2 * raised.delta), capacity)
        assert LedgerMeters.from_json(meters.to_json()) == meters


@given(st.integers(10**10, 10**13), st.integers(0, 10**13), st.integers(0, 3 * 10**12))
def test_shares_never_exceed_delta_and_never_fall(delta: int, more: int, odd: int) -> None:
    meters = LedgerMeters(ORDER, 10**12 + odd, (10**12 + odd) // 3, (10**12 + odd) // 3, 0)
    for units in (delta, delta + more):
        limit = Cost.of_units(10**12, units)
        shares = [meters._share(limit, part) for part in (meters.renyi, meters.gaussian)]
        assert sum(shares) + meters._rounds(limit, 1, 1) <= units
    small, large = (meters._rounds(Cost.of_units(10**12, units), 1, 1) for units in (delta, delta + more))
    assert small <= large


def test_a_limit_without_room_leaves_the_basic_sum_for_good() -> None:
    meters, small = RenyiAccounting().under(LIMIT), Cost("0.1", "1e-7")
    capacity = meters.capacity(small)
    assert capacity == capacity_with(small, 10**11, ABSENT, ABSENT, 0)
    assert meters.raised(LIMIT, capacity) == capacity_with(LIMIT, 10**12, ABSENT, ABSENT, 0)
    assert meters.allows(LIMIT, capacity_with(LIMIT, 10**12, ABSENT, ABSENT, 0))
    assert not meters.allows(LIMIT, capacity_with(Cost(2), 10**12, ABSENT, ABSENT, 0))
    assert not meters.allows(small, capacity_with(small, 10**11, 0, ABSENT, 0))
    assert not meters.allows(Cost(1), capacity_with(Cost(1), 0, 5, ABSENT, 0))
    assert not meters.allows(Cost(1), capacity_with(Cost(1), 0, ABSENT, 5, 0))


def test_affordable_is_the_most_of_any_meter() -> None:
    meters = RenyiAccounting(order=22).under(LIMIT)
    capacity = Amounts(7, 0, 10**9, 8 * 10**9, 5)
    assert affordable(meters, capacity, Amounts()).epsilon > 10**9
    assert affordable(meters, capacity, Amounts(8, renyi=2 * 10**9)).epsilon == 5
    assert affordable(meters, capacity, Amounts(renyi=2 * 10**9, others=6)).epsilon == 7
    assert affordable(meters, capacity, Amounts(unpriced=1, foreign=1)).rho == 10**9 // 22
    assert affordable(meters, capacity, Amounts()).rho == 4 * 10**9
    full = affordable(meters, capacity, Amounts(8, renyi=2 * 10**9, foreign=1))
    assert (full.epsilon, full.rho) == (0, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: meters_of("renyi", Cost(1)), "needs a δ, and the limit is ε 1: give delta= as well"),
        (lambda: RenyiAccounting(order=1).under(LIMIT), "an order is above 1"),
        (lambda: RenyiAccounting(order=5).under(LIMIT), "no room for Rényi prices at order 5: leave order out"),
        (lambda: RenyiAccounting(delta=1e-6).under(LIMIT), r"shares .* are parts of the limit's δ 1e-06"),
        (lambda: RenyiAccounting(delta=2e-6).under(LIMIT), r"shares .* are parts of the limit's δ 1e-06"),
        (lambda: RenyiAccounting(delta=0).under(LIMIT), r"shares .* are parts of the limit's δ 1e-06"),
        (lambda: RenyiAccounting(delta=5e-7, gaussian_delta=6e-7).under(LIMIT), "both together at most it"),
        (lambda: RenyiAccounting(others=1).under(LIMIT), "others is below the limit's ε 1"),
        (lambda: RenyiAccounting().under(Cost("1e-6", "1e-9")), "a δ of 5.77431985392e-7 would do"),
        (lambda: RenyiAccounting().under(Cost("0", "1e-7")), r"a δ of 1\.56\d+e-6 would do"),
        (lambda: meters_of("zcdp", LIMIT), "accounting is 'basic', 'renyi' or RenyiAccounting"),
        (lambda: meters_of(None, LIMIT), "accounting is 'basic', 'renyi' or RenyiAccounting"),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()  # type: ignore[operator]


def test_the_delta_that_would_do_does() -> None:
    assert RenyiAccounting().under(Cost("1e-6", "5.77431985392e-7")).order == 10**6


def test_settings_may_be_given() -> None:
    meters = RenyiAccounting(order="20.5", delta=5e-7, others="0.2").under(LIMIT)
    assert meters == LedgerMeters(Fraction(41, 2), 10**12, 5 * 10**11, 333333333333, 2 * 10**11)
    assert meters_of("basic", LIMIT) is None
    assert meters_of(RenyiAccounting(), LIMIT) == meters_of("renyi", LIMIT)
    assert RenyiAccounting(gaussian_delta=0).under(LIMIT).capacity(LIMIT).normal == ABSENT
