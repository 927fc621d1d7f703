import pytest

from expost import BudgetExceeded, Cost, InvalidValue
from expost.accounting import CONT, HALT, Odometer, OdpFilter, decide


def test_the_filter_reads_a_sequence() -> None:
    rule = OdpFilter(Cost(1, delta=0.1))
    charges = [Cost(0.25, delta=0.05), Cost(0.25)]
    assert decide(rule, charges, Cost(0.5, delta=0.05)) is CONT
    assert decide(rule, charges, Cost("0.500000000001")) is HALT
    assert decide(rule, charges, Cost(0, delta="0.050000000000000001")) is HALT
    assert decide(rule, [], Cost(1, delta=0.1)) is CONT


def test_a_filter_past_its_limit_halts_even_for_nothing_more_than_it_has() -> None:
    assert OdpFilter(Cost(1)).decide(Cost(2), Cost(0)) is HALT


def test_limits_that_are_none() -> None:
    with pytest.raises(InvalidValue, match="limit is a Cost, got 1"):
        OdpFilter(1)
    for delta in (-1, "abc", 2):
        with pytest.raises(InvalidValue, match="δ"):
            Odometer(delta)


def test_decisions_read_as_words() -> None:
    assert repr([CONT, HALT]) == "[CONT, HALT]"


def test_the_odometer_reads_at_any_time() -> None:
    odometer = Odometer(delta=0.1)
    assert odometer.reading == Cost(0, delta=0.1)
    for _ in range(1000):
        odometer = odometer.charge(Cost(5))
    assert odometer.reading == Cost(5000, delta=0.1)
    assert odometer.spent == Cost(5000)
    with pytest.raises(BudgetExceeded) as refused:
        odometer.charge(Cost(1, delta=0.2))
    assert refused.value.short == ("delta",)
