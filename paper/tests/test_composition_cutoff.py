"""Table 1: from how many 0.1-DP mechanisms on the optimal composition beats basic composition at δ."""

from __future__ import annotations

import json
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest

from expost.accounting import optimal_composition
from paper import table1


def test_the_printed_table_is_one_too_high() -> None:
    assert [table1.cutoff(digits) for digits in table1.PRINTED] == [16, 19, 23, 26, 30, 34, 37, 41]
    assert list(table1.PRINTED.values()) == [17, 20, 24, 27, 31, 35, 38, 42]


def test_the_number_below_is_too_few() -> None:
    """By the formula of their Theorem 3.3 itself, in floating point: another way to the same δ."""
    for digits, count in zip(table1.PRINTED, [16, 19, 23, 26, 30, 34, 37, 41], strict=True):
        below, at = ((exp(0.1 * k) - exp(0.1 * (k - 2))) / (1 + exp(0.1)) ** k for k in (count - 1, count))
        assert at <= 10**-digits < below
        assert float(table1.delta_of(count)) == pytest.approx(at)


def test_written_as_data_and_as_a_plot(tmp_path: Path) -> None:
    table1.main(str(tmp_path))
    assert json.loads((tmp_path / "table1.json").read_text()) == table1.data()
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("delta", ["1e-3", "1e-9", "1e-15"])
def test_off_the_lattice_any_delta_helps(delta: str) -> None:
    assert optimal_composition([("0.1", 0)] * 5).epsilon(delta).upper < Fraction(1, 2)
