"""Books in a database: the same rules as in memory, but nothing that was acknowledged is ever lost."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import (
    AlreadyExists,
    AlreadyReserved,
    InvalidValue,
    LedgerCorrupt,
    NeighbourMismatch,
    ReservationClosed,
    UnknownEntry,
)
from expost.forks import Process, here
from expost.guarantee import Guarantee, Neighbours, Part, as_part
from expost.ledger import codec
from expost.ledger.engine import Engine, Lost, Operation, Outcome, Rows
from expost.ledger.entry import Balance, Entry, Note, Path, Request, State, raised, refusal, same_request
from expost.ledger.liveness import HEART, TTL, identity, is_gone
from expost.ledger.trail import (
    Books,
    Event,
    Head,
    Line,
    create_body,
    end_body,
    limit_body,
    part_of,
    replay,
    reserve_body,
)
from expost.ledger.writer import Batch

_PAGE = 500  # rows that are read at a time
LONGEST = 500
"""Characters of a name or a key: what an index of every database can hold."""
_OUTPUTS = 20  # outputs, which may be large
TRIES = 5
"""How often the books are read from the beginning, if the connection is lost or a process is forked meanwhile."""
_BALANCE = "epsilon_limit, delta_limit, epsilon_spent, delta_spent, epsilon_reserved, delta_reserved, closed"
_ENTRY = (
    "SELECT e.number, a.path, e.operation, e.subject, e.fingerprint, c.json, e.label, e.key, e.state, e.begun, e.part, "
    "e.charged_epsilon, e.charged_delta, e.reserved_at FROM expost_entry e "
    "JOIN expost_account a ON a.id = e.account JOIN expost_claim c ON c.digest = e.claim WHERE e.ledger = ?"
)

# What the open entries hold at each level (those above are older, so this ends), against what is set aside there.
_UNSOUND = (
    "WITH RECURSIVE held(account, epsilon, delta) AS (SELECT account, sum(epsilon), sum(delta) FROM expost_entry "
    "WHERE ledger = ? AND state = 'reserved' GROUP BY account UNION ALL SELECT a.parent, h.epsilon, h.delta "
    "FROM held h JOIN expost_account a ON a.id = h.account WHERE a.parent < a.id) "
    "SELECT 1 FROM (SELECT account, epsilon, delta FROM held "
    "UNION ALL SELECT id, -epsilon_reserved, -delta_reserved FROM expost_account WHERE ledger = ?) one "
    "GROUP BY account HAVING sum(epsilon) <> 0 OR sum(delta) <> 0 LIMIT 1"
)


class Changed(LedgerCorrupt):
    """A balance was changed by hand: nothing is reserved, and nobody's work forfeited; all else can be done."""


class Address(NamedTuple):
    """Where a durable ledger is."""

    url: str
    name: str

    def __repr__(self) -> str:
        return f"Address(url={masked(self.url)!r}, name={self.name!r})"


