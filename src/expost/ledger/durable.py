"""The store of durable ledgers: the same rules as in memory, and no acknowledged operation is ever lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.canonical import sha256
from expost.cost import Cost
from expost.errors import (
    BalanceChanged,
    ExpostError,
    InvalidValue,
    LedgerCorrupt,
    LedgerUnavailable,
    ReservationClosed,
    SnapshotLost,
    UnknownEntry,
)
from expost.forks import Process, here
from expost.guarantee import Neighbours, Part
from expost.ledger import codec, operations, rules
from expost.ledger.abandoned import Abandoned
from expost.ledger.deadline import all_within
from expost.ledger.engine import Beat, Recover, Settings, Step, is_out_of_reach
from expost.ledger.entry import Balance, Entry, Note, Path, Request, State, View, lineage
from expost.ledger.liveness import heart
from expost.ledger.pages import Pages
from expost.ledger.remedies import CREATE, VERIFY, unknown_account
from expost.ledger.rows import BALANCE, ENTRY, NONSENSE, balance_of_row, entry_of_row, meters_of_text
from expost.ledger.soundness import is_sound
from expost.ledger.texts import LONGEST, check_text, checked_note, masked
from expost.ledger.trail import Head, TrailLine
from expost.ledger.verify.since import VerificationSince
from expost.ledger.verify.tables import Verification, keeps_output
from expost.ledger.writer import Writer

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters

_LOG = logging.getLogger("expost.ledger")
_TRIES = 5  # how often verification starts again, after a lost connection or a fork

_OPEN = " AND e.state = 'reserved' ORDER BY e.number"


class Address(NamedTuple):
    """The address of a durable ledger."""

    url: str
    name: str

    def __repr__(self) -> str:
        return f"Address(url={masked(self.url)!r}, name={self.name!r})"


class OpenEntry(NamedTuple):
    """An entry that has not ended, and its owner."""

    entry: Entry
    owner: str | None
    """The process: its machine, number and start. None for a lease."""
    lease_until: float | None
    """Seconds since 1970."""


class DurableStore:
    """The :class:`~expost.ledger.store.Store` of a durable ledger. Each change is one durable transaction.

    Proof: thm-durable
    """

    neighbours: Neighbours | None
    """The neighbour relation of every guarantee in the ledger."""

    def __init__(self, writer: Writer, address: Address) -> None:
        engine = writer.engine
        rows = engine.rows("SELECT id, neighbours, unit, accounting FROM expost_ledger WHERE name = ?", address.name)
        if not rows:
            known = ", ".join(repr(name) for (name,) in engine.rows("SELECT name FROM expost_ledger ORDER BY name"))
            raise UnknownEntry(
                f"there is no ledger {address.name!r} in the database (it has {known or 'none'}): check its name, "
                "or begin a new budget with ",
                CREATE,
            )
        self.address = address
        self.root: Path = (address.name,)
        self._ledger, self.neighbours, self.unit, accounting = rows[0]
        self._first = "".join(digest for _, _, digest in engine.rows(engine.lines, self._ledger, 0, 1, 1))
        self.meters: LedgerMeters | None = meters_of_text(accounting)
        self._engine, self._writer = engine, writer
        self._abandoned = Abandoned(engine, self._ledger)
        self._watched: Process | None = None
        self._orphans: set[int] = set()
        self._sound = True

    @property
    def identity(self) -> tuple[Address, str]:
        """Its address, and the hash of its first line, which has what was drawn when it was created."""
        return self.address, self._first

    @property
    def shelf(self) -> None:
        """Nothing is remembered beside the books: whoever opens them sees the same."""
        return None

    @property
    def size(self) -> int:
        """How many bytes its database takes on its disk, other ledgers included."""
        return self._engine.size()

    @property
    def manner(self) -> tuple[Settings | None, bool]:
        """The settings with which the ledger was opened, and whether it is read-only."""
        return self._engine.settings, self._engine.read_only

    def one_deadline(self) -> AbstractContextManager[None]:
        """A block in which all calls together take no longer than one may."""
        settings = self._engine.settings
        return all_within(settings.patience + settings.deadline * (not self._engine.local))

    # ---- accounts

    def create_account(self, path: Path, limit: Cost, note: Note | None = None) -> None:
        """Create an account below an existing one."""
        check_text(path[-1], "an account's name")
        check_text("/".join(path), "an account's name, with those above it,", LONGEST)
        self._do(operations.CreateAccount(path, limit, note=note and checked_note(note)))

    def accounts(self, path: Path) -> tuple[str, ...]:
        """The names directly below an account."""
        self.balances(path)
        rows = self._engine.rows(
            "SELECT below.path FROM expost_account below JOIN expost_account a ON a.id = below.parent "
            "WHERE a.ledger = ? AND a.path = ? ORDER BY below.id", self._ledger, "/".join(path),
        )  # fmt: skip
        return tuple(found.rpartition("/")[2] for (found,) in rows)

    def all_balances(self) -> dict[Path, Balance]:
        """The balances of all accounts, in one snapshot: each after the one above it."""
        rows = self._engine.rows(
            f"SELECT path, {BALANCE} FROM expost_account WHERE ledger = ? ORDER BY id", self._ledger
        )
        found = {tuple(path.split("/")): balance_of_row(row) for path, *row in rows}
        places = {path: place for place, path in enumerate(found)}

        def order(path: Path) -> list[int]:
            return [places[path[: depth + 1]] for depth in range(len(path))]

        return {path: found[path] for path in sorted(found, key=order)}

    def balances(self, path: Path) -> tuple[Balance, ...]:
        """The balances of the account and of all above it, in one snapshot."""
        return tuple(balance_of_row(row[2:]) for row in self._levels(path))

    def _levels(self, path: Path) -> list[Any]:
        """The ledger's last line and number of entries, and the balances, in one snapshot."""
        names = ["/".join(each) for each in lineage(path)]
        marks = ", ".join("?" * len(names))
        rows = self._engine.rows(
            f"SELECT l.sequence, l.entries, {BALANCE} FROM expost_books l JOIN expost_account a ON a.ledger = l.id "
            f"WHERE l.id = ? AND a.path IN ({marks}) ORDER BY a.id", self._ledger, *names,
        )  # fmt: skip
        if len(rows) < len(path):
            known = ", ".join(map(repr, self.accounts(path[: len(rows)]))) or "none"
            raise unknown_account(path[: len(rows) + 1], known)
        return rows

    def raise_limit(self, path: Path, epsilon: Cost | None, delta: Cost | None, note: Note) -> None:
        """Raise the limit of an account."""
        self._do(operations.RaiseLimit(path, epsilon, delta, checked_note(note)))

    def close(self, path: Path, note: Note) -> None:
        """Accept no more reservations, in an account and below it."""
        self._do(operations.Close(path, checked_note(note)))

    def leave(self, to: str, note: Note) -> None:
        """Close the ledger here, because it goes on in another database. Raises if it was closed before."""
        self._do(operations.Close(self.root, checked_note(note), to))

    def remark(self, path: Path, note: Note) -> None:
        """Record that something was done about an account, elsewhere than in the books."""
        self._do(operations.Remark(path, checked_note(note)))

    def set_clock(self, note: Note) -> None:
        """Accept the machine's clock, though it is far from the time of the last line."""
        self._do(operations.SetClock(checked_note(note)))

    def drop_outputs(self, upto: int, note: Note, *, batch: int = 5000) -> None:
        """Delete the stored outputs of entries up to a number, and nothing else; keys stay used.

        A ``batch`` of entries at a time, so that nobody waits long; each has its line.
        """
        last = min(self._known(upto), self._levels(self.root)[0][1])
        for first in range(0, last - batch, batch):
            if self._has_outputs(first, first + batch):
                self._do(operations.DropOutputs(first + batch, checked_note(note)))
        self._do(operations.DropOutputs(upto, checked_note(note)))

    def _has_outputs(self, after: int, upto: int) -> bool:
        sql = (
            "SELECT 1 FROM expost_entry WHERE ledger = ? AND number > ? AND number <= ? AND output IS NOT NULL LIMIT 1"
        )
        return bool(self._engine.rows(sql, self._ledger, after, upto))

    # ---- entries

    def earlier(self, request: Request) -> Entry | None:
        """The entry of the request's key, if there is one."""
        if request.key is None:
            return None
        check_text(request.key, "a key", LONGEST)
        found = self._engine.rows(f"{ENTRY} AND e.key = ?", self._ledger, request.key)
        return rules.same_request(entry_of_row(found[0]), request) if found else None

    def reserve(self, request: Request, *, begin: bool, lease: float | None = None) -> Entry:
        """Reserve the worst case at every level, or at none; durable when this returns."""
        kept = self._check(request)
        self._require_sound()
        microseconds = None if lease is None else max(1, int(lease * 1e6))
        try:
            entry = self._writer.submit(self._ledger, operations.Reserve(kept, begin, lease=microseconds))
        except LedgerUnavailable:
            self._watch()  # if only the answer was lost, a heartbeat ends it
            raise
        assert isinstance(entry, Entry)
        if lease is None:
            self._watch()
        return entry

    def reserve_all(self, requests: Sequence[Request], *, begin: bool) -> list[Entry | ExpostError]:
        """Reserve many worst cases, in order and in few transactions: the entry of each, or why there is none."""
        steps = [operations.Reserve(self._check(request), begin) for request in requests]
        self._require_sound()
        made: list[Entry | ExpostError] = []
        for outcome in self._writer.submit_all(self._ledger, steps):
            assert isinstance(outcome, Entry | ExpostError)
            made.append(outcome)
        self._watch()
        return made

    def end_all(self, endings: Sequence[operations.Ending]) -> list[Entry]:
        """Settle, forfeit or void many entries, in order and in few transactions."""
        steps = [self._sealed(each) if isinstance(each, operations.Settle) else each for each in endings]
        ended: list[Entry] = []
        refused: ExpostError | None = None
        for outcome in self._writer.submit_all(self._ledger, steps):
            if isinstance(outcome, Entry):
                ended.append(outcome)
            else:
                assert isinstance(outcome, ExpostError)
                refused = refused or outcome
        if refused is not None:
            raise refused
        return ended

    def begin(self, entry: int) -> None:
        """Record that sampling starts: from then on the entry cannot be voided."""
        self._do(operations.Begin(self._known(entry)))

    def settle(self, entry: int, part: Part, output: Any) -> Entry:
        """Charge the part, and refund the rest; part and output are on disk when this returns."""
        return self._end(self._sealed(operations.Settle(entry, part, output=output)))

    def _sealed(self, step: operations.Settle) -> operations.Settle:
        """A settlement with its output as it is stored."""
        entry, part, _, output = step
        request = (self._writer.given(self._ledger, entry) or self.find(entry)).request
        request.guarantee.cost_of(part)  # raises for a part that it does not have
        if request.key is None or request.operation == "reserve":
            return operations.Settle(entry, part)
        stored = codec.sealed(codec.kept(output))
        return operations.Settle(entry, part, sha256(stored), stored)

    def forfeit(self, entry: int) -> Entry:
        """Charge the worst case."""
        try:
            return self._end(operations.Forfeit(self._known(entry)))
        except (ReservationClosed, UnknownEntry):
            raise
        except BaseException:
            self._orphans.add(entry)  # tried again with every heartbeat, and when this process has ended
            raise

    def void(self, entry: int) -> Entry:
        """Charge nothing; allowed only before sampling has begun."""
        return self._end(operations.Void(self._known(entry)))

    def output(self, entry: int) -> Any:
        """The stored output of an entry with a key."""
        rows = self._engine.rows(
            "SELECT output, digest, ended_line, operation, key, state FROM expost_entry WHERE ledger = ? "
            "AND number = ?", self._ledger, self._known(entry),
        )  # fmt: skip
        text, digest, ended, *rest = rows[0] if rows else (None, None, 0, "reserve", None, "reserved")
        if text is None:
            if keeps_output(*rest):
                raise self._missing_output(entry, ended)
            return None
        if sha256(text) != digest:
            raise LedgerCorrupt(f"the stored output of entry {entry} is not the one that was published")
        return codec.decode(codec.unsealed(text))

    def _missing_output(self, entry: int, ended: int) -> LedgerCorrupt | InvalidValue:
        if any(event.kind == "drop" and event.body["upto"] >= entry for event in self.trail(ended)):
            return InvalidValue(
                f"the output of entry {entry} was dropped, or not imported: it was published and charged, and its key "
                "never samples again; pass a new key for a new request"
            )
        return LedgerCorrupt(f"the stored output of entry {entry} was removed")

    def find(self, id_or_key: int | str) -> Entry:
        """The entry of that number or key."""
        column = "e.key" if isinstance(id_or_key, str) else "e.number"
        if isinstance(id_or_key, int):
            self._known(id_or_key)
        else:
            check_text(id_or_key, "a key", LONGEST)
        rows = self._engine.rows(f"{ENTRY} AND {column} = ?", self._ledger, id_or_key)
        if rows:
            return entry_of_row(rows[0])
        what = f"under key {id_or_key!r}" if isinstance(id_or_key, str) else repr(id_or_key)
        raise UnknownEntry(f"no entry {what} in ledger {self.address.name!r}")

    def view(self, path: Path, *, last: int | None = None, state: State | None = None) -> View:
        """A consistent snapshot of balances and entries. Entries are read page by page, which never blocks writers."""
        levels = self._levels(path)
        sequence, upto = levels[0][:2]
        entries = Pages(self._engine, self._ledger, path, sequence, upto, last, state)
        return View(tuple(balance_of_row(row[2:]) for row in levels), entries)

    def open_entries(self) -> list[OpenEntry]:
        """The entries that have not ended, in order."""
        rows = self._engine.rows(
            f"{ENTRY.replace('FROM expost_entry e', f', o.identity, e.lease_until FROM {self._engine.open_entries}')}"
            .replace("WHERE", "LEFT JOIN expost_owner o ON o.id = e.owner WHERE") + _OPEN, self._ledger,
        )  # fmt: skip
        return [OpenEntry(entry_of_row(row), row[-2], None if row[-1] is None else row[-1] / 1e6) for row in rows]

    # ---- liveness

    def check(self) -> None:
        """Compare what is reserved with the open entries. Raises, and stops reservations, if they differ."""
        self._sound = is_sound(self._engine, self._ledger)
        if not self._sound:
            raise self._changed()

    def recover(self) -> int:
        """Forfeit the open entries of processes that have ended or are given up. Returns how many entries.

        Checks first, as :meth:`check` does.
        """
        self.check()
        dead = self._abandoned.given_up(self._look)
        if not dead and not self._abandoned.has_leases() and not self._abandoned.has_forgotten():
            return 0
        count = self._do(Recover(dead))
        assert isinstance(count, int)
        return count

    def _look(self) -> None:
        """Record that this process checked which processes are alive."""
        with suppress(LedgerUnavailable):
            self._do(Beat())
            self._watch()

    def _require_sound(self) -> None:
        if not self._sound:
            raise self._changed()

    def _changed(self) -> BalanceChanged:
        return BalanceChanged(
            f"what ledger {self.address.name!r} has reserved is not the sum of its open entries: a balance was changed "
            "by hand, so nothing more can be reserved; see ",
            VERIFY,
        )

    def _watch(self) -> None:
        """Start the heartbeats of this process."""
        if self._watched != here():
            heart(self._engine.settings.beat).watch(self)
            self._watched = here()

    def beat(self) -> None:
        """Record a heartbeat."""
        if self._engine.owner(self._ledger) is not None:
            self._do(Beat())

    def is_out_of_reach(self, error: Exception) -> bool:
        """Whether the error means that nothing in the database can be reached now."""
        return is_out_of_reach(self._engine, error)

    def tend(self) -> None:
        """Forfeit what other processes left open, and what this one could not forfeit before."""
        with suppress(BalanceChanged):  # reserve() raises it
            self.recover()
        for entry in list(self._orphans):
            with suppress(ReservationClosed):
                self.forfeit(entry)
            self._orphans.discard(entry)

    # ---- the audit trail

    def trail(self, after: int = 0) -> Iterator[TrailLine]:
        """The events of the audit trail after a line, up to the last one that is on the disk."""
        ((last,),) = self._engine.rows("SELECT sequence FROM expost_books WHERE id = ?", self._ledger)
        self._engine.await_disk()
        return Verification(self._engine, self._ledger).trail(after, last)

    def verify(self, known: Head | None, *, since: bool = False) -> Head:
        """Replay the trail by the rules, and compare it with the tables and with the head in the heads file."""
        for attempt in range(_TRIES):
            try:
                return self._verified(known, since)
            except SnapshotLost:
                if attempt == _TRIES - 1:
                    raise
            except NONSENSE as error:
                raise LedgerCorrupt(f"the database is damaged: reading it raised {type(error).__name__}") from error
        raise AssertionError

    def _verified(self, known: Head | None, since: bool) -> Head:
        heads, name = self._engine.heads, self.address.name
        noted = (
            None if heads is None else heads.noted(self._engine.noted_as(self._ledger, name))
        )  # first, because later ones may be noted meanwhile
        head = self._verification(known, since).run(known)
        if heads is not None and heads.is_beside and noted is None and known is None:
            _LOG.warning(
                "no head of ledger %r is noted in %s, as in a copy, or a file that was moved alone: only a head that "
                "was noted elsewhere can show whether its last lines are complete", name, heads.path,
            )  # fmt: skip
        if heads is not None and noted is not None:
            lost = heads.compare(noted, name, head.sequence, self._hash_of)
            if lost is not None:
                raise lost
        return head

    def _hash_of(self, sequence: int) -> str | None:
        rows = self._engine.rows(self._engine.lines, self._ledger, sequence - 1, sequence, 1)
        return rows[0][2] if rows else None

    def _verification(self, known: Head | None, since: bool) -> Verification:
        if since and known is not None and known.sequence > 0:
            return VerificationSince(self._engine, self._ledger, known)
        return Verification(self._engine, self._ledger)

    # ---- internal

    def _do(self, step: Step) -> Entry | int | None:
        return self._writer.submit(self._ledger, step)

    def _end(self, step: operations.Ending) -> Entry:
        entry = self._writer.submit(self._ledger, step)
        assert isinstance(entry, Entry)
        return entry

    def _known(self, entry: int) -> int:
        if not 1 <= entry < 2**63:
            raise UnknownEntry(f"no entry {entry!r} in ledger {self.address.name!r}")
        return entry

    def _check(self, request: Request) -> Request:
        """The request as it is stored; raises for what a database cannot store."""
        rules.refuse_relation(self, request.guarantee.neighbours)  # type: ignore[arg-type]
        rules.refuse_unit(self, request.guarantee.unit)  # type: ignore[arg-type]
        if (request.tariff is None) != (self.meters is None):
            raise rules.foreign_prices()
        if request.label is not None:
            check_text(request.label, "a label")
        if request.key is not None:
            check_text(request.key, "a key", LONGEST)
        subject = codec.described(request.subject, keyed=request.key is not None)
        check_text(subject.text, "a mechanism's text", 10**6)
        if subject is request.subject and not subject.data:
            return request
        return request._replace(subject=subject._replace(data=()))
