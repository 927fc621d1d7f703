"""Theorem 15: backward induction against enumeration, trees, exact laws of small mechanisms, and known values."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, chain, combinations
from math import exp, lcm, log, prod, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import bracket
from expost.accounting import (
    ApproximateDP,
    GaussianNoise,
    LaplaceNoise,
    compose,
    optimal_composition,
    optimal_delta,
    plan,
    sum_delta,
)
from expost.errors import InvalidValue
from expost.verify import FiniteMechanism, hockey_stick, least_delta_at
from soak import SOAK

pytestmark = pytest.mark.slow
Law = Sequence[tuple[Fraction, Fraction]]  # (P, Q) of each output


def response(ratio: Fraction, delta: Fraction) -> Law:
    """Lemma 12's mechanism, for e^ε = ratio."""
    truth, lie = (1 - delta) * ratio / (1 + ratio), (1 - delta) / (1 + ratio)
    return ((delta, Fraction(0)), (truth, lie), (lie, truth), (Fraction(0), delta))


def tree(laws: Sequence[Law], allowed: dict[int, Fraction]) -> Fraction:
    """max over stopping rules, by recursion over all outputs: allowed[k] = e^E at stop k."""

    def best(k: int, p: Fraction, q: Fraction) -> Fraction:
        here = max(p - allowed[k] * q, Fraction(0)) if k in allowed else Fraction(0)
        if k == len(laws) or p == 0:
            return here
        return max(here, sum((best(k + 1, p * a, q * b) for a, b in laws[k]), Fraction(0)))

    return best(0, Fraction(1), Fraction(1))


def enumerated(laws: Sequence[Law], allowed: dict[int, Fraction]) -> Fraction:
    """The value of every choice of prefix-free sets, one after the other; the largest of them.

    In integers over one denominator; equal values are kept once. Below an output that Q never has, a set is worth the
    P of what it holds, and only the whole is tried.
    """
    scale = lcm(*(e.denominator for e in allowed.values())) * prod(
        lcm(*(number.denominator for pair in law for number in pair)) for law in laws
    )

    def values(k: int, p: Fraction, q: Fraction) -> set[int]:
        if q == 0:
            return {int(p * scale)}
        taken = {int((p - allowed[k] * q) * scale)} if k in allowed else set()
        if k == len(laws):
            return {0} | taken
        below = {0}
        for a, b in laws[k]:
            more = values(k + 1, p * a, q * b)
            below = {x + y for x in below for y in more}
        return below | taken

    return Fraction(max(values(0, Fraction(1), Fraction(1))), scale)


def e(number: object) -> Fraction:
    return bracket.exp(Fraction(str(number))).upper


GUARANTEED = {1: "0.2", 2: "0.4", 3: "0.55", 4: "0.9"}


PURE = [("0.5", "0"), ("0.3", "0"), ("0.8", "0"), ("0.2", "0")]
APPROXIMATE = [("0.5", "0.1"), ("0.3", "0.2"), ("0.8", "0.05"), ("0.2", "0.15")]


def small_cases() -> Iterator[tuple[list[tuple[str, str]], dict[int, str]]]:
    """Every set of stops of up to four steps, equal or different, with δ or without."""
    for steps in (PURE, [("0.4", "0")] * 4, APPROXIMATE, [("0.4", "0.1")] * 4):
        for count in range(1, len(steps) + 1):
            for early in chain.from_iterable(combinations(range(1, count), size) for size in range(count)):
                yield steps[:count], {k: GUARANTEED[k] for k in (*early, count)}


@pytest.mark.parametrize(("steps", "stops"), list(small_cases()))
@pytest.mark.uncounted
def test_theorem_15_is_the_maximum_over_all_prefix_free_sets(
    steps: list[tuple[str, str]], stops: dict[int, str]
) -> None:
    laws = [[pair for pair in response(e(epsilon), Fraction(delta)) if pair[0] > 0] for epsilon, delta in steps]
    allowed = {stop: e(epsilon) for stop, epsilon in stops.items()}
    exact = enumerated(laws, allowed)
    assert exact == tree(laws, allowed)
    found = optimal_delta(steps, list(stops), list(stops.values()))
    assert found.lower <= exact <= found.upper
    assert found.width <= 1e-11


