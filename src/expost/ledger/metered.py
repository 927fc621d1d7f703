"""Balances with several meters: what a reservation and its ending change, and what remains."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from expost.accounting.amounts import Amounts, Capacity, Counted, MeterBalance
from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue, LedgerClosed, LedgerCorrupt
from expost.ledger.entry import Balance, Remaining, Request, least
from expost.ledger.remedies import VERIFY

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Charge

_LARGEST = 2**62  # the largest count in a database, with room for one more limit or price


def with_held(level: Balance, charge: Charge) -> Balance:
    """The balance with something more reserved, whether it fits or not."""
    counted = level.meters
    if counted is not None:
        counted = (*counted[:9], *(one + more for one, more in zip(counted[9:], charge.amounts, strict=True)))
    return level._replace(reserved=level.reserved + charge.cost, meters=counted)


def with_reserved(level: Balance, worst: Charge) -> Balance | None:
    """The balance after a worst case is reserved; None if it fits on no meter, or its δ does not fit.

    Proof: lem-books-meters
    """
    limit, spent, reserved, closed, line, counted = level
    if counted is None:
        raise _without_meters()
    cost, (r, m, o, u, f) = worst
    delta, renyi, normal, others, r0, m0, o0, u0, f0, r1, m1, o1, u1, f1 = counted
    r1, m1, o1, u1, f1, reserved = r1 + r, m1 + m, o1 + o, u1 + u, f1 + f, reserved + cost
    basic = limit.epsilon_units - spent.epsilon_units - reserved.epsilon_units
    room = (
        (basic >= 0 and u0 + u1 == 0) or r0 + r1 <= renyi or (m0 + m1 <= normal and o0 + o1 <= others and f0 + f1 == 0)
    )
    if closed or not room or spent.delta_units + reserved.delta_units > delta:
        return None
    if max(r0 + r1, m0 + m1, o0 + o1, -basic) > _LARGEST or spent.epsilon_units + reserved.epsilon_units >= 2**63:
        return None
    after = (delta, renyi, normal, others, r0, m0, o0, u0, f0, r1, m1, o1, u1, f1)
    return Balance(limit, spent, reserved, closed, line, after)


def with_ended(level: Balance, worst: Charge, charged: Cost, amounts: Amounts) -> Balance:
    """The balance after a charge replaces the worst case that was reserved.

    Proof: lem-books-meters
    """
    limit, spent, reserved, closed, line, counted = level
    if counted is None:
        raise _without_meters()
    cost, (r, m, o, u, f) = worst
    delta, renyi, normal, others, r0, m0, o0, u0, f0, r1, m1, o1, u1, f1 = counted
    a, b, c, d, e = amounts
    after = (
        delta, renyi, normal, others, r0 + a, m0 + b, o0 + c, u0 + d, f0 + e, r1 - r, m1 - m, o1 - o, u1 - u, f1 - f,
    )  # fmt: skip
    return Balance(limit, spent + charged, reserved - cost, closed, line, after)


def _without_meters() -> LedgerCorrupt:
    return LedgerCorrupt("an account of this ledger lacks the ledger's meters: it was changed by hand; see ", VERIFY)


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


def charge_shown(meters: LedgerMeters, charge: Charge) -> Remaining:
    """A charge as shown to people: ε and δ, or the ρ of noise that takes no δ."""
    cost, amounts = charge
    rho = -(-Fraction(amounts.renyi) // meters.order) if amounts.unpriced else 0
    return Remaining.of(cost.epsilon_units, cost.delta_units, int(rho))


def metered_refusal(
    meters: LedgerMeters, request: Request, levels: tuple[Balance, ...]
) -> LedgerClosed | BudgetExceeded:
    """Why a worst case does not fit: a closed level, or else the level with the least ε among those that are short."""
    assert request.tariff is not None
    names = ["/".join(request.account[: depth + 1]) for depth in range(len(levels))]
    for name, level in zip(names, levels, strict=True):
        if level.closed:
            return LedgerClosed(name)
    short = [pair for pair in zip(names, levels, strict=True) if with_reserved(pair[1], request.tariff.worst) is None]
    each = {name: Remaining.of(*_remaining(meters, level)) for name, level in short}
    shortest = min(each, key=lambda name: each[name].epsilon_units)
    return BudgetExceeded(
        charge_shown(meters, request.tariff.worst), each[shortest], shortest, remaining(meters, levels)
    )


def as_counted(numbers: Iterable[int]) -> Counted | None:
    """The counts of meters in a line; None if there are none."""
    found = tuple(map(int, numbers))
    return MeterBalance.of(found) and found if found else None
