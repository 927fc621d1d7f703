"""One transaction on one ledger in SQLite: the rules decide, and their changes are written to the tables."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import apsw

from expost.canonical import canonical
from expost.errors import AlreadyExists, ExpostError, LedgerCorrupt, LedgerUnavailable, UnknownEntry
from expost.guarantee import Guarantee, Neighbours, as_part
from expost.ledger import clock, operations, rules
from expost.ledger.abandoned import MONTH
from expost.ledger.codec import described, guarantee_digest, guarantee_text
from expost.ledger.engine import Beat, Outcome, Recover, Settings, Step
from expost.ledger.entry import Accounts, Balance, Entry, Path
from expost.ledger.remedies import VERIFY, unknown_account
from expost.ledger.rows import (
    BALANCE,
    CHARGED,
    ENTRY,
    LIMIT,
    RESERVED,
    accounting_text,
    balance_of_row,
    entry_of_row,
    limit_values,
    marks,
    meters_of_text,
    setting,
)
from expost.ledger.trail import GENESIS, link, trail_line

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff

OPEN_IN_ROW = 32
"""The most open entries in the ledger's own row, which is written with every line. Others are in an index."""
LINES = (
    "SELECT sequence, line, hash FROM expost_event "
    "WHERE id > ?1 << 40 | ?2 AND id <= ?1 << 40 | min(?3, (1 << 40) - 1) ORDER BY id LIMIT ?4"
)
"""Reads lines of a ledger's audit trail: after a sequence number, up to another, and at most how many."""
NEW_LINE = "INSERT INTO expost_event (id, line, hash) VALUES (? << 40 | ?, ?, ?)"
"""Writes a line of the audit trail: its ledger, sequence, text and hash."""
_SPENT = (
    f"UPDATE expost_account SET {setting(CHARGED)}, {setting(RESERVED)}, line = ?, entries = ?, at = ?, head = ?, "
    "open = ? WHERE id = ?"
)
_LIMITED = _SPENT.replace(" WHERE", f", {setting(LIMIT)}, closed = ? WHERE")
_RESERVED = (
    "INSERT INTO expost_entry (ledger, number, account, below, operation, subject, fingerprint, guarantee, label, key, "
    f"owner, lease, lease_until, begun, listed, reserved_at, reserved_line, {RESERVED}) VALUES ({marks(RESERVED, 17)})"
)
_ENDED = (
    f"UPDATE expost_entry SET state = ?, begun = ?, part = ?, output = ?, digest = ?, ended_line = ?, "
    f"{setting(CHARGED)} WHERE ledger = ? AND number = ? AND state = 'reserved'"
)
_BOOK = "name, neighbours, unit, sequence, entries, at, head, accounting, open"
_BELOW = (None, None, None, "[]")  # columns that only the ledger's own account has