@st.composite
def problems(draw: st.DrawFn, on_lattice: bool) -> tuple[list[tuple[Fraction, Fraction]], dict[int, Fraction]]:
    size = draw(st.integers(1, 9))
    denominator = 20 if on_lattice else 10**9 + 7
    numbers = st.integers(denominator // 20, denominator)
    deltas = st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 10)])
    steps = [(Fraction(draw(numbers), denominator), draw(deltas)) for _ in range(size)]
    stops = sorted({*draw(st.sets(st.integers(1, size))), size})
    sums = list(accumulate(epsilon for epsilon, _ in steps))
    return steps, {stop: sums[stop - 1] * draw(st.integers(2, 19)) / 20 for stop in stops}


@pytest.mark.parametrize("on_lattice", [True, False])
@pytest.mark.uncounted
def test_the_bracket_contains_the_tree_recursion(on_lattice: bool) -> None:
    @settings(max_examples=100 if SOAK else 12)
    @given(problems(on_lattice))
    def contains(problem: tuple[list[tuple[Fraction, Fraction]], dict[int, Fraction]]) -> None:
        steps, stops = problem
        laws = [response(bracket.exp(epsilon, 25).upper, delta)[:3] for epsilon, delta in steps]
        exact = tree(laws, {stop: bracket.exp(epsilon, 25).upper for stop, epsilon in stops.items()})
        found = optimal_delta(steps, list(stops), list(stops.values()))
        tiny = Fraction(1, 10**20)
        assert found.lower - tiny <= exact <= found.upper + tiny
        assert found.width <= 1e-3 * found.upper
        assert float(exact) <= sum_delta(steps, list(stops), list(stops.values())) + 1e-15

    contains()


def test_randomised_response_dominates() -> None:
    """Lemma 12, for all α > 0: exact at every kink of both hockey sticks."""

    @given(tables(3), tables(3), st.fractions(1, 4, max_denominator=8))
    def dominated(p: list[Fraction], q: list[Fraction], ratio: Fraction) -> None:
        delta = max(stick(p, q, ratio), stick(q, p, ratio))
        law = response(ratio, delta)
        kinks = {a / b for a, b in zip(p, q, strict=True) if b} | {ratio, 1 / ratio, Fraction(1)}
        for alpha in kinks:
            assert stick(p, q, alpha) <= stick([a for a, _ in law], [b for _, b in law], alpha)

    dominated()


@st.composite
def tables(draw: st.DrawFn, size: int) -> list[Fraction]:
    weights = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


def stick(p: Sequence[Fraction], q: Sequence[Fraction], alpha: Fraction) -> Fraction:
    return hockey_stick(dict(enumerate(p)), dict(enumerate(q)), lambda _: alpha)[0]


def test_adaptive_steps_and_any_rule_stay_below_the_optimum() -> None:
    """Lemmas 13 and 14: steps chosen by what came out, post-processed, stopped by an arbitrary rule."""

    @given(st.data())
    def below(data: st.DataObject) -> None:
        ratio, size, stops = Fraction(2), 3, (1, 2, 3)
        delta = Fraction(1, 8)
        allowed = {1: Fraction(3, 2), 2: Fraction(2), 3: Fraction(5, 2)}
        laws: dict[str, dict[tuple[int, ...], Fraction]] = {"x": {}, "y": {}}

        def grow(history: tuple[int, ...], p: Fraction, q: Fraction) -> None:
            done = len(history) == size or (len(history) in stops and data.draw(st.booleans()))
            if done:
                laws["x"][history], laws["y"][history] = p, q
                return
            # any (ε, δ)-DP step is a post-processing of randomised response: a random kernel onto two outputs
            kernel = [data.draw(st.fractions(0, 1, max_denominator=4)) for _ in range(4)]
            rows = response(ratio, delta)
            ones = [sum(k * row[side] for k, row in zip(kernel, rows, strict=True)) for side in (0, 1)]
            grow((*history, 1), p * ones[0], q * ones[1])
            grow((*history, 0), p * (1 - ones[0]), q * (1 - ones[1]))

        grow((), Fraction(1), Fraction(1))
        mechanism = FiniteMechanism(laws, [("x", "y")], len)
        exact = least_delta_at(mechanism, allowed)
        assert exact <= tree([response(ratio, delta)] * size, allowed)

    below()


