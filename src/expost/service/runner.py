"""Runs jobs, in order of acceptance, a few at a time. Restart is: run again under the same keys.

A job's questions have keys in the ledger that are made from the job's own. What was settled is read there and never
sampled again; what was being sampled when a process died was charged its worst case, and is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from expost.errors import ExpostError, LedgerUnavailable
from expost.service.asked import InvalidRequest, asked_of
from expost.service.jobs import ServiceJob
from expost.service.problems import incident, may_pass, problem_of
from expost.service.results import CHANGED, ended, result_of, result_text
from expost.service.served import Served
from expost.study.run import ask_questions


class Runner:
    """Threads that run jobs. What is ready waits here until the next answer time."""

    def __init__(self, served: Mapping[str, Served], at_once: int) -> None:
        self._served = served
        self._queue: SimpleQueue[ServiceJob | None] = SimpleQueue()
        self._lock = Lock()
        self._ready: list[tuple[int, str]] = []
        self._later: list[ServiceJob] = []
        self._here: set[int] = set()
        self._stopping = False
        self._threads = [Thread(target=self._work, name=f"expost-job-{n}", daemon=True) for n in range(at_once)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def put(self, job: ServiceJob) -> None:
        """Run it, unless that is so already."""
        with self._lock:
            if job.number in self._here:
                return
            self._here.add(job.number)
        self._queue.put(job)

    def take_ready(self) -> list[tuple[int, str]]:
        """What became ready since this was asked last. What could not be run for now is tried again."""
        with self._lock:
            ready, self._ready = self._ready, []
            later, self._later = self._later, []
            self._here -= {number for number, _ in ready}
        for job in later:
            self._queue.put(job)
        return ready

    def give_back(self, ready: list[tuple[int, str]]) -> None:
        """What could not be kept: next time."""
        with self._lock:
            self._ready = ready + self._ready
            self._here |= {number for number, _ in ready}

    def stop(self, grace: float) -> None:
        """Finish what is being worked on, within ``grace`` seconds; the rest goes on after a restart."""
        self._stopping = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(grace)

    # ---- a thread

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            if self._stopping:
                return
            result = self._result(job)
            with self._lock:
                if result is None:
                    self._later.append(job)
                else:
                    self._ready.append((job.number, result))

    def _result(self, job: ServiceJob) -> str | None:
        """What became of a job; None if it is to be tried again."""
        try:
            found = self._run(job)
            return None if found is None else result_text(found)
        except LedgerUnavailable:
            return None
        except Exception as error:  # a bug, whose words may quote data
            problem = incident(error)
            return result_text(ended("failed", problem.detail, problem.body()))

    def _run(self, job: ServiceJob) -> dict[str, Any] | None:
        served = self._served.get(job.data)
        if served is None or served.about.definition != job.definition:
            return ended("refused", CHANGED)
        try:
            account = served.account(job.path)
            study = served.study(asked_of(json.loads(job.body)), job.path, account.limit, job.key)
            outcomes, stopped = ask_questions(served.questions(study, account), account)
        except LedgerUnavailable:
            raise
        except (ExpostError, InvalidRequest) as error:
            problem = problem_of(error)
            return ended("refused", problem.detail, problem.body())
        return None if may_pass(stopped) else result_of(outcomes, stopped)
