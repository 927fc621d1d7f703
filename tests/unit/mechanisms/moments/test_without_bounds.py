"""Ranges, means, variances and covariances without bounds: what is spent on finding them, and how good they are."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.errors import InvalidValue
from expost.mechanisms.moments import loose_bounds as module
from expost.mechanisms.moments.loose_bounds import LARGEST_RECORD, exponents, loose_bounds, needed

NOISE = xp.SeededNoise(11)
EXTREMES = np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -0.0, 1e-100, 3.0])
WITHOUT: list[xp.Mechanism] = [
    xp.Mean(epsilon=1), xp.Variance(epsilon=1), xp.TrimmedMean(trim=0.1, epsilon=1),
    xp.TypicalRange(epsilon=1, neighbours="substitute"),
]  # fmt: skip


@given(st.floats(-1e38, 1e38), st.floats(-1e38, 1e38))
def test_an_exponent_is_the_least_power_of_two_above_the_distance(value: float, centre: float) -> None:
    (found,) = exponents(np.array([value]), centre).tolist()
    distance = abs(Fraction(value - centre))
    assert found == 128 or distance < Fraction(2) ** found
    assert found == -126 or Fraction(2) ** (found - 1) <= distance


def test_one_record_moves_one_exponent() -> None:
    mine, theirs = (exponents(np.array(data), 3.0) for data in ([1.0, 5.0, 9.0], [1.0, 1e300, 9.0]))
    assert (mine != theirs).tolist() == [False, True, False]


def spent(monkeypatch: pytest.MonkeyPatch, mechanism: xp.Mechanism, size: int) -> tuple[Fraction, list[Fraction]]:
    """ε for the final choice of an interval, and for each of the choices before."""
    asked: list[Fraction] = []

    def recorded(kind: Any) -> Any:
        def make(**parameters: Any) -> Any:
            asked.append(Fraction(parameters["epsilon"]))
            return kind(**parameters)

        return make

    monkeypatch.setattr(module, "Median", recorded(xp.Median))
    monkeypatch.setattr(module, "Quantile", recorded(xp.Quantile))
    finder = mechanism if isinstance(mechanism, xp.TypicalRange) else mechanism.range_of(size)  # type: ignore[attr-defined]
    bounded = finder._bounded(np.linspace(0, 1, size), NOISE)
    return Fraction(str(bounded.epsilon)), asked


@pytest.mark.parametrize("size", [1, 10, 1000, 10**5])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
def test_what_finding_bounds_costs_comes_out_of_epsilon(
    monkeypatch: pytest.MonkeyPatch, size: int, epsilon: str
) -> None:
    finder = xp.TypicalRange(epsilon=epsilon, neighbours="substitute")
    rest, choices = spent(monkeypatch, finder, size)
    assert len(choices) == 2
    assert rest + sum(choices) == Fraction(epsilon)
    assert Fraction(epsilon) / 16 - Fraction(1, 10**9) <= sum(choices) <= Fraction(epsilon) / 2


@pytest.mark.parametrize("size", [1, 10, 1000, 10**5])
def test_finding_a_range_leaves_a_quarter_for_the_noise(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    rest, choices = spent(monkeypatch, xp.Mean(epsilon=1), size)
    assert rest + sum(choices) <= Fraction(3, 4)


def test_few_records_need_more_of_epsilon() -> None:
    assert needed(100, Fraction(1)) == Fraction(1, 2)
    assert needed(1000, Fraction(1)) == Fraction(1, 4)
    assert needed(10**6, Fraction(1)) == Fraction(1, 16)


@pytest.mark.parametrize(
    "data",
    [
        np.random.default_rng(0).normal(size=5000),
        1e12 + 1e9 * np.random.default_rng(1).normal(size=5000),
        1e-9 * np.random.default_rng(2).lognormal(size=5000),
        np.repeat([0.0, 7.0], [4000, 1000]),
    ],
)
def test_bounds_are_loose_but_not_more(data: Any) -> None:
    low, high = loose_bounds(data, Fraction(1), NOISE)
    assert np.mean((low <= data) & (data <= high)) > 0.99
    assert high - low < 40 * np.ptp(data)


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
    likeness = [xp.Correlation(epsilon=4).sample(rows, NOISE) for _ in range(10)]
    assert np.median(likeness) == pytest.approx(np.asarray(np.corrcoef(rows.T))[0, 1], abs=0.1)


def test_what_cannot_be_found_is_refused() -> None:
    with pytest.raises(InvalidValue, match="public number of records"):
        xp.TypicalRange(epsilon=1, neighbours="add-remove")
    with pytest.raises(InvalidValue, match="at least one record"):
        xp.TypicalRange(epsilon=1, neighbours="substitute").check(np.array([]))
    with pytest.raises(InvalidValue, match="there are none"):
        xp.Mean(epsilon=1, scales=0)
    for tiny in (xp.Mean, xp.Variance, xp.Covariance, xp.Correlation):
        with pytest.raises(InvalidValue, match="split"):
            tiny(epsilon="1e-11")


def test_ends_are_of_single_precision() -> None:
    low, high = loose_bounds(np.full(1000, 1e300), Fraction(5), NOISE)
    assert -LARGEST_RECORD <= low <= high <= LARGEST_RECORD
