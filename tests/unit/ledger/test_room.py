"""What has room in an account is what the filter of the composition theorem lets through."""

from __future__ import annotations

from fractions import Fraction
from operator import sub
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Cost
from expost.accounting import CONT, BasicMeter, GaussianMeter, MeterFilter, OdpFilter, RenyiMeter
from expost.accounting.amounts import ABSENT, NO_AMOUNTS, Amounts, Capacity, MeterBalance
from expost.accounting.metering import Metered, MeterSum
from expost.ledger.entry import Balance
from expost.ledger.metered import with_ended, with_reserved

UNITS = st.integers(0, 4)
COSTS = st.builds(Cost.of_units, UNITS, UNITS)


@given(COSTS, COSTS, COSTS, COSTS)
def test_an_open_account_has_room_where_the_filter_continues(
    limit: Cost, spent: Cost, reserved: Cost, worst: Cost
) -> None:
    decision = OdpFilter(limit).decide(spent + reserved, worst)
    after = with_reserved(Balance(limit, spent, reserved), worst)
    assert (after is not None) == (decision is CONT)
    if after is not None:
        assert after == Balance(limit, spent, reserved + worst)
        assert with_ended(after, worst, NO_AMOUNTS, worst, NO_AMOUNTS) == Balance(limit, spent + worst, reserved)


@given(COSTS, COSTS)
def test_a_closed_account_has_room_for_nothing(limit: Cost, worst: Cost) -> None:
    assert with_reserved(Balance(limit, Cost(0), Cost(0), closed=True), worst) is None


# ---- several meters


CAPACITY = Capacity(100, 10, 20, 30)
ROOM = [
    (0, Amounts(11, 21), True),
    (0, Amounts(11, 21, unpriced=1), False),
    (1, Amounts(11, 21), False),
    (1, Amounts(10, 21, 31, 1, 1), True),
    (1, Amounts(11, 20, 30, 1), True),
    (1, Amounts(11, 20, 31), False),
    (1, Amounts(11, 20, 30, 1, 1), False),
]
"""ε past the limit, what else is counted afterwards, and whether a meter has room."""


@pytest.mark.parametrize(("past", "amounts", "fits"), ROOM)
@pytest.mark.parametrize("before", [NO_AMOUNTS, Amounts(3, 4, 5)])
def test_room_on_one_meter_suffices(past: int, amounts: Amounts, fits: bool, before: Amounts) -> None:
    limit, half = Cost.of_units(10, 200), Cost.of_units(5, 50)
    rest = Amounts(*map(sub, amounts, before))
    for spent, reserved in ((before, NO_AMOUNTS), (NO_AMOUNTS, before)):
        level = Balance(limit, half, Cost(0), meters=(*CAPACITY, *spent, *reserved))
        worst = Cost.of_units(5 + past, 50), rest
        after = with_reserved(level, *worst)
        assert (after is not None) == fits
        if after is not None:
            assert after.meter_balance == MeterBalance(CAPACITY, spent, reserved.more(rest))
            assert with_ended(after, *worst, Cost(0), NO_AMOUNTS) == level


SMALL = st.integers(0, 3)
COUNTED = st.builds(Amounts, SMALL, SMALL, SMALL, SMALL, SMALL)


def summed(used: Cost, counted: Amounts) -> Metered:
    """The same amounts as the filter of any meters has them."""
    basic, renyi = MeterSum((used.epsilon_units,), counted.unpriced), MeterSum((counted.renyi,))
    gaussian = MeterSum((counted.others, counted.normal), counted.foreign)
    return Metered(used.delta_units, (basic, renyi, gaussian))


class OfAmounts(MeterFilter):
    """The filter, of rounds that are given by their worst case."""

    def worst(self, asked: Any) -> Metered:
        return summed(*asked)


@given(COSTS, COSTS, COUNTED, COSTS, COUNTED, st.builds(Capacity, SMALL, SMALL, SMALL, SMALL))
def test_several_meters_have_room_where_their_filter_continues(
    limit: Cost, used: Cost, counted: Amounts, worst: Cost, amounts: Amounts, holds: Capacity
) -> None:
    basic, renyi = BasicMeter((limit.epsilon_units,)), RenyiMeter(Fraction(2), (holds.renyi,), 0)
    rule = OfAmounts(Cost.of_units(0, holds.delta), (basic, renyi, GaussianMeter((holds.others, holds.normal), 0)))
    request: Any = worst, amounts
    decision = rule.decide(summed(used, counted), request)
    level = Balance(limit, used, Cost(0), meters=(*holds, *counted, *NO_AMOUNTS))
    assert (with_reserved(level, worst, amounts) is not None) == (decision is CONT)


def test_delta_of_rounds_and_closed_levels_are_respected() -> None:
    level = Balance(Cost(1, delta=1), Cost(0), Cost(0), meters=(*CAPACITY, *NO_AMOUNTS, *NO_AMOUNTS))
    assert with_reserved(level, Cost.of_units(1, 100)) is not None
    assert with_reserved(level, Cost.of_units(1, 101)) is None
    assert with_reserved(level._replace(closed=True), Cost.of_units(1)) is None


def test_no_meter_counts_past_what_a_database_holds() -> None:
    level = Balance(Cost(1), Cost(0), Cost(0), meters=(*CAPACITY, 2**62 - 1, 0, 0, 0, 0, *NO_AMOUNTS))
    assert with_reserved(level, Cost(0), Amounts(1)) is not None
    assert with_reserved(level, Cost(0), Amounts(2)) is None


def test_an_absent_meter_has_no_room() -> None:
    level = Balance(Cost(0), Cost(0), Cost(0), meters=(0, ABSENT, ABSENT, 0, *NO_AMOUNTS, *NO_AMOUNTS))
    assert with_reserved(level, Cost(0)) is not None
    assert with_reserved(level, Cost("1e-12")) is None
    assert level.is_basic_alone
