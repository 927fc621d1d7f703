"""The audit trail: one line an event, each chained to the line before by its hash.

A line is canonical JSON; its hash is SHA-256 of the hash before, a newline, and the line. Whoever noted a
head once (:class:`Head`) can tell later whether anything before it was changed, removed or put in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import LedgerCorrupt
from expost.guarantee import Guarantee, Neighbours, Part
from expost.ledger.codec import claim_digest, claim_text, described
from expost.ledger.entry import Balance, Note, Path, Request

GENESIS = "0" * 64
"""The hash before the first line."""
TICKS = frozenset({"reserve", "account", "limit", "close"})
"""Operations that move the clock of the books on. When something ends does not: that would tell of the work, and so of
the data."""


def full_hour(at: int) -> int:
    """The clock of the books at an instant: full hours, both in microseconds since 1970."""
    return at - at % 3_600_000_000


class Event(NamedTuple):
    """One line of the audit trail. ``line`` is what the hash is about; the rest is read from it."""

    sequence: int
    at: int
    """Microseconds since 1970, to the full hour, never before the line before. The clock of the books."""
    kind: str
    entry: int | None
    body: dict[str, Any]
    line: str
    hash: str

    @classmethod
    def read(cls, line: str, digest: str) -> Event:
        """The event that a line tells of."""
        told = json.loads(line)
        return cls(told["sequence"], told["at"], told["event"], told["entry"], told["body"], line, digest)


class Head(NamedTuple):
    """The end of a trail: note it elsewhere, and the trail up to it can never be rewritten unnoticed."""

    sequence: int
    hash: str


def write_line(sequence: int, at: int, kind: str, entry: int | None, body: str) -> str:
    """An event as canonical JSON."""
    number = "null" if entry is None else entry
    return f'{{"at":{at},"body":{body},"entry":{number},"event":"{kind}","sequence":{sequence}}}'


def link(head: str, line: str) -> str:
    """The hash of a line behind the hash before it."""
    return hashlib.sha256(f"{head}\n{line}".encode()).hexdigest()


class Trail:
    """A trail in the making."""

    def __init__(self, sequence: int = 0, at: int = 0, head: str = GENESIS) -> None:
        self.sequence, self.at, self.head = sequence, at, head

    def append(self, at: int, kind: str, entry: int | None, body: str) -> Event:
        """The next event; a clock that went backwards stands still."""
        self.sequence += 1
        self.at = max(self.at, at)
        line = write_line(self.sequence, self.at, kind, entry, body)
        self.head = link(self.head, line)
        return Event.read(line, self.head)


# ---- what the lines say


def amount(cost: Cost) -> list[int]:
    """A cost as its two whole numbers of units."""
    return [cost.epsilon_units, cost.delta_units]


def create_body(name: str, limit: Cost, neighbours: Neighbours | None, unit: str | None) -> str:
    """A ledger begins."""
    return canonical({"limit": amount(limit), "name": name, "neighbours": neighbours, "unit": unit})


def limit_body(path: Path, limit: Cost | None, note: Note | None = None) -> str:
    """A new account; or, with a note, a limit that was raised, or (without a limit) closed."""
    body: dict[str, Any] = {"account": "/".join(path)}
    if limit is not None:
        body["limit"] = amount(limit)
    if note is not None:
        body.update(by=note.by, reason=note.reason)
    return canonical(body)


def reserve_body(request: Request, begun: bool, *, first: bool) -> str:
    """A worst case is set aside. The first time that it is for this guarantee, the line says what that is."""
    subject = described(request.subject, keyed=request.key is not None)
    told = {
        "account": "/".join(request.account),
        "begun": begun,
        "claim": claim_digest(request.guarantee),
        "fingerprint": subject.fingerprint,
        "key": request.key,
        "label": request.label,
        "operation": request.operation,
        "subject": subject.text,
        "worst": amount(request.guarantee.worst_case),
    }
    if first:
        told["guarantee"] = json.loads(claim_text(request.guarantee))
    return canonical(told)


def end_body(charged: Cost, part: Part | None = None, output: str | None = None) -> str:
    """An entry ends: what it was charged, and for a settled one which part came out, and the output's hash."""
    return canonical({"charged": amount(charged), "output": output, "part": part})


# ---- reading it again


class Line(NamedTuple):
    """How an entry stands, by the trail."""

    account: str
    operation: str
    subject: str
    fingerprint: str
    claim: str
    label: str | None
    key: str | None
    worst: Cost
    reserved_at: int
    begun: bool
    state: str = "reserved"
    charged: Cost | None = None
    part: Any = None
    output: str | None = None
    ended_at: int | None = None