class DurableStore:
    """The :class:`~expost.ledger.store.Store` of a database. Each method is one durable transaction.

    Proof: thm-durable
    """

    def __init__(self, engine: Engine, address: Address) -> None:
        rows = engine.rows("SELECT id, neighbours, unit FROM expost_ledger WHERE name = ?", address.name)
        if not rows:
            known = ", ".join(repr(name) for (name,) in engine.rows("SELECT name FROM expost_ledger ORDER BY name"))
            raise UnknownEntry(f"there is no ledger {address.name!r} there (it has {known or 'none'}): create it")
        self.address = address
        self._ledger, self._neighbours, self.unit = rows[0]
        self._engine = engine
        self._batch = Batch(engine, self._ledger)
        self._owners: dict[Process, str] = {}
        """By process: this one, and those it was forked from."""
        self._levels: dict[Path, list[int]] = {}
        self._claims: set[str] = set()
        self._open: dict[int, Entry] = {}
        self._orphans: set[int] = set()
        self._sound = True

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation that every claim in these books is about."""
        relation: Neighbours = self._neighbours
        return relation

    # ---- accounts

    def create_account(self, path: Path, limit: Cost) -> None:
        """A new account under an existing one."""
        check_text(path[-1], "an account's name")
        check_text("/".join(path), "an account's name, behind those above it,", LONGEST)
        parent = self._ids(path[:-1])[-1]
        step = {"do": "account", "parent": parent, "path": "/".join(path), "body": limit_body(path, limit)}
        if "exists" in self._do(step | _units(limit)):
            raise AlreadyExists("account", "/".join(path))

    def accounts(self, path: Path) -> tuple[str, ...]:
        """The names directly below an account."""
        rows = self._engine.rows("SELECT path FROM expost_account WHERE parent = ? ORDER BY id", self._ids(path)[-1])
        return tuple(found.rpartition("/")[2] for (found,) in rows)

    def balances(self, path: Path) -> tuple[Balance, ...]:
        """The balance of the account and of every one above it, at one instant."""
        ids = self._ids(path)
        marks = ", ".join("?" * len(ids))
        rows = self._engine.rows(f"SELECT {_BALANCE} FROM expost_account WHERE id IN ({marks}) ORDER BY id", *ids)
        return tuple(balance_of(row) for row in rows)

    def raise_limit(self, path: Path, epsilon: Cost | None, delta: Cost | None, note: Note) -> None:
        """Allow more from now on."""
        _check_note(note)
        account = self._ids(path)[-1]
        while True:
            seen = self.balances(path)[-1].limit
            limit = raised(seen, epsilon, delta)
            step = {"do": "limit", "account": account, "seen": [seen.epsilon_units, seen.delta_units]}
            if "moved" not in self._do(step | _units(limit) | {"body": limit_body(path, limit, note)}):
                return

    def close(self, path: Path, note: Note) -> None:
        """Allow nothing more, here and below."""
        _check_note(note)
        self._do({"do": "close", "account": self._ids(path)[-1], "body": limit_body(path, None, note)})

    # ---- entries

    def earlier(self, request: Request) -> Entry | None:
        """What the request's key stands for."""
        if request.key is None:
            return None
        check_text(request.key, "a key", LONGEST)
        found = self._engine.rows(f"{_ENTRY} AND e.key = ?", self._ledger, request.key)
        return same_request(_entry(found[0]), request) if found else None

    def reserve(self, request: Request, *, begin: bool, lease: float | None = None) -> Entry:
        """Set the worst case aside at every level, or at none; durable before this returns."""
        self._check(request)
        if not self._sound:
            raise self._changed()
        levels = self._ids(request.account)
        claim = codec.claim_digest(request.guarantee)
        subject = _described(request)
        kept = request._replace(subject=subject)
        worst = request.guarantee.worst_case
        first = claim not in self._claims
        step: Operation = {
            "do": "reserve", "levels": levels, "operation": request.operation, "subject": subject.text,
            "fingerprint": subject.fingerprint, "claim": claim,
            "claim_text": codec.claim_text(request.guarantee) if first else None,
            "label": request.label, "key": request.key, "begun": begin, "body": reserve_body(kept, begin, first=first),
            "lease": None if lease is None else int(lease * 1e6), **_units(worst),
        }  # fmt: skip
        outcome = self._do(step | (who := self._who(lease is None)))
        while "expired" in outcome:  # this process was given up for dead: it goes on under another name
            if self._owners.get(here()) == who["owner"]:
                self._owners.pop(here(), None)
            outcome = self._do(step | (who := self._who(lease is None)))
        if "used" in outcome:
            raise AlreadyReserved(same_request(self.find(outcome["used"]), kept))
        if "levels" in outcome:
            paths = [request.account[: k + 1] for k in range(len(levels))]
            balances = map(balance_of, outcome["levels"])
            raise refusal(dict(zip(paths, balances, strict=True)), worst)
        self._claims.add(claim)
        entry = Entry(outcome["entry"], kept, "reserved", begin, None, None, outcome["at"] / 1e6)
        self._open[entry.id] = entry
        return entry

    def begin(self, entry: int) -> None:
        """From here on the entry can no longer be voided."""
        if "ended" in self._do({"do": "begin", "entry": self._known(entry)}):
            raise ReservationClosed(self.find(entry), "begin")

    def settle(self, entry: int, part: Part, output: Any) -> Entry:
        """Charge what came out and give the rest back; part and output are on the disk before this returns."""
        request = self._entry(entry).request
        charged = request.guarantee.cost_of(part)
        text = None if request.key is None or request.operation == "reserve" else codec.kept(output)
        digest = sha256(text) if text is not None else None
        if text is None and request.operation != "reserve":
            digest = codec.digest_of(output)
        kept = {"part": canonical(as_part(part)), "output": text, "digest": digest}
        kept["body"] = end_body(charged, part, digest)
        return self._end(entry, "settled", charged, "settle", kept)._replace(part=part)

    def forfeit(self, entry: int) -> Entry:
        """Charge the worst case."""
        worst = self._entry(entry).reserved
        try:
            return self._end(entry, "forfeited", worst, "forfeit", {"body": end_body(worst)})
        except ReservationClosed:
            raise
        except BaseException:
            self._orphans.add(entry)  # tried again with every beat, and when this process has ended
            raise

    def void(self, entry: int) -> Entry:
        """Charge nothing; only while sampling has not begun."""
        return self._end(entry, "voided", Cost(0), "void", {"body": end_body(Cost(0))})

    def output(self, entry: int) -> Any:
        """The output that was kept for an entry with a key."""
        rows = self._engine.rows(
            "SELECT output, digest, operation, key, state FROM expost_entry WHERE ledger = ? AND number = ?",
            self._ledger, self._known(entry),
        )  # fmt: skip
        text, digest, *rest = rows[0] if rows else (None, None, "reserve", None, "reserved")
        if text is None:
            if _keeps(*rest):
                raise LedgerCorrupt(f"the output kept for entry {entry} was removed")
            return None
        if sha256(text) != digest:
            raise LedgerCorrupt(f"the output kept for entry {entry} is not the one that was published")
        return codec.decode(text)

    def find(self, id_or_key: int | str) -> Entry:
        """The entry of that number or key."""
        column = "e.key" if isinstance(id_or_key, str) else "e.number"
        if isinstance(id_or_key, int):
            self._known(id_or_key)
        else:
            check_text(id_or_key, "a key", LONGEST)
        rows = self._engine.rows(f"{_ENTRY} AND {column} = ?", self._ledger, id_or_key)
        if rows:
            return _entry(rows[0])
        what = f"under key {id_or_key!r}" if isinstance(id_or_key, str) else repr(id_or_key)
        raise UnknownEntry(f"no entry {what} in ledger {self.address.name!r}")

    def entries(self, path: Path) -> Iterator[Entry]:
        """The entries of an account and of all below it, as many as there are now."""
        self._ids(path)
        ((upto,),) = self._engine.rows("SELECT entries FROM expost_ledger WHERE id = ?", self._ledger)
        return self._pages("/".join(path), upto)

    def _pages(self, account: str, upto: int) -> Iterator[Entry]:
        after = 0
        question = f"{_ENTRY} AND e.number > ? AND e.number <= ? ORDER BY e.number LIMIT {_PAGE}"
        while rows := self._engine.rows(question, self._ledger, after, upto):
            after = rows[-1][0]
            for row in rows:
                if row[1] == account or row[1].startswith(f"{account}/"):
                    yield _entry(row)

    # ---- leases

    def recover(self) -> int:
        """Forfeit what processes left behind that are gone or silent. Returns how many entries.

        First look whether what is set aside is what the open entries hold: if not, that cannot be, and nothing more is
        reserved.
        """
        self._sound = not self._engine.rows(_UNSOUND, self._ledger, self._ledger)
        if not self._sound:
            raise self._changed()
        owners = self._engine.rows(
            "SELECT id, identity FROM expost_owner WHERE ledger = ? AND expired = 0", self._ledger
        )
        me = self._owners.get(here(), "")
        dead = [owner for owner, who in owners if owner != me and is_gone(who)]
        step = {"do": "recover", "dead": canonical(dead), "by": me}
        return int(self._do(step)["forfeited"])

    def _changed(self) -> Changed:
        return Changed(
            f"what ledger {self.address.name!r} has set aside is not the sum of its open entries: a balance was "
            "changed by hand; see verify_chain(), and spend nothing more"
        )

    def beat(self) -> None:
        """Say that this process is alive."""
        if here() in self._owners:
            self._do({"do": "beat", **self._who(True)})

    def tend(self) -> None:
        """Look after the others' work, and end what could not be ended before."""
        with suppress(Changed):  # whoever reserves is told
            self.recover()
        for entry in list(self._orphans):
            with suppress(ReservationClosed):
                self.forfeit(entry)
            self._orphans.discard(entry)

    def _who(self, owned: bool) -> Operation:
        if not owned:
            return {"owner": None}
        process = here()
        if process not in self._owners:
            self._owners.setdefault(process, secrets.token_hex(8))
            HEART.watch(self)
        return {"owner": self._owners[process], "identity": identity(process.number), "ttl": TTL}

    # ---- the audit trail

    def events(self) -> Iterator[Event]:
        """What happened, in order, each line chained to the one before."""
        return self._events(self._engine.rows)

    def _events(self, rows: Rows) -> Iterator[Event]:
        question = (
            "SELECT sequence, line, hash FROM expost_event WHERE ledger = ? AND sequence > ? "
            f"ORDER BY sequence LIMIT {_PAGE}"
        )
        for sequence, line, digest in self._paged(rows, question):
            try:
                yield Event.read(line, digest)
            except (ValueError, TypeError, KeyError):
                raise LedgerCorrupt(f"line {sequence} of the audit trail cannot be read") from None

    def verify(self, known: Head | None) -> Head:
        """Recompute the trail, and compare what it adds up to with the tables, at one instant."""
        for _ in range(TRIES - 1):
            with suppress(Lost):
                return self._verify(known)
        return self._verify(known)

    def _verify(self, known: Head | None) -> Head:
        with self._engine.snapshot() as rows:
            books, head = replay(self._events(rows), known=known)
            self._compare(rows, books, head)
        return head

    def _compare(self, rows: Rows, books: Books, head: Head) -> None:
        ((name, neighbours, unit, sequence, digest, count),) = rows(
            "SELECT name, neighbours, unit, sequence, head, entries FROM expost_ledger WHERE id = ?", self._ledger
        )
        if (sequence, digest) != tuple(head) or count != len(books.entries):
            raise LedgerCorrupt("the ledger's own line and the audit trail end differently")
        if {"name": name, "neighbours": neighbours, "unit": unit} != books.about:
            raise LedgerCorrupt("the ledger's name, neighbours or unit are not what the audit trail says")
        accounts = rows(f"SELECT path, {_BALANCE} FROM expost_account WHERE ledger = ?", self._ledger)
        if {path: balance_of(row) for path, *row in accounts} != books.accounts:
            raise LedgerCorrupt("the accounts' balances are not what the audit trail adds up to")
        missing = set(books.entries)
        for number, told in self._told(rows):
            if books.entries.get(number) != told:
                raise LedgerCorrupt(f"entry {number} is not what the audit trail says about it")
            missing.discard(number)
        if missing:
            raise LedgerCorrupt(f"entry {min(missing)} stands in the audit trail, but was removed from the tables")
        self._compare_outputs(rows, books)

    def _told(self, rows: Rows) -> Iterator[tuple[int, Line]]:
        question = (
            "SELECT e.number, a.path, e.operation, e.subject, e.fingerprint, e.claim, e.label, e.key, e.reserved_at, "
            "e.begun, e.state, e.part, e.digest, e.ended_at, e.epsilon, e.delta, e.charged_epsilon, e.charged_delta, "
            "c.json FROM expost_entry e LEFT JOIN expost_account a ON a.id = e.account LEFT JOIN expost_claim c "
            f"ON c.digest = e.claim WHERE e.ledger = ? AND e.number > ? ORDER BY e.number LIMIT {_PAGE}"
        )
        for number, path, operation, subject, print_, claim, *rest in self._paged(rows, question):
            label, key, at, begun, state, part, digest, ended, epsilon, delta, paid, paid_delta, text = rest
            yield number, Line(
                path, operation, subject, print_, claim if _names(claim, text) else "changed", label, key,
                Cost.of_units(epsilon, delta), at, bool(begun), state,
                None if paid is None else Cost.of_units(paid, paid_delta), None if part is None else json.loads(part),
                digest, ended,
            )  # fmt: skip

    def _compare_outputs(self, rows: Rows, books: Books) -> None:
        """What a key would deliver again is what was published."""
        due = {number for number, line in books.entries.items() if _keeps(line.operation, line.key, line.state)}
        question = (
            "SELECT number, output FROM expost_entry WHERE ledger = ? AND number > ? AND output IS NOT NULL "
            f"ORDER BY number LIMIT {_OUTPUTS}"
        )
        for number, text in self._paged(rows, question):
            if number not in due or sha256(text) != books.entries[number].output:
                raise LedgerCorrupt(f"the output kept for entry {number} is not the one that was published")
            due.discard(number)
        if due:
            raise LedgerCorrupt(f"the output kept for entry {min(due)} was removed")

    def _paged(self, rows: Rows, question: str) -> Iterator[Any]:
        """The rows of a question whose last value is the number to go on behind, page by page."""
        after = 0
        while page := rows(question, self._ledger, after):
            after = page[-1][0]
            yield from page

    # ---- inside

    def _do(self, step: Operation) -> Outcome:
        return self._batch.submit(step)

    def _end(self, entry: int, state: State, charged: Cost, attempted: str, rest: Operation) -> Entry:
        before = self._entry(entry)
        step = {"do": "end", "entry": entry, "state": state, "levels": self._ids(before.request.account)}
        outcome = self._do(step | _units(charged) | rest)
        if "ended" in outcome:
            if outcome["ended"] != "reserved":
                self._open.pop(entry, None)
            raise ReservationClosed(self.find(entry), attempted)
        self._open.pop(entry, None)
        return before._replace(state=state, begun=state != "voided", charged=charged)

    def _entry(self, entry: int) -> Entry:
        return self._open.get(entry) or self.find(entry)

    def _known(self, entry: int) -> int:
        if not 1 <= entry < 2**63:
            raise UnknownEntry(f"no entry {entry!r} in ledger {self.address.name!r}")
        return entry

    def _ids(self, path: Path) -> list[int]:
        """The numbers of an account and of all above it, the ledger's own first. Accounts never go away."""
        found = self._levels.get(path)
        if found is None:
            found = []
            for k in range(1, len(path) + 1):
                rows = self._engine.rows(
                    "SELECT id FROM expost_account WHERE ledger = ? AND path = ?", self._ledger, "/".join(path[:k])
                )
                if not rows:
                    known = ", ".join(map(repr, self.accounts(path[: k - 1]))) or "none"
                    above = "/".join(path[: k - 1])
                    raise UnknownEntry(f"{above!r} has no account {path[k - 1]!r} (it has {known}): create it")
                found.append(rows[0][0])
            self._levels[path] = found
        return found

    def _check(self, request: Request) -> None:
        relation = request.guarantee.neighbours
        if relation is not None and relation != self._neighbours:
            raise NeighbourMismatch(relation, str(self._neighbours), f"ledger {self.address.name!r}")
        if request.label is not None:
            check_text(request.label, "a label")
        if request.key is not None:
            check_text(request.key, "a key", LONGEST)


