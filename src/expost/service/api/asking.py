"""Routes for analysts: data sets, plans, rehearsals and jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Annotated, Any
from weakref import WeakValueDictionary

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import StringConstraints

from expost.service.api.access import Analyst, Here, refusals
from expost.service.api.models import Ask, DataModel, JobLine, JobModel, KindModel, PlanModel
from expost.service.api.shapes import job_line, job_text, kinds_reply
from expost.service.asked import asked_of
from expost.service.core import Service
from expost.service.jobs import ServiceJob
from expost.service.limits import JsonReply
from expost.service.problems import Refusal
from expost.service.results import plan_reply
from expost.service.tokens import AccessToken

router = APIRouter(prefix="/v1", tags=["asking"])
JobKey = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]([ -~]*[!-~])?$")]
DataName = Annotated[str, Path(max_length=100)]
REPLAYED = "Idempotent-Replayed"
"""The header of a reply to a request that was accepted before."""
MOST_LISTED = 100
"""Jobs in a page."""
_LONGEST_WAIT = 60


@router.get("/data", response_model=list[DataModel], responses=refusals())
async def list_data(here: Here, token: Analyst) -> list[dict[str, Any]]:
    """The data sets that this account can ask."""
    return [each.facts() for each in here.served.values() if each.about.ledger == token.path[0]]


@router.get("/data/{data}", response_model=DataModel, responses=refusals())
async def show_data(here: Here, token: Analyst, data: DataName) -> dict[str, Any]:
    """A data set: its columns, bounds, unit, and the kinds of questions it answers. Public facts only."""
    return here.data_of(token, data).facts()


@router.get("/kinds", response_model=list[KindModel], responses=refusals())
async def list_kinds(token: Analyst) -> list[dict[str, Any]]:
    """Every kind of question, and its keys."""
    return kinds_reply()


@router.post("/data/{data}/plan", response_model=PlanModel, responses=refusals(429))
async def plan_job(here: Here, token: Analyst, data: DataName, body: Ask) -> Response:
    """What questions would cost at worst and at best, and how accurate answers would be. Free; touches no data."""
    await here.account(token)
    found = here.data_of(token, data)

    def planned() -> Response:
        return JsonReply(plan_reply(here.plan(token, found, asked_of(body.model_dump()))[1]))

    return await here.callers.plans.run(token.account, planned)


@router.post("/data/{data}/rehearsal", responses=refusals(429))
async def rehearse(here: Here, token: Analyst, data: DataName, body: Ask) -> Response:
    """Answers about rows that are made up from the schema and the bounds alone: free, and about nobody."""
    await here.account(token)
    found = await here.rehearse(token, here.data_of(token, data), body.model_dump())
    return Response(found, media_type="application/json")


@router.post("/data/{data}/jobs", status_code=202, response_model=JobModel, responses=refusals(409))
async def submit_job(
    here: Here,
    token: Analyst,
    data: DataName,
    body: Ask,
    key: Annotated[JobKey, Header(alias="Idempotency-Key", description="The same key and request is the same job.")],
) -> Response:
    """Ask. The worst case of each question is reserved before it is sampled, and what did not leak is refunded.

    A job that was accepted before, under the same key, has the header `Idempotent-Replayed: true`.
    """
    await here.account(token)
    job, known = await here.submit(token, here.data_of(token, data), body.model_dump(), key)
    reply = await _reply(here, job, 202)
    reply.headers.update({REPLAYED: "true"} if known else {})
    return reply


@router.get("/jobs", response_model=list[JobLine], responses=refusals())
async def list_jobs(
    here: Here,
    token: Analyst,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = MOST_LISTED,
    after: Annotated[str | None, Query(max_length=100, description="The last job of the page before.")] = None,
) -> Response:
    """The account's jobs, the newest first, in pages and without results: each job has its own."""
    before = None if after is None else (await own_job(here, token, after)).number

    def listed() -> Response:
        return JsonReply([job_line(job) for job in here.jobs.of_account(token.account, limit, before)])

    return await here.callers.work(token.account, listed)


@router.get("/jobs/{job}", response_model=JobModel, responses=refusals())
async def show_job(
    request: Request,
    here: Here,
    token: Analyst,
    job: Annotated[str, Path(max_length=100)],
    wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT, description="Seconds to wait for the answer at most.")] = 0,
) -> Response:
    """A job, and its result once it was answered."""
    found = await own_job(here, token, job)
    if found.delivered_at is None and wait:
        with here.door.listening(token):
            waiting = _answered(here, token, found, time.monotonic() + wait)
            found = await _while_there(request, waiting) or found
    return await _reply(here, found)


async def _while_there(request: Request, waiting: Coroutine[Any, Any, ServiceJob]) -> ServiceJob | None:
    """What is waited for, or None as soon as whoever asked has hung up: others may have the place."""
    tasks = asyncio.ensure_future(waiting), asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for each in tasks:
            each.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _answered(here: Service, token: AccessToken, job: ServiceJob, until: float) -> ServiceJob:
    """A job once it is answered, or as it is when time is over."""
    while job.delivered_at is None and not here.stopping and (left := until - time.monotonic()) > 0:
        if await here.bell.wait(left):
            job = await own_job(here, token, job.id)
    return job


class _Text:
    """A job as it is sent, once for all replies that are under way."""

    def __init__(self, job: ServiceJob) -> None:
        self.sent = job_text(job).encode()


class _JobReply(Response):
    """A reply that holds its text."""

    def __init__(self, text: _Text, status: int) -> None:
        super().__init__(text.sent, status, media_type="application/json")
        self._text = text


_TEXTS: WeakValueDictionary[str, _Text] = WeakValueDictionary()
"""Of answered jobs, by their names, for as long as somebody is sent them."""


async def _reply(here: Service, job: ServiceJob, status: int = 200) -> Response:
    """A job as it is sent. A result may be large, so the event loop does not look at it."""
    if job.delivered_at is None:
        return _JobReply(await here.callers.briefly(lambda: _Text(job)), status)
    return _JobReply(await here.callers.results.run(job.account, lambda: _answered_text(here, job)), status)


def _answered_text(here: Service, job: ServiceJob) -> _Text:
    text = _TEXTS.get(job.id)
    if text is None:
        text = _TEXTS[job.id] = _Text(here.jobs.find(job.id) or job._replace(result=None))
    return text


@router.delete("/jobs/{job}", response_model=JobModel, responses=refusals(409))
async def cancel_job(here: Here, token: Analyst, job: Annotated[str, Path(max_length=100)]) -> Response:
    """Cancel a job, until it starts. Nothing is charged."""
    found = await own_job(here, token, job)
    return await _reply(here, await here.callers.briefly(lambda: here.cancel(found)))


async def own_job(here: Service, token: AccessToken, job: str) -> ServiceJob:
    """A job of the token's own account, without its result. Others do not exist."""
    found = await here.callers.briefly(lambda: here.jobs.line(job)) if job.isascii() and job.isalnum() else None
    if found is None or found.account != token.account:
        raise Refusal(404, "there is no such job")
    return found
