"""What has room in an account is what the filter of the composition theorem lets through."""

from __future__ import annotations

from operator import sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Cost
from expost.accounting import CONT, OdpFilter
from expost.accounting.amounts import ABSENT, NO_AMOUNTS, Amounts, Capacity, MeterBalance
from expost.accounting.tariff import Charge
from expost.ledger.entry import Balance
from expost.ledger.metered import with_ended, with_reserved

UNITS = st.integers(0, 4)
COSTS = st.builds(Cost.of_units, UNITS, UNITS)


@given(COSTS, COSTS, COSTS, COSTS)
def test_an_open_account_has_room_where_the_filter_continues(
    limit: Cost, spent: Cost, reserved: Cost, worst: Cost
) -> None:
    decision = OdpFilter(limit).decide(spent + reserved, worst)
    assert Balance(limit, spent, reserved).has_room(worst) == (decision is CONT)


@given(COSTS, COSTS)
def test_a_closed_account_has_room_for_nothing(limit: Cost, worst: Cost) -> None:
    assert not Balance(limit, Cost(0), Cost(0), closed=True).has_room(worst)


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
        after = with_reserved(level, Charge(Cost.of_units(5 + past, 50), rest))
        assert (after is not None) == fits
        if after is not None:
            assert after.meter_balance == MeterBalance(CAPACITY, spent, reserved.more(rest))
            assert with_ended(after, Charge(Cost.of_units(5 + past, 50), rest), Cost(0), NO_AMOUNTS) == level


def test_delta_of_rounds_and_closed_levels_are_respected() -> None:
    level = Balance(Cost(1, delta=1), Cost(0), Cost(0), meters=(*CAPACITY, *NO_AMOUNTS, *NO_AMOUNTS))
    assert with_reserved(level, Charge(Cost.of_units(1, 100), NO_AMOUNTS)) is not None
    assert with_reserved(level, Charge(Cost.of_units(1, 101), NO_AMOUNTS)) is None
    assert with_reserved(level._replace(closed=True), Charge(Cost.of_units(1), NO_AMOUNTS)) is None


def test_no_meter_counts_past_what_a_database_holds() -> None:
    level = Balance(Cost(1), Cost(0), Cost(0), meters=(*CAPACITY, 2**62 - 1, 0, 0, 0, 0, *NO_AMOUNTS))
    assert with_reserved(level, Charge(Cost(0), Amounts(1))) is not None
    assert with_reserved(level, Charge(Cost(0), Amounts(2))) is None


def test_an_absent_meter_has_no_room() -> None:
    level = Balance(Cost(0), Cost(0), Cost(0), meters=(0, ABSENT, ABSENT, 0, *NO_AMOUNTS, *NO_AMOUNTS))
    assert with_reserved(level, Charge(Cost(0), NO_AMOUNTS)) is not None
    assert with_reserved(level, Charge(Cost("1e-12"), NO_AMOUNTS)) is None
    assert level.is_basic_alone
