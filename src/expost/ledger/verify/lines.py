"""Verification: an audit trail is replayed by the rules, and compared with the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from expost.errors import ExpostError, LedgerCorrupt, UnknownEntry
from expost.guarantee import Guarantee, Neighbours
from expost.ledger.entry import Accounts, Balance, Entry, Path
from expost.ledger.operations import Close, Create, DropOutputs, Operation, Reopen, Reserve
from expost.ledger.rows import NONSENSE
from expost.ledger.rules import Change, change_of
from expost.ledger.trail import GENESIS, Guarantees, Head, TrailLine, impossible, linked, operation_of, trail_line

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff


class Replay:
    """The books that result from an audit trail. Raises for every line that the rules would not have written.

    Only open entries are kept; those that end are passed to :meth:`ended`.
    """

    def __init__(self) -> None:
        self.about: Create | None = None
        self.accounts: dict[Path, Balance] = {}
        self.open: dict[int, tuple[Entry, int]] = {}
        """Open entries, each with the line that reserved it."""
        self.count = 0
        self.at = 0
        self.guarantees: Guarantees = {}
        self._known: set[Guarantee | Tariff] = set()
        self.keys: set[str] = set()
        self._fixed: tuple[Neighbours | None, str | None] = (None, None)
        """The relation and the unit that guarantees fixed, where the ledger was created without."""
        self._closing: Head | None = None
        """The line that closed the ledger last; the start of the trail if it goes on nowhere else."""

    def all(self, events: Iterable[TrailLine], *, known: Head | None = None, upto: int | None = None) -> Head:
        """Apply all events, or those up to a line, and return the head of the last."""
        head = Head(0, GENESIS)
        for event in linked(_upto(events, upto), known=known):
            self.apply(event)
            head = Head(event.sequence, event.hash)
        return head

    def apply(self, event: TrailLine) -> Change:
        """Apply one event."""
        try:
            change = self._decided(event)
        except LedgerCorrupt:
            raise
        except ExpostError as refused:
            raise impossible(event, refused) from None
        except NONSENSE:
            raise impossible(event, "it has impossible values") from None
        self._take(change, event)
        return change

    def _decided(self, event: TrailLine) -> Change:
        if (event.kind == "create") != (event.sequence == 1):
            raise impossible(event, "a ledger is created once, by its first line")
        operation = operation_of(event, self.guarantees)
        if isinstance(operation, Reserve):
            self._refuse_key(event, operation)
        if isinstance(operation, Reopen) and operation.closed != self.departure():
            raise impossible(event, "the line that it quotes is not the one that closed the ledger to move it")
        self.at = event.at
        change = change_of(self, operation)
        if change is None:
            raise impossible(event, "it changes nothing")
        line = trail_line(change, event.sequence, event.at, event.user)
        if line != event.line:
            raise impossible(event, f"the rules would have written {_difference(line, event.line)}")
        return change

    def departure(self) -> Head | None:
        """The line that closed the ledger, if it goes on in another database and nothing decided otherwise later."""
        return self._closing if self._closing is not None and self._closing.sequence else None

    def _refuse_key(self, event: TrailLine, operation: Reserve) -> None:
        key = operation.request.key
        if key is not None and key in self.keys:
            raise impossible(event, f"key {key!r} was used by an earlier entry")

    def _take(self, change: Change, event: TrailLine) -> None:
        operation, entry = change.operation, change.entry
        for path, balance in zip(change.accounts, change.levels, strict=True):
            self.accounts[path] = balance._replace(line=event.sequence)
        if isinstance(operation, Create):
            self.about = operation
        if isinstance(operation, Close | Reopen) and change.path == self.root:
            moves = isinstance(operation, Close) and operation.to is not None
            self._closing = Head(event.sequence, event.hash) if moves else Head(0, GENESIS)
        if entry is not None and isinstance(operation, Reserve):
            self._reserved(entry, event.sequence)
        elif entry is not None and entry.state == "reserved":
            self.open[entry.id] = (entry, self.open[entry.id][1])
        elif entry is not None:
            self.ended(entry, operation, self.open.pop(entry.id)[1], event.sequence)
        elif isinstance(operation, DropOutputs):
            self.dropped(operation.upto)

    def _reserved(self, entry: Entry, line: int) -> None:
        self.count += 1
        self.open[entry.id] = (entry, line)
        self._known.add(entry.request.priced_guarantee)
        self._fixed = self.neighbours or entry.guarantee.neighbours, self.unit or entry.guarantee.unit
        if entry.key is not None:
            self.keys.add(entry.key)

    def ended(self, entry: Entry, operation: Operation, reserved: int, line: int) -> None:
        """Called for each entry that ended, with the line that ended it."""

    def dropped(self, upto: int) -> None:
        """Called when the outputs of ended entries up to a number were dropped."""

    # ---- what the rules depend on

    @property
    def root(self) -> Path:
        """The ledger's own account."""
        return (self.about.name,) if self.about is not None else ()

    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbour relation of every guarantee."""
        return self._fixed[0] if self.about is None else self.about.neighbours or self._fixed[0]

    @property
    def unit(self) -> str | None:
        """The unit of every guarantee that has one."""
        return self._fixed[1] if self.about is None else self.about.unit or self._fixed[1]

    @property
    def meters(self) -> LedgerMeters | None:
        """Other meters than the basic sum."""
        return None if self.about is None else self.about.meters

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """The balances of these accounts."""
        return tuple([self.accounts[path] for path in accounts])

    def exists(self, path: Path) -> bool:
        """Whether there is such an account."""
        return path in self.accounts

    def entry(self, number: int) -> Entry:
        """An open entry."""
        if number not in self.open:
            raise UnknownEntry(f"entry {number} was not open")
        return self.open[number][0]

    def keyed(self, key: str) -> Entry | None:
        """None: :meth:`apply` compares keys."""
        return None

    def knows(self, guarantee: Guarantee | Tariff) -> bool:
        """Whether an entry of this guarantee, with these prices, was reserved before."""
        return guarantee in self._known


def _upto(events: Iterable[TrailLine], upto: int | None) -> Iterator[TrailLine]:
    for event in events:
        if upto is not None and event.sequence > upto:
            return
        yield event


def _difference(line: str, found: str) -> str:
    at = next((k for k, (a, b) in enumerate(zip(line, found, strict=False)) if a != b), min(len(line), len(found)))
    return f"{line[max(0, at - 20) : at + 20]!r}, and the line has {found[max(0, at - 20) : at + 20]!r}"


def differ(what: str = "the accounts' balances are not those that follow from the audit trail") -> LedgerCorrupt:
    """An error: the tables and the audit trail differ."""
    return LedgerCorrupt(what)


def replay(events: Iterable[TrailLine], *, known: Head | None = None) -> tuple[Replay, Head]:
    """The books that result from events, and their head. Raises ``LedgerCorrupt`` if a line is wrong."""
    books = Replay()
    return books, books.all(events, known=known)
