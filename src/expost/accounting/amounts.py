"""What ledgers count beside the simple sum, and what they hold of it: whole numbers."""

from __future__ import annotations

from typing import NamedTuple

ABSENT = -1
"""The capacity of a meter that an account does not have."""


class Amounts(NamedTuple):
    """What is counted beside the simple sum, in units of 10⁻¹²; the last two count rounds.

    Proof: thm-meters, thm-gaussian-pot
    """

    renyi: int = 0
    """Rényi prices at the ledger's order."""
    normal: int = 0
    """μ² of normal noise."""
    others: int = 0
    """ε of everything else, for the Gaussian meter."""
    unpriced: int = 0
    """Rounds that have no ε: they took no δ. While there is one, the simple sum has no room."""
    foreign: int = 0
    """Those of them that are not normal noise. While there is one, the Gaussian meter has no room."""

    def more(self, other: Amounts) -> Amounts:
        """Both together."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return Amounts(a + v, b + w, c + x, d + y, e + z)

    def less(self, other: Amounts) -> Amounts:
        """This without the other."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return Amounts(a - v, b - w, c - x, d - y, e - z)


NO_AMOUNTS = Amounts()


class Capacity(NamedTuple):
    """What an account holds on each meter beside the simple sum. :data:`ABSENT` where it does not have the meter."""

    delta: int
    """What the δ's of rounds may add up to."""
    renyi: int
    normal: int
    others: int


class MeterBalance(NamedTuple):
    """What an account counts beside the simple sum: how much it holds, what was charged, and what is reserved."""

    capacity: Capacity
    spent: Amounts = NO_AMOUNTS
    reserved: Amounts = NO_AMOUNTS

    @property
    def used(self) -> Amounts:
        """Charged and reserved."""
        return self.spent.more(self.reserved)


def has_room(capacity: Capacity, simple_left: int, used: Amounts) -> bool:
    """Whether at least one meter is within its capacity. ``simple_left`` is what the simple sum has left, or lacks.

    Proof: thm-meters
    """
    return (
        (simple_left >= 0 and not used.unpriced)
        or used.renyi <= capacity.renyi
        or (used.normal <= capacity.normal and used.others <= capacity.others and not used.foreign)
    )
