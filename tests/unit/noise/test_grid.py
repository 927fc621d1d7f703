"""Grids: exact rounding half up, sensitivities that include it, rules for values that are no numbers."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from expost.errors import InvalidValue
from expost.noise.grid import FARTHEST, Grid, saturating_sum

floats = st.floats(allow_nan=False, allow_infinity=False)
exponents = st.integers(-60, 60)
ZERO = Fraction(0)


@settings(deadline=None)
@given(floats, exponents)
@example(0.49999999999999994, 0)  # + 0.5 is 1.0 in floats
@example(-0.5, 0)
@example(-0.50000000000000011, 0)
@example(2.5, 0)
@example(5e-324, 60)
@example(-5e-324, -60)
@example(1.7976931348623157e308, -60)
@example(4503599627370497.5, 0)
def test_rounding_is_half_up_and_exact(value: float, exponent: int) -> None:
    grid = Grid(exponent)
    exact = floor(Fraction(value) / grid.step + Fraction(1, 2))
    expected = max(-FARTHEST, min(FARTHEST, exact))
    assert grid.round(value, ZERO) == expected
    assert grid.round_all(np.array([[value]]), ZERO).tolist() == [[expected]]


def test_rules_for_what_is_no_number() -> None:
    grid = Grid(-3)
    values = [inf, -inf, nan, 1.0]
    expected = [FARTHEST, -FARTHEST, 20, 8]
    assert [grid.round(value, Fraction(5, 2)) for value in values] == expected
    assert grid.round_all(np.array(values), Fraction(5, 2)).tolist() == expected
    assert grid.round_all(np.array(values, np.float32), Fraction(5, 2)).tolist() == expected


def test_long_arrays_are_rounded_block_by_block() -> None:
    values = np.random.default_rng(1).normal(size=(3, 20_001)) * 100
    rounded = Grid(-2).round_all(values, ZERO)
    assert rounded.shape == values.shape
    assert (rounded == np.floor(values * 4 + 0.5)).all()
    assert np.abs(Grid(-2).values(rounded) - values).max() <= 0.125


@settings(deadline=None)
@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=6), exponents)
def test_sensitivities_on_the_grid(pairs: list[tuple[float, float]], exponent: int) -> None:
    grid = Grid(exponent)
    moves = [Fraction(a) - Fraction(b) for a, b in pairs]
    steps = [grid.round(a, ZERO) - grid.round(b, ZERO) for a, b in pairs]
    l1 = sum(abs(move) for move in moves)
    assert sum(map(abs, steps)) <= grid.l1(Fraction(l1), len(pairs))
    square = sum(move**2 for move in moves)
    above = Fraction(ceil(square * 4**300) + 1, 4**300)
    root = Fraction(_isqrt_up(above.numerator * above.denominator), above.denominator)
    assert sum(step**2 for step in steps) <= grid.l2(root, len(pairs)) ** 2


def test_l1_on_the_grid_is_tight() -> None:
    """Values that straddle rounding thresholds reach ⌈Δ/g⌉ + d − 1."""
    grid, tiny = Grid(0), 2.0**-40
    up, down = [0.5, 0.5, 3.5], [0.5 - tiny, 0.5 - tiny, 0.5]
    moved = sum(abs(grid.round(a, ZERO) - grid.round(b, ZERO)) for a, b in zip(up, down, strict=True))
    sensitivity = sum(Fraction(a) - Fraction(b) for a, b in zip(up, down, strict=True))
    assert grid.l1(Fraction(3), 3) == moved == 5
    assert grid.l1(Fraction(sensitivity), 3) == 6


@pytest.mark.parametrize("step", ["0.3", "3", "0", "-1", "0.75"])
def test_steps_are_powers_of_two(step: str) -> None:
    with pytest.raises(InvalidValue, match="power of two"):
        Grid.of(Fraction(step))


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_within_is_the_coarsest(step: Fraction) -> None:
    grid = Grid.within(step)
    assert grid.step <= step < 2 * grid.step
    assert Grid.of(grid.step) == grid


def test_steps_beyond_floats_are_refused() -> None:
    with pytest.raises(InvalidValue, match="2\\^900"):
        Grid.within(Fraction(2) ** 1000)


@settings(deadline=None)
@given(st.integers(-FARTHEST, FARTHEST), exponents)
def test_values_are_the_nearest_floats(point: int, exponent: int) -> None:
    value = Grid(exponent).value(point)
    assert isfinite(value)
    assert value == float(point * Fraction(2) ** exponent)
    assert Grid(exponent).values(np.array([point]))[0] == value


def _isqrt_up(number: int) -> int:
    from math import isqrt

    return isqrt(number) + 1


def test_noise_at_its_own_end_says_nothing_about_what_it_was_added_to() -> None:
    """lem-saturation: array noise of 2^61 and more is known by its sign only."""
    noise = np.array([2**62, -(2**62), 2**61, 3])
    ends = [saturating_sum(np.full(4, number), noise).tolist() for number in (0, 2**60, -(2**60))]
    assert [end[:3] for end in ends] == [[2**60, -(2**60), 2**60]] * 3
    assert [end[3] for end in ends] == [3, 2**60, 3 - 2**60]
