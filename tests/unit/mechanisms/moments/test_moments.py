"""Ranges, means and variances: guarantees exactly with controls, sensitivities by brute force, and accuracy."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.moments.moments import POINTS, _Moment, points_of
from expost.mechanisms.moments.staircase import Staircase
from expost.verify import check, tabulate
from published import published
from quantile_model import data_sets, neighbours

pytestmark = pytest.mark.slow
NOISE = xp.SeededNoise(5)
EXTREMES = np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -0.0, 1e-100, 3.0])


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_the_range_keeps_its_guarantee_and_not_half_of_it(relation: Any) -> None:
    """The code's own draws."""
    mechanism = xp.mechanisms.TypicalRange(epsilon=2, bounds=(0, 3), neighbours=relation, scales=1, penalty=1)
    sizes = (2,) if relation == "substitute" else (0, 1)
    data = [one for size in sizes for one in data_sets((0, 1, 3), size)]
    pairs = [(x, y) for x in data for y in set(neighbours(x, (0, 1, 3), relation)) if y in data and y != x]
    missing = Fraction(1, 60)
    table = tabulate(mechanism, {one: np.array(one, float) for one in data}, pairs, missing=missing)
    assert check(table, xp.Guarantee.uniform(2, missing * 10)).holds is not False
    assert check(table, xp.Guarantee.uniform(2, missing * 10)).delta.lower == 0
    assert check(table, xp.Guarantee.uniform("0.2", missing * 10)).holds is False


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_one_person_moves_every_score_by_at_most_one(relation: Any) -> None:
    mechanism = xp.mechanisms.TypicalRange(epsilon=1, bounds=(0, 4), neighbours=relation, scales=3)
    for data in (one for size in range(4) for one in data_sets(range(5), size)):
        mine = mechanism.shortfalls(np.array(data, float))
        for other in set(neighbours(data, range(5), relation)):
            moved = mechanism.shortfalls(np.array(other, float)) - mine
            assert np.abs(moved).max() <= 1
            if relation == "add-remove":
                assert moved.min() >= 0 or moved.max() <= 0


def test_candidates_are_the_bounds_and_their_halves() -> None:
    lows, highs, halved = xp.mechanisms.TypicalRange(
        epsilon=1, bounds=(0, 8), neighbours="substitute", scales=2
    ).candidates
    found = [(low, high) for low, high, times in zip(lows, highs, halved, strict=True) if times == 1]
    assert found == [(0, 4), (2, 6), (4, 8)]
    assert (lows[0], highs[0]) == (0, 8)
    assert len(lows) == 1 + 3 + 7


INTERVAL = Interval(0.0, 2.0)
MOMENTS: list[_Moment] = [
    xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 8)),
    xp.mechanisms.VarianceOfRecords(epsilon=1, bounds=(0, 8)),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: type(moment).__name__)
def test_the_sensitivity_is_right_and_reached(moment: _Moment) -> None:
    """On data with n = 3 over a few values, those at the ends included."""
    values = (-1.0, 0.0, 0.7, 2.0, 9.0)
    worst, declared = 0, 0
    for data in product(values, repeat=3):
        mine, declared, _ = moment._statistic(points_of(np.array(data), INTERVAL), Fraction(2))
        for other in ((value, *data[1:]) for value in values):
            theirs, _, _ = moment._statistic(points_of(np.array(other), INTERVAL), Fraction(2))
            worst = max(worst, abs(mine - theirs))
    assert worst == declared  # so any smaller noise would break the guarantee: see the control below


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: type(moment).__name__)
def test_noise_has_the_rate_of_the_sensitivity(moment: _Moment) -> None:
    """Frequencies of large noise, against the law; noise of half the scale would be far outside."""
    data = np.full(50, 3.0)
    chosen: list[Any] = [moment.sample(data, NOISE) for _ in range(400)]
    far = np.mean(
        [
            abs(found.value - (3.0 if isinstance(moment, xp.mechanisms.MeanOfRecords) else 0.0)) > found.noise / 3
            for found in chosen
        ]
    )
    # |X| > ln(20)/(3·rate) has probability 20^(−1/3) = 0.37; variances below 0 are published as 0
    expected = 20 ** (-1 / 3) / (1 if isinstance(moment, xp.mechanisms.MeanOfRecords) else 2)
    clipped = np.mean([found.low == 3.0 or found.high == 3.0 for found in chosen])
    assert abs(far - expected) < 0.1 + clipped
    assert abs(expected**2 - expected) > 0.12  # half the scale