def create(engine: Engine, name: str, limit: Cost, neighbours: Neighbours, unit: str) -> None:
    """A new ledger in a database."""
    body = create_body(name, limit, neighbours, unit)
    engine.create(name, {"neighbours": neighbours, "unit": unit, "body": body, **_units(limit)})


def _described(request: Request) -> codec.Described:
    told = codec.described(request.subject, keyed=request.key is not None)
    check_text(told.text, "how a mechanism prints", 10**6)
    return told._replace(data=())


def _units(cost: Cost) -> Operation:
    return {"epsilon": cost.epsilon_units, "delta": cost.delta_units}


def balance_of(row: Any) -> Balance:
    """The balance that a row of an account's seven numbers says."""
    limit, limit_delta, spent, spent_delta, reserved, reserved_delta, closed = row
    return Balance(
        Cost.of_units(limit, limit_delta),
        Cost.of_units(spent, spent_delta),
        Cost.of_units(reserved, reserved_delta),
        bool(closed),
    )


def _entry(row: Any) -> Entry:
    number, path, operation, text, fingerprint, claim, label, key, state, begun, part, paid, paid_delta, at = row
    request = Request(operation, tuple(path.split("/")), codec.Described(text, fingerprint), _claim(claim), label, key)
    return Entry(
        number,
        request,
        state,
        bool(begun),
        None if part is None else part_of(json.loads(part)),
        None if paid is None else Cost.of_units(paid, paid_delta),
        at / 1e6,
    )


