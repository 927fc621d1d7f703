"""Fixed point bounds hold, and are narrow."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from expost import bracket
from expost.noise.fixed import exp_minus, exp_steps, power, ratio

bits = st.sampled_from([1, 15, 16, 63, 64, 80, 128, 200, 500])
rates = st.fractions(min_value=0, max_value=400, max_denominator=10**13)


@settings(deadline=None)
@given(rates, bits)
def test_exp_minus_brackets_the_exponential(x: Fraction, bits: int) -> None:
    low, high = exp_minus(x, bits)
    truth = bracket.exp(-x, 400)
    assert low <= truth.lower * 2**bits
    assert truth.upper * 2**bits <= high
    assert 0 <= high - low <= 3


@settings(deadline=None)
@given(rates.filter(bool), st.integers(0, 10**6), bits)
def test_exp_steps_brackets_the_exponential(rate: Fraction, steps: int, bits: int) -> None:
    low, high = exp_steps(rate, steps, bits)
    assert 0 <= high - low <= 3
    if rate * steps < 2000:
        truth = bracket.exp(-rate * steps, 400)
        assert low <= truth.lower * 2**bits
        assert truth.upper * 2**bits <= high
    else:
        assert low == 0 < high


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**6), st.integers(0, 300), bits)
def test_power_brackets_the_power(base: Fraction, exponent: int, bits: int) -> None:
    low, high = power(base, exponent, bits)
    assert low <= base**exponent * 2**bits <= high
    assert high - low <= 3


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 50), st.integers(10**9 + 60, 10**10), st.integers(0, 50), bits)
def test_ratio_brackets_every_quotient(a: int, wide: int, b: int, broad: int, bits: int) -> None:
    low, high = ratio((a, a + wide), (b, b + broad), bits)
    assert low <= Fraction(a, b + broad) * 2**bits
    assert Fraction(a + wide, b) * 2**bits <= high


def test_a_ratio_to_nothing_certain_is_anything() -> None:
    assert ratio((0, 1), (0, 2), 8) == (0, 256)
