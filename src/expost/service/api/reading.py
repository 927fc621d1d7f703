"""Routes for reading: balances, entries, statements, the audit trail, and live events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from expost.service.api.access import AnyReader, Auditor, Here, refusals
from expost.service.api.models import AccountModel, AccountPath, EntryModel, EventModel, HeadModel
from expost.service.api.shapes import entry_reply
from expost.service.core import Service
from expost.service.limits import JsonReply
from expost.service.problems import Refusal
from expost.service.tokens import AccessToken

router = APIRouter(prefix="/v1", tags=["reading"])
Which = Annotated[AccountPath | None, Query(description="The token's own account, or one below it.")]
_SILENT = 15.0
"""Seconds after which a listener gets an empty line: that a connection is gone shows when it is written to."""


@router.get("/account", response_model=AccountModel, responses=refusals())
async def show_account(here: Here, token: AnyReader, account: Which = None) -> Response:
    """A balance, as of the last answer time."""
    return Response(here.window.balance_text(await here.account(token, account)), media_type="application/json")


@router.get("/accounts", response_model=list[AccountModel], responses=refusals())
async def list_accounts(here: Here, token: AnyReader) -> Response:
    """The balances of the token's account and of all below it."""
    top = await here.account(token)
    return Response(here.window.balances_text(top), media_type="application/json")


@router.get("/entries", response_model=list[EntryModel], responses=refusals())
async def list_entries(
    here: Here, token: AnyReader, account: Which = None, last: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JsonReply:
    """The last entries of an account and of those below it: what was reserved, charged and refunded. No answers."""
    found = await here.account(token, account)
    return JsonReply(await asyncio.to_thread(lambda: [entry_reply(each) for each in here.window.entries(found, last)]))


@router.get("/statement", response_class=PlainTextResponse, responses=refusals())
async def show_statement(
    here: Here, token: AnyReader, account: Which = None, by: Literal["entry", "day"] = "entry"
) -> PlainTextResponse:
    """A statement for people: a row for each entry, or for each account and day."""
    found = await here.account(token, account)
    return PlainTextResponse(await asyncio.to_thread(lambda: "\n".join(here.window.statement(found, by)) + "\n"))


@router.get("/audit", response_model=list[EventModel], responses=refusals())
async def list_events(
    here: Here,
    token: Auditor,
    after: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonReply:
    """Lines of the ledger's audit trail, behind a line. For tokens of the whole ledger."""
    ledger = _whole(token)
    events = await asyncio.to_thread(lambda: list(here.window.trail(ledger, after, limit)))
    return JsonReply([{"line": each.line, "hash": each.hash, "sequence": each.sequence} for each in events])


@router.get("/audit/verification", response_model=HeadModel, responses=refusals())
async def verify_ledger(here: Here, token: Auditor) -> JsonReply:
    """Apply the trail to the rules again, and compare all balances and entries. Note the head elsewhere."""
    ledger = _whole(token)
    head = await asyncio.to_thread(here.ledger(ledger).verify)
    return JsonReply({"ledger": ledger, "sequence": head.sequence, "hash": head.hash})


@router.get("/audit/export", response_class=PlainTextResponse, responses=refusals())
async def export_ledger(here: Here, token: Auditor) -> StreamingResponse:
    """The whole audit trail as lines of JSON, each with its hash. It holds no answers, only their hashes."""
    ledger = _whole(token)
    headers = {"content-disposition": 'attachment; filename="trail.jsonl"'}
    return StreamingResponse(exported_lines(here, ledger), media_type="application/jsonl", headers=headers)


@router.get("/events", response_class=PlainTextResponse, responses=refusals())
async def listen(here: Here, token: AnyReader, once: bool = False) -> StreamingResponse:
    """Balances and answered jobs as they change, at answer times (server-sent events)."""
    account = await here.account(token)
    return StreamingResponse(events(here, token, account, once=once), media_type="text/event-stream")


async def events(here: Service, token: AccessToken, account: str, *, once: bool = False) -> AsyncIterator[str]:
    """The balance now, and at each answer time what has changed; ``once`` ends it after the first."""
    shown, sent_at = "", 0.0
    while not here.stopping and await here.is_live(token):
        balances = here.window.balances_text(account)
        sent = f"event: balances\ndata: {balances}\n\n" if balances != shown else ""
        for job in here.bell.answered.get(account, ()) if shown and token.role == "analyst" else ():
            sent += f'event: job\ndata: {{"id": "{job}"}}\n\n'
        shown, now = balances, time.monotonic()
        if sent or now - sent_at >= _SILENT:
            sent_at = now
            yield sent or ": \n\n"
        if once:
            return
        await here.bell.wait()


def exported_lines(here: Service, ledger: str) -> Iterator[str]:
    """The trail as it is exported."""
    for event in here.window.trail(ledger, 0):
        yield json.dumps({"line": json.loads(event.line), "hash": event.hash}, ensure_ascii=True) + "\n"


def _whole(token: AccessToken) -> str:
    """The trail is the whole ledger's: it is for tokens of the whole ledger."""
    if len(token.path) > 1:
        raise Refusal(404, "the audit trail is the whole ledger's, and this token is for an account of it")
    return token.account