_CLAIMS: dict[str, Guarantee] = {}


def _claim(text: str) -> Guarantee:
    """The guarantee of a text; the last few hundred are remembered."""
    found = _CLAIMS.get(text)
    if found is None:
        if len(_CLAIMS) >= 256:
            _CLAIMS.clear()
        found = _CLAIMS[text] = Guarantee.from_json(json.loads(text))
    return found


def _names(claim: str, text: str | None) -> bool:
    return text is not None and sha256(text) == claim


def _keeps(operation: str, key: str | None, state: str) -> bool:
    """Whether the output of such an entry is kept, to be delivered again."""
    return operation != "reserve" and key is not None and state == "settled"


def _check_note(note: Note) -> None:
    check_text(note.by, "by")
    check_text(note.reason, "a reason")


def masked(url: Any) -> Any:
    """An address without its password, to be shown."""
    return re.sub(r"(://[^:/@]*):.*@|(password=)[^&\s]*", r"\1\2…@", url) if isinstance(url, str) else url


def check_text(text: str, what: str, longest: int = 10_000) -> None:
    """Refuse what not every database can keep."""
    if len(text) > longest:
        raise InvalidValue(f"{what} must have at most {longest} characters, got {len(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{what} must be text that can be written down, got {text!r}") from None
    if "\0" in text:
        raise InvalidValue(f"{what} must not contain the character zero, got {text!r}")
