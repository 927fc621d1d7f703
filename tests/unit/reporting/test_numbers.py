"""Digits that mean something."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from expost.reporting.numbers import (
    decimal_shown,
    epsilon_down,
    epsilon_up,
    factor,
    power_of_ten,
    to_its_error,
    with_bar,
)


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (83.264, 59.614, 390.513, "83 (59 to 391)"),
        (33.05, 24.7, 43.2, "33 ± 11"),
        (0.0, 0.0, 12.34, "0.0 (0.0 to 12.4)"),
        (-1500.0, -9000.0, -1400.0, "−1 500 (−9 000 to −1 400)"),
        (5.0, 4.0, float("inf"), "5 ± ∞"),
    ],
)
def test_an_interval_that_is_farther_on_one_side_has_both_ends(
    value: float, low: float, high: float, shown: str
) -> None:
    error = max(value - low, high - value)
    assert with_bar(value, low, high, error).replace("\u202f", " ").replace("\u00a0", " ") == shown


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (18423, 151, "18 420 ± 160"),
        (18423, 3, "18 423 ± 3"),
        (6.0812, 0.2391, "6.08 ± 0.24"),
        (7.93, 1.04, "7.9 ± 1.1"),
        (471.23, 3.8, "471.2 ± 3.8"),
        (0.2, 0.996, "0.2 ± 1.0"),
        (-20, 30, "−20 ± 30"),
        (-0.001, 0.2, "0.00 ± 0.20"),
        (5, float("inf"), "5 ± ∞"),
        (1500, 0, "1 500 ± 0"),
        (2311, None, "2 311"),
        (1e-12, 3e-13, "1e−12 ± 3e−13"),
    ],
)
def test_errors_have_two_digits_and_values_end_where_they_do(value: float, error: float | None, shown: str) -> None:
    assert with_bar(value, None, None, error).replace("\u202f", " ").replace("\u00a0", " ") == shown


@given(some.floats(-1e12, 1e12), some.floats(1e-6, 1e12))
def test_no_error_is_made_smaller(value: float, error: float) -> None:
    """What is shown has the interval in it, but for half of the value's last place."""
    number, reach = (text.replace("\u202f", "").replace("−", "-") for text in to_its_error(value, error))
    assert Decimal(reach) >= Decimal(repr(error))
    assert abs(Decimal(number) - Decimal(repr(value))) <= Decimal(reach) / 10
    assert len(reach.replace(".", "").strip("0")) <= 2


@given(some.integers(0, 10**18))
def test_charges_round_up_and_balances_down(units: int) -> None:
    exact = Decimal(units).scaleb(-12)
    up, down = (Decimal(text.replace("\u202f", "")) for text in (epsilon_up(exact), epsilon_down(exact)))
    assert down <= exact <= up <= down * Decimal("1.01") + Decimal("1e-12")
    assert Decimal(decimal_shown(exact).replace("\u202f", "")) == exact


@pytest.mark.parametrize(
    ("delta", "shown"),
    [
        ("1e-6", "10⁻⁶"),
        ("9.99999984527e-7", "10⁻⁶"),
        ("5e-7", "5·10⁻⁷"),
        ("1.25e-5", "1.3·10⁻⁵"),
        ("0", "0"),
        ("0.05", "0.05"),
    ],
)
def test_a_delta_is_a_power_of_ten(delta: str, shown: str) -> None:
    assert power_of_ten(delta) == shown


def test_factors() -> None:
    assert [factor(epsilon) for epsilon in ("0", "1.5", "4", "600")] == ["1", "4.48", "54.6", "3.77·10²⁶⁰"]
