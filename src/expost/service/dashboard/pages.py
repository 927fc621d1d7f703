"""The pages, and who may see them. A page shows what the API would: nothing of other accounts, nothing too early."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections import defaultdict
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from starlette.staticfiles import StaticFiles

from expost.cost import Cost
from expost.service.api.access import Here, service_of
from expost.service.api.asking import own_job
from expost.service.api.governing import decide_job, reviews
from expost.service.api.reading import events, exported_lines
from expost.service.api.shapes import entry_reply, job_reply, plan_reply
from expost.service.asked import InvalidRequest, asked_of
from expost.service.core import Service
from expost.service.dashboard.forms import fields_of, question_of
from expost.service.problems import TITLES, Refusal, problem_of
from expost.service.tokens import AccessToken, Role, find_token, form_token, sign_in, sign_out
from expost.study.kinds import KINDS
from expost.study.svg import bars

COOKIE = "__Host-expost"
STATIC = StaticFiles(packages=[("expost.service.dashboard", "static")])
router = APIRouter(include_in_schema=False)
_PAGES = Environment(
    loader=PackageLoader("expost.service.dashboard"), autoescape=select_autoescape(), trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
_PAGES.filters["when"] = lambda moment: f"{moment[:19].replace('T', ' ')} UTC"


class SignInNeeded(Exception):
    """Nobody is signed in."""


class Visitor:
    """Who looks at a page: a token, and the session that forms belong to."""

    def __init__(self, token: AccessToken, session: str) -> None:
        self.token, self.session = token, session

    @property
    def form(self) -> str:
        """What this session's forms carry."""
        return form_token(self.session)

    def require(self, *roles: Role) -> None:
        """Refuse other roles."""
        if self.token.role not in roles:
            raise Refusal(403, f"a token of role {self.token.role!r} may not see this page")


async def visitor_of(request: Request) -> Visitor:
    """Who is signed in. A form must come from a page of the same session, and of this site."""
    session = request.cookies.get(COOKIE, "")
    token = await service_of(request).token_of(session, session=True) if session else None
    if token is None or token.role == "engine":
        raise SignInNeeded
    visitor = Visitor(token, session)
    if request.method == "POST":
        _same_site(request)
        given = (await request.form()).get("form", "")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), visitor.form.encode()):
            raise Refusal(403, "this form is not of this session: load the page again")
    return visitor


Somebody = Annotated[Visitor, Depends(visitor_of)]


def page(name: str, visitor: Visitor | None = None, status: int = 200, **facts: Any) -> Response:
    """A rendered page."""
    text = _PAGES.get_template(name).render(visitor=visitor, **facts)
    return Response(text, status, media_type="text/html; charset=utf-8")


def refusal_page(request: Request, refusal: Refusal) -> Response:
    """Why a page cannot be shown."""
    return page("problem.html", status=refusal.status, problem=refusal, title=TITLES[refusal.status])


# ---- signing in and out


@router.get("/sign-in")
async def sign_in_page() -> Response:
    """Where a token is given."""
    return page("sign-in.html")


@router.post("/sign-in")
async def give_token(request: Request, here: Here) -> Response:
    """A token for a cookie that no script and no other site can use."""
    _same_site(request)
    secret = (await request.form()).get("token", "")
    token = await asyncio.to_thread(find_token, here.database, secret.strip()) if isinstance(secret, str) else None
    if token is None or token.role == "engine":
        return page("sign-in.html", status=401, wrong=True)
    session = await asyncio.to_thread(sign_in, here.database, token)
    reply = RedirectResponse("/", 303)
    reply.set_cookie(COOKIE, session, httponly=True, secure=True, samesite="strict", path="/")
    return reply


@router.post("/sign-out")
async def leave(here: Here, who: Somebody) -> Response:
    """End the session."""
    await asyncio.to_thread(sign_out, here.database, who.session)
    here.forget_tokens()
    reply = RedirectResponse("/sign-in", 303)
    reply.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return reply


# ---- budgets and entries


