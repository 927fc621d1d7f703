"""What became of a job, in plain JSON: answers, receipts, and why something was refused. Released values only."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isfinite
from typing import Any

from expost.errors import EngineFailed, ExpostError
from expost.ledger.codec import encode
from expost.mechanism import Release
from expost.service.problems import problem_of
from expost.study.record import outcome_record, plain_value
from expost.study.run import Outcome

CHANGED = "the data set was changed after this job was accepted: ask again, under a new key"


def result_of(outcomes: tuple[Outcome, ...], error: ExpostError | None) -> dict[str, Any]:
    """The result of a job that was run."""
    problem = None if error is None else problem_of(error)
    if problem is not None:
        outcomes = tuple(_without_names(outcome, str(error), problem.detail) for outcome in outcomes)
    asked = [outcome for outcome in outcomes if outcome.state in ("answered", "withheld")]
    return {
        "state": "answered" if problem is None else "lost" if isinstance(error, EngineFailed) else "refused",
        "questions": [_question(outcome) for outcome in outcomes],
        "asked": len(asked),
        "answered": sum(outcome.state == "answered" for outcome in asked),
        "problem": None if problem is None else problem.body(),
    }


def ended(state: str, detail: str, problem: dict[str, Any] | None = None) -> dict[str, Any]:
    """The result of a job that was never run: declined, refused or failed."""
    body = problem or {"type": "about:blank", "title": "Not asked", "status": 409, "detail": detail}
    return {"state": state, "questions": [], "asked": 0, "answered": 0, "problem": body}


def result_text(result: dict[str, Any]) -> str:
    """As it is kept. What JSON has no number for is a text."""
    try:
        return json.dumps(result, ensure_ascii=False, default=plain_value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(result), ensure_ascii=False, default=plain_value, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _without_names(outcome: Outcome, words: str, instead: str) -> Outcome:
    return replace(outcome, why=instead) if outcome.why == words else outcome


def _question(outcome: Outcome) -> dict[str, Any]:
    record = outcome_record(outcome)
    for receipt, kept in zip(outcome.receipts, record["receipts"], strict=True):
        kept |= _published(receipt.release)
    return record


def _published(release: Release | None) -> dict[str, Any]:
    """The part and the output itself, for clients that want the same as from a local ledger."""
    if release is None:
        return {"part": None, "output": None, "when": None}
    return {"part": encode(release.part), "output": encode(release.value), "when": release.entry.reserved_at}
