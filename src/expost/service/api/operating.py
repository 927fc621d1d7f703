"""Routes for whoever runs it: life, readiness, numbers. No private values."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from expost.service.api.access import Auditor, Here, refusals
from expost.service.api.models import Health
from expost.service.problems import Refusal

router = APIRouter(tags=["operating"])


@router.get("/health", response_model=Health)
async def health() -> dict[str, str]:
    """Whether the process lives."""
    return {"status": "alive"}


@router.get("/ready", response_model=Health, responses=refusals())
async def readiness(here: Here) -> dict[str, str]:
    """Whether it can accept jobs: the database answers, and answer times come."""
    if here.stopping or not here.bell.healthy:
        raise Refusal(503, "not ready: the database does not answer, or the service is stopping")
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse, responses=refusals())
async def metrics(here: Here, token: Auditor) -> PlainTextResponse:
    """Numbers for Prometheus, as of the last answer time: of the token's account, with all below it."""
    account = await here.account(token)
    counts = await here.callers.work(token.account, lambda: here.jobs.counts(account))
    of = f'account="{_label(account)}"'
    lines = ["# TYPE expost_jobs gauge", *(f'expost_jobs{{{of},state="{name}"}} {n}' for name, n in counts.items())]
    lines += ["# TYPE expost_epsilon gauge"]
    balance = here.window.balance(account)
    for what in ("limit", "spent", "reserved", "remaining"):
        lines.append(f'expost_epsilon{{{of},of="{what}"}} {balance[what]["epsilon"]}')
    lines += ["# TYPE expost_answer_time_seconds gauge", f"expost_answer_time_seconds {here.bell.slot:.3f}"]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
