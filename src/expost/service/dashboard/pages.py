"""The pages, and who may see them. A page shows what the API would: nothing of other accounts, nothing too early."""

from __future__ import annotations

import hmac
import json
import secrets
from collections import defaultdict
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from starlette.staticfiles import StaticFiles

from expost.cost import Cost
from expost.reporting.charts import chart_of
from expost.service import governance
from expost.service.api.access import Here, service_of
from expost.service.api.asking import MOST_LISTED, own_job
from expost.service.api.governing import MOST_REVIEWS
from expost.service.api.reading import exported_lines, listening
from expost.service.api.shapes import entry_reply, job_line, job_text, review_text
from expost.service.asked import InvalidRequest, asked_of
from expost.service.core import Service
from expost.service.dashboard.forms import fields_of, question_of
from expost.service.lines import RULE, is_line
from expost.service.problems import TITLES, Refusal, problem_of
from expost.service.results import plan_reply
from expost.service.tokens import AccessToken, Role, form_token
from expost.study.kinds import KINDS

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
    token = await service_of(request).door.token_of(session, session=True) if session else None
    if token is None or token.role == "engine":
        raise SignInNeeded
    visitor = Visitor(token, session)
    request.state.account = token.account
    if request.method == "POST":
        _same_site(request)
        given = (await request.form()).get("form", "")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), visitor.form.encode()):
            raise Refusal(403, "this form is not of this session: load the page again")
    return visitor


Somebody = Annotated[Visitor, Depends(visitor_of)]


def page(name: str, visitor: Visitor | None = None, status: int = 200, **facts: Any) -> Response:
    """A rendered page. One that grows with what was asked or answered is rendered by a thread."""
    text = _PAGES.get_template(name).render(visitor=visitor, **facts)
    return Response(text.encode(errors="backslashreplace"), status, media_type="text/html; charset=utf-8")


def refusal_page(request: Request, refusal: Refusal) -> Response:
    """Why a page cannot be shown."""
    shown = page("problem.html", status=refusal.status, problem=refusal, title=TITLES[refusal.status])
    shown.headers.update(refusal.headers)
    return shown


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
    token = await here.door.token_of(secret.strip()) if isinstance(secret, str) else None
    if token is None or token.role == "engine":
        return page("sign-in.html", status=401, wrong=True)
    session = await here.door.sign_in(token)
    reply = RedirectResponse("/", 303)
    reply.set_cookie(COOKIE, session, httponly=True, secure=True, samesite="strict", path="/")
    return reply


@router.post("/sign-out")
async def leave(here: Here, who: Somebody) -> Response:
    """End the session."""
    await here.door.sign_out(who.session)
    reply = RedirectResponse("/sign-in", 303)
    reply.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return reply


# ---- budgets and entries


@router.get("/")
async def budgets(here: Here, who: Somebody, after: str | None = None) -> Response:
    """Limit, spent, reserved and remaining of each account, in pages; and what was charged per day."""
    top = await here.account(who.token)
    behind = None if after is None else await here.account(who.token, after)

    def shown() -> Response:
        found = here.window.below(top, MOST_LISTED + 1, behind)
        balances = [here.window.balance(each) for each in found[:MOST_LISTED]]
        bars = [each | {"bar": bar_of(each)} for each in balances]
        metered = here.window.imagined(top).meters is not None
        more = found[MOST_LISTED - 1] if len(found) > MOST_LISTED else None
        return page("budgets.html", who, balances=bars, days=_days(here, top), metered=metered, more=more)

    return await here.callers.work(who.token.account, shown)


@router.get("/entries")
async def entries_page(here: Here, who: Somebody) -> Response:
    """The last entries: reserved, charged, refunded."""
    top = await here.account(who.token)

    def shown() -> Response:
        return page("entries.html", who, entries=[entry_reply(each) for each in here.window.entries(top, 200)][::-1])

    return await here.callers.work(who.token.account, shown)


@router.get("/live")
async def live(here: Here, who: Somebody) -> StreamingResponse:
    """Balances and answered jobs as they change, for open pages."""
    return listening(here, who.token, await here.account(who.token), session=who.session)


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
        job, _ = await here.submit(who.token, found, body, typed.get("key") or secrets.token_hex(16))
    except (InvalidRequest, Refusal) as error:
        return await _form(here, who, data, kind, typed, problem_of(error))
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _key_of(typed: dict[str, str], wrong: Refusal | None) -> str:
    """A job's key goes with its form, so that nobody asks twice; one that belongs to another job is left to that."""
    taken = wrong is not None and wrong.more.get("error") == "KeyConflict"
    return secrets.token_hex(16) if taken else typed.get("key") or secrets.token_hex(16)


