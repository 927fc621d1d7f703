"""A service that is open: its data sets, tables and answer times. What routes do, they do through it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import IO, Any

from expost.accounting.amounts import together
from expost.canonical import canonical
from expost.cost import Cost
from expost.errors import Busy, InvalidStudy, UnknownEntry
from expost.ledger import Ledger
from expost.ledger.remedies import no_file
from expost.service.asked import Fault, Inquiry, InvalidRequest, asked_of
from expost.service.bell import Bell
from expost.service.callers import Callers
from expost.service.config import ServerConfig
from expost.service.database import ServiceTables
from expost.service.door import Door
from expost.service.governance import finish_left
from expost.service.heartbeat import Heartbeat
from expost.service.jobs import Admission, JobRequest, Jobs, ServiceJob
from expost.service.posting import Poster
from expost.service.problems import KEY_TAKEN, Refusal, problem_of
from expost.service.results import CHANGED, ended, plan_reply, result_of, result_text
from expost.service.retention import Retention
from expost.service.runner import Runner
from expost.service.served import Served, open_data
from expost.service.tokens import AccessToken
from expost.service.window import Window
from expost.study.model import SQLITE, Study
from expost.study.plan import Plan, PlanLine
from expost.study.run import run_study

try:
    import fcntl
except ImportError:  # where there is no fork either
    fcntl = None  # type: ignore[assignment]

_GRACE = 20.0
CANCELLED = "it was cancelled before it started, and nothing was charged"


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
        self.jobs = Jobs.of(config, self.database)
        self.window = Window(self.database, config.ledgers)
        waits = config.late == "wait"
        self.runner = Runner(self.served, self.jobs, config.jobs_at_once, inf if waits else config.pace)
        poster, retention = Poster(self.ledger, self.runner), Retention(self.database, config.keep_results)
        patience = config.job_timeout if waits else 0
        self.bell = Bell(self.jobs, poster, self.window, retention, config.answer_every, patience=patience)
        self._heartbeat = Heartbeat(self.jobs, self.runner.put)
        self.stopping = False
        self._ringing: asyncio.Task[None] | None = None
        self.door = Door(self.database, config.ledgers, config.listeners, config.connections)
        self.callers = Callers()

    # ---- life

    async def start(self) -> None:
        """Take up what was accepted before, and ring from now on."""
        now = int(time.time() * 1e6)
        self.jobs.beat(now)
        for job in self.jobs.own(now, everybody=self.database.engine.local):
            self.runner.put(job)
        self.runner.start()
        self._heartbeat.start()
        await asyncio.to_thread(finish_left, self)
        self._ringing = asyncio.create_task(self.bell.ring_for_ever())

    async def stop(self) -> None:
        """Finish what is being worked on, keep it, and let go."""
        self.stopping = True
        await asyncio.to_thread(self.runner.stop, _GRACE)
        await asyncio.to_thread(self._heartbeat.stop)
        if self._ringing is not None:
            self._ringing.cancel()
            with suppress(asyncio.CancelledError):
                await self._ringing
        await asyncio.to_thread(self.database.close)
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()

    # ---- who asks

    async def account(self, token: AccessToken, wanted: str | None = None) -> str:
        """The account that is asked about: the token's own, or one below it. Others do not exist."""
        account = token.account if wanted is None else wanted
        if not token.covers(account):
            raise Refusal(404, "there is no such account")
        known = self.window.knows(account) or await self.callers.work(token.account, lambda: self.window.finds(account))
        if not known:
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
        return data.plan(asked, token.path, self.window.imagined(token.account))

    def check(self, account: str, data: Served, body: dict[str, Any]) -> Plan:
        """Refuse what cannot be accepted: its questions are wrong, or cannot fit. Reserves nothing."""
        if self.window.balance(account)["closed"]:
            raise _closed()
        if data.about.review and "/" not in account:
            raise Refusal(403, "jobs of a whole ledger have nobody above who reviews them: ask with an account's token")
        _, plan = data.plan(asked_of(body), tuple(account.split("/")), self.window.imagined(account))
        short = next((line for line in plan.lines if line.fit == "cannot fit" or line.needs_refunds), None)
        if short is not None:
            raise _short(short, plan.before)
        if plan.attempts > self.config.questions:
            raise _too_many(plan.attempts, self.config.questions)
        return plan

    async def submit(self, token: AccessToken, data: Served, body: dict[str, Any], key: str) -> tuple[ServiceJob, bool]:
        """Accept a job: it is on the disk when this returns, and what it may spend is set aside.

        Also whether it was accepted before.
        """

        def checked() -> tuple[JobRequest, Plan | Refusal]:
            text = canonical({name: body[name] for name in body if body[name]})
            request = JobRequest(token.account, token.id, key, data.about, text)
            try:
                return request, self.check(token.account, data, body)
            except Refusal as refusal:
                return request, refusal

        request, plan = await self.callers.submissions.run(token.account, checked)
        return await self.callers.briefly(lambda: self._known_or_accepted(request, plan))

    def _known_or_accepted(self, request: JobRequest, plan: Plan | Refusal) -> tuple[ServiceJob, bool]:
        try:
            if isinstance(plan, Refusal):
                raise plan
            return self._accepted(request, plan)
        except Refusal:
            known = self.jobs.known(request)
            if known is None:
                raise
            return known, True  # it was accepted when it did fit

    def _accepted(self, request: JobRequest, plan: Plan) -> tuple[ServiceJob, bool]:
        shown = json.dumps(plan_reply(plan), ensure_ascii=False) if request.data.review else None
        request = replace(request, questions=max(plan.attempts, 1), plan=shown)
        with self.window.gate.opened():
            accepting = self.jobs.accept(request, int(time.time() * 1e6), self.window.admit(plan.held))
            admission: Admission = accepting.result()
        return self._admitted(admission, plan)

    def _admitted(self, admission: Admission, plan: Plan) -> tuple[ServiceJob, bool]:
        verdict, job, remaining = admission
        if verdict == "conflict":
            raise Refusal(409, KEY_TAKEN, error="KeyConflict")
        if verdict == "full":
            raise Refusal(
                429, "too much waits for answers already: ask again after the next answers", error="Busy",
                retry_after=self.bell.until_next(),
            )  # fmt: skip
        if verdict == "closed":
            raise _closed()
        if verdict == "short":
            raise _too_little(plan.held.cost, remaining or Cost(0))
        assert job is not None
        if verdict == "new" and job.state == "accepted":
            self.runner.put(job)
        return job, verdict == "known"

    def cancel(self, job: ServiceJob) -> ServiceJob:
        """End a job that has not started, by the times that its owner was told."""
        with self.window.gate.opened():
            cancelled = self.jobs.cancel(job.id, result_text(ended("cancelled", CANCELLED)), int(time.time() * 1e6))
        if cancelled is None:
            raise Refusal(409, "it has started, or is over: a job can be cancelled until it starts", error="Started")
        self.runner.give_up(job.number)
        return cancelled

    async def rehearse(self, token: AccessToken, data: Served, body: dict[str, Any]) -> str:
        """Answers about made-up rows, as JSON: free, and not about anybody."""
        if not data.about.synthetic:
            raise Refusal(404, "this data set has no made-up rows")
        limit = self.window.levels(token.account)[-1].limit

        def rehearsed() -> str:
            asked = asked_of(body)
            return _rehearsed(data.study(asked, token.path, limit), asked)

        return await self.callers.rehearsals.run(token.account, rehearsed)

    def go_on(self, job: ServiceJob, result: str | None) -> None:
        """End a review that was decided and recorded: run the job, or, with a result, answer it at its time."""
        plan = None
        if result is None:
            try:
                plan = self.check(job.account, self.served[job.data], json.loads(job.body))
            except (Refusal, InvalidRequest, KeyError) as error:  # it did fit when it was asked
                result = _not_asked(error)
        with self.window.gate.opened():
            admit = self.window.admit(together([]) if plan is None else plan.held)
            going = self.jobs.go_on(job, result, int(time.time() * 1e6), admit)
        if going.verdict in ("closed", "short"):
            self.go_on(job, _not_asked(_closed() if going.verdict == "closed" else _too_little(Cost(0), Cost(0))))
        elif going.job is not None and going.job.state == "accepted":
            self.runner.put(going.job)


