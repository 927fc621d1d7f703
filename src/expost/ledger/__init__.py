"""MONEY: who may spend how much, and what was spent."""

from expost.ledger.address import Summary, ledgers
from expost.ledger.engine import Settings
from expost.ledger.entry import Balance, Entry, Remaining, Request
from expost.ledger.ledger import Ledger
from expost.ledger.memory import MemoryStore
from expost.ledger.quote import Quote
from expost.ledger.readings import MeterReading
from expost.ledger.reservation import Reservation
from expost.ledger.store import Store
from expost.ledger.trail import Event, Head

__all__ = [
    "Balance",
    "Entry",
    "Event",
    "Head",
    "Ledger",
    "MemoryStore",
    "MeterReading",
    "Quote",
    "Remaining",
    "Request",
    "Reservation",
    "Settings",
    "Store",
    "Summary",
    "ledgers",
]