# ---- reference values


def test_randomised_response_with_a_hundred_stops() -> None:
    stops = list(range(10, 1001, 10))
    epsilons = [min(0.1 * k, sqrt(2 * k * log(1e5)) * 0.1 + k * 0.1 * (exp(0.1) - 1)) for k in stops]
    steps = [(0.1, 1e-6)] * 1000
    found = optimal_delta(steps, stops, epsilons)
    assert round(found.upper, 9) == 0.000999516
    assert found.width <= 1e-9 * found.upper
    by_rule = sum_delta(
        steps, stops, epsilons, rule=lambda some, epsilon: optimal_composition([(0.1, 1e-6)] * len(some)).delta(epsilon)
    )
    assert round(by_rule, 7) == 0.0504832


TABLE = [(1, 2.585, 2.585), (5, 2.793, 1.339), (20, 2.895, 0.911), (100, 2.951, 0.675)]


@pytest.mark.parametrize(("stops", "full", "first"), TABLE)
def test_training_may_stop_early(stops: int, full: float, first: float) -> None:
    """σ = 1, sampling rate 0.01, 2000 steps, δ = 10⁻⁵: what full length and the first stop cost."""
    every = 2000 // stops
    planned = plan([GaussianNoise(1, 0.01)] * 2000, range(every, 2001, every), 1e-5, grid=2.0**-10)
    assert planned.epsilon_of(2000) == pytest.approx(full, abs=2e-3)
    if stops > 1:
        assert planned.epsilon_of(every) == pytest.approx(first, abs=2e-3)
    assert planned.worst_case.exact_delta == Fraction(1, 10**5)


# ---- loss laws


MIXED = [GaussianNoise(5, 0.2)] * 5 + [LaplaceNoise(10)] * 3 + [ApproximateDP(0.1, 1e-7)] * 4


@pytest.mark.parametrize(
    "steps", [[GaussianNoise(8)] * 30, [LaplaceNoise(10)] * 30, [GaussianNoise(2, 0.1)] * 30, MIXED]
)
def test_one_stop_is_composition(steps: list[object]) -> None:
    composed = compose(steps)
    for epsilon in (0.3, 0.8, 1.5):
        stopping, fixed = optimal_delta(steps, [len(steps)], [epsilon]), composed.delta(epsilon)
        assert stopping.lower <= fixed.upper
        assert fixed.lower <= stopping.upper
        assert stopping.upper == pytest.approx(fixed.upper, rel=1e-4, abs=1e-9)


def test_pairs_as_losses_agree_with_pairs() -> None:
    steps, stops, epsilons = [(0.1, 1e-4)] * 40, [10, 20, 40], [0.4, 0.7, 1.1]
    exact = optimal_delta(steps, stops, epsilons)
    gridded = optimal_delta(steps, stops, epsilons, grid=0.05)
    assert gridded.lower <= exact.upper
    assert exact.lower <= gridded.upper
    assert gridded.width < 1e-6


def test_more_stops_cost_more_and_the_optimum_is_below_the_sum() -> None:
    steps = [GaussianNoise(8)] * 40
    one = optimal_delta(steps, [40], [2.5])
    many = optimal_delta(steps, [10, 20, 30, 40], [1.2, 1.7, 2.1, 2.5])
    whole = sum_delta(steps, [10, 20, 30, 40], [1.2, 1.7, 2.1, 2.5])
    assert one.lower <= many.lower
    assert many.upper < whole


