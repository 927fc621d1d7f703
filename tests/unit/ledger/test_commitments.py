"""What the audit trail says of an output: nothing that shows it, and enough to notice another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from books import GUARANTEE, disarm, execute, make
from expost import Ledger
from expost.canonical import sha256
from expost.errors import LedgerCorrupt
from expost.ledger import codec
from toys import Fixed

ANSWER = 17_884


def published(url: str, name: str = "study") -> Ledger:
    ledger = make(url, name=name)
    ledger.run(Fixed(GUARANTEE, ANSWER, part="small"), key="count")
    return ledger


def commitment(ledger: Ledger) -> str:
    """What the trail has of its last output."""
    digest = [event.body["output"] for event in ledger.audit_trail() if event.kind == "settle"][-1]
    assert isinstance(digest, str)
    return digest


def test_whoever_reads_the_trail_cannot_try_all_answers(new_url: Callable[[], str]) -> None:
    ledger = published(new_url())
    tried = {sha256(codec.encode(answer)) for answer in range(ANSWER - 100, ANSWER + 100)}
    assert sha256(codec.encode(ANSWER)) in tried
    assert commitment(ledger) not in tried


def test_equal_answers_look_different(new_url: Callable[[], str]) -> None:
    url = new_url()
    assert commitment(published(url)) != commitment(published(url, "other"))


def test_an_export_has_neither_output_nor_nonce(new_url: Callable[[], str], tmp_path: Path) -> None:
    url = new_url()
    ledger = published(url)
    ledger.export(tmp_path / "trail.jsonl")
    text = (tmp_path / "trail.jsonl").read_text()
    assert commitment(ledger) in text
    assert "nonce:" not in text
    *lines, _ = [json.loads(each) for each in text.splitlines()]
    assert str(ANSWER) not in json.dumps([each["line"]["body"].get("output") for each in lines])
    assert ledger.run(Fixed(GUARANTEE, ANSWER, part="small"), key="count").replayed


@pytest.mark.parametrize("change", ["replace(output, '17884', '17885')", "'nonce:' || substr(output, 8) || ' '"])
def test_another_output_or_nonce_is_noticed(new_url: Callable[[], str], change: str) -> None:
    url = new_url()
    ledger = published(url)
    ledger.verify()
    disarm(url, "expost_entry")
    execute(url, f"UPDATE expost_entry SET output = {change}")
    with pytest.raises(LedgerCorrupt):
        ledger.verify()
    with pytest.raises(LedgerCorrupt):
        ledger.output("count")
