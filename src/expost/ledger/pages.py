"""A consistent snapshot of the entries of a durable ledger, read page by page."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any

from expost.ledger.engine import Engine
from expost.ledger.entry import Entry, Path, State
from expost.ledger.rows import ENTRY, EntryRow


class Pages:
    """The entries of an account and of those below it, all or the last ones. Each iteration reads them again.

    They are as they were at a line of the audit trail, when there were ``upto`` entries, whatever happened since.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: int,
        path: Path,
        line: int,
        upto: int,
        last: int | None,
        state: State | None = None,
    ) -> None:
        self._engine, self._ledger, self._path = engine, ledger, path
        self._line, self._upto, self._last, self._state = line, upto, last, state

    def __iter__(self) -> Iterator[Entry]:
        entries = (_as_of(row, self._line) for row in self._rows(down=self._last is not None))
        if self._state is not None:
            entries = (entry for entry in entries if entry.state == self._state)
        return entries if self._last is None else iter(list(islice(entries, self._last))[::-1])

    def _rows(self, *, down: bool) -> Iterator[Any]:
        if len(self._path) == 1:
            return self._scan(self._all(), (), down=down)
        name = "/".join(self._path)
        rows = self._engine.rows(
            "SELECT id FROM expost_account WHERE ledger = ? AND (path = ? OR substr(path, 1, ?) = ?)",
            self._ledger, name, len(name) + 1, f"{name}/",
        )  # fmt: skip
        which = ENTRY.replace("expost_entry e", self._engine.account_entries) + " AND e.account = ? AND e.below = 1"
        scans = [self._scan(which, (account,), down=down) for (account,) in rows]
        return heapq.merge(*scans, key=lambda row: row[0], reverse=down)

    def _all(self) -> str:
        """The query for all entries, or for those that may be in the wanted state: few are open, and few lost all."""
        if self._state == "reserved":  # what ended since is not among them
            return f"{ENTRY.replace('expost_entry e', self._engine.open_entries)} AND e.state = 'reserved'"
        if self._state in ("forfeited", "voided"):
            lost = ENTRY.replace("expost_entry e", self._engine.lost_entries)
            return f"{lost} AND e.state IN ('forfeited', 'voided')"
        return ENTRY

    def _scan(self, which: str, values: tuple[Any, ...], *, down: bool) -> Iterator[Any]:
        """Entries in order of their numbers, a page at a time."""
        order, size = ("DESC", 50) if down else ("ASC", self._engine.settings.page)
        low, high = 0, self._upto + 1
        sql = f"{which} AND e.number > ? AND e.number < ? ORDER BY e.number {order} LIMIT {size}"
        while rows := self._engine.rows(sql, self._ledger, *values, low, high):
            low, high = (low, rows[-1][0]) if down else (rows[-1][0], high)
            yield from rows


def _as_of(row: Any, sequence: int) -> Entry:
    """An entry as it was at a line of the audit trail: one that ended later was still reserved."""
    found = EntryRow.read(row)
    entry = found.entry()
    if found.ended_line is None or found.ended_line <= sequence:
        return entry
    return entry._replace(state="reserved", part=None, amounts=None)
