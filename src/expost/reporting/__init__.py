"""Reports: the promise, the bill and the answers on one page, for studies and for ledgers."""

from expost.reporting.record import Budget as Budget
from expost.reporting.record import EntryCost as EntryCost
from expost.reporting.record import Item as Item
from expost.reporting.record import Promise as Promise
from expost.reporting.record import Report as Report
