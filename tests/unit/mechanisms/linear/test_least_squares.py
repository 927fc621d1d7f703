"""Least squares: the sensitivity by brute force, the law of the noise, what is refused, and accuracy."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.linear.box import STEPS
from expost.noise import vector

NOISE = xp.SeededNoise(11)


def mechanism(features: int = 1, **changed: Any) -> xp.mechanisms.LeastSquares:
    return xp.mechanisms.LeastSquares(
        **{"epsilon": 1, "bounds": [(-1, 1)] * features, "target_bounds": (-1, 1), **changed}
    )


@pytest.mark.parametrize("errors", [False, True])
@pytest.mark.parametrize("features", [1, 2])
def test_one_person_moves_the_sums_by_no_more_than_the_sensitivity(features: int, errors: bool) -> None:
    ends = [-STEPS, -STEPS // 3, 0, STEPS // 2, STEPS] if features == 1 else [-STEPS, 0, STEPS]
    one = mechanism(features, standard_errors=errors)
    sums = [one.sums(np.array([row], np.int64)) for row in product(ends, repeat=features + 1)]
    worst = max(int(np.abs(a - b).sum()) for a in sums for b in sums)
    assert worst <= one.sensitivity * STEPS**2
    if features == 1:
        assert worst >= one.sensitivity * STEPS**2 * Fraction(99_999, 100_000)  # reached, but for rounding


def test_the_loss_reaches_epsilon_and_with_a_smaller_sensitivity_exceeds_it() -> None:
    """ln P/Q of noise of rate r at the sums themselves is r times their distance on neighbours."""
    one = mechanism()
    distance = int(np.abs(one.sums(np.array([[STEPS, STEPS]])) - one.sums(np.array([[0, -STEPS]]))).sum())
    assert one._rate * distance == 1
    assert Fraction(1, (one.sensitivity - 1) * STEPS**2) * distance > 1


def test_the_noise_has_the_rate_that_the_proof_asks_for() -> None:
    """Where all sums are zero, the fit is that of the noise alone, drawn again from the same seed."""
    one = mechanism(2, epsilon=3)
    fit = one.sample(np.zeros((4, 3)), xp.SeededNoise(5))

    def of_noise(rate: Fraction) -> Any:
        drawn = vector.discrete_laplace(xp.SeededNoise(5), rate, 8)
        return one._fit(drawn / (STEPS**2 * 4), float(one._scale / 4), 4)

    assert fit == of_noise(Fraction(3, 9 * STEPS**2))
    assert fit != of_noise(Fraction(3, 8 * STEPS**2))


def test_without_noise_it_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    features, target = rng.uniform(0, 10, (500, 2)), rng.normal(size=500)
    target += features @ [2, -1] + 3
    fit = xp.mechanisms.LeastSquares(epsilon=9_000_000, bounds=[(0, 10)] * 2, target_bounds=(-20, 40)).sample(
        np.column_stack([features, target]), NOISE
    )
    truth = np.linalg.lstsq(np.column_stack([np.ones(500), features]), target, rcond=None)[0]
    assert [fit.intercept, *fit.coefficients] == pytest.approx(truth.tolist(), abs=0.01)
    assert fit(features[:3]) == pytest.approx((truth[0] + features[:3] @ truth[1:]).tolist(), abs=0.02)


def test_it_is_near_with_enough_records() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (20_000, 1))
    y = 2 * x[:, 0] + rng.normal(0, 0.1, 20_000)
    fits = [
        xp.mechanisms.LeastSquares(epsilon=1, bounds=[(0, 1)], target_bounds=(-1, 3)).sample(
            np.column_stack([x, y]), NOISE
        )
        for _ in range(10)
    ]
    assert np.mean([abs(fit.coefficients[0] - 2) for fit in fits]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("features", "size", "epsilon"), [(1, 2000, 1), (2, 5000, 2), (1, 500, 50)])
def test_standard_errors_are_those_of_repeated_studies(features: int, size: int, epsilon: int) -> None:
    """New records and new noise each time. Noise alone, or sampling alone, would be too small in one of the three."""
    rng = np.random.default_rng(0)
    bounds: dict[str, Any] = {"bounds": [(0, 10)] * features, "target_bounds": (-20, 40)}
    fits = []
    for _ in range(150):
        x = rng.uniform(0, 10, (size, features))
        y = x @ [2, -1][:features] + 3 + rng.normal(0, 2, size)
        fit = xp.mechanisms.LeastSquares(epsilon=epsilon, standard_errors=True, **bounds)
        fits.append(fit.sample(np.column_stack([x, y]), NOISE))
    actual = np.std([[fit.intercept, *fit.coefficients] for fit in fits], axis=0)
    assert np.median([fit.standard_errors for fit in fits], axis=0) == pytest.approx(actual, rel=0.25)


def test_standard_errors_are_derivatives() -> None:
    """Against differences of the fit itself, without a ridge."""
    one = mechanism(2, standard_errors=True)
    rng = np.random.default_rng(0)
    rows = one.box.steps(rng.uniform(-1, 1, (400, 3)), 0.0)
    sums = one.sums(rows) / (STEPS**2 * len(rows))
    scale, tiny = 1e-9, 1e-6
    fit = one._fit(sums, scale, 10**12)  # so many records that sampling does not count
    moved = [
        (np.array(one._fit(sums + tiny * unit, scale, 1)[1]) - fit.coefficients) / tiny for unit in np.eye(len(sums))
    ]
    expected = np.sqrt(2 * (np.array(moved) ** 2).sum(axis=0)) * scale
    assert fit.standard_errors is not None
    sampled = one._fit(sums, 1e-12, 10**12).standard_errors
    assert sampled is not None
    assert np.array(fit.standard_errors[1:]) ** 2 - np.array(sampled[1:]) ** 2 == pytest.approx(expected**2, rel=0.01)


def test_standard_errors_of_data_that_says_nothing_are_finite() -> None:
    fit = mechanism(bounds=[(3, 3)], standard_errors=True).sample(np.full((5, 2), np.nan), NOISE)
    assert fit.standard_errors is not None
    assert np.isfinite(fit.standard_errors).all()
    assert mechanism().sample(np.zeros((5, 2)), NOISE).standard_errors is None


def test_private_values_follow_rules() -> None:
    fit = mechanism(epsilon=1000).sample(np.array([[np.nan, 1.0], [np.inf, 2], [-np.inf, np.nan]]), NOISE)
    assert np.isfinite(fit.intercept)
    same = mechanism(bounds=[(3, 3)]).sample(np.column_stack([np.full(5, 3.0), np.arange(5) / 10]), NOISE)
    assert np.isfinite(same.coefficients[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": []},
        {"bounds": [(1, 0)]},
        {"bounds": [(-1.7e308, 1.7e308)]},
        {"bounds": [(0, 5e-324)]},
        {"target_bounds": 3},
        {"epsilon": 0},
        {"standard_errors": 1},
    ],
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        mechanism(**wrong)


@pytest.mark.parametrize("data", [np.zeros(3), np.zeros((3, 1)), np.zeros((3, 3)), np.zeros((0, 2)), 3.0])
def test_shapes_are_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(mechanism(), on=data)
    assert ledger.remaining.epsilon == 1
