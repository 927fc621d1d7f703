"""Verification of what came after a known head, without reading what came before it once more.

Every line says what the balances are afterwards, and which line changed each of them before. So new lines are checked
against the last lines of the accounts they touch, and against the lines that reserved what they end.
"""

from __future__ import annotations

from expost.errors import LedgerCorrupt
from expost.guarantee import Guarantee
from expost.ledger.audit import Audit, Instant
from expost.ledger.engine import Engine
from expost.ledger.entry import Entry, Path
from expost.ledger.rows import ENTRY, guarantee_of
from expost.ledger.rules import Change, Create, Reserve
from expost.ledger.trail import Event, Head, balance_of, linked, operation_of
from expost.ledger.verify import differ


class TooEarly(Exception):
    """A line before the head holds no balances: all of the trail has to be verified."""


class _Guarantees(dict[str, Guarantee]):
    """Guarantees that were used before the head, read from the tables; their hashes are their names."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        super().__init__()
        self._engine, self._ledger = engine, ledger

    def __missing__(self, digest: str) -> Guarantee:
        rows = self._engine.rows("SELECT json FROM expost_claim WHERE ledger = ? AND digest = ?", self._ledger, digest)
        if not rows:
            raise LedgerCorrupt(f"the guarantee {digest!r} is not in the tables")
        found = self[digest] = guarantee_of(digest, rows[0][0])
        return found


class AuditSince(Audit):
    """One verification of what came after a head. What came before it is taken to be as it was verified then."""

    def __init__(self, engine: Engine, ledger: int, known: Head) -> None:
        super().__init__(engine, ledger)
        self._head = known
        self._says_guarantee = False
        self.guarantees = _Guarantees(engine, ledger)

    def run(self, known: Head | None = None) -> Head:
        """Verify all lines behind the head."""
        with self._engine.snapshot() as rows:
            instant = self._instant(rows)
        head = self._head
        if head.sequence <= instant.head.sequence:
            self._start(instant)
        events = linked(self.events(head.sequence, instant.head.sequence), after=head)
        if head.sequence > instant.head.sequence:
            list(linked(iter(()), known=head))  # raises: the trail ends before
        return self._replayed(instant, events, head)

    def _start(self, instant: Instant) -> None:
        head = self._head
        if self._line(head.sequence).hash != head.hash:
            raise LedgerCorrupt(f"line {head.sequence} is not the one whose hash was noted: the trail was rewritten")
        first = operation_of(self._line(1), self.guarantees)
        if not isinstance(first, Create):
            raise LedgerCorrupt("the first line of the audit trail creates no ledger")
        self.about = first
        rows = self._engine.rows(
            "SELECT number FROM expost_entry WHERE ledger = ? AND reserved_line <= ? ORDER BY number DESC LIMIT 1",
            self._ledger, head.sequence,
        )  # fmt: skip
        self.count = rows[0][0] if rows else 0

    def _line(self, sequence: int) -> Event:
        found = list(self.events(sequence - 1, sequence))
        if not found:
            raise LedgerCorrupt(f"line {sequence} of the audit trail was removed")
        return found[0]

    def apply(self, event: Event) -> Change:
        """Apply one event; what it builds on is read first, if it is from before the head."""
        if event.entry is not None and event.kind != "reserve" and event.entry not in self.open:
            self._load_entry(event.entry)
        self._says_guarantee = "guarantee" in event.body
        path = self._path_of(event)
        for depth, level in enumerate(event.levels or ()):
            if path[: depth + 1] not in self.accounts and 0 < level[7] <= self._head.sequence:
                self._load_account(path[: depth + 1], level[7])
        return super().apply(event)

    def _path_of(self, event: Event) -> Path:
        if event.entry in self.open:
            return self.open[event.entry][0].request.account
        return tuple(event.body["account"].split("/")) if "account" in event.body else self.root

    def _load_account(self, path: Path, line: int) -> None:
        levels = self._line(line).levels
        if levels is None or len(levels) < len(path):
            raise TooEarly
        self.accounts[path] = balance_of(levels[len(path) - 1], line)

    def _load_entry(self, number: int) -> None:
        """An entry that was open at the head, from the line that reserved it."""
        rows = self._engine.rows(f"{ENTRY} AND e.number = ?", self._ledger, number)
        if not rows or rows[0][17] > self._head.sequence:
            return
        line, begun = self._line(rows[0][17]), rows[0][10]
        operation = operation_of(line, self.guarantees)
        if not isinstance(operation, Reserve) or line.entry != number:
            raise differ(f"entry {number} is not what the audit trail says about it")
        entry = Entry(number, operation.request, "reserved", bool(begun), None, None, line.at / 1e6)
        if rows[0][9] != "voided" and rows[0][18] is not None:
            entry = entry._replace(begun=operation.begun)
        self.open[number] = (entry, line.sequence)

    def _complete(self, instant: Instant) -> None:
        """Accounts that no new line is about are as their last line says; entries open at the head are still open."""
        for path, balance in instant.accounts.items():
            if path not in self.accounts and balance.line <= self._head.sequence:
                self._load_account(path, balance.line)
        for number, row in instant.open.items():
            if number not in self.open and row[17] <= self._head.sequence:
                self._load_entry(number)

    def knows(self, guarantee: Guarantee) -> bool:
        """Whether an entry of this guarantee was reserved before: the line is taken by its word."""
        return super().knows(guarantee) or not self._says_guarantee