def _not_asked(error: Exception) -> str:
    problem = problem_of(Refusal(409, CHANGED) if isinstance(error, KeyError) else error)
    return result_text(ended("refused", problem.detail, problem.body()))


def _closed() -> Refusal:
    return Refusal(409, "nothing more can be spent here: it was closed", error="LedgerClosed")


def _too_little(asked: Cost, remaining: Cost) -> Refusal:
    return Refusal(
        409,
        f"asked for {asked} in all, and the largest affordable is {remaining}: nothing was charged",
        error="BudgetExceeded", requested=asked.to_json(), affordable=remaining.to_json(),
    )  # fmt: skip


def _too_many(attempts: int, most: int) -> Refusal:
    """To come again later would not help."""
    detail = (
        f"the questions of this job may be asked {attempts} times, repetitions included, and an account has at most "
        f"{most} under way: ask for fewer repetitions, or in several jobs. A custodian can raise 'questions'"
    )
    return Refusal(422, detail, faults=[Fault("", detail)], error="InvalidValue")


def _short(line: PlanLine, affordable: Cost) -> Refusal:
    asked = "something" if line.worst is None else f"{line.worst}"
    more: dict[str, Any] = {} if line.worst is None else {"requested": line.worst.to_json()}
    detail = f"question {line.question.name!r} asks for {asked}, and the largest affordable is {affordable}"
    if line.needs_refunds:
        name = line.question.name
        detail = f"question {name!r} fits only if those before it are refunded: ask it in a job of its own, after them"
    return Refusal(
        409, f"{detail}: nothing was charged", error="BudgetExceeded", affordable=affordable.to_json(), **more
    )  # fmt: skip


def _rehearsed(study: Study, asked: Inquiry) -> str:
    try:
        found = run_study(study, rehearse=True)
    except InvalidStudy as error:
        raise asked.refusal(error) from None
    return result_text(result_of(found.outcomes, found.error) | {"rehearsal": True})


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
