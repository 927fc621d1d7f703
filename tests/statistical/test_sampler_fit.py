"""Goodness of fit of every sampler: the right law passes, one with a 30 % other scale fails.

The test is Pearson's χ² at a p-value that makes all tests together raise a
false alarm once in a million runs. Reference probabilities are computed in plain
floats from the textbook formulas, independently of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import erf, exp, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from expost import noise
from expost.noise import SystemNoise, vector
from expost.noise.laws import Rate, RatioOfRates

SOURCE = SystemNoise()
FALSE_ALARM = 1e-8  # a hundred tests together: once in a million runs
Below = Callable[[float], float]


def p_value(counts: Iterable[int], probabilities: Iterable[float]) -> float:
    """Pearson's χ² test; the number of cells must be odd, so that the tail is a finite sum."""
    observed, expected = np.array(list(counts), float), np.array(list(probabilities))
    assert observed.size % 2 == 1
    expected = expected / expected.sum() * observed.sum()
    assert observed.min() > 5, "cells too small for a χ² test"
    half = float(((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum()) / 2
    term, total = 1.0, 1.0
    for i in range(1, observed.size // 2):
        term *= half / i
        total += term
    return exp(-half) * total if half < 700 else 0.0


def cells_of(below: Below, cells: int, reach: int) -> list[int]:
    """Edges that cut the law into an odd number of cells, of about equal weight where numbers allow it."""
    candidates = set()
    for i in range(1, cells):
        a, b = -reach, reach
        while b - a > 1:
            middle = (a + b) // 2
            a, b = (a, middle) if below(middle) >= i / cells else (middle, b)
        candidates |= {b - 1, b, b + 1}  # a law with few heavy numbers needs all the edges there are
    edges: list[int] = []
    for edge in sorted(candidates):
        last = below(edges[-1]) if edges else 0.0
        if min(below(edge) - last, 1 - below(edge)) > 0.2 / cells:
            edges.append(edge)
    return edges[: len(edges) // 2 * 2]


def fit(numbers: NDArray[np.int64], below: Below, edges: list[int]) -> float:
    """The p-value of the numbers' law among the cells between these edges."""
    probabilities = np.diff([0.0, *(below(edge) for edge in edges), 1.0])
    counts = np.bincount(np.searchsorted(edges, numbers, side="right"), minlength=len(edges) + 1)
    return p_value(counts, probabilities)


def laplace(scale: float) -> Below:
    q = exp(-1 / scale)
    return lambda k: q ** (1 - k) / (1 + q) if k <= 0 else 1 - q**k / (1 + q)


def geometric(scale: float) -> Below:
    return lambda k: 1 - exp(-k / scale) if k > 0 else 0.0


def rounded_laplace(scale: float) -> Below:
    return lambda k: exp((k - 0.5) / scale) / 2 if k < 0.5 else 1 - exp((0.5 - k) / scale) / 2


def rounded_gaussian(scale: float) -> Below:
    return lambda k: (1 + erf((k - 0.5) / scale / sqrt(2))) / 2


def discrete_gaussian(scale: float) -> Below:
    reach = int(12 * scale) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    sums = np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum()
    return lambda k: float(sums[int(min(max(k + reach, 0), 2 * reach + 1))])


def inverse(scale: float) -> Fraction:
    return 1 / Fraction(str(scale))


def square(scale: float) -> Fraction:
    return Fraction(str(scale)) ** 2


ARRAYS: dict[str, tuple[Callable[[float, int], NDArray[np.int64]], Callable[[float], Below]]] = {
    "discrete Laplace": (lambda s, n: vector.discrete_laplace(SOURCE, inverse(s), n), laplace),
    "geometric": (lambda s, n: vector.geometric(SOURCE, inverse(s), n), geometric),
    "rounded Laplace": (lambda s, n: vector.rounded_laplace(SOURCE, inverse(s), n), rounded_laplace),
    "discrete Gaussian": (lambda s, n: vector.discrete_gaussian(SOURCE, square(s), n), discrete_gaussian),
    "rounded Gaussian": (lambda s, n: vector.rounded_gaussian(SOURCE, square(s), n), rounded_gaussian),
}
ONES: dict[str, tuple[Callable[[float], int], Callable[[float], Below]]] = {
    "discrete Laplace": (lambda s: noise.discrete_laplace(SOURCE, inverse(s)), laplace),
    "geometric": (lambda s: noise.geometric(SOURCE, inverse(s)), geometric),
    "discrete Gaussian": (lambda s: noise.discrete_gaussian(SOURCE, square(s)), discrete_gaussian),
    "rounded Gaussian": (lambda s: noise.rounded_gaussian(SOURCE, square(s)), rounded_gaussian),
}


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.5, 40.0, 1000.0, 100_000.0])
@pytest.mark.parametrize("name", ARRAYS)
def test_array_samplers(name: str, scale: float) -> None:
    sample, law = ARRAYS[name]
    numbers, edges = sample(scale, 300_000), cells_of(law(scale), 41, int(20 * scale) + 20)
    assert fit(numbers, law(scale), edges) > FALSE_ALARM
    for wrong in (0.7 * scale, 1.3 * scale):
        assert fit(numbers, law(wrong), edges) < FALSE_ALARM


@pytest.mark.parametrize("scale", [0.7, 12.0, 3000.0])
@pytest.mark.parametrize("name", ONES)
def test_scalar_samplers(name: str, scale: float) -> None:
    sample, law = ONES[name]
    numbers = np.array([sample(scale) for _ in range(3000)])
    edges = cells_of(law(scale), 9, int(20 * scale) + 20)
    assert fit(numbers, law(scale), edges) > FALSE_ALARM
    for wrong in (0.7 * scale, 1.3 * scale):
        assert fit(numbers, law(wrong), edges) < FALSE_ALARM


@pytest.mark.parametrize("name", ["discrete Laplace", "rounded Laplace", "discrete Gaussian", "rounded Gaussian"])
@pytest.mark.parametrize("scale", [150.0, 1000.0])
def test_every_single_number_about_the_middle(name: str, scale: float) -> None:
    """Each of 201 neighbouring numbers by itself: digits and strips leave no seams."""
    sample, law = ARRAYS[name]
    below = law(scale)
    numbers = sample(scale, 1_000_000)
    inside = numbers[np.abs(numbers) <= 100] + 100
    counts = np.bincount(inside, minlength=201)
    assert p_value(counts, [below(k + 1) - below(k) for k in range(-100, 101)]) > FALSE_ALARM
    assert (
        p_value(counts, [below(k + 1) - below(k) + (k % 16 == 0) * 0.3 / scale for k in range(-100, 101)]) < FALSE_ALARM
    )


@pytest.mark.parametrize("name", ["discrete Laplace", "geometric", "discrete Gaussian", "rounded Gaussian"])
def test_low_digits_of_a_large_scale_are_even(name: str) -> None:
    numbers = ARRAYS[name][0](2.0e7, 500_000) % 31
    counts = np.bincount(numbers, minlength=31)
    assert p_value(counts, [1.0] * 31) > FALSE_ALARM
    assert p_value(counts, [1.1] * 15 + [1.0] * 16) < FALSE_ALARM


def coins(flips: NDArray[np.bool_], probability: float) -> float:
    """How unlikely so many heads are, at most (Hoeffding, both sides)."""
    return min(1.0, 2 * exp(-2 * flips.size * (float(flips.mean()) - probability) ** 2))


@pytest.mark.parametrize("scale", [1.0, 40.0, 3000.0])
@pytest.mark.parametrize("standing", [-1.2, -0.3, 0.0, 0.4, 1.0])
def test_comparisons(scale: float, standing: float) -> None:
    margin = round(standing * scale)
    margins = np.full(400_000, margin)
    for reaches, law in ((vector.laplace_reaches, laplace), (vector.geometric_reaches, geometric)):
        answers = reaches(SOURCE, inverse(scale), margins)
        assert coins(answers, 1 - law(scale)(margin)) > FALSE_ALARM
        if 0 < law(scale)(margin) < 1 and margin > 0:
            for wrong in (0.7 * scale, 1.3 * scale):
                assert coins(answers, 1 - law(wrong)(margin)) < FALSE_ALARM


def test_coins() -> None:
    third = vector.bernoulli(SOURCE, Fraction(1, 3), 400_000)
    assert coins(third, 1 / 3) > FALSE_ALARM
    assert coins(third, 1.3 / 3) < FALSE_ALARM
    exponential = vector.bernoulli_exp(SOURCE, Fraction(6, 5), 400_000)
    assert coins(exponential, exp(-1.2)) > FALSE_ALARM
    assert coins(exponential, exp(-1.2 * 1.3)) < FALSE_ALARM


@pytest.mark.parametrize("choices", [2, 3, 30])
def test_lies(choices: int) -> None:
    added = vector.lies(SOURCE, Fraction(1, 2), choices, 400_000)
    cells = np.bincount(added, minlength=choices)
    if choices % 2 == 0:  # an odd number of cells: split the first, by a coin
        heads = int(vector.bernoulli(SOURCE, Fraction(1, 2), int(cells[0])).sum())
        cells = np.concatenate([[heads, cells[0] - heads], cells[1:]])

    def weights(rate: float) -> list[float]:
        first = [1.0] if choices % 2 else [0.5, 0.5]
        return [*first, *[exp(-rate)] * (choices - 1)]

    assert p_value(cells, weights(0.5)) > FALSE_ALARM
    assert p_value(cells, weights(0.65)) < FALSE_ALARM


@pytest.mark.parametrize("weight", [Rate(Fraction(2, 5)), RatioOfRates(Fraction(2, 3))])
def test_categorical(weight: Rate | RatioOfRates) -> None:
    exponents = np.array([3, 0, 1, 1, 5])
    chosen = [vector.categorical(SOURCE, exponents, weight) for _ in range(8000)]
    rate = 0.4 if isinstance(weight, Rate) else log(1.5)
    counts = np.bincount(chosen, minlength=5)
    assert p_value(counts, np.exp(-rate * exponents)) > FALSE_ALARM
    assert p_value(counts, np.exp(-1.3 * rate * exponents)) < FALSE_ALARM


def test_uniform() -> None:
    counts = np.bincount(vector.uniform(SOURCE, 77, 300_000), minlength=77)
    assert p_value(counts, [1.0] * 77) > FALSE_ALARM
    assert p_value(counts, [1.3] + [1.0] * 76) < FALSE_ALARM
