"""Records from rows of the tables."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from expost.accounting.amounts import Amounts, beside_epsilon, capacity_with
from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import LedgerCorrupt
from expost.guarantee import Guarantee, part_from_json
from expost.ledger.codec import Described, read_guarantee
from expost.ledger.entry import Balance, Entry, Manner, State
from expost.ledger.trail import request_of

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff

LIMIT = "limit_epsilon, limit_delta, capacity_delta, capacity_renyi, capacity_normal, capacity_others"
"""The columns of an account's limit, and of what it holds: :func:`limit_values`."""
_COUNTS = len(Amounts._fields)
CHARGED, RESERVED = (", ".join(f"{what}_{count}" for count in Amounts._fields) for what in ("charged", "reserved"))
"""The columns of amounts, of accounts and of entries."""


def setting(columns: str) -> str:
    """``SET`` of these columns."""
    return columns.replace(",", " = ?,") + " = ?"


def marks(columns: str, more: int = 0) -> str:
    """A placeholder for each column, and for some before them."""
    return ", ".join("?" * (more + columns.count(",") + 1))


BALANCE = f"{LIMIT}, {CHARGED}, {RESERVED}, closed, line"
ENTRY = (
    "SELECT e.number, a.path, e.operation, e.subject, e.fingerprint, e.guarantee, g.json, e.label, e.key, e.state, "
    "e.begun, e.part, e.reserved_at, e.reserved_line, e.ended_line, e.digest, e.output IS NOT NULL, e.below, "
    f"e.{RESERVED.replace(', ', ', e.')}, e.{CHARGED.replace(', ', ', e.')} "
    "FROM expost_entry e LEFT JOIN expost_account a ON a.id = e.account "
    "LEFT JOIN expost_guarantee g ON g.ledger = e.ledger AND g.digest = e.guarantee WHERE e.ledger = ?"
)
"""A query for entries, to be continued with conditions on ``e``, ``a`` (the account) and ``g`` (the guarantee)."""
NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions that a damaged value may raise."""


def limit_values(balance: Balance) -> tuple[int, ...]:
    """The values of the columns :data:`LIMIT`."""
    return balance.limit.epsilon_units, balance.limit.delta_units, *beside_epsilon(balance.capacity)


def balance_of_row(row: Any) -> Balance:
    """The balance in a row of :data:`BALANCE`."""
    epsilon, delta, *rest = row
    limit, (*amounts, closed, line) = Cost.of_units(epsilon, delta), rest[4:]
    charged, reserved = Amounts(*amounts[:_COUNTS]), Amounts(*amounts[_COUNTS:])
    return Balance(limit, capacity_with(limit, *rest[:4]), charged, reserved, bool(closed), line)


class EntryRow(NamedTuple):
    """A row of :data:`ENTRY`, as it is in the tables."""

    number: int
    path: str
    operation: Manner
    subject: str
    fingerprint: str
    guarantee: str
    guarantee_text: str
    label: str | None
    key: str | None
    state: State
    begun: int
    part: str | None
    reserved_at: int
    reserved_line: int
    ended_line: int | None
    digest: str | None
    has_output: int
    below: int
    reserved: Amounts
    charged: Amounts | None

    @classmethod
    def read(cls, row: Any) -> Self:
        """The row. What a query selects beside it comes behind it."""
        plain, amounts = row[:_PLAIN], row[_PLAIN:]
        reserved, charged = Amounts(*amounts[:_COUNTS]), amounts[_COUNTS : 2 * _COUNTS]
        return cls._make((*plain, reserved, None if charged[0] is None else Amounts(*charged)))

    def entry(self) -> Entry:
        """The entry. Raises ``LedgerCorrupt`` if the row is damaged."""
        try:
            return self._entry()
        except NONSENSE:
            raise LedgerCorrupt(
                f"entry {self.number!r} cannot be read: the database was damaged or changed by hand"
            ) from None

    def _entry(self) -> Entry:
        names = tuple(self.path.split("/"))
        if self.below != (len(names) > 1):
            raise ValueError("an entry of an account below the ledger's own is marked so")
        subject, kept = Described(self.subject, self.fingerprint), guarantee_of(self.guarantee, self.guarantee_text)
        request = request_of(self.operation, names, subject, kept, self.label, self.key)
        part = None if self.part is None else part_from_json(json.loads(self.part))
        return Entry(self.number, request, self.state, bool(self.begun), part, self.charged, self.reserved_at / 1e6)


_PLAIN = len(EntryRow._fields) - 2


def entry_of_row(row: Any) -> Entry:
    """The entry in a row of :data:`ENTRY`. Raises ``LedgerCorrupt`` if it is damaged."""
    return EntryRow.read(row).entry()


def accounting_text(meters: LedgerMeters | None) -> str | None:
    """The meters of a ledger as text, for a column."""
    return None if meters is None else canonical(meters.to_json())


@lru_cache(256)
def meters_of_text(text: str | None) -> LedgerMeters | None:
    """The meters that :func:`accounting_text` wrote."""
    if text is None:
        return None
    from expost.accounting.capacities import LedgerMeters

    return LedgerMeters.from_json(json.loads(text))


_GUARANTEES: dict[str, Guarantee | Tariff] = {}


def guarantee_of(digest: str, text: str) -> Guarantee | Tariff:
    """The guarantee of a text, with its prices if it has any; cached. The text's hash must be ``digest``."""
    found = _GUARANTEES.get(digest)
    if found is None:
        if sha256(text) != digest:
            raise LedgerCorrupt(f"the guarantee stored as {digest[:12]}… has another hash: it was changed by hand")
        if len(_GUARANTEES) >= 256:
            _GUARANTEES.clear()
        found = _GUARANTEES[digest] = read_guarantee(json.loads(text))
    return found
