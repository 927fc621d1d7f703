"""The ladder: its margin by brute force, its exact law on small data with a control, and what it refunds."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost import bracket
from expost.guarantee import Neighbours
from expost.mechanisms.quantiles.candidates import Lattice, Unbounded
from expost.mechanisms.quantiles.ladder import Rung, margin
from expost.mechanisms.quantiles.ordered import arrange
from expost.mechanisms.quantiles.quantiles import target
from expost.mechanisms.quantiles.windows import Windows
from expost.verify import FiniteMechanism, check
from quantile_model import data_sets, neighbours, permute_and_flip, quantile

pytestmark = pytest.mark.slow
VALUES = range(4)
LATTICE = Lattice(Fraction(1), 0, 3, whole=True)
RELATIONS: list[Neighbours] = ["substitute", "add-remove"]


def margin_of(data: tuple[int, ...], level: Fraction, relation: Neighbours, chosen: int, steps: int) -> int:
    goal = target(level, len(data), relation)
    span = range(chosen - steps, chosen + steps + 1)
    return margin(arrange(np.array(data, np.int64), LATTICE, 0.0), goal, span)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("level", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
def test_the_margin_moves_by_one_and_is_0_where_the_quantile_is_far(relation: Neighbours, level: Fraction) -> None:
    for size, chosen, steps in product(range(4), VALUES, (0, 1)):
        for data in data_sets(VALUES, size):
            mine = margin_of(data, level, relation, chosen, steps)
            for other in set(neighbours(data, VALUES, relation)):
                assert abs(mine - margin_of(other, level, relation, chosen, steps)) <= 1, (data, other)
            far = not data or abs(quantile(data, level) - chosen) > steps
            assert mine == 0 if far else mine >= 1


def tails(rate: Fraction, most: int) -> list[Fraction]:
    """Pr[geometric ≥ k], to twenty digits."""
    return [rounded(bracket.exp(-rate * k).upper) if k else Fraction(1) for k in range(most + 1)]


def rounded(probability: Fraction) -> Fraction:
    return Fraction(round(probability * 10**20), 10**20)


def law(ladder: xp.mechanisms.QuantileLadder, data: tuple[int, ...], far: int = 70) -> dict[Rung, Fraction]:
    """The exact law of two rungs, but for noise of the threshold beyond ``far``."""
    test = ladder.test
    arranged = arrange(np.array(data, np.int64), LATTICE, 0.0)
    goal = target(Fraction(1, 2), len(data), ladder.neighbours).settled(arranged)
    chosen = []
    for estimate in ladder._estimates:
        rate = Fraction(str(estimate.epsilon)) / 2
        scores = [Windows(arranged, (goal,), rate, paired=False).score((y,)) for y in VALUES]
        laws = permute_and_flip([rate * score for score in scores], 30)
        chosen.append([rounded(p) for p in laws])
    reach = tails(test.rate, far + test.threshold + test.centre + 1)
    shift = tails(test._threshold_rate, far + 1)
    passing = {y: margin(arranged, goal, range(y, y + 1)) for y in VALUES}
    found: dict[Rung, Fraction] = {}
    for rho in range(far):
        mass = shift[rho] - shift[rho + 1]
        passes = [reach[max(test.threshold + test.centre + rho - passing[y], 0)] for y in VALUES]
        for y, z in product(VALUES, repeat=2):
            first, second = chosen[0][y], chosen[0][y] * chosen[1][z]
            outcomes = [
                (Rung(y, 1, True), first * passes[y] / len(VALUES)),
                (Rung(z, 2, True), second * (1 - passes[y]) * passes[z]),
                (Rung(z, 2, False), second * (1 - passes[y]) * (1 - passes[z])),
            ]
            for output, probability in outcomes:
                found[output] = found.get(output, Fraction(0)) + mass * probability
    return found


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_guarantee_holds_and_without_the_test_s_price_it_does_not(relation: Neighbours) -> None:
    ladder = xp.mechanisms.QuantileLadder(
        quantile="1/2", within="1/2", epsilon=3, bounds=(0, 3), neighbours=relation, rungs=2, confidence="1/2"
    )
    data = [data for size in ((3,) if relation == "substitute" else (2, 3)) for data in data_sets(VALUES, size)]
    laws = {one: law(ladder, one) for one in data}
    pairs = [(x, y) for x in data for y in set(neighbours(x, VALUES, relation)) if y in laws and y != x]
    table = FiniteMechanism(laws, pairs, ladder.part_of)
    slack = Fraction(1, 10**9)
    prices = {part: ladder.guarantee.cost_of(part).exact_epsilon for part in (0, 1, 2)}
    assert check(table, xp.Guarantee(prices, slack))
    assert not check(table, xp.Guarantee({part: price / 3 for part, price in prices.items()}, slack))


def test_it_refunds_what_it_did_not_need() -> None:
    data = np.random.default_rng(0).normal(45, 12, size=20_000)
    ladder = xp.mechanisms.QuantileLadder(
        quantile="0.5", within=1, epsilon=1, bounds=(0, 120), grid=0.5, neighbours="substitute"
    )
    releases = [xp.Ledger(epsilon=1, noise=xp.SeededNoise(seed)).run(ladder, on=data) for seed in range(20)]
    assert all(release.output.passed and abs(release.value - 45) < 1.5 for release in releases)
    assert all(release.charged.epsilon < 0.6 for release in releases)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_without_bounds_it_refunds_what_it_did_not_need(neighbours: Neighbours) -> None:
    data = 1e6 * np.random.default_rng(0).lognormal(size=20_000)
    ladder = xp.mechanisms.QuantileLadder(quantile="0.5", within=10**5, epsilon=1, neighbours=neighbours)
    releases = [xp.Ledger(epsilon=1, noise=xp.SeededNoise(seed)).run(ladder, on=data) for seed in range(20)]
    assert all(release.output.passed for release in releases)
    assert all(abs(release.value - np.median(data)) <= 10**5 for release in releases)
    assert all(release.charged.epsilon < 0.6 for release in releases)


def test_a_distance_that_single_precision_cannot_tell_never_passes() -> None:
    ladder = xp.mechanisms.QuantileLadder(quantile="0.5", within=1, epsilon=9, neighbours="substitute")
    assert not ladder.sample(np.full(10_000, 1e9 + 7.0), xp.SeededNoise(1)).passed


@given(st.floats(-1e30, 1e30), st.fractions(Fraction(1, 10**6), 10**9), st.booleans(), st.data())
def test_records_of_a_span_are_within_the_distance(value: float, distance: Fraction, floats: bool, data: Any) -> None:
    candidates = Unbounded.of(None if floats else 1, floats=floats)
    (chosen,) = candidates.indices(np.array([value]), 0.0).tolist()
    span = candidates.within(chosen, distance, floats=floats)
    if span:
        index = data.draw(st.integers(span.start, span.stop - 1))
        ends = candidates.around(candidates.value(index), floats=floats)
        assert max(abs(Fraction(end) - Fraction(candidates.value(chosen))) for end in ends) <= distance


def test_without_data_it_never_passes_but_by_mistake() -> None:
    ladder = xp.mechanisms.QuantileLadder(
        quantile="0.5", within=1, epsilon=1, bounds=(0, 9), neighbours="add-remove", confidence="0.99999"
    )
    noise = xp.SeededNoise(3)
    found = [ladder.sample(np.array([], np.int64), noise) for _ in range(20)]
    assert not any(output.passed for output in found)
    assert {ladder.part_of(output) for output in found} == {0}
    assert ladder.describe(found[0]).endswith("did not pass (attempt 8 of 8)")


@pytest.mark.parametrize("wrong", [{"within": 0}, {"rungs": 0}, {"test_share": 1}, {"confidence": 1}, {"quantile": -1}])
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"quantile": 0.5, "within": 1, "epsilon": 1, "bounds": (0, 9), "neighbours": "substitute"}
    with pytest.raises(xp.InvalidValue):
        xp.mechanisms.QuantileLadder(**{**good, **wrong})


def test_a_distribution_function() -> None:
    data = np.arange(1, 101)
    mechanism = xp.mechanisms.DistributionFunction(points=4, epsilon=500, bounds=(0, 200), neighbours="substitute")
    found = mechanism.sample(data, xp.SeededNoise(1))
    assert found == ((25, 50, 75, 100), (0.25, 0.5, 0.75, 1.0))
    assert [found(x) for x in (0, 25, 60, 300)] == [0.0, 0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    ("grid", "within", "data"), [(1, "0.4", np.array([10.4])), (10, 2, np.array([44])), ("0.5", "0.2", np.array([7]))]
)
def test_a_distance_below_half_of_the_grid_is_refused(grid: Any, within: Any, data: Any) -> None:
    ladder = xp.mechanisms.QuantileLadder(
        quantile=0.5, within=within, epsilon=1, bounds=(0, 100), grid=grid, neighbours="substitute"
    )
    with pytest.raises(xp.InvalidValue, match="half of the grid"):
        ladder.check(data)


@pytest.mark.parametrize(
    ("options", "record"), [({"bounds": (-1e9, 1e9)}, 515.0), ({"bounds": (0, 100), "grid": 1}, 10.4)]
)
def test_what_passed_is_near_the_records_themselves(options: dict[str, Any], record: float) -> None:
    """Not only near the records rounded to the grid: before, 515 was "1024, within 1"."""
    ladder = xp.mechanisms.QuantileLadder(quantile=0.5, within=1, epsilon=1, neighbours="substitute", **options)
    found = ladder.sample(np.full(5000, record), xp.SeededNoise(1))
    assert found.passed
    assert abs(found.value - record) <= 1
