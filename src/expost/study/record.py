"""What a run leaves behind: a record in plain JSON, from which reports are made. Released values only."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from expost._version import __version__
from expost.accounting.amounts import Amounts
from expost.cost import decimal_text
from expost.errors import InvalidValue
from expost.ledger import Ledger, MeterReading
from expost.ledger.entry import Used
from expost.ledger.reports import promised
from expost.study.kinds import KINDS
from expost.study.run import Outcome, Receipt, Result

VERSION = 1
_PASSWORD = re.compile(r"://[^\s/@\"]+@")


def record_of(result: Result) -> dict[str, Any]:
    """The record of a run."""
    study, ledger = result.study, result.ledger
    return {
        "expost record": VERSION,
        "title": f"Rehearsal: {study.title}" if result.rehearsal else study.title,
        "study": study.file.name,
        "when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "data": {"path": study.data.path, "version": study.data.version},
        "privacy": {
            "unit": study.privacy.unit,
            "who": study.privacy.whose,
            "rows": study.privacy.rows,
            "neighbours": study.privacy.neighbours,
            "size": result.size,
        },
        "ledger": {"name": ledger.name, "head": str(ledger.head), "durable": study.ledger.url != "memory:",
                   "limit": ledger.limit.to_json(), "spent": ledger.spent.to_json(),
                   "remaining": ledger.remaining.to_json(), "whole": _whole(ledger),
                   "meters": [_meter(reading) for reading in ledger.meters]},
        "expost": __version__,
        "text": _PASSWORD.sub("://…@", study.text),
        "questions": [_without_epsilon(outcome_record(outcome)) for outcome in result.outcomes],
        "asked": result.asked,
        "answered": result.answered,
        "withheld": result.asked - result.answered,
        "classic": result.classic,
        "rehearsal": result.rehearsal,
        "stopped": None if result.error is None else str(result.error),
    }  # fmt: skip


def record_text(record: Mapping[str, Any]) -> str:
    """A record as JSON."""
    return json.dumps(record, indent=1, ensure_ascii=False, default=plain_value) + "\n"


def write_record(record: Mapping[str, Any], path: Path) -> None:
    """Write a record, as a whole or not at all."""
    text = record_text(record)
    draft = path.with_name(path.name + ".new")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}") from None


def read_record(path: Path) -> dict[str, Any]:
    """The record in a file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise InvalidValue(f"there is no record of a run in {path}: expost run writes it") from None
    if not isinstance(record, dict) or record.get("expost record") != VERSION:
        raise InvalidValue(f"{path} is not a record of a run: expost run writes it")
    return record


def noted_ledger(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """The ledger of a record, and the end of its audit trail then; None if it was not a durable one."""
    try:
        kept = record["ledger"]
        if not kept.get("durable") or "head" not in kept:
            return None
        name, head = kept["name"], kept["head"]
        int(head.partition(":")[0])
        return name.strip("/"), head
    except (LookupError, TypeError, AttributeError, ValueError):
        raise InvalidValue("the record of this run is not complete: expost run writes it") from None


def record_path(study: Path) -> Path:
    """Where the record of a study's last run is kept."""
    return study.with_suffix(".run.json")


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """What became of a question, in plain JSON."""
    question, answer = outcome.question, outcome.answer
    return {
        "name": question.name,
        "kind": question.kind,
        "label": question.label,
        "state": outcome.state,
        "why": outcome.why,
        "text": "" if answer is None else answer.text,
        "value": None if answer is None else answer.value,
        "error": None if answer is None else answer.error,
        "outcomes": [] if answer is None else list(answer.outcomes),
        "how": outcome.how,
        "notice": "" if answer is None else answer.notice,
        "drowned": answer is not None and answer.drowned,
        "frame": None if answer is None or answer.frame is None else answer.frame.to_json(),
        "beside": None if answer is None else answer.beside,
        "labels": [] if answer is None else list(answer.labels),
        "from_zero": KINDS[question.kind].from_zero,
        "asked": outcome.asked_cost.to_json(),
        "receipts": [_receipt(receipt) for receipt in outcome.receipts],
    }


def _without_epsilon(question: dict[str, Any]) -> dict[str, Any]:
    """Where noise has no ε, none is said, rather than 0: ``used`` has its ρ."""
    receipts = question["receipts"]
    for receipt in receipts:
        if "used" in receipt and receipt["charged"]["epsilon"] == "0":
            receipt |= {name: {**receipt[name], "epsilon": None} for name in ("reserved", "charged", "refunded")}
    if receipts and all(receipt["charged"]["epsilon"] is None for receipt in receipts):
        question["asked"] = {**question["asked"], "epsilon": None}
    return question


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        "entry": receipt.entry,
        "what": receipt.what,
        "reserved": receipt.reserved.to_json(),
        "charged": receipt.charged.to_json(),
        "refunded": receipt.refunded.to_json(),
        "stored": receipt.stored,
        **({} if receipt.amounts is None else _on_meters(receipt.amounts)),
    }


def _on_meters(amounts: Amounts) -> dict[str, str]:
    """The Rényi price; and what was used, if it has no ε."""
    used = Used.of(amounts)
    return {"renyi": decimal_text(amounts.renyi, 12)} | ({"used": str(used)} if used.is_noise else {})


def _whole(ledger: Ledger) -> dict[str, Any]:
    """The ledger that an account is of: what is promised to people is its limit."""
    name, limit = promised(ledger)
    return {"name": name, "limit": limit.to_json()}


def _meter(reading: MeterReading) -> dict[str, Any]:
    capacity = None if reading.capacity is None else decimal_text(reading.capacity, 12)
    used = decimal_text(reading.spent + reading.reserved, 12)
    return {"name": reading.name, "capacity": capacity, "used": used, "full": reading.is_full}


def plain_value(value: Any) -> Any:
    """A number of numpy as JSON knows it; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
