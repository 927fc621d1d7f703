"""Routes for external engines, which sample elsewhere and are trusted with parts: off unless the custodian says so."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from expost.canonical import sha256
from expost.cost import Cost, Number
from expost.errors import BudgetExceeded, UnknownEntry
from expost.guarantee import Guarantee, Part
from expost.ledger import Entry, Ledger, Reservation
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
    await here.account(token)

    def work() -> Entry:
        ledger = here.ledger(token.account)
        with here.window.gate.opened():
            if not _is_known(ledger, key):
                _require_room(here, token.account, guarantee)
            return ledger.reserve(guarantee, label=label, key=key, lease=body.lease).entry

    return entry_reply(await here.callers.work(token.account, work))


@router.post("/reservations/{key}/settlement", response_model=EntryModel, responses=refusals(409))
async def settle(here: Here, token: External, key: EngineKey, body: Settlement) -> dict[str, Any]:
    """Charge the part that came out, and refund the rest."""
    return entry_reply(await here.callers.work(token.account, lambda: _reservation(here, token, key).settle(body.part)))


@router.post("/reservations/{key}/forfeiture", response_model=EntryModel, responses=refusals(409))
async def forfeit_reservation(here: Here, token: External, key: EngineKey) -> dict[str, Any]:
    """Charge the worst case."""
    return entry_reply(await here.callers.work(token.account, lambda: _reservation(here, token, key).forfeit()))


def _is_known(ledger: Ledger, key: str) -> bool:
    """Whether something was reserved under a key: then that is the answer, whatever remains."""
    try:
        ledger.reservation(key)
    except UnknownEntry:
        return False
    return True


def _require_room(here: Service, account: str, guarantee: Guarantee) -> None:
    """Refuse what would take what is held for jobs: the ledger itself does not know of it.

    A job that is accepted in the same moment is not seen. If both do not fit, it is refused at its answer time.
    """
    worst, _ = here.window.imagined(account).charges(guarantee)
    found = here.window.admit(worst)(here.database.rows, account)
    if isinstance(found, Cost):
        raise BudgetExceeded(worst.cost, found, account)


def _key(token: AccessToken, key: str) -> str:
    """Keys are per account; a hash of its name, so that no two pairs of account and key read the same."""
    return f"engine {sha256(token.account)[:32]} {key}"


def _reservation(here: Service, token: AccessToken, key: str) -> Reservation:
    found = here.ledger(token.account).reservation(_key(token, key))
    if found.entry.account != token.account:
        raise UnknownEntry("there is no such reservation")
    return found
