"""Array samplers: shapes, ranges, comparisons, refusals, strips."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import bracket
from expost.errors import InvalidValue
from expost.noise import NoiseSource, SeededNoise, strips, vector
from expost.noise.inversion import Uniform
from expost.noise.laws import Digit, LaplaceLaw, Law, Rate, RatioOfRates
from expost.noise.scalar import keeps

SOURCE = SeededNoise(20)


class Endless(NoiseSource):
    """The same byte for ever."""

    private = False

    def __init__(self, byte: int) -> None:
        self._byte = bytes([byte])

    def bytes(self, count: int) -> bytes:
        return self._byte * count


class CoinThenZeros(NoiseSource):
    """The first look at a coin of 63 bits (and a sign bit, 0), its other 48 bits, then zeros."""

    private = False

    def __init__(self, coin: int) -> None:
        look, rest = (coin >> 48) << 1, (coin & (2**48 - 1)) << 16
        self._written = [look.to_bytes(2, "little"), rest.to_bytes(8, "little")]

    def bytes(self, count: int) -> bytes:
        return self._written.pop(0) if self._written else bytes(count)


@pytest.mark.parametrize("size", [0, 1, 5, 40, (), (3,), (2, 50), (0, 4)])
def test_results_have_the_size_asked_for(size: int | tuple[int, ...]) -> None:
    shape = (size,) if isinstance(size, int) else size
    rate = Fraction(1, 200)
    for numbers in (
        vector.geometric(SOURCE, rate, size),
        vector.discrete_laplace(SOURCE, rate, size),
        vector.rounded_laplace(SOURCE, rate, size),
        vector.discrete_gaussian(SOURCE, Fraction(9), size),
        vector.discrete_gaussian(SOURCE, Fraction(10**6), size),
        vector.rounded_gaussian(SOURCE, Fraction(10**6), size),
        vector.uniform(SOURCE, 1000, size),
        vector.lies(SOURCE, Fraction(1), 4, size),
    ):
        assert numbers.shape == shape
        assert numbers.dtype == np.int64
    for coins in (vector.bernoulli(SOURCE, Fraction(1, 3), size), vector.bernoulli_exp(SOURCE, Fraction(1), size)):
        assert coins.shape == shape
        assert coins.dtype == np.bool_


@settings(max_examples=30)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=40, max_denominator=10**12), st.integers(0, 2**32))
def test_any_rational_rate_will_do(rate: Fraction, seed: int) -> None:
    source = SeededNoise(seed)
    assert (vector.geometric(source, rate, 3) >= 0).all()
    assert np.abs(vector.discrete_laplace(source, rate, 3)).max() < 2**61
    variance = 1 / rate**2
    assert np.abs(vector.rounded_gaussian(source, variance, 3)).max() < 2**61


@pytest.mark.parametrize("size", [20, 2000])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 5000)])
def test_comparisons_are_those_of_the_noise(rate: Fraction, size: int) -> None:
    """The same source gives the same high parts, so far from ties the answers are those of the drawn noise."""
    far = np.where(np.arange(size) % 2, 10**7, -(10**7))
    assert (vector.laplace_reaches(SeededNoise(1), rate, far) == (far < 0)).all()
    assert (vector.geometric_reaches(SeededNoise(1), rate, far) == (far < 0)).all()
    assert vector.geometric_reaches(SOURCE, rate, np.zeros((2, size), np.int64)).all()


def test_certain_coins() -> None:
    assert not vector.bernoulli(SOURCE, Fraction(0), 100).any()
    assert vector.bernoulli(SOURCE, Fraction(1), 100).all()
    assert vector.bernoulli_exp(SOURCE, Fraction(0), 100).all()
    assert not vector.bernoulli_exp(SOURCE, Fraction(10**6), 100).any()


def test_uniform_covers_its_range_and_no_more() -> None:
    for bound in (1, 2, 7, 256, 65537, 2**33 + 1, 2**62):
        numbers = vector.uniform(SOURCE, bound, 5000)
        assert numbers.min() >= 0
        assert numbers.max() < bound
    assert set(vector.uniform(SOURCE, 7, 5000).tolist()) == set(range(7))


def test_categorical_never_chooses_what_weighs_nothing_to_speak_of() -> None:
    exponents = np.array([10**15, 0, 10**15, 0, 2**61])
    for weight in (Rate(Fraction(1)), RatioOfRates(Fraction(1, 2))):
        assert {vector.categorical(SOURCE, exponents, weight) for _ in range(50)} == {1, 3}


def test_values_that_are_refused() -> None:
    for refused in (
        lambda: vector.geometric(SOURCE, Fraction(0), 1),
        lambda: vector.discrete_laplace(SOURCE, Fraction(1, 2**51), 1),
        lambda: vector.discrete_gaussian(SOURCE, Fraction(0), 1),
        lambda: vector.rounded_gaussian(SOURCE, Fraction(2**101), 1),
        lambda: vector.bernoulli(SOURCE, Fraction(3, 2), 1),
        lambda: vector.bernoulli_exp(SOURCE, Fraction(-1), 1),
        lambda: vector.uniform(SOURCE, 0, 1),
        lambda: vector.uniform(SOURCE, 2**63, 1),
    ):
        with pytest.raises(InvalidValue, match="got"):
            refused()


# ---- splits


def mass(law: Law, k: int) -> Fraction:
    """Pr[X = k] to some 250 bits."""
    return Fraction(law.below(k + 1, 256)[0] - law.below(k, 256)[0], 2**256)


def test_digits_put_together_have_the_law_of_the_whole() -> None:
    """Every number about 0 as high part × digits, sign and reflection included, against its own probability."""
    rate, bits = Fraction(1, 100), (2, 3)
    step = 1 << sum(bits)
    top, low, high = LaplaceLaw(rate, step), Digit(rate, 4), Digit(rate * 4, 8)
    for k in range(-3 * step, 3 * step):
        digit = (k if k >= 0 else ~k) % step
        joint = mass(top, k // step) * mass(low, digit % 4) * mass(high, digit // 4)
        assert abs(joint - mass(LaplaceLaw(rate), k)) < Fraction(1, 2**240)
    split = vector._Split(top, rate, bits)
    assert [(position, digit) for position, digit in split._digits] == [(0, low), (2, high)]


@pytest.mark.parametrize(("scale", "bits"), [(1, 0), (63, 0), (64, 2), (1000, 5), (10**5, 12), (2**50, 46)])
def test_large_scales_are_split_down_to_a_small_one(scale: int, bits: int) -> None:
    digits = vector._digits(Fraction(1, scale))
    assert sum(digits) == bits
    assert max(digits, default=0) <= 10
    assert not bits or 16 <= scale >> bits < 32


@pytest.mark.parametrize("high", [2**62, -(2**62), 2**40])
def test_parts_that_do_not_fit_keep_their_sign(high: int) -> None:
    split = vector._laplace_split(Fraction(1, 10**9))
    low = np.array([3])
    joined = int(split._join(np.array([high]), low)[0])
    exact = (high << split._bits) + 3
    assert joined == exact if abs(exact) < 2**61 else abs(joined) >= 2**61
    assert (joined > 0) == (high > 0)


# ---- strips


def reference_keep(coin: Fraction, strip: int, place: Fraction, variance: Fraction) -> bool:
    return coin < bracket.exp(-place * (2 * strip + place) / (2 * variance), 120).lower


@settings(deadline=None)
@given(st.integers(0, 900), st.integers(0, 2**16 - 1), st.integers(0, 2**63 - 1), st.booleans())
def test_every_way_to_decide_decides_the_same(strip: int, place: int, coin: int, exact: bool) -> None:
    """Quick bound, float bounds and exact arithmetic against a rational reference.

    The source continues every number with zeros, so that all are known exactly.
    """
    variance = Fraction(100**2)
    expected = reference_keep(Fraction(coin, 2**63), strip, Fraction(place, 2**16), variance)
    zeros = Endless(0)
    assert keeps(Uniform(zeros, coin, 63), strip, Uniform(zeros, place, 16), variance, exact) == expected

    cut = strips._strips(variance)
    assert cut.exponent == 0
    strip_numbers, places = np.array([strip]), np.array([place], np.uint16)
    accepted, negative = strips._accept(CoinThenZeros(coin), cut, strip_numbers, places, 16, exact=exact)
    assert bool(accepted[0]) == expected
    assert not negative[0]


@pytest.mark.parametrize(
    "variance", [Fraction(1, 5), Fraction(2**12), Fraction(2**14 - 1), Fraction(10**10), Fraction(3**60)]
)
def test_strips_are_a_hundredth_of_the_scale(variance: Fraction) -> None:
    cut = strips._strips(variance)
    assert 64**2 <= cut.variance < 128**2
    assert cut.variance * Fraction(4) ** cut.exponent == variance
    for strip in (0, 1, 77, 1000):
        certain = Fraction(int(cut.sure[strip]), 2**15)
        assert certain <= bracket.exp(-Fraction(2 * strip + 1) / (2 * cut.variance)).lower


@pytest.mark.parametrize("exponent", [-5, -1, 0, 1, 6])
def test_rounding_a_place_in_a_strip(exponent: int) -> None:
    cut = strips._Strips(exponent, Fraction(100**2), np.zeros(1, np.int64))
    rng = np.random.default_rng(3)
    strip, place = rng.integers(0, 1000, 300), rng.integers(0, 2**16, 300).astype(np.uint16)
    numbers = strips._nearest(cut, strip, place, 16)
    for t, v, number in zip(strip.tolist(), place.tolist(), numbers.tolist(), strict=True):
        low, high = (Fraction(2) ** exponent * (t + Fraction(v + end, 2**16)) for end in (0, 1))
        assert number - Fraction(1, 2) <= low
        assert high <= number + Fraction(1, 2)
