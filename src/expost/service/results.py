"""What a job would cost, and what became of it, in plain JSON: answers, receipts, and why something was refused.

Released values only.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import isfinite
from typing import Any

from expost.cost import Cost
from expost.errors import EngineFailed, ExpostError
from expost.ledger.codec import encode
from expost.mechanism import Release
from expost.service.problems import incident, problem_of
from expost.study.plan import Plan, PlanLine
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


def failed_text(error: Exception) -> str:
    """The result of a job that ended with a bug, whose words may quote data: an incident, and no more."""
    problem = incident(error)
    return result_text(ended("failed", problem.detail, problem.body()))


def result_text(result: dict[str, Any]) -> str:
    """As it is kept, and sent: text that every database and every connection can encode.

    What JSON has no number for is a text. A half of a surrogate pair, which stands for a byte of a key that was found
    in data, is written as JSON's escape for it.
    """
    try:
        text = json.dumps(result, ensure_ascii=False, default=plain_value, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(result), ensure_ascii=False, default=plain_value, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()


def charged_in(result: str) -> Cost:
    """What a job was charged, by its result."""
    found = json.loads(result)
    receipts = [receipt for question in found["questions"] for receipt in question["receipts"]]
    paid = [receipt["charged"] for receipt in receipts if not receipt["stored"] and receipt["charged"] is not None]
    lost = (found["problem"] or {}).get("charged")
    return sum(map(Cost.from_json, [*paid, *([] if lost is None else [lost])]), Cost(0))


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
    return {"part": encode(release.part), "output": encode(release.output), "when": release.entry.reserved_at}


# ---- plans


def plan_reply(plan: Plan) -> dict[str, Any]:
    """A plan."""
    return {
        "questions": [_planned(line) for line in plan.lines],
        "before": plan.before.to_json(),
        "remaining_worst": plan.worst.to_json(),
        "remaining_best": plan.best.to_json(),
        "fits": plan.fits,
    }


def _planned(line: PlanLine) -> dict[str, Any]:
    question = line.question
    return {
        "name": question.name,
        "kind": question.kind,
        "label": question.label,
        "worst": None if line.worst is None else line.worst.to_json(),
        "best": None if line.best is None else line.best.to_json(),
        "fit": line.fit,
        "why": line.why,
        "expected": None if line.accuracy is None else str(line.accuracy),
    }
