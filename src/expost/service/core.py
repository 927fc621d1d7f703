"""A service that is open: its data sets, tables, threads and answer times. What routes do, they do through it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import suppress
from typing import IO, Any

from expost.canonical import canonical
from expost.cost import Cost
from expost.errors import AlreadyReserved, Busy, InvalidStudy, KeyConflict, UnknownEntry
from expost.guarantee import Guarantee
from expost.ledger import Ledger
from expost.ledger.remedies import no_file
from expost.service.asked import Inquiry, asked_of
from expost.service.bell import Bell
from expost.service.config import ServerConfig
from expost.service.database import ServiceTables
from expost.service.jobs import JobRequest, Jobs, ServiceJob
from expost.service.problems import KEY_TAKEN, Refusal
from expost.service.results import ended, result_of, result_text
from expost.service.runner import Runner
from expost.service.served import Served, open_data
from expost.service.tokens import AccessToken, digest_of_secret, find_session, find_token, list_tokens
from expost.service.window import Window
from expost.study.model import SQLITE, Study
from expost.study.plan import Plan, PlanLine
from expost.study.run import run_study

try:
    import fcntl
except ImportError:  # where there is no fork either
    fcntl = None  # type: ignore[assignment]

_REMEMBERED = 1.0
"""Seconds for which a token is not looked up again: for so long another process may not know that it was revoked."""
_GRACE = 20.0


class Service:
    """Opens everything, and checks it: raises ``InvalidStudy`` with file and line before any port is opened."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._lock = _only_one(config.url)
        try:
            self.served = open_data(config)
            self.database = ServiceTables(config.url)
        except BaseException:
            self._let_go()
            raise
        self.jobs = Jobs(self.database, config.name, config.queue)
        self.window = Window(self.database, config.ledgers)
        self.runner = Runner(self.served, config.jobs_at_once)
        self.bell = Bell(self.jobs, self.runner, self.window, config.answer_every)
        self.stopping = False
        self._tokens: dict[str, tuple[AccessToken, float]] = {}
        self._revoked: frozenset[str] = frozenset()
        self._looked_until = 0.0
        self._looking = asyncio.Lock()
        self._ringing: asyncio.Task[None] | None = None
        self._rehearsing = asyncio.Semaphore(1)

    # ---- life

    async def start(self) -> None:
        """Take up what was accepted before, and ring from now on."""
        now = int(time.time() * 1e6)
        self.jobs.beat(now)
        self.jobs.adopt(now, everybody=self.database.engine.local)
        for job in self.jobs.own():
            self.runner.put(job)
        self.runner.start()
        self._ringing = asyncio.create_task(self.bell.ring_for_ever())

    async def stop(self) -> None:
        """Finish what is being worked on, keep it, and let go."""
        self.stopping = True
        await asyncio.to_thread(self.runner.stop, _GRACE)
        if self._ringing is not None:
            self._ringing.cancel()
            with suppress(asyncio.CancelledError):
                await self._ringing
        await self.bell.ring(self.bell.slot)  # keeps what is ready; nothing is due before the next answer time
        await asyncio.to_thread(self.database.close)
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()

    # ---- who asks

    async def token_of(self, secret: str, *, session: bool = False) -> AccessToken | None:
        """The token of a secret, or of a browser's session; None if it is not valid."""
        key = ("s" if session else "t") + digest_of_secret(secret)
        known = self._tokens.get(key)
        if known is not None and known[1] > time.monotonic() and known[0].valid:
            return known[0]
        found = await asyncio.to_thread(find_session if session else find_token, self.database, secret)
        self._tokens.pop(key, None)
        if found is not None and found.path[0] not in self.config.ledgers:
            found = None  # a ledger that is no longer served
        if found is not None:
            if len(self._tokens) > 10_000:
                self._tokens.clear()
            self._tokens[key] = found, time.monotonic() + _REMEMBERED
        return found

    def forget_tokens(self) -> None:
        """Look every token up again: one was revoked, or somebody signed out."""
        self._tokens.clear()
        self._looked_until = 0.0

    async def is_live(self, token: AccessToken) -> bool:
        """Whether a token has not ended meanwhile. Looked up once for all who listen."""
        async with self._looking:
            if self._looked_until < time.monotonic():
                found = await asyncio.to_thread(list_tokens, self.database)
                self._revoked = frozenset(each.id for each in found if each.revoked)
                self._looked_until = time.monotonic() + _REMEMBERED
        return token.valid and token.id not in self._revoked

    async def account(self, token: AccessToken, wanted: str | None = None) -> str:
        """The account that is asked about: the token's own, or one below it. Others do not exist."""
        account = token.account if wanted is None else wanted
        if not token.covers(account):
            raise Refusal(404, "there is no such account")
        if not self.window.knows(account):  # it may be younger than the last answer time
            await self.bell.wait(2 * self.config.answer_every)
        if not self.window.knows(account):
            raise Refusal(404, "there is no such account")
        return account

    def data_of(self, token: AccessToken, name: str) -> Served:
        """A data set that the token's ledger pays for. Others do not exist."""
        found = self.served.get(name)
        if found is None or found.about.ledger != token.path[0]:
            raise Refusal(404, "there is no such data set")
        return found

    def ledger(self, account: str) -> Ledger:
        """The live ledger or account, to change it."""
        path = tuple(account.split("/"))
        found = next((each for each in self.served.values() if each.about.ledger == path[0]), None)
        if found is None:
            raise UnknownEntry("there is no such account")
        return found.account(path)

    # ---- asking

    def plan(self, token: AccessToken, data: Served, asked: Inquiry) -> tuple[Study, Plan]:
        """What questions would cost now."""
        levels = self.window.levels(token.account)
        return data.plan(asked, token.path, levels[-1].limit, self.window.remaining(token.account))

    def check(self, token: AccessToken, data: Served, body: dict[str, Any]) -> None:
        """Refuse what cannot be accepted: its questions are wrong, or cannot fit. Reserves nothing."""
        if self.window.balance(token.account)["closed"]:
            raise Refusal(409, "nothing more can be spent here: it was closed", error="LedgerClosed")
        _, plan = self.plan(token, data, asked_of(body))
        short = next((line for line in plan.lines if line.fit == "cannot fit"), None)
        if short is not None:
            raise _short(short, plan.before)

    async def submit(self, token: AccessToken, data: Served, body: dict[str, Any], key: str) -> ServiceJob:
        """Accept a job: it is on the disk when this returns."""
        request = JobRequest(
            token.account, key, data.about, canonical({name: body[name] for name in body if body[name]})
        )
        try:
            await asyncio.to_thread(self.check, token, data, body)
        except Refusal:
            known = await asyncio.to_thread(self.jobs.known, request)
            if known is None:
                raise
            return known  # it was accepted when it did fit
        now = int(time.time() * 1e6)
        accepting = self.jobs.accept(request, now, now + int(self.config.margin * 1e6))
        verdict, job = await asyncio.wrap_future(accepting)
        if verdict == "conflict":
            raise Refusal(409, KEY_TAKEN, error="KeyConflict")
        if verdict == "full":
            raise Refusal(429, f"{self.config.queue} jobs wait for answers already: try again later", error="Busy")
        if verdict == "new" and job.state == "accepted":
            self.runner.put(job)
        found: ServiceJob = job
        return found

    async def rehearse(self, token: AccessToken, data: Served, body: dict[str, Any]) -> dict[str, Any]:
        """Answers about made-up rows: free, and not about anybody."""
        if not data.about.synthetic:
            raise Refusal(404, "this data set has no made-up rows")
        levels = self.window.levels(token.account)
        asked = asked_of(body)
        study = data.study(asked, token.path, levels[-1].limit)
        async with self._rehearsing:
            return await asyncio.to_thread(_rehearsed, study, asked)

    # ---- reviews

    def review(self, custodian: AccessToken, job: ServiceJob, *, accept: bool, reason: str) -> ServiceJob:
        """Accept or decline a job. In the trail it is an entry of the account, which charges nothing."""
        verdict = "accepted" if accept else "declined"
        label = f"review of job {job.id}: {verdict} by {custodian.name}: {reason}"
        with suppress(AlreadyReserved, KeyConflict):  # it is in the trail, and a crash came before the table
            key = f"review {job.id} {verdict}"
            self.ledger(job.account).reserve(Guarantee.uniform(0), label=label, key=key, begin=False).void()
        decision = json.dumps({"verdict": verdict, "by": custodian.name, "reason": reason}, ensure_ascii=False)
        due = int((time.time() + self.config.margin) * 1e6)
        result = None if accept else result_text(ended("declined", f"declined by a custodian: {reason}"))
        decided = self.jobs.decide(job.id, "accepted" if accept else "done", decision, result, due)
        if decided is None:
            raise Refusal(409, "somebody else has decided on it")
        if accept:
            self.runner.put(decided)
        return decided


