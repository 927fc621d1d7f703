"""The store of ledgers in memory: thread-safe, lost when the process ends."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from secrets import token_hex
from threading import RLock
from typing import TYPE_CHECKING, Any

from expost.cost import Cost
from expost.errors import ExpostError, LedgerUnavailable, UnitMismatch, UnknownEntry
from expost.forks import here
from expost.guarantee import Guarantee, Neighbours, Part
from expost.ledger import clock, operations, rules
from expost.ledger.engine import Returned, Settings, alone
from expost.ledger.entry import Accounts, Balance, Entry, Note, Path, Request, State, View, lineage
from expost.ledger.remedies import unknown_account
from expost.ledger.shelf import Shelf
from expost.ledger.trail import GENESIS, Head, TrailLine, link, trail_line
from expost.ledger.verify.lines import Replay, differ
from expost.ledger.whose import in_books

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff


_new = tuple.__new__  # half the time of a named tuple's own, and this runs for every charge


class MemoryStore:
    """The :class:`~expost.ledger.store.Store` of ledgers in memory. One lock guards it all.

    A change takes effect when it is appended to ``_changes``; the next call completes what an interrupt left undone.

    Parameters
    ----------
    name
        The ledger's name.
    limit
        Its limit.
    neighbours
        The neighbour relation of its guarantees; None leaves it to the first guarantee that has one.
    unit
        Whose privacy is protected; None leaves it to the first guarantee that has a unit.
    clock
        The machine's clock, in microseconds since 1970.
    user
        The user in the audit trail.
    meters
        Other meters than the basic sum, if there are any.

    Proof: thm-ledger
    """

    address = None
    manner: tuple[Settings | None, bool] = (None, False)

    def __init__(
        self,
        name: str,
        limit: Cost,
        neighbours: Neighbours | None,
        unit: str | None = None,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
        user: str | None = None,
        meters: LedgerMeters | None = None,
    ) -> None:
        self.identity = token_hex(8)
        self.unit = unit
        self.meters = meters
        self.root: Path = (name,)
        self.neighbours = neighbours
        self._clock, self._user = clock, user
        self._lock: Any = RLock()
        self._process = here()
        self._accounts: dict[Path, Balance] = {}
        self._entries: list[Entry] = []
        self._outputs: dict[int, Any] = {}
        self._keys: dict[str, int] = {}
        self.shelf: Shelf | None = Shelf()
        self._guarantees: set[Guarantee | Tariff] = set()
        self._changes: list[tuple[int, rules.Change]] = []
        """All changes and their times, in order."""
        self._done = 0
        """How many of the changes are complete in all fields above."""
        self.at = 0
        self._apply(operations.Create(name, limit, neighbours, unit, meters))

    def one_deadline(self) -> AbstractContextManager[None]:
        """Nothing waits here."""
        return nullcontext()

    # ---- operations

    def create_account(self, path: Path, limit: Cost, note: Note | None = None) -> None:
        """Create an account below an existing one."""
        self._apply(operations.CreateAccount(path, limit, note=note))

    def raise_limit(self, path: Path, epsilon: Cost | None, delta: Cost | None, note: Note) -> None:
        """Raise the limit of an account."""
        self._apply(operations.RaiseLimit(path, epsilon, delta, note))

    def close(self, path: Path, note: Note) -> None:
        """Accept no more reservations, in an account and below it."""
        self._apply(operations.Close(path, note))

    def remark(self, path: Path, note: Note) -> None:
        """Record that something was done about an account, elsewhere than in the books."""
        self._apply(operations.Remark(path, note))

    def set_clock(self, note: Note) -> None:
        """Accept the machine's clock, though it is far from the time of the last line."""
        self._apply(operations.SetClock(note))

    def check(self) -> None:
        """Does nothing: nobody can change these books by hand."""

    def reserve(self, request: Request, *, begin: bool, lease: float | None = None) -> Entry:
        """Reserve the worst case at every level, or at none. It ends with this process, lease or not."""
        if request.key is not None:
            self.earlier(request)  # raises a conflict before the lock is taken, because fingerprints are slow
        try:
            entry: Entry = self._apply(operations.Reserve(request, begin))
        except UnitMismatch:  # another thread has fixed the unit meanwhile, perhaps by another word for the same
            entry = self._apply(operations.Reserve(in_books(self, request), begin))
        return entry

    def reserve_all(self, requests: Sequence[Request], *, begin: bool) -> list[Entry | ExpostError]:
        """Reserve many worst cases, in order: the entry of each, or why there is none."""
        made: list[Entry | ExpostError] = []
        for request in requests:
            try:
                made.append(self.reserve(request, begin=begin))
            except ExpostError as refused:
                made.append(refused)
        return made

    def end_all(self, endings: Sequence[operations.Ending]) -> list[Entry]:
        """Settle, forfeit or void many entries, in order. Raises what refuses the first that is refused, at the end."""
        ended: list[Entry] = []
        refused: ExpostError | None = None
        for each in endings:
            try:
                ended.append(self._ended(each))
            except ExpostError as error:
                refused = refused or error
        if refused is not None:
            raise refused
        return ended

    def _ended(self, ending: operations.Ending) -> Entry:
        if isinstance(ending, operations.Settle):
            return self.settle(ending.entry, ending.part, ending.output)
        return self.forfeit(ending.entry) if isinstance(ending, operations.Forfeit) else self.void(ending.entry)

    def begin(self, entry: int) -> None:
        """Record that sampling starts: from then on the entry cannot be voided."""
        self._apply(operations.Begin(entry))

    def settle(self, entry: int, part: Part, output: Any) -> Entry:
        """Charge the part, and refund the rest."""
        kept = None if output is None or self.entry(entry).key is None else copy.deepcopy(output)
        settled: Entry = self._apply(operations.Settle(entry, part, None, kept))
        return settled

    def forfeit(self, entry: int) -> Entry:
        """Charge the worst case."""
        forfeited: Entry = self._apply(operations.Forfeit(entry))
        return forfeited

    def void(self, entry: int) -> Entry:
        """Charge nothing; allowed only before sampling has begun."""
        voided: Entry = self._apply(operations.Void(entry))
        return voided

    def recover(self) -> int:
        """Does nothing: no entry outlives this process."""
        return 0

    def _apply(self, operation: operations.Operation) -> Any:
        """The new state of the entry that the operation is about, if it is about one."""
        if here() is not self._process:
            raise self._forked()
        lock = self._lock
        if lock._is_owned():
            raise LedgerUnavailable(
                "this thread was interrupted while it wrote to the ledger, and a signal handler or finalizer cannot "
                "write meanwhile: write afterwards"
            )
        try:
            with lock:
                if self._done < len(self._changes):
                    self._complete()
                before = self.at
                if type(operation) in clock.TIMED:
                    self.at = clock.tick(before, self._clock(), operation)
                try:
                    change = rules.change_of(self, operation)
                except BaseException:
                    self.at = before
                    raise
                if change is not None:
                    self._changes.append((self.at, change))
                    self._complete()
                return None if change is None else change.entry
        finally:
            if lock._is_owned():  # interrupted just before the block was entered or left
                lock.release()

    def _complete(self) -> None:
        """Complete the changes that were appended. Idempotent: safe to repeat after an interrupt, or during one."""
        while (position := self._done) < len(self._changes):
            self.at, change = self._changes[position]
            _, accounts, levels, entry, _ = change
            for path, (limit, capacity, charged, reserved, closed, _) in zip(accounts, levels, strict=True):
                self._accounts[path] = _new(Balance, (limit, capacity, charged, reserved, closed, position + 1))
            if entry is not None:
                self._keep(change, entry)
            self._done = position + 1  # a signal handler may have read, and so completed it, meanwhile

    def _keep(self, change: rules.Change, entry: Entry) -> None:
        operation, number = change.operation, entry.id
        self._entries[number - 1 : number] = [entry]  # one step, because a signal handler may do the same before it
        if type(operation) is operations.Settle and operation.output is not None:
            self._outputs[number] = operation.output
        elif type(operation) is operations.Reserve:
            request = entry.request
            if change.first:
                self.neighbours = self.neighbours or request.guarantee.neighbours
                self.unit = self.unit or request.guarantee.unit
                self._guarantees.add(request.priced_guarantee)
            if request.key is not None:
                self._keys[request.key] = number

    def _forked(self) -> LedgerUnavailable:
        """An error: a forked copy would spend the budget, or publish for one charge, a second time."""
        return LedgerUnavailable(
            f"ledger {self.root[0]!r} is in the memory of process {self._process.number}, and this is a forked copy, "
            "which can only be read: reserve and settle in that process, or share a ledger with Ledger.create(…)"
        )

    # ---- what the rules depend on

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def exists(self, path: Path) -> bool:
        """Whether there is such an account."""
        return path in self._accounts

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """The balances of these accounts."""
        try:
            return tuple(map(self._accounts.__getitem__, accounts))
        except KeyError as missing:
            (path,) = missing.args
            known = ", ".join(map(repr, self._names(path[:-1]))) or "none"
        raise unknown_account(path, known)

    def entry(self, number: int) -> Entry:
        """An entry as it is now."""
        if not 1 <= number <= len(self._entries):
            raise UnknownEntry(f"no entry {number!r} in ledger {self.root[0]!r}")
        return self._entries[number - 1]

    def keyed(self, key: str) -> Entry | None:
        """The entry with a key, if there is one."""
        found = self._keys.get(key)
        return None if found is None else self._entries[found - 1]

    def knows(self, guarantee: Guarantee | Tariff) -> bool:
        """Whether an entry of this guarantee, with these prices, was reserved before."""
        return guarantee in self._guarantees

    # ---- reading

    def accounts(self, path: Path) -> tuple[str, ...]:
        """The names directly below an account."""
        return self._read(lambda: (self.levels(lineage(path)), self._names(path))[1])

    def _names(self, path: Path) -> tuple[str, ...]:
        return tuple(found[-1] for found in self._accounts if found[:-1] == path)

    def balances(self, path: Path) -> tuple[Balance, ...]:
        """The balances of the account and of all above it, in one snapshot."""
        return self._read(lambda: self.levels(lineage(path)))

    def earlier(self, request: Request) -> Entry | None:
        """The entry of the request's key, if there is one."""
        key = request.key
        found = None if key is None else self._read(lambda: self.keyed(key))
        return None if found is None else rules.same_request(found, request)

    def output(self, entry: int) -> Any:
        """A copy of the stored output of an entry with a key."""
        return copy.deepcopy(self._read(lambda: (self.entry(entry), self._outputs.get(entry))[1]))

    def find(self, id_or_key: int | str) -> Entry:
        """The entry of that number or key."""
        if isinstance(id_or_key, int):
            return self._read(lambda: self.entry(id_or_key))
        found = self._read(lambda: self.keyed(id_or_key))
        if found is None:
            raise UnknownEntry(f"no entry under key {id_or_key!r} in ledger {self.root[0]!r}")
        return found

    def view(self, path: Path, *, last: int | None = None, state: State | None = None) -> View:
        """A consistent snapshot of balances and entries."""
        levels, found = self._read(lambda: (self.levels(lineage(path)), list(self._entries)))
        below = (entry for entry in found if entry.request.account[: len(path)] == path)
        chosen = [entry for entry in below if state in (None, entry.state)]
        return View(levels, chosen if last is None else chosen[max(len(chosen) - last, 0) :])

    def trail(self, after: int = 0) -> Iterator[TrailLine]:
        """The events of the audit trail after a line."""
        changes = self._read(lambda: list(self._changes))
        head = GENESIS
        for sequence, (at, change) in enumerate(changes, 1):
            line = trail_line(change, sequence, at, self._user)
            head = link(head, line)
            if sequence > after:
                yield TrailLine.read(line, head)

    def verify(self, known: Head | None, *, since: bool = False) -> Head:
        """Replay the audit trail, and compare it with the balances and the number of entries."""
        found = self._read(lambda: (dict(self._accounts), list(self._entries)))
        replay = Replay()
        head = replay.all(self.trail(), known=known, upto=max(balance.line for balance in found[0].values()))
        if found[0] != replay.accounts or len(found[1]) != replay.count:
            raise differ()
        return head

    def _read(self, work: Callable[[], Returned]) -> Returned:
        """Read under the lock; in a forked copy without it: nothing changes there, and its holder may not exist."""
        if here() != self._process:
            return work()

        def complete() -> Returned:
            if self._done < len(self._changes):
                self._complete()
            return work()

        return alone(self._lock, complete)
