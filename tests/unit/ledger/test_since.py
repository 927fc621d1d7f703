"""What came after a known head is verified by itself, and what was changed by hand is found when it matters."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

import expost as xp
from books import GUARANTEE, OWNER, disarm, execute, make
from expost import Guarantee, Ledger
from expost.ledger import Settings
from expost.ledger.rows import _GUARANTEES
from expost.ledger.trail import Head, TrailLine
from expost.ledger.verify import since
from toys import Fixed


@pytest.mark.parametrize("seed", range(3))
def test_every_head_is_a_start(new_url: Callable[[], str], seed: int) -> None:
    """Whatever happened before and after a head, what follows it verifies."""
    ledger, chance = make(new_url(), epsilon=1000, delta=0.5, settings=Settings(page=5)), random.Random(seed)
    accounts, reserved, free = [ledger], list[Any](), Guarantee.uniform(0)
    for number in range(40):
        account = chance.choice(accounts)
        if number % 10 == 0:
            accounts.append(account.create_account(f"a{number}", epsilon=1000, delta=0.5))
        elif reserved and chance.random() < 0.5:
            spending = reserved.pop(chance.randrange(len(reserved)))
            chance.choice([spending.forfeit, spending.void, spending.begin])()
        else:
            reserved.append(account.reserve(chance.choice([GUARANTEE, free]), begin=False))
    ledger.raise_limit(epsilon=2000, **OWNER)
    last = ledger.verify()
    for event in ledger.audit_trail():
        assert ledger.verify(Head(event.sequence, event.hash), since=True) == last


def spent_again(ledger: Any, url: str) -> Head:
    head = forgotten(ledger, url)
    for _ in range(6):
        ledger.reserve(GUARANTEE).settle("large")
    return head


def forgotten(ledger: Any, url: str) -> Head:
    for _ in range(6):
        ledger.reserve(GUARANTEE).settle("large")
    head: Head = ledger.verify()
    disarm(url, "expost_account")
    execute(url, "UPDATE expost_account SET charged_epsilon = 0, charged_delta = 0")
    return head


def opened_again(ledger: Any, url: str) -> Head:
    account = ledger.create_account("a", epsilon=1)
    account.raise_limit(epsilon=3, **OWNER)
    account.close(**OWNER)
    head: Head = ledger.verify()
    disarm(url, "expost_account")
    execute(url, "UPDATE expost_account SET closed = 0, line = 3 WHERE path = 'study/a'")
    account.reserve(Guarantee.uniform(2)).settle("any")
    return head


def created_again(ledger: Any, url: str) -> Head:
    account = ledger.create_account("a", epsilon=1, delta=1e-3)
    account.reserve(GUARANTEE).settle("large")
    ledger.reserve(GUARANTEE).settle("small")
    head: Head = ledger.verify()
    disarm(url, "expost_account")
    execute(url, "UPDATE expost_account SET path = 'study/b' WHERE path = 'study/a'")
    ledger.create_account("a", epsilon=1, delta=1e-3).reserve(GUARANTEE).settle("large")
    return head


def voided(ledger: Any, url: str) -> Head:
    spending = ledger.reserve(GUARANTEE, begin=False)
    spending.begin()
    head: Head = ledger.verify()
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET begun = 0")
    ledger.reservation(spending.entry.id).void()
    return head


def ended_by_hand(ledger: Any, url: str) -> Head:
    mechanism = Fixed(GUARANTEE, 7, part="small")
    store = ledger._store
    store.reserve(ledger._request("run", mechanism, mechanism.guarantee, None, "k"), begin=True)
    head: Head = ledger.verify()
    disarm(url, "expost_entry")
    execute(
        url,
        "UPDATE expost_entry SET state = 'settled', part = '\"small\"', charged_epsilon = 0, "
        "charged_delta = reserved_delta, charged_renyi = 0, charged_normal = 0, charged_others = 0, "
        "charged_unpriced = 0, charged_foreign = 0, output = '666', digest = '', ended_line = 99",
    )
    return head


def rewritten(ledger: Any, url: str) -> Head:
    ledger.create_account("a", epsilon=1, delta=1e-3)
    for _ in range(3):
        ledger.reserve(GUARANTEE).settle("small")
    head: Head = ledger.verify()
    disarm(url, "expost_event")
    execute(url, "UPDATE expost_event SET line = replace(line, '\"limit\":[1', '\"limit\":[4') WHERE sequence = 2")
    ledger.account("a").reserve(GUARANTEE).settle("small")
    return head


def lines_removed(ledger: Any, url: str) -> Head:
    """Behind the head there is nothing, and before it a line is missing."""
    spending = ledger.reserve(GUARANTEE)
    head: Head = ledger.verify()
    spending.settle("small")
    disarm(url, "expost_event")
    execute(url, "DELETE FROM expost_event WHERE sequence = 2")
    return head


def first_line_removed(ledger: Any, url: str) -> Head:
    head = lines_removed(ledger, url)
    execute(url, "DELETE FROM expost_event WHERE sequence = 1")
    return head


def first_line_replaced(ledger: Any, url: str) -> Head:
    head = lines_removed(ledger, url)
    execute(url, "UPDATE expost_event SET line = replace(line, '\"create\"', '\"close\"') WHERE sequence = 1")
    return head


def guarantee_removed(ledger: Any, url: str) -> Head:
    ledger.reserve(GUARANTEE)
    head: Head = ledger.verify()
    ledger.reserve(GUARANTEE)
    disarm(url, "expost_guarantee")
    execute(url, "DELETE FROM expost_guarantee")
    return head


def guarantee_replaced(ledger: Any, url: str) -> Head:
    guarantee = Guarantee({"no others": 0.125, "have this": 0.25})
    ledger.reserve(guarantee)
    head: Head = ledger.verify()
    ledger.reserve(guarantee)
    disarm(url, "expost_guarantee")
    execute(url, "UPDATE expost_guarantee SET json = replace(json, '0.125', '0.0125')")
    _GUARANTEES.clear()
    return head


def end_removed(ledger: Any, url: str) -> Head:
    """The head is behind the last line."""
    ledger.reserve(GUARANTEE)
    head: Head = ledger.verify()
    for table in ("expost_event", "expost_account"):
        disarm(url, table)
    execute(url, "DELETE FROM expost_event WHERE sequence = 2", "UPDATE expost_account SET line = 1")
    return head


def own_row_removed(ledger: Any, url: str) -> Head:
    head: Head = ledger.verify()
    for table in ("expost_event", "expost_account", "expost_ledger"):
        disarm(url, table)
    execute(url, *(f"DELETE FROM expost_{table}" for table in ("event", "account", "ledger")))
    return head


@pytest.mark.parametrize(
    "tamper",
    [
        spent_again,
        forgotten,
        opened_again,
        created_again,
        voided,
        ended_by_hand,
        rewritten,
        lines_removed,
        first_line_removed,
        first_line_replaced,
        guarantee_removed,
        guarantee_replaced,
        end_removed,
        own_row_removed,
    ],
)
def test_tampering_is_found_from_a_head(new_url: Callable[[], str], tamper: Callable[[Any, str], Head]) -> None:
    """Found: the balance at the head was read from whichever line the tables named, and ε 9 of 5 passed."""
    url = new_url()
    ledger = make(url)
    head = tamper(ledger, url)
    with pytest.raises(xp.errors.LedgerCorrupt):
        ledger.verify(head, since=True)


def test_only_what_is_needed_is_read(new_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(new_url(), epsilon=1000, settings=Settings(page=5))
    for _ in range(20):
        ledger.reserve(GUARANTEE).settle("small")
    head = ledger.verify()
    ledger.reserve(GUARANTEE).settle("small")
    met: list[int] = []
    real = since.Past._meet

    def meet(past: Any, event: TrailLine) -> None:
        met.append(event.sequence)
        real(past, event)

    monkeypatch.setattr(since.Past, "_meet", meet)
    assert ledger.verify(head, since=True).sequence == 43
    assert met == [41, 40]
    ledger.create_account("a", epsilon=1)
    ledger.verify(head, since=True)
    assert met[2:] == list(range(41, 0, -1))


def test_without_a_head_there_is_nothing_to_start_at() -> None:
    with pytest.raises(xp.InvalidValue, match="starts at a head that was noted earlier: pass it as known="):
        Ledger(epsilon=1).verify(since=True)


class Reader(Ledger):
    """Notes where a trail is read from."""

    asked: ClassVar[list[int]] = []

    def audit_trail(self, after: int = 0) -> Iterator[TrailLine]:
        self.asked.append(after)
        return super().audit_trail(after)


def test_the_head_is_read_from_the_end(new_url: Callable[[], str]) -> None:
    """Also of an account, and where the last line is about an account only."""
    Reader.asked.clear()
    url = new_url()
    ledger = make(url)
    for _ in range(20):
        ledger.reserve(Guarantee.uniform("0.001")).settle("any")
    reader = Reader.load(url, "study")
    assert reader.head == ledger.verify()
    ledger.create_account("a", epsilon=1).close(by="me", reason="done")
    assert reader.head == ledger.account("a").head == ledger.verify()
    assert Reader.asked[0] == 40
    assert Reader.asked[1] >= 40


def test_the_head_of_a_new_ledger_in_memory() -> None:
    ledger = Ledger(epsilon=1)
    assert ledger.head == ledger.verify() == (1, next(ledger.audit_trail()).hash)
