"""At an answer time: what was sampled for jobs is posted to their ledgers, and what is not done by then is lost.

Jobs are posted in order of answer time and acceptance, so that the audit trail does not tell which was done first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any

from expost.cost import Cost
from expost.errors import ExpostError, KeyConflict, LedgerUnavailable
from expost.ledger import Entry, Ledger
from expost.ledger.journal import Posting, forfeits, post
from expost.service.jobs import Held, ServiceJob
from expost.service.problems import incident, problem_of
from expost.service.results import ended, result_text
from expost.service.runner import Runner

LATE = (
    "it was not done at its answer time, so its worst case was charged: ask less at once, or ask the custodian for a "
    "longer margin"
)
NOT_BEGUN = "the service was too busy to begin with it before its answer time, and nothing was charged: ask it again"
CONFLICT = (
    "another answer was published under the key of one of its questions, so its worst case was charged: ask it under a "
    "new key"
)
DIED = "the process that ran it died, so its worst case was charged: ask it again, under a new key"


class Gate:
    """Open while jobs are accepted, any number at once; closed while answers are posted.

    What is held for a job is exchanged for its entries while nobody counts both. Whoever waited while it was closed is
    in before it closes again.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = self._waiting = 0
        self._closed = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Accept something."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._closed)
            finally:
                self._waiting -= 1
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Nothing is accepted meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
            self._closed = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


class Poster:
    """Makes the entries of jobs whose answer time has come."""

    def __init__(self, ledger: Callable[[str], Ledger], runner: Runner) -> None:
        self._ledger, self._runner = ledger, runner

    def results(self, due: Iterable[ServiceJob]) -> Iterator[tuple[int, str]]:
        """What is to be shown of each job, by its number, one after the other.

        Raises ``LedgerUnavailable``: it can be done again.
        """
        for job in due:
            if job.state == "accepted":
                self._runner.give_up(job.number)
            yield job.number, self._result(job)

    def _result(self, job: ServiceJob) -> str:
        try:
            return self._posted(job) if job.state == "ready" else self._lost(job)
        except LedgerUnavailable:
            raise
        except KeyConflict:  # what was sampled has no entry, and must not be shown
            return self._lost(job, CONFLICT)
        except ExpostError as error:
            problem = problem_of(error)
            return result_text(ended("refused", problem.detail, problem.body()))
        except Exception as error:  # a bug, whose words may quote data
            problem = incident(error)
            return result_text(ended("failed", problem.detail, problem.body()))

    def _posted(self, job: ServiceJob) -> str:
        assert job.result is not None
        postings = [Posting.from_json(each) for each in json.loads(job.postings or "[]")]
        if not postings:
            return job.result
        made = post(self._ledger(job.account), postings)
        if any(one.part is not None and entry.state != "settled" for one, entry in zip(postings, made, strict=True)):
            return _lost_result(DIED, made)  # it died between reserving and settling
        return _with_entries(job.result, made)

    def _lost(self, job: ServiceJob, why: str | None = None) -> str:
        """It is not done. What has not begun costs nothing."""
        if job.begun == 3:
            return result_text(ended("refused", NOT_BEGUN))
        assert job.held is not None
        ledger, held = self._ledger(job.account), Held.of_text(job.held)
        label, key = f"job {job.id}: not done at its answer time", f"late {job.id}"
        made = post(ledger, forfeits(ledger, held.charge, label, key))
        return _lost_result(why or (DIED if job.begun == 2 else LATE), made)


def _lost_result(why: str, made: list[Entry]) -> str:
    """A job that is lost, and the entries that charge for it."""
    charged = sum((entry.charged or Cost(0) for entry in made), Cost(0))
    problem = {
        "type": "about:blank", "title": "Lost", "status": 409, "detail": why, "charged": charged.to_json(),
        "entries": [entry.id for entry in made],
    }  # fmt: skip
    return result_text(ended("lost", "", problem))


def _with_entries(result: str, made: list[Entry]) -> str:
    """A result with the entries that were made for it, instead of the journal's."""
    found: dict[str, Any] = json.loads(result)
    for receipt in (receipt for question in found["questions"] for receipt in question["receipts"]):
        if not receipt["stored"]:
            entry = made[receipt["entry"] - 1]
            receipt["entry"] = entry.id
            receipt["when"] = receipt["when"] and entry.reserved_at
    return result_text(found)
