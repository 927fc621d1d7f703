"""What public parameters may be: what is given back, and what is refused with its name."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from expost import checks
from expost.errors import InvalidValue

pytestmark = pytest.mark.counted
TAKEN: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (checks.as_whole, (3, "blocks"), 3),
    (checks.as_whole, (np.int64(3), "blocks"), 3),
    (checks.as_whole, (2, "blocks", 2, 2), 2),
    (checks.as_positive, ("1/3", "l1"), Fraction(1, 3)),
    (checks.as_share, (0.3, "held_out"), Fraction(3, 10)),
    (checks.as_probability, (0, "heads"), Fraction(0)),
    (checks.as_probability, (1, "heads"), Fraction(1)),
    (checks.as_confidence, ("0.95",), Fraction(19, 20)),
    (checks.as_flag, (True, "intercept"), True),
    (checks.as_flag, (np.False_, "intercept"), False),
    (checks.finite, ("1e308", "norm"), 1e308),
    (checks.as_bounds, ([0, 1],), (0.0, 1.0)),
    (checks.as_bounds, ((2, 2),), (2.0, 2.0)),
    (checks.as_interval, ((-1e100, 1e100),), (-1e100, 1e100)),
    (checks.requested_epsilon, ("0.1000000000009",), 0.1),
    (checks.requested_delta, ("1e-18",), 1e-18),
    (checks.split_epsilon, (1, "1/2", "share"), (Fraction(1, 2), Fraction(1, 2))),
    (checks.equal_share, (1, 3), Fraction(333333333333, 10**12)),
    (checks.whole_sensitivity, (1,), Fraction(1)),
    (checks.check_monotone, (True, "add-remove"), None),
    (checks.check_monotone, (False, None), None),
]

REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    *((checks.as_whole, (given, "blocks"), "blocks is a whole number") for given in (0, True, 1.0, "1", None)),
    (checks.as_whole, (3, "blocks", 1, 2), "from 1 to 2, got 3"),
    (checks.as_positive, (0, "l1"), "l1 must be above 0"),
    *((checks.as_share, (given, "held_out"), "held_out is a share") for given in (0, 1, -0.1)),
    (checks.as_probability, (1.1, "heads"), "heads lies between 0 and 1"),
    *((checks.as_confidence, (given,), "confidence") for given in (0, 1, 95)),
    *((checks.as_flag, (given, "intercept"), "intercept") for given in (1, "yes", None, np.array([True]), np.int64(1))),
    (checks.finite, ("1e309", "norm"), "norm must fit a float"),
    (checks.finite, (float("nan"), "norm"), "norm"),
    *((checks.as_bounds, (given, "target_bounds"), "target_bounds are a pair") for given in (None, (1,), (1, 0), "ab")),
    (checks.as_bounds, ((0, float("inf")),), "each of bounds"),
    *((checks.as_interval, (given,), "another unit") for given in ((-1e101, 0), (0, 1e308), (0, 5e-324))),
    (checks.requested_epsilon, (1e-13, "ρ"), "ρ must be at least"),
    *((checks.requested_delta, (given,), "δ") for given in (0, 1, "1e-19")),
    (checks.split_epsilon, ("1e-12", "1/2", "share"), "split in two"),
    (checks.equal_share, ("2e-12", 3), "split in 3"),
    (checks.whole_sensitivity, (0.5,), "declare at least 1"),
    *((checks.check_monotone, (True, relation), "neighbours='add-remove'") for relation in (None, "substitute")),
]


@pytest.mark.parametrize(("check", "given", "back"), TAKEN)
def test_what_is_taken(check: Callable[..., Any], given: tuple[Any, ...], back: Any) -> None:
    found = check(*given)
    assert (type(found), found) == (type(back), back)


@pytest.mark.parametrize(("check", "given", "says"), REFUSED)
def test_what_is_refused(check: Callable[..., Any], given: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        check(*given)
