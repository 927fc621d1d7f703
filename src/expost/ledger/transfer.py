"""Copies of ledgers: backup, restore, import from an export, move to another database.

A copy is built from the audit trail by replaying it line by line, so that only what verifies is copied, and the trail
is unchanged. Outputs are copied if the source has them. Open entries are forfeited when the copy is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from expost.canonical import canonical, sha256
from expost.errors import AlreadyExists, InvalidValue, LedgerCorrupt, UnknownEntry
from expost.guarantee import as_part
from expost.ledger import clock
from expost.ledger.address import absolute, open_store, opened
from expost.ledger.codec import described, guarantee_digest, guarantee_text
from expost.ledger.durable import DurableStore
from expost.ledger.engine import Engine, Settings
from expost.ledger.entry import Entry, Note
from expost.ledger.operations import DropOutputs, Operation, Remark, Reopen, Settle
from expost.ledger.rows import BALANCE, CHARGED, LIMIT, RESERVED, accounting_text, limit_values, marks, setting
from expost.ledger.rules import Change, change_of
from expost.ledger.texts import masked
from expost.ledger.trail import GENESIS, Head, TrailLine, link, trail_line
from expost.ledger.verify.lines import Replay
from expost.ledger.verify.tables import Verification, keeps_output

Execute = Callable[..., list[Any]]
"""Executes a statement in a transaction, and returns its rows."""
Outputs = Callable[[int], str | None]
"""Returns the stored output of an entry, as text."""


class _Copying(Replay):
    """Replays a trail into the tables of another database."""

    def __init__(self, run: Execute, new_line: str, outputs: Outputs) -> None:
        super().__init__()
        self._run, self._new_line, self._outputs = run, new_line, outputs
        self._ledger = 0
        self._ids: dict[tuple[str, ...], int] = {}
        self.missing = 0
        """The last entry whose output the source lacks, though no line says that it was dropped."""
        self.head = Head(0, GENESIS)

    @property
    def ledger(self) -> int:
        """Its number in the other database."""
        return self._ledger

    def copy(self, events: Iterable[TrailLine], known: Head | None) -> None:
        """Copy all events, which must run through a known head."""
        self.head = self.all(events, known=known)
        if self.about is None:
            raise InvalidValue("the audit trail is empty: there is nothing to copy")

    def append(self, operation: Operation, now: int, user: str | None) -> None:
        """Apply and write an operation of the copy's own, after all that was copied."""
        if now - self.at <= clock.TRUST:
            self.at = max(self.at, clock.full_hour(now))
        change = change_of(self, operation)
        assert change is not None
        line = trail_line(change, self.head.sequence + 1, self.at, user)
        event = TrailLine.read(line, link(self.head.hash, line))
        self.apply(event)
        self.head = Head(event.sequence, event.hash)

    def finish(self) -> None:
        """Write the balances."""
        head = self.head
        for path, balance in self.accounts.items():
            self._run(
                f"UPDATE expost_account SET {setting(BALANCE)} WHERE id = ?", *limit_values(balance),
                *balance.charged, *balance.reserved, int(balance.closed), balance.line, self._ids[path],
            )  # fmt: skip
        self._run(
            "UPDATE expost_account SET entries = ?, at = ?, head = ? WHERE ledger = ? AND parent IS NULL",
            self.count, self.at, head.hash, self._ledger,
        )  # fmt: skip

    def apply(self, event: TrailLine) -> Change:
        """Apply one event, and write it."""
        change = super().apply(event)
        if event.kind == "create":
            self._create()
        if event.kind in ("create", "account"):
            self._account(event, change)
        self._run(self._new_line, self._ledger, event.sequence, event.line, event.hash)
        if event.kind == "begin":
            self._run("UPDATE expost_entry SET begun = 1 WHERE ledger = ? AND number = ?", self._ledger, event.entry)
        return change

    def _create(self) -> None:
        assert self.about is not None
        name, _, neighbours, unit, meters, _, _ = self.about
        if self._run("SELECT 1 FROM expost_ledger WHERE name = ?", name):
            raise AlreadyExists("ledger", name)
        self._run(
            "INSERT INTO expost_ledger (name, neighbours, unit, accounting) VALUES (?, ?, ?, ?)",
            name, neighbours, unit, accounting_text(meters),
        )  # fmt: skip
        ((self._ledger,),) = self._run("SELECT id FROM expost_ledger WHERE name = ?", name)

    def _account(self, event: TrailLine, change: Change) -> None:
        path, first = change.path, (0, event.at, event.hash) if len(change.path) == 1 else (None, None, None)
        self._run(
            f"INSERT INTO expost_account (ledger, parent, path, line, entries, at, head, {LIMIT}) "
            f"VALUES (?, ?, ?, 1, ?, ?, ?, {marks(LIMIT)})", self._ledger, self._ids.get(path[:-1]), "/".join(path),
            *first, *limit_values(change.levels[-1]),
        )  # fmt: skip
        ((self._ids[path],),) = self._run(
            "SELECT id FROM expost_account WHERE ledger = ? AND path = ?", self._ledger, "/".join(path)
        )

    def _reserved(self, entry: Entry, line: int) -> None:
        request = entry.request
        guarantee, subject = request.priced_guarantee, described(request.subject)
        digest = guarantee_digest(guarantee)
        if not self.knows(guarantee):
            self._run("INSERT INTO expost_guarantee VALUES (?, ?, ?)", self._ledger, digest, guarantee_text(guarantee))
        super()._reserved(entry, line)
        self._run(
            "INSERT INTO expost_entry (ledger, number, account, below, operation, subject, fingerprint, guarantee, "
            f"label, key, lease, lease_until, begun, reserved_at, reserved_line, {RESERVED}) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1, {marks(RESERVED, 3)})",
            self._ledger, entry.id, self._ids[request.account], int(len(request.account) > 1), request.operation,
            subject.text, subject.fingerprint, digest, request.label, request.key, int(entry.begun),
            round(entry.reserved_at * 1e6), line, *request.worst,
        )  # fmt: skip

    def ended(self, entry: Entry, operation: Operation, reserved: int, line: int) -> None:
        """Write an entry that ended, with its output if the source has it."""
        settle = operation if isinstance(operation, Settle) else None
        assert entry.amounts is not None
        output = self._output(entry, settle)
        self._run(
            "UPDATE expost_entry SET state = ?, begun = ?, part = ?, output = ?, digest = ?, ended_line = ?, "
            f"{setting(CHARGED)} WHERE ledger = ? AND number = ?",
            entry.state, int(entry.begun), None if settle is None else canonical(as_part(settle.part)), output,
            settle and settle.digest, line, *entry.amounts, self._ledger, entry.id,
        )  # fmt: skip

    def _output(self, entry: Entry, settle: Settle | None) -> str | None:
        if settle is None or not keeps_output(entry.operation, entry.key, entry.state):
            return None
        text = self._outputs(entry.id)
        if text is not None and sha256(text) != settle.digest:
            raise LedgerCorrupt(f"the stored output of entry {entry.id} is not the one that was published")
        if text is None:
            self.missing = max(self.missing, entry.id)
        return text

    def dropped(self, upto: int) -> None:
        """Drop outputs of entries that have ended by now, up to a number."""
        self._run(
            "UPDATE expost_entry SET output = NULL WHERE ledger = ? AND number <= ? AND output IS NOT NULL",
            self._ledger, upto,
        )  # fmt: skip
        if self.missing <= upto:
            self.missing = 0


