"""Routes for analysts: data sets, plans, rehearsals and jobs."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from pydantic import StringConstraints

from expost.service.api.access import Analyst, Here, refusals
from expost.service.api.models import Ask, DataModel, JobModel, KindModel, PlanModel
from expost.service.api.shapes import job_reply, kinds_reply, plan_reply
from expost.service.asked import asked_of
from expost.service.core import Service
from expost.service.jobs import ServiceJob
from expost.service.problems import Refusal
from expost.service.tokens import AccessToken

router = APIRouter(prefix="/v1", tags=["asking"])
JobKey = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]([ -~]*[!-~])?$")]
DataName = Annotated[str, Path(max_length=100)]
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


@router.post("/data/{data}/plan", response_model=PlanModel, responses=refusals())
async def plan_job(here: Here, token: Analyst, data: DataName, body: Ask) -> dict[str, Any]:
    """What questions would cost at worst and at best, and how accurate answers would be. Free; touches no data."""
    await here.account(token)
    found, asked = here.data_of(token, data), asked_of(body.model_dump())
    _, plan = await asyncio.to_thread(here.plan, token, found, asked)
    return plan_reply(plan)


@router.post("/data/{data}/rehearsal", responses=refusals())
async def rehearse(here: Here, token: Analyst, data: DataName, body: Ask) -> dict[str, Any]:
    """Answers about rows that are made up from the schema and the bounds alone: free, and about nobody."""
    await here.account(token)
    return await here.rehearse(token, here.data_of(token, data), body.model_dump())


@router.post("/data/{data}/jobs", status_code=202, response_model=JobModel, responses=refusals(409, 429))
async def submit_job(
    here: Here,
    token: Analyst,
    data: DataName,
    body: Ask,
    key: Annotated[JobKey, Header(alias="Idempotency-Key", description="The same key and request is the same job.")],
) -> dict[str, Any]:
    """Ask. The worst case of each question is reserved before it is sampled, and what did not leak is refunded."""
    await here.account(token)
    return job_reply(await here.submit(token, here.data_of(token, data), body.model_dump(), key))


@router.get("/jobs", response_model=list[JobModel], responses=refusals())
async def list_jobs(
    here: Here, token: Analyst, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[dict[str, Any]]:
    """The account's last jobs, the newest first."""
    return [job_reply(job) for job in await asyncio.to_thread(here.jobs.of_account, token.account, limit)]


@router.get("/jobs/{job}", response_model=JobModel, responses=refusals())
async def show_job(
    here: Here,
    token: Analyst,
    job: Annotated[str, Path(max_length=100)],
    wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT, description="Seconds to wait for the answer at most.")] = 0,
) -> dict[str, Any]:
    """A job, and its result once it was answered."""
    until = time.monotonic() + wait
    found = await own_job(here, token, job)
    while found.delivered_at is None and not here.stopping and (left := until - time.monotonic()) > 0:
        if await here.bell.wait(left):
            found = await own_job(here, token, job)
    return job_reply(found)


async def own_job(here: Service, token: AccessToken, job: str) -> ServiceJob:
    """A job of the token's own account. Others do not exist."""
    found = await asyncio.to_thread(here.jobs.find, job) if job.isascii() and job.isalnum() else None
    if found is None or found.account != token.account:
        raise Refusal(404, "there is no such job")
    return found
