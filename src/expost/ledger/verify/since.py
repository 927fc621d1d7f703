"""Verification of the lines after a known head.

Every line has the new balances of the accounts that it changes. So the books at the head can be read from the lines up
to it, backwards, as far as they are needed; the hash of the head authenticates every line that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from expost.accounting.amounts import NO_AMOUNTS
from expost.errors import LedgerCorrupt
from expost.guarantee import Guarantee
from expost.ledger.engine import Engine
from expost.ledger.entry import Accounts, Balance, Entry, Path, lineage
from expost.ledger.operations import Create, Reserve
from expost.ledger.rows import ENTRY, entry_of_row, guarantee_of
from expost.ledger.rules import Change
from expost.ledger.trail import GENESIS, Guarantees, Head, TrailLine, balance_of, link, linked, number_of, operation_of
from expost.ledger.verify.lines import differ
from expost.ledger.verify.tables import Instant, Verification

if TYPE_CHECKING:
    from expost.accounting.tariff import Tariff


class _Guarantees(dict[str, "Guarantee | Tariff"]):
    """Guarantees from before the head, by their hashes, read from the tables when needed."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        super().__init__()
        self._engine, self._ledger = engine, ledger

    def __missing__(self, digest: str) -> Guarantee | Tariff:
        rows = self._engine.rows(
            "SELECT json FROM expost_guarantee WHERE ledger = ? AND digest = ?", self._ledger, digest
        )
        if not rows:
            raise LedgerCorrupt(f"the guarantee {digest!r} was removed from the tables")
        found = self[digest] = guarantee_of(digest, rows[0][0])
        return found


