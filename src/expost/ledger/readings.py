"""Readings of a ledger's meters, as shown to people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from expost.accounting.amounts import ABSENT, BASIC_METER, GAUSSIAN_METER, RENYI_METER, MeterPlaces
from expost.accounting.filters import is_within
from expost.cost import decimal_text
from expost.ledger.entry import Balance

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


CLOSED = "closed by charges of another kind"
"""Of a meter on which nothing more fits, although what it counts is within its capacity."""


class MeterReading(NamedTuple):
    """The reading of one meter of an account, in units of 10⁻¹².

    Attributes
    ----------
    name
        The meter.
    capacity
        The most that it admits; None if the account's limit is too small for this meter.
    spent
        What was charged.
    reserved
        The worst case of everything that is open.
    is_full
        Whether nothing more fits: the counts exceed the capacity, or some charge has no price on this meter.
    """

    name: str
    capacity: int | None
    spent: int
    reserved: int
    is_full: bool

    def __str__(self) -> str:
        if self.capacity is None:
            return f"{self.name}: none, because the limit is too small"
        used = decimal_text(self.spent + self.reserved, 12)
        full = f", {'full' if self.spent + self.reserved > self.capacity else CLOSED}" if self.is_full else ""
        return f"{self.name}: {used} of {decimal_text(self.capacity, 12)}{full}"


def readings(meters: LedgerMeters | None, balance: Balance) -> tuple[MeterReading, ...]:
    """The readings of an account's meters, the basic sum first."""
    basic = _reading("basic sum (ε)", "epsilon", BASIC_METER, balance)
    return (basic,) if meters is None else (basic, *_others(meters, balance))


def _others(meters: LedgerMeters, balance: Balance) -> Iterator[MeterReading]:
    yield _reading(f"Rényi prices at order {float(meters.order):.6g}", "renyi", RENYI_METER, balance)
    if meters.gaussian:
        name = "Gaussian noise (μ², fixed at creation)"  # a raised limit leaves it as it is: lem-raised-capacity
        yield _reading(name, "normal", GAUSSIAN_METER, balance)


def _reading(name: str, count: str, meter: MeterPlaces, balance: Balance) -> MeterReading:
    """The reading of a meter by the count that says most about it."""
    most, charged, reserved = (getattr(each, count) for each in (balance.capacity, balance.charged, balance.reserved))
    is_full = not is_within(meter, balance.capacity, balance.used)
    return MeterReading(name, None if most == ABSENT else most, charged, reserved, is_full)


def meter_lines(found: tuple[MeterReading, ...]) -> Iterator[str]:
    """The last lines of a statement, if there are several meters."""
    return (f"  {reading}" for reading in found) if len(found) > 1 else iter(())
