"""Rényi prices against every law with the given ratios, meters against the best adversary; wrong rules are caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import exp, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from expost import Cost, Guarantee, bracket
from expost.accounting.filters import CONT
from expost.accounting.metering import Metered, MeterFilter
from expost.accounting.meters import BasicMeter, RenyiMeter, Round
from expost.accounting.renyi import (
    Prices,
    balanced_slope,
    laplace_noise,
    steepest_slope,
    tangent_prices,
    zcdp,
)

pytestmark = pytest.mark.slow


# ---- the linear programme: the largest Σ Q·x^α·w over all laws with Σ Q = Σ Q·x = 1 and x within each part's interval


def largest(ends: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """The optimum, from pairs (x, x^α·w) at both ends of each part's interval.

    x^α is convex, so mass inside an interval moves to its ends; two equations leave at most two points with mass.
    """
    below = [(x, value) for x, value in ends if x <= 1]
    above = [(x, value) for x, value in ends if x >= 1]
    values = [value for x, value in ends if x == 1]
    for (x, low), (z, high) in ((a, b) for a in below for b in above if a[0] < b[0]):
        values.append(((z - 1) * low + (1 - x) * high) / (z - x))
    return max(values)


def ends_of(ratio: Fraction, order: int, weight: Fraction) -> list[tuple[Fraction, Fraction]]:
    return [(x, x**order * weight) for x in (1 / ratio, ratio)]


def exact_weight(ratio: Fraction, order: int, slope: Fraction) -> Fraction:
    """e^{−(α−1)r} of the tangent price, as a rational number."""
    return min((1 + slope * (x - 1)) / x**order for x in (1 / ratio, ratio))


ratios = st.lists(st.fractions(1, 20, max_denominator=12), min_size=1, max_size=4)
orders = st.integers(2, 12)


@pytest.mark.slow
@given(ratios, orders, st.fractions(0, 1, max_denominator=60))
def test_no_law_passes_tangent_prices(parts: list[Fraction], order: int, share: Fraction) -> None:
    """In rationals, for every slope that the lemma allows."""
    most = max(parts)
    assume(share < 1)
    slope = share * (most / (most - 1) if most > 1 else 2 * order)
    ends = [end for ratio in parts for end in ends_of(ratio, order, exact_weight(ratio, order, slope))]
    assert largest(ends) <= 1


def test_the_linear_programme_is_tight_and_notices_less() -> None:
    ratio, order = Fraction(3), 4
    slope = (ratio ** (2 * order) - 1) / ((ratio - 1) * (1 + ratio ** (2 * order - 1)))
    weight = exact_weight(ratio, order, slope)
    assert largest(ends_of(ratio, order, weight)) == 1
    assert largest(ends_of(ratio, order, weight * Fraction(1001, 1000))) > 1


def optimum(prices: Prices, guarantee: Guarantee, order: Fraction) -> Fraction:
    """The same for the prices of the library, with certified exponentials: exact to fifty digits."""
    ends = []
    for part in guarantee.parts:
        epsilon, price = guarantee.cost_of(part).exact_epsilon, Fraction(prices.of(part), 10**12)
        ends += [
            (bracket.exp(x, 60).lower, bracket.exp(order * x - (order - 1) * price, 60).upper)
            for x in (-epsilon, epsilon)
        ]
    return largest(ends)


SLACK = Fraction(1, 10**50)
epsilons = st.lists(st.integers(0, 5 * 10**12), min_size=1, max_size=4).map(
    lambda units: Guarantee({part: Fraction(each, 10**12) for part, each in enumerate(units)})
)
any_order = st.fractions(Fraction(11, 10), 60, max_denominator=64)


@pytest.mark.slow
@given(epsilons, any_order, st.integers(0, 3))
def test_no_law_passes_the_prices_of_the_library(guarantee: Guarantee, order: Fraction, part: int) -> None:
    expected = part if part in guarantee.parts else None
    prices = tangent_prices(guarantee, order, expected=expected)
    assert optimum(prices, guarantee, order) <= 1 + SLACK
    for each in guarantee.parts:
        assert 0 <= prices.of(each) <= guarantee.cost_of(each).epsilon_units


@pytest.mark.slow
@given(st.integers(10**10, 5 * 10**12), any_order)
def test_a_price_is_hardly_more_than_needed(units: int, order: Fraction) -> None:
    """With ten units of 10⁻¹² less, randomised response passes it."""
    guarantee = Guarantee({0: Fraction(units, 10**12)})
    price = tangent_prices(guarantee, order).of(0)
    assume(price > 10)
    assert optimum(Prices({0: price - 10}), guarantee, order) > 1


# ---- wrong rules


def test_the_cheaper_of_two_slopes_part_by_part_is_caught() -> None:
    order, parts = Fraction("7.6"), Guarantee({0: "0.0856", 1: "0.1636"})
    both = [tangent_prices(parts, order, slope=slope) for slope in ("4.716", "6.469")]
    assert all(optimum(prices, parts, order) <= 1 + SLACK for prices in both)
    cheaper = Prices({part: min(prices.of(part) for prices in both) for part in parts.parts})
    assert optimum(cheaper, parts, order) > Fraction("1.04")


def test_a_slope_chosen_after_the_output_is_caught() -> None:
    order, parts = Fraction("7.6"), Guarantee({0: "0.1", 1: "0.15"})
    after = {p: tangent_prices(parts, order, slope=_slope(order, parts, p)).of(p) for p in parts.parts}
    assert optimum(Prices(after), parts, order) > Fraction("1.03")


def _slope(order: Fraction, guarantee: Guarantee, part: int) -> Fraction:
    best = balanced_slope(order, guarantee.cost_of(part).exact_epsilon)
    return min(best, steepest_slope(order, guarantee.worst_case.exact_epsilon))


def test_a_price_from_one_end_only_is_caught() -> None:
    order, ratio, slope = 6, Fraction(11, 10), Fraction(6)
    upper = (1 + slope * (ratio - 1)) / ratio**order
    assert largest(ends_of(ratio, order, exact_weight(ratio, order, slope))) <= 1
    assert upper > exact_weight(ratio, order, slope)
    assert largest(ends_of(ratio, order, upper)) > 1


def moment(p: Sequence[Fraction], q: Sequence[Fraction], order: int) -> Fraction:
    """Σ Q·(P/Q)^α."""
    return sum((b * (a / b) ** order for a, b in zip(p, q, strict=True) if b), Fraction(0))


def geometric(at: int, base: Fraction, far: int = 200) -> list[Fraction]:
    """Discrete Laplace noise around ``at``, but for tails that are far too small to matter."""
    return [(1 - base) / (1 + base) * base ** abs(k - at) for k in range(-far, far + 1)]


def test_the_price_of_continuous_laplace_noise_is_caught_for_discrete_noise() -> None:
    base = Fraction(1, 3)  # ε = ln 3
    needed = log(moment(geometric(1, base), geometric(0, base), 2))
    assert needed == pytest.approx(float(laplace_noise(2, Fraction(log(3)), 1)), abs=1e-12)
    assert needed > float(laplace_noise(2, Fraction(log(3)), None)) + 0.1


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
@pytest.mark.parametrize("order", [2, 3, 9])
def test_the_price_of_discrete_laplace_noise_is_its_own_divergence(steps: int, order: int) -> None:
    base = Fraction(3, 5)
    needed = log(moment(geometric(steps, base), geometric(0, base), order)) / (order - 1)
    assert needed == pytest.approx(float(laplace_noise(order, Fraction(steps * -log(0.6)), steps)), abs=1e-11)


def test_discrete_laplace_noise_costs_most_when_one_number_moves_alone() -> None:
    base, order = Fraction(1, 2), 3
    alone = moment(geometric(4, base), geometric(0, base), order)
    for split in ((1, 3), (2, 2), (1, 1, 2), (1, 1, 1, 1)):
        together = Fraction(1)
        for moved in split:
            together *= moment(geometric(moved, base), geometric(0, base), order)
        assert together <= alone


def test_twice_the_price_for_an_exchanged_record_is_caught() -> None:
    base, order = Fraction(1, 2), 4
    once, twice = (log(moment(geometric(k, base), geometric(0, base), order)) / (order - 1) for k in (1, 2))
    assert twice > 2 * once + 0.01
    assert zcdp(order, 4 * Fraction(1, 8)) == 4 * zcdp(order, Fraction(1, 8)) > 2 * zcdp(order, Fraction(1, 8))
    guarantee = Guarantee.uniform(Fraction(log(2)), neighbours="add-remove")
    exchanged = tangent_prices(guarantee.under("substitute"), order).of("released")
    assert exchanged / 10**12 >= twice


# ---- δ > 0


def trimmed(
    p: list[Fraction], q: list[Fraction], ratio: Fraction, trim: bool = True, balance: bool = True
) -> tuple[list[Fraction], list[Fraction]]:
    """The measures of the lemma, or those of somebody who leaves out a step of it."""
    cut = [min(a, ratio * b) for a, b in zip(p, q, strict=True)]
    other = [min(b, ratio * a) if trim else b for a, b in zip(p, q, strict=True)]
    excess = sum(cut) - sum(other)
    for k, (a, b) in enumerate(zip(cut, other, strict=True)):
        if balance and excess > 0 and a > b:
            less = min(excess, a - b)
            cut[k], excess = a - less, excess - less
    return cut, other


def loss(p: list[Fraction], q: list[Fraction], ratio: Fraction) -> Fraction:
    return sum((max(a - ratio * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


masses = st.lists(st.integers(0, 12), min_size=4, max_size=4).filter(any)


@pytest.mark.slow
@given(masses, masses, st.fractions(1, 5, max_denominator=10), orders, st.fractions(0, 1, max_denominator=20))
def test_trimmed_measures_keep_the_prices(
    p: list[int], q: list[int], ratio: Fraction, order: int, share: Fraction
) -> None:
    first, second = ([Fraction(mass, sum(law)) for mass in law] for law in (p, q))
    delta = max(loss(first, second, ratio), loss(second, first, ratio))
    assume(share < 1)
    slope = share * (ratio / (ratio - 1) if ratio > 1 else 2 * order)
    cut, other = trimmed(first, second, ratio)
    assert sum(first) - sum(cut) <= delta
    assert all(a <= ratio * b and b <= ratio * a for a, b in zip(cut, other, strict=True))
    assert moment(cut, other, order) * exact_weight(ratio, order, slope) <= 1


@pytest.mark.parametrize("left_out", [{"trim": False, "balance": False}, {"trim": True, "balance": False}])
def test_leaving_out_a_step_of_trimming_is_caught(left_out: dict[str, bool]) -> None:
    """The second law has a tenth where the first has nothing: δ = 1/10 at ratio 10/9, which is no loss of the first."""
    p, q, ratio, order = [Fraction(1), Fraction(0)], [Fraction(9, 10), Fraction(1, 10)], Fraction(10, 9), 10
    slope = (ratio ** (2 * order) - 1) / ((ratio - 1) * (1 + ratio ** (2 * order - 1)))
    weight = exact_weight(ratio, order, slope)
    assert moment(*trimmed(p, q, ratio), order) * weight <= 1
    assert moment(*trimmed(p, q, ratio, **left_out), order) * weight > Fraction("1.3")


@dataclass(frozen=True)
class Toy:
    """A mechanism of which meters see the guarantee only."""

    guarantee: Guarantee

    def renyi_prices(self, order: Fraction) -> Prices:
        return tangent_prices(self.guarantee, order)

    def gaussian_prices(self) -> Prices | None:
        return None


def revealed(refund: bool) -> Fraction:
    """How likely a mechanism that reveals the database with probability ¼ does so under δ = ¼, run while it fits."""
    rule = MeterFilter(Cost(1, "0.25"), (BasicMeter.of(1),))
    asked, state, hidden = Round(Toy(Guarantee({"nothing": 0, "revealed": 0}, "0.25"))), rule.start(), Fraction(1)
    for _ in range(5):
        if rule.decide(state, asked) is CONT:
            hidden *= Fraction(3, 4)
            state = rule.charge(state, asked, "nothing")
            state = Metered(0, state.amounts) if refund else state
    return 1 - hidden


def test_a_refund_of_delta_is_caught() -> None:
    assert revealed(refund=False) == Fraction(1, 4)
    assert revealed(refund=True) > Fraction(3, 4)


# ---- the game: the best adversary against the filter, by dynamic programming on a lattice of likelihood ratios


@dataclass(frozen=True)
class Lattice:
    """Rounds with parts of ``step`` and ``times``·step, of step alone, or of step that ``leak`` at a chance."""

    rule: MeterFilter
    step: str
    times: int
    leak: str = "0"

    @property
    def rounds(self) -> list[tuple[Round, dict[int, int]]]:
        """Each with the lattice distance of its parts."""
        small, large = Fraction(self.step), self.times * Fraction(self.step)
        return [
            (Round(Toy(Guarantee({0: small, 1: large}))), {0: 1, 1: self.times}),
            (Round(Toy(Guarantee({2: small}))), {2: 1}),
            *([(Round(Toy(Guarantee({3: small}, self.leak))), {3: 1})] if self.leak != "0" else []),
        ]

    def reached(self, cut: Fraction = Fraction(1)) -> float:
        """The largest Σ (P − e^ε·Q)₊ of any adaptive way to play, with Rényi prices cut to this share."""
        step, rule = float(self.step), self.rule
        prices = {
            part: [int(a.units[0] * (cut if k else 1)) for k, a in enumerate(rule.price(asked, part).amounts)]
            for asked, distances in self.rounds
            for part in distances
        }
        room = [meter.capacity[0] for meter in rule.meters]
        far = 600

        @cache
        def value(counts: tuple[int, ...]) -> np.ndarray:
            ratio = np.exp(step * np.arange(-far, far + 1))
            best = np.maximum(ratio - exp(rule.limit.epsilon), 0)
            spent = [sum(n * prices[p][k] for p, n in enumerate(counts) if n) for k in range(len(room))]
            for asked, distances in self.rounds:
                worst = [max(prices[p][k] for p in distances) for k in range(len(room))]
                leaks = asked.delta_units
                if not any(a + b <= c for a, b, c in zip(spent, worst, room, strict=True)):
                    continue
                if leaks and (counts[3] + 1) * leaks > rule.rounds_delta:
                    continue
                for down, below in distances.items():
                    for up, above in distances.items():
                        x, z = exp(-step * below), exp(step * above)
                        low = _moved(value(_more(counts, down)), -below)
                        high = _moved(value(_more(counts, up)), above)
                        found = ((z - 1) * low + (1 - x) * high) / (z - x)
                        shown = leaks / 10**18  # of the first law, where the second has nothing
                        best = np.maximum(best, shown * ratio + (1 - shown) * found)
            return np.asarray(best)

        return float(value((0, 0, 0, 0))[far])


def _more(counts: tuple[int, ...], part: int) -> tuple[int, ...]:
    return tuple(n + (k == part) for k, n in enumerate(counts))


def _moved(values: np.ndarray, by: int) -> np.ndarray:
    """values[j + by], the last ones repeated; nobody gets there."""
    return np.roll(values, -by) if by else values


def two_meters(epsilon: str, delta: str) -> MeterFilter:
    return MeterFilter(Cost(epsilon, delta), (BasicMeter.of(epsilon), RenyiMeter.of(epsilon, delta)))


GAMES = [("1", "0.05", "0.25", 2), ("0.8", "0.1", "0.2", 3), ("2", "0.1", "0.4", 2)]


@pytest.mark.parametrize(("epsilon", "delta", "step", "times"), GAMES)
def test_the_best_adversary_stays_within_delta(epsilon: str, delta: str, step: str, times: int) -> None:
    lattice = Lattice(two_meters(epsilon, delta), step, times)
    assert float(delta) / 3 < lattice.reached() <= float(delta)


def test_the_best_adversary_stays_within_delta_with_rounds_that_leak() -> None:
    meters = two_meters("0.8", "0.1").meters
    lattice = Lattice(MeterFilter(Cost("0.8", "0.14"), meters), "0.2", 2, leak="0.02")
    assert 0.04 < lattice.reached() <= 0.14


def test_prices_cut_to_a_third_are_caught() -> None:
    epsilon, delta, step, times = GAMES[0]
    assert Lattice(two_meters(epsilon, delta), step, times).reached(Fraction(1, 3)) > float(delta)


# ---- interleaving: two interactions of two questions each, asked in the best order, exactly

Answers = tuple[Fraction, Fraction]  # how likely "yes" is, on the first and on the second database
Talk = tuple[tuple[Answers, Answers], ...]  # for each history ("", then "yes" or "no"): two questions to choose from

chances = st.integers(1, 9).map(lambda n: Fraction(n, 10))
answers = st.tuples(chances, chances)
talks = st.tuples(*[st.tuples(answers, answers)] * 3)


def outcomes(question: Answers) -> list[tuple[Fraction, Fraction]]:
    """Q and P/Q of "yes" and of "no"."""
    p, q = question
    return [(q, p / q), (1 - q, (1 - p) / (1 - q))]


def transcripts(talk: Talk) -> list[Fraction]:
    """The larger one of the ratio and its inverse, for every complete transcript of every strategy."""
    found = []
    for first in talk[0]:
        for k, (_, x) in enumerate(outcomes(first)):
            found += [max(x * y, 1 / (x * y)) for second in talk[1 + k] for _, y in outcomes(second)]
    return found


def best_interleaving(talks: Sequence[Talk], weights: Sequence[Callable[[Fraction], Fraction]], order: int) -> Fraction:
    """The largest Σ Q·Π x^α·e^{−(α−1)r}, r the price of each complete transcript, over all adaptive ways to ask."""

    @cache
    def value(states: tuple[tuple[int, Fraction], ...]) -> Fraction:
        """A state is the next history of a talk (3: complete) and its ratio so far."""
        moves = [(k, question) for k, (at, _) in enumerate(states) if at < 3 for question in talks[k][at]]
        if not moves:
            product = Fraction(1)
            for (_, x), weight in zip(states, weights, strict=True):
                product *= x**order * weight(x)
            return product
        return max(
            sum((q * value(_after(states, k, a, y)) for a, (q, y) in enumerate(outcomes(question))), Fraction(0))
            for k, question in moves
        )

    return value(tuple((0, Fraction(1)) for _ in talks))


def _after(
    states: tuple[tuple[int, Fraction], ...], k: int, answer: int, ratio: Fraction
) -> tuple[tuple[int, Fraction], ...]:
    at, x = states[k]
    return (*states[:k], (1 + answer if at == 0 else 3, x * ratio), *states[k + 1 :])


def tangent(talk: Talk, order: int, slope: Fraction, cheaper: int = 1) -> Callable[[Fraction], Fraction]:
    return lambda x: exact_weight(max(x, 1 / x), order, slope) * cheaper


@pytest.mark.slow
@settings(max_examples=15)
@given(talks, talks, st.integers(2, 4), st.fractions(0, Fraction(9, 10), max_denominator=10))
def test_interleaved_interactions_keep_tangent_prices(one: Talk, other: Talk, order: int, share: Fraction) -> None:
    """Each transcript is priced by its own ratio; the slope suits the worst transcript of its talk."""
    slopes = [
        share * (most / (most - 1) if most > 1 else 2) for most in (max(transcripts(one)), max(transcripts(other)))
    ]
    weights = [tangent(talk, order, slope) for talk, slope in zip((one, other), slopes, strict=True)]
    assert best_interleaving((one, other), weights, order) <= 1


def test_interleaved_interactions_notice_prices_that_are_too_small() -> None:
    talk: Talk = (((Fraction(2, 3), Fraction(1, 3)),) * 2,) * 3
    slope = Fraction(5, 4)
    assert best_interleaving((talk, talk), [tangent(talk, 2, slope)] * 2, 2) <= 1
    assert best_interleaving((talk, talk), [tangent(talk, 2, slope, cheaper=2)] * 2, 2) > 1
