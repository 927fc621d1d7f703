"""Books kept in this process's memory: safe across threads, gone when the process ends."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

from expost.accounting import HALT, OdpFilter
from expost.cost import Cost
from expost.errors import (
    AlreadyExists,
    AlreadyReserved,
    LedgerCorrupt,
    LedgerUnavailable,
    NeighbourMismatch,
    ReservationClosed,
    UnknownEntry,
)
from expost.forks import here
from expost.guarantee import Guarantee, Neighbours, Part
from expost.ledger.entry import Balance, Entry, Note, Path, Request, State, raised, refusal, same_request
from expost.ledger.trail import Event, Head, Trail, create_body, end_body, full_hour, limit_body, replay, reserve_body

_Body: TypeAlias = Callable[[set[Guarantee]], str]
_Log: TypeAlias = list[tuple[int, str, int | None, _Body]]
_ENDINGS = {"settled": "settle", "forfeited": "forfeit", "voided": "void"}


def _told(body: Callable[..., str], *facts: Any) -> _Body:
    return lambda claims: body(*facts)


def _reserved(request: Request, begun: bool, claims: set[Guarantee]) -> str:
    """``claims`` are those that earlier lines have told of."""
    first = request.guarantee not in claims
    claims.add(request.guarantee)
    return reserve_body(request, begun, first=first)


def _nothing(claims: set[Guarantee]) -> str:
    return "{}"


class _Account:
    __slots__ = ("below", "closed", "levels", "path", "rule", "spent", "used")

    def __init__(self, path: Path, limit: Cost, above: tuple[_Account, ...]) -> None:
        self.path = path
        self.rule = OdpFilter(limit)
        self.spent = Cost(0)
        self.used = Cost(0)
        """Spent or set aside."""
        self.closed = False
        self.below: dict[str, _Account] = {}
        self.levels = (*above, self)
        """This account and all above it, the ledger's own first."""

    @property
    def balance(self) -> Balance:
        return Balance(self.rule.limit, self.spent, self.used - self.spent, self.closed)


class _Record:
    """An entry in the making."""

    __slots__ = ("account", "begun", "charged", "id", "output", "part", "request", "reserved_at", "state")

    def __init__(self, number: int, request: Request, account: _Account, begun: bool, at: int) -> None:
        self.id = number
        self.request = request
        self.account = account
        self.begun = begun
        self.state: State = "reserved"
        self.part: Part | None = None
        self.charged: Cost | None = None
        self.output: Any = None
        self.reserved_at = at

    @property
    def entry(self) -> Entry:
        at = self.reserved_at / 1e6
        return Entry(self.id, self.request, self.state, self.begun, self.part, self.charged, at)


