import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Cost, InvalidValue
from expost.cost import DELTA_UNITS, EPSILON_UNITS

pytestmark = pytest.mark.counted
costs = st.builds(Cost.of_units, st.integers(0, 2**63 - 1), st.integers(0, DELTA_UNITS))


def test_ten_times_a_tenth_is_one() -> None:
    assert sum([Cost(0.1)] * 10) == Cost(1)
    assert 10 * Cost(0.1) == Cost(1)


@pytest.mark.parametrize(
    "value", [1, 1.0, "1", "1.0", "2/2", Decimal(1), Fraction(1), np.int64(1), np.float64(1), np.float32(1)]
)
def test_every_kind_of_number(value: object) -> None:
    assert Cost(value) == Cost(1)


def test_floats_mean_what_they_print() -> None:
    assert Cost(0.1).exact_epsilon == Fraction(1, 10)
    assert Cost(np.float64(0.1)).exact_epsilon == Fraction(1, 10)


def test_guarantees_round_up_and_requests_down() -> None:
    third = Fraction(1, 3)
    assert Cost(third).epsilon_units - Cost.within(third).epsilon_units == 1
    assert Cost(0, third).delta_units - Cost.within(0, third).delta_units == 1
    assert Cost("1e-300").epsilon_units == 1
    assert Cost.within("1e-300") == Cost(0)
    assert Cost("0e999999") == Cost(0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (float("nan"), 0, "ε must be a finite number .*got nan"),
        (float("inf"), 0, "ε must be a finite number .*got inf"),
        ("-inf", 0, "ε must be a finite number"),
        (-0.1, 0, "ε must not be negative, got -0.1"),
        ("1e-999999999", 0, "between 1e-400 and 1e400"),
        ("1e999999999", 0, "ε must be a finite number"),
        (0, 1.5, "δ is a probability and must be at most 1, got 1.5"),
        (0, -1, "δ must not be negative"),
        ("much", 0, "ε must be a number, got 'much'"),
        ("", 0, "ε must be a number"),
        ("1/0", 0, "ε must be a number"),
        (True, 0, "ε must be a number, got True"),
        (None, 0, "ε must be a number, got None"),
        (1j, 0, "ε must be a number"),
        (10**7, 0, "ε must be at most 9223372"),
    ],
)
def test_bad_numbers_are_named(epsilon: object, delta: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message.replace("(", r"\(")):
        Cost(epsilon, delta)


def test_numbers_too_long_to_say_back() -> None:
    with pytest.raises(InvalidValue, match="got a very long int"):
        Cost(10**5000)
    with pytest.raises(InvalidValue, match="…"):
        Cost("9" * 300)


def test_order_is_by_both() -> None:
    small, large, other = Cost(1), Cost(2, delta=0.1), Cost(2)
    assert small < other <= large
    assert large > small
    assert large >= small
    crossed = Cost(1, delta=0.5)
    assert not crossed <= other
    assert not crossed >= other
    assert not small < Cost(1)
    assert small != "ε 1"


def test_subtraction_never_goes_negative() -> None:
    assert Cost(1, delta=0.5) - Cost(0.25, delta=0.25) == Cost(0.75, delta=0.25)
    with pytest.raises(InvalidValue, match="cannot take ε 2 from ε 1"):
        Cost(1) - Cost(2)
    with pytest.raises(InvalidValue, match="never negative"):
        Cost(1, delta=0.1) - Cost(0, delta=0.2)
    with pytest.raises(InvalidValue, match="-1 times"):
        Cost(1) * -1


def test_costs_add_only_to_costs() -> None:
    for other in (1, "1", 0.5):
        with pytest.raises(TypeError):
            Cost(1) + other  # type: ignore[operator]
        with pytest.raises(TypeError):
            Cost(1) - other  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 + Cost(1)


@given(costs, st.integers(1, 50))
def test_equal_shares_add_up(cost: Cost, among: int) -> None:
    shares = cost.split(among)
    assert sum(shares, Cost(0)) == cost
    assert max(s.epsilon_units for s in shares) - min(s.epsilon_units for s in shares) <= 1
    assert max(s.delta_units for s in shares) - min(s.delta_units for s in shares) <= 1


def test_splits_of_any_size_and_kind() -> None:
    assert len(Cost(1).split(np.int64(1000))) == 1000
    assert Cost(1).split(["1e-300", "3e-300"]) == (Cost(0.25), Cost(0.75))


