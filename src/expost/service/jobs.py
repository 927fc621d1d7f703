"""Jobs: accepted once per key and account, run, answered at an answer time, in order of acceptance per account."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from expost.ledger.engine import Rows
from expost.service.config import DataSet
from expost.service.database import ServiceTables

JobState = Literal["review", "accepted", "done"]
_COLUMNS = ", ".join((
    "number", "id", "account", "key", "data", "definition", "body", "state", "owner", "accepted_at", "due_at", "result",
    "delivered_at", "decision",
))  # fmt: skip
_LAST = 2**63 - 1
SILENCE = 30
"""Seconds after which a silent process's jobs are taken over by another."""


class ServiceJob(NamedTuple):
    """A row of the table. Times are microseconds since 1970."""

    number: int
    id: str
    account: str
    key: str
    data: str
    definition: str
    body: str
    state: JobState
    owner: str
    accepted_at: int
    due_at: int
    result: str | None
    delivered_at: int | None
    decision: str | None

    @property
    def path(self) -> tuple[str, ...]:
        """The account's path."""
        return tuple(self.account.split("/"))


@dataclass(frozen=True)
class JobRequest:
    """Somebody wants to ask."""

    account: str
    key: str
    data: DataSet
    body: str
    """Canonical JSON."""


Acceptance = Literal["new", "known", "conflict", "full"]
"""Whether a job is new, was accepted before, has the key of another request, or finds the queue full."""


class Jobs:
    """The table of jobs, for one process that serves."""

    def __init__(self, database: ServiceTables, owner: str, queue: int) -> None:
        self._database, self.owner, self._queue = database, owner, queue

    def accept(self, request: JobRequest, now: int, due: int) -> Any:
        """A future of a verdict and the job, on the disk. Idempotent: the same key and request is the same job."""
        values = (
            secrets.token_hex(16), request.account, request.key, request.data.name, request.data.definition,
            request.body, "review" if request.data.review else "accepted", self.owner, now, due,
        )  # fmt: skip

        def work(run: Rows) -> tuple[Acceptance, ServiceJob | None]:
            known = run(
                f"SELECT {_COLUMNS} FROM expost_job WHERE account = ? AND key = ?", request.account, request.key
            )
            if known:
                job = ServiceJob(*known[0])
                same = (job.data, job.body) == (request.data.name, request.body)
                return ("known", job) if same else ("conflict", None)
            ((waiting,),) = run(
                "SELECT count(*) FROM expost_job WHERE account = ? AND delivered_at IS NULL", request.account
            )
            if waiting >= self._queue:
                return "full", None
            (made,) = run(
                "INSERT INTO expost_job (id, account, key, data, definition, body, state, owner, accepted_at, due_at) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}", *values,
            )  # fmt: skip
            return "new", ServiceJob(*made)

        return self._database.submit(work)

    # ---- reading

    def known(self, request: JobRequest) -> ServiceJob | None:
        """The job of a request that was accepted before."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM expost_job WHERE account = ? AND key = ? AND data = ? AND body = ?",
            request.account, request.key, request.data.name, request.body,
        )  # fmt: skip
        return ServiceJob(*rows[0]) if rows else None

    def find(self, job: str) -> ServiceJob | None:
        """The job of that public name."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM expost_job WHERE id = ?", job)
        return ServiceJob(*rows[0]) if rows else None

    def of_account(self, account: str, limit: int) -> list[ServiceJob]:
        """The last jobs of an account, the newest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM expost_job WHERE account = ? ORDER BY number DESC LIMIT ?", account, limit
        )
        return [ServiceJob(*row) for row in rows]

    def in_review(self, ledgers: Iterable[str]) -> list[ServiceJob]:
        """What waits for a custodian of these ledgers, the oldest first."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM expost_job WHERE state = 'review' ORDER BY number")
        wanted = set(ledgers)
        return [job for job in (ServiceJob(*row) for row in rows) if job.path[0] in wanted]

    def delivered_since(self, when: int) -> list[tuple[str, str]]:
        """Names and accounts of jobs that were answered after a time."""
        rows = self._database.rows(
            "SELECT id, account FROM expost_job WHERE delivered_at > ? ORDER BY number", when
        )  # fmt: skip
        return [(job, account) for job, account in rows]

    def counts(self) -> dict[str, int]:
        """How many jobs there are, by state."""
        rows = self._database.rows("SELECT state, count(*) FROM expost_job GROUP BY state")
        return {"review": 0, "accepted": 0, "done": 0} | {state: int(count) for state, count in rows}

    # ---- deciding

    def decide(self, job: str, state: JobState, decision: str, result: str | None, due: int) -> ServiceJob | None:
        """End a review. None if somebody else did."""

        def work(run: Rows) -> list[Any]:
            return run(
                "UPDATE expost_job SET state = ?, decision = ?, result = ?, due_at = ?, owner = ? WHERE id = ? "
                f"AND state = 'review' RETURNING {_COLUMNS}", state, decision, result, due, self.owner, job,
            )  # fmt: skip

        rows = self._database.write(work)
        return ServiceJob(*rows[0]) if rows else None

    # ---- at an answer time

    def ring(self, finished: Iterable[tuple[int, str]], now: int) -> None:
        """Keep what is ready, and deliver it, in order of acceptance per account."""
        results = list(finished)

        def work(run: Rows) -> None:
            for number, result in results:
                run("UPDATE expost_job SET state = 'done', result = ? WHERE number = ? AND state = 'accepted'",
                    result, number)  # fmt: skip
            run(
                "UPDATE expost_job SET delivered_at = ? WHERE delivered_at IS NULL AND state = 'done' AND due_at <= ? "
                "AND number < coalesce((SELECT min(before.number) FROM expost_job before WHERE before.account = "
                "expost_job.account AND before.delivered_at IS NULL AND (before.state = 'accepted' OR "
                "(before.state = 'done' AND before.due_at > ?))), ?)", now, now, now, _LAST,
            )  # fmt: skip

        self._database.write(work)

    def beat(self, now: int) -> None:
        """Say that this process lives."""
        self._database.write(lambda run: run(
            "INSERT INTO expost_server (name, seen_at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
            "SET seen_at = excluded.seen_at", self.owner, now,
        ))  # fmt: skip

    def adopt(self, now: int, *, everybody: bool) -> list[ServiceJob]:
        """Take over the jobs of processes that are silent, or of everybody; all that are now to be run here."""
        silent = now + 1 if everybody else now - SILENCE * 10**6

        def work(run: Rows) -> list[Any]:
            return run(
                "UPDATE expost_job SET owner = ? WHERE state = 'accepted' AND owner <> ? AND owner NOT IN "
                f"(SELECT name FROM expost_server WHERE seen_at >= ?) RETURNING {_COLUMNS}",
                self.owner, self.owner, silent,
            )  # fmt: skip

        return sorted(ServiceJob(*row) for row in self._database.write(work))

    def own(self) -> list[ServiceJob]:
        """What this process, under its name, has still to run, in order of acceptance."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM expost_job WHERE state = 'accepted' AND owner = ? ORDER BY number", self.owner
        )
        return [ServiceJob(*row) for row in rows]
