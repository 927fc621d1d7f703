"""Privacy budgets: ledgers, their rules, their stores, and the audit trail."""

from expost.ledger.address import Summary as Summary
from expost.ledger.address import ledgers as ledgers
from expost.ledger.engine import Settings as Settings
from expost.ledger.entry import Balance as Balance
from expost.ledger.entry import Entry as Entry
from expost.ledger.entry import Remaining as Remaining
from expost.ledger.entry import Request as Request
from expost.ledger.ledger import Ledger as Ledger
from expost.ledger.memory import MemoryStore as MemoryStore
from expost.ledger.quote import Quote as Quote
from expost.ledger.readings import MeterReading as MeterReading
from expost.ledger.reports import report as report
from expost.ledger.reservation import Reservation as Reservation
from expost.ledger.store import Store as Store
from expost.ledger.trail import Head as Head
from expost.ledger.trail import TrailLine as TrailLine
