"""Routes for external engines, which sample elsewhere and are trusted with parts: off unless the custodian says so."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from expost.canonical import sha256
from expost.cost import Number
from expost.errors import UnknownEntry
from expost.guarantee import Guarantee, Part
from expost.ledger import Entry, Reservation
from expost.service.api.access import External, Here, refusals
from expost.service.api.models import EntryModel, NewReservation, Settlement
from expost.service.api.shapes import entry_reply
from expost.service.core import Service
from expost.service.problems import Refusal
from expost.service.tokens import AccessToken


async def allowed(here: Here) -> None:
    """These routes do not exist unless they were switched on."""
    if not here.config.external_engines:
        raise Refusal(404, "external engines are off here")


router = APIRouter(prefix="/v1/engine", tags=["engines"], dependencies=[Depends(allowed)])
EngineKey = Annotated[str, Path(max_length=200)]


@router.post("/reservations", status_code=201, response_model=EntryModel, responses=refusals(409))
async def reserve(here: Here, token: External, body: NewReservation) -> dict[str, Any]:
    """Reserve the worst case of what an engine is going to sample, for as long as the lease."""
    parts: dict[Part, Number] = dict(body.parts.items())
    guarantee = Guarantee(parts, body.delta)
    key, label = _key(token, body.key), body.label

    def work() -> Entry:
        return here.ledger(token.account).reserve(guarantee, label=label, key=key, lease=body.lease).entry

    return entry_reply(await asyncio.to_thread(work))


@router.post("/reservations/{key}/settlement", response_model=EntryModel, responses=refusals(409))
async def settle(here: Here, token: External, key: EngineKey, body: Settlement) -> dict[str, Any]:
    """Charge the part that came out, and refund the rest."""
    return entry_reply(await asyncio.to_thread(lambda: _reservation(here, token, key).settle(body.part)))


@router.post("/reservations/{key}/forfeiture", response_model=EntryModel, responses=refusals(409))
async def forfeit_reservation(here: Here, token: External, key: EngineKey) -> dict[str, Any]:
    """Charge the worst case."""
    return entry_reply(await asyncio.to_thread(lambda: _reservation(here, token, key).forfeit()))


def _key(token: AccessToken, key: str) -> str:
    """Keys are per account; a hash of its name, so that no two pairs of account and key read the same."""
    return f"engine {sha256(token.account)[:32]} {key}"


def _reservation(here: Service, token: AccessToken, key: str) -> Reservation:
    found = here.ledger(token.account).reservation(_key(token, key))
    if found.entry.account != token.account:
        raise UnknownEntry("there is no such reservation")
    return found