@given(costs, st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any))
def test_weighted_shares_add_up(cost: Cost, weights: list[int]) -> None:
    shares = cost.split(weights)
    assert sum(shares, Cost(0)) == cost
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share.epsilon_units - Fraction(cost.epsilon_units * weight, sum(weights))) <= 1


@pytest.mark.parametrize("among", [0, -1, [], [0, 0], [1, -1], "12", 3.0, None, 10**7])
def test_bad_splits(among: object) -> None:
    with pytest.raises(InvalidValue):
        Cost(1).split(among)


@given(costs)
def test_reading_a_cost_never_asks_for_more(cost: Cost) -> None:
    assert Cost.within(cost.epsilon, cost.delta) <= cost
    assert cost.epsilon == pytest.approx(float(cost.exact_epsilon), rel=1e-15)


@given(st.integers(0, 10**15))
def test_reading_is_exact_up_to_fifteen_digits(units: int) -> None:
    cost = Cost.of_units(units, units)
    assert Cost.within(cost.epsilon, cost.delta) == cost


@given(costs)
def test_repr_json_and_pickle_keep_every_digit(cost: Cost) -> None:
    assert eval(repr(cost), {"Cost": Cost}) == cost
    assert Cost.from_json(json.loads(json.dumps(cost.to_json()))) == cost
    assert pickle.loads(pickle.dumps(cost)) == cost
    assert copy.deepcopy(cost) == cost
    assert hash(copy.copy(cost)) == hash(cost)


def test_how_costs_look() -> None:
    assert repr(Cost(0.5)) == "Cost(0.5)"
    assert repr(Cost(100, delta=1e-6)) == "Cost(100, delta=1e-6)"
    assert repr(Cost("1234567.123456789012")) == "Cost('1234567.123456789012')"
    assert str(Cost(0)) == "ε 0"
    assert str(Cost("0.0000125", delta="0.25")) == "ε 1.25e-5, δ 0.25"


def test_json_that_is_no_cost() -> None:
    for data in ({}, {"epsilon": "1"}, [1, 0], None):
        with pytest.raises(InvalidValue, match="a cost in JSON"):
            Cost.from_json(data)


def test_costs_do_not_change() -> None:
    cost = Cost(1)
    with pytest.raises(AttributeError, match="do not change"):
        cost.epsilon_units = 5
    with pytest.raises((AttributeError, TypeError)):
        del cost.epsilon_units
    assert cost
    assert not Cost(0)
    assert cost.epsilon_units == EPSILON_UNITS


def test_a_part_of_a_cost_fits_as_often() -> None:
    """``epsilon=ledger.remaining / 3``. Before: a TypeError."""
    for parts in (1, 2, 3, 7, 2.5, Fraction(7, 3), Decimal("1.1")):
        part = Cost("0.7", delta="1e-6") / parts
        assert part * int(parts) <= Cost("0.7", delta="1e-6")
        assert part.epsilon_units == int(Fraction(7 * 10**11) / Fraction(str(parts)))
    for wrong in (0, -1, 0.5, float("nan"), float("inf")):
        with pytest.raises(InvalidValue):
            Cost(1) / wrong
    with pytest.raises(TypeError):
        Cost(1) / Cost(1)  # type: ignore[operator]


@pytest.mark.parametrize("number", [1, 0.5, Decimal(1), Fraction(1, 3)])
def test_a_cost_is_no_number(number: Any) -> None:
    """A number beside it may be meant as an ε, whatever δ is. Before: a TypeError that said nothing of that."""
    cost = Cost(1, delta=1e-6)
    for compared in (
        lambda: cost < number, lambda: cost <= number, lambda: cost > number, lambda: cost >= number,
        lambda: number < cost, lambda: number <= cost, lambda: number > cost, lambda: number >= cost,
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=r"compare its ε, as in ledger.remaining.epsilon < "):
            compared()
    with pytest.raises(InvalidValue, match="divide for a part of it"):
        cost * 0.5  # type: ignore[operator]
    with pytest.raises(InvalidValue, match=r"ε is a number here, got .*in ledger.remaining.epsilon"):
        Cost(cost)  # type: ignore[arg-type]
    assert cost > Cost(0.5)
    assert cost >= Cost(1)
    assert not cost > Cost(2)
