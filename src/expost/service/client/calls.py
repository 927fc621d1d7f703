"""What a client says to a service, without any input or output: steps that yield requests and are sent replies."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import expost.errors as errors
from expost.cost import Cost
from expost.errors import BudgetExceeded, ExpostError, InvalidValue, KeyConflict, LedgerClosed, UnknownEntry
from expost.guarantee import Guarantee
from expost.ledger import Entry, Quote, Request
from expost.ledger.codec import decode
from expost.mechanism import Mechanism, Release
from expost.service.client.wording import worded

WAIT = 30
"""Seconds for which one request waits for an answer."""


@dataclass(frozen=True)
class HttpCall:
    """One request. All of them may be sent again: a job has a key."""

    method: str
    path: str
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bool = False


CallSteps = Generator[HttpCall, Any, Any]


def job_steps(data: str, body: Mapping[str, Any], key: str | None) -> CallSteps:
    """Submit a job, and wait for its answer."""
    headers = {"Idempotency-Key": key or f"client-{secrets.token_hex(16)}"}
    job = yield HttpCall("POST", f"/v1/data/{data}/jobs", body, headers=headers)
    while job["state"] != "done":
        job = yield HttpCall("GET", f"/v1/jobs/{job['id']}", params={"wait": WAIT})
    return job


def run_steps(account: str, mechanism: Mechanism, known: int, key: str | None, label: str | None) -> CallSteps:
    """Ask for one mechanism: its release, or the error that a local ledger would raise."""
    asked = worded(mechanism, known, label)
    job = yield from job_steps(asked.data, asked.body, key)
    result = job["result"]
    if result["problem"] is not None:
        raise error_of_problem(result["problem"], account)
    (question,) = result["questions"]
    if not question["receipts"] or question["receipts"][-1]["output"] is None:
        raise ExpostError(f"{question['state']}: {question['why']}")
    return _release(account, mechanism, question["receipts"][-1], key, label)


def quote_of(planned: Iterable[Mechanism | Guarantee], remaining: Cost) -> Quote:
    """What mechanisms would cost: their guarantees are public, so nobody has to be asked."""
    guarantees = [each if isinstance(each, Guarantee) else each.guarantee for each in planned]
    worst: Cost = sum((each.worst_case for each in guarantees), Cost(0))
    best: Cost = sum((each.best_case for each in guarantees), Cost(0))
    return Quote(worst, best, remaining)


def error_of_problem(problem: Mapping[str, Any], account: str) -> ExpostError:
    """Problem details as the error that the library raises."""
    name, detail = problem.get("error"), str(problem.get("detail", "the service refuses this"))
    if name == "BudgetExceeded":
        affordable = Cost.from_json(problem["affordable"])
        requested = Cost.from_json(problem["requested"]) if "requested" in problem else affordable
        return BudgetExceeded(requested, affordable, account)
    if name == "LedgerClosed":
        return LedgerClosed(account)
    if name == "KeyConflict":
        return KeyConflict("of this request", "request")
    if problem.get("status") in (401, 403):
        return InvalidValue(detail)
    if problem.get("status") == 404:
        return UnknownEntry(detail)
    kind = getattr(errors, name, ExpostError) if isinstance(name, str) and name.isidentifier() else ExpostError
    simple = kind in (errors.InvalidValue, errors.LedgerUnavailable, errors.Busy, errors.LedgerCorrupt)
    found: ExpostError = kind(detail) if simple else ExpostError(detail)
    return found


def _release(
    account: str, mechanism: Mechanism, receipt: Mapping[str, Any], key: str | None, label: str | None
) -> Release[Any]:
    """The release that a local ledger would give."""
    part = decode(receipt["part"])
    request = Request("run", tuple(account.split("/")), mechanism, mechanism.guarantee, label, key)
    charged = Cost.from_json(receipt["charged"])
    entry = Entry(receipt["entry"], request, "settled", True, part, charged, receipt["when"])
    return Release(mechanism, decode(receipt["output"]), entry, replayed=receipt["stored"])
