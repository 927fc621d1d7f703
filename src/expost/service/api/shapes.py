"""Records of the library as replies."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from expost.ledger import Entry
from expost.service.jobs import ServiceJob
from expost.study.answers import plain
from expost.study.kinds import KINDS
from expost.study.plan import Plan, PlanLine


def moment(microseconds: int) -> str:
    """A time, for people and programs."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def job_reply(job: ServiceJob) -> dict[str, Any]:
    """A job as its owner sees it: nothing of its result before it was answered."""
    answered = job.delivered_at is not None
    state = "done" if answered else "accepted" if job.state == "done" else job.state
    return {
        "id": job.id,
        "account": job.account,
        "key": job.key,
        "data": job.data,
        "state": state,
        "accepted_at": moment(job.accepted_at),
        "answered_at": None if job.delivered_at is None else moment(job.delivered_at),
        "questions": asked_names(job),
        "result": json.loads(job.result) if answered and job.result else None,
        "review": json.loads(job.decision) if job.decision and (answered or job.state == "accepted") else None,
    }


def asked_names(job: ServiceJob) -> list[str]:
    """The names of a job's questions, where they came as JSON."""
    questions = json.loads(job.body).get("questions") or []
    return [str(each.get("name", "")) for each in questions]


def plan_reply(plan: Plan) -> dict[str, Any]:
    """A plan."""
    return {
        "questions": [_line(line) for line in plan.lines],
        "before": plan.before.to_json(),
        "remaining_worst": plan.worst.to_json(),
        "remaining_best": plan.best.to_json(),
        "fits": plan.fits,
    }


def _line(line: PlanLine) -> dict[str, Any]:
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


def entry_reply(entry: Entry) -> dict[str, Any]:
    """An entry, without keys: they belong to whoever asked."""
    return {
        "entry": entry.id,
        "when": entry.when.isoformat().replace("+00:00", "Z"),
        "account": entry.account,
        "what": entry.what,
        "operation": entry.operation,
        "state": entry.state,
        "part": plain(entry.part),
        "reserved": entry.reserved.to_json(),
        "charged": None if entry.charged is None else entry.charged.to_json(),
        "refunded": None if entry.refunded is None else entry.refunded.to_json(),
    }


def kinds_reply() -> list[dict[str, Any]]:
    """Every kind of question, and its keys."""
    return [
        {
            "name": kind.name,
            "help": kind.help,
            "keys": [
                {
                    "name": key.name,
                    "type": key.type,
                    "help": key.help,
                    "required": key.required,
                    "choices": list(key.choices),
                }
                for key in kind.keys
            ],
            "delta": kind.delta,
            "example": kind.example,
        }
        for kind in KINDS.values()
    ]
