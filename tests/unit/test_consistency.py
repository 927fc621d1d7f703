"""Consistent counts: nearest, never farther from the truth, and refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp

pytestmark = pytest.mark.counted
COUNTS = st.lists(st.integers(0, 50), min_size=1, max_size=8)
SHIFTS = st.lists(st.integers(-30, 30), min_size=8, max_size=8)


@given(COUNTS, SHIFTS)
def test_it_is_consistent_and_never_farther_from_the_truth(counts: list[int], shifts: list[int]) -> None:
    truth = np.array(counts, float)
    noisy = truth + shifts[: len(counts)]
    for total in (None, float(truth.sum())):
        found = xp.mechanisms.consistent(noisy, total=total)
        assert found.min() >= 0
        if total is not None:
            assert found.sum() == pytest.approx(total, abs=1e-9)
        assert np.linalg.norm(found - truth) <= np.linalg.norm(noisy - truth) + 1e-9


@given(COUNTS, SHIFTS, st.integers(0, 100))
def test_no_consistent_counts_are_nearer(counts: list[int], shifts: list[int], total: int) -> None:
    noisy = np.array(counts) + shifts[: len(counts)]
    found = xp.mechanisms.consistent(noisy, total=total)
    spread = np.full(len(counts), total / len(counts))
    first = np.eye(len(counts))[0] * total
    for other in (spread, first, (found + spread) / 2, (found + first) / 2):
        assert np.linalg.norm(found - noisy) <= np.linalg.norm(other - noisy) + 1e-9


@pytest.mark.parametrize(("counts", "total"), [([], 1), ([[1]], 1), ([np.nan], 1), ([1], -1), ([1], np.inf)])
def test_what_is_refused(counts: Any, total: float) -> None:
    with pytest.raises(xp.InvalidValue):
        xp.mechanisms.consistent(counts, total=total)
