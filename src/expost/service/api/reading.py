"""Routes for reading: balances, entries, statements, the audit trail, and live events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from expost.accounting.amounts import Amounts
from expost.ledger.rows import accounting_text
from expost.ledger.trail import exported
from expost.service.api.access import AnyReader, Auditor, Here, refusals
from expost.service.api.models import (
    AccountingModel,
    AccountModel,
    AccountPath,
    ChargeModel,
    EntryModel,
    EventModel,
    HeadModel,
    RoomModel,
)
from expost.service.api.shapes import entry_reply
from expost.service.core import Service
from expost.service.limits import JsonReply
from expost.service.problems import Refusal
from expost.service.tokens import AccessToken
from expost.service.window import MOST_BALANCES

router = APIRouter(prefix="/v1", tags=["reading"])
Which = Annotated[AccountPath | None, Query(description="The token's own account, or one below it.")]
_SILENT = 15.0
"""Seconds after which a listener gets an empty line: that a connection is gone shows when it is written to."""


@router.get("/account", response_model=AccountModel, responses=refusals())
async def show_account(here: Here, token: AnyReader, account: Which = None) -> Response:
    """A balance, as of the last answer time."""
    return Response(here.window.balance_text(await here.account(token, account)), media_type="application/json")


@router.get("/accounts", response_model=list[AccountModel], responses=refusals())
async def list_accounts(
    here: Here,
    token: AnyReader,
    limit: Annotated[int, Query(ge=1, le=MOST_BALANCES)] = MOST_BALANCES,
    after: Annotated[AccountPath | None, Query(description="The last account of the page before.")] = None,
) -> Response:
    """The balances of the token's account and of those below it, in pages."""
    top = await here.account(token)
    behind = None if after is None else await here.account(token, after)
    return await here.callers.balances.run(
        token.account,
        lambda: Response(here.window.balances_text(top, limit, behind), media_type="application/json"),
    )


@router.get("/accounting", response_model=AccountingModel, responses=refusals())
async def show_accounting(here: Here, token: AnyReader) -> JsonReply:
    """How the token's account counts: what clients need to know to price questions as the ledger does."""
    books = here.window.imagined(await here.account(token))
    return JsonReply({"meters": accounting_text(books.meters), "basic_alone": books.basic_alone})


@router.post("/accounting", response_model=RoomModel, responses=refusals())
async def find_room(here: Here, token: AnyReader, body: ChargeModel) -> JsonReply:
    """Whether a charge would fit in the token's account now, on some meter of each level. Reserves nothing."""
    books = here.window.imagined(await here.account(token))
    return JsonReply({"fits": books.after(Amounts(*body.charge)) is not None})


@router.get("/entries", response_model=list[EntryModel], responses=refusals())
async def list_entries(
    here: Here, token: AnyReader, account: Which = None, last: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JsonReply:
    """The last entries of an account and of those below it: what was reserved, charged and refunded. No answers."""
    found = await here.account(token, account)
    return await here.callers.work(
        token.account, lambda: JsonReply([entry_reply(each) for each in here.window.entries(found, last)])
    )


@router.get("/statement", response_class=PlainTextResponse, responses=refusals())
async def show_statement(
    here: Here, token: AnyReader, account: Which = None, by: Literal["entry", "day"] = "entry"
) -> PlainTextResponse:
    """A statement for people: a row for each entry, or for each account and day."""
    found = await here.account(token, account)
    return await here.callers.work(
        token.account, lambda: PlainTextResponse("\n".join(here.window.statement(found, by)) + "\n")
    )


@router.get("/audit", response_model=list[EventModel], responses=refusals())
async def list_events(
    here: Here,
    token: Auditor,
    after: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonReply:
    """Lines of the ledger's audit trail, behind a line. For tokens of the whole ledger."""
    ledger = _whole(token)

    def lines() -> JsonReply:
        events = here.window.trail(ledger, after, limit)
        return JsonReply([{"line": each.line, "hash": each.hash, "sequence": each.sequence} for each in events])

    return await here.callers.work(token.account, lines)


@router.get("/audit/verification", response_model=HeadModel, responses=refusals())
async def verify_ledger(here: Here, token: Auditor) -> JsonReply:
    """Apply the trail to the rules again, and compare all balances and entries. Note the head elsewhere."""
    ledger = _whole(token)
    head = await here.callers.work(token.account, lambda: here.ledger(ledger).verify())
    return JsonReply({"ledger": ledger, "sequence": head.sequence, "hash": head.hash})


@router.get("/audit/export", response_class=PlainTextResponse, responses=refusals())
async def export_ledger(here: Here, token: Auditor) -> StreamingResponse:
    """The whole audit trail as lines of JSON, each with its hash. It holds no answers, only their hashes."""
    ledger = _whole(token)
    headers = {"content-disposition": 'attachment; filename="trail.jsonl"'}
    return StreamingResponse(exported_lines(here, ledger), media_type="application/jsonl", headers=headers)


@router.get("/events", response_class=PlainTextResponse, responses=refusals())
async def listen(here: Here, token: AnyReader, once: bool = False) -> StreamingResponse:
    """Balances (the first page) and answered jobs as they change, at answer times (server-sent events)."""
    return listening(here, token, await here.account(token), once=once)


def listening(
    here: Service, token: AccessToken, account: str, *, once: bool = False, session: str | None = None
) -> StreamingResponse:
    """The reply to a listener, unless its token has too many."""
    heard = events(here, token, account, once=once, session=session)
    return _Listening(heard, here.door.listening(token))


class _Listening(StreamingResponse):
    """A listener takes its place when it is replied to, and before anything is sent: two never take the same one."""

    def __init__(self, heard: AsyncIterator[str], place: AbstractContextManager[None]) -> None:
        super().__init__(heard, media_type="text/event-stream")
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is heard, for as long as it is listened to."""
        with self._place:
            await super().__call__(scope, receive, send)


async def events(
    here: Service, token: AccessToken, account: str, *, once: bool = False, session: str | None = None
) -> AsyncIterator[str]:
    """The balance now, and at each answer time what has changed, until the token, or the session, has ended."""
    shown, sent_at = "", 0.0
    while not here.stopping and await here.door.is_live(token, session):
        balances = await _balances(here, token, account)
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


async def _balances(here: Service, token: AccessToken, account: str) -> str:
    if (known := here.window.known_text(account)) is not None:
        return known
    return await here.callers.balances.run(token.account, lambda: here.window.balances_text(account))


def exported_lines(here: Service, ledger: str) -> Iterator[str]:
    """The trail as it is exported."""
    return exported(here.window.trail(ledger, 0))


def _whole(token: AccessToken) -> str:
    """The trail is the whole ledger's: it is for tokens of the whole ledger."""
    if len(token.path) > 1:
        raise Refusal(404, "the audit trail is the whole ledger's, and this token is for an account of it")
    return token.account
