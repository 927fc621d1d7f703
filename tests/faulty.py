"""What the tests of faults share: workers that write down what was acknowledged, and what must hold afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.accounting.amounts import Amounts, together
from expost.accounting.capacities import LedgerMeters
from expost.ledger import MemoryStore, Settings
from expost.ledger.entry import Note
from expost.ledger.trail import TrailLine, linked
from expost.ledger.verify.lines import Replay
from toys import Fixed

GUARANTEE = Guarantee({"small": "0.001", "large": "0.004"}, delta="1e-9")
NAME = "study"


ACCOUNTINGS: tuple[Literal["basic", "renyi"], ...] = ("basic", "renyi")


def make(
    url: str,
    epsilon: int | str = 1000,
    settings: Settings | None = None,
    accounting: Literal["basic", "renyi"] = "basic",
) -> Ledger:
    limit = Cost.within(epsilon, 1e-3)
    return Ledger.create(
        url, NAME, limit, neighbours="add-remove", unit="person", settings=settings, accounting=accounting
    )


class Worker:
    """Spends as fast as it can, and writes down each acknowledgement, with the time before and after."""

    def __init__(self, ledger: Ledger, log: Path, seed: int) -> None:
        self._ledger = ledger
        self._log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._random = random.Random(seed)

    def work(self, steps: int = 10**9) -> None:
        for _ in range(steps):
            kind = self._random.choice(["settle", "settle", "forfeit", "void", "run", "account"])
            with suppress(xp.errors.LedgerUnavailable, xp.errors.ReservationClosed, xp.errors.AlreadyReserved):
                getattr(self, f"_{kind}")()  # else nothing was acknowledged

    def _acknowledged(self, what: str, since: float, **facts: Any) -> None:
        facts |= {"what": what, "since": since, "until": time.monotonic()}
        os.write(self._log, (json.dumps(facts) + "\n").encode())

    def _reserve(self, account: Ledger, *, begin: bool = True) -> xp.ledger.Reservation | None:
        since = time.monotonic()
        try:
            spending = account.reserve(GUARANTEE, begin=begin)
        except xp.BudgetExceeded:
            self._acknowledged("refused", since)
            return None
        self._acknowledged("reserve", since, entry=spending.id)
        return spending

    def _ended(self, spending: xp.ledger.Reservation, end: Callable[[], xp.ledger.Entry]) -> None:
        since = time.monotonic()
        entry = end()
        self._acknowledged(entry.state, since, entry=spending.id, charged=str(entry.charged))

    def _settle(self) -> None:
        if spending := self._reserve(self._ledger):
            self._ended(spending, lambda: spending.settle(self._random.choice(["small", "large"])))

    def _account(self) -> None:
        if spending := self._reserve(self._ledger.account("team").account("alice")):
            self._ended(spending, lambda: spending.settle("small"))

    def _forfeit(self) -> None:
        if spending := self._reserve(self._ledger):
            self._ended(spending, spending.forfeit)

    def _void(self) -> None:
        if spending := self._reserve(self._ledger, begin=False):
            self._ended(spending, spending.void)

    def _run(self) -> None:
        """Keys that all workers share: whoever is first samples, the others read."""
        key, since = f"key {self._random.randrange(40)}", time.monotonic()
        try:
            release = self._ledger.run(Fixed(GUARANTEE, None, part="small"), on=lambda: os.urandom(8), key=key)
        except xp.BudgetExceeded:
            self._acknowledged("refused", since)
        else:
            self._acknowledged("released", since, entry=release.entry.id, key=key, value=release.value.hex())


def child(work: Callable[[], object]) -> int:
    """Do it in a forked process; its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"child failed: {error!r}\n".encode())
        os._exit(1)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def acknowledged(folder: Path) -> list[dict[str, Any]]:
    """Everything that any worker wrote down."""
    lines = [line for log in sorted(folder.glob("*.log")) for line in log.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def check(ledger: Ledger, told: list[dict[str, Any]], *, lost: int = 0) -> None:
    """Nothing acknowledged is lost, counters are the sum of entries, the audit trail verifies, no limit is passed."""
    ledger.verify()
    entries = {entry.id: entry for entry in ledger.entries()}
    values: dict[str, str] = {}
    for fact in told:
        if fact["what"] == "refused":
            continue
        entry = entries[fact["entry"]]
        if fact["what"] == "released":
            assert values.setdefault(fact["key"], fact["value"]) == fact["value"]
            again = ledger.run(Fixed(GUARANTEE, None, part="small"), key=fact["key"])
            assert (again.value.hex(), again.entry.id, entry.state) == (fact["value"], fact["entry"], "settled")
        elif fact["what"] != "reserve":
            assert (entry.state, str(entry.charged)) == (fact["what"], fact["charged"])
    for account in (ledger, *below(ledger)):
        mine, books = list(account.entries()), account._store.balances(account._path)[-1]
        assert books.charged == together(entry.amounts for entry in mine if entry.amounts is not None)
        assert books.reserved == together(entry.reserved_amounts for entry in mine if entry.state == "reserved")
        assert account.spent + account.reserved <= account.limit
    follows_the_model(ledger)
    linear(list(ledger.audit_trail()), told)


def below(ledger: Ledger) -> list[Ledger]:
    return [account for child in ledger.accounts for account in (child, *below(child))]


def follows_the_model(ledger: Ledger) -> None:
    """Ordered by the audit trail, everything happens in the reference model, too: the store in memory."""
    model: MemoryStore | None = None
    entries = {entry.id: entry for entry in ledger.entries()}
    for event in linked(ledger.audit_trail()):
        model = happen(model, event, entries)
    assert model is not None
    for account in (ledger, *below(ledger)):
        path = tuple(account.name.split("/"))
        assert model.balances(path) == ledger._store.balances(path)


def happen(model: MemoryStore | None, event: TrailLine, entries: dict[int, xp.ledger.Entry]) -> MemoryStore:
    body = event.body
    cost = {name: Cost.of_units(*body[name][:2]) for name in ("limit", "charged") if name in body}
    if event.kind == "create" or model is None:
        meters = LedgerMeters.from_json(body["accounting"]) if "accounting" in body else None
        return MemoryStore(body["name"], cost["limit"], body["neighbours"], meters=meters)
    path = tuple(body.get("account", "").split("/"))
    if event.kind == "account":
        model.create_account(path, cost["limit"])
    elif event.kind == "raise":
        note = Note(body["by"], body["reason"])
        model.raise_limit(path, cost["limit"], Cost.of_units(0, cost["limit"].delta_units), note)
    elif event.kind == "close":
        model.close(path, Note(body["by"], body["reason"]))
    elif event.kind == "reserve":
        assert event.entry is not None
        entry = entries[event.entry]
        request = entry.request
        assert request.account == path
        assert model.reserve(request, begin=body["begun"]).id == event.entry
    elif event.kind == "begin":
        model.begin(event.entry or 0)
    else:
        assert event.entry is not None
        part: Any = entries[event.entry].part
        if event.kind == "settle":
            entry = model.settle(event.entry, part, None)
        else:
            entry = (model.forfeit if event.kind == "forfeit" else model.void)(event.entry)
        assert entry.charged == cost["charged"]
        assert entry.amounts == Amounts(*body["charged"])
    return model


def linear(events: list[TrailLine], told: list[dict[str, Any]]) -> None:
    """The audit trail is an order that agrees with time: what ended before another began stands before it.

    And whoever was refused could have been refused at some instant of its waiting.
    """
    kinds = {"reserve": "reserve", "settled": "settle", "forfeited": "forfeit", "voided": "void"}
    place = {(event.kind, event.entry): event.sequence for event in events}
    known = [(place[kinds[f["what"]], f["entry"]], f["since"], f["until"]) for f in told if f["what"] in kinds]
    latest = 0.0
    for _, since, until in sorted(known):
        assert until >= latest, "an operation stands behind one that began after it had ended"
        latest = max(latest, since)
    refusals = [fact for fact in told if fact["what"] == "refused"]
    if not refusals:
        return
    full: list[bool] = []
    books = Replay()
    for event in events:
        books.apply(event)
        full.append(not GUARANTEE.worst_case <= books.accounts[(NAME,)].remaining)
    for fact in refusals:
        first = max((at for at, _, until in known if until < fact["since"]), default=1)
        last = min((at for at, since, _ in known if since > fact["until"]), default=len(events) + 1)
        assert any(full[first - 1 : last]), "refused while it would have fitted all the time"
