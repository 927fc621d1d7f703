"""Means, variances and covariances without bounds: what finding a range costs, and how good they are."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.errors import InvalidValue
from expost.ledger import codec
from expost.mechanisms.moments.moments import Winsorized
from expost.mechanisms.moments.pairs import Estimate
from expost.mechanisms.moments.private_range import LEVELS

NOISE = xp.SeededNoise(11)
EXTREMES = np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -0.0, 1e-100, 3.0])
WITHOUT: list[xp.Mechanism] = [
    xp.Mean(epsilon=1), xp.Variance(epsilon=1), xp.TrimmedMean(trim=0.1, epsilon=1),
]  # fmt: skip
ROWS = np.random.default_rng(6).normal(size=(50_000, 2))


@pytest.mark.parametrize("share", [None, "0.3"])
@pytest.mark.parametrize("kind", [xp.Mean, xp.Variance])
def test_a_moment_costs_its_noise_and_the_level_of_the_search(kind: Any, share: Any) -> None:
    moment = kind(epsilon=1, range_share=share)
    for_range = Fraction(share or "1/2")
    prices = {level: for_range / 2 ** (LEVELS - level) + 1 - for_range for level in range(1, LEVELS + 1)}
    assert moment.guarantee == xp.Guarantee(prices, neighbours="substitute")
    assert moment.guarantee.worst_case == xp.Cost(1)
    assert kind(epsilon=1, range_share=share, bounds=(0, 1)).guarantee == xp.Guarantee.uniform(
        1, neighbours="substitute"
    )


@pytest.mark.parametrize("kind", [xp.Covariance, xp.Correlation])
def test_two_columns_cost_their_noise_and_the_level_of_the_search(kind: Any) -> None:
    prices = {level: Fraction(1, 2) / 2 ** (LEVELS - level) + Fraction(1, 2) for level in range(1, LEVELS + 1)}
    assert kind(epsilon=1).guarantee == xp.Guarantee(prices, neighbours="substitute")
    assert kind(epsilon=1).part_of(kind(epsilon=1).sample(ROWS, NOISE)) < LEVELS


@pytest.mark.parametrize("mechanism", [xp.Mean(epsilon=1), xp.Variance(epsilon=1)], ids=lambda one: type(one).__name__)
def test_a_ledger_is_refunded_what_the_range_did_not_take(mechanism: Any) -> None:
    ledger = xp.Ledger(epsilon=2, noise=xp.SeededNoise(1))
    large = ledger.run(mechanism, on=np.random.default_rng(0).normal(size=50_000))
    assert large.part == large.value.level < LEVELS
    assert large.refunded.exact_epsilon == Fraction(1, 2) - Fraction(1, 2) / 2 ** (LEVELS - large.value.level)
    small = ledger.run(mechanism, on=np.arange(50.0))
    assert (small.value.level, small.refunded) == (LEVELS, xp.Cost(0))


def test_groups_are_charged_what_the_costliest_search_took() -> None:
    means = xp.ByGroup(mechanism=xp.Mean(epsilon=1), groups=("a", "b"), split="record")
    rng = np.random.default_rng(0)
    groups = {"a": rng.normal(size=50_000), "b": rng.normal(size=5_000)}
    release = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(means, on=groups)
    levels = [release.value[group].level for group in ("a", "b")]
    assert levels[0] < levels[1]
    assert release.charged == xp.Mean(epsilon=1).guarantee.cost_of(levels[1])


def test_what_was_kept_before_there_were_levels_is_read() -> None:
    """Outputs of older ledgers have none: they were found within bounds, or for all of ε."""
    kept = '{"$record":["expost:Winsorized",[["value",1],["low",0],["high",2],["noise",3]]]}'
    assert codec.decode(kept) == Winsorized(1, 0, 2, 3, 0)
    assert codec.decode('{"$record":["expost:Estimate",[["value",1],["noise",3]]]}') == Estimate(1, 3, 0)


@pytest.mark.parametrize("mechanism", WITHOUT, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("data", [EXTREMES, np.array([5.0]), np.zeros(30), np.array([1e308, -1e308] * 20)])
def test_no_record_causes_an_error(mechanism: Any, data: Any) -> None:
    mechanism.check(data)
    assert np.all(np.isfinite(mechanism.sample(data, NOISE)))


@pytest.mark.parametrize("kind", [xp.Covariance, xp.Correlation])
def test_no_pair_of_records_causes_an_error(kind: Any) -> None:
    assert np.all(np.isfinite(kind(epsilon=1).sample(np.column_stack([EXTREMES, EXTREMES[::-1]]), NOISE)))


def test_moments_of_any_size() -> None:
    data = 1e9 + 1e6 * np.random.default_rng(4).normal(size=20_000)
    mean = [xp.Mean(epsilon=1).sample(data, NOISE).value for _ in range(10)]
    assert np.mean(np.abs(np.array(mean) - data.mean())) < 0.01 * data.std()
    spread = [xp.Variance(epsilon=1).sample(data, NOISE).value for _ in range(10)]
    assert np.mean(np.abs(np.array(spread) - data.var())) < 0.05 * data.var()
    trimmed = [xp.TrimmedMean(trim=0.1, epsilon=1).sample(data, NOISE).value for _ in range(10)]
    assert np.mean(np.abs(np.array(trimmed) - data.mean())) < 0.05 * data.std()


def test_covariances_of_any_size() -> None:
    rng = np.random.default_rng(5)
    first = rng.normal(1e6, 1e3, size=20_000)
    rows = np.column_stack([first, 1e-3 * first + rng.normal(size=20_000)])
    found = [xp.Covariance(epsilon=4).sample(rows, NOISE).value for _ in range(10)]
    assert np.median(found) == pytest.approx(np.asarray(np.cov(rows.T))[0, 1], rel=0.1)
    correlation: Any = xp.Correlation(epsilon=4)
    likeness = [correlation.sample(rows, NOISE).value for _ in range(10)]
    assert np.median(likeness) == pytest.approx(np.asarray(np.corrcoef(rows.T))[0, 1], abs=0.1)


def test_what_cannot_be_found_is_refused() -> None:
    with pytest.raises(InvalidValue, match="bounds are a pair"):
        xp.TypicalRange(epsilon=1, bounds=None, neighbours="substitute")
    with pytest.raises(InvalidValue, match="there are none"):
        xp.Mean(epsilon=1, scales=0)
    for tiny in (xp.Mean, xp.Variance, xp.Covariance, xp.Correlation):
        with pytest.raises(InvalidValue, match="split"):
            tiny(epsilon="1e-11")
