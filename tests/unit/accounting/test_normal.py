"""Certified normal tails and what they imply."""

from __future__ import annotations

from fractions import Fraction
from math import erfc, exp, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost.accounting.normal import (
    delta_of_normal_noise,
    epsilon_of_normal_noise,
    epsilon_of_zcdp,
    normal_noise_for,
    normal_quantile,
    normal_tail,
)
from expost.errors import InvalidValue

# Pr[N(0,1) ≥ x] to 30 digits, from published tables of the error function (erfc(1)/2, erfc(2)/2, erfc(5)/2)
ERFC = {1: "0.157299207050285130658779364917390740703933002034", 2: "0.00467773498104726583793074363274707139103921"}


@pytest.mark.parametrize("z", [1, 2])
def test_tails_agree_with_the_error_function(z: int) -> None:
    """erfc(z)/2 = Pr[N ≥ z·√2]: evaluated at rationals just below and above."""
    root = Fraction(141421356237309504880168872420969807, 10**35)
    below, above = normal_tail(z * root + Fraction(z, 10**34)), normal_tail(z * root)
    assert below.lower < Fraction(ERFC[z]) / 2 < above.upper
    assert above.upper - below.lower < Fraction(1, 10**32)


@settings(deadline=None)
@given(st.fractions(min_value=-12, max_value=12, max_denominator=10**6))
def test_tails_against_floats(x: Fraction) -> None:
    tail = normal_tail(x, 256)
    assert tail.width < Fraction(1, 2**200)
    assert float(tail.lower) == pytest.approx(erfc(float(x) / sqrt(2)) / 2, rel=1e-11)


def test_tails_far_out() -> None:
    assert normal_tail(Fraction(1000)).lower == 0
    assert normal_tail(Fraction(0)).lower <= Fraction(1, 2) <= normal_tail(Fraction(0)).upper


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "8", "60"])
@pytest.mark.parametrize("delta", ["1e-15", "1e-6", "0.1"])
def test_calibration_is_certain_and_tight(epsilon: str, delta: str) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    ratio = normal_noise_for(e, d)
    assert delta_of_normal_noise(ratio, e).upper <= d
    assert delta_of_normal_noise(ratio * (1 - Fraction(1, 10**8)), e).lower > d


def test_calibration_against_the_formula_in_floats() -> None:
    ratio = float(normal_noise_for(Fraction(1), Fraction(1, 10**6)))
    near, far = (erfc((ratio + shift / (2 * ratio)) / sqrt(2)) / 2 for shift in (-1, 1))
    assert near - exp(1) * far == pytest.approx(1e-6, rel=1e-6)


def test_calibration_refuses_what_guarantees_nothing() -> None:
    for epsilon, delta in ((Fraction(0), Fraction(1, 2)), (Fraction(1), Fraction(0)), (Fraction(1001), Fraction(1, 2))):
        with pytest.raises(InvalidValue, match="needs"):
            normal_noise_for(epsilon, delta)


@pytest.mark.parametrize("rho", ["0.001", "0.1", "2"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-5"])
def test_zcdp_lies_between_normal_noise_and_the_simple_bound(rho: str, delta: str) -> None:
    """Gaussian noise is ρ-zCDP with σ/Δ = 1/√2ρ, so its own ε is a lower bound on what zCDP can guarantee."""
    r, d = Fraction(rho), Fraction(delta)
    epsilon = epsilon_of_zcdp(r, d)
    from math import log

    assert float(epsilon) < float(r) + 2 * sqrt(float(r) * log(1 / float(d)))
    ratio = Fraction(1 / sqrt(2 * float(r)))
    assert delta_of_normal_noise(ratio, epsilon).upper < d


@pytest.mark.parametrize("miss", ["0.5", "0.05", "1e-9", "1e-40"])
def test_quantiles_are_certain(miss: str) -> None:
    z = normal_quantile(Fraction(miss))
    assert 2 * normal_tail(Fraction(z), 256).upper <= Fraction(miss)
    assert 2 * normal_tail(Fraction(z) * Fraction(999_999, 10**6), 256).lower > Fraction(miss)


def test_epsilons_of_normal_noise_at_the_edges() -> None:
    for delta, squared in ((Fraction(0), Fraction(1)), (Fraction(1), Fraction(1)), (Fraction(1, 10), Fraction(0))):
        with pytest.raises(InvalidValue, match="0 < δ < 1"):
            epsilon_of_normal_noise(squared, delta)
    nothing = epsilon_of_normal_noise(Fraction(1, 100), Fraction(1, 2))  # the noise's total variation is smaller
    assert (nothing.lower, nothing.upper) == (Fraction(0), Fraction(0))
    found = epsilon_of_normal_noise(Fraction(1), Fraction(1, 10**5))
    assert delta_of_normal_noise(Fraction(1), found.upper).upper <= Fraction(1, 10**5)
    assert delta_of_normal_noise(Fraction(1), found.lower).lower >= Fraction(1, 10**5)