def test_one_stop_at_equal_steps_is_the_optimal_composition() -> None:
    found, exact = optimal_delta([(0.1, 1e-6)] * 200, [200], [2]), optimal_composition([(0.1, 1e-6)] * 200).delta(2)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert found.width <= 1e-9


@pytest.mark.uncounted
def test_a_hundred_thousand_steps() -> None:
    found = optimal_delta([("0.01", 0)] * 100_000, [50_000, 100_000], [15, 25])
    assert 0 < found.lower <= found.upper < 1e-2
    assert found.width <= 1e-3 * found.upper


def test_weights_move_the_price() -> None:
    steps = [GaussianNoise(8)] * 40
    even, uneven = plan(steps, [20, 40], 1e-5), plan(steps, [20, 40], 1e-5, weights=[9, 1])
    assert uneven.epsilon_of(20) < even.epsilon_of(20)
    assert uneven.epsilon_of(40) > even.epsilon_of(40)


@pytest.mark.parametrize(
    ("stops", "epsilons"), [([], []), ([2, 1], [1, 1]), ([1], [1]), ([1, 2], [1]), ([0, 2], [1, 1])]
)
def test_stops_that_make_no_sense_are_refused(stops: list[int], epsilons: list[int]) -> None:
    with pytest.raises(InvalidValue):
        optimal_delta([(1, 0), (1, 0)], stops, epsilons)


def test_a_plan_for_too_small_a_delta_is_refused() -> None:
    with pytest.raises(InvalidValue, match="fewer steps"):
        plan([(0.1, 1e-3)] * 10, [5, 10], 1e-6)
    with pytest.raises(InvalidValue):
        plan([(0.1, 0)] * 10, [5, 10], 0)


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_many_different_steps_are_bracketed_from_both_sides(kind: type[GaussianNoise] | type[LaplaceNoise]) -> None:
    """Laws of many kinds are added up in pairs: rounding errors at their ends must not count as mass far away."""
    steps = [kind(Fraction(2000 + 7 * i, 100)) for i in range(60)]
    found = optimal_delta(steps, [20, 40, 60], ["0.8", "1.1", "1.4"])
    assert 0.95 * found.upper <= found.lower <= found.upper
    assert found.upper <= sum_delta(steps, [20, 40, 60], ["0.8", "1.1", "1.4"]) * 1.001


def test_many_different_pairs_are_bracketed_from_both_sides() -> None:
    """The ε's share no lattice: the lower end was 0."""
    chance = random.Random(1)
    steps = [(round(chance.uniform(0.02, 0.06), 7), 0) for _ in range(200)]
    stops = range(50, 201, 50)
    epsilons = [sqrt(2 * stop * log(1e5)) * 0.04 + stop * 0.04**2 / 2 for stop in stops]
    found = optimal_delta(steps, stops, epsilons, tolerance=1e-3)
    assert 0.999 * found.upper <= found.lower <= found.upper
    assert found.reason == ""


def test_a_bracket_of_stops_that_is_too_wide_says_why() -> None:
    steps, stops, epsilons = [GaussianNoise(8)] * 40, [20, 40], [1.7, 2.5]
    told: list[str] = []
    assert "as was asked" in optimal_delta(steps, stops, epsilons, grid=0.1).reason
    assert optimal_delta(steps, stops, epsilons, progress=told.append).reason == ""
    assert "40 steps with 2 stops" in told[0]
    assert optimal_delta(steps, stops, epsilons, tolerance=1e-12).reason != ""


def test_a_hundred_thousand_sampled_steps_are_planned() -> None:
    """This was refused, with the advice to take another grid step, which Iterative does not have."""
    told: list[str] = []
    planned = plan([GaussianNoise(2, "1e-4")] * 100_000, [50_000, 100_000], 1e-5, progress=told.append)
    for stop in (50_000, 100_000):
        fixed = compose([GaussianNoise(2, "1e-4")] * stop)
        assert fixed.epsilon(1e-5).lower <= planned.epsilon_of(stop) <= fixed.epsilon_above(5e-6) * 1.001  # Lemma 11
    assert any("stops" in each for each in told)
