"""Routes for custodians: accounts, limits, tokens, reviews. All is recorded in the audit trail, or in tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from expost.service import governance
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
from expost.service.api.shapes import review_text
from expost.service.core import Service
from expost.service.tokens import AccessToken, list_tokens

router = APIRouter(prefix="/v1/admin", tags=["governing"])
MOST_REVIEWS = 20
"""Jobs in a page, each with all that it asks and its plan."""


@router.post("/accounts", status_code=201, response_model=AccountModel, responses=refusals(409))
async def create_account(here: Here, token: Custodian, body: NewAccount) -> dict[str, Any]:
    """An account below one's own, with no more than the one above it: every charge to it counts above, too."""
    return await _decided(
        here, token, body.account,
        lambda: governance.open_account(here, token, body.account, body.epsilon, body.delta),
    )  # fmt: skip


@router.post("/limits", response_model=AccountModel, responses=refusals(409))
async def raise_limit(here: Here, token: Custodian, body: NewLimit) -> dict[str, Any]:
    """Allow an account below one's own more, from now on and for ever. What was published stays published."""
    given = body.account, body.epsilon, body.delta, body.reason
    return await _decided(here, token, body.account, lambda: governance.allow_more(here, token, *given))


@router.post("/closings", response_model=AccountModel, responses=refusals(409))
async def close_account(here: Here, token: Custodian, body: Closing) -> dict[str, Any]:
    """Allow nothing more in an account below one's own, for ever. What waits for a review there is declined."""
    return await _decided(
        here, token, body.account, lambda: governance.end_account(here, token, body.account, body.reason)
    )


async def _decided(here: Service, token: AccessToken, account: str, act: Callable[[], Any]) -> dict[str, Any]:
    """What an account is after a decision: with what is held for its jobs, as everywhere."""

    def work() -> dict[str, Any]:
        act()
        with here.window.gate.opened():
            return here.window.balance_now(account)

    return await here.callers.work(token.account, work)


@router.get("/tokens", response_model=list[TokenModel], responses=refusals())
async def show_tokens(here: Here, token: Custodian) -> list[dict[str, Any]]:
    """The tokens of the ledger and its accounts. No secrets: only their hashes are kept."""
    return [
        each.facts()
        for each in await here.callers.work(token.account, lambda: list_tokens(here.database, [token.account]))
    ]


@router.post("/tokens", status_code=201, response_model=MadeToken, responses=refusals(409))
async def create_token(here: Here, token: Custodian, body: NewToken) -> dict[str, Any]:
    """A token for an account below one's own, which ends with one's own. Its secret is shown this once."""
    made, secret = await here.callers.work(
        token.account,
        lambda: governance.delegate(here, token, body.role, body.account, name=body.name, days=body.days),
    )
    return made.facts() | {"secret": secret}


@router.delete("/tokens/{token_id}", status_code=204, response_model=None, responses=refusals())
async def end_token(here: Here, token: Custodian, token_id: Annotated[str, Path(max_length=100)]) -> None:
    """Revoke a token, and all that were made with it. Other processes know within a second."""
    await here.callers.work(token.account, lambda: governance.withdraw_token(here, token, token_id))
    here.door.forget()


@router.get("/reviews", response_model=list[ReviewModel], responses=refusals())
async def list_reviews(
    here: Here,
    token: Custodian,
    limit: Annotated[int, Query(ge=1, le=MOST_REVIEWS)] = MOST_REVIEWS,
    after: Annotated[str | None, Query(max_length=100, description="The last job of the page before.")] = None,
) -> Response:
    """Jobs that wait for a decision, the oldest first, in pages: what they ask, and what it would cost when asked."""

    def listed() -> Response:
        found = governance.to_decide(here, token, limit, after)
        return Response(f"[{', '.join(map(review_text, found))}]", media_type="application/json")

    return await here.callers.work(token.account, listed)


@router.post("/reviews/{job}", status_code=204, response_model=None, responses=refusals(409))
async def decide_review(
    here: Here, token: Custodian, job: Annotated[str, Path(max_length=100)], body: ReviewDecision
) -> None:
    """Accept or decline a job. The decision is recorded in the audit trail."""
    await here.callers.work(
        token.account, lambda: governance.give_verdict(here, token, job, accept=body.accept, reason=body.reason)
    )