class Past:
    """The books at a head, read backwards from it as far as is needed."""

    def __init__(self, lines: Iterator[TrailLine], root: Path, guarantees: Guarantees) -> None:
        self._lines, self._root, self._guarantees = lines, root, guarantees
        self._later: dict[int, list[TrailLine]] = {}
        """Lines about entries whose reservation has not been reached yet."""
        self._accounts: dict[Path, Balance] = {}
        self._open: dict[int, tuple[Entry, int]] = {}
        """Entries that were open at the head, each with the line that reserved it, until they are taken."""
        self._reserved = NO_AMOUNTS
        self._earliest = 0
        """The number of the earliest entry that was reached."""
        self._closing: Head | None = None
        """The last line that closed the ledger, if it was to move; the start of the trail if it was not."""
        self.count = 0
        """The number of entries at the head, once a reservation was reached."""
        first = next(lines)
        self.at, self.reached = first.at, first.sequence
        """The ledger's clock at the head; the earliest line that was read."""
        self._meet(first)

    def balance(self, path: Path) -> Balance | None:
        """The balance of an account, from the last line about it; None if there was no such account."""
        while not self._certain(path) and self._step():
            pass
        return self._accounts.get(path)

    def met(self, path: Path) -> bool:
        """Whether a line that was read changes the account."""
        return path in self._accounts

    def departure(self) -> Head | None:
        """The last line that closed the ledger, if it was to move and the ledger was not opened again."""
        while self._closing is None and self._step():
            pass
        return self._closing if self._closing is not None and self._closing.sequence else None

    def take(self, number: int) -> tuple[Entry, int] | None:
        """Take out an entry that was open, and the line that reserved it; None if it was not open, or was taken."""
        while number < self._earliest and self._step():
            pass
        return self._open.pop(number, None)

    def take_reserved(self) -> dict[int, tuple[Entry, int]]:
        """Take out all open entries that reserve anything, and others that were read."""
        while (not self._is_complete() or not self.count) and self._step():
            pass
        if not self._is_complete():
            raise differ("what was reserved at the known head is not the sum of the entries that were open")
        return self.take_met()

    def _is_complete(self) -> bool:
        """Whether the open entries that were read add up to all that is reserved."""
        return self._reserved == self._accounts[self._root].reserved

    def take_met(self) -> dict[int, tuple[Entry, int]]:
        """Take out the open entries that were read and not taken."""
        taken, self._open = self._open, {}
        return taken

    def _certain(self, path: Path) -> bool:
        """Whether the last line about an account is known: no later line is about an entry of unknown account."""
        found, depth = self._accounts.get(path), len(path)
        if found is None or depth == 1:
            return found is not None
        later = (event for events in self._later.values() for event in events)
        return not any(event.sequence > found.line and len(event.levels) >= depth for event in later)

    def _step(self) -> bool:
        event = next(self._lines, None)
        if event is not None:
            self._meet(event)
        return event is not None

    def _meet(self, event: TrailLine) -> None:
        self.reached = event.sequence
        self._note(lineage(self._root), event)  # the first of whatever accounts an entry is charged to
        if event.kind == "reserve":
            self._meet_reservation(event)
        elif event.entry is not None:
            self._later.setdefault(event.entry, []).append(event)
        elif "account" in event.body:
            self._note(lineage(tuple(event.body["account"].split("/"))), event)
        closes = event.kind == "close" and event.body["account"] == self._root[0]
        if self._closing is None and (closes or event.kind == "reopen"):
            self._closing = Head(event.sequence, event.hash) if "to" in event.body else Head(0, GENESIS)

    def _meet_reservation(self, event: TrailLine) -> None:
        operation, number = operation_of(event, self._guarantees), number_of(event)
        assert isinstance(operation, Reserve)
        self._earliest, self.count = number, self.count or number
        later = self._later.pop(number, [])
        for one in (event, *later):
            self._note(operation.request.accounts, one)
        if all(one.kind == "begin" for one in later):
            begun = operation.begun or bool(later)
            entry = Entry(number, operation.request, "reserved", begun, None, None, event.at / 1e6)
            self._open[number] = (entry, event.sequence)
            self._reserved = self._reserved.plus(entry.reserved_amounts)

    def _note(self, accounts: Accounts, event: TrailLine) -> None:
        """Keep the balances of these accounts in a line, the first that it has, unless a later line is known."""
        for path, level in zip(accounts, event.levels, strict=False):
            found = self._accounts.get(path)
            if found is None or found.line < event.sequence:
                self._accounts[path] = balance_of(level, event.sequence)


