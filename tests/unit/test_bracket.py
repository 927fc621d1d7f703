from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import bracket
from expost.bracket import Bracket
from expost.errors import InvalidValue

pytestmark = pytest.mark.counted
rationals = st.fractions(min_value=-30, max_value=30, max_denominator=10**12)


def taylor(x: Fraction, terms: int) -> tuple[Fraction, Fraction]:
    """Bounds on e^x for 0 <= x <= 1 from its series: the rest is at most twice the next term."""
    term, total = Fraction(1), Fraction(0)
    for k in range(terms):
        total += term
        term = term * x / (k + 1)
    return total, total + 2 * term


@given(st.fractions(min_value=0, max_value=1, max_denominator=10**6))
def test_exp_agrees_with_its_series(x: Fraction) -> None:
    low, high = taylor(x, 40)
    found = bracket.exp(x)
    assert found.lower <= high
    assert found.upper >= low
    assert found.width <= Fraction(1, 10**38)


@given(rationals, rationals)
def test_exp_of_a_sum_is_the_product(x: Fraction, y: Fraction) -> None:
    together, one, other = bracket.exp(x + y), bracket.exp(x), bracket.exp(y)
    assert one.lower * other.lower <= together.upper
    assert one.upper * other.upper >= together.lower


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**12))
def test_log_undoes_exp(value: Fraction) -> None:
    found = bracket.log(value)
    assert bracket.exp(found.lower).lower <= value <= bracket.exp(found.upper).upper
    assert found.width <= Fraction(1, 10**36)


def test_log_keeps_its_sign_next_to_one() -> None:
    barely = 1 + Fraction(1, 10**60)
    assert 0 < bracket.log(barely).lower <= bracket.log(barely).upper <= Fraction(1, 10**60)
    assert bracket.log(1 / barely).upper < 0


def test_exponents_beyond_reason_are_refused() -> None:
    with pytest.raises(InvalidValue, match="exponents go up to"):
        bracket.exp(Fraction(10**10))


def test_exact_points() -> None:
    assert bracket.exp(Fraction(0)) == Bracket(Fraction(1), Fraction(1))
    assert bracket.log(Fraction(1)) == Bracket(Fraction(0), Fraction(0))


def test_a_bracket_is_ordered() -> None:
    with pytest.raises(ValueError, match="lower <= upper"):
        Bracket(2.0, 1.0)
    half = Bracket(0.25, 0.75)
    assert 0.5 in half
    assert 1.0 not in half
    assert str(half) == "[0.25, 0.75]"
    assert half.width == 0.5
