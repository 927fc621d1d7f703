"""Steps as they are sent to PostgreSQL, and the outcomes of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from expost.accounting.amounts import beside_epsilon
from expost.canonical import canonical
from expost.errors import ExpostError, RequestRejected, UnknownEntry
from expost.guarantee import Guarantee, Neighbours, as_part
from expost.ledger import rules
from expost.ledger.codec import described, guarantee_digest, guarantee_text
from expost.ledger.engine import Beat, Outcome, Recover, Rows, Step
from expost.ledger.entry import Accounts, Balance, Entry, Path
from expost.ledger.operations import (
    EVENTS,
    Begin,
    Close,
    Create,
    CreateAccount,
    DropOutputs,
    Forfeit,
    RaiseLimit,
    Remark,
    Reserve,
    SetClock,
    Settle,
    Void,
)
from expost.ledger.remedies import unknown_account
from expost.ledger.rows import BALANCE, ENTRY, balance_of_row, entry_of_row, meters_of_text

if TYPE_CHECKING:
    from expost.accounting.tariff import Tariff

_Ending = Settle | Forfeit | Void
_ENDINGS = (Settle, Forfeit, Void)  # a union is slow, and these are asked for every step
_DECISIONS = (CreateAccount, RaiseLimit, Close, Remark, SetClock, DropOutputs)


class Governing(NamedTuple):
    """A step of administration, as it is sent."""

    kind: str
    path: str
    values: dict[str, Any]


class TableView:
    """The books as they are in the tables, for the rules."""

    def __init__(self, rows: Rows, ledger: int) -> None:
        self._rows, self._ledger = rows, ledger
        ((name, self._neighbours, self._unit, self._count, accounting),) = rows(
            "SELECT name, neighbours, unit, entries, accounting FROM expost_books WHERE id = ?", ledger
        )
        self.meters = meters_of_text(accounting)
        self.root: Path = (name,)
        self.at = 0
        self._levels: dict[Accounts, tuple[Balance, ...]] = {}

    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbour relation of every guarantee."""
        relation: Neighbours = self._neighbours
        return relation

    @property
    def unit(self) -> str | None:
        """The unit of every guarantee that has one."""
        unit: str = self._unit
        return unit

    @property
    def count(self) -> int:
        """The number of entries."""
        count: int = self._count
        return count

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """The balances of these accounts, in one snapshot; cached."""
        if accounts not in self._levels:
            self._levels[accounts] = self._read_levels(accounts)
        return self._levels[accounts]

    def _read_levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        rows = self._rows(
            f"SELECT path, {BALANCE} FROM expost_account WHERE ledger = ? AND path IN "
            f"({', '.join('?' * len(accounts))})", self._ledger, *map("/".join, accounts),
        )  # fmt: skip
        found = {path: row for path, *row in rows}
        for path in accounts:
            if "/".join(path) not in found:
                raise unknown_account(path)
        return tuple(balance_of_row(found["/".join(path)]) for path in accounts)

    def exists(self, path: Path) -> bool:
        """Whether there is such an account."""
        return bool(
            self._rows("SELECT 1 FROM expost_account WHERE ledger = ? AND path = ?", self._ledger, "/".join(path))
        )

    def entry(self, number: int) -> Entry:
        """An entry as it is now."""
        rows = self._rows(f"{ENTRY} AND e.number = ?", self._ledger, number)
        if not rows:
            raise UnknownEntry(f"no entry {number!r} in ledger {self.root[0]!r}")
        return entry_of_row(rows[0])

    def keyed(self, key: str) -> Entry | None:
        """The entry with a key, if there is one."""
        rows = self._rows(f"{ENTRY} AND e.key = ?", self._ledger, key)
        return entry_of_row(rows[0]) if rows else None

    def knows(self, guarantee: Guarantee | Tariff) -> bool:
        """True; the database decides by itself."""
        return True


class _Open(TableView):
    """The books of one open entry: enough to compute the charge of its ending."""

    def __init__(self, entry: Entry) -> None:
        self._entry, self.meters = entry, None

    def levels(self, accounts: Accounts) -> tuple[Balance, ...]:
        """Empty: the database has the balances."""
        return ()

    def entry(self, number: int) -> Entry:
        """The entry that the change is about."""
        return self._entry