class MemoryStore:
    """The :class:`~expost.ledger.store.Store` that in-memory ledgers use. One lock guards it all.

    Proof: thm-ledger
    """

    address = None

    def __init__(self, name: str, limit: Cost, neighbours: Neighbours | None, unit: str | None = None) -> None:
        self.unit = unit
        self._lock = Lock()
        self._root = _Account((name,), limit, ())
        self._records: list[_Record] = []
        self._keys: dict[str, _Record] = {}
        self._neighbours = neighbours
        self._process = here()
        self._at = 0
        """The clock of the books: full hours, in microseconds since 1970."""
        self._log: _Log = []
        """What happened, in order: when, what, to which entry, and how to write it down."""
        self._tick()
        self._note("create", None, _told(create_body, name, limit, neighbours, unit))

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation that every claim in these books is about, once one has said."""
        return self._neighbours

    def create_account(self, path: Path, limit: Cost) -> None:
        """A new account under an existing one."""
        self._refuse_forked()
        with self._lock:
            self._tick()
            parent = self._account(path[:-1])
            if path[-1] in parent.below:
                raise AlreadyExists("account", "/".join(path))
            parent.below[path[-1]] = _Account(path, limit, parent.levels)
            self._note("account", None, _told(limit_body, path, limit))

    def accounts(self, path: Path) -> tuple[str, ...]:
        """The names directly below an account."""
        with self._reading():
            return tuple(self._account(path).below)

    def balances(self, path: Path) -> tuple[Balance, ...]:
        """The balance of the account and of every one above it, at one instant."""
        with self._reading():
            return tuple(level.balance for level in self._account(path).levels)

    def earlier(self, request: Request) -> Entry | None:
        """What the request's key stands for."""
        if request.key is None:
            return None
        with self._reading():
            record = self._keys.get(request.key)
            entry = None if record is None else record.entry
        return None if entry is None else same_request(entry, request)

    def reserve(self, request: Request, *, begin: bool, lease: float | None = None) -> Entry:
        """Set the worst case aside at every level, or at none. It is bound to this process's life, lease or not."""
        worst = request.guarantee.worst_case
        relation = request.guarantee.neighbours
        self._refuse_forked()
        earlier = self.earlier(request)
        if earlier is not None:
            raise AlreadyReserved(earlier)
        with self._lock:
            if request.key in self._keys:  # somebody was quicker
                raise AlreadyReserved(same_request(self._keys[request.key].entry, request))
            account = self._account(request.account)
            if relation is not None and self._neighbours not in (None, relation):
                raise NeighbourMismatch(relation, str(self._neighbours), f"ledger {self._root.path[0]!r}")
            for level in account.levels:
                if level.closed or level.rule.decide(level.used, worst) is HALT:
                    raise refusal({level.path: level.balance for level in account.levels}, worst)
            for level in account.levels:
                level.used = level.used + worst
            self._neighbours = self._neighbours or relation
            self._tick()
            record = _Record(len(self._records) + 1, request, account, begin, self._at)
            self._records.append(record)
            if request.key is not None:
                self._keys[request.key] = record
            self._note("reserve", record.id, partial(_reserved, request, begin))
            return record.entry

    def begin(self, entry: int) -> None:
        """From here on the entry can no longer be voided."""
        self._refuse_forked()
        with self._lock:
            record = self._reserved(entry, "begin")
            if not record.begun:
                record.begun = True
                self._note("begin", entry, _nothing)

    def settle(self, entry: int, part: Part, output: Any) -> Entry:
        """Charge what came out and give the rest back."""
        self._refuse_forked()
        request = self._record(entry).request
        charged = request.guarantee.cost_of(part)
        kept = None if request.key is None else copy.deepcopy(output)
        with self._lock:
            record = self._reserved(entry, "settle")
            record.output = kept
            return self._end(record, "settled", charged, part)

    def forfeit(self, entry: int) -> Entry:
        """Charge the worst case."""
        self._refuse_forked()
        with self._lock:
            record = self._reserved(entry, "forfeit")
            return self._end(record, "forfeited", record.request.guarantee.worst_case)

    def void(self, entry: int) -> Entry:
        """Charge nothing; only while sampling has not begun."""
        self._refuse_forked()
        with self._lock:
            record = self._reserved(entry, "void")
            if record.begun:
                raise ReservationClosed(record.entry, "void")
            return self._end(record, "voided", Cost(0))

    def output(self, entry: int) -> Any:
        """The output that was kept for an entry with a key; a copy, so that nobody changes it."""
        with self._reading():
            kept = self._record(entry).output
        return copy.deepcopy(kept)

    def find(self, id_or_key: int | str) -> Entry:
        """The entry of that number or key."""
        with self._reading():
            return self._record(id_or_key).entry

    def entries(self, path: Path) -> Iterator[Entry]:
        """The entries of an account and of all below it."""
        with self._reading():
            account = self._account(path)
            records = list(self._records)
        for record in records:
            if account in record.account.levels:
                with self._reading():
                    entry = record.entry
                yield entry

    # ---- the owner's business

    def raise_limit(self, path: Path, epsilon: Cost | None, delta: Cost | None, note: Note) -> None:
        """Allow more from now on."""
        self._refuse_forked()
        with self._lock:
            self._tick()
            account = self._account(path)
            limit = raised(account.rule.limit, epsilon, delta)
            account.rule = OdpFilter(limit)
            self._note("raise", None, _told(limit_body, path, limit, note))

    def close(self, path: Path, note: Note) -> None:
        """Allow nothing more, here and below."""
        self._refuse_forked()
        with self._lock:
            self._tick()
            account = self._account(path)
            account.closed = True
            self._note("close", None, _told(limit_body, path, None, note))

    def recover(self) -> int:
        """Nothing survives this process, so there is never anything to recover."""
        return 0

    def events(self) -> Iterator[Event]:
        """What happened, in order, each line chained to the one before."""
        with self._reading():
            log = list(self._log)
        return _chain(log)

    def verify(self, known: Head | None) -> Head:
        """Whether the balances are what the events add up to."""
        with self._reading():
            found = {"/".join(account.path): account.balance for account in _below(self._root)}
            entries, log = len(self._records), list(self._log)
        books, head = replay(_chain(log), known=known)
        if found != books.accounts or entries != len(books.entries):
            raise LedgerCorrupt("the accounts' balances are not what the audit trail adds up to")
        return head

    def _refuse_forked(self) -> None:
        """A forked copy can be read, but would spend the budget, or publish for one charge, a second time."""
        if here() != self._process:
            raise LedgerUnavailable(
                f"ledger {self._root.path[0]!r} lives in the memory of process {self._process.number}, and this is a "
                "forked copy: it can be read, but only that process can reserve and settle; use Ledger.create(…) to "
                "share one"
            )

    def _reading(self) -> AbstractContextManager[Any]:
        """The lock. A forked copy needs none, as nothing changes there; and whoever held it is not there to let go."""
        return self._lock if here() == self._process else nullcontext()

    # ---- under the lock

    def _end(self, record: _Record, state: State, charged: Cost, part: Part | None = None) -> Entry:
        """First the entry ends, then money is charged, then the rest goes back: an interrupt in between
        leaves too much charged, never too little, and nothing can be refunded twice."""
        back = record.request.guarantee.worst_case - charged
        record.charged, record.part = charged, part
        record.begun = state != "voided"
        record.state = state
        for level in record.account.levels:
            level.spent = level.spent + charged
            if back:
                level.used = level.used - back
        self._note(_ENDINGS[state], record.id, _told(end_body, charged, part))
        return record.entry

    def _tick(self) -> None:
        self._at = max(self._at, full_hour(time.time_ns() // 1000))

    def _note(self, kind: str, entry: int | None, body: _Body) -> None:
        self._log.append((self._at, kind, entry, body))

    def _account(self, path: Path) -> _Account:
        account = self._root
        for name in path[1:]:
            found = account.below.get(name)
            if found is None:
                known = ", ".join(map(repr, account.below)) or "none"
                raise UnknownEntry(f"{'/'.join(account.path)!r} has no account {name!r} (it has {known}): create it")
            account = found
        return account

    def _record(self, id_or_key: int | str) -> _Record:
        if isinstance(id_or_key, str):
            if id_or_key in self._keys:
                return self._keys[id_or_key]
            raise UnknownEntry(f"no entry under key {id_or_key!r} in ledger {self._root.path[0]!r}")
        if not 1 <= id_or_key <= len(self._records):
            raise UnknownEntry(f"no entry {id_or_key!r} in ledger {self._root.path[0]!r}")
        return self._records[id_or_key - 1]

    def _reserved(self, entry: int, attempted: str) -> _Record:
        record = self._record(entry)
        if record.state != "reserved":
            raise ReservationClosed(record.entry, attempted)
        return record


def _chain(log: _Log) -> Iterator[Event]:
    trail, claims = Trail(), set[Guarantee]()
    for at, kind, entry, body in log:
        yield trail.append(at, kind, entry, body(claims))


def _below(account: _Account) -> Iterator[_Account]:
    yield account
    for child in account.below.values():
        yield from _below(child)
