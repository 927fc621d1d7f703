"""The audit trail: one line per operation, each linked to the line before by its hash.

A line is canonical JSON; its hash is SHA-256 of the hash before, a newline, and the line. With a head (:class:`Head`)
that was noted earlier, anyone can check whether anything up to it was changed, removed or inserted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from expost.accounting.amounts import Amounts, basic_capacity, beside_epsilon, capacity_with
from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import InvalidValue, LedgerCorrupt
from expost.guarantee import Guarantee, part_from_json
from expost.ledger import rules
from expost.ledger.codec import Described, described, guarantee_digest, guarantee_text, read_guarantee
from expost.ledger.entry import Balance, Manner, Note, Path, Request
from expost.ledger.operations import (
    EVENTS,
    Begin,
    Close,
    Create,
    CreateAccount,
    DropOutputs,
    Forfeit,
    Operation,
    RaiseLimit,
    Remark,
    Reopen,
    Reserve,
    SetClock,
    Settle,
    Void,
)

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff

Guarantees: TypeAlias = "dict[str, Guarantee | Tariff]"
"""Guarantees, with their prices if they have any, by their hashes."""
GENESIS = "0" * 64
"""The hash before the first line."""


class TrailLine(NamedTuple):
    """One line of the audit trail.

    Attributes
    ----------
    sequence
        Its number.
    at
        The ledger's clock: microseconds since 1970, in full hours.
    kind
        The operation.
    entry
        The number of the entry that it changes, if any.
    body
        The parameters of the operation.
    levels
        The new balances of the account and of all above it, the ledger's own first.
    user
        The user, as known to the operating system or the database.
    line
        The line itself, which the hash covers; all other fields are parsed from it.
    hash
        The hash of the line and of the hash before it.
    """

    sequence: int
    at: int
    kind: str
    entry: int | None
    body: dict[str, Any]
    levels: list[Any]
    user: str | None
    line: str
    hash: str

    @classmethod
    def read(cls, line: str, digest: str) -> TrailLine:
        """The event that a line records. Raises ``LedgerCorrupt``."""
        try:
            found = json.loads(line)
            kind, entry, body = found["event"], found["entry"], found["body"]
            levels, user = list(found["levels"]), found["user"]
            return cls(int(found["sequence"]), int(found["at"]), kind, entry, dict(body), levels, user, line, digest)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise LedgerCorrupt(f"a line of the audit trail cannot be read: {line[:60]!r}") from None


class Head(NamedTuple):
    """The end of an audit trail. Note it elsewhere: then the trail up to it cannot be rewritten unnoticed.

    Parameters
    ----------
    sequence
        The number of the last line.
    hash
        The hash of the last line.
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Head:
        """The head that a text shows. Raises ``InvalidValue``."""
        line, _, digest = text.partition(":")
        if not line.isdecimal() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise InvalidValue(f"a head is LINE:HASH, as verify prints it, got {text!r}")
        return cls(int(line), digest)


def link(head: str, line: str) -> str:
    """The hash of a line, given the hash before it."""
    return hashlib.sha256(f"{head}\n{line}".encode()).hexdigest()


# ---- writing


def trail_line(change: rules.Change, sequence: int, at: int, user: str | None) -> str:
    """A change as a line."""
    number, kind = "null" if change.entry is None else change.entry.id, EVENTS[type(change.operation)]
    levels = ",".join(map(_level, change.levels))
    return (
        f'{{"at":{at},"body":{body_of(change)},"entry":{number},"event":"{kind}","levels":[{levels}],'
        f'"sequence":{sequence},"user":{canonical(user)}}}'
    )


def _level(balance: Balance) -> str:
    limit, capacity, charged, reserved, closed, line = balance
    metered = balance.is_metered
    beside = f",{','.join(map(str, beside_epsilon(capacity)))}" if metered else ""
    return (
        f"[[{limit.epsilon_units},{limit.delta_units}{beside}],{amounts_text(charged, metered=metered)},"
        f"{amounts_text(reserved, metered=metered)},{int(closed)},{line}]"
    )


def amounts_text(amounts: Amounts, *, metered: bool) -> str:
    """Amounts as a line has them: of the basic sum alone, or of everything that a ledger with several meters counts."""
    return f"[{','.join(map(str, amounts))}]" if metered else f"[{amounts[0]},{amounts[1]}]"


