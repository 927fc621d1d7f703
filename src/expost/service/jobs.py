"""Jobs: accepted once per key and account, with what they may spend set aside and their answer time fixed.

Everything that shows of a job is decided when it is accepted: what is held for it, when it starts and when its answer
comes. How long it takes shows nowhere, unless it is not done at its answer time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from expost.accounting.amounts import Amounts, beside_epsilon, capacity_with
from expost.cost import Cost
from expost.errors import LedgerUnavailable
from expost.ledger.engine import Rows
from expost.ledger.entry import Balance
from expost.service.config import DataSet, ServerConfig
from expost.service.database import ServiceTables
from expost.service.results import failed_text
from expost.service.schedule import Placed, Schedule, Times

JobState = Literal["review", "accepted", "ready", "done"]
_COLUMNS = ", ".join((
    "number", "id", "account", "token", "key", "data", "definition", "body", "state", "owner", "accepted_at",
    "lane", "starts_at", "next_at", "due_at", "held", "begun", "postings", "result", "delivered_at", "decision", "plan",
))  # fmt: skip
_LISTED = _COLUMNS.replace("result", "substr(result, 1, 40)").replace("postings", "NULL").replace("plan", "NULL")
"""Results may be large: lists have as much of them as says how a job ended."""
_BARE = _LISTED.replace("substr(result, 1, 40)", "NULL")
"""A database reads the whole of a result for its first words."""
_PLACE = "account, owner, starts_at, next_at, due_at, questions"
_UNANSWERED = "delivered_at IS NULL AND state <> 'review'"
_LAST = 2**63 - 1
SILENCE = 30
"""Seconds after which a silent process's jobs are taken over by another."""


class ServiceJob(NamedTuple):
    """A row of the table. Times are microseconds since 1970."""

    number: int
    id: str
    account: str
    token: str
    """The id of the token that asked."""
    key: str
    data: str
    definition: str
    body: str
    state: JobState
    owner: str
    accepted_at: int
    lane: int
    starts_at: int
    """When it starts, for all that callers know: until then it can be cancelled."""
    next_at: int
    """When the account's next job may start."""
    due_at: int
    """The answer time."""
    held: str | None
    begun: int
    """1 if sampling may have begun, 2 if the process that began has ended; 3 and 4 if its time is over, and it had not,
    or had, begun."""
    postings: str | None
    result: str | None
    delivered_at: int | None
    decision: str | None
    plan: str | None = None
    """What it would have cost when it was asked, as JSON, if it waits, or waited, for a review."""

    @property
    def path(self) -> tuple[str, ...]:
        """The account's path."""
        return tuple(self.account.split("/"))


class _Place(NamedTuple):
    """Of a job that is not answered, what its lane's timetable has: all of it is public."""

    account: str
    owner: str
    start: int
    next: int
    due: int
    questions: int


class Held(NamedTuple):
    """What is set aside for a job, and the books when that was done."""

    charge: Amounts
    levels: tuple[Balance, ...]

    def to_texts(self) -> tuple[str, str]:
        """As it is kept: the charge by itself, because charges are added up whenever a job is accepted; and all."""
        charge = list(self.charge)
        return json.dumps(charge), json.dumps([charge, [_level(each) for each in self.levels]])

    @classmethod
    def of_text(cls, text: str) -> Held:
        """The second text that :meth:`to_texts` wrote."""
        charge, levels = json.loads(text)
        return cls(Amounts(*charge), tuple(_balance(*each) for each in levels))


def _level(level: Balance) -> list[list[int]]:
    return [[*Amounts.of(level.limit)[:2], *beside_epsilon(level.capacity)], [*level.charged], [*level.reserved]]


def _balance(limit: list[int], charged: list[int], reserved: list[int]) -> Balance:
    stated = Cost.of_units(*limit[:2])
    return Balance(stated, capacity_with(stated, *limit[2:]), Amounts(*charged), Amounts(*reserved))


@dataclass(frozen=True)
class JobRequest:
    """Somebody wants to ask."""

    account: str
    token: str
    key: str
    data: DataSet
    body: str
    """Canonical JSON."""
    questions: int = 1
    plan: str | None = None
    """For whoever reviews it."""