@router.get("/")
async def budgets(here: Here, who: Somebody) -> Response:
    """Limit, spent, reserved and remaining of each account; and what was charged per day."""
    top = await here.account(who.token)
    balances = [here.window.balance(each) for each in here.window.below(top)]
    days = await asyncio.to_thread(_days, here, top)
    return page("budgets.html", who, balances=[each | {"bar": _bar(each)} for each in balances], days=days)


@router.get("/entries")
async def entries_page(here: Here, who: Somebody) -> Response:
    """The last entries: reserved, charged, refunded."""
    top = await here.account(who.token)
    found = await asyncio.to_thread(lambda: [entry_reply(each) for each in here.window.entries(top, 200)])
    return page("entries.html", who, entries=found[::-1])


@router.get("/live")
async def live(here: Here, who: Somebody) -> StreamingResponse:
    """Balances and answered jobs as they change, for open pages."""
    account = await here.account(who.token)
    return StreamingResponse(events(here, who.token, account), media_type="text/event-stream")


# ---- asking


@router.get("/ask")
async def choose(here: Here, who: Somebody) -> Response:
    """Data sets, and the kinds of questions that they answer."""
    who.require("analyst")
    data = [each.facts() for each in here.served.values() if each.about.ledger == who.token.path[0]]
    return page("ask.html", who, data=data, kinds=KINDS)


@router.get("/ask/{data}/{kind}")
async def ask_form(here: Here, who: Somebody, data: str, kind: str) -> Response:
    """The form of a kind of question."""
    return await _form(here, who, data, kind, {})


@router.post("/ask/{data}/{kind}")
async def ask(request: Request, here: Here, who: Somebody, data: str, kind: str) -> Response:
    """What a question would cost; and then, if that was wanted, ask it."""
    typed = {name: value for name, value in (await request.form()).items() if isinstance(value, str)}
    if typed.get("do") != "ask":
        return await _form(here, who, data, kind, typed)
    who.require("analyst")
    found = here.data_of(who.token, data)
    body = {"questions": [question_of(_known(kind, found.about.kinds), typed)]}
    try:
        job = await here.submit(who.token, found, body, typed.get("key") or secrets.token_hex(16))
    except (InvalidRequest, Refusal):
        return await _form(here, who, data, kind, typed)
    return RedirectResponse(f"/jobs/{job.id}", 303)


async def _form(here: Service, who: Visitor, data: str, kind: str, typed: dict[str, str]) -> Response:
    who.require("analyst")
    await here.account(who.token)
    found = here.data_of(who.token, data)
    _known(kind, found.about.kinds)
    plan, wrong = None, None
    if typed:
        try:
            body = {"questions": [question_of(kind, typed)]}
            plan = plan_reply((await asyncio.to_thread(here.plan, who.token, found, asked_of(body)))[1])
        except (InvalidRequest, Refusal) as error:
            wrong = problem_of(error)
    return page(
        "form.html", who, status=422 if wrong else 200, data=found.facts(), kind=KINDS[kind],
        fields=fields_of(kind, found, typed), plan=plan, wrong=wrong, key=typed.get("key") or secrets.token_hex(16),
    )  # fmt: skip


# ---- jobs and answers


@router.get("/jobs")
async def jobs(here: Here, who: Somebody) -> Response:
    """The account's jobs."""
    who.require("analyst")
    found = await asyncio.to_thread(here.jobs.of_account, who.token.account, 200)
    return page("jobs.html", who, jobs=[job_reply(each) for each in found])


@router.get("/jobs/{job}")
async def job_page(here: Here, who: Somebody, job: str) -> Response:
    """A job and its answers, with plots."""
    who.require("analyst")
    found = job_reply(await own_job(here, who.token, job))
    return page("job.html", who, job=found, plots=_plots(found["result"]))


# ---- reviews and audit


