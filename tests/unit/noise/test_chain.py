"""Discrete Laplace noise that is reduced step by step: marginals, joint law and coins, exactly."""

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import bracket
from expost.noise import SeededNoise, chain, discrete_laplace, vector
from expost.noise.chain import laplace_chains, stay

pytestmark = pytest.mark.slow
RATES = [Fraction(1, 2), Fraction(1), Fraction(7, 2)]


def polynomial(base: Fraction) -> list[Fraction]:
    """1 − 2·base·cos + base², as coefficients of 1 and cos."""
    return [1 + base**2, -2 * base]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [(Fraction(9, 10), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 3)), (Fraction(2, 7), Fraction(1, 9))],
)
def test_the_identity_of_characteristic_functions(wide: Any, narrow: Any) -> None:
    """With e^−rate rational: both sides are linear in the cosine. Another probability breaks it."""
    wide, narrow = Fraction(wide), Fraction(narrow)
    same = narrow * (1 - wide) ** 2 / (wide * (1 - narrow) ** 2)

    def sides(p: Fraction) -> list[list[Fraction]]:
        factor = (1 - narrow) ** 2 / (1 - wide) ** 2
        low, high = polynomial(wide)
        return [polynomial(narrow), [factor * (p * low + (1 - p) * (1 - wide) ** 2), factor * p * high]]

    left, right = sides(same)
    assert left == right
    left, right = sides(same * Fraction(99, 100))
    assert left != right


@pytest.mark.parametrize("slow", [Fraction(1, 2**50), Fraction(1, 1000), Fraction(1), Fraction(30)])
@pytest.mark.parametrize("times", [Fraction(1001, 1000), Fraction(5, 4), Fraction(1000)])
def test_bounds_on_the_coin(slow: Fraction, times: Fraction) -> None:
    """They enclose p = e^−(fast − slow)·((1 − e^−slow)/(1 − e^−fast))², and each other."""
    fast = slow * times
    low, high = stay(slow, fast, 64)
    finer = stay(slow, fast, 256)
    assert low << 192 <= finer[0] <= finer[1] <= high << 192
    assert high - low <= 2
    ends = [bracket.exp(-rate) for rate in (slow, fast, fast - slow)]
    truth = float(ends[2].upper * ((1 - ends[0].upper) / (1 - ends[1].upper)) ** 2)
    assert low / 2**64 == pytest.approx(truth, rel=1e-6, abs=1e-18)


def laplace(rate: Fraction, k: int) -> float:
    base = float(bracket.exp(-rate).upper)
    return (1 - base) / (1 + base) * base ** abs(k)


def joint(numbers: tuple[int, ...]) -> float:
    """The probability of two numbers by the lemma: the first is the second, or that with noise."""
    first, second = numbers
    same = stay(RATES[0], RATES[1], 64)[0] / 2**64
    jump = (1 - same) * laplace(RATES[0], first - second)
    return laplace(RATES[1], second) * (jump + (same if first == second else 0))


def distance(found: Counter[Any]) -> float:
    """χ² of the pairs near zero, and all others as one cell."""
    cells = list(product(range(-2, 3), repeat=2))
    expected = [RUNS * joint(cell) for cell in cells]
    counts = [found[cell] for cell in cells]
    rest = (RUNS - sum(counts) - (RUNS - sum(expected))) ** 2 / (RUNS - sum(expected))
    return rest + sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True))


RUNS, LIMIT = 10_000, 60.1  # 25 degrees of freedom: exceeded with probability 10⁻⁴


@pytest.mark.parametrize("size", [1, 100])
def test_the_joint_law(size: int) -> None:
    """One number at a time, and from arrays."""
    noise, found = SeededNoise(7), Counter[Any]()
    for _ in range(RUNS // size):
        found.update(zip(*laplace_chains(noise, RATES, size)[:2], strict=True))
    assert distance(found) < LIMIT


def test_fresh_noise_has_another_joint_law() -> None:
    noise = SeededNoise(8)
    fresh = Counter[Any](zip(*(vector.discrete_laplace(noise, rate, RUNS).tolist() for rate in RATES[:2]), strict=True))
    assert distance(fresh) > 10 * LIMIT


def test_numbers_beyond_what_arrays_hold() -> None:
    """They keep their sign, and their size is drawn from there on."""
    ends = np.array([3, -(2**62), 2**62, -7] * 10)
    numbers = chain._independent(SeededNoise(1), Fraction(1, 10), 40, lambda *_: ends)
    assert numbers[::4] == [3] * 10
    assert numbers[3::4] == [-7] * 10
    assert all(-vector.KNOWN_BELOW - 1000 < number <= -vector.KNOWN_BELOW for number in numbers[1::4])
    assert len(set(numbers[2::4])) > 1


def test_rates_grow() -> None:
    with pytest.raises(xp.InvalidValue, match="grow"):
        laplace_chains(SeededNoise(1), [Fraction(2), Fraction(1)], 1)


def test_one_rate_is_plain_noise() -> None:
    assert laplace_chains(SeededNoise(3), [Fraction(1)], 1) == [[discrete_laplace(SeededNoise(3), Fraction(1))]]