class Books:
    """What a trail adds up to: every balance and every entry. It refuses what no ledger would have done."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        """The ledger's name, neighbours and unit."""
        self.accounts: dict[str, Balance] = {}
        self.entries: dict[int, Line] = {}
        self.claims: dict[str, Guarantee] = {}
        self._keys: set[str] = set()

    def apply(self, event: Event) -> None:
        """Let one event happen."""
        if (event.kind == "create") != (event.sequence == 1):
            raise _impossible(event, "a ledger is created once, by its first line")
        getattr(self, f"_{event.kind}")(event)

    def _create(self, event: Event) -> None:
        self.about = {name: event.body[name] for name in ("name", "neighbours", "unit")}
        self.accounts[event.body["name"]] = Balance(_cost(event.body["limit"]), Cost(0), Cost(0))

    def _account(self, event: Event) -> None:
        name = event.body["account"]
        if name in self.accounts or levels(name)[-2] not in self.accounts:
            raise _impossible(event, f"{name!r} was there already, or nothing above it")
        self.accounts[name] = Balance(_cost(event.body["limit"]), Cost(0), Cost(0))

    def _raise(self, event: Event) -> None:
        before, limit = self.accounts[event.body["account"]], _cost(event.body["limit"])
        if not before.limit <= limit:
            raise _impossible(event, "a limit went down")
        self.accounts[event.body["account"]] = before._replace(limit=limit)

    def _close(self, event: Event) -> None:
        before = self.accounts[event.body["account"]]
        self.accounts[event.body["account"]] = before._replace(closed=True)

    def _reserve(self, event: Event) -> None:
        told, worst = event.body, _cost(event.body["worst"])
        if number(event) != len(self.entries) + 1 or told["key"] in self._keys:
            raise _impossible(event, "entries are numbered one after the other, and a key stands for one of them")
        if self._claim(event).worst_case != worst:
            raise _impossible(event, "another amount than the guarantee's worst case was set aside")
        for name in levels(told["account"]):
            if self.accounts[name].closed or not worst <= self.accounts[name].remaining:
                raise _impossible(event, f"{name!r} had not so much left")
            self._move(name, Cost(0), worst, Cost(0))
        if told["key"] is not None:
            self._keys.add(told["key"])
        same = {name: told[name] for name in Line._fields[:7]}
        self.entries[number(event)] = Line(**same, worst=worst, reserved_at=event.at, begun=told["begun"])

    def _claim(self, event: Event) -> Guarantee:
        """The guarantee of a reservation; the first line about it says what it is."""
        told, name = event.body.get("guarantee"), event.body["claim"]
        if told is not None:
            if sha256(canonical(told)) != name:
                raise _impossible(event, "its guarantee is not the one that it names")
            self.claims[name] = Guarantee.from_json(told)
        return self.claims[name]

    def _begin(self, event: Event) -> None:
        entry = self._open(event)
        self.entries[number(event)] = entry._replace(begun=True)

    def _settle(self, event: Event) -> None:
        self._end(event, "settled")

    def _forfeit(self, event: Event) -> None:
        if _cost(event.body["charged"]) != self._open(event).worst:
            raise _impossible(event, "the worst case was not charged")
        self._end(event, "forfeited")

    def _void(self, event: Event) -> None:
        if self._open(event).begun or _cost(event.body["charged"]):
            raise _impossible(event, "sampling had begun, or something was charged")
        self._end(event, "voided")

    def _end(self, event: Event, state: str) -> None:
        entry, told = self._open(event), event.body
        charged = _cost(told["charged"])
        if state == "settled" and charged != self.claims[entry.claim].cost_of(part_of(told["part"])):
            raise _impossible(event, "another amount than the part's was charged")
        for name in levels(entry.account):
            self._move(name, charged, Cost(0), entry.worst)
        self.entries[number(event)] = entry._replace(
            begun=state != "voided",
            state=state,
            charged=charged,
            part=told["part"],
            output=told["output"],
            ended_at=event.at,
        )

    def _open(self, event: Event) -> Line:
        entry = self.entries.get(number(event))
        if entry is None or entry.state != "reserved":
            raise _impossible(event, "the entry was not open")
        return entry

    def _move(self, name: str, spent: Cost, more: Cost, less: Cost) -> None:
        now = self.accounts[name]
        self.accounts[name] = now._replace(spent=now.spent + spent, reserved=now.reserved + more - less)


def chained(events: Iterable[Event], *, known: Head | None = None) -> Iterator[Event]:
    """The events, each checked against the one before; and that they run through a head noted earlier."""
    head, sequence, at, met = GENESIS, 0, 0, known is None or known.sequence == 0
    for event in events:
        head, sequence = link(head, event.line), sequence + 1
        if event.hash != head or event.sequence != sequence or event.at < at:
            raise LedgerCorrupt(f"line {sequence} of the audit trail does not follow from the line before")
        at = event.at
        if known is not None and known.sequence == sequence:
            if known.hash != head:
                raise LedgerCorrupt(f"line {sequence} is not the one whose hash was noted: the trail was rewritten")
            met = True
        yield event
    if not met:
        raise LedgerCorrupt(
            f"the trail ends at line {sequence}, before line {known.sequence if known else 0} that was noted: "
            "lines were removed, or an old backup was restored; close this ledger"
        )


def replay(events: Iterable[Event], *, known: Head | None = None) -> tuple[Books, Head]:
    """What the events add up to, and their head. Raises ``LedgerCorrupt`` where a line is wrong."""
    books, head = Books(), Head(0, GENESIS)
    for event in chained(events, known=known):
        try:
            books.apply(event)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise _impossible(event, "it makes no sense there") from None
        head = Head(event.sequence, event.hash)
    return books, head


def levels(account: str) -> list[str]:
    """The names of an account and of all above it, the ledger's own first."""
    names = account.split("/")
    return ["/".join(names[: k + 1]) for k in range(len(names))]


def number(event: Event) -> int:
    """The entry that an event is about."""
    if event.entry is None:
        raise _impossible(event, "it names no entry")
    return event.entry


def part_of(label: Any) -> Part:
    """A part as JSON tells it: tuples are lists there."""
    return tuple(part_of(item) for item in label) if isinstance(label, list) else label


def _cost(pair: Any) -> Cost:
    epsilon, delta = pair
    return Cost.of_units(int(epsilon), int(delta))


def _impossible(event: Event, why: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"line {event.sequence} of the audit trail ({event.kind}) cannot have happened: {why}")