def copy_ledger(source: str, name: str, target: str, note: Note, *, left: Head | None = None) -> Head:
    """Copy a ledger into another database, with its trail and outputs. The source is not changed.

    With ``left``, the line that closed the source to move it, the copy is opened again, in the transaction that makes
    it: no copy that is open exists before. Then it is still to be verified.
    """
    with opened(source, read_only=True) as engine:
        ledger = _number_of(engine, name)

        def output(number: int) -> str | None:
            found = engine.rows("SELECT output FROM expost_entry WHERE ledger = ? AND number = ?", ledger, number)
            return found[0][0] if found else None

        lines = Verification(engine, ledger).trail()
        _, head = _copied(lines, output, target, note, ending=lambda copied: left and Reopen(note, left))
    return head if left is not None else open_store(target, name).verify(head)


def import_export(
    file: str, target: str, note: Note, *, known: Head | None = None, is_incomplete: bool = False
) -> Head:
    """Import an export. It has no outputs: keys that were used stay used, and never sample again.

    Its end is there if it has its closing line, or ends with the known head. Without its end it is imported only if
    ``is_incomplete`` says so; then a line of the trail has who decided it, and why.
    """
    export = Export(file)

    def ending(copied: _Copying) -> Operation | None:
        if copied.head in (export.end, known):
            return None
        if not is_incomplete:
            raise InvalidValue(
                f"{file} lacks its end: its closing line is missing, and line {copied.head.sequence} is not the head "
                "given as known, so charges may be missing; export again, or give --known with the last head that was "
                "noted; or --incomplete, if --reason says why the budget may go on without them"
            )
        return Remark(copied.root, Note(note.by, f"imported without its end: {note.reason}"))

    name, head = _copied(export, lambda number: None, target, note, known, ending)
    return open_store(target, name).verify(head)