class SqliteBooks:
    """The books of one ledger in SQLite, for the rules, and what one transaction does to them.

    Between transactions they are a cache of what the last one wrote, valid as long as nobody else writes to the file;
    after a transaction that failed they are thrown away.

    Proof: thm-durable
    """

    def __init__(self, ledger: int, settings: Settings) -> None:
        self._ledger, self._settings = ledger, settings
        self.root: Path = ()
        self._accounts: dict[Path, tuple[int, Balance]] = {}
        """Row id and balance of each account, by path."""
        self._guarantees: set[str] = set()
        """The hashes of guarantees that are in the tables."""
        self._open: dict[int, Entry] = {}
        self._seen: int | None = None
        """The time of this process's last heartbeat, if it was not given up."""
        self.is_noted = False
        """Whether the last head is the one that this process noted last."""
        self.noted_since: int | None = None
        """Since which line heads are noted; None if they are not."""

    def start(self, cursor: apsw.Cursor, owner: str) -> None:
        """Start a transaction of a process; read what is not cached."""
        self._execute, self.owner = cursor.execute, owner
        self._now = self._settings.clock()
        self.has_moved = False
        """Whether there are new lines."""
        self.lost: LedgerCorrupt | None = None
        """The error if lines are known to be lost: then accounts can only be closed."""
        if not self.root:
            row = self._row(f"SELECT {_BOOK} FROM expost_books WHERE id = ?", self._ledger)
            name, self._neighbours, self._unit, self.sequence, self._count, self.at, self.head, *rest = row
            self.root, (self._accounting, self._listed) = (name,), rest
            since = self._row("SELECT since FROM expost_noted WHERE ledger = ?", self._ledger)
            self.noted_since = None if since is None else since[0]

    def apply(self, steps: list[Step]) -> list[Outcome]:
        """Apply all steps, and return the outcome of each."""
        if self.lost is not None and not any(isinstance(step, operations.Close) for step in steps):
            raise self.lost
        outcomes: list[Outcome] = []
        for step in steps:
            try:
                outcomes.append(self._take(step))
            except (LedgerCorrupt, LedgerUnavailable):
                raise
            except ExpostError as refused:
                outcomes.append(refused)
        if len(self._open) + len(self._accounts) + len(self._guarantees) > self._settings.remembered:
            self._tidy()
        return outcomes

    def _tidy(self) -> None:
        """Clear what has grown too large."""
        for rows in (self._accounts, self._guarantees, self._open):
            if len(rows) > self._settings.remembered // 3:
                rows.clear()

    def note_since_now(self) -> None:
        """Record that heads are noted from the last line on."""
        note_since(self._run, self._ledger, self.sequence)
        self.noted_since = self.sequence

    def hash_of(self, sequence: int) -> str | None:
        """The hash of a line of the audit trail."""
        if sequence == self.sequence:
            return str(self.head)
        row = self._row("SELECT hash FROM expost_event WHERE id = ?", self._ledger << 40 | sequence)
        return None if row is None else str(row[0])

    def _take(self, operation: Step) -> Outcome:
        """The outcome of a step. Raises if it is not allowed."""
        if self.lost is not None and not isinstance(operation, operations.Close):
            return LedgerCorrupt(*self.lost.args)
        if isinstance(operation, Beat):
            self._beat()
            return None
        if isinstance(operation, Recover):
            return self._recover(operation)
        before = self.at
        if type(operation) in clock.TIMED:
            self.at = clock.tick(before, self._now, operation)
        try:
            change = rules.change_of(self, operation)
        except ExpostError:
            self.at = before
            raise
        if change is None:
            return None
        self._write(change)
        return change.entry

    # ---- what the rules depend on

    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbour relation of every guarantee."""
        relation: Neighbours | None = self._neighbours
        return relation

    @property
    def unit(self) -> str | None:
        """The unit of every guarantee that has one."""
        unit: str | None = self._unit
        return unit

    @property
    def meters(self) -> LedgerMeters | None:
        """Other meters than the basic sum."""
        return meters_of_text(self._accounting)

    @property
    def count(self) -> int:
        """The number of entries."""
        count: int = self._count
        return count

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """The balances of these accounts."""
        return tuple([self._account(path)[1] for path in accounts])

    def exists(self, path: Path) -> bool:
        """Whether there is such an account."""
        try:
            self._account(path)
        except UnknownEntry:
            return False
        return True

    def entry(self, number: int) -> Entry:
        """An entry as it is now."""
        known = self._open.get(number)
        if known is not None:
            return known
        row = self._row(f"{ENTRY} AND e.number = ?", self._ledger, number)
        if row is None:
            if 1 <= number <= self._count:
                raise LedgerCorrupt(
                    f"the tables rejected a step that the rules allow: expost: entry {number} was removed; see ", VERIFY
                )
            raise UnknownEntry(f"no entry {number!r} in ledger {self.root[0]!r}")
        return entry_of_row(row)

    def keyed(self, key: str) -> Entry | None:
        """The entry with a key, if there is one."""
        row = self._row(f"{ENTRY} AND e.key = ?", self._ledger, key)
        return None if row is None else entry_of_row(row)

    def knows(self, guarantee: Guarantee | Tariff) -> bool:
        """Whether a line of this ledger contains the guarantee."""
        digest = guarantee_digest(guarantee)
        if digest not in self._guarantees:
            asked = "SELECT 1 FROM expost_guarantee WHERE ledger = ? AND digest = ?"
            if self._row(asked, self._ledger, digest) is None:
                return False
            self._guarantees.add(digest)
        return True

    # ---- writing

    def _write(self, change: rules.Change) -> None:
        operation, entry = change.operation, change.entry
        self.sequence, self.has_moved = self.sequence + 1, True
        line = trail_line(change, self.sequence, self.at, self._settings.user)
        self.head = link(self.head, line)
        if isinstance(operation, operations.Reserve):
            self._write_entry(operation, change)
        elif entry is not None:
            self._update_entry(operation, entry)
        elif isinstance(operation, operations.DropOutputs):
            self._run(
                "UPDATE expost_entry SET output = NULL WHERE ledger = ? AND number <= ? AND output IS NOT NULL",
                self._ledger, operation.upto,
            )  # fmt: skip
        for path, balance in zip(change.accounts, change.levels, strict=True):
            self._write_balance(path, balance)
        self._execute(NEW_LINE, (self._ledger, self.sequence, line, self.head))

    def _list(self, number: int) -> bool:
        """Add a new entry to the open ones in the ledger's row, and return whether there was room."""
        if self._listed == "[]":
            self._listed = f"[{number}]"
        elif self._listed.count(",") < OPEN_IN_ROW - 1:
            self._listed = f"{self._listed[:-1]},{number}]"
        else:
            return False
        return True

    def _unlist(self, number: int) -> None:
        """Remove an entry that ended from those in the ledger's row."""
        if self._listed == f"[{number}]":
            self._listed = "[]"
        else:
            numbers = self._listed[1:-1].split(",")
            self._listed = f"[{','.join([other for other in numbers if other != str(number)])}]"

    def _write_balance(self, path: Path, balance: Balance) -> None:
        limit, capacity, charged, reserved, closed, _ = balance
        known = self._accounts.get(path)
        if known is None:  # a new account: the rules have read all others
            self._run(
                f"INSERT INTO expost_account (ledger, parent, path, line, {LIMIT}) VALUES ({marks(LIMIT, 4)})",
                self._ledger, self._account(path[:-1])[0], "/".join(path), self.sequence, *limit_values(balance),
            )  # fmt: skip
            return
        number, before = known
        whole = (self._count, self.at, self.head, self._listed) if len(path) == 1 else _BELOW
        values = (*charged, *reserved, self.sequence, *whole)
        if limit is before.limit and closed == before.closed:
            self._execute(_SPENT, (*values, number))
        else:
            self._execute(_LIMITED, (*values, *limit_values(balance), int(closed), number))
        self._accounts[path] = number, Balance(limit, capacity, charged, reserved, closed, self.sequence)

    def _write_entry(self, operation: operations.Reserve, change: rules.Change) -> None:
        request, lease, entry = operation.request, operation.lease, change.entry
        assert entry is not None
        guarantee, subject = request.priced_guarantee, described(request.subject)
        digest = guarantee_digest(guarantee)
        if change.first:
            self._run("INSERT INTO expost_guarantee VALUES (?, ?, ?)", self._ledger, digest, guarantee_text(guarantee))
            self._guarantees.add(digest)
        if lease is None:
            self._ensure_alive()
        self._execute(_RESERVED, (
            self._ledger, entry.id, self._account(request.account)[0], int(len(request.account) > 1),
            request.operation, subject.text, subject.fingerprint, digest, request.label, request.key,
            self.owner if lease is None else None, lease, None if lease is None else self._now + lease,
            int(operation.begun), int(self._list(entry.id)), self.at, self.sequence, *request.worst,
        ))  # fmt: skip
        self._count = entry.id
        self._open[entry.id] = entry

    def _update_entry(self, operation: operations.Operation, entry: Entry) -> None:
        self._open.pop(entry.id, None)
        if entry.amounts is None:
            self._run("UPDATE expost_entry SET begun = 1 WHERE ledger = ? AND number = ?", self._ledger, entry.id)
            return
        part, output, digest = None, None, None
        if isinstance(operation, operations.Settle):
            part, output, digest = canonical(as_part(entry.part)), operation.output, operation.digest
        self._unlist(entry.id)
        self._execute(_ENDED, (
            entry.state, int(entry.begun), part, output, digest, self.sequence, *entry.amounts, self._ledger, entry.id,
        ))  # fmt: skip

    # ---- liveness

    def _beat(self) -> None:
        """Record a heartbeat. A process that was given up stays so."""
        self._run(
            "INSERT INTO expost_owner (id, ledger, identity, seen) VALUES (?, ?, ?, ?) ON CONFLICT (id) "
            "DO UPDATE SET beats = beats + 1, seen = excluded.seen WHERE expired = 0",
            self.owner, self._ledger, self._settings.processes.me(), self._now,
        )  # fmt: skip
        self._seen = None

    def _recover(self, step: Recover) -> int:
        """Give processes up, and forfeit what they left open. Leases that a wrong clock made too long are shortened
        once the ledger's clock was set back; a clock that is behind, or too far ahead, ends none."""
        self._run(
            "UPDATE expost_owner SET expired = 1 WHERE ledger = ? AND expired = 0 "
            "AND id IN (SELECT value FROM json_each(?))", self._ledger, json.dumps(step.dead),
        )  # fmt: skip
        self._run(
            "UPDATE expost_entry SET lease_until = ?1 + lease WHERE ledger = ?2 AND number IN (SELECT number "
            "FROM expost_open WHERE ledger = ?2 AND lease_until > ?1 + lease AND lease_until - lease >= ?3)",
            self._now, self._ledger, self.at + clock.HOUR,
        )  # fmt: skip
        abandoned: list[Any] = self._execute(
            "SELECT e.number FROM expost_open e LEFT JOIN expost_owner o ON o.id = e.owner WHERE e.ledger = ? "
            "AND e.state = 'reserved' AND (o.expired = 1 OR e.lease_until < ?) ORDER BY e.number",
            (self._ledger, self._now if self._now - self.at <= clock.TRUST else 0),
        ).fetchall()
        for (number,) in abandoned:
            self._take(operations.Forfeit(number))
        self._forget()
        self._seen = None
        return len(abandoned)

    def _forget(self) -> None:
        """Delete processes that were silent for a month, and have no open entries."""
        self._run(
            "DELETE FROM expost_owner WHERE ledger = ?1 AND seen < ?2 AND id <> ?3 "
            "AND NOT EXISTS (SELECT 1 FROM expost_open e WHERE e.ledger = ?1 AND e.state = 'reserved' "
            "AND e.owner = expost_owner.id)", self._ledger, self._now - MONTH, self.owner,
        )  # fmt: skip

    def _ensure_alive(self) -> None:
        """Record this process, under another name if it was given up."""
        seen = self._seen
        if seen is None:
            row = self._row("SELECT expired, seen FROM expost_owner WHERE id = ?", self.owner)
            if row is not None and row[0]:
                self.owner, row = secrets.token_hex(8), None
            seen = None if row is None else row[1]
        if seen is None or self._now - seen > self._settings.beat * 1e6:
            self._beat()
            seen = self._now
        self._seen = seen

    # ---- internal

    def _account(self, path: Path) -> tuple[int, Balance]:
        known = self._accounts.get(path)
        if known is None:
            row = self._row(
                f"SELECT id, {BALANCE} FROM expost_account WHERE ledger = ? AND path = ?", self._ledger, "/".join(path)
            )
            if row is None:
                raise unknown_account(path)
            known = self._accounts[path] = row[0], balance_of_row(row[1:])
        return known

    def _run(self, sql: str, *values: Any) -> None:
        self._execute(sql, values)

    def _row(self, sql: str, *values: Any) -> Any:
        return self._execute(sql, values).fetchone()


