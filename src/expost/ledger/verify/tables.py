"""Verification of a durable ledger: its tables, compared with its audit trail.

Lines never change and entries end once, so spending can go on meanwhile: a short snapshot has the balances and open
entries, and everything up to it is read page by page afterwards. Memory use does not grow with the number of entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from expost.canonical import sha256
from expost.errors import LedgerCorrupt
from expost.ledger.engine import Engine, Rows
from expost.ledger.entry import Balance, Entry, Path
from expost.ledger.operations import Create, Operation, Settle
from expost.ledger.rows import BALANCE, ENTRY, EntryRow, accounting_text, balance_of_row
from expost.ledger.trail import GENESIS, Head, TrailLine, linked
from expost.ledger.verify.lines import Replay, differ

_OUTPUTS = 20  # outputs, which may be large


class Instant(NamedTuple):
    """A consistent snapshot of the tables."""

    about: tuple[Any, ...]
    head: Head
    entries: int
    at: int
    accounts: dict[Path, Balance]
    open: dict[int, EntryRow]
    has_later: bool
    """Whether there are lines after the head."""
    last: int
    """The highest number of an entry."""


class _Ended(NamedTuple):
    entry: Entry
    digest: str | None
    reserved: int
    ended: int


class Verification(Replay):
    """One verification of one durable ledger."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        super().__init__()
        self._engine, self._ledger, self._page = engine, ledger, engine.settings.page
        self._ended: list[_Ended] = []
        self._missing = 0
        """The highest number of an entry whose output is missing, and was not dropped by a line so far; 0 if none."""

    def trail(self, after: int = 0, upto: int = 2**63 - 1) -> Iterator[TrailLine]:
        """The lines after a line, up to another."""
        while rows := self._engine.rows(self._engine.lines, self._ledger, after, upto, self._page):
            for sequence, line, digest in rows:
                if type(line) is not str:
                    raise LedgerCorrupt(f"line {sequence!r} of the audit trail cannot be read")
                event = TrailLine.read(line, digest)
                if event.sequence != sequence:
                    raise LedgerCorrupt(f"line {event.sequence} of the audit trail is in the place of line {sequence}")
                yield event
            after = rows[-1][0]

    def run(self, known: Head | None) -> Head:
        """Verify everything, and that the trail contains a known head. Returns the trail's head."""
        with self._engine.snapshot() as rows:
            instant = self._instant(rows)
        return self._replayed(instant, linked(self.trail(upto=instant.head.sequence), known=known), Head(0, GENESIS))

    def _replayed(self, instant: Instant, events: Iterator[TrailLine], head: Head) -> Head:
        for event in events:
            self.apply(event)
            head = Head(event.sequence, event.hash)
            if len(self._ended) >= self._page:
                self._compare_ended()
        self._compare_ended()
        self._compare(instant, head)
        return head

    # ---- the tables

    def _instant(self, rows: Rows) -> Instant:
        found = rows(
            "SELECT name, neighbours, unit, sequence, head, entries, at, accounting FROM expost_books WHERE id = ?",
            self._ledger,
        )
        if len(found) != 1:
            raise LedgerCorrupt("the ledger's own row was removed")
        name, neighbours, unit, sequence, head, entries, at, accounting = found[0]
        accounts = rows(f"SELECT path, {BALANCE} FROM {self._engine.accounts} WHERE ledger = ?", self._ledger)
        reserved = rows(
            f"{ENTRY.replace('expost_entry e', self._engine.open_entries)} AND e.state = 'reserved'", self._ledger
        )
        open_rows = {row.number: row for row in map(EntryRow.read, reserved)}
        if len(open_rows) < len(reserved):
            raise differ("an open entry is listed twice")
        later = rows(self._engine.lines, self._ledger, sequence, 2**63 - 1, 1)
        ((first,),) = rows("SELECT min(number) FROM expost_entry WHERE ledger = ?", self._ledger)
        ((number,),) = rows("SELECT max(number) FROM expost_entry WHERE ledger = ?", self._ledger)
        if first is not None and first < 1:
            raise differ(f"entry {first} is not in the audit trail")
        return Instant(
            (name, neighbours, unit, accounting),
            Head(sequence, head),
            entries,
            at,
            {tuple(path.split("/")): balance_of_row(row) for path, *row in accounts},
            open_rows,
            bool(later),
            number or 0,
        )

    def _compare(self, instant: Instant, head: Head) -> None:
        if instant.head != head or instant.has_later:
            raise differ("the ledger's own row and the audit trail end differently")
        if instant.entries != self.count or instant.last != self.count:
            raise differ("the number of entries is not the one of the audit trail")
        if self.about is not None and _said(self.about) != instant.about:
            raise differ("the ledger's name, neighbours, unit or accounting are not those of the audit trail")
        if instant.at != self.at:
            raise differ("the ledger's clock is not the one of the last line of the audit trail")
        self._complete(instant)
        if instant.accounts != self.accounts:
            raise differ()
        self._compare_open(instant)
        if self._missing and not self._dropped_later(head):
            raise differ(f"the stored output of entry {self._missing} was removed")

    def _dropped_later(self, head: Head) -> bool:
        """Whether outputs were dropped while this was verified."""
        later = self.trail(head.sequence)
        return any(event.kind == "drop" and event.body["upto"] >= self._missing for event in later)

    def _complete(self, instant: Instant) -> None:
        """Compare what the replayed events did not concern; nothing in a full verification."""

    def _compare_open(self, instant: Instant) -> None:
        rows = dict(instant.open)
        for number, (entry, line) in self.open.items():
            row = rows.pop(number, None)
            if row is None:
                raise self._not_there(number)
            self._compare_row(row, _Ended(entry, None, line, 0))
        entries = [entry for entry, _ in self.open.values()]
        for start in range(0, len(entries), self._page):
            self._compare_keys(entries[start : start + self._page])
        if rows:
            raise differ(f"entry {min(rows)} is not as the audit trail records it")

    def _not_there(self, number: int) -> LedgerCorrupt:
        if self._engine.rows("SELECT 1 FROM expost_entry WHERE ledger = ? AND number = ?", self._ledger, number):
            return differ(f"entry {number} is not as the audit trail records it")
        return differ(f"entry {number} is in the audit trail, but was removed from the tables")

    # ---- entries that have ended

    def ended(self, entry: Entry, operation: Operation, reserved: int, line: int) -> None:
        """Remember an entry that ended, to compare it later with others."""
        digest = operation.digest if isinstance(operation, Settle) else None
        self._ended.append(_Ended(entry, digest, reserved, line))

    def dropped(self, upto: int) -> None:
        """Outputs of entries up to a number that have ended by now may be missing; those of others may not."""
        self._compare_ended()
        if self._missing <= upto:
            self._missing = 0

    def _compare_ended(self) -> None:
        ended, self._ended = self._ended, []
        if not ended:
            return
        marks = ", ".join("?" * len(ended))
        numbers = [one.entry.id for one in ended]
        found = self._engine.rows(f"{ENTRY} AND e.number IN ({marks})", self._ledger, *numbers)
        rows = {row.number: row for row in map(EntryRow.read, found)}
        for one in ended:
            if one.entry.id not in rows:
                raise self._not_there(one.entry.id)
            self._compare_row(rows[one.entry.id], one)
        self._compare_keys([one.entry for one in ended])
        due = {
            one.entry.id: one.digest
            for one in ended
            if keeps_output(one.entry.operation, one.entry.key, one.entry.state)
        }
        for start in range(0, len(due), _OUTPUTS):
            self._compare_outputs(dict(list(due.items())[start : start + _OUTPUTS]))

    def _compare_row(self, row: EntryRow, one: _Ended) -> None:
        entry, number = one.entry, one.entry.id
        try:
            same = row.entry() == entry and sha256(row.guarantee_text) == row.guarantee
        except (LedgerCorrupt, AttributeError):
            same = False
        stored = row.reserved, row.reserved_line, row.ended_line, row.digest
        if not same or stored != (entry.reserved_amounts, one.reserved, one.ended or None, one.digest):
            raise differ(f"entry {number} is not as the audit trail records it")
        if row.has_output and not keeps_output(entry.operation, entry.key, entry.state):
            raise differ(f"the stored output of entry {number} is not the one that was published")

    def _compare_keys(self, entries: list[Entry]) -> None:
        """Raise if a key belongs to several entries, of this page or of the tables."""
        keys = [entry.key for entry in entries if entry.key is not None]
        if not keys:
            return
        marks = ", ".join("?" * len(keys))
        ((count,),) = self._engine.rows(
            f"SELECT count(*) FROM expost_entry WHERE ledger = ? AND key IN ({marks})", self._ledger, *keys
        )
        if not len(set(keys)) == len(keys) == count:
            raise differ("a key belongs to more than one entry")

    def _compare_outputs(self, due: dict[int, str | None]) -> None:
        """Raise unless the stored outputs are those that were published."""
        marks = ", ".join("?" * len(due))
        for number, text in self._engine.rows(
            f"SELECT number, output FROM expost_entry WHERE ledger = ? AND number IN ({marks})", self._ledger, *due
        ):
            if text is None:
                self._missing = max(self._missing, number)
            elif sha256(text) != due[number]:
                raise differ(f"the stored output of entry {number} is not the one that was published")

    def _reserved(self, entry: Entry, line: int) -> None:
        super()._reserved(entry, line)
        self.keys.clear()  # _compare_keys looks them up in the tables


def _said(about: Create) -> tuple[Any, ...]:
    """The same facts as in a ledger's row."""
    return about.name, about.neighbours, about.unit, accounting_text(about.meters)


def keeps_output(operation: str, key: str | None, state: str) -> bool:
    """Whether the output of such an entry is stored, to be returned again."""
    return operation != "reserve" and key is not None and state == "settled"
