"""How far sums of Laplace noise reach, compared with their laws, summed exactly."""

from fractions import Fraction
from math import exp, inf

import numpy as np
import pytest
from numpy.typing import NDArray

from expost.mechanisms.laplace_sums import (
    _chernoff,
    _continuous,
    _convolved,
    mean_reach,
    pair_reach,
    repeated_reach,
    sum_reach,
    variance_error,
    weighted_reach,
)
from expost.noise.sums import LaplaceSteps

MISS = Fraction(1, 20)
Floats = NDArray[np.float64]


def law(rate: float, places: int) -> Floats:
    """The probabilities of −places … places."""
    return np.asarray(np.exp(-rate * np.abs(np.arange(-places, places + 1))) * np.tanh(rate / 2), np.float64)


def beyond(size: float, sizes: Floats, chances: Floats) -> float:
    return float(chances[np.abs(sizes) > size].sum())


def pairs(first: float, second: float, slope: float) -> tuple[Floats, Floats]:
    """All values of X − slope·Y with their probabilities."""
    one, other = (np.arange(-int(30 / rate), int(30 / rate) + 1) for rate in (first, second))
    sizes = one[:, None] - slope * other[None, :]
    return sizes, law(first, one.max())[:, None] * law(second, other.max())[None, :]


@pytest.mark.parametrize(("first", "second"), [(0.2, 0.05), (0.1, 1.0), (0.5, 4.0), (1.0, 0.5), (0.1, 0.1)])
@pytest.mark.parametrize("most", [0.01, 1.0, 5.0, 30.0])
def test_a_pair_is_exceeded_rarely_for_every_slope_and_hardly_less(first: float, second: float, most: float) -> None:
    reach = pair_reach(Fraction(first), Fraction(second), most, MISS)
    for slope in (0.0, 0.3 * most, -0.77 * most, most):
        assert beyond(reach, *pairs(first, second, slope)) <= MISS
    tight = reach - 1 - (most if second < 1 / 16 else most / 2 if second > 1 else 0) - 0.03 * reach
    assert beyond(tight, *pairs(first, second, most)) > MISS or tight < 0


def test_a_pair_reaches_less_far_than_the_sum_of_two_bounds() -> None:
    rate = Fraction(1, 1000)
    assert pair_reach(rate, rate, 1.0, MISS) < 0.7 * 2 * LaplaceSteps(rate).reach(MISS / 2)


@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.5), (1.0, 2.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.001, 0.02)])
def test_three_are_exceeded_as_often_as_they_may(weights: tuple[float, ...]) -> None:
    """By drawing: at 95 %, of 200,000, four standard deviations are 0.002."""
    rng = np.random.default_rng(3)
    drawn = (rng.laplace(size=(200_000, 3)) * 1000).round() @ np.array(weights)
    often = np.mean(np.abs(drawn) > weighted_reach((Fraction(1, 1000),) * 3, weights, MISS))
    assert 0.046 < often < 0.052


def test_a_rare_miss_is_left_to_added_bounds() -> None:
    rates, rare = (Fraction(1, 10), Fraction(1, 10)), Fraction(1, 10**9)
    assert weighted_reach(rates, (1.0, 2.0), rare) == 3 * LaplaceSteps(Fraction(1, 10)).reach(rare / 2)
    assert repeated_reach(Fraction(1, 10), 2, rare) <= 2 * LaplaceSteps(Fraction(1, 10)).reach(rare / 2)


@pytest.mark.parametrize("rate", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("times", [2, 3, 7])
def test_a_repeated_sum_has_the_least_reach(rate: float, times: int) -> None:
    one = law(rate, int(60 / rate))
    sums = one
    for _ in range(times - 1):
        sums = np.convolve(sums, one)
    sizes = np.arange(sums.size) - sums.size // 2
    reach = repeated_reach(Fraction(rate), times, MISS)
    assert beyond(reach, sizes, sums) <= MISS
    assert reach == 0 or beyond(reach - 1, sizes, sums) > MISS - 1e-6


def test_continuous_and_convolved_sums_agree() -> None:
    rate, times, miss = 0.01, 40, 0.05
    places = 2 * int(_chernoff(rate, times, 1e-9) + 1)
    convolved, continuous = _convolved(rate, times, miss, places), _continuous(rate, times, miss)
    assert convolved <= continuous <= convolved + times / 2 + 2
    assert continuous < 0.8 * _chernoff(rate, times, miss)


def test_many_groups_and_fine_steps() -> None:
    reach = repeated_reach(Fraction(1, 10**9), 10_000, MISS)
    assert reach == pytest.approx(1.96 * 20_000**0.5 * 1e9, rel=0.01)
    assert repeated_reach(Fraction(8), 10_000, MISS) < inf


def test_a_mean_near_the_middle_has_a_smaller_error() -> None:
    def reach(most: float) -> float:
        return 10 + most

    assert mean_reach(0.0, 100.0, 50.0, reach) < 0.25 * mean_reach(50.0, 100.0, 50.0, reach)
    assert mean_reach(50.0, 100.0, 50.0, reach) == pytest.approx(0.6)


@pytest.mark.parametrize("truth", [-4.0, 0.0, 1.5, 4.0])
@pytest.mark.parametrize("size", [30, 300])
def test_a_mean_is_covered_whatever_it_is(truth: float, size: int) -> None:
    """Every noise of the sum and of the number, with its probability."""
    first, second = Fraction(1, 8), Fraction(1, 2)
    one, other = np.arange(-250, 251), np.arange(-60, 61)
    chances = law(1 / 8, 250)[:, None] * law(1 / 2, 60)[None, :]
    missed = 0.0
    for j, counted in enumerate(other):
        divisor = size + int(counted)
        if divisor <= 1:
            continue
        for i, added in enumerate(one):
            if chances[i, j] > 1e-7:
                off = min(max((truth * size + int(added)) / divisor, -4.0), 4.0)
                error = mean_reach(off, divisor, 4.0, lambda most: pair_reach(first, second, most, MISS))
                missed += chances[i, j] * (abs(off - truth) > error)
    assert 0.02 < missed + exp(-15) <= 0.05 or (abs(truth) == 4 and missed <= 0.05)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 0.1), (0.0, 1.0), (0.9, 0.05), (-0.5, 0.75), (1.0, 0.0)])
@pytest.mark.parametrize("size", [40, 2_000])
def test_a_variance_is_covered(mean: float, variance: float, size: int) -> None:
    rng, scale, steps, draws = np.random.default_rng(5), 3.0, 2.0**20, 2_000
    noise = rng.laplace(scale=scale, size=(draws, 3))
    counts, sums = size + noise[:, 0], size * mean + noise[:, 1]
    squares = size * (variance + mean**2) + noise[:, 2]
    rate, missed = Fraction(1, int(scale * steps)), 0
    for count, total, square in zip(counts.tolist(), sums.tolist(), squares.tolist(), strict=True):

        def moved(weights: tuple[float, ...], miss: Fraction, count: float = count) -> float:
            return sum_reach((rate,) * len(weights), weights, miss) / steps / count

        found = min(max(square / count - (total / count) ** 2, 0.0), 1.0)
        missed += abs(found - variance) > variance_error(total / count, found, MISS, moved)
    assert missed / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
