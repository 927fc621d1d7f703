"""Balances, on one meter or several: what a reservation and its ending change, and what remains."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from expost.accounting.amounts import Amounts, basic_capacity
from expost.accounting.filters import has_room
from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue, LedgerClosed, LedgerCorrupt
from expost.ledger.entry import Balance, Remaining, Request, least
from expost.ledger.remedies import VERIFY

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters

_new = tuple.__new__  # half the time of a named tuple's own, and this runs for every charge
_LARGEST = 2**62  # the largest count in a database, with room for one more limit or price


def with_held(level: Balance, amounts: Amounts) -> Balance:
    """The balance with something more reserved, whether it fits or not."""
    return level._replace(reserved=level.reserved.plus(amounts))


def with_reserved(level: Balance, worst: Amounts) -> Balance | None:
    """The balance after a worst case is reserved; None if it is closed, or has no room for it on any meter.

    Proof: thm-ledger, lem-books-meters
    """
    limit, capacity, charged, reserved, closed, line = level
    held = reserved.plus(worst)
    used = charged.plus(held)
    if closed or not has_room(capacity, used) or (max(used) > _LARGEST and not _is_storable(capacity, used)):
        return None
    return _new(Balance, (limit, capacity, charged, held, closed, line))


def _is_storable(capacity: Amounts, used: Amounts) -> bool:
    """Whether every database can hold what is used: a meter that has room lets all others run past their limits."""
    past = used.epsilon - capacity.epsilon
    return used.epsilon < 2**63 and max(used.renyi, used.normal, used.others, past) <= _LARGEST


def with_ended(level: Balance, worst: Amounts, charged: Amounts) -> Balance:
    """The balance after a charge replaces the worst case that was reserved.

    Proof: thm-ledger, lem-books-meters
    """
    limit, capacity, before, reserved, closed, line = level
    return _new(Balance, (limit, capacity, before.plus(charged), reserved.minus(worst), closed, line))


def other_meters() -> LedgerCorrupt:
    """An error: an account does not have the meters of its ledger."""
    return LedgerCorrupt("an account has other meters than its ledger: it was changed by hand; see ", VERIFY)


def capacity_of(
    meters: LedgerMeters | None, limit: Cost, recorded: Amounts | None, before: Amounts | None = None
) -> Amounts:
    """What a limit holds: as a line recorded it, if that is possible, or as computed now.

    Proof: lem-raised-capacity
    """
    if meters is None:
        possible = basic_capacity(limit)
        allowed = recorded in (None, possible)
    elif recorded is None:
        return meters.capacity(limit) if before is None else meters.raised(limit, before)
    else:
        possible = recorded
        allowed = meters.allows(limit, recorded) if before is None else meters.allows_raised(limit, recorded, before)
    if not allowed:
        raise InvalidValue(f"{recorded} is not a capacity of the limit {limit}")
    return possible


def remaining(meters: LedgerMeters | None, levels: Iterable[Balance]) -> Cost:
    """What can still be reserved: the least over all levels."""
    if meters is None:
        return least(level.remaining for level in levels)
    each = [_remaining(meters, level) for level in levels]
    return Remaining.of(*map(min, zip(*each, strict=True)))


def _remaining(meters: LedgerMeters, level: Balance) -> tuple[int, int, int]:
    from expost.accounting.capacities import affordable

    if level.closed or not level.is_metered:
        return 0, 0, 0
    found = affordable(meters, level.capacity, level.used)
    return found.epsilon, level.remaining.delta_units, found.rho


def spent_and_reserved(meters: LedgerMeters | None, level: Balance) -> tuple[Cost, Cost]:
    """What was spent of an account's limit, and what its open entries may still take: together never above the limit.

    In the basic sum they add up. With several meters they are readings of the odometer, first of what was charged, then
    of what is open at its worst as well.

    Proof: thm-meter-odometer
    """
    if meters is None:
        return level.charged.cost, level.reserved.cost
    from expost.accounting.odometer import reading

    spent = reading(meters, level.limit, level.capacity, level.charged)
    return spent, reading(meters, level.limit, level.capacity, level.used) - spent


def balance_shown(meters: LedgerMeters | None, levels: tuple[Balance, ...]) -> dict[str, Cost]:
    """The limit of an account, and what is spent, reserved and remaining, as people see it.

    What remains takes the levels above into account.
    """
    spent, reserved = spent_and_reserved(meters, levels[-1])
    return {"limit": levels[-1].limit, "spent": spent, "reserved": reserved, "remaining": remaining(meters, levels)}


def charge_shown(meters: LedgerMeters | None, amounts: Amounts) -> Cost:
    """A charge as shown to people: ε and δ; with several meters, or the ρ of noise that takes no δ."""
    if meters is None:
        return amounts.cost
    rho = -(-Fraction(amounts.renyi) // meters.order) if amounts.unpriced else 0
    return Remaining.of(amounts.epsilon, amounts.delta, int(rho))


def refusal(
    meters: LedgerMeters | None, request: Request, levels: tuple[Balance, ...]
) -> LedgerClosed | BudgetExceeded:
    """Why a worst case does not fit: a closed level, or else the level with the least ε among those that are short."""
    names = ["/".join(path) for path in request.accounts]
    for name, level in zip(names, levels, strict=True):
        if level.closed:
            return LedgerClosed(name)
    each = {
        name: remaining(meters, (level,))
        for name, level in zip(names, levels, strict=True)
        if with_reserved(level, request.worst) is None
    }
    shortest = min(each, key=lambda name: each[name].epsilon_units)
    return BudgetExceeded(charge_shown(meters, request.worst), each[shortest], shortest, remaining(meters, levels))
