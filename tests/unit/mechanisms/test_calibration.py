"""How much noise the elementary mechanisms really add, against literals and against samples."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import DiscreteGaussian, Gaussian, Laplace
from expost.mechanisms import Exponential, RandomizedResponse
from expost.mechanisms.numbers import Shape
from soak import SOAK

pytestmark = pytest.mark.slow


WHOLE, FLOATS = Shape(False, (4,)), Shape(True, (4,))

# (mechanism, shape, the deviation of its noise in the data's own units)
CASES: list[tuple[Any, Shape, float]] = [
    (Laplace(epsilon=0.1, sensitivity=1), WHOLE, 14.136),  # √2/ε, a little less for whole numbers
    (Laplace(epsilon=0.1, sensitivity=3), WHOLE, 42.42),
    (Laplace(epsilon=0.1, sensitivity=3, grid=0.5), FLOATS, 63.64),  # ⌈3/½⌉ + 3 = 9 steps of ½
    (Gaussian(epsilon=1, delta=1e-5, sensitivity=10), WHOLE, 37.306),  # the analytic σ/Δ is 3.7306
    (Gaussian(epsilon=1, delta=1e-5, sensitivity=10, grid=1), FLOATS, 44.767),  # 10 + √4 steps
    (DiscreteGaussian(rho=0.005, delta=1e-5, sensitivity=2), WHOLE, 20.0),  # Δ/√(2ρ)
    (DiscreteGaussian(rho=0.005, delta=1e-5, sensitivity=2, grid=1), FLOATS, 40.0),  # 2 + √4 steps
]


@pytest.mark.parametrize(("mechanism", "shape", "deviation"), CASES)
def test_samples_deviate_as_far_as_the_analysis_wants(mechanism: Any, shape: Shape, deviation: float) -> None:
    """Within 10 %, five deviations of 3,200 draws at most; 30 % more or less would be seen."""
    data = np.zeros(4, np.float64 if shape.floats else np.int64)
    noise = xp.SeededNoise(5)
    values = np.concatenate([mechanism.sample(data, noise) for _ in range(5_000 if SOAK else 800)])
    ratio = float(values.std()) / deviation
    assert 0.9 < ratio < 1.1
    assert not 0.9 < ratio * 0.7 < 1.1
    assert not 0.9 < ratio * 1.3 < 1.1


def test_parameters_are_exact() -> None:
    assert Laplace(epsilon=0.5, sensitivity=2)._calibrate(WHOLE)[1] == Fraction(1, 4)
    assert DiscreteGaussian(rho=0.5, delta=1e-5, sensitivity=3)._calibrate(WHOLE)[1] == 9
    _, variance = Gaussian(epsilon=1, delta=1e-5, sensitivity=1)._calibrate(WHOLE)
    assert float(variance) == pytest.approx(3.730631634816464**2, rel=1e-6)


def test_grids_may_be_as_fine_as_floats_are() -> None:
    for step in (2.0**-24, 2.0**-300, 4.0):
        assert Laplace(epsilon=1, sensitivity=16 * step, grid=step).grid == step


def test_relations_that_a_mechanism_cannot_be_about() -> None:
    assert RandomizedResponse(epsilon=1, choices=2).guarantee.neighbours == "substitute"
    with pytest.raises(xp.InvalidValue, match="their number would tell"):
        RandomizedResponse(epsilon=1, choices=2, neighbours="add-remove")
    with pytest.raises(xp.InvalidValue, match="choices is a whole number from 2 to"):
        RandomizedResponse(epsilon=1, choices=2**61)
    for relation in (None, "substitute"):
        with pytest.raises(xp.InvalidValue, match="neighbours='add-remove'"):
            Exponential(epsilon=1, sensitivity=1, monotone=True, neighbours=relation)  # type: ignore[arg-type]


def test_masked_arrays_are_refused() -> None:
    with pytest.raises(xp.InvalidValue, match="masked arrays"):
        Laplace(epsilon=1, sensitivity=1).check(np.ma.masked_array([1, 2], [True, False]))
