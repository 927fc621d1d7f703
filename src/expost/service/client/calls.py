"""What a client says to a service, without any input or output: steps that yield requests and are sent replies."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import expost.errors as errors
from expost.accounting.amounts import Amounts, together
from expost.cost import Cost
from expost.errors import BudgetExceeded, ExpostError, InvalidValue, KeyConflict, LedgerClosed, UnknownEntry
from expost.guarantee import Guarantee
from expost.ledger import Entry, Quote, Request
from expost.ledger.asking import as_mechanism, as_plans
from expost.ledger.codec import decode
from expost.ledger.imagined import Imagined
from expost.ledger.rows import meters_of_text
from expost.mechanism import Mechanism, Release
from expost.question import Question
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
    submits: bool = False
    """Whether it may be known from before: the reply is a pair, of what was sent and of whether it was."""


CallSteps = Generator[HttpCall, Any, Any]


def job_steps(data: str, body: Mapping[str, Any], key: str | None) -> CallSteps:
    """Submit a job, and wait for its answer."""
    headers = {"Idempotency-Key": key or f"client-{secrets.token_hex(16)}"}
    job, known = yield HttpCall("POST", f"/v1/data/{data}/jobs", body, headers=headers, submits=True)
    while job["state"] != "done":
        job = yield HttpCall("GET", f"/v1/jobs/{job['id']}", params={"wait": WAIT})
    return job | {"replayed": known}


def run_steps(
    account: str,
    what: Any,
    said: Mapping[str, Any],
    known: Callable[[Any], int],
    key: str | None,
    label: str | None,
    *,
    service: str = "",
) -> CallSteps:
    """Ask a question, or for one mechanism: its release, or the error that a local ledger would raise.

    ``said`` is what the question may cost, and ``known`` says how many steps a mechanism's table has of its own. An
    entry of one ledger of one ``service`` is one draw of noise, however often it is read.
    """
    mechanism = as_mechanism(what, None, (yield from _prices_for([what], said)), **said)
    asked = worded(mechanism, known(mechanism), label)
    job = yield from job_steps(asked.data, asked.body, key)
    result = job["result"]
    if result["problem"] is not None:
        raise error_of_problem(result["problem"], account, key)
    (question,) = result["questions"]
    if not question["receipts"] or question["receipts"][-1]["output"] is None:
        raise ExpostError(f"{question['state']}: {question['why']}")
    receipt = question["receipts"][-1]
    receipt |= {"stored": receipt["stored"] or job["replayed"]}
    origin = service, account.partition("/")[0], receipt["entry"]
    return _release(account, mechanism, receipt, key, label, origin)


def _prices_for(planned: Iterable[Any], said: Mapping[str, Any]) -> CallSteps:
    """The meters of the account's ledger, where it depends on them which mechanism a question becomes."""
    if said["noise"] != "gaussian" or said["delta"] or not any(isinstance(each, Question) for each in planned):
        return None
    about = yield HttpCall("GET", "/v1/accounting")
    return None if about["basic_alone"] else meters_of_text(about["meters"])


def quote_steps(planned: Any, said: Mapping[str, Any]) -> CallSteps:
    """What questions or mechanisms would cost, on every meter of the account's ledger. Prices are public.

    Whether several meters have room is decided by the service, which does not show the balances above an account.
    """
    listed = [planned] if isinstance(planned, Question | Mechanism | Guarantee) else list(planned)
    plans = as_plans(listed, (yield from _prices_for(listed, said)), **said)
    remaining = Cost.from_json((yield HttpCall("GET", "/v1/account"))["remaining"])
    about = yield HttpCall("GET", "/v1/accounting")
    meters = meters_of_text(about["meters"])
    prices = Imagined(meters, (), about["basic_alone"])
    priced = [prices.charges(plan) for plan in plans]
    worst, best = together(worst for worst, _ in priced), together(best for _, best in priced)
    if meters is None:
        return Quote(worst.cost, best.cost, remaining, has_room=worst.cost <= remaining)
    room = (yield HttpCall("POST", "/v1/accounting", {"charge": [*worst]}))["fits"]
    return Quote(worst.cost, best.cost, remaining, worst, best, room)


def error_of_problem(problem: Mapping[str, Any], account: str, key: str | None = None) -> ExpostError:
    """Problem details as the error that the library raises."""
    name, detail = problem.get("error"), str(problem.get("detail", "the service refuses this"))
    if name == "BudgetExceeded":
        affordable = Cost.from_json(problem["affordable"])
        requested = Cost.from_json(problem["requested"]) if "requested" in problem else affordable
        return BudgetExceeded(requested, affordable, account)
    if name == "LedgerClosed":
        return LedgerClosed(account)
    if name == "KeyConflict":
        return KeyConflict(key or "", "question or label")
    if problem.get("status") in (401, 403):
        return InvalidValue(detail)
    if problem.get("status") == 404:
        return UnknownEntry(detail)
    kind = getattr(errors, name, ExpostError) if isinstance(name, str) and name.isidentifier() else ExpostError
    simple = kind in (errors.InvalidValue, errors.LedgerUnavailable, errors.Busy, errors.LedgerCorrupt)
    found: ExpostError = kind(detail) if simple else ExpostError(detail)
    return found


def _release(
    account: str, mechanism: Mechanism, receipt: Mapping[str, Any], key: str | None, label: str | None, origin: Hashable
) -> Release[Any]:
    """The release that a local ledger would give."""
    part = decode(receipt["part"])
    request = Request("run", tuple(account.split("/")), mechanism, mechanism.guarantee, label, key)
    charged = Amounts.of(Cost.from_json(receipt["charged"]))
    entry = Entry(receipt["entry"], request, "settled", True, part, charged, receipt["when"])
    return Release(mechanism, decode(receipt["output"]), entry, replayed=receipt["stored"], origin=origin)
