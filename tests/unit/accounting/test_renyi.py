"""Orders, prices and their edges."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, floor, log, sqrt

import dp_accounting
import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost.accounting.normal import epsilon_of_zcdp
from expost.accounting.renyi import (
    Prices,
    as_order,
    balanced_slope,
    best_order,
    capacity,
    delta_at,
    epsilon_at,
    laplace_noise,
    normal_noise,
    normal_noise_worth,
    randomized_response,
    sampled_normal_noise,
    steepest_slope,
    tangent_price,
    tangent_prices,
    zcdp,
)
from expost.accounting.renyi.tangent import largest_epsilon
from expost.errors import InvalidValue, UnknownPart
from expost.guarantee import Guarantee
from expost.mechanisms.gaussian import Gaussian

orders = st.fractions(Fraction(101, 100), 10**4, max_denominator=100)
epsilons = st.integers(0, 9 * 10**18).map(lambda units: Fraction(units, 10**12)) | st.integers(0, 10**13).map(
    lambda units: Fraction(units, 10**12)
)


# ---- orders


@pytest.mark.parametrize("order", [1, 0, -3, "0.5", 10**6 + 1])
def test_an_order_is_above_one(order: int | str) -> None:
    with pytest.raises(InvalidValue, match="an order is above 1"):
        as_order(order)


@pytest.mark.parametrize("delta", [0, 1, 2, -1])
def test_a_capacity_needs_a_delta(delta: int) -> None:
    with pytest.raises(InvalidValue, match="needs a δ above 0 and below 1"):
        capacity(2, 1, delta)


def test_a_limit_without_room_says_which_delta_would_do() -> None:
    with pytest.raises(InvalidValue, match=r"a δ of \S+ would do, or account by the basic sum") as error:
        best_order("1e-6", "1e-9")
    assert best_order("1e-6", str(error.value).split("a δ of ")[1].split(" ")[0]) <= 10**6
    with pytest.raises(InvalidValue, match="leaves no room at any order up to 1000000: "):
        best_order(0, "1e-9")


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-6"), (1, "1e-6"), (4, "1e-9"), (8, "1e-6"), (100, "0.1")])
def test_the_best_order_holds_most(epsilon: str | int, delta: str) -> None:
    best = best_order(epsilon, delta)
    worth = capacity(best, epsilon, delta) / best
    assert worth > 0
    for factor in ("0.9", "0.99", "1.01", "1.1"):
        other = 1 + (best - 1) * Fraction(factor)
        assert capacity(other, epsilon, delta) / other <= worth * (1 + Fraction(1, 10**4))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.fractions(Fraction(11, 10), 500, max_denominator=32), st.fractions(0, 20, max_denominator=100))
def test_conversions_agree(order: Fraction, price: Fraction) -> None:
    delta = Fraction(1, 10**6)
    epsilon = epsilon_at(order, price, delta)
    if epsilon:
        assert abs(capacity(order, epsilon, delta) - price) < Fraction(1, 10**30)
        assert abs(delta_at(order, price, epsilon) / delta - 1) < Fraction(1, 10**30)
    assert delta_at(order, price, epsilon + 1) <= delta


def test_conversions_of_extremes() -> None:
    assert delta_at(2, 10**6, 0) == 1
    assert 0 < delta_at(10**6, 0, 10**6) < Fraction(1, 10**100)
    assert epsilon_at(10**6, 0, "0.5") == 0


def test_the_way_back_is_that_of_zcdp() -> None:
    rho, delta = Fraction(1, 10), Fraction(1, 10**6)
    best = min(epsilon_at(order, zcdp(order, rho), delta) for order in range(2, 60))
    assert 0 <= best - epsilon_of_zcdp(rho, delta) < Fraction(1, 100)


# ---- tangent prices


@pytest.mark.slow
@given(epsilons, epsilons, orders)
def test_prices_grow_with_epsilon_and_never_exceed_it(one: Fraction, other: Fraction, order: Fraction) -> None:
    """Also at the largest ε that a ledger holds: nothing overflows."""
    low, high = sorted((one, other))
    prices = tangent_prices(Guarantee({"low": low, "high": high}), order)
    assert 0 <= prices.of("low") <= prices.of("high") == prices.worst
    assert prices.of("low") <= low * 10**12
    assert prices.of("high") <= high * 10**12


@pytest.mark.slow
@given(st.integers(1, 10**13), st.fractions(Fraction(3, 2), 300, max_denominator=16))
def test_the_worst_part_costs_what_randomised_response_costs(units: int, order: Fraction) -> None:
    epsilon = Fraction(units, 10**12)
    price = tangent_prices(Guarantee.uniform(epsilon), order).worst
    least = randomized_response(order, epsilon, 2)
    assert least * 10**12 <= price <= least * 10**12 + 1 + epsilon / (order - 1)


@pytest.mark.parametrize("order", ["1.01", 2, "21.5", 10**6])
def test_prices_at_the_ends(order: str | int) -> None:
    assert tangent_price(order, 1, Fraction(7, 3)) == Fraction(7, 3)
    assert tangent_price(order, balanced_slope(order, 0), 0) == 0
    assert tangent_prices(Guarantee.uniform(0), order).worst == 0
    assert tangent_prices(Guarantee.uniform(9_000_000), order).worst == 9_000_000 * 10**12
    assert tangent_prices(Guarantee.uniform("1e-12"), order).worst == 1


def test_a_part_with_a_third_costs_about_a_ninth() -> None:
    worst = tangent_prices(Guarantee.uniform("0.01"), 21).worst
    prices = tangent_prices(Guarantee({"all": "0.01", "third": Fraction(1, 300)}), 21, expected="third")
    assert prices.of("third") / worst == pytest.approx(1 / 9, rel=0.02)
    assert worst <= prices.of("all") <= 1.2 * worst


@pytest.mark.parametrize("order", [Fraction("1.02"), 2, 21, 5000])
@pytest.mark.parametrize("price", [0, 1, 10**6, 10**11, 10**13, 9 * 10**18])
def test_the_largest_epsilon_of_a_price(price: int, order: Fraction) -> None:
    units = largest_epsilon(order, price)
    assert tangent_prices(Guarantee.uniform(Fraction(units, 10**12)), order).worst <= price <= units
    if units < 9 * 10**18:
        assert tangent_prices(Guarantee.uniform(Fraction(units + 1, 10**12)), order).worst > price


def test_normal_noise_is_never_dearer_than_the_epsilon_it_stands_for() -> None:
    for order in ("1.5", "7.25", "24.5", "1000"):
        for epsilon in ("1e-3", "0.05", "1", "20"):
            worth = normal_noise_worth(order, epsilon, "1e-9")
            noise = Gaussian(epsilon=worth, delta="1e-9", sensitivity=1)
            price = tangent_prices(Guarantee.uniform(epsilon), order).worst
            assert price * 0.99999 - 2 <= noise.renyi_prices(order).worst <= price + 1
    with pytest.raises(InvalidValue, match="too little for Gaussian noise at δ"):
        normal_noise_worth(24, "1e-9", "1e-5")


def test_the_expected_part_sets_the_slope() -> None:
    guarantee = Guarantee({"none": "0.02", "all": "0.06"})
    plain, tuned = tangent_prices(guarantee, 12), tangent_prices(guarantee, 12, expected="none")
    assert tuned.of("none") < plain.of("none")
    assert plain.of("all") <= tuned.of("all") <= 6 * 10**10
    with pytest.raises(UnknownPart):
        tangent_prices(guarantee, 12, expected="other")


def test_slopes_that_are_refused() -> None:
    with pytest.raises(InvalidValue, match="a slope is at least 1"):
        tangent_price(2, "0.9", 1)
    with pytest.raises(InvalidValue, match="too steep for ε 1"):
        tangent_price(8, 2, 1)
    assert steepest_slope(8, 0) == 15
    assert 1 <= steepest_slope(8, 1) < 1 / (1 - exp(-1))


def test_delta_goes_with_the_prices() -> None:
    assert tangent_prices(Guarantee.uniform(1, "1e-6"), 4).delta == 10**12
    assert tangent_prices(Guarantee.uniform(1), 4).delta == 0


# ---- known noise, against the same quantities in many digits, and against dp-accounting


def rdp(event: dp_accounting.DpEvent, order: float) -> float:
    accountant = dp_accounting.rdp.RdpAccountant([order])
    return float(accountant.compose(event)._rdp[0])


@pytest.mark.parametrize("order", [1.5, 2, 4.3, 7.6, 21, 64])
@pytest.mark.parametrize("noise", [0.5, 1.0, 10.0])
def test_prices_are_at_least_those_of_dp_accounting(order: float, noise: float) -> None:
    """Ours are upper bounds: never below theirs (but for their floats), and equal where both are exact."""
    event, ours = dp_accounting.GaussianDpEvent(noise), float(normal_noise(order, noise))
    assert ours == pytest.approx(rdp(event, order), rel=1e-12)
    laplace, epsilon = dp_accounting.LaplaceDpEvent(noise), 1 / Fraction(noise)
    assert float(laplace_noise(order, epsilon, None)) == pytest.approx(rdp(laplace, order), rel=1e-9)
    for steps in (1, 3, 1024):
        assert float(laplace_noise(order, epsilon, steps)) >= rdp(laplace, order) * (1 - 1e-9)


@pytest.mark.parametrize("order", [2, 2.5, 3, 4.3, 8, 21.5, 40])
@pytest.mark.parametrize(("noise", "rate"), [(0.8, 0.01), (1.0, 0.1), (4.0, 0.5), (2.0, 1e-4)])
def test_sampled_prices_agree_with_dp_accounting(order: float, noise: float, rate: float) -> None:
    """Equal at whole orders. Between them divergences grow with the order, and ours stays between both (by quadrature
    it is an upper bound, see below; theirs may exceed their own value at the next whole order)."""
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    ours = float(sampled_normal_noise(order, noise, rate))
    assert rdp(event, floor(order)) * (1 - 1e-6) <= ours <= rdp(event, ceil(order)) * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["1.3", "2", "3.5", "9"])
@pytest.mark.parametrize(("noise", "rate"), [("0.8", "0.05"), ("1", "0.5"), ("3", "0.9")])
def test_sampled_prices_hold_for_both_orders_of_neighbours(order: str, noise: str, rate: str) -> None:
    """By quadrature: E[L^α] for removal and E[L^{1−α}] for addition."""
    sigma, gamma, alpha = mpmath.mpf(noise), mpmath.mpf(rate), mpmath.mpf(order)

    def needed(power: mpmath.mpf) -> float:
        def density(t: mpmath.mpf) -> mpmath.mpf:
            ratio = 1 - gamma + gamma * mpmath.exp((2 * t - 1) / (2 * sigma**2))
            return mpmath.npdf(t, 0, sigma) * ratio**power

        middle = alpha
        moment = mpmath.quad(density, [-30, -10, 0, 5, middle, middle + 10, middle + 40])
        return float(mpmath.log(moment) / (alpha - 1))

    removed, added = needed(alpha), needed(1 - alpha)
    price = float(sampled_normal_noise(order, noise, rate))
    assert added <= removed * (1 + 1e-9)
    assert removed * (1 - 1e-9) <= price
    if "." not in order:
        assert price == pytest.approx(removed, rel=1e-9)


def test_sampled_prices_at_the_ends() -> None:
    assert sampled_normal_noise(5, 2, 0) == 0
    assert sampled_normal_noise(5, 2, 1) == normal_noise(5, 2)
    assert sampled_normal_noise(10**6, 2, "0.1") == normal_noise(10**6, 2)
    assert sampled_normal_noise(5, "0.001", "0.1") == normal_noise(5, "0.001")
    assert 0 < sampled_normal_noise(5000, "0.5", "0.1") <= normal_noise(5000, "0.5")
    with pytest.raises(InvalidValue, match="sampling_rate lies between 0 and 1"):
        sampled_normal_noise(5, 2, 2)
    with pytest.raises(InvalidValue, match="noise_multiplier must be above 0"):
        sampled_normal_noise(5, 0, "0.5")


@pytest.mark.slow
@given(epsilons, orders, st.integers(1, 2**60))
def test_laplace_prices_fall_with_the_number_of_steps(epsilon: Fraction, order: Fraction, steps: int) -> None:
    one, some, continuous = (laplace_noise(order, epsilon, each) for each in (1, steps, None))
    assert 0 <= continuous <= some * (1 + Fraction(1, 10**20)) + Fraction(1, 10**30)
    assert some <= one + Fraction(1, 10**30)
    assert one <= epsilon


@pytest.mark.parametrize("choices", [2, 3, 10, 10**9])
@pytest.mark.parametrize("order", [2, 5.5, 30])
def test_randomised_response(choices: int, order: float) -> None:
    epsilon = 1.5
    lie = 1 / (exp(epsilon) + choices - 1)
    moment = lie * (exp(order * epsilon) + exp((1 - order) * epsilon) + choices - 2)
    found = randomized_response(order, epsilon, choices)
    assert float(found) == pytest.approx(log(moment) / (order - 1), rel=1e-9)
    assert found <= randomized_response(order, epsilon, 2) <= Fraction(3, 2)
    assert randomized_response(order, 9 * 10**6, choices) <= 9 * 10**6


def test_normal_noise_is_zcdp() -> None:
    assert normal_noise(3, 2) == zcdp(3, Fraction(1, 8)) == Fraction(3, 8)
    assert float(normal_noise("2.5", sqrt(2))) == pytest.approx(0.625)


# ---- combining


def test_steps_that_stop() -> None:
    steps = [Fraction(1, 3 * 10**12)] * 6
    assert Prices.stopped(steps, (1, 3, 6)).table == {1: 1, 3: 1, 6: 2}  # rounded up once


def test_blocks_side_by_side() -> None:
    blocks = [Prices({"hit": 3, "miss": 1}), Prices({"hit": 5}, delta=2)]
    assert Prices.parallel(blocks) == Prices({(0, "hit"): 3, (0, "miss"): 1, (1, "hit"): 5}, delta=2)
    assert Prices.parallel([*blocks, Prices(otherwise=4)]).otherwise == 5
    with pytest.raises(InvalidValue, match="at least one block"):
        Prices.parallel([])


def test_relabelled_parts() -> None:
    prices = Prices({0: 1, 1: 4, 2: 9})
    assert prices.post_process({0: "few", 1: {"few", "some"}, 2: "many"}).table == {"few": 4, "some": 4, "many": 9}
    for images in ({0: "a"}, {0: "a", 1: "a", 2: "a", 3: "a"}):
        with pytest.raises(InvalidValue, match="every part of a finite table"):
            prices.post_process(images)
    with pytest.raises(InvalidValue, match="every part of a finite table"):
        Prices(otherwise=1).post_process({})


def test_prices_know_their_parts() -> None:
    assert Prices({0: 3}, otherwise=5).of("other") == 5
    assert Prices.of_guarantee(Guarantee({"a": 1}, "1e-6", otherwise=2)) == Prices({"a": 10**12}, 2 * 10**12, 10**12)
    with pytest.raises(UnknownPart):
        Prices({0: 3}).of(1)
    with pytest.raises(InvalidValue, match="at least one part"):
        Prices({})
