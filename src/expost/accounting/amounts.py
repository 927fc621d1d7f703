"""What ledgers count: a vector of whole numbers; and which of them make a meter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from expost.cost import Cost

ABSENT = -1
"""The capacity for what an account does not count: its meter never has room."""
CONCENTRATED = 2**32
"""What a ρ-zCDP round counts in ``foreign``, so that it is known whether all of them are: books have fewer entries."""


class Amounts(NamedTuple):
    """What is counted: δ in units of 10⁻¹⁸, the last two in rounds, all else in units of 10⁻¹².

    It is what a part costs, what is charged to an account, what is reserved there, and what an account holds of each. A
    ledger with the basic sum alone counts the first two.

    Proof: thm-meters, thm-gaussian-pot
    """

    epsilon: int = 0
    """ε of the parts that came out, of rounds that have one."""
    delta: int = 0
    """δ of the rounds that take one."""
    renyi: int = 0
    """Rényi prices at the ledger's order."""
    normal: int = 0
    """μ² of Gaussian noise, and 2ρ of what is ρ-zCDP: half of it is the price at any order, divided by the order."""
    others: int = 0
    """ε of everything else, for the Gaussian meter."""
    unpriced: int = 0
    """Rounds that have no ε: they took no δ. While there is one, the basic sum has no room."""
    foreign: int = 0
    """Those of them that are not Gaussian noise: ``CONCENTRATED`` each where they are ρ-zCDP, 1 otherwise.

    While there is one, the Gaussian meter has no room.
    """

    @staticmethod
    def of(cost: Cost) -> Amounts:
        """What a cost counts in the basic sum."""
        return _new(Amounts, (cost.epsilon_units, cost.delta_units, 0, 0, 0, 0, 0))

    @property
    def cost(self) -> Cost:
        """ε and δ: all that the basic sum counts."""
        return Cost.of_units(self[0], self[1])

    @property
    def is_known_at_all_orders(self) -> bool:
        """Whether every round has a price at every order: by its μ², its ρ or its ε."""
        return not self.foreign % CONCENTRATED

    def plus(self, other: Amounts) -> Amounts:
        """The sum of both."""
        a, b, c, d, e, f, g = self  # by name: this runs four times for every charge
        t, u, v, w, x, y, z = other
        return _new(Amounts, (a + t, b + u, c + v, d + w, e + x, f + y, g + z))

    def minus(self, other: Amounts) -> Amounts:
        """What is left without the other."""
        a, b, c, d, e, f, g = self
        t, u, v, w, x, y, z = other
        return _new(Amounts, (a - t, b - u, c - v, d - w, e - x, f - y, g - z))

    def times(self, count: int) -> Amounts:
        """As many of it together."""
        return Amounts(*(each * count for each in self))


_new = tuple.__new__
NO_AMOUNTS = Amounts()
MeterPlaces: TypeAlias = tuple[int, ...]
"""What has to be within capacity for one meter to have room, by place. Every meter respects δ, too."""
BASIC_METER: MeterPlaces = (Amounts._fields.index("epsilon"), Amounts._fields.index("unpriced"))
RENYI_METER: MeterPlaces = (Amounts._fields.index("renyi"),)
GAUSSIAN_METER: MeterPlaces = tuple(map(Amounts._fields.index, ("normal", "others", "foreign")))
METERS = BASIC_METER, RENYI_METER, GAUSSIAN_METER
"""The meters of an account. Of those that its ledger does not have, it holds :data:`ABSENT`."""


def basic_capacity(limit: Cost) -> Amounts:
    """What an account with this limit holds, if it has the basic sum alone."""
    return capacity_with(limit, limit.delta_units)


def capacity_with(limit: Cost, delta: int, renyi: int = ABSENT, normal: int = ABSENT, others: int = ABSENT) -> Amounts:
    """What an account with this limit holds: its ε, a part of its δ for rounds, and this on other meters."""
    return Amounts(limit.epsilon_units, delta, renyi, normal, others)


def beside_epsilon(capacity: Amounts) -> tuple[int, int, int, int]:
    """What :func:`capacity_with` takes beside the limit."""
    return capacity.delta, capacity.renyi, capacity.normal, capacity.others


def together(amounts: Iterable[Amounts]) -> Amounts:
    """The sum of all."""
    found = NO_AMOUNTS
    for each in amounts:
        found = found.plus(each)
    return found