@router.get("/reviews")
async def review_page(here: Here, who: Somebody) -> Response:
    """Jobs that wait for a decision."""
    who.require("custodian")
    found = await asyncio.to_thread(reviews, here, who.token)
    shown = [each | {"text": json.dumps(each["asked"], indent=1, ensure_ascii=False)} for each in found]
    return page("reviews.html", who, reviews=shown)


@router.post("/reviews/{job}")
async def review(request: Request, here: Here, who: Somebody, job: str) -> Response:
    """Accept or decline."""
    who.require("custodian")
    typed = await request.form()
    reason, verdict = str(typed.get("reason", "")).strip()[:2000], typed.get("verdict")
    if not reason or verdict not in ("accept", "decline"):
        raise Refusal(422, "say why, and accept or decline")
    await asyncio.to_thread(decide_job, here, who.token, job, verdict == "accept", reason)
    return RedirectResponse("/reviews", 303)


@router.get("/audit")
async def audit_page(here: Here, who: Somebody) -> Response:
    """The last lines of the trail."""
    return await _audit(here, who, None)


@router.post("/audit")
async def verify_page(here: Here, who: Somebody) -> Response:
    """Verify the whole trail."""
    who.require("auditor", "custodian")
    return await _audit(here, who, await asyncio.to_thread(here.ledger(_ledger(who)).verify))


@router.get("/audit/trail.jsonl")
async def download(here: Here, who: Somebody) -> StreamingResponse:
    """The whole trail."""
    who.require("auditor", "custodian")
    headers = {"content-disposition": 'attachment; filename="trail.jsonl"'}
    return StreamingResponse(exported_lines(here, _ledger(who)), media_type="application/jsonl", headers=headers)


async def _audit(here: Service, who: Visitor, head: Any) -> Response:
    who.require("auditor", "custodian")
    ledger = _ledger(who)
    after = max(0, here.window.sequence(ledger) - 50)
    lines = await asyncio.to_thread(lambda: list(here.window.trail(ledger, after)))
    return page("audit.html", who, lines=lines[::-1], head=head, ledger=ledger)


# ---- inside


def _ledger(who: Visitor) -> str:
    if len(who.token.path) > 1:
        raise Refusal(404, "the audit trail is the whole ledger's, and this token is for an account of it")
    return who.token.account


def _same_site(request: Request) -> None:
    """A browser states where a form comes from; a client that does not is not a browser, and has no cookie to abuse."""
    origin = request.headers.get("origin")
    names = service_of(request).config.hosts or (request.headers.get("host"),)
    if origin is not None and urlsplit(origin).netloc not in names:
        raise Refusal(403, "this form comes from another site")


def _known(kind: str, kinds: tuple[str, ...]) -> str:
    if kind not in kinds:
        raise Refusal(404, "there is no such kind of question here")
    return kind


def _bar(balance: dict[str, Any]) -> dict[str, str]:
    """Shares of the limit, in percent."""
    limit = float(balance["limit"]["epsilon"]) or 1.0
    spent, reserved = (100 * float(balance[name]["epsilon"]) / limit for name in ("spent", "reserved"))
    return {"spent": f"{spent:.3f}", "reserved": f"{reserved:.3f}"}


def _days(here: Service, account: str) -> list[dict[str, Any]]:
    days: dict[tuple[str, str], list[Cost]] = defaultdict(lambda: [Cost(0)] * 3)
    for entry in here.window.entries(account, 5000):
        sums = days[f"{entry.when:%Y-%m-%d}", entry.account]
        for place, cost in enumerate((entry.reserved, entry.charged, entry.refunded)):
            sums[place] = sums[place] + (cost or Cost(0))
    return [
        {"day": day, "account": name, "reserved": sums[0], "charged": sums[1], "refunded": sums[2]}
        for (day, name), sums in sorted(days.items(), reverse=True)
    ]


def _plots(result: dict[str, Any] | None) -> dict[str, Markup]:
    """The report's own plots of answers that are several numbers."""
    found = (result or {}).get("questions", [])
    return {
        each["name"]: Markup(bars(each["bars"], each["error"], f"{each['label']}, as bars"))
        for each in found
        if each["bars"]
    }
