"""What was published from a ledger: every stored answer, also of questions that were edited or removed since."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any

import numpy as np

from expost.errors import ExpostError
from expost.frame import ABOVE, csv_text
from expost.ledger import Entry, Ledger
from expost.ledger.entry import Used
from expost.mechanism import WITHHELD
from expost.mechanisms import AboveMask
from expost.study.key import ledger_key, parts_of
from expost.study.model import Study

NOT_KEPT = "not kept"
"""In place of an output that was dropped from the ledger."""


@dataclass(frozen=True)
class PublishedAnswer:
    """One stored answer."""

    entry: int
    when: datetime
    account: str
    question: str
    label: str
    version: str
    """Of the data, if a study asked."""
    current: bool | None
    """Whether the study asks this question as it is now; None if no study was given."""
    value: Any
    """In plain JSON."""
    charged: Used
    """Noise that takes no δ has no ε, but a ρ, or a Rényi price."""


def published(ledger: Ledger, study: Study | None = None) -> list[PublishedAnswer]:
    """What a ledger or account has published under keys, in order of reservation. Charges nothing."""
    asked = None if study is None else {ledger_key(study, question) for question in study.questions}
    return [_published(ledger, entry, asked) for entry in ledger.entries() if entry.state == "settled" and entry.key]


def _published(ledger: Ledger, entry: Entry, asked: set[str] | None) -> PublishedAnswer:
    assert entry.key is not None
    _, charged, _ = entry.used
    assert charged is not None
    parts = parts_of(entry.key)
    return PublishedAnswer(
        entry.id,
        entry.when,
        entry.account,
        entry.key if parts is None else parts.question,
        entry.what,
        "" if parts is None else parts.version,
        None if asked is None else parts is not None and parts.first_attempt in asked,
        _value(ledger, entry.key),
        charged,
    )


def _value(ledger: Ledger, key: str) -> Any:
    try:
        return plain(ledger.output(key))
    except ExpostError:
        return NOT_KEPT


def plain(value: Any) -> Any:
    """A published value in JSON's terms."""
    if value is WITHHELD:
        return "withheld"
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, AboveMask):
        columns = value.frame.to_dict()
        return {name: columns[name] for name in (ABOVE, "gap")} if "gap" in columns else columns[ABOVE]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def as_rows(answers: Iterable[PublishedAnswer]) -> list[dict[str, Any]]:
    """Answers as rows for other programs."""
    rows = [{**vars(answer), "when": answer.when.isoformat(), **_paid(answer.charged)} for answer in answers]
    for row in rows:
        del row["charged"]
    return rows


def _paid(charged: Used) -> dict[str, Any]:
    """ε, unless it is noise that has none, δ, and its ρ."""
    cost = charged.cost.to_json()
    return {**cost, "epsilon": None, "rho": charged.rho_text} if charged.is_noise else {**cost, "rho": None}


def as_csv(answers: Iterable[PublishedAnswer]) -> str:
    """Answers as CSV; a value is JSON in its field, and a number is itself."""
    rows = as_rows(answers)
    names = ["entry", "when", "account", "question", "label", "version", "current", "value", "epsilon", "delta", "rho"]
    valued = ({**row, "value": json.dumps(row["value"], ensure_ascii=False)} for row in rows)
    return csv_text([names, *([row[name] for name in names] for row in valued)])
