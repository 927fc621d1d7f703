"""The rules of a ledger: what an operation changes, or why it is rejected. Pure functions of books and operation.

The store in memory and the SQLite engine apply these rules to new operations; verification applies them to the
operations that an audit trail records, and compares. PostgreSQL has the same rules in SQL; verification uses these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from expost.accounting.amounts import NO_AMOUNTS
from expost.cost import Cost
from expost.errors import (
    AlreadyExists,
    AlreadyReserved,
    InvalidValue,
    KeyConflict,
    NeighbourMismatch,
    ReservationClosed,
    UnitMismatch,
)
from expost.guarantee import Guarantee, Neighbours
from expost.ledger.codec import described, guarantee_digest
from expost.ledger.entry import Accounts, Balance, Entry, Path, Request, lineage
from expost.ledger.metered import capacity_of, other_meters, refusal, with_ended, with_reserved
from expost.ledger.operations import (
    Begin,
    Close,
    Create,
    CreateAccount,
    DropOutputs,
    Forfeit,
    Operation,
    RaiseLimit,
    Remark,
    Reopen,
    Reserve,
    SetClock,
    Settle,
    Void,
)
from expost.ledger.remedies import CLOSE

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff


class Change(NamedTuple):
    """What an operation changes."""

    operation: Operation
    accounts: Accounts
    """The accounts that it is about. Of administration the last one is meant, and those above it stay as they are."""
    levels: tuple[Balance, ...]
    """Their new balances."""
    entry: Entry | None = None
    """The new state of the entry."""
    first: bool = False
    """Whether this is the first reservation for its guarantee."""

    @property
    def path(self) -> Path:
        """The account that administration is about."""
        return self.accounts[-1]


class Books(Protocol):
    """The state of a ledger that the rules depend on."""

    @property
    def root(self) -> Path:
        """The ledger's own account."""

    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbour relation of every guarantee, once one has fixed it."""

    @property
    def unit(self) -> str | None:
        """The unit of every guarantee that has one, once one has fixed it."""

    @property
    def meters(self) -> LedgerMeters | None:
        """Other meters than the basic sum, if there are any."""

    @property
    def count(self) -> int:
        """The number of entries."""

    @property
    def at(self) -> int:
        """The clock of the ledger."""

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """The balances of these accounts. Raises ``UnknownEntry`` if there is no such account."""

    def exists(self, path: Path) -> bool:
        """Whether there is such an account."""

    def entry(self, number: int) -> Entry:
        """An entry as it is now. Raises ``UnknownEntry``."""

    def keyed(self, key: str) -> Entry | None:
        """The entry with a key, if there is one."""

    def knows(self, guarantee: Guarantee | Tariff) -> bool:
        """Whether an entry of this guarantee, with these prices, was reserved before."""


# ---- the rules


def change_of(books: Books, operation: Operation) -> Change | None:
    """What the operation changes, None if nothing. Raises if it is not allowed.

    Proof: thm-ledger, thm-ledger-meters
    """
    return _RULES[type(operation)](books, operation)


def _create(books: Books, operation: Create) -> Change:
    capacity = capacity_of(operation.meters, operation.limit, operation.capacity)
    return Change(operation, lineage((operation.name,)), (Balance(operation.limit, capacity),))


def _create_account(books: Books, operation: CreateAccount) -> Change:
    path, above = operation.path, books.levels(lineage(operation.path[:-1]))
    if books.exists(path):
        raise AlreadyExists("account", "/".join(path))
    capacity = capacity_of(books.meters, operation.limit, operation.capacity)
    return Change(operation, lineage(path), (*above, Balance(operation.limit, capacity)))


def _raise_limit(books: Books, operation: RaiseLimit) -> Change:
    accounts = lineage(operation.path)
    *above, own = books.levels(accounts)
    limit = raised(own.limit, operation.epsilon, operation.delta)
    capacity = capacity_of(books.meters, limit, operation.capacity, own.capacity)
    return Change(operation, accounts, (*above, own._replace(limit=limit, capacity=capacity)))


def _close(books: Books, operation: Close) -> Change:
    accounts = lineage(operation.path)
    *above, own = books.levels(accounts)
    if operation.to is not None and (above or own.closed):  # so that it goes on in one place only
        raise InvalidValue(f"{'/'.join(operation.path)!r} is an account, or was closed before: it cannot be moved")
    return Change(operation, accounts, (*above, own._replace(closed=True)))


def _reopen(books: Books, operation: Reopen) -> Change:
    """Only copies do this, as they are made; whether the line that is quoted closed the ledger, replaying decides."""
    accounts = lineage(books.root)
    (own,) = books.levels(accounts)
    if not own.closed:
        raise InvalidValue(f"{books.root[0]!r} is not closed: only a ledger that was moved is opened again")
    return Change(operation, accounts, (own._replace(closed=False),))


def _remark(books: Books, operation: Remark) -> Change:
    accounts = lineage(operation.path)
    return Change(operation, accounts, books.levels(accounts))


def _root(books: Books, operation: SetClock | DropOutputs) -> Change:
    accounts = lineage(books.root)
    return Change(operation, accounts, books.levels(accounts))


def _reserve(books: Books, operation: Reserve) -> Change:
    request = operation.request
    _, _, _, guarantee, _, key, tariff = request
    if key is not None:
        refuse_used(books, request)
    refuse_relation(books, guarantee.neighbours)
    refuse_unit(books, guarantee.unit)
    if (tariff is None) != (books.meters is None):
        raise foreign_prices()
    accounts, worst, more = request.accounts, request.worst, []
    levels, metered = books.levels(accounts), tariff is not None
    for level in levels:
        if level.is_metered != metered:
            raise other_meters()
        after = with_reserved(level, worst)
        if after is None:
            raise refusal(books.meters, request, levels)
        more.append(after)
    entry = Entry(books.count + 1, request, "reserved", operation.begun, None, None, books.at / 1e6)
    return Change(operation, accounts, tuple(more), entry, not books.knows(request.priced_guarantee))


def _begin(books: Books, operation: Begin) -> Change | None:
    entry = _open(books, operation.entry, "begin")
    if entry.begun:
        return None
    accounts = entry.request.accounts
    return Change(operation, accounts, books.levels(accounts), entry._replace(begun=True))


def _settle(books: Books, operation: Settle) -> Change:
    entry, part = _open(books, operation.entry, "settle"), operation.part
    request, paid = entry.request, entry.request.price(part)
    return _end(books, operation, Entry(entry.id, request, "settled", True, part, paid, entry.reserved_at))


def _forfeit(books: Books, operation: Forfeit) -> Change:
    entry = _open(books, operation.entry, "forfeit")
    return _end(books, operation, entry._replace(state="forfeited", begun=True, amounts=entry.reserved_amounts))


def _void(books: Books, operation: Void) -> Change:
    entry = _open(books, operation.entry, "void")
    if entry.begun:
        raise ReservationClosed(entry, "void")
    return _end(books, operation, entry._replace(state="voided", amounts=NO_AMOUNTS))


def _end(books: Books, operation: Operation, entry: Entry) -> Change:
    """End an entry: move its charge from reserved to charged, and release the rest of its reservation."""
    request, charged, less = entry.request, entry.amounts or NO_AMOUNTS, []
    worst, accounts, metered = request.worst, request.accounts, request.tariff is not None
    for level in books.levels(accounts):
        if level.is_metered != metered:
            raise other_meters()
        less.append(with_ended(level, worst, charged))
    return Change(operation, accounts, tuple(less), entry)


def _open(books: Books, number: int, attempted: str) -> Entry:
    entry = books.entry(number)
    if entry.state != "reserved":
        raise ReservationClosed(entry, attempted)
    return entry


_RULES: dict[type, Callable[[Books, Any], Change | None]] = {
    Create: _create,
    CreateAccount: _create_account,
    RaiseLimit: _raise_limit,
    Close: _close,
    Reopen: _reopen,
    Remark: _remark,
    SetClock: _root,
    DropOutputs: _root,
    Reserve: _reserve,
    Begin: _begin,
    Settle: _settle,
    Forfeit: _forfeit,
    Void: _void,
}


# ---- rejections


def refuse_used(books: Books, request: Request) -> None:
    """Raise if the key of a request was used before."""
    found = None if request.key is None else books.keyed(request.key)
    if found is not None:
        raise AlreadyReserved(same_request(found, request))


def foreign_prices() -> InvalidValue:
    """An error: a request has prices if and only if its ledger has several meters."""
    return InvalidValue("the request's prices do not fit the meters of its ledger: make the request again")


def refuse_relation(books: Books, relation: Neighbours | None) -> None:
    """Raise if a guarantee is for another neighbour relation than the ledger's."""
    if relation is not None and books.neighbours not in (None, relation):
        raise NeighbourMismatch(relation, str(books.neighbours), f"ledger {books.root[0]!r}")


