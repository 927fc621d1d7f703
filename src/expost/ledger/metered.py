"""Balances, on one meter or several: what a reservation and its ending change, and what remains."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from operator import add, sub
from typing import TYPE_CHECKING

from expost.accounting.amounts import NO_AMOUNTS, Amounts, Capacity, Counted, MeterBalance
from expost.accounting.filters import has_room
from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue, LedgerClosed, LedgerCorrupt
from expost.ledger.entry import Balance, Remaining, Request, least
from expost.ledger.remedies import VERIFY

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters

_LARGEST = 2**62  # the largest count in a database, with room for one more limit or price


def with_held(level: Balance, cost: Cost, amounts: Amounts = NO_AMOUNTS) -> Balance:
    """The balance with something more reserved, whether it fits or not."""
    limit, spent, reserved, closed, line, counted = level
    if counted is not None:
        counted = (*counted[:9], *map(add, counted[9:], amounts))
    return Balance(limit, spent, reserved + cost, closed, line, counted)


def with_reserved(level: Balance, cost: Cost, amounts: Amounts = NO_AMOUNTS) -> Balance | None:
    """The balance after a worst case is reserved; None if it is closed, or has no room for it on any meter.

    Proof: thm-ledger, lem-books-meters
    """
    limit, spent, reserved, closed, line, counted = level
    held = reserved + cost
    used = spent + held
    if counted is None:
        return None if closed or not has_room(limit, used) else Balance(limit, spent, held, closed, line)
    taken = tuple(map(add, counted[9:], amounts))
    both = Amounts._make(map(add, counted[4:9], taken))
    if closed or not has_room(limit, used, Capacity._make(counted[:4]), both) or not _is_storable(limit, used, both):
        return None
    return Balance(limit, spent, held, closed, line, (*counted[:9], *taken))


def _is_storable(limit: Cost, used: Cost, counted: Amounts) -> bool:
    """Whether every database can hold what is used: a meter that has room lets all others run past their limits."""
    past = used.epsilon_units - limit.epsilon_units
    return used.epsilon_units < 2**63 and max(counted.renyi, counted.normal, counted.others, past) <= _LARGEST


def with_ended(level: Balance, worst: Cost, worst_amounts: Amounts, charged: Cost, amounts: Amounts) -> Balance:
    """The balance after a charge replaces the worst case that was reserved.

    Proof: thm-ledger, lem-books-meters
    """
    limit, spent, reserved, closed, line, counted = level
    if counted is not None:
        counted = (*counted[:4], *map(add, counted[4:9], amounts), *map(sub, counted[9:], worst_amounts))
    return Balance(limit, spent + charged, reserved - worst, closed, line, counted)


def other_meters() -> LedgerCorrupt:
    """An error: an account does not have the meters of its ledger."""
    return LedgerCorrupt("an account has other meters than its ledger: it was changed by hand; see ", VERIFY)


def capacity_of(
    meters: LedgerMeters, limit: Cost, recorded: Capacity | None, before: Capacity | None = None
) -> Capacity:
    """The capacity of a limit on the meters: as a line recorded it, if that is possible, or as computed now.

    Proof: lem-raised-capacity
    """
    if recorded is None:
        return meters.capacity(limit) if before is None else meters.raised(limit, before)
    allowed = meters.allows(limit, recorded) if before is None else meters.allows_raised(limit, recorded, before)
    if not allowed:
        raise InvalidValue(f"{recorded} is not a capacity of the limit {limit}")
    return recorded


def remaining(meters: LedgerMeters | None, levels: Iterable[Balance]) -> Cost:
    """What can still be reserved: the least over all levels."""
    if meters is None:
        return least(level.remaining for level in levels)
    each = [_remaining(meters, level) for level in levels]
    return Remaining.of(*map(min, zip(*each, strict=True)))


def _remaining(meters: LedgerMeters, level: Balance) -> tuple[int, int, int]:
    from expost.accounting.capacities import affordable

    counts = level.meter_balance
    if level.closed or counts is None:
        return 0, 0, 0
    found = affordable(meters, counts.capacity, level.basic_remaining, counts.used)
    return found.epsilon, level.remaining.delta_units, found.rho


def spent_and_reserved(meters: LedgerMeters | None, level: Balance) -> tuple[Cost, Cost]:
    """What was spent of an account's limit, and what its open entries may still take: together never above the limit.

    In the basic sum they add up. With several meters they are readings of the odometer, first of what was charged, then
    of what is open at its worst as well.

    Proof: thm-meter-odometer
    """
    counts = level.meter_balance
    if meters is None or counts is None:
        return level.spent, level.reserved
    from expost.accounting.odometer import reading

    spent = reading(meters, level.limit, counts.capacity, level.spent, counts.spent)
    both = reading(meters, level.limit, counts.capacity, level.spent + level.reserved, counts.used)
    return spent, both - spent


def balance_shown(meters: LedgerMeters | None, levels: tuple[Balance, ...]) -> dict[str, Cost]:
    """The limit of an account, and what is spent, reserved and remaining, as people see it.

    What remains takes the levels above into account.
    """
    spent, reserved = spent_and_reserved(meters, levels[-1])
    return {"limit": levels[-1].limit, "spent": spent, "reserved": reserved, "remaining": remaining(meters, levels)}


def charge_shown(meters: LedgerMeters | None, cost: Cost, amounts: Amounts) -> Cost:
    """A charge as shown to people: ε and δ; with several meters, or the ρ of noise that takes no δ."""
    if meters is None:
        return cost
    rho = -(-Fraction(amounts.renyi) // meters.order) if amounts.unpriced else 0
    return Remaining.of(cost.epsilon_units, cost.delta_units, int(rho))


def refusal(
    meters: LedgerMeters | None, request: Request, levels: tuple[Balance, ...]
) -> LedgerClosed | BudgetExceeded:
    """Why a worst case does not fit: a closed level, or else the level with the least ε among those that are short."""
    names = ["/".join(request.account[: depth + 1]) for depth in range(len(levels))]
    for name, level in zip(names, levels, strict=True):
        if level.closed:
            return LedgerClosed(name)
    worst = request.worst, request.worst_amounts
    each = {
        name: remaining(meters, (level,))
        for name, level in zip(names, levels, strict=True)
        if with_reserved(level, *worst) is None
    }
    shortest = min(each, key=lambda name: each[name].epsilon_units)
    return BudgetExceeded(charge_shown(meters, *worst), each[shortest], shortest, remaining(meters, levels))


def as_counted(numbers: Iterable[int]) -> Counted | None:
    """The counts of meters in a line; None if there are none."""
    found = tuple(map(int, numbers))
    return MeterBalance.of(found) and found if found else None