class Steps:
    """Writes steps and reads outcomes. It caches open entries, and which guarantees are in the books."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._open: dict[tuple[int, int], Entry] = {}
        self._known: set[tuple[int, str]] = set()

    def governs(self, step: Step) -> bool:
        """Whether a step is administration, for owners of the ledger."""
        return isinstance(step, _DECISIONS)

    def sent(self, ledger: int, step: Step) -> dict[str, Any]:
        """A step as JSON."""
        if isinstance(step, Reserve):
            return self._reserve(ledger, step)
        if isinstance(step, _ENDINGS):
            return self._end(step)
        if isinstance(step, Begin):
            return {"do": "begin", "entry": step.entry}
        return {"do": "recover", "dead": list(step.dead)} if isinstance(step, Recover) else {"do": "beat"}

    def _reserve(self, ledger: int, step: Reserve) -> dict[str, Any]:
        request = step.request
        subject = described(request.subject, keyed=request.key is not None)
        digest = guarantee_digest(request.priced_guarantee)
        sent = {
            "do": "reserve", "account": "/".join(request.account), "operation": request.operation,
            "subject": subject.text, "fingerprint": subject.fingerprint, "guarantee_digest": digest,
            "label": request.label, "key": request.key, "begun": step.begun, "lease": step.lease,
        }  # fmt: skip
        if (ledger, digest) in self._known:
            return sent
        return sent | {"guarantee_text": guarantee_text(request.priced_guarantee)}

    def _end(self, step: _Ending) -> dict[str, Any]:
        sent: dict[str, Any] = {"do": EVENTS[type(step)], "entry": step.entry}
        if isinstance(step, Settle):
            sent |= {"part": canonical(as_part(step.part)), "output": step.output, "digest": step.digest}
        return sent

    def _change(self, ledger: int, step: _Ending) -> rules.Change | None:
        """What the step changes, given that the database found its entry open."""
        entry = self._open.get((ledger, step.entry))
        if entry is None:
            rows = self._rows(f"{ENTRY} AND e.number = ?", ledger, step.entry)
            if not rows:
                return None
            entry = entry_of_row(rows[0])
        return rules.change_of(
            _Open(entry._replace(state="reserved", begun=entry.begun and not isinstance(step, Void))), step
        )

    def outcome(self, ledger: int, step: Step, found: dict[str, Any]) -> Outcome:
        """The outcome of a step that took effect."""
        if isinstance(step, Recover):
            return int(found["forfeited"])
        if isinstance(step, Reserve):
            entry = Entry(found["entry"], step.request, "reserved", step.begun, None, None, found["at"] / 1e6)
            self._known.add((ledger, guarantee_digest(step.request.priced_guarantee)))
            if step.lease is None:  # others may end those that have one
                self._open[ledger, entry.id] = entry
            return entry
        if isinstance(step, Begin) and (ledger, step.entry) in self._open:
            self._open[ledger, step.entry] = self._open[ledger, step.entry]._replace(begun=True)
        if not isinstance(step, _ENDINGS):
            return None
        change = self._change(ledger, step)
        self._open.pop((ledger, step.entry), None)
        return None if change is None else change.entry

    def refusal(self, ledger: int, step: Step) -> ExpostError | None:
        """The error by which the rules reject a step now; None if they would allow it."""
        if isinstance(step, Beat | Recover):
            return None
        try:
            rules.change_of(TableView(self._rows, ledger), step)
        except ExpostError as refused:
            if isinstance(step, _ENDINGS):
                self._open.pop((ledger, step.entry), None)
            return refused
        return None

    def creation(self, operation: Create) -> Governing:
        """The creation of a ledger."""
        name, limit, neighbours, unit, meters, _, drawn = operation
        values: dict[str, Any] = {
            "neighbours": neighbours, "unit": unit, "epsilon": limit.epsilon_units, "delta": limit.delta_units,
            "drawn": drawn,
        }  # fmt: skip
        if meters is not None:
            values |= {"accounting": meters.to_json(), "capacity": beside_epsilon(meters.capacity(limit))}
        return Governing("create", name, values)

    def governing(self, view: TableView, step: Any) -> Governing:
        """A step of administration. Raises if the rules do not allow it."""
        change = rules.change_of(view, step)
        assert change is not None
        values: dict[str, Any] = {}
        if isinstance(step, CreateAccount | RaiseLimit):
            own = change.levels[-1]
            values = {"epsilon": own.limit.epsilon_units, "delta": own.limit.delta_units}
            if own.is_metered:
                values["capacity"] = beside_epsilon(own.capacity)
        if isinstance(step, RaiseLimit):
            seen = view.levels(change.accounts)[-1].limit
            values["seen"] = [seen.epsilon_units, seen.delta_units]
        if isinstance(step, DropOutputs):
            values["upto"] = step.upto
        if step.note is not None:
            values |= step.note._asdict()
        if isinstance(step, Close) and step.to is not None:
            values["to"] = step.to
        return Governing(EVENTS[type(step)], "/".join(change.path), values)


def denied(step: Any, role: str | None) -> RequestRejected:
    """An error: another role reserved the entry."""
    return RequestRejected(
        f"entry {step.entry} was reserved by the database's role {role!r}, without a lease, so that only this role can "
        "end it: connect as that role, or let an owner of the ledger forfeit it; nothing was recorded"
    )
