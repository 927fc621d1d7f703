"""Covariances, correlations and trimmed means: sensitivities by brute force, rules for values, and accuracy."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.moments.moments import POINTS
from expost.mechanisms.moments.pairs import comoment
from expost.mechanisms.moments.staircase import Staircase
from published import published

NOISE = xp.SeededNoise(3)
ENDS = (0, POINTS // 3, POINTS)
EXTREMES = np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -0.0, 3.0])


def moments(data: Any) -> int:
    first, second = np.array(data, np.int64).T
    return comoment(first, second)


def test_one_person_moves_a_covariance_by_no_more_than_its_sensitivity() -> None:
    rows = list(product(ENDS, repeat=2))
    worst = max(
        abs(moments((*rest, one)) - moments((*rest, other)))
        for rest in product(rows, repeat=2)
        for one, other in product(rows, repeat=2)
    )
    assert worst == 2 * POINTS**2  # n − 1 = 2: reached, so that less noise would not do


def test_one_person_moves_a_trimmed_sum_by_no_more_than_its_sensitivity() -> None:
    mechanism = xp.mechanisms.TrimmedMean(trim="0.25", epsilon=1, bounds=(0, 1))
    sums = {data: mechanism._statistic(np.array(data, np.int64), Fraction(1))[0] for data in product(ENDS, repeat=4)}
    worst = max(abs(sums[one] - sums[(*one[:3], value)]) for one in sums for value in ENDS)
    assert worst == POINTS == mechanism._statistic(np.array([0, 0, 0, 0]), Fraction(1))[1]


@pytest.mark.parametrize("kind", [xp.mechanisms.CovarianceOfRecords, xp.mechanisms.CorrelationOfRecords])
def test_the_noise_has_the_width_and_the_shares_that_the_proof_asks_for(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def of(epsilon: Fraction, width: int) -> Staircase:
        asked.append((epsilon, width))
        return Staircase(epsilon, width, 1)

    monkeypatch.setattr(Staircase, "of", of)
    kind(epsilon=3, bounds=[(0, 1), (0, 1)]).sample(np.zeros((5, 2)), NOISE)
    assert asked == [(Fraction(3 if kind is xp.mechanisms.CovarianceOfRecords else 1), 4 * POINTS**2)]


def test_with_much_data_they_are_near() -> None:
    rng = np.random.default_rng(0)
    data = rng.multivariate_normal([50, 5], [[100, 12], [12, 4]], 20_000)
    bounds = [(0, 100), (-5, 15)]
    found = published(xp.mechanisms.CovarianceOfRecords(epsilon=1, bounds=bounds).sample(data, NOISE))
    assert abs(found.value - 12) < 1
    assert found.noise == pytest.approx(3.0 * 100 * 20 / 20_000, rel=0.01)
    assert xp.mechanisms.CorrelationOfRecords(epsilon=1, bounds=bounds).sample(data, NOISE) == pytest.approx(
        0.6, abs=0.1
    )


def test_trimmed_means_leave_out_outliers() -> None:
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.normal(100, 5, 3800), np.full(200, 9e5)])
    mechanism = xp.mechanisms.TrimmedMean(trim="0.1", epsilon=1, bounds=(0, 1e6))
    found = [published(mechanism.sample(data, NOISE)) for _ in range(10)]
    truth = np.sort(data)[400:3600].mean()
    assert np.mean([abs(one.value - truth) for one in found]) < 0.5
    assert all(one.low <= one.value <= one.high < 200 for one in found)


def test_a_trimmed_mean_is_that_of_the_records_between() -> None:
    data = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    found = published(xp.mechanisms.TrimmedMean(trim="0.2", epsilon=10**5, bounds=(0, 100)).sample(data, NOISE))
    assert found.value == pytest.approx(2, abs=0.01)
    assert (found.low, found.high) == pytest.approx((0, 3), abs=0.01)


@pytest.mark.parametrize(("size", "epsilon"), [(300, "0.1"), (1000, "0.1"), (4444, "0.001")])
def test_no_bar_where_quantiles_may_lie_beyond_all_records(size: int, epsilon: str) -> None:
    """Most of these intervals hold under half of the records, many none."""
    heights = np.random.default_rng(1).normal(170, 10, size)
    mechanism = xp.mechanisms.TrimmedMean(trim="0.1", epsilon=epsilon, bounds=(0, 100_000))
    found = [published(mechanism.sample(heights, NOISE)) for _ in range(20)]
    assert all(one.noise is None for one in found)
    assert not mechanism.knows_error(size)
    assert "too few values for this trim" in mechanism.describe(found[0])
    assert "±" not in mechanism.describe(found[0])


@pytest.mark.parametrize("trim", ["0.1", "0.25", "0.4"])
def test_with_a_bar_the_interval_shows_half_of_what_it_should(trim: str) -> None:
    mechanism, share = xp.mechanisms.TrimmedMean(trim=trim, epsilon=1, bounds=(0, 100_000)), float(trim)
    size = next(size for size in range(100, 10_000, 10) if mechanism.knows_error(size))
    assert size == {"0.1": 1270, "0.25": 1010, "0.4": 2520}[trim]
    data = np.random.default_rng(2).normal(170, 10, size)
    found = [published(mechanism.sample(data, NOISE)) for _ in range(100)]
    shown = [np.mean((data >= one.low) & (data <= one.high)) for one in found]
    assert all(one.noise is not None for one in found)
    assert np.mean(np.array(shown) < (1 - 2 * share) / 2) <= 0.05


@pytest.mark.parametrize("bounds", [(0, 9), None])
def test_between_equal_quantiles_no_error_is_known(bounds: Any) -> None:
    mechanism = xp.mechanisms.TrimmedMean(trim="0.1", epsilon=100, bounds=bounds)
    found = published(mechanism.sample(np.full(1000, 5.0), NOISE))
    assert (found.low, found.high, found.noise) == (5, 5, None)
    assert "both quantiles are the same" in mechanism.describe(found)


def numbers(found: Any) -> list[float]:
    return [each for each in (found if isinstance(found, tuple) else (found,)) if isinstance(each, int | float)]


@pytest.mark.parametrize("bounds", [(-1e100, 1e100), (0, 1e-100), (1e100, 1e100), (0, 3)])
def test_private_values_follow_rules(bounds: tuple[float, float]) -> None:
    rows = np.column_stack([EXTREMES, np.roll(EXTREMES, 3)])
    for data in (rows, rows[:1], np.array([[2**63 - 1, -(2**63)]])):
        for kind in (xp.mechanisms.CovarianceOfRecords, xp.mechanisms.CorrelationOfRecords):
            assert np.isfinite(numbers(kind(epsilon="1e-9", bounds=[bounds, bounds]).sample(data, NOISE))).all()


@pytest.mark.parametrize("bounds", [(-1e90, 1e90), (0, 1e-90), (3, 3), (0, 3)])
def test_trimmed_means_follow_rules(bounds: tuple[float, float]) -> None:
    for data in (EXTREMES, EXTREMES[:1], np.array([2**63 - 1, -(2**63)])):
        assert np.isfinite(
            numbers(xp.mechanisms.TrimmedMean(trim="0.1", epsilon="1e-9", bounds=bounds).sample(data, NOISE))
        ).all()


@pytest.mark.parametrize(
    "wrong", [{"bounds": (0, 1)}, {"bounds": [(0, 1)]}, {"bounds": [(1, 0), (0, 1)]}, {"epsilon": "2e-12"}]
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        xp.mechanisms.CorrelationOfRecords(**{"epsilon": 1, "bounds": [(0, 1), (0, 1)], **wrong})


@pytest.mark.parametrize("wrong", [{"trim": 0}, {"trim": "0.5"}, {"range_share": 1}, {"bounds": (1, 0)}])
def test_parameters_of_trimmed_means_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        xp.mechanisms.TrimmedMean(**{"trim": "0.1", "epsilon": 1, "bounds": (0, 1), **wrong})


@pytest.mark.parametrize("data", [np.zeros(3), np.zeros((3, 3)), np.zeros((0, 2)), 3.0])
def test_shapes_are_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(xp.mechanisms.CovarianceOfRecords(epsilon=1, bounds=[(0, 1), (0, 1)]), on=data)
    assert ledger.remaining.epsilon == 1


def test_what_is_published_is_described() -> None:
    ledger = xp.Ledger(epsilon=9)
    rows = np.random.default_rng(0).uniform(0, 1, (1000, 2))
    bounds = [(0, 1), (0, 1)]
    assert "± 0.00299 at 95 %" in str(ledger.run(xp.mechanisms.CovarianceOfRecords(epsilon=1, bounds=bounds), on=rows))
    assert "CorrelationOfRecords: " in str(
        ledger.run(xp.mechanisms.CorrelationOfRecords(epsilon=1, bounds=bounds), on=rows)
    )
    assert "clamped to" in str(
        ledger.run(xp.mechanisms.TrimmedMean(trim="0.1", epsilon=1, bounds=(0, 1)), on=rows[:, 0])
    )
