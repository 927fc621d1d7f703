"""Records from rows of the tables."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from expost.accounting.amounts import Amounts, Counted
from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import LedgerCorrupt
from expost.guarantee import Guarantee, part_from_json
from expost.ledger.codec import Described, read_guarantee
from expost.ledger.entry import Balance, Entry
from expost.ledger.remedies import VERIFY
from expost.ledger.trail import request_of

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff

BALANCE = (
    "epsilon_limit, delta_limit, epsilon_spent, delta_spent, epsilon_reserved, delta_reserved, closed, line, meters"
)
ENTRY = (
    "SELECT e.number, a.path, e.operation, e.subject, e.fingerprint, e.guarantee, g.json, e.label, e.key, e.state, "
    "e.begun, e.part, e.charged_epsilon, e.charged_delta, e.reserved_at, e.epsilon, e.delta, e.reserved_line, "
    "e.ended_line, e.digest, e.output IS NOT NULL, e.meters, e.charged_meters, e.below "
    "FROM expost_entry e LEFT JOIN expost_account a ON a.id = e.account "
    "LEFT JOIN expost_guarantee g ON g.ledger = e.ledger AND g.digest = e.guarantee WHERE e.ledger = ?"
)
"""A query for entries, to be continued with conditions on ``e``, ``a`` (the account) and ``c`` (the guarantee)."""
NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions that a damaged value may raise."""


def balance_of_row(row: Any) -> Balance:
    """The balance in a row of :data:`BALANCE`."""
    limit, limit_delta, spent, spent_delta, reserved, reserved_delta, closed, line, meters = row
    return Balance(
        Cost.of_units(limit, limit_delta),
        Cost.of_units(spent, spent_delta),
        Cost.of_units(reserved, reserved_delta),
        bool(closed),
        line,
        counted_of(meters),
    )


def entry_of_row(row: Any) -> Entry:
    """The entry in a row of :data:`ENTRY`. Raises ``LedgerCorrupt`` if it is damaged."""
    try:
        return _entry(row)
    except NONSENSE:
        raise LedgerCorrupt(f"entry {row[0]!r} cannot be read: the database was damaged or changed by hand") from None


def _entry(row: Any) -> Entry:
    number, path, manner, text, fingerprint, digest, whole, label, key, state, begun, part, paid, paid_delta, at = row[
        :15
    ]
    names = tuple(path.split("/"))
    if row[23] != (len(names) > 1):
        raise ValueError("an entry of an account below the ledger's own is marked so")
    subject, kept = Described(text, fingerprint), guarantee_of(digest, whole)
    return Entry(
        number,
        request_of(manner, names, subject, kept, label, key),
        state,
        bool(begun),
        None if part is None else part_from_json(json.loads(part)),
        None if paid is None else Cost.of_units(paid, paid_delta),
        at / 1e6,
        amounts_of(row[22]),
    )


def amounts_of(text: str | None) -> Amounts | None:
    """Amounts on other meters than the basic sum, from :func:`numbers_text`. Raises ``LedgerCorrupt``."""
    return None if text is None else Amounts(*_numbers(text, 5))


def counted_of(text: str | None) -> Counted | None:
    """An account's counts of other meters than the basic sum, from :func:`numbers_text`. Raises ``LedgerCorrupt``."""
    return None if text is None else _numbers(text, 14)


def _numbers(text: str, count: int) -> tuple[int, ...]:
    try:
        found = json.loads(text)
    except NONSENSE:
        found = None
    if type(found) is not list or len(found) != count or not all(type(number) is int for number in found):
        raise LedgerCorrupt(
            f"{text[:60]!r} is not a list of {count} counts of meters: the database was damaged or changed by hand; "
            "see ",
            VERIFY,
        )
    return tuple(found)


def numbers_text(numbers: tuple[int, ...] | None) -> str | None:
    """Whole numbers as text, for a column."""
    return None if numbers is None else f"[{','.join(map(str, numbers))}]"


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
