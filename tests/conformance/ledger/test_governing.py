"""What owners and auditors do with every store."""

import hashlib
import json
from pathlib import Path

import pytest

import expost as xp
from books import GUARANTEE, OWNER, NewLedger, settle
from expost import Cost, Guarantee
from expost.ledger.verify.lines import replay


def test_a_limit_is_raised_by_somebody_for_a_reason(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    alice = ledger.create_account("alice", epsilon=0.5)
    with pytest.raises(xp.BudgetExceeded):
        alice.reserve(Guarantee.uniform(0.75))
    alice.raise_limit(epsilon=0.75, by="the board", reason="a second wave")
    settle(alice, Guarantee.uniform(0.75), "any")
    assert (alice.limit, alice.remaining) == (Cost(0.75), Cost(0))
    ledger.raise_limit(delta=1e-5, by="the board", reason="δ of the new study")
    assert ledger.limit == Cost(1, delta=1e-5)
    for less in ({"epsilon": 0.5}, {"delta": 1e-9}, {"epsilon": 5, "delta": 0}):
        with pytest.raises(xp.InvalidValue, match="can only be raised"):
            ledger.raise_limit(**less, by="the board", reason="thrift")
    with pytest.raises(xp.InvalidValue, match="pass epsilon= or delta="):
        ledger.raise_limit(by="the board", reason="none")
    with pytest.raises(xp.InvalidValue, match="a reason is"):
        ledger.raise_limit(epsilon=9, by="the board", reason="")
    told = [event.body for event in ledger.audit_trail() if event.kind == "raise"]
    assert told == [
        {"account": "ledger/alice", "limit": [75 * 10**10, 0], "by": "the board", "reason": "a second wave"},
        {"account": "ledger", "limit": [10**12, 10**13], "by": "the board", "reason": "δ of the new study"},
    ]
    ledger.verify()


def test_a_closed_ledger_reserves_nothing_more(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    alice, bob = ledger.create_account("alice", epsilon=0.5), ledger.create_account("bob", epsilon=0.5)
    spending = alice.reserve(Guarantee({"a": 0.25, "b": 0.1}))
    alice.close(by="the board", reason="she left")
    for guarantee in (Guarantee.uniform(0.1), Guarantee.uniform(0)):
        with pytest.raises(xp.errors.LedgerClosed, match="'ledger/alice' was closed by its owner"):
            alice.reserve(guarantee)
    assert (alice.closed, alice.remaining, ledger.closed) == (True, Cost(0), False)
    assert spending.settle("b").charged == Cost(0.1)
    settle(bob, Guarantee.uniform(0.1), "any")
    ledger.close(by="the board", reason="the study is over")
    with pytest.raises(xp.errors.LedgerClosed, match="'ledger' was closed"):
        bob.reserve(Guarantee.uniform(0.1))
    assert bob.closed
    assert ledger.statement().endswith("closed")
    assert [event.body["reason"] for event in ledger.audit_trail() if event.kind == "close"] == [
        "she left",
        "the study is over",
    ]
    ledger.verify()


def test_who_creates_accounts_and_what_was_done_elsewhere_is_recorded(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5)
    alice = ledger.create_account("alice", epsilon=3, by="token 1 (Carol)", reason='a new "team"')
    ledger.create_account("bob", epsilon=3)
    before = alice.limit, alice.spent
    alice.close(**OWNER)
    alice.remark(by="token 2 (Dave)", reason="declined a job")
    ledger.close(**OWNER)
    ledger.remark(by="token 1 (Carol)", reason="revoked token 2")
    assert (alice.limit, alice.spent) == before
    told = [(event.kind, event.body.get("account"), event.body.get("by")) for event in ledger.audit_trail()]
    assert told[1:] == [
        ("account", "ledger/alice", "token 1 (Carol)"),
        ("account", "ledger/bob", None),
        ("close", "ledger/alice", "me"),
        ("remark", "ledger/alice", "token 2 (Dave)"),
        ("close", "ledger", "me"),
        ("remark", "ledger", "token 1 (Carol)"),
    ]
    ledger.verify()
    books, head = replay(ledger.audit_trail())
    assert head == ledger.head
    assert books.accounts["ledger", "alice"].closed
    with pytest.raises(xp.InvalidValue):
        ledger.remark(by="", reason="r")
    with pytest.raises(xp.InvalidValue):
        ledger.create_account("eve", epsilon=1, by="x", reason="")


def test_the_audit_trail_adds_up(new_ledger: NewLedger, tmp_path: Path) -> None:
    ledger = new_ledger(epsilon=5, delta=1e-5, name="study", unit="person", neighbours="add-remove")
    alice = ledger.create_account("alice", epsilon=3, delta=1e-5)
    settle(alice, GUARANTEE)
    noted = ledger.verify()
    alice.reserve(GUARANTEE, begin=False).void()
    ledger.run(xp.mechanisms.Coin(epsilon=1, sensitivity=1, heads=1), on=3, key="k")
    waiting = ledger.reserve(GUARANTEE, begin=False)
    waiting.begin()
    waiting.forfeit()
    ledger.reserve(Guarantee.uniform(0.5))
    head = ledger.verify(known=noted)
    kinds = "create account reserve settle reserve void reserve settle reserve begin forfeit reserve"
    assert " ".join(event.kind for event in ledger.audit_trail()) == kinds
    books, again = replay(ledger.audit_trail())
    assert again == head == ledger.export(tmp_path / "trail.jsonl")
    own = books.accounts["study",]
    assert (own.limit, own.charged.cost, own.reserved.cost) == (ledger.limit, ledger.spent, ledger.reserved)
    assert books.accounts["study", "alice"].charged.cost == Cost(0.25, delta="1e-6")
    *lines, end = [json.loads(line) for line in (tmp_path / "trail.jsonl").read_text().splitlines()]
    assert [line["line"]["sequence"] for line in lines] == list(range(1, 13))
    guarantees: dict[str, object] = {}
    for body in (line["line"]["body"] for line in lines if line["line"]["event"] == "reserve"):
        digest = body["guarantee_digest"]
        guarantees[digest] = body.get("guarantee") or guarantees[digest]  # whole in the first line that has it
        assert Guarantee.from_json(guarantees[digest]).worst_case == Cost.of_units(*body["worst"])
    before = "0" * 64
    for line in lines:  # as anyone can, without expost
        text = json.dumps(line["line"], sort_keys=True, separators=(",", ":"))
        before = hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
        assert line["hash"] == before
    assert before == head.hash
    assert end == {"end": f"12:{before}"} == {"end": str(head)}
    with pytest.raises(xp.errors.LedgerCorrupt, match="was rewritten"):
        ledger.verify(known=noted._replace(hash="0" * 64))
    with pytest.raises(xp.errors.LedgerCorrupt, match="old backup"):
        ledger.verify(known=head._replace(sequence=99))


def test_a_statement_by_day(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta=1e-5, name="study")
    alice = ledger.create_account("alice", epsilon=3, delta=1e-5)
    for account in (ledger, alice, alice):
        settle(account, GUARANTEE)
    ledger.reserve(Guarantee.uniform(1))
    lines = ledger.statement(by="day").splitlines()
    assert lines[0].split() == ["day", "account", "reserved", "charged", "refunded"]
    assert " ".join(lines[2].split()[1:]) == "study ε 1.75, δ 1e-6 ε 0.25, δ 1e-6 ε 0.5"
    assert " ".join(lines[3].split()[1:]) == "study/alice ε 1.5, δ 2e-6 ε 0.5, δ 2e-6 ε 1"
    with pytest.raises(xp.InvalidValue, match="by 'entry' or by 'day'"):
        ledger.statement(by="week")


def test_leases_are_positive_numbers(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    for wrong in (0, -1, True, "soon", float("nan")):
        with pytest.raises(xp.InvalidValue, match="a lease is"):
            ledger.reserve(Guarantee.uniform(0.1), lease=wrong)
    ledger.reserve(Guarantee.uniform(0.1), lease=60, key="k")
    assert ledger.recover() == 0
    assert ledger.reservation("k").settle("any").charged == Cost(0.1)
