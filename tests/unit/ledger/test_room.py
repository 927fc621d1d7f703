"""What has room in an account is what the filter of the composition theorem lets through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from expost import Cost
from expost.accounting import CONT, OdpFilter
from expost.ledger.entry import Balance

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