def refuse_unit(books: Books, unit: str | None) -> None:
    """Raise if a guarantee is for another unit than the ledger's, or calls it by another name: books have one name."""
    if unit is not None and books.unit not in (None, unit):
        raise UnitMismatch(unit, str(books.unit), f"ledger {books.root[0]!r}")


def same_request(entry: Entry, request: Request) -> Entry:
    """The entry of a key, if it was for the same request. A ``KeyConflict`` shows nothing of other accounts."""
    then, now = entry.request, request
    if then.account != now.account:
        raise KeyConflict(str(now.key), "account")
    subject, asked = described(then.subject, keyed=True), described(now.subject, keyed=True)
    differences = {
        "operation": then.operation != now.operation,
        "mechanism": subject.fingerprint != asked.fingerprint,
        "guarantee": guarantee_digest(then.guarantee) != guarantee_digest(now.guarantee),
        "label": then.label != now.label,
        "table": bool(subject.data) and subject.data != asked.data,
    }
    for name, differs in differences.items():
        if differs:
            raise KeyConflict(str(now.key), name, entry)
    return entry


def raised(current: Cost, epsilon: Cost | None, delta: Cost | None) -> Cost:
    """The new limit, if it is nowhere below the current one."""
    new = Cost.of_units(
        current.epsilon_units if epsilon is None else epsilon.epsilon_units,
        current.delta_units if delta is None else delta.delta_units,
    )
    if not current <= new:
        raise InvalidValue(f"a limit can only be raised: it is {current}, and {new} is less; to end spending: ", CLOSE)
    return new
