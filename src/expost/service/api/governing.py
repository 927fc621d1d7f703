"""Routes for custodians: accounts, limits, tokens, reviews. All is recorded in the audit trail, or in tables."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Path

from expost.errors import InvalidValue
from expost.ledger import Ledger
from expost.service.api.access import Custodian, Here, refusals
from expost.service.api.models import (
    AccountModel,
    Closing,
    MadeToken,
    NewAccount,
    NewLimit,
    NewToken,
    ReviewDecision,
    ReviewModel,
    TokenModel,
)
from expost.service.api.shapes import moment, plan_reply
from expost.service.asked import InvalidRequest, asked_of
from expost.service.core import Service
from expost.service.jobs import ServiceJob
from expost.service.problems import Refusal
from expost.service.tokens import AccessToken, list_tokens, make_token, revoke_token

router = APIRouter(prefix="/v1/admin", tags=["governing"])


@router.post("/accounts", status_code=201, response_model=AccountModel, responses=refusals(409))
async def create_account(here: Here, token: Custodian, body: NewAccount) -> dict[str, Any]:
    """An account below one's own: every charge to it counts above, too."""
    above, _, name = body.account.rpartition("/")
    parent = _own(here, token, above)
    made = await asyncio.to_thread(parent.create_account, name, body.epsilon, body.delta)
    return live_balance(made)


@router.post("/limits", response_model=AccountModel, responses=refusals(409))
async def raise_limit(here: Here, token: Custodian, body: NewLimit) -> dict[str, Any]:
    """Allow more, from now on and for ever. What was published stays published."""
    account = _own(here, token, body.account)
    await asyncio.to_thread(account.raise_limit, body.epsilon, body.delta, by=token.name, reason=body.reason)
    return live_balance(account)


@router.post("/closings", response_model=AccountModel, responses=refusals(409))
async def close_account(here: Here, token: Custodian, body: Closing) -> dict[str, Any]:
    """Allow nothing more, here and below, for ever."""
    account = _own(here, token, body.account)
    await asyncio.to_thread(account.close, by=token.name, reason=body.reason)
    return live_balance(account)


@router.get("/tokens", response_model=list[TokenModel], responses=refusals())
async def show_tokens(here: Here, token: Custodian) -> list[dict[str, Any]]:
    """The tokens of the ledger and its accounts. No secrets: only their hashes are kept."""
    return [each.facts() for each in await asyncio.to_thread(list_tokens, here.database, [token.account])]


@router.post("/tokens", status_code=201, response_model=MadeToken, responses=refusals(409))
async def create_token(here: Here, token: Custodian, body: NewToken) -> dict[str, Any]:
    """A token for an account. Its secret is shown this once."""
    _own(here, token, body.account)
    made, secret = await asyncio.to_thread(
        lambda: make_token(here.database, body.role, body.account, name=body.name, days=body.days)
    )
    return made.facts() | {"secret": secret}


@router.delete("/tokens/{token_id}", status_code=204, response_model=None, responses=refusals())
async def end_token(here: Here, token: Custodian, token_id: Annotated[str, Path(max_length=100)]) -> None:
    """Revoke a token. Other processes know within a second."""
    await asyncio.to_thread(revoke_token, here.database, token_id, [token.account])
    here.forget_tokens()


@router.get("/reviews", response_model=list[ReviewModel], responses=refusals())
async def list_reviews(here: Here, token: Custodian) -> list[dict[str, Any]]:
    """Jobs that wait for a decision: what they ask, and what it would cost."""
    return await asyncio.to_thread(reviews, here, token)


@router.post("/reviews/{job}", status_code=204, response_model=None, responses=refusals(409))
async def decide_review(
    here: Here, token: Custodian, job: Annotated[str, Path(max_length=100)], body: ReviewDecision
) -> None:
    """Accept or decline a job. The decision is recorded in the audit trail."""
    await asyncio.to_thread(decide_job, here, token, job, body.accept, body.reason)


def reviews(here: Service, token: AccessToken) -> list[dict[str, Any]]:
    """What a custodian has to decide."""
    return [
        {
            "job": job.id,
            "account": job.account,
            "data": job.data,
            "accepted_at": moment(job.accepted_at),
            "asked": json.loads(job.body),
            "plan": _plan(here, job),
        }
        for job in here.jobs.in_review([token.path[0]])
        if token.covers(job.account)
    ]


def decide_job(here: Service, token: AccessToken, job: str, accept: bool, reason: str) -> None:
    """Accept or decline a job that waits, of an account of one's own."""
    found = here.jobs.find(job)
    if found is None or not token.covers(found.account):
        raise Refusal(404, "there is no such job")
    if found.state != "review":
        raise Refusal(409, "this job does not wait for a review")
    here.review(token, found, accept=accept, reason=reason)


def live_balance(account: Ledger) -> dict[str, Any]:
    """What an account is after a decision."""
    return {
        "account": account.name,
        "limit": account.limit.to_json(),
        "spent": account.spent.to_json(),
        "reserved": account.reserved.to_json(),
        "remaining": account.remaining.to_json(),
        "closed": account.closed,
    }


def _plan(here: Service, job: ServiceJob) -> dict[str, Any] | None:
    """What it would cost now; None if it cannot be asked any more."""
    served = here.served.get(job.data)
    if served is None or not here.window.knows(job.account):
        return None
    try:
        levels, remaining = here.window.levels(job.account), here.window.remaining(job.account)
        return plan_reply(served.plan(asked_of(json.loads(job.body)), job.path, levels[-1].limit, remaining)[1])
    except (InvalidRequest, InvalidValue):
        return None


def _own(here: Service, token: AccessToken, account: str) -> Ledger:
    """A live account of one's own, or below it. Others do not exist."""
    if not token.covers(account):
        raise Refusal(404, "there is no such account")
    return here.ledger(account)