def body_of(change: rules.Change) -> str:
    """The parameters of an operation, as a line records them."""
    operation = change.operation
    if isinstance(operation, Reserve):
        return reserve_body(operation, first=change.first)
    if isinstance(operation, (Settle, Forfeit, Void)):  # a union is slow, and this runs for every line
        return _end_body(change)
    if isinstance(operation, Begin):
        return "{}"
    if isinstance(operation, Create):
        return _create_body(operation)
    return _governing_body(change)


def _create_body(operation: Create) -> str:
    name, limit, neighbours, unit, meters, _, drawn = operation
    body: dict[str, Any] = {"limit": amount(limit), "name": name, "neighbours": neighbours, "unit": unit}
    if meters is not None:
        body["accounting"] = meters.to_json()
    if drawn is not None:
        body["drawn"] = drawn
    return canonical(body)


def _governing_body(change: rules.Change) -> str:
    operation, account = change.operation, "/".join(change.path)
    body: dict[str, Any] = {}
    if isinstance(operation, CreateAccount | RaiseLimit | Close | Remark):
        body["account"] = account
    if isinstance(operation, CreateAccount | RaiseLimit):
        body["limit"] = amount(change.levels[-1].limit)
    if isinstance(operation, DropOutputs):
        body["upto"] = operation.upto
    if isinstance(operation, Close) and operation.to is not None:
        body["to"] = operation.to
    if isinstance(operation, Reopen):
        body["closed"] = list(operation.closed)
    note: Note | None = getattr(operation, "note", None)
    if note is not None:
        body.update(by=note.by, reason=note.reason)
    return canonical(body)


def reserve_body(operation: Reserve, *, first: bool) -> str:
    """The body of a reservation. The first one for a guarantee contains it, all others only its hash."""
    request = operation.request
    worst = amounts_text(request.worst, metered=request.tariff is not None)
    subject = described(request.subject, keyed=request.key is not None)
    digest = guarantee_digest(request.priced_guarantee)
    whole = f'"guarantee":{guarantee_text(request.priced_guarantee)},' if first else ""
    return (
        f'{{"account":{canonical("/".join(request.account))},"begun":{"true" if operation.begun else "false"},'
        f'"fingerprint":{canonical(subject.fingerprint)},{whole}"guarantee_digest":"{digest}",'
        f'"key":{canonical(request.key)},"label":{canonical(request.label)},"operation":"{request.operation}",'
        f'"subject":{canonical(subject.text)},"worst":{worst}}}'
    )


def _end_body(change: rules.Change) -> str:
    """The body of an ending: the charge and, for a settled entry, its part and the output's hash."""
    operation, entry = change.operation, change.entry
    assert entry is not None
    assert entry.amounts is not None
    part, digest = (operation.part, operation.digest) if isinstance(operation, Settle) else (None, None)
    charged = amounts_text(entry.amounts, metered=entry.is_metered)
    return f'{{"charged":{charged},"output":{canonical(digest)},"part":{canonical(part)}}}'


def amount(cost: Cost) -> list[int]:
    """A cost as its two whole numbers of units."""
    return [cost.epsilon_units, cost.delta_units]


# ---- reading


def operation_of(event: TrailLine, guarantees: Guarantees) -> Operation:
    """The operation that an event records. ``guarantees`` are those of earlier lines; new ones are added."""
    body, kind = event.body, event.kind
    if kind == "reserve":
        return Reserve(_request(event, guarantees), body["begun"])
    if kind == "settle":
        return Settle(number_of(event), part_from_json(body["part"]), body["output"])
    if kind in _ENDS:
        made: Operation = _ENDS[kind](number_of(event))
        return made
    if kind == "create":
        meters = _meters(body)
        named = body["name"], cost_of(body["limit"]), body["neighbours"], body["unit"]
        return Create(*named, meters, _capacity(event), body.get("drawn"))
    if kind == "account":
        by = Note(body["by"], body["reason"]) if "by" in body else None
        return CreateAccount(_path(body), cost_of(body["limit"]), _capacity(event), by)
    note = Note(body["by"], body["reason"])
    if kind == "raise":
        limit = cost_of(body["limit"])
        return RaiseLimit(_path(body), limit, limit, note, _capacity(event))
    if kind == "close":
        return Close(_path(body), note, body.get("to"))
    if kind == "reopen":
        sequence, digest = body["closed"]
        return Reopen(note, (sequence, digest))
    if kind == "remark":
        return Remark(_path(body), note)
    return SetClock(note) if kind == "clock" else DropOutputs(body["upto"], note)


