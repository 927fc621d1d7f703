"""Staircase noise: its law exactly and by frequencies, the guarantee with a control, and its reach."""

from fractions import Fraction
from math import ceil, exp

import numpy as np
import pytest

import expost as xp
from expost import bracket
from expost.mechanisms.moments.staircase import Staircase
from expost.verify import FiniteMechanism, check, law

NOISE = xp.SeededNoise(8)


def weights(stairs: Staircase, reach: int) -> dict[int, Fraction]:
    """e^−(ε·stair) of the sizes up to a reach."""
    return {x: bracket.exp(-stairs.epsilon * stairs.stair(abs(x))).upper for x in range(-reach, reach + 1)}


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_one_person_moves_a_stair_by_at_most_one(width: int, epsilon: Fraction) -> None:
    for first in range(1, width + 1):
        stairs = Staircase(epsilon, width, first)
        for x in range(-30, 30):
            moved = [abs(stairs.stair(abs(x)) - stairs.stair(abs(x + by))) for by in range(-width - 1, width + 2)]
            assert max(moved[1:-1]) <= 1
    assert stairs.stair(width - 1) == 0 < stairs.stair(width)


def test_it_keeps_its_guarantee_and_no_smaller_one() -> None:
    """The law on −12 … 12, all the rest in one cell on either side, for data 0 and a neighbour 3 away."""
    stairs = Staircase(Fraction(1), 3, 2)
    far = weights(stairs, 90)
    total = sum(far.values())

    def clamped(data: int) -> dict[int, Fraction]:
        found = dict.fromkeys(range(-12, 13), Fraction(0))
        for x, weight in far.items():
            found[max(-12, min(12, data + x))] += weight / total
        return found

    table = FiniteMechanism({x: clamped(x) for x in (0, 3)}, [(0, 3), (3, 0)], lambda output: "released")
    tiny = Fraction(1, 10**9)  # what is beyond 90
    assert check(table, xp.Guarantee.uniform(1, tiny)).holds
    assert check(table, xp.Guarantee.uniform("0.9", tiny)).holds is False


def test_too_narrow_stairs_are_caught() -> None:
    stairs = Staircase(Fraction(1), 2, 1)  # for data that moves by 2, not by 3
    assert stairs.stair(4) - stairs.stair(0) == 2
    assert stairs.stair(3) - stairs.stair(0) == 2


@pytest.mark.slow
def test_draws_have_the_law_exactly() -> None:
    """The code's own draws, all of them up to a small probability."""
    stairs, missing = Staircase(Fraction(2), 2, 1), Fraction(1, 100)
    found = law(stairs.draw, missing=missing)
    exact = weights(stairs, 60)
    for x in range(-5, 6):
        truth = exact[x] / sum(exact.values())
        assert found.get(x, Fraction(0)) <= truth + Fraction(1, 10**6)
        assert truth <= found.get(x, Fraction(0)) + missing


@pytest.mark.parametrize("epsilon", ["0.3", "1", "8", "300"])
def test_the_reach_holds_and_large_epsilon_means_small_noise(epsilon: str) -> None:
    stairs = Staircase.of(Fraction(epsilon), 1000)
    sizes = np.abs([stairs.draw(NOISE) for _ in range(1000)])
    assert np.mean(sizes > stairs.reach(Fraction(1, 20))) < 0.07
    if epsilon != "300":
        e = float(epsilon)
        assert np.mean(sizes) == pytest.approx(1000 * exp(e / 2) / (exp(e) - 1), rel=0.15)


def test_the_first_stair_is_never_empty() -> None:
    for width in (1, 2, 2**60):
        for epsilon in (Fraction(1, 10**12), Fraction(1), Fraction(10**6)):
            assert 1 <= Staircase.of(epsilon, width).first <= width


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("miss", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 20), Fraction(1, 40)])
def test_the_reach_is_the_least(epsilon: Fraction, miss: Fraction) -> None:
    """Compared with the law, summed up to where nothing of it is left."""
    for width, first in ((1, 1), (5, 2), (7, 7), (100, 12)):
        stairs = Staircase(epsilon, width, first)
        sizes = np.arange(width * ceil(40 / epsilon))
        chances = np.exp(-float(epsilon) * ((sizes + width - first) // width)) * np.where(sizes == 0, 1, 2)
        reach = stairs.reach(miss)
        assert chances[reach + 1 :].sum() / chances.sum() <= float(miss) + 1e-12
        assert reach == 0 or chances[reach:].sum() / chances.sum() > float(miss) - 1e-12
