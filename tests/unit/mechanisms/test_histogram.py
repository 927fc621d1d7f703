"""Histograms of a public total: the law of the noise exactly and by frequencies with controls, and rules for values."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms import histogram
from expost.mechanisms.histogram import balanced_laplace, noisy_counts

NOISE = xp.SeededNoise(4)
HALF = Fraction(1, 2)


def balanced(reach: int) -> list[tuple[int, int, int]]:
    """All triples of whole numbers up to a size that add up to zero."""
    return [(a, b, -a - b) for a, b in product(range(-reach, reach + 1), repeat=2) if abs(a + b) <= reach]


def size(numbers: Any) -> int:
    return sum(map(abs, numbers))


def expected(rate: float) -> dict[tuple[int, int, int], float]:
    weights = {triple: exp(-rate * size(triple)) for triple in balanced(40)}
    return {triple: weight / sum(weights.values()) for triple, weight in weights.items()}


def distance(found: Counter[Any], law: dict[Any, float]) -> float:
    """Total variation."""
    total = sum(found.values())
    return sum(abs(found[key] / total - law.get(key, 0)) for key in found.keys() | law.keys()) / 2


def test_the_loss_reaches_epsilon_and_with_half_the_distance_exceeds_it() -> None:
    """ln P/Q of an output is the rate times the difference of its distances; the normaliser is the same for all."""
    rate = xp.mechanisms.Histogram(epsilon=3, edges=(0, 1, 2, 3))._rate
    neighbours = [(1, -1, 0), (1, 0, -1), (0, 1, -1)]
    losses = {
        rate * (size(y) - size(tuple(a - b for a, b in zip(y, moved, strict=True))))
        for y in balanced(6)
        for moved in neighbours
    }
    assert max(map(abs, losses)) == 3
    assert 2 * max(losses) > 3  # the rate that hides one count instead of two


@pytest.mark.slow
def test_noise_adds_up_to_zero_and_has_its_law() -> None:
    found = Counter(tuple(balanced_laplace(NOISE, HALF, 3)) for _ in range(4000))
    assert all(not sum(triple) for triple in found)
    assert distance(found, expected(0.5)) < 0.08
    assert distance(found, expected(0.6)) > 0.08
    assert distance(found, expected(0.4)) > 0.08


def test_noise_beyond_the_limit_of_arrays_is_completed() -> None:
    beyond = np.array([[2**62, -(2**62)]])
    drawn = balanced_laplace(NOISE, Fraction(1, 2**40), 3, lambda *_: beyond)  # until a row is accepted
    assert sum(drawn) == 0
    assert drawn[0] >= 2**61 >= 2**61 + drawn[1] + 2**61
    assert 2**62 not in map(abs, drawn)


def test_counts_are_clamped_after_the_noise() -> None:
    """Whatever the counts were."""
    for counts in ([9, 0], [0, 9]):
        assert noisy_counts(np.array(counts), [2**70, -(2**70)]) == [2**60, -(2**60)]


def test_counts_add_up_to_the_number_of_records() -> None:
    mechanism = xp.mechanisms.Histogram(epsilon=1, edges=range_edges(20))
    data = np.random.default_rng(0).integers(0, 20, 500)
    assert {int(mechanism.sample(data, NOISE).sum()) for _ in range(20)} == {500}
    assert xp.mechanisms.Histogram(epsilon=1, edges=(0, 1)).sample(np.zeros(7), NOISE).tolist() == [7]


def range_edges(cells: int) -> list[float]:
    return [place - 0.5 for place in range(cells + 1)]


def test_with_a_large_epsilon_counts_are_exact_more_often_than_with_independent_noise() -> None:
    mechanism, counts = xp.mechanisms.Histogram(epsilon=8, edges=range_edges(20)), np.full(20, 50)
    data = np.repeat(np.arange(20), 50)
    ours = np.mean([np.abs(mechanism.sample(data, NOISE) - counts).mean() for _ in range(300)])
    plain = xp.Laplace(epsilon=8, sensitivity=2)
    theirs = np.mean([np.abs(plain.sample(counts, NOISE) - counts).mean() for _ in range(300)])
    assert ours < 0.6 * theirs


def test_values_are_counted_between_the_edges() -> None:
    mechanism = xp.mechanisms.Histogram(epsilon=1, edges=(0, 1, 2), missing=1.5)
    data = np.array([-np.inf, -1, 0, 0.5, 1, 2, 3, np.inf, np.nan, 1.7e308])
    assert mechanism.counts(data).tolist() == [4, 6]
    assert mechanism.counts(np.array([2**63 - 1, -(2**63)])).tolist() == [1, 1]
    assert mechanism.sample(np.array([]), NOISE).sum() == 0


def test_errors_stay_within_their_bound() -> None:
    mechanism = xp.mechanisms.Histogram(epsilon=1, edges=range_edges(8))
    worst = [np.abs(mechanism.sample(np.array([]), NOISE)).max() for _ in range(300)]
    assert np.mean(np.array(worst) > mechanism.error_bound("0.9")) <= 0.1


@pytest.mark.parametrize(
    "wrong", [{"edges": (1,)}, {"edges": (1, 1)}, {"edges": 3}, {"edges": (0, "x")}, {"epsilon": 0}]
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        xp.mechanisms.Histogram(**{"epsilon": 1, "edges": (0, 1), **wrong})


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(xp.InvalidValue, match="cells"):
        xp.mechanisms.Histogram(epsilon=1, edges=range_edges(histogram._MOST + 1))


@pytest.mark.parametrize("data", [np.zeros((2, 2)), 3.0])
def test_shapes_are_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(xp.mechanisms.Histogram(epsilon=1, edges=(0, 1)), on=data)
    assert ledger.remaining.epsilon == 1
