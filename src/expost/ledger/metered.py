"""Balances with several meters: what a reservation and its ending change, and what is left."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from expost.accounting.amounts import NO_AMOUNTS, Amounts, Capacity, MeterBalance, has_room
from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue, LedgerClosed
from expost.ledger.entry import Balance, Entry, Remaining, Request, least

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Charge

_LARGEST = 2**63 - 1  # what a database counts up to


def with_reserved(level: Balance, worst: Charge) -> Balance | None:
    """The balance with a worst case reserved as well; None if no meter has room, or δ does not fit.

    Proof: lem-books-meters
    """
    limit, spent, reserved, closed, line, held = level
    assert held is not None
    cost, amounts = worst
    reserved, counted = reserved + cost, held.reserved.more(amounts)
    used = held.spent.more(counted)
    left = limit.epsilon_units - spent.epsilon_units - reserved.epsilon_units
    fits = spent.delta_units + reserved.delta_units <= held.capacity.delta and has_room(held.capacity, left, used)
    if closed or not fits or max(used) > _LARGEST or _LARGEST + left < limit.epsilon_units:
        return None
    return Balance(limit, spent, reserved, closed, line, MeterBalance(held.capacity, held.spent, counted))


def with_ended(level: Balance, worst: Charge, charged: Charge) -> Balance:
    """The balance with a charge in place of the worst case that was reserved.

    Proof: lem-books-meters
    """
    limit, spent, reserved, closed, line, held = level
    assert held is not None
    counted = MeterBalance(held.capacity, held.spent.more(charged.amounts), held.reserved.less(worst.amounts))
    return Balance(limit, spent + charged.cost, reserved - worst.cost, closed, line, counted)


def capacity_of(
    meters: LedgerMeters, limit: Cost, recorded: Capacity | None, before: Capacity | None = None
) -> Capacity:
    """What a limit holds on the meters: as a line recorded it, if that can be, or as it is computed now.

    Proof: lem-raised-capacity
    """
    if recorded is None:
        return meters.capacity(limit) if before is None else meters.raised(limit, before)
    grows = before is None or all(
        new >= old and (new < 0) == (old < 0) for new, old in zip(recorded, before, strict=True)
    )
    if not grows or not meters.allows(limit, recorded):
        raise InvalidValue(f"the limit {limit} does not hold {recorded}")
    return recorded


def charge_of(entry: Entry) -> Charge:
    """What an entry that has ended was charged, on every meter."""
    from expost.accounting.tariff import Charge

    assert entry.charged is not None
    return Charge(entry.charged, entry.amounts or NO_AMOUNTS)


def remaining(meters: LedgerMeters | None, levels: Iterable[Balance]) -> Cost:
    """What can still be asked for at every level: the least of each."""
    if meters is None:
        return least(level.remaining for level in levels)
    each = [_remaining(meters, level) for level in levels]
    return Remaining.of(*map(min, zip(*each, strict=True)))


def _remaining(meters: LedgerMeters, level: Balance) -> tuple[int, int, int]:
    from expost.accounting.capacities import affordable

    held = level.meters
    if level.closed or held is None:
        return 0, 0, 0
    found = affordable(meters, held.capacity, level.simple_left, held.used)
    return found.epsilon, level.remaining.delta_units, found.rho


def _requested(meters: LedgerMeters, request: Request) -> Remaining:
    """What was asked for: ε and δ, or the ρ of noise that takes no δ."""
    assert request.tariff is not None
    cost, amounts = request.tariff.worst
    rho = -(-Fraction(amounts.renyi) // meters.order) if amounts.unpriced else 0
    return Remaining.of(cost.epsilon_units, cost.delta_units, int(rho))


def metered_refusal(
    meters: LedgerMeters, request: Request, levels: tuple[Balance, ...], short: list[bool]
) -> LedgerClosed | BudgetExceeded:
    """Why a worst case fits on no meter: a closed level, else the shortest of those that are short."""
    names = ["/".join(request.account[: depth + 1]) for depth in range(len(levels))]
    for name, level in zip(names, levels, strict=True):
        if level.closed:
            return LedgerClosed(name)
    left = {
        name: Remaining.of(*_remaining(meters, level))
        for name, level, is_short in zip(names, levels, short, strict=True)
        if is_short
    }
    shortest = min(left, key=lambda name: left[name].epsilon_units)
    return BudgetExceeded(_requested(meters, request), left[shortest], shortest, remaining(meters, levels))


def numbers_of_meters(held: MeterBalance) -> str:
    """The whole numbers of the meters, in order: capacities, charged, reserved."""
    return ",".join(map(str, (*held.capacity, *held.spent, *held.reserved)))


def meters_of_numbers(numbers: Iterable[int]) -> MeterBalance | None:
    """What :func:`numbers_of_meters` wrote; None if there is nothing."""
    found = list(numbers)
    if not found:
        return None
    if len(found) != 14:
        raise ValueError(f"14 numbers of meters, got {len(found)}")
    return MeterBalance(Capacity(*found[:4]), Amounts(*found[4:9]), Amounts(*found[9:]))
