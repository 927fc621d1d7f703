"""Runs jobs in lanes, by their timetable. What comes out is kept until the answer time.

In a lane one question runs at a time, of the job that is due first (:mod:`expost.service.schedule`). A question that
takes longer than its pace while another job waits is given up, so that nobody's work makes others late.

A job runs on a journal, within what was held for it when it was accepted: it neither reads the ledger's balance nor
writes to it. If the process dies while it runs, it is never run again: its worst case is charged at its answer time.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from threading import Condition, Thread

from expost.data.stopping import Stopper
from expost.errors import ExpostError, LedgerUnavailable
from expost.ledger.imagined import Imagined
from expost.ledger.journal import Posting, forfeits, new_journal, postings_of, postings_text
from expost.service.asked import InvalidRequest, asked_of
from expost.service.jobs import Held, Jobs, ServiceJob
from expost.service.problems import incident, problem_of
from expost.service.results import CHANGED, ended, failed_text, result_of, result_text
from expost.service.served import Served
from expost.study.run import HeldBudget, ask_within

_MOST_GIVEN_UP = 8
"""Threads that may still run what was given up, and could not be stopped, while others take their places."""
_PATIENCE = 0.5
"""Seconds before a job is tried again whose ledger could not be reached."""


class GivenUp(Exception):
    """Nobody waits for this job any more."""


class QuestionLane:
    """One question at a time: of the job that is due first among those that wait."""

    def __init__(self, pace: float, give_up: Callable[[int], None]) -> None:
        self._pace, self._give_up = pace, give_up
        self._changed = Condition()
        self._waiting: set[tuple[int, int]] = set()
        self._holder: int | None = None
        self._since = 0.0

    def enter(self, job: ServiceJob) -> None:
        """Wait for the lane. Raises ``GivenUp`` if the job was given up meanwhile."""
        own = job.due_at, job.number
        with self._changed:
            self._waiting.add(own)
        while True:
            with self._changed:
                if own not in self._waiting:
                    raise GivenUp
                if self._holder is None and own == min(self._waiting):
                    self._waiting.remove(own)
                    self._holder, self._since = job.number, time.monotonic()
                    self._changed.notify_all()  # who saw the lane free waits for the end of this one's pace from now on
                    return
                left, holder = self._since + self._pace - time.monotonic(), self._holder
                if holder is None or left > 0:
                    self._changed.wait(None if holder is None or left == inf else left)
                    continue
            self._give_up(holder)  # it has had its time; the lane is free then, or stays with it for want of threads
            with self._changed:
                if self._holder == holder:
                    self._changed.wait(max(self._pace, 0.01))

    def pass_on(self, job: ServiceJob) -> None:
        """Between two questions: let those go first that are due before, and have the lane anew."""
        with self._changed:
            if self._holder != job.number:
                raise GivenUp
            if not self._waiting or (job.due_at, job.number) < min(self._waiting):
                self._since = time.monotonic()
                return
        self.leave(job)
        self.enter(job)

    def leave(self, job: ServiceJob) -> None:
        """Let others have the lane; also for a job that was given up."""
        with self._changed:
            self._waiting.discard((job.due_at, job.number))
            if self._holder == job.number:
                self._holder = None
            self._changed.notify_all()


class Runner:
    """Lanes, and a thread for each job from its start on."""

    def __init__(self, served: Mapping[str, Served], jobs: Jobs, lanes: int, pace: float) -> None:
        self._served, self._jobs = served, jobs
        self._lanes = [QuestionLane(pace, self._overran) for _ in range(lanes)]
        self._soon: list[tuple[int, int, ServiceJob]] = []
        self._jobs_here: dict[int, ServiceJob] = {}
        self._running: dict[int, tuple[Thread, Stopper]] = {}
        self._given_up = set[Thread]()
        """Threads that still run what nobody waits for."""
        self._changed = Condition()
        self._stopping = False

    def start(self) -> None:
        """Start jobs at their times from now on."""
        Thread(target=self._dispatch, name="expost-dispatch", daemon=True).start()

    def put(self, job: ServiceJob) -> None:
        """Run it at its time, unless that is so already."""
        with self._changed:
            if job.number not in self._jobs_here:
                self._jobs_here[job.number] = job
                heapq.heappush(self._soon, (job.starts_at, job.number, job))
                self._changed.notify_all()

    def give_up(self, number: int) -> None:
        """Nobody waits for a job any more. If it runs, its query is stopped, and its lane is free."""
        self._let_go(number)

    def _overran(self, number: int) -> None:
        """The same for one that had its time; but where too many threads are lost already, it keeps its lane."""
        with self._changed:
            self._given_up = {thread for thread in self._given_up if thread.is_alive()}
            full = len(self._given_up) >= _MOST_GIVEN_UP
        self._let_go(number, keep=full)

    def _let_go(self, number: int, *, keep: bool = False) -> None:
        with self._changed:
            job = self._jobs_here.get(number)
            thread, stopper = self._running.get(number, (None, None))
            if not keep:
                self._jobs_here.pop(number, None)
                self._running.pop(number, None)
                if thread is not None:
                    self._given_up.add(thread)
        if stopper is not None:
            stopper.stop()
        if job is not None and not keep:
            self._lanes[job.lane % len(self._lanes)].leave(job)

    def stop(self, grace: float) -> None:
        """Finish what is being worked on, within ``grace`` seconds. What has not begun goes on after a restart."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            running = [thread for thread, _ in self._running.values()]
        until = time.monotonic() + grace
        for thread in running:
            thread.join(max(0.0, until - time.monotonic()))

    # ---- threads

    def _dispatch(self) -> None:
        with self._changed:
            while not self._stopping:
                now = int(time.time() * 1e6)
                if self._soon and self._soon[0][0] <= now:
                    _, number, job = heapq.heappop(self._soon)
                    if number in self._jobs_here:
                        self._launch(job)
                    continue
                left = (self._soon[0][0] - now) / 1e6 + 0.001 if self._soon else None
                self._changed.wait(left)

    def _launch(self, job: ServiceJob) -> None:
        stopper = Stopper()
        thread = Thread(target=self._work, args=(job, stopper), name=f"expost-job-{job.number}", daemon=True)
        self._running[job.number] = thread, stopper
        thread.start()

    def _work(self, job: ServiceJob, stopper: Stopper) -> None:
        lane = self._lanes[job.lane % len(self._lanes)]
        try:
            lane.enter(job)
            with stopper.within():
                self._do(job, partial(lane.pass_on, job), stopper)
        except GivenUp:
            pass  # it is lost at its answer time
        finally:
            lane.leave(job)
            with self._changed:
                self._jobs_here.pop(job.number, None)
                self._running.pop(job.number, None)

    def _do(self, job: ServiceJob, between: Callable[[], None], stopper: Stopper) -> None:
        """Run a job and keep what came out. While the database cannot be reached, wait, and sample nothing again."""
        found: tuple[str, str] | None = None
        while not self._stopping:
            try:
                if found is None:
                    if not self._jobs.begin(job.number):
                        return  # it has ended meanwhile
                    found = self._outcome(job, between, stopper)
                self._jobs.keep(job.number, *found)
                return
            except LedgerUnavailable:
                time.sleep(_PATIENCE)
            except GivenUp:
                raise
            except Exception as error:  # what cannot be kept is lost at its answer time
                incident(error)
                return

    def _outcome(self, job: ServiceJob, between: Callable[[], None], stopper: Stopper) -> tuple[str, str]:
        """What became of a job, and what is to be posted, both as text. Raises ``LedgerUnavailable``, and ``GivenUp``
        if it was stopped: a query that ended by that has not failed.
        """
        try:
            asking = self._asking(job, stopper)
        except LedgerUnavailable:
            raise
        except (ExpostError, InvalidRequest) as error:  # nothing was sampled
            problem = problem_of(error)
            return result_text(ended("refused", problem.detail, problem.body())), "[]"
        try:
            return asking(between)
        except GivenUp:
            raise
        except Exception as error:  # a bug, after which nobody knows what was sampled
            _require_wanted(stopper)
            return failed_text(error), postings_of(self._worst(job))

    def _worst(self, job: ServiceJob) -> list[Posting]:
        """All that is held for a job, to be charged."""
        assert job.held is not None
        account = self._served[job.data].account(job.path)
        return forfeits(account, Held.of_text(job.held).charge, f"job {job.id}: failed", f"failed {job.id}")

    def _asking(self, job: ServiceJob, stopper: Stopper) -> Callable[[Callable[[], None]], tuple[str, str]]:
        """What asks a job's questions. Samples nothing yet."""
        served = self._served.get(job.data)
        if served is None or served.about.definition != job.definition:
            changed = result_text(ended("refused", CHANGED)), "[]"
            return lambda between: changed
        assert job.held is not None
        held = Held.of_text(job.held)
        account = served.account(job.path)
        books = Imagined.of(account, held.levels)
        study = served.study(asked_of(json.loads(job.body)), job.path, held.levels[-1].limit, job.key)
        questions = served.questions(study, books)

        def ask(between: Callable[[], None]) -> tuple[str, str]:
            journal = new_journal(account, held.levels)
            outcomes, stopped = ask_within(questions, journal, account, HeldBudget(books, held.charge), between)
            _require_wanted(stopper)
            return result_text(result_of(outcomes, stopped)), postings_text(journal)

        return ask


def _require_wanted(stopper: Stopper) -> None:
    """Raise ``GivenUp`` if a job was given up while it was asked."""
    if stopper.stopped:
        raise GivenUp