@pytest.mark.parametrize("size", [99, 100, 5000])
def test_a_variance_spends_its_epsilon_on_the_mean_and_on_squares_around_it(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def of(epsilon: Fraction, width: int) -> Staircase:
        asked.append((epsilon, width))
        return Staircase(10**6 * epsilon, width, 1)  # no noise to speak of

    monkeypatch.setattr(Staircase, "of", of)
    found = xp.mechanisms.VarianceOfRecords(epsilon=1, bounds=(0, 4), scales=0).sample(np.full(size, 3.0), NOISE)
    assert found.value == 0
    assert sum(epsilon for epsilon, _ in asked) == 1
    pivot = 3 * POINTS // 4
    assert [width for _, width in asked] == ([98 * POINTS**2] if size < 100 else [POINTS, pivot**2])


def test_squares_around_a_pivot_move_by_no_more_than_their_width() -> None:
    values = np.arange(0, 9)
    for pivot in values:
        squares = (values - pivot) ** 2
        assert squares.max() - squares.min() == max(pivot, 8 - pivot) ** 2  # reached: less noise would not do


def test_the_noise_of_a_variance_covers_the_pivot() -> None:
    data = np.random.default_rng(0).gamma(1, 2, 400)
    found: list[Any] = [
        xp.mechanisms.VarianceOfRecords(epsilon=1, bounds=(0, 40), scales=0).sample(data, NOISE) for _ in range(200)
    ]
    assert np.mean([abs(one.value - data.var()) <= one.noise for one in found]) >= 0.95


def test_the_parts_of_epsilon_add_up() -> None:
    for size, epsilon in product((1, 10, 1000, 10**6), ("0.01", "1", "50")):
        moment = xp.mechanisms.MeanOfRecords(epsilon=epsilon, bounds=(0, 1), scales=10)
        chooser = moment.range_of(size)
        assert chooser is not None
        spent = Fraction(str(chooser.epsilon))
        assert 0 < spent <= Fraction(3, 4) * Fraction(epsilon)
        if size == 10**6:
            assert abs(spent - Fraction(epsilon) / 4) <= Fraction(1, 1000)


def test_without_scales_all_of_epsilon_is_for_the_noise() -> None:
    found = published(xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 8), scales=0).sample(np.zeros(100), NOISE))
    assert (found.low, found.high) == (0, 8)
    assert found.noise == float(Staircase.of(Fraction(1), POINTS).reach(Fraction(1, 20)) * Fraction(8, 100 * POINTS))


def test_loose_bounds_cost_little() -> None:
    data = np.random.default_rng(0).normal(170, 10, size=2000)
    found: list[Any] = [
        xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(-10_000, 10_000)).sample(data, NOISE) for _ in range(20)
    ]
    assert np.mean([abs(one.value - data.mean()) for one in found]) < 2  # 10 for noise by the bounds
    spread: list[Any] = [
        xp.mechanisms.VarianceOfRecords(epsilon=1, bounds=(-10_000, 10_000)).sample(data, NOISE) for _ in range(20)
    ]
    assert np.median([abs(one.value - data.var()) for one in spread]) < 60  # 200,000 for noise by the bounds


