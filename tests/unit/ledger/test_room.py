"""What has room in an account is what the filter of the composition theorem lets through."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Cost
from expost.accounting import CONT, BasicMeter, GaussianMeter, MeterFilter, OdpFilter, RenyiMeter
from expost.accounting.amounts import ABSENT, NO_AMOUNTS, Amounts, capacity_with
from expost.accounting.metering import Metered, MeterSum
from expost.ledger.entry import Balance
from expost.ledger.metered import with_ended, with_reserved

UNITS = st.integers(0, 4)
COSTS = st.builds(Cost.of_units, UNITS, UNITS)


def basic(limit: Cost, spent: Cost = Cost(0), reserved: Cost = Cost(0)) -> Balance:  # noqa: B008  # costs do not change
    return Balance.basic(limit)._replace(charged=Amounts.of(spent), reserved=Amounts.of(reserved))


@given(COSTS, COSTS, COSTS, COSTS)
def test_an_open_account_has_room_where_the_filter_continues(
    limit: Cost, spent: Cost, reserved: Cost, worst: Cost
) -> None:
    decision = OdpFilter(limit).decide(spent + reserved, worst)
    after = with_reserved(basic(limit, spent, reserved), Amounts.of(worst))
    assert (after is not None) == (decision is CONT)
    if after is not None:
        assert after == basic(limit, spent, reserved + worst)
        assert with_ended(after, Amounts.of(worst), Amounts.of(worst)) == basic(limit, spent + worst, reserved)


@given(COSTS, COSTS)
def test_a_closed_account_has_room_for_nothing(limit: Cost, worst: Cost) -> None:
    assert with_reserved(basic(limit)._replace(closed=True), Amounts.of(worst)) is None


# ---- several meters


LIMIT = Cost.of_units(10, 200)
CAPACITY = capacity_with(LIMIT, 100, 10, 20, 30)
ROOM = [
    (Amounts(10, 100, 11, 21), True),
    (Amounts(10, 100, 11, 21, unpriced=1), False),
    (Amounts(11, 100, 11, 21), False),
    (Amounts(11, 100, 10, 21, 31, 1, 1), True),
    (Amounts(11, 100, 11, 20, 30, 1), True),
    (Amounts(11, 100, 11, 20, 31), False),
    (Amounts(11, 100, 11, 20, 30, 1, 1), False),
    (Amounts(9, 101, 9, 19, 29), False),
]
"""What is used afterwards, and whether a meter has room."""


@pytest.mark.parametrize(("used", "fits"), ROOM)
@pytest.mark.parametrize("before", [NO_AMOUNTS, Amounts(5, 50, 3, 4, 5)])
def test_room_on_one_meter_suffices(used: Amounts, fits: bool, before: Amounts) -> None:
    worst = used.minus(before)
    for spent, reserved in ((before, NO_AMOUNTS), (NO_AMOUNTS, before)):
        level = Balance(LIMIT, CAPACITY, spent, reserved)
        after = with_reserved(level, worst)
        assert (after is not None) == fits
        if after is not None:
            assert after == Balance(LIMIT, CAPACITY, spent, reserved.plus(worst))
            assert with_ended(after, worst, NO_AMOUNTS) == level


SMALL = st.integers(0, 3)
COUNTED = st.builds(Amounts, UNITS, UNITS, SMALL, SMALL, SMALL, SMALL, SMALL)


def summed(used: Amounts) -> Metered:
    """The same amounts as the filter of any meters has them."""
    basic, renyi = MeterSum((used.epsilon,), used.unpriced), MeterSum((used.renyi,))
    gaussian = MeterSum((used.others, used.normal), used.foreign)
    return Metered(used.delta, (basic, renyi, gaussian))


class OfAmounts(MeterFilter):
    """The filter, of rounds that are given by their worst case."""

    def worst(self, asked: Any) -> Metered:
        return summed(asked)


@given(COUNTED, COUNTED, st.builds(capacity_with, COSTS, SMALL, SMALL, SMALL, SMALL))
def test_several_meters_have_room_where_their_filter_continues(used: Amounts, worst: Amounts, holds: Amounts) -> None:
    basic, renyi = BasicMeter((holds.epsilon,)), RenyiMeter(Fraction(2), (holds.renyi,), 0)
    rule = OfAmounts(Cost.of_units(0, holds.delta), (basic, renyi, GaussianMeter((holds.others, holds.normal), 0)))
    request: Any = worst
    decision = rule.decide(summed(used), request)
    level = Balance(Cost.of_units(holds.epsilon, 200), holds, used)
    assert (with_reserved(level, worst) is not None) == (decision is CONT)


def test_delta_of_rounds_and_closed_levels_are_respected() -> None:
    level = Balance(LIMIT, CAPACITY)
    assert with_reserved(level, Amounts(1, 100)) is not None
    assert with_reserved(level, Amounts(1, 101)) is None
    assert with_reserved(level._replace(closed=True), Amounts(1)) is None


def test_no_meter_counts_past_what_a_database_holds() -> None:
    level = Balance(LIMIT, CAPACITY, Amounts(renyi=2**62 - 1))
    assert with_reserved(level, Amounts(renyi=1)) is not None
    assert with_reserved(level, Amounts(renyi=2)) is None


def test_an_absent_meter_has_no_room() -> None:
    level = Balance(Cost(0), capacity_with(Cost(0), 0, ABSENT, ABSENT, 0))
    assert with_reserved(level, NO_AMOUNTS) is not None
    assert with_reserved(level, Amounts(1)) is None
    assert level.is_basic_alone
    assert not basic(Cost(0)).is_basic_alone
