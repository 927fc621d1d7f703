"""Records of the library as replies."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from expost.frame import plain
from expost.ledger import Entry
from expost.service.jobs import ServiceJob
from expost.study.kinds import KINDS

_STATE = re.compile(r'\{"state": "(\w+)"')


def moment(microseconds: int) -> str:
    """A time, for people and programs."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def job_line(job: ServiceJob) -> dict[str, Any]:
    """A job as its owner sees it in a list, without its result."""
    answered = job.delivered_at is not None
    state = "done" if answered else "review" if job.state == "review" else "accepted"
    return {
        "id": job.id,
        "account": job.account,
        "key": job.key,
        "data": job.data,
        "state": state,
        "accepted_at": moment(job.accepted_at),
        "starts_at": None if state == "review" else moment(job.starts_at),
        "due_at": None if state == "review" else moment(job.due_at),
        "answered_at": None if job.delivered_at is None else moment(job.delivered_at),
        "questions": asked_names(job),
        "outcome": _outcome(job) if answered else None,
        "review": _review(job) if job.decision and (answered or job.state != "review") else None,
    }


def job_text(job: ServiceJob) -> str:
    """A job as its owner sees it, in JSON. Its result is the text that was kept, once it was answered."""
    line = json.dumps(job_line(job), ensure_ascii=False)
    result = job.result if job.delivered_at is not None and job.result else "null"
    return f'{line[:-1]}, "result": {result}}}'


def review_text(job: ServiceJob) -> str:
    """A job as its custodians see it, in JSON: what it asks, and what that would have cost when it was asked."""
    line = {"job": job.id, "account": job.account, "data": job.data, "accepted_at": moment(job.accepted_at)}
    return f'{json.dumps(line, ensure_ascii=False)[:-1]}, "asked": {job.body}, "plan": {job.plan}}}'


def _outcome(job: ServiceJob) -> str | None:
    """How a job ended, from the first words of its result."""
    found = _STATE.match(job.result or "")
    return found[1] if found else None


def _review(job: ServiceJob) -> dict[str, str]:
    found = json.loads(job.decision or "{}")
    return {name: found[name] for name in ("verdict", "by", "token", "reason")}


def asked_names(job: ServiceJob) -> list[str]:
    """The names of a job's questions, where they came as JSON."""
    questions = json.loads(job.body).get("questions") or []
    return [str(each.get("name", "")) for each in questions]


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