def note_since(run: Callable[..., object], ledger: int, line: int) -> None:
    """Record that the heads of a ledger are noted from a line on."""
    run(
        "INSERT INTO expost_noted VALUES (?, ?) ON CONFLICT (ledger) DO UPDATE SET since = excluded.since", ledger, line
    )


def create_books(cursor: apsw.Cursor, operation: operations.Create, settings: Settings) -> tuple[int, str]:
    """Create a ledger and its own account, and return its number and the hash of its first line."""
    if cursor.execute("SELECT 1 FROM expost_ledger WHERE name = ?", (operation.name,)).fetchone():
        raise AlreadyExists("ledger", operation.name)
    change = rules.change_of(None, operation)  # type: ignore[arg-type]  # there are no books yet
    assert change is not None
    at = clock.full_hour(settings.clock())
    line = trail_line(change, 1, at, settings.user)
    head = link(GENESIS, line)
    name, _, neighbours, unit, meters, _, _ = operation
    cursor.execute(
        "INSERT INTO expost_ledger (name, neighbours, unit, accounting) VALUES (?, ?, ?, ?)",
        (name, neighbours, unit, accounting_text(meters)),
    )
    ledger = cursor.connection.last_insert_rowid()
    cursor.execute(NEW_LINE, (ledger, 1, line, head))
    cursor.execute(
        f"INSERT INTO expost_account (ledger, path, line, entries, at, head, {LIMIT}) "
        f"VALUES (?, ?, 1, 0, ?, ?, {marks(LIMIT)})",
        (ledger, name, at, head, *limit_values(change.levels[0])),
    )
    return ledger, head
