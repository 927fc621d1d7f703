"""The law of spherical noise: Gamma lengths and uniform directions; independent Laplace coordinates are told apart."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, factorial, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from expost.noise import SystemNoise, vector
from expost.noise.spherical import rounded_spherical

RUNS, SCALE = 10_000, 10**4
SLACK = sqrt(log(2e8) / (2 * RUNS))  # Dvoretzky–Kiefer–Wolfowitz: a false alarm in 10⁸


def farthest(sample: NDArray[np.float64], below: Callable[[float], float]) -> float:
    """How far the sample's distribution function is from the law's."""
    law = np.array([below(float(value)) for value in np.sort(sample)])
    ranks = np.arange(len(sample) + 1) / len(sample)
    return float(max(np.abs(law - ranks[1:]).max(), np.abs(law - ranks[:-1]).max()))


def gamma(shape: int) -> Callable[[float], float]:
    return lambda x: 1 - exp(-x) * sum(x**k / factorial(k) for k in range(shape))


def noise(size: int) -> NDArray[np.float64]:
    source = SystemNoise()
    return np.array([rounded_spherical(source, Fraction(SCALE), size) for _ in range(RUNS)]) / SCALE


def independent(size: int, runs: int = RUNS) -> NDArray[np.float64]:
    """What "element-wise" noise of that scale would be."""
    return vector.rounded_laplace(SystemNoise(), Fraction(1, SCALE), (runs, size)) / SCALE


@pytest.mark.parametrize("size", [1, 2, 7])
def test_lengths(size: int) -> None:
    assert farthest(np.linalg.norm(noise(size), axis=1), gamma(size)) < SLACK + 1e-3
    if size > 1:
        assert farthest(np.linalg.norm(independent(size), axis=1), gamma(size)) > SLACK + 1e-3


def test_directions() -> None:
    """In three dimensions each coordinate of a uniform direction is uniform on [−1, 1]."""

    def uniform(x: float) -> float:
        return (x + 1) / 2

    found, other = noise(3), independent(3, 40 * RUNS)
    for j in range(3):
        assert farthest(found[:, j] / np.linalg.norm(found, axis=1), uniform) < SLACK + 1e-3
    assert farthest(other[:, 0] / np.linalg.norm(other, axis=1), uniform) > SLACK / sqrt(40) + 1e-3
