"""The median of slopes: pairs, scores and laws exactly on small data with controls, rules for values, and accuracy."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.linear.box import STEPS
from expost.mechanisms.linear.theil_sen import median_slope, rounds_of, sines
from expost.mechanisms.quantiles.candidates import Lattice
from expost.verify import FiniteMechanism, check
from quantile_model import permute_and_flip

pytestmark = pytest.mark.slow
NOISE = xp.SeededNoise(19)
LATTICE = Lattice(Fraction(1, 2), -1, 1, whole=False)
POINTS = [(-STEPS, -STEPS), (-STEPS, STEPS), (STEPS, -STEPS), (STEPS, STEPS), (STEPS, 0)]
DATA = list(product(POINTS, repeat=3))


def line(**changed: Any) -> xp.mechanisms.TheilSen:
    return xp.mechanisms.TheilSen(**{"epsilon": 1, "bounds": [(-1, 1)], "target_bounds": (-1, 1), **changed})


def slopes(data: Any, rounds: int = 1) -> Any:
    return sines(np.array(data, np.int64), np.arange(len(data)), rounds)


def exchanged(data: tuple[Any, ...]) -> Any:
    for place, value in product(range(len(data)), POINTS):
        yield (*data[:place], value, *data[place + 1 :])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 1000, 2**18])
def test_every_record_is_in_two_pairs_per_round(size: int) -> None:
    rounds = min(rounds_of(size), 5)
    order = np.random.default_rng(0).permutation(size)
    rows = np.zeros((size, 2), np.int64)
    assert len(sines(rows, order, rounds)) == 2 * rounds * size
    if 1 < size < 10:
        for moved in range(size):
            marked = rows.copy()
            marked[:, 0] = np.arange(size) * 1000  # all features differ
            before = sines(marked, order, rounds)
            marked[moved, 1] = 5
            assert (sines(marked, order, rounds) != before).sum() == 4 * rounds


def test_pairs_without_a_slope_count_half_on_either_side() -> None:
    assert Counter(slopes([(0, 0), (0, 9), (3, 4)])) == {-1.0: 1, 1.0: 1, 0.8: 2, -5 / 34**0.5: 2}
    assert slopes([(7, 7)]).tolist() == [-1, 1]


@pytest.mark.parametrize("rounds", [1, 2])
def test_one_person_moves_every_score_by_at_most_four_per_round(rounds: int) -> None:
    found, four = {}, list(product(POINTS, repeat=4))
    for data in four:
        chosen = median_slope(slopes(data, rounds), LATTICE, rounds, Fraction(1))
        found[data] = [chosen.score((candidate,)) for candidate in range(3)]
    worst = max(
        abs(a - b) for data in four for other in exchanged(data) for a, b in zip(found[data], found[other], strict=True)
    )
    assert worst == 4 if rounds == 1 else worst <= 4 * rounds


def table(epsilon: Fraction) -> FiniteMechanism:
    """The exact laws of the slope, from the scores of the code."""
    laws: dict[Any, dict[Any, Fraction]] = {}
    for data in DATA:
        chosen = median_slope(slopes(data), LATTICE, 1, epsilon)
        odds = permute_and_flip([chosen._exponent((candidate,)) for candidate in range(3)], 30)
        laws[data] = {candidate: p / sum(odds) for candidate, p in enumerate(odds)}
    return FiniteMechanism(laws, [(x, y) for x in laws for y in exchanged(x) if x != y], lambda output: "released")


def test_the_slope_keeps_its_guarantee_and_not_half_of_it() -> None:
    tiny = Fraction(1, 10**6)
    assert check(table(Fraction(2)), xp.Guarantee.uniform(2, tiny)).holds
    assert check(table(Fraction(2)), xp.Guarantee.uniform(1, tiny)).holds is False
    assert check(table(Fraction(4)), xp.Guarantee.uniform(2, tiny)).holds is False  # sensitivity 2 instead of 4


def test_the_parts_of_epsilon_add_up() -> None:
    for epsilon in ("2e-12", "0.1", "1", "0.999999999999"):
        first, second = line(epsilon=epsilon)._budgets
        assert first + second == Fraction(epsilon)


def test_without_noise_it_is_the_median_of_slopes() -> None:
    rows = np.array([[0, 0], [1, 2], [2, 4], [3, 6], [4, 100]])
    exact = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in permutations(rows.tolist(), 2)]
    fit = xp.mechanisms.TheilSen(epsilon=10**5, bounds=[(0, 4)], target_bounds=(0, 100)).sample(rows, NOISE)
    assert fit.coefficients[0] == pytest.approx(np.median(exact), abs=0.01)
    assert fit.intercept == pytest.approx((rows[:, 1] - fit.coefficients[0] * rows[:, 0]).mean(), abs=0.01)


def test_few_records_within_loose_bounds_are_enough() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(30, 3, 1000)
    rows = np.column_stack([x, 7 * x + rng.normal(0, 25, 1000)])
    given: dict[str, Any] = {"epsilon": 1, "bounds": [(0, 64)], "target_bounds": (0, 1024)}
    off = {
        kind: np.mean([abs(kind(**given).sample(rows, NOISE).coefficients[0] - 7) for _ in range(20)])
        for kind in (xp.mechanisms.TheilSen, xp.mechanisms.LeastSquares)
    }
    assert off[xp.mechanisms.TheilSen] < 1 < off[xp.mechanisms.LeastSquares]


@pytest.mark.parametrize("bounds", [(-1e100, 1e100), (0, 1e-100), (1e100, 1e100), (0, 3)])
def test_private_values_follow_rules(bounds: tuple[float, float]) -> None:
    extremes = np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -0.0, 3.0])
    rows = np.column_stack([extremes, np.roll(extremes, 3)])
    for one in (rows, rows[:1], np.full((5, 2), 3), np.array([[2**63 - 1, -(2**63)]])):
        fit = line(bounds=[bounds], target_bounds=bounds).sample(one, NOISE)
        assert np.isfinite([fit.intercept, *fit.coefficients]).all()


@pytest.mark.parametrize(
    "wrong", [{"bounds": [(0, 1), (0, 1)]}, {"bounds": (0, 1)}, {"slope_share": 1}, {"epsilon": "1e-12"}]
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        line(**wrong)


def test_the_method_follows_from_public_facts() -> None:
    one = xp.mechanisms.RegressionOfRecords(epsilon="0.5", bounds=[(0, 1)], target_bounds=(0, 1), missing=1)
    assert one.method(n=7999) == xp.mechanisms.TheilSen(epsilon="0.5", bounds=[(0, 1)], target_bounds=(0, 1), missing=1)
    assert one.method(n=8000) == xp.mechanisms.LeastSquares(
        epsilon="0.5", bounds=[(0, 1)], target_bounds=(0, 1), missing=1
    )
    two = xp.mechanisms.RegressionOfRecords(epsilon="0.5", bounds=[(0, 1)] * 2, target_bounds=(0, 1))
    assert isinstance(two.method(n=10), xp.mechanisms.LeastSquares)
    fit = xp.Ledger(epsilon=1).run(two, on=np.zeros((9, 3))).value
    assert len(fit.coefficients) == 2
    ledger = xp.Ledger(epsilon=1)
    assert len(ledger.run(one, on=np.zeros((9, 2))).value.coefficients) == 1
    assert ledger.remaining.epsilon == 0.5


def test_where_noise_is_all_there_is_the_line_stays_within_the_bounds() -> None:
    """At n·ε of 3 noise put lines far beyond the bounds: worse than a guess, and than a peer by a factor of 2.3."""
    rng = np.random.default_rng(0)
    feature = rng.uniform(10, 60, 30)
    data = np.column_stack([feature, 150 + 2 * (feature - 35) + rng.normal(0, 60, 30)])
    fit = xp.mechanisms.TheilSen(epsilon=0.1, bounds=[(10, 60)], target_bounds=(0, 500))
    noise = xp.SeededNoise(1)
    errors = []
    for _ in range(200):
        found = fit.sample(data, noise)
        ends = [found.intercept + found.coefficients[0] * end for end in (10, 60)]
        assert -1e-9 <= min(ends) <= max(ends) <= 500 + 1e-9
        off = found.intercept + found.coefficients[0] * feature - (150 + 2 * (feature - 35))
        errors.append(np.sqrt(np.mean(off**2)))
    assert np.mean(errors) < 170  # 300 before


def test_enough_records_may_have_a_line_that_leaves_the_bounds() -> None:
    """Loose bounds of the feature make steep lines, on which the target stays within its own where there is data."""
    feature = np.random.default_rng(0).uniform(-1, 1, 2000)
    fit = xp.mechanisms.TheilSen(epsilon=1, bounds=[(-20, 20)], target_bounds=(-1, 1))
    found = fit.sample(np.column_stack([feature, feature]), xp.SeededNoise(1))
    assert 0.5 < found.coefficients[0] < 2  # within the bounds it would be 0.05