def _short(line: PlanLine, affordable: Cost) -> Refusal:
    asked = "something" if line.worst is None else f"{line.worst}"
    more: dict[str, Any] = {} if line.worst is None else {"requested": line.worst.to_json()}
    detail = f"question {line.question.name!r} asks for {asked}, and the largest affordable is {affordable}"
    return Refusal(
        409, f"{detail}: nothing was charged", error="BudgetExceeded", affordable=affordable.to_json(), **more
    )  # fmt: skip


def _rehearsed(study: Study, asked: Inquiry) -> dict[str, Any]:
    try:
        found = run_study(study, rehearse=True)
    except InvalidStudy as error:
        raise asked.refusal(error) from None
    result: dict[str, Any] = json.loads(result_text(result_of(found.outcomes, found.error)))
    return result | {"rehearsal": True}


def _only_one(url: str) -> IO[bytes] | None:
    """A file of SQLite is served by one process: it holds a lock beside it while it lives."""
    if not url.startswith(SQLITE) or fcntl is None:
        return None
    path = url.removeprefix(SQLITE)
    if not os.path.exists(path):
        raise no_file(path)
    lock = open(f"{path}-service", "wb")  # noqa: SIM115 - it is held until the service stops
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise Busy("another process serves this file already; several need PostgreSQL") from None
    return lock