class VerificationSince(Verification):
    """A verification of the lines after a head.

    Every new line must be what the rules write, given the books at the head. Those are read from the lines up to the
    head, backwards and hash by hash: back to the last line about each account that new lines change, and to the
    reservation of each entry that was open. For a new account all lines are read, to show that it did not exist before.
    Then the rows of those accounts and entries are compared, and the ledger's own row.

    Unlike a full verification, it does not find changes by hand of what new lines do not touch:

    - lines before the earliest one that was read, including the first line (name, neighbours, unit);
    - rows of entries that ended before the head: their charges, labels, keys and outputs;
    - a key that was used before the head and again after it, if the row of the earlier entry was removed or changed;
    - rows of accounts about which no line was read: each is compared with the line about it whose number it has, which
      may not be the last one; a removed row is not noticed. Spending from such an account is found, because then a line
      is about it;
    - open entries whose worst case is zero, if no line that was read is about them and their rows are not open.
    """

    def __init__(self, engine: Engine, ledger: int, known: Head) -> None:
        super().__init__(engine, ledger)
        self._head = known
        self._says_guarantee = False
        self.guarantees = _Guarantees(engine, ledger)

    def run(self, known: Head | None = None) -> Head:
        """Verify all lines after the head."""
        with self._engine.snapshot() as rows:
            instant = self._instant(rows)
        head = self._head
        if head.sequence > instant.head.sequence:
            list(linked(iter(()), known=head, after=instant.head))  # raises: the trail ends before
        self._start()
        events = linked(self.trail(head.sequence, instant.head.sequence), after=head, at=self.at)
        return self._replayed(instant, events, head)

    def _start(self) -> None:
        lines = self._backwards()
        first = operation_of(self._line(1), self.guarantees)
        if not isinstance(first, Create):
            raise LedgerCorrupt("the first line of the audit trail does not create a ledger")
        self.about = first
        self._past = Past(lines, self.root, self.guarantees)
        self.open = self._past.take_reserved()
        self.count, self.at = self._past.count, self._past.at

    def _backwards(self) -> Iterator[TrailLine]:
        """The lines up to the head, the last first. Each is checked to have the hash that the next line builds on."""
        sequence, digest = self._head
        while sequence:
            start = max(1, sequence - self._page + 1)
            events = list(self.trail(start - 1, sequence))
            if len(events) != sequence - start + 1:
                raise LedgerCorrupt(f"a line between {start} and {sequence} of the audit trail was removed")
            while events and (sequence == 1 or len(events) > 1):
                event = events.pop()
                before = events[-1].hash if events else GENESIS
                if event.hash != digest or link(before, event.line) != digest:
                    raise LedgerCorrupt(
                        f"line {sequence} does not have the hash that was noted: the trail was rewritten"
                    )
                yield event
                sequence, digest = sequence - 1, before

    def _line(self, sequence: int) -> TrailLine:
        found = list(self.trail(sequence - 1, sequence))
        if not found:
            raise LedgerCorrupt(f"line {sequence} of the audit trail was removed")
        return found[0]

    def apply(self, event: TrailLine) -> Change:
        """Apply one event."""
        self._says_guarantee = "guarantee" in event.body
        return super().apply(event)

    # ---- what the rules depend on, from before the head

    def departure(self) -> Head | None:
        """The line that closed the ledger, if it goes on in another database and nothing decided otherwise later."""
        return self._past.departure() if self._closing is None else super().departure()

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """The balances of these accounts."""
        for path in accounts:
            self.exists(path)
        return super().levels(accounts)

    def exists(self, path: Path) -> bool:
        """Whether there is such an account."""
        if path not in self.accounts and path[:1] == self.root:
            found = self._past.balance(path)
            if found is not None:
                self.accounts[path] = found
        return super().exists(path)

    def entry(self, number: int) -> Entry:
        """An open entry."""
        if number not in self.open and (found := self._past.take(number)) is not None:
            self.open[number] = found
        return super().entry(number)

    def knows(self, guarantee: Guarantee | Tariff) -> bool:
        """Whether an entry of this guarantee was reserved before; if unknown, as the line itself implies."""
        return super().knows(guarantee) or not self._says_guarantee

    # ---- the tables

    def _complete(self, instant: Instant) -> None:
        """Add accounts and entries without new lines."""
        for number in instant.open:
            if number not in self.open and (found := self._past.take(number)) is not None:
                self.open[number] = found
        for path, balance in instant.accounts.items():
            if path not in self.accounts:
                self._complete_account(path, balance.line)
        self.open.update(self._past.take_met())

    def _complete_account(self, path: Path, line: int) -> None:
        if line >= self._past.reached or self._past.met(path):
            self.exists(path)
            return
        event = self._line(line)
        found = dict(zip(self._accounts_of(event), event.levels, strict=True))
        if path not in found:
            raise differ(f"account {'/'.join(path)!r} was not changed by line {line}, which its row names")
        self.accounts[path] = balance_of(found[path], line)

    def _accounts_of(self, event: TrailLine) -> Accounts:
        """The accounts that a line is about, by the row of its entry if it does not say so itself."""
        if "account" in event.body:
            return lineage(tuple(event.body["account"].split("/")))
        if event.entry is None:
            return lineage(self.root)
        rows = self._engine.rows(f"{ENTRY} AND e.number = ?", self._ledger, event.entry)
        if not rows:
            raise self._not_there(event.entry)
        return entry_of_row(rows[0]).request.accounts