async def _form(
    here: Service, who: Visitor, data: str, kind: str, typed: dict[str, str], refused: Refusal | None = None
) -> Response:
    """A form with what was typed, what that would cost, and why it was refused, if it was."""
    who.require("analyst")
    await here.account(who.token)
    found = here.data_of(who.token, data)
    _known(kind, found.about.kinds)

    def shown() -> Response:
        plan, wrong = None, refused
        if typed:
            try:
                body = {"questions": [question_of(kind, typed)]}
                plan = plan_reply(here.plan(who.token, found, asked_of(body))[1])
            except (InvalidRequest, Refusal) as error:
                wrong = wrong or problem_of(error)
        form = page(
            "form.html", who, status=wrong.status if wrong else 200, data=found.facts(), kind=KINDS[kind],
            fields=fields_of(kind, found, typed), plan=plan, wrong=wrong, key=_key_of(typed, wrong),
        )  # fmt: skip
        form.headers.update(wrong.headers if wrong else {})
        return form

    return await here.callers.plans.run(who.token.account, shown)


# ---- jobs and answers


@router.get("/jobs")
async def jobs_page(here: Here, who: Somebody, after: str | None = None) -> Response:
    """The account's jobs, in pages."""
    who.require("analyst")
    before = None if after is None else (await own_job(here, who.token, after)).number

    def shown() -> Response:
        found = here.jobs.of_account(who.token.account, MOST_LISTED + 1, before)
        more = found[MOST_LISTED - 1].id if len(found) > MOST_LISTED else None
        return page("jobs.html", who, jobs=[job_line(each) for each in found[:MOST_LISTED]], more=more)

    return await here.callers.work(who.token.account, shown)


@router.get("/jobs/{job}")
async def job_page(here: Here, who: Somebody, job: str) -> Response:
    """A job and its answers, with plots."""
    who.require("analyst")
    own = await own_job(here, who.token, job)

    def shown() -> Response:
        found = json.loads(job_text(here.jobs.find(own.id) or own._replace(result=None)))
        return page("job.html", who, job=found, plots=_plots(found["result"]))

    return await here.callers.results.run(who.token.account, shown)


# ---- reviews and audit


@router.get("/reviews")
async def review_page(here: Here, who: Somebody, after: str | None = None) -> Response:
    """Jobs that wait for a decision, in pages."""
    who.require("custodian")

    def shown() -> Response:
        found = governance.to_decide(here, who.token, MOST_REVIEWS + 1, after)
        more = found[MOST_REVIEWS - 1].id if len(found) > MOST_REVIEWS else None
        jobs = [json.loads(review_text(each)) for each in found[:MOST_REVIEWS]]
        texts = [each | {"text": json.dumps(each["asked"], indent=1, ensure_ascii=False)} for each in jobs]
        return page("reviews.html", who, reviews=texts, more=more)

    return await here.callers.work(who.token.account, shown)


@router.post("/reviews/{job}")
async def review(request: Request, here: Here, who: Somebody, job: str) -> Response:
    """Accept or decline."""
    who.require("custodian")
    typed = await request.form()
    reason, verdict = str(typed.get("reason", "")).strip(), typed.get("verdict")
    if not is_line(reason) or verdict not in ("accept", "decline"):
        raise Refusal(422, f"say why, and accept or decline. A reason is {RULE}")
    await here.callers.work(
        who.token.account,
        lambda: governance.give_verdict(here, who.token, job, accept=verdict == "accept", reason=reason),
    )
    return RedirectResponse("/reviews", 303)


@router.get("/audit")
async def audit_page(here: Here, who: Somebody) -> Response:
    """The last lines of the trail."""
    return await _audit(here, who, None)


@router.post("/audit")
async def verify_page(here: Here, who: Somebody) -> Response:
    """Verify the whole trail."""
    who.require("auditor", "custodian")
    return await _audit(
        here, who, await here.callers.work(who.token.account, lambda: here.ledger(_ledger(who)).verify())
    )


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

    def shown() -> Response:
        lines = list(here.window.trail(ledger, after))[::-1]
        return page("audit.html", who, lines=lines, head=head, ledger=ledger)

    return await here.callers.work(who.token.account, shown)


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


def bar_of(balance: dict[str, Any]) -> dict[str, str]:
    """Shares of all that was spent here, is reserved, or can still be asked for, in percent: never more than all of it.

    Not of the limit: accounts above may allow less than it, and other meters more than its basic sum.
    """
    spent, reserved, remaining = (Fraction(balance[name]["epsilon"]) for name in ("spent", "reserved", "remaining"))
    whole = spent + reserved + remaining or Fraction(1)
    return {"spent": f"{float(100 * spent / whole):.3f}", "reserved": f"{float(100 * reserved / whole):.3f}"}


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
    """The report's own charts of answers that are several numbers."""
    drawn = ((each["name"], chart_of(each)) for each in (result or {}).get("questions", []))
    return {name: Markup(chart) for name, chart in drawn if chart}