class Export:
    """The events of an export, and the head in its closing line once they were read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.end: Head | None = None

    def __iter__(self) -> Iterator[TrailLine]:
        last = Head(0, GENESIS)
        for number, text in enumerate(self._texts()):
            if self.end is not None:
                raise self._damaged("it goes on after its closing line")
            try:
                read = _exported(text)
            except (ValueError, TypeError, KeyError) as error:
                if number and not text.endswith("\n"):
                    return  # cut off within its last line
                raise self._damaged(type(error).__name__) from None
            if isinstance(read, TrailLine):
                last = Head(read.sequence, read.hash)
                yield read
            elif read == last:
                self.end = read
            else:
                raise self._damaged(f"its closing line ends line {read.sequence}, which is not the one before it")

    def _texts(self) -> Iterator[str]:
        try:
            with open(self._file, encoding="ascii") as lines:
                yield from lines
        except (OSError, ValueError) as error:
            raise self._damaged(type(error).__name__) from None

    def _damaged(self, why: str) -> InvalidValue:
        return InvalidValue(f"{self._file} is not an export of a ledger ({why}): make one with `expost ledger export`")


def _exported(text: str) -> TrailLine | Head:
    """What a line of an export is: an event, or the head at the end."""
    found = json.loads(text)
    return Head.read(found["end"]) if "end" in found else TrailLine.read(canonical(found["line"]), found["hash"])


def _copied(
    events: Iterable[TrailLine],
    outputs: Outputs,
    target: str,
    note: Note,
    known: Head | None = None,
    ending: Callable[[_Copying], Operation | None] = lambda copied: None,
) -> tuple[str, Head]:
    """Copy events, and an operation that ends the copy, if there is one. Returns the copy's name and head."""
    with opened(target, create=True) as engine, engine.transaction() as run:
        copying = _Copying(run, engine.new_line, outputs)
        copying.copy(events, known)
        last = ending(copying)
        now, user = engine.settings.clock(), _user(engine, run)
        if copying.missing:
            copying.append(DropOutputs(copying.missing, note), now, user)
        if last is not None:
            copying.append(last, now, user)
        copying.finish()
        name, head = copying.root[0], copying.head
        engine.keep_heads(run, copying.ledger, name, head.sequence)
    if engine.heads is not None:
        engine.heads.note(engine.noted_as(copying.ledger, name), head)
    return name, head


def adopt_heads(url: str, name: str, note: Note, known: Head | None = None, settings: Settings | None = None) -> Head:
    """Note the head of a ledger anew, by a line of its trail, because the noted one is missing or damaged.

    The books are verified first, and must contain ``known``, a head that was noted elsewhere, if it is given.
    """
    with opened(url, settings) as engine:
        ledger = _number_of(engine, name)
        Verification(engine, ledger).run(known)
        engine.adopt(ledger, Remark((name,), Note(note.by, f"heads noted anew: {note.reason}")))
    return open_store(url, name, settings).verify(known)


def _number_of(engine: Engine, name: str) -> int:
    rows = engine.rows("SELECT id FROM expost_ledger WHERE name = ?", name)
    if not rows:
        raise UnknownEntry(f"there is no ledger {name!r} in the database: check its name")
    return int(rows[0][0])


