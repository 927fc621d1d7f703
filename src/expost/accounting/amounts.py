"""What ledgers count beside the basic sum, and what they hold of it: whole numbers."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeAlias

ABSENT = -1
"""The capacity of a meter that an account does not have."""
CONCENTRATED = 2**32
"""What a ρ-zCDP round counts in ``foreign``, so that it is known whether all of them are: books have fewer entries."""


class Amounts(NamedTuple):
    """What is counted beside the basic sum, in units of 10⁻¹²; the last two count rounds.

    Proof: thm-meters, thm-gaussian-pot
    """

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

    @property
    def is_known_at_all_orders(self) -> bool:
        """Whether every round has a price at every order: by its μ², its ρ or its ε."""
        return not self.foreign % CONCENTRATED

    def more(self, other: Amounts) -> Amounts:
        """The sum of both."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return Amounts(a + v, b + w, c + x, d + y, e + z)


NO_AMOUNTS = Amounts()


class Capacity(NamedTuple):
    """What an account holds on each meter beside the basic sum. :data:`ABSENT` where it does not have the meter."""

    delta: int
    """What the δ's of rounds may add up to."""
    renyi: int
    normal: int
    others: int


Counted: TypeAlias = tuple[int, ...]
"""What an account holds and counts beside the basic sum: a capacity, then what was charged, then what is reserved.

Balances keep the numbers as they are. A ledger has many balances, and a tuple of numbers costs the collector nothing.
"""


class MeterBalance(NamedTuple):
    """The same numbers as :data:`Counted`, by name."""

    capacity: Capacity
    spent: Amounts
    reserved: Amounts

    @classmethod
    def of(cls, counted: Counted) -> Self:
        """What the numbers mean. Raises ``ValueError`` if there are not fourteen."""
        if len(counted) != 14:
            raise ValueError(f"14 numbers of meters, got {len(counted)}")
        return cls(Capacity(*counted[:4]), Amounts(*counted[4:9]), Amounts(*counted[9:]))

    @property
    def used(self) -> Amounts:
        """Charged and reserved."""
        return self.spent.more(self.reserved)


def nothing_counted(capacity: Capacity) -> Counted:
    """An account before its first entry."""
    return (*capacity, *NO_AMOUNTS, *NO_AMOUNTS)