class Admission(NamedTuple):
    """What came of a request: new, known from before, another request's key, too many already, or too little left."""

    verdict: Literal["new", "known", "conflict", "full", "short", "closed"]
    job: ServiceJob | None = None
    remaining: Cost | None = None


class InFlight(NamedTuple):
    """The most that one account has in flight."""

    jobs: int
    questions: int
    reviews: int


Admit = Callable[[Rows, str], Held | Cost | None]
"""Sets aside what a job of an account may spend: what is held, or what remains if that is too little, or None if the
account is closed. It sees the books as they are in the transaction."""


class Jobs:
    """The table of jobs, for one process that serves."""

    def __init__(
        self, database: ServiceTables, owner: str, limits: InFlight, schedule: Schedule, lanes: Mapping[str, int]
    ) -> None:
        self._database, self.owner, self._limits, self._schedule = database, owner, limits, schedule
        self._lanes = lanes
        """Of each data set."""

    def accept(self, request: JobRequest, now: int, admit: Admit) -> Any:
        """A future of an :class:`Admission`, on the disk. Idempotent: the same key and request is the same job."""

        def work(run: Rows) -> Admission:
            known = run(f"SELECT {_BARE} FROM expost_job WHERE account = ? AND key = ?", request.account, request.key)
            if known:
                job = ServiceJob(*known[0])
                same = (job.data, job.body) == (request.data.name, request.body)
                return Admission("known", job) if same else Admission("conflict")
            if self._is_full(run, request):
                return Admission("full")
            return self._review(run, request, now) if request.data.review else self._new(run, request, now, admit)

        return self._database.submit(work)

    def _is_full(self, run: Rows, request: JobRequest) -> bool:
        waits = "state = 'review'" if request.data.review else "state <> 'review'"
        ((jobs, questions),) = run(
            "SELECT count(*), coalesce(sum(questions), 0) FROM expost_job WHERE account = ? AND delivered_at IS NULL "
            f"AND {waits}", request.account,
        )  # fmt: skip
        if request.data.review:
            return bool(jobs >= self._limits.reviews)
        return bool(jobs >= self._limits.jobs or questions + request.questions > self._limits.questions)

    def _review(self, run: Rows, request: JobRequest, now: int) -> Admission:
        return Admission("new", self._insert(run, request, "review", now, Times(now, now, now), (None, None)))

    def _new(self, run: Rows, request: JobRequest, now: int, admit: Admit) -> Admission:
        held = admit(run, request.account)
        if not isinstance(held, Held):
            return Admission("closed" if held is None else "short", remaining=held)
        times = self._times(run, request.account, request.data.name, request.questions, now)
        return Admission("new", self._insert(run, request, "accepted", now, times, held.to_texts()))

    def _times(self, run: Rows, account: str, data: str, questions: int, now: int) -> Times:
        rows = run(f"SELECT {_PLACE} FROM expost_job WHERE {_UNANSWERED} AND lane = ?", self._lanes[data])
        return self._placed(account, questions, now, 0, [_Place(*row) for row in rows])

    def _placed(self, account: str, questions: int, now: int, free_at: int, waiting: list[_Place]) -> Times:
        """The times of a job among those that wait in its lane."""
        free_at = max([free_at, *(each.next for each in waiting if each.account == account)])
        accounts = len({account, *(each.account for each in waiting)})
        pace = self._schedule.pace
        placed = [
            Placed(each.start, each.due, each.questions * pace) for each in waiting if each.owner == self.owner
        ]  # fmt: skip
        return self._schedule.times(now, free_at, questions, accounts, placed)

    def _insert(
        self,
        run: Rows,
        request: JobRequest,
        state: JobState,
        now: int,
        times: Times,
        held: tuple[str | None, str | None],
    ) -> ServiceJob:
        (made,) = run(
            "INSERT INTO expost_job (id, account, token, key, data, definition, body, questions, state, owner, "
            "accepted_at, lane, starts_at, next_at, due_at, charge, held, plan) "
            f"VALUES ({', '.join('?' * 18)}) RETURNING {_COLUMNS}",
            secrets.token_hex(16), request.account, request.token, request.key, request.data.name,
            request.data.definition, request.body, request.questions, state, self.owner, now,
            self._lanes[request.data.name], *times, *held, request.plan,
        )  # fmt: skip
        return ServiceJob(*made)

    @classmethod
    def of(cls, config: ServerConfig, database: ServiceTables) -> Jobs:
        """The jobs of a service, as its file says."""
        every, margin, pace = (round(each * 1e6) for each in (config.answer_every, config.margin, config.pace))
        limits = InFlight(config.queue, config.questions, config.reviews)
        lanes = {name: place % config.jobs_at_once for place, name in enumerate(sorted(config.data))}
        return cls(database, config.name, limits, Schedule(every, margin, pace), lanes)

    # ---- reading

    def known(self, request: JobRequest) -> ServiceJob | None:
        """The job of a request that was accepted before, without its result."""
        rows = self._database.rows(
            f"SELECT {_BARE} FROM expost_job WHERE account = ? AND key = ? AND data = ? AND body = ?",
            request.account, request.key, request.data.name, request.body,
        )  # fmt: skip
        return ServiceJob(*rows[0]) if rows else None

    def find(self, job: str) -> ServiceJob | None:
        """The job of that public name."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM expost_job WHERE id = ?", job)
        return ServiceJob(*rows[0]) if rows else None

    def line(self, job: str) -> ServiceJob | None:
        """The same without its result."""
        rows = self._database.rows(f"SELECT {_BARE} FROM expost_job WHERE id = ?", job)
        return ServiceJob(*rows[0]) if rows else None

    def of_account(self, account: str, limit: int, before: int | None = None) -> list[ServiceJob]:
        """The last jobs of an account, or those before a number, the newest first, without their results."""
        rows = self._database.rows(
            f"SELECT {_LISTED} FROM expost_job WHERE account = ? AND number < ? ORDER BY number DESC LIMIT ?",
            account, _LAST if before is None else before, limit,
        )  # fmt: skip
        return [ServiceJob(*row) for row in rows]

    def last(self, limit: int, below: str | None = None, *, waiting: bool = False) -> list[ServiceJob]:
        """The last jobs, of an account and those below it or of all, the newest first, without their results."""
        account = below or ""
        rows = self._database.rows(
            f"SELECT {_LISTED} FROM expost_job WHERE (? = '' OR account = ? OR substr(account, 1, ?) = ?) "
            f"{'AND delivered_at IS NULL ' if waiting else ''}ORDER BY number DESC LIMIT ?",
            account, account, len(account) + 1, f"{account}/", limit,
        )  # fmt: skip
        return [ServiceJob(*row) for row in rows]

    def in_review(self, ledgers: Iterable[str]) -> list[ServiceJob]:
        """What waits for a custodian of these ledgers, the oldest first."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM expost_job WHERE state = 'review' ORDER BY number")
        wanted = set(ledgers)
        return [job for job in (ServiceJob(*row) for row in rows) if job.path[0] in wanted]

    def undecided(self, account: str, limit: int, after: int = 0) -> list[ServiceJob]:
        """What waits for a custodian of an account: of those below it, after a number, the oldest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM expost_job WHERE state = 'review' AND decision IS NULL "
            "AND substr(account, 1, ?) = ? AND number > ? ORDER BY number LIMIT ?",
            len(account) + 1, f"{account}/", after, limit,
        )  # fmt: skip
        return [ServiceJob(*row) for row in rows]

    def delivered_since(self, when: int) -> list[tuple[str, str]]:
        """Names and accounts of jobs that were answered after a time."""
        rows = self._database.rows(
            "SELECT id, account FROM expost_job WHERE delivered_at > ? ORDER BY number", when
        )  # fmt: skip
        return [(job, account) for job, account in rows]

    def counts(self, account: str) -> dict[str, int]:
        """How many jobs of an account and of those below it there are, as callers see them.

        Whether one is ready shows at its answer time.
        """
        rows = self._database.rows(
            "SELECT CASE WHEN delivered_at IS NOT NULL THEN 'done' WHEN state = 'review' THEN 'review' ELSE 'accepted' "
            "END, count(*) FROM expost_job WHERE account = ? OR substr(account, 1, ?) = ? GROUP BY 1",
            account, len(account) + 1, f"{account}/",
        )  # fmt: skip
        return {"review": 0, "accepted": 0, "done": 0} | {state: int(count) for state, count in rows}

    # ---- deciding

    def decide(self, job: str, decision: str) -> ServiceJob | None:
        """Take a verdict, if it is the first. None if somebody else has decided."""

        def work(run: Rows) -> list[Any]:
            return run(
                "UPDATE expost_job SET decision = ?, owner = ? WHERE id = ? AND state = 'review' AND decision IS NULL "
                f"RETURNING {_COLUMNS}", decision, self.owner, job,
            )  # fmt: skip

        rows = self._database.write(work)
        return ServiceJob(*rows[0]) if rows else None

    def go_on(self, job: ServiceJob, result: str | None, now: int, admit: Admit) -> Admission:
        """End a review that was decided and recorded: accept the job, unless there is a result already.

        "known" if that was done before.
        """

        def work(run: Rows) -> Admission:
            waits = run("SELECT questions FROM expost_job WHERE id = ? AND state = 'review' AND decision IS NOT NULL",
                        job.id)  # fmt: skip
            if not waits:
                return Admission("known")
            held: tuple[str | None, str | None] = (None, None)
            times = Times(now, now, self._schedule.due(now))
            if result is None:
                found = admit(run, job.account)
                if not isinstance(found, Held):
                    return Admission("closed" if found is None else "short", remaining=found)
                held, times = found.to_texts(), self._times(run, job.account, job.data, int(waits[0][0]), now)
            rows = run(
                "UPDATE expost_job SET state = ?, result = ?, starts_at = ?, next_at = ?, due_at = ?, charge = ?, "
                f"held = ?, owner = ? WHERE id = ? RETURNING {_COLUMNS}",
                "accepted" if result is None else "ready", result, *times, *held, self.owner, job.id,
            )  # fmt: skip
            return Admission("new", ServiceJob(*rows[0]))

        return self._database.write(work)

    def cancel(self, job: str, result: str, now: int) -> ServiceJob | None:
        """End a job whose public start is still to come, or that waits for a review. None if it has started."""

        def work(run: Rows) -> list[Any]:
            return run(
                "UPDATE expost_job SET state = 'done', result = ?, delivered_at = ?, charge = NULL, held = NULL, "
                "begun = 0 WHERE id = ? AND delivered_at IS NULL AND (state = 'review' AND decision IS NULL "
                f"OR state <> 'review' AND starts_at > ?) RETURNING {_COLUMNS}", result, now, job, now,
            )  # fmt: skip

        rows = self._database.write(work)
        return ServiceJob(*rows[0]) if rows else None

    # ---- running

    def begin(self, number: int) -> bool:
        """Record that sampling may begin; False if the job has ended meanwhile."""
        return bool(self._database.write(lambda run: run(
            "UPDATE expost_job SET begun = 1 WHERE number = ? AND state = 'accepted' AND begun = 0 AND owner = ? "
            "RETURNING number", number, self.owner,
        )))  # fmt: skip

    def keep(self, number: int, result: str, postings: str) -> None:
        """Keep what came out until the answer time; nothing, if that has passed, or another process has taken it."""
        self._database.write(lambda run: run(
            "UPDATE expost_job SET state = 'ready', result = ?, postings = ? WHERE number = ? AND state = 'accepted' "
            "AND begun = 1 AND owner = ?", result, postings, number, self.owner,
        ))  # fmt: skip

    # ---- at an answer time

    def due(self, slot: int, patience: int = 0) -> list[ServiceJob]:
        """This process's jobs that are to be answered then, in order of their answer times and acceptance.

        Those that are not ready are out of time first, so that what they may still find is never kept; with patience,
        only if they are late by more than that.
        """
        late = "delivered_at IS NULL AND state = 'accepted' AND begun < 2 AND owner = ? AND due_at <= ?"
        if self._database.rows(f"SELECT 1 FROM expost_job WHERE {late} LIMIT 1", self.owner, slot - patience):
            over = f"UPDATE expost_job SET begun = begun + 3 WHERE {late}"
            self._database.write(lambda run: run(over, self.owner, slot - patience))
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM expost_job WHERE delivered_at IS NULL AND state <> 'review' AND owner = ? "
            "AND due_at <= ? AND NOT (state = 'accepted' AND begun < 2) ORDER BY due_at, number", self.owner, slot,
        )  # fmt: skip
        return [ServiceJob(*row) for row in rows]

    def deliver(self, slot: int, results: Iterable[tuple[int, str]]) -> None:
        """Show results from now on."""
        writing = [(number, self._database.submit(_delivery(number, result, slot))) for number, result in results]
        for number, written in writing:
            try:
                written.result()
            except LedgerUnavailable:
                raise
            except Exception as error:  # one that cannot be written does not hold up the others
                self._database.write(_delivery(number, failed_text(error), slot))

    def beat(self, now: int) -> None:
        """Say that this process lives."""
        self._database.write(lambda run: run(
            "INSERT INTO expost_server (name, seen_at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
            "SET seen_at = excluded.seen_at", self.owner, now,
        ))  # fmt: skip

    def adopt(self, now: int) -> list[ServiceJob]:
        """Take over the jobs of processes that are silent; those that are now to be run here."""
        return self._taken_up(now, lambda run: self._take_over(run, now - SILENCE * 10**6))

    def own(self, now: int, *, everybody: bool) -> list[ServiceJob]:
        """What this process, which begins, has still to run: its own, and that of silent processes, or of everybody.

        What had begun under its name is lost.
        """

        def mine(run: Rows) -> set[int]:
            self._take_over(run, now + 1 if everybody else now - SILENCE * 10**6)
            return {number for (number,) in run(f"SELECT number FROM expost_job WHERE {_UNANSWERED} AND owner = ?",
                                                self.owner)}  # fmt: skip

        return self._taken_up(now, mine)

    def _take_over(self, run: Rows, silent: int) -> set[int]:
        """The jobs of processes of which nothing was heard since then are this process's."""
        taken = run(
            f"UPDATE expost_job SET owner = ? WHERE {_UNANSWERED} AND owner <> ? "
            "AND owner NOT IN (SELECT name FROM expost_server WHERE seen_at >= ?) RETURNING number",
            self.owner, self.owner, silent,
        )  # fmt: skip
        return {number for (number,) in taken}

    def _taken_up(self, now: int, which: Callable[[Rows], set[int]]) -> list[ServiceJob]:
        """Jobs whose process has ended, placed anew; those that nobody began, in order of acceptance."""

        def work(run: Rows) -> list[ServiceJob]:
            jobs = which(run)
            return self._placed_anew(run, jobs, now) if jobs else []

        return self._database.write(work)

    def _placed_anew(self, run: Rows, jobs: set[int], now: int) -> list[ServiceJob]:
        """Give jobs the times that they would have if they were accepted now, one after the other, after all others.

        No time comes before one that was told. All of them are placed, by what is public, and only those that nobody
        began get their new times: which had begun changes nothing for the others. What had begun is lost.

        Proof: lem-timetable
        """
        found: list[ServiceJob] = []
        lanes: dict[int, list[_Place]] = {}
        rows = run(f"SELECT number, data, lane, state, begun, {_PLACE} FROM expost_job WHERE {_UNANSWERED} "
                   "ORDER BY number")  # fmt: skip
        for number, _, lane, _, _, *place in rows:
            if number not in jobs:
                lanes.setdefault(lane, []).append(_Place(*place))
        for number, data, lane, state, begun, *place in rows:
            if number in jobs:
                told, lane = _Place(*place), self._lanes.get(data, lane)
                among = lanes.setdefault(lane, [])
                times = self._placed(told.account, told.questions, now, told.start, among)
                times = times._replace(due=max(times.due, told.due))
                among.append(told._replace(start=times.start, next=times.next, due=times.due))
                if state == "accepted":
                    found += self._again(run, number, begun, lane, times)
        return found

    def _again(self, run: Rows, number: int, begun: int, lane: int, times: Times) -> list[ServiceJob]:
        if begun:
            run("UPDATE expost_job SET begun = 2 WHERE number = ? AND begun = 1", number)
            return []
        rows = run(
            "UPDATE expost_job SET lane = ?, starts_at = ?, next_at = ?, due_at = ? WHERE number = ? "
            f"RETURNING {_COLUMNS}", lane, *times, number,
        )  # fmt: skip
        return [ServiceJob(*row) for row in rows]


def _delivery(number: int, result: str, slot: int) -> Callable[[Rows], Any]:
    return lambda run: run(
        "UPDATE expost_job SET state = 'done', result = ?, postings = NULL, delivered_at = ? WHERE number = ? "
        "AND delivered_at IS NULL", result, slot, number,
    )  # fmt: skip
