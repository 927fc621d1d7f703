"""Table 1: from how many 0.1-DP mechanisms on the optimal composition beats simple composition at δ."""

from __future__ import annotations

from fractions import Fraction

import pytest

from expost.accounting import kairouz

RECOMPUTED = [16, 19, 23, 26, 30, 34, 37, 41]  # the printed table has 17, 20, 24, 27, 31, 35, 38, 42


def test_the_printed_table_is_one_too_high() -> None:
    found = []
    for digits in range(5, 13):
        count = 2
        while kairouz("0.1", 0, count).delta(Fraction(count - 2, 10)).upper > Fraction(1, 10**digits):
            count += 1
        found.append(count)
    assert found == RECOMPUTED


@pytest.mark.parametrize("delta", ["1e-3", "1e-9", "1e-15"])
def test_off_the_lattice_any_delta_helps(delta: str) -> None:
    assert kairouz("0.1", 0, 5).epsilon(delta).upper < Fraction(1, 2)
