"""What was published from a ledger: every stored answer, also of questions that were edited or removed since."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from expost.errors import ExpostError
from expost.frame import Frame, csv_text, plain
from expost.ledger import Entry, Ledger
from expost.ledger.entry import Used
from expost.ledger.paid import is_derived
from expost.reporting.record import NOT_KEPT
from expost.reporting.rows import NumberLine, key_text, named, number_lines, words_of
from expost.study.key import ledger_key, parts_of
from expost.study.model import Study


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
    frame: Frame | None
    """Its rows, as its release had them; None if its output was dropped from the ledger."""
    charged: Used
    """Noise that takes no δ has no ε, but a ρ, or a Rényi price."""

    @property
    def text(self) -> str:
        """In words, on one line."""
        return NOT_KEPT if self.frame is None else words_of(self.frame)

    @property
    def lines(self) -> list[NumberLine]:
        """A line for each of its numbers, and for what is there instead of one."""
        if self.frame is None:
            return [NumberLine("", {}, None, note=NOT_KEPT)]
        return number_lines(self.frame) or [NumberLine("", {}, None, note="none")]


def published(ledger: Ledger, study: Study | None = None) -> list[PublishedAnswer]:
    """What a ledger or account has published under keys, in order of reservation. Charges nothing."""
    asked = None if study is None else {ledger_key(study, question) for question in study.questions}
    return [_published(ledger, entry, asked) for entry in ledger.entries() if entry.state == "settled" and entry.key]


def _published(ledger: Ledger, entry: Entry, asked: set[str] | None) -> PublishedAnswer:
    assert entry.key is not None
    _, charged, _ = entry.used
    assert charged is not None
    parts = parts_of(entry.key)
    known = entry.what if is_derived(entry.key) else entry.key
    question = known if parts is None else parts.question
    frame = _frame(ledger, entry.key)
    return PublishedAnswer(
        entry.id,
        entry.when,
        entry.account,
        question,
        entry.what,
        "" if parts is None else parts.version,
        None if asked is None else parts is not None and parts.first_attempt in asked,
        None if frame is None else named(frame, question if parts is None else parts.name),
        charged,
    )


def _frame(ledger: Ledger, key: str) -> Frame | None:
    try:
        return ledger.frame(key)
    except ExpostError:
        return None


_ABOUT = ("entry", "when", "account", "question", "label", "version", "current")
_NUMBER = ("value", "low", "high", "error")
_PAID = ("epsilon", "delta", "rho")


def as_rows(answers: Iterable[PublishedAnswer]) -> list[dict[str, Any]]:
    """A row for each number, for other programs; the columns of keys apart."""
    return [_row(answer, line) for answer in answers for line in answer.lines]


def _row(answer: PublishedAnswer, line: NumberLine) -> dict[str, Any]:
    about = {name: getattr(answer, name) for name in _ABOUT} | {"when": answer.when.isoformat()}
    number = {name: plain(getattr(line, name)) for name in _NUMBER}
    return {**about, "what": line.what, "keys": line.keys, **number, "note": line.note, **_paid(answer.charged)}


def _paid(charged: Used) -> dict[str, Any]:
    """ε, unless it is noise that has none, δ, and its ρ: of the whole answer, once for all of its numbers."""
    cost = charged.cost.to_json()
    return {**cost, "epsilon": None, "rho": charged.rho_text} if charged.is_noise else {**cost, "rho": None}


def as_csv(answers: Iterable[PublishedAnswer]) -> str:
    """A line for each number. Questions have different keys: here they are one column, of values side by side."""
    names = [*_ABOUT, "what", "key", *_NUMBER, "note", *_PAID]
    rows = ({**row, "key": key_text([*row["keys"].values()])} for row in as_rows(answers))
    return csv_text([names, *([_cell(row[name]) for name in names] for row in rows)])


def _cell(value: Any) -> Any:
    """A list, as in models, is JSON in its cell."""
    return json.dumps(value, ensure_ascii=False, default=list) if isinstance(value, list | tuple) else value
