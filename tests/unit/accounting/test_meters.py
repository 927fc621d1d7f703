"""Meters, and the filter that asks for room on one of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from pathlib import Path
from statistics import NormalDist

import pytest

from expost.accounting.filters import CONT, HALT
from expost.accounting.metering import MeterFilter, MeterSum
from expost.accounting.meters import Affordable, BasicMeter, GaussianMeter, Meter, RenyiMeter, Round
from expost.accounting.normal import epsilon_of_zcdp
from expost.accounting.renyi import Prices, normal_noise, tangent_prices, zcdp
from expost.cost import Cost
from expost.errors import InvalidValue
from expost.guarantee import Guarantee


@dataclass(frozen=True)
class Pure:
    """A mechanism that is known by its guarantee."""

    guarantee: Guarantee

    def renyi_prices(self, order: Fraction) -> Prices:
        return tangent_prices(self.guarantee, order)

    def gaussian_prices(self) -> Prices | None:
        return None


@dataclass(frozen=True)
class Normal:
    """Gaussian noise, whose δ is not needed at orders."""

    noise_multiplier: Fraction

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(1, "1e-7")

    def renyi_prices(self, order: Fraction) -> Prices:
        return Prices.uniform(normal_noise(order, self.noise_multiplier))

    def gaussian_prices(self) -> Prices | None:
        return Prices.uniform(1 / self.noise_multiplier**2)


@dataclass(frozen=True)
class Concentrated:
    """ρ-zCDP, not Gaussian noise."""

    rho: Fraction

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(1, "1e-7")

    def renyi_prices(self, order: Fraction) -> Prices:
        return Prices.uniform(zcdp(order, self.rho))

    def gaussian_prices(self) -> Prices | None:
        return None


LIMIT = Cost(1, delta=1e-6)
INTERACTION = Round(Pure(Guarantee({"worst": "0.01", "third": Fraction(1, 300)})))


def rounds_that_fit(rule: MeterFilter, asked: Round, part: str) -> int:
    """By doubling and halving; what was charged is a multiple of one price."""

    def fits(times: int) -> bool:
        price = rule.price(asked, part)
        state = rule.start()
        for bit in f"{times:b}":
            state = state + state
            state = state + price if bit == "1" else state
        return rule.decide(state, asked) is CONT

    high = 1
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return high


def test_interactions_that_fit_with_default_meters() -> None:
    """Worst case 0.01, a third of it realised: against the basic sum, and against all of δ at one order."""
    basic = rounds_that_fit(MeterFilter(LIMIT, (BasicMeter.of(1),)), INTERACTION, "third")
    alone = rounds_that_fit(MeterFilter(LIMIT, (RenyiMeter.of(1, "1e-6"),)), INTERACTION, "third")
    default = rounds_that_fit(MeterFilter.of(LIMIT), INTERACTION, "third")
    assert basic == 297  # 1/300 is rounded up
    assert 3800 < alone < 4166
    assert default > 10 * basic
    assert default > 5 * 491


FIT = [
    ("0.09", 11, 11, 31, 28, 31),
    ("0.03", 33, 57, 98, 361, 314),
    ("0.009", 111, 605, 331, 4827, 4245),
    ("0.0009", 1111, 60141, 3331, 534392, 474742),
]
"""The table of ``docs/theory-renyi.md``: the worst case, of which a third comes out, and rounds that fit."""


@pytest.mark.parametrize(("worst", "classic", "rdp", "basic", "order", "default"), FIT)
def test_the_table_of_what_fits(worst: str, classic: int, rdp: int, basic: int, order: int, default: int) -> None:
    asked = Round(Pure(Guarantee({"worst": worst, "third": Fraction(worst) / 3})))
    uniform = Round(Pure(Guarantee.uniform(worst)))
    sums, one = MeterFilter(LIMIT, (BasicMeter.of(1),)), MeterFilter(LIMIT, (RenyiMeter.of(1, "1e-6"),))
    orders = [MeterFilter(LIMIT, (RenyiMeter.of(1, "1e-6", order=o),)) for o in (16, 18, 20, 22, 24, 28, 40, 100, 1000)]
    assert rounds_that_fit(sums, uniform, "worst") == classic
    assert max(rounds_that_fit(rule, uniform, "worst") for rule in orders) == rdp
    fit = [rounds_that_fit(rule, asked, "third") for rule in (sums, one, MeterFilter.of(LIMIT))]
    assert fit == [basic, order, default]
    page = (Path(__file__).parents[3] / "docs" / "theory-renyi.md").read_text()
    assert f"| {worst} | {classic:,} | {rdp:,} | {basic:,} | {order:,} | {default:,} |" in page


def test_normal_noise_under_default_meters() -> None:
    """1,000 counts take at most 0.97 of the noise that zCDP asks for under the same (ε, δ)."""
    rule = MeterFilter.of(LIMIT)
    low, high = Fraction(1, 1000), Fraction(1)
    while high - low > Fraction(1, 10**6):
        rho = (low + high) / 2
        low, high = (rho, high) if epsilon_of_zcdp(rho, LIMIT.exact_delta) <= 1 else (low, rho)
    noise = Fraction(sqrt(1000 / (2 * float(low)))) * Fraction(97, 100)
    assert rounds_that_fit(rule, Round(Normal(noise), delta=False), "released") >= 1000


def test_one_meter_with_room_suffices_and_all_are_charged() -> None:
    rule = MeterFilter.of(LIMIT)
    large, state = Round(Pure(Guarantee.uniform("0.9"))), rule.start()
    assert rule.decide(state, large) is CONT
    state = rule.charge(state, large, "released")
    assert state.amounts[1].remaining(rule.meters[1].capacity) is None  # too much for the order, not for the sum
    assert rule.decide(state, Round(Pure(Guarantee.uniform("0.1")))) is CONT
    assert rule.decide(state, Round(Pure(Guarantee.uniform("0.100000000001")))) is HALT


@pytest.mark.slow
def test_what_is_affordable_is_admitted_and_one_unit_more_is_not() -> None:
    rule = MeterFilter.of(LIMIT)
    state = rule.start()
    for _ in range(2000):
        state = rule.charge(state, INTERACTION, "third")
    found = rule.affordable(state)
    for more, decision in ((0, CONT), (1, HALT)):
        epsilon = Fraction(found.epsilon + more, 10**12)
        assert rule.decide(state, Round(Pure(Guarantee.uniform(epsilon)))) is decision
    rho = Fraction(found.rho, 10**12)
    assert rule.decide(state, Round(Concentrated(rho), delta=False)) is CONT
    assert rule.decide(state, Round(Concentrated(rho + Fraction(1, 10**12)), delta=False)) is HALT


def test_nothing_is_affordable_when_all_meters_are_full() -> None:
    rule = MeterFilter(LIMIT, (BasicMeter.of(1),))
    assert rule.affordable(rule.start()) == Affordable(10**12, 0)
    full = rule.charge(rule.start(), Round(Normal(Fraction(50)), delta=False), "released")
    assert rule.affordable(full) == Affordable(0, 0)
    gaussian = MeterFilter(LIMIT, (GaussianMeter((5, 8), 0),))
    assert gaussian.affordable(gaussian.start()) == Affordable(5, 4)


def test_a_reservation_is_settled_or_voided() -> None:
    rule = MeterFilter.of(LIMIT)
    start = rule.start()
    reserved = start + rule.worst(INTERACTION)
    settled = reserved - rule.worst(INTERACTION) + rule.price(INTERACTION, "third")
    assert settled == rule.charge(start, INTERACTION, "third")
    assert reserved - rule.worst(INTERACTION) == start
    assert all(a.units <= b.units for a, b in zip(settled.amounts, reserved.amounts, strict=True))


def test_a_round_without_a_price_can_be_voided() -> None:
    """An infinite price is counted, not added up."""
    rule = MeterFilter.of(LIMIT)
    normal, pure = Round(Normal(Fraction(50)), delta=False), Round(Pure(Guarantee.uniform(1)))
    reserved = rule.start() + rule.worst(normal)
    assert reserved.amounts[0] == MeterSum((0,), unpriced=1)
    assert rule.decide(reserved, pure) is HALT
    assert rule.decide(reserved - rule.worst(normal), pure) is CONT


def test_delta_is_charged_whatever_comes_out() -> None:
    rule = MeterFilter.of(Cost(1, delta="4e-6"))
    assert rule.rounds_delta == 10**12
    risky = Round(Pure(Guarantee({"yes": "0.1", "no": 0}, "1e-6")))
    state = rule.charge(rule.start(), risky, "no")
    assert state.delta == 10**12
    assert rule.decide(state, risky) is HALT
    assert rule.decide(state, INTERACTION) is CONT


def test_interactions_whose_prices_need_a_delta_cost_their_epsilon() -> None:
    guarantee = Guarantee({"yes": "0.1", "no": "0.02"}, "1e-9")
    talk = Round(Pure(guarantee), interactive=True).renyi_prices(Fraction(20))
    assert (talk.of("yes"), talk.of("no")) == (10**11, 2 * 10**10)
    assert Round(Pure(guarantee)).renyi_prices(Fraction(20)).of("no") < talk.of("no")
    rule = MeterFilter.of(LIMIT)
    assert rule.decide(rule.start(), Round(INTERACTION.mechanism, interactive=True)) is CONT
    assert rule.decide(rule.start(), Round(Normal(Fraction(50)), interactive=True)) is CONT


def test_prices_that_need_their_delta_are_not_run_without() -> None:
    rule = MeterFilter.of(LIMIT)
    with pytest.raises(InvalidValue, match="hold only with its δ"):
        rule.decide(rule.start(), Round(Pure(Guarantee.uniform("0.1", "1e-9")), delta=False))


def test_a_round_that_no_meter_prices() -> None:
    rule = MeterFilter(LIMIT, (BasicMeter.of(1), GaussianMeter.of(1, "5e-7", "0.1")))
    assert rule.decide(rule.start(), Round(Pure(Guarantee.uniform("0.1", "1e-9")), delta=False)) is HALT


@pytest.mark.parametrize("limit", [Cost(1), Cost("1e-9", "1e-9"), Cost(0, "1e-6"), Cost(1, "1e-18")])
def test_a_limit_without_room_for_others_leaves_the_basic_sum(limit: Cost) -> None:
    rule = MeterFilter.of(limit)
    assert rule.meters[0] == BasicMeter((limit.epsilon_units,))
    assert not any(isinstance(meter, RenyiMeter) for meter in rule.meters)


def test_a_large_epsilon_leaves_the_gaussian_meter_out() -> None:
    assert [type(meter) for meter in MeterFilter.of(Cost(2000, "1e-6")).meters] == [BasicMeter, RenyiMeter]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeterFilter(LIMIT, ()), "at least one meter"),
        (lambda: MeterFilter(LIMIT, (RenyiMeter.of(1, "2e-6"),)), "exceed the limit's δ"),
        (lambda: MeterFilter.of(1), "limit is a Cost"),
        (lambda: RenyiMeter.of(1, "1e-6", order=5), "leaves no room at order 5"),
        (lambda: RenyiMeter.of(1, "1e-6", order=1), "an order is above 1"),
        (lambda: GaussianMeter.of(1, "1e-6", others=1), "others is below ε 1"),
    ],
)
def test_meters_that_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()  # type: ignore[operator]


def test_several_orders_each_with_a_share() -> None:
    meters: tuple[Meter, ...] = (RenyiMeter.of(1, "5e-7"), RenyiMeter.of(1, "5e-7", order=60))
    rule = MeterFilter(LIMIT, meters)
    assert rule.rounds_delta == 0
    few, many = Round(Pure(Guarantee.uniform("0.05"))), Round(Pure(Guarantee.uniform("0.01")))
    either = [rounds_that_fit(rule, asked, "released") for asked in (few, many)]
    alone = [[rounds_that_fit(MeterFilter(LIMIT, (m,)), asked, "released") for asked in (few, many)] for m in meters]
    assert either == [max(pair) for pair in zip(*alone, strict=True)]


# ---- the Gaussian meter: a randomised response and Gaussian noise beside each other, exactly


def normal_delta(mu: float, epsilon: float) -> float:
    """The least δ of N(μ, 1) against N(0, 1)."""
    phi = NormalDist().cdf
    return phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def whole_delta(epsilon: float, response: float, mu: float) -> float:
    """The least δ of a randomised response and then Gaussian noise."""
    true = exp(response) / (1 + exp(response))
    return true * normal_delta(mu, epsilon - response) + (1 - true) * normal_delta(mu, epsilon + response)


@pytest.mark.parametrize("others", [0.05, 0.2, 0.7])
@pytest.mark.parametrize("delta", ["1e-2", "1e-6"])
def test_the_gaussian_meter_holds_beside_pure_answers(others: float, delta: str) -> None:
    meter = GaussianMeter.of(1, delta, others)
    mu = sqrt(meter.capacity[1] / 10**12)
    found = whole_delta(1, others, mu)
    assert found <= float(delta) * (1 + 1e-9)
    assert found > float(delta) / 3


def test_a_gaussian_meter_that_forgets_the_pure_answers_is_caught() -> None:
    mu = sqrt(GaussianMeter.of(1, "1e-4").capacity[1] / 10**12)
    assert normal_delta(mu, 1) == pytest.approx(1e-4, rel=1e-6)
    assert whole_delta(1, 0.2, mu) > 2e-4


def test_what_is_not_normal_noise_needs_its_own_part_of_epsilon() -> None:
    rule = MeterFilter(LIMIT, (GaussianMeter.of(1, "1e-6", "0.2"),))
    pure, normal = Round(Pure(Guarantee({"yes": "0.2", "no": "0.1"}))), Round(Normal(Fraction(20)), delta=False)
    state = rule.charge(rule.start(), pure, "no")
    assert rule.decide(state, pure) is HALT
    assert rule.decide(rule.charge(state, normal, "released"), normal) is CONT
    assert rule.price(normal, "released").amounts == (MeterSum((0, 2_500_000_000)),)
