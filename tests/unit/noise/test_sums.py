"""Sums of independent noise: their bounds against laws that are added up number by number."""

from __future__ import annotations

from fractions import Fraction
from math import erfc, floor, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.signal import fftconvolve  # type: ignore[import-untyped]

from expost.noise.sums import GaussianSteps, LaplaceSteps, RoundedGaussianSteps, StepLaw, Term, reach_of_sum

MISSES = st.sampled_from([Fraction(1, 2), Fraction(1, 10), Fraction(1, 20), Fraction(1, 100), Fraction(1, 1000)])


UNIT = Fraction(1, 6)
"""All scales are multiples of it."""


def law_of(law: StepLaw) -> NDArray[np.float64]:
    """Number by number, far into the tails, by formulas that the module does not use; 0 is in the middle."""
    size = np.abs(np.arange(-300, 301))
    if isinstance(law, LaplaceSteps):
        weights = np.exp(-float(law.rate)) ** size
    elif isinstance(law, GaussianSteps):
        weights = np.exp(-size * size / (2 * float(law.variance)))
    else:
        assert isinstance(law, RoundedGaussianSteps)
        root = sqrt(2 * float(law.variance))
        weights = np.array([(erfc((k - 0.5) / root) - erfc((k + 0.5) / root)) / 2 for k in size.tolist()])
    return np.asarray(weights / weights.sum())


def sizes_of(terms: list[Term]) -> NDArray[np.float64]:
    """The probability of each size of the sum, in units."""
    found = np.ones(1)
    for scale, law, _ in terms:
        times = int(abs(scale) / UNIT)
        spread = np.zeros(600 * times + 1)
        spread[::times] = law_of(law)
        found = fftconvolve(found, spread)
    half = len(found) // 2
    return np.asarray(np.append(found[half], found[half + 1 :] + found[half - 1 :: -1]))


def beyond(terms: list[Term], reach: Fraction) -> float:
    return float(sizes_of(terms)[floor(reach / UNIT) + 1 :].sum())


def least(terms: list[Term], miss: Fraction) -> Fraction:
    """The quantile itself."""
    tails = np.append(np.cumsum(sizes_of(terms)[::-1])[::-1][1:], 0)
    return int(np.argmax(tails <= float(miss))) * UNIT


RATES = st.fractions(Fraction(1, 4), 4, max_denominator=16)
LAWS = st.one_of(
    RATES.map(LaplaceSteps),
    st.fractions(Fraction(1, 4), 30, max_denominator=8).map(RoundedGaussianSteps),
    st.fractions(Fraction(1, 4), 30, max_denominator=8).map(GaussianSteps),
)
SCALES = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 3), Fraction(-1), Fraction(5, 2)])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(Term, SCALES, LAWS, st.just(Fraction(0))), min_size=2, max_size=3), MISSES)
def test_bounds_hold_and_are_near(terms: list[Term], miss: Fraction) -> None:
    reach = reach_of_sum(terms, miss)
    assert beyond(terms, reach) <= float(miss) * (1 + 1e-9)
    assert reach <= least(terms, miss * Fraction(99, 100))


@settings(max_examples=60, deadline=None)
@given(SCALES, LAWS, MISSES)
def test_one_term_has_the_bound_of_its_law(scale: Fraction, law: StepLaw, miss: Fraction) -> None:
    reach = reach_of_sum([Term(scale, law)], miss)
    assert reach == abs(scale) * law.reach(miss)
    assert beyond([Term(scale, law)], reach) <= float(miss) * (1 + 1e-9)


def test_a_control_that_is_too_small_is_caught() -> None:
    terms = [Term(Fraction(1), LaplaceSteps(Fraction(1, 10)))] * 2
    reach = reach_of_sum(terms, Fraction(1, 20))
    assert reach == 41
    assert beyond(terms, reach - 1) > 0.05


def test_scales_without_a_common_step() -> None:
    rates = [LaplaceSteps(Fraction(1, 2)), LaplaceSteps(Fraction(1, 3))]
    near = [reach_of_sum([Term(Fraction(1), rates[0]), Term(scale, rates[1])], Fraction(1, 20)) for scale in
            (Fraction(19, 6), Fraction(19, 6) + Fraction(1, 10**12), Fraction(10, 3))]  # fmt: skip
    assert near[0] <= near[1] * Fraction(1001, 1000)
    assert near[1] <= near[2]


def test_many_terms_are_far_below_the_sum_of_their_bounds() -> None:
    terms = [Term(Fraction(1), LaplaceSteps(Fraction(1, 10)))] * 400
    assert 540 < reach_of_sum(terms, Fraction(1, 20)) < 570  # 1.96·√400·14.1 = 554; bounds add up to 12,000


def test_nothing_and_rounding() -> None:
    assert reach_of_sum([], Fraction(1, 20)) == 0
    assert reach_of_sum([Term(Fraction(0), LaplaceSteps(Fraction(1)))], Fraction(1, 20)) == 0
    one = Term(Fraction(1, 4), LaplaceSteps(Fraction(1)), Fraction(1, 2))
    assert reach_of_sum([one], Fraction(1, 20)) == reach_of_sum(
        [one._replace(blur=Fraction(0))], Fraction(1, 20)
    ) + Fraction(1, 8)
    assert reach_of_sum([one, one], Fraction(1, 20)) >= Fraction(1, 4)


@pytest.mark.parametrize("miss", [Fraction(1, 10**9), Fraction(1, 10**30)])
def test_rare_misses_are_covered_by_a_union_bound(miss: Fraction) -> None:
    one = Term(Fraction(1), LaplaceSteps(Fraction(1)))
    assert reach_of_sum([one, one], miss) == 2 * one.noise.reach(miss / 2)


def test_very_wide_gaussians() -> None:
    one = Term(Fraction(1), GaussianSteps(Fraction(2**40)))
    assert reach_of_sum([one, one], Fraction(1, 20)) == 2 * one.noise.reach(Fraction(1, 40))