def _user(engine: Engine, run: Execute) -> str | None:
    """Who writes lines of the copy's own, as all other lines of that database have it."""
    if engine.local:
        return engine.settings.user
    ((user,),) = run("SELECT expost_user()")
    return str(json.loads(user))


def back_up(source: str, file: str) -> list[tuple[str, Head]]:
    """Copy a whole database into a new SQLite file, verify every ledger in it, and return their heads."""
    if FilePath(file).exists():
        raise AlreadyExists("file", str(file))
    with opened(source, read_only=True) as engine:
        names = [name for (name,) in engine.rows("SELECT name FROM expost_ledger ORDER BY name")]
        if engine.local:
            engine.backup(file)
    if not source.startswith("sqlite:"):
        for name in names:
            copy_ledger(source, name, f"sqlite:///{file}", Note("expost", "backup"))
    url = f"sqlite:///{file}"
    reading = Settings(heads=False)
    return [(name, open_store(url, name, reading, read_only=True).verify(None)) for name in names]


def move_ledger(source: str, name: str, target: str, note: Note) -> Head:
    """Close a ledger, and go on with it in another database: at every moment at most one of the two can be spent from.

    The line that closes it names the other database. The copy contains that line, and is opened by a line that quotes
    it. Whatever comes between, calling this again finishes the move, and into no other database. What is still open as
    the ledger is closed can end there; the copy charges its worst case.

    Proof: lem-move
    """
    store = open_store(source, name)
    with opened(target, create=True) as engine:
        to = f"{masked(absolute(target))} {engine.mark()}"
        exists = bool(engine.rows("SELECT 1 FROM expost_ledger WHERE name = ?", name))
    left = _departure(store) if store.balances(store.root)[0].closed else _leave(store, to, note, exists=exists)
    if left is None:  # its owner closed it for good, and so is the copy
        return copy_ledger(source, name, target, note)
    if _mark(left.to) != _mark(to):
        raise InvalidValue(f"{name!r} was closed to be moved to {left.to}, and goes on there or nowhere, got {to}")
    if not exists and left.is_done:
        raise InvalidValue(f"{name!r} was moved to {left.to} before, and is not there now: restore it there")
    if not exists:
        copy_ledger(source, name, target, note, left=left.line)
    copy = open_store(target, name)
    _require_copy(copy, left.line)
    if not left.is_done:
        store.remark(store.root, Note(note.by, _arrived(to)))
    return copy.verify(left.line)


class _Departure(NamedTuple):
    """A ledger that was closed to be moved."""

    line: Head
    """The line that closed it."""
    to: str
    """Where it goes on."""
    is_done: bool
    """Whether it is known to have arrived there."""


def _leave(store: DurableStore, to: str, note: Note, *, exists: bool) -> _Departure | None:
    if exists:
        raise AlreadyExists("ledger", store.root[0])
    store.recover()
    before = store.balances(store.root)[0].line
    store.leave(to, Note(note.by, f"moved: {note.reason}"))
    return _departure(store, before)


def _departure(store: DurableStore, after: int = 0) -> _Departure | None:
    """Where a closed ledger goes on, by its trail after a line; None if nowhere."""
    found = None
    for event in store.trail(after):
        if event.kind == "close" and event.body["account"] == store.root[0]:
            to, line = event.body.get("to"), Head(event.sequence, event.hash)
            found = None if to is None else _Departure(line, to, is_done=False)
        elif event.kind == "remark" and found is not None and event.body["reason"] == _arrived(found.to):
            found = found._replace(is_done=True)
    return found


def _arrived(to: str) -> str:
    return f"goes on in {to}"


def _mark(to: str) -> str:
    """What tells a database from others, without its address, of which it may have several."""
    return to.rpartition(" ")[2]


def _require_copy(copy: DurableStore, closed: Head) -> None:
    """Raise if a ledger is not the one that was closed by that line elsewhere, and opened again."""
    later = copy.trail(closed.sequence - 1)
    first = next(later, None)
    is_ours = first is not None and first.hash == closed.hash
    if not is_ours or not any(event.kind == "reopen" and event.body["closed"] == list(closed) for event in later):
        raise AlreadyExists("ledger", copy.root[0])
