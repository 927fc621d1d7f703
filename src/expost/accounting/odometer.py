"""What was spent of a ledger with several meters, as one (ε, δ): the least that any of them proves."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from expost.accounting.amounts import ABSENT, NO_AMOUNTS, Amounts
from expost.accounting.renyi.orders import LARGEST_ORDER
from expost.accounting.renyi.orders import capacity as capacity_of_order
from expost.cost import DELTA_UNITS, EPSILON_UNITS, Cost

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters

_TIMES = tuple(2**k for k in range(1, 9))
_FOR_FURTHER_ORDERS = 16
_NOTHING = Cost(0)


def admitting_share(share: int) -> int:
    """What the ledger's own order has of the share of Rényi prices; the rest is for the further orders of readings."""
    return share - share // _FOR_FURTHER_ORDERS


def further_orders(order: Fraction) -> tuple[Fraction, ...]:
    """The other orders of readings, fixed with the ledger's own: at larger ones little spending shows as a small ε."""
    found = (1 + times * (order - 1) for times in _TIMES)
    return tuple(each for each in found if each <= LARGEST_ORDER)


def reading(meters: LedgerMeters, limit: Cost, capacity: Amounts, counted: Amounts) -> Cost:
    """An (ε, δ) at which everything that was counted is private: never above the limit.

    The ε is the least of the basic sum, if every round has an ε; of what Rényi prices prove, at the ledger's order and,
    where all rounds are Gaussian noise, ρ-zCDP or have an ε, at further orders; and of the limit. The δ is the
    limit's, unless nothing was counted, or there is no meter but the basic sum.

    Proof: thm-meter-odometer
    """
    if capacity.renyi == ABSENT:
        return counted.cost
    if counted == NO_AMOUNTS:
        return _NOTHING
    share = meters.renyi_share(limit)
    found = [limit.epsilon_units, _epsilon(meters.order, Fraction(counted.renyi), admitting_share(share))]
    if not counted.unpriced:
        found.append(counted.epsilon)
    if counted.is_known_at_all_orders:
        orders = further_orders(meters.order)
        each = share // _FOR_FURTHER_ORDERS // max(len(orders), 1)
        prices = (order * counted.normal / 2 + counted.others for order in orders)
        found += [_epsilon(order, price, each) for order, price in zip(orders, prices, strict=True) if each]
    return Cost.of_units(min(found), limit.delta_units)


def _epsilon(order: Fraction, price: Fraction, share: int) -> int:
    """The ε of a sum of prices at an order, for a share of δ: units, rounded up."""
    return max(ceil(price - _gained(order, share)), 0)


@lru_cache(maxsize=1024)
def _gained(order: Fraction, share: int) -> Fraction:
    """What an order holds more than ε, in units: negative, and rounded down."""
    return capacity_of_order(order, 0, Fraction(share, DELTA_UNITS)) * EPSILON_UNITS
