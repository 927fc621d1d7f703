"""What ledgers with Rényi prices counted."""

from fractions import Fraction

from expost import Ledger
from expost.ledger import Entry


def order_of(ledger: Ledger) -> Fraction:
    """The order of its prices."""
    meters = ledger._store.meters
    assert meters is not None
    return meters.order


def renyi_units(entry: Entry) -> int:
    """What an entry was charged there."""
    assert entry.amounts is not None
    return entry.amounts.renyi