def test_rules_for_private_values() -> None:
    data = np.array([np.nan, np.inf, -np.inf, 4.0])
    mean = xp.mechanisms.MeanOfRecords(epsilon=1000, bounds=(0, 8), scales=0, missing=2)
    assert mean.sample(data, NOISE).value == pytest.approx((2 + 8 + 0 + 4) / 4, abs=0.05)
    same: Any = xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(3, 3)).sample(np.array([1, 9]), NOISE)
    assert same == (3.0, 3.0, 3.0, 0.0, 0, None, None)
    assert (
        xp.mechanisms.TypicalRange(epsilon=1, bounds=(0, 1), neighbours="add-remove").sample(np.array([]), NOISE).low
        >= 0
    )


def test_a_single_record() -> None:
    assert 0 <= xp.mechanisms.VarianceOfRecords(epsilon=1, bounds=(0, 8)).sample(np.array([3]), NOISE).value <= 16


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": (1, 0)},
        {"bounds": (-1.7e308, 1.7e308)},
        {"bounds": (0, 5e-324)},
        {"scales": 17},
        {"range_share": 1},
        {"epsilon": 0},
    ],
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        xp.mechanisms.MeanOfRecords(**{"epsilon": 1, "bounds": (0, 1), **wrong})


@pytest.mark.parametrize("data", [np.zeros((2, 2)), np.array([]), 3.0])
def test_shapes_are_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 1)), on=data)
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize("bounds", [(-1e100, 1e100), (0, 1e-100), (1e100, 1e100)])
@pytest.mark.parametrize("moment", [xp.mechanisms.MeanOfRecords, xp.mechanisms.VarianceOfRecords])
def test_one_record_counts_little_at_the_ends_of_what_bounds_may_be(moment: Any, bounds: tuple[float, float]) -> None:
    mechanism = moment(epsilon="1e-9", bounds=bounds)
    values = records(EXTREMES, mechanism.bounds, 0.0)
    points = points_of(values, mechanism._clamp(values, NOISE).interval)
    assert points.min() >= 0
    assert points.max() <= POINTS
    found = mechanism.sample(EXTREMES, NOISE)
    assert all(map(np.isfinite, (found.value, found.low, found.high, found.noise)))


def test_points_are_whole_steps_of_the_interval() -> None:
    assert points_of(np.array([-5.0, 0.0, 1.0, 2.0, 7.0]), INTERVAL).tolist() == [0, 0, POINTS // 2, POINTS, POINTS]


def test_the_least_epsilon_needs_no_range() -> None:
    """Without scales nothing is split."""
    assert xp.mechanisms.MeanOfRecords(epsilon="1e-12", bounds=(0, 1), scales=0).guarantee.worst_case == xp.Cost(
        "1e-12"
    )


def test_a_few_records_that_hold_much_are_told_beside_the_number() -> None:
    """The mean is that of records clamped to the interval found; the bar is about those up to ``beyond`` outside."""
    data = np.concatenate([np.full(8, 20_000.0), np.random.default_rng(2).normal(1, 0.3, 9_992)])
    mean = xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(-20_000, 20_000))
    found: list[Any] = [mean.sample(data, NOISE) for _ in range(100)]
    hidden = [one for one in found if one.high < 20_000]
    assert len(hidden) > 50
    for one in hidden:
        assert 8 / len(data) <= one.outside < 0.02 or one.outside < 8 / len(data)
        assert "lie outside, and count as if within" in mean.describe(one)
    assert np.mean([one.outside >= 8 / len(data) for one in hidden]) > 0.9
    claimed = [np.clip(data, one.low - one.beyond, one.high + one.beyond).mean() for one in hidden]
    assert np.mean([abs(one.value - truth) <= one.noise for one, truth in zip(hidden, claimed, strict=True)]) > 0.9
    tight: Any = xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 2)).sample(data[:100], NOISE)
    assert (tight.outside, tight.beyond) == (None, None)
    assert "outside" not in xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 2)).describe(tight)