_ENDS: dict[str, Any] = {"begin": Begin, "forfeit": Forfeit, "void": Void}


def _meters(body: dict[str, Any]) -> LedgerMeters | None:
    if "accounting" not in body:
        return None
    from expost.accounting.capacities import LedgerMeters

    return LedgerMeters.from_json(body["accounting"])


def _capacity(event: TrailLine) -> Amounts:
    """What the account holds, as the line records it."""
    return balance_of(event.levels[-1], event.sequence).capacity


def _request(event: TrailLine, guarantees: Guarantees) -> Request:
    body, found, digest = event.body, event.body.get("guarantee"), event.body["guarantee_digest"]
    if found is not None:
        if sha256(canonical(found)) != digest:
            raise impossible(event, "its guarantee does not have the hash that it records")
        guarantees[digest] = read_guarantee(found)
    subject = Described(body["subject"], body["fingerprint"])
    return request_of(body["operation"], _path(body), subject, guarantees[digest], body["label"], body["key"])


def request_of(
    operation: Manner, path: Path, subject: Any, guarantee: Guarantee | Tariff, label: str | None, key: str | None
) -> Request:
    """The request for a guarantee, with its prices if it has any."""
    if isinstance(guarantee, Guarantee):
        return Request(operation, path, subject, guarantee, label, key)
    return Request(operation, path, subject, guarantee.guarantee, label, key, guarantee)


def _path(body: dict[str, Any]) -> Path:
    return tuple(body["account"].split("/"))


def balance_of(level: Any, line: int) -> Balance:
    """The balance in a line's ``levels``."""
    (epsilon, delta, *beside), charged, reserved, closed, _ = level
    limit = cost_of((epsilon, delta))
    capacity = capacity_with(limit, *map(int, beside)) if beside else basic_capacity(limit)
    return Balance(limit, capacity, _amounts(charged), _amounts(reserved), bool(closed), line)


def _amounts(numbers: Iterable[int]) -> Amounts:
    return Amounts(*map(int, numbers))


def number_of(event: TrailLine) -> int:
    """The entry that an event is about."""
    if type(event.entry) is not int:
        raise impossible(event, "it has no entry number")
    return event.entry


def cost_of(pair: Any) -> Cost:
    """The cost of two whole numbers of units."""
    epsilon, delta = pair
    return Cost.of_units(int(epsilon), int(delta))


def linked(
    events: Iterable[TrailLine], *, known: Head | None = None, after: Head | None = None, at: int = 0
) -> Iterator[TrailLine]:
    """The events, each checked to follow from the one before, and checked to contain a head noted earlier.

    With ``after``, the first event is the one after that head, whose clock was ``at``.
    """
    sequence, head = after or Head(0, GENESIS)
    met = known is None or known.sequence <= sequence
    for event in events:
        head, sequence = link(head, event.line), sequence + 1
        if event.hash != head or event.sequence != sequence or (event.at < at and event.kind != "clock"):
            raise LedgerCorrupt(f"line {sequence} of the audit trail does not follow from the line before")
        at = event.at
        if known is not None and known.sequence == sequence:
            if known.hash != head:
                raise LedgerCorrupt(f"line {sequence} does not have the hash that was noted: the trail was rewritten")
            met = True
        yield event
    if not met and known is not None:
        raise LedgerCorrupt(
            f"the audit trail ends at line {sequence}, before the noted line {known.sequence}: lines were removed, or "
            "an old backup was restored"
        )


def exported(events: Iterable[TrailLine]) -> Iterator[str]:
    """Events as the lines of an export: each with its hash, and then the head, without which the end was cut off."""
    head = Head(0, GENESIS)
    for event in events:
        yield f'{{"hash":"{event.hash}","line":{event.line}}}\n'
        head = Head(event.sequence, event.hash)
    yield f'{{"end":"{head}"}}\n'


def write_export(events: Iterable[TrailLine], path: str | os.PathLike[str]) -> Head:
    """Write an export, and return the head that it ends with."""
    head = Head(0, GENESIS)

    def noted() -> Iterator[TrailLine]:
        nonlocal head
        for event in linked(events):
            head = Head(event.sequence, event.hash)
            yield event

    with open(path, "w", encoding="ascii") as file:
        file.writelines(exported(noted()))
    return head


def impossible(event: TrailLine, why: object) -> LedgerCorrupt:
    """An error: a line records what the rules do not allow."""
    return LedgerCorrupt(f"line {event.sequence} of the audit trail ({event.kind}) cannot have happened: {why}")
