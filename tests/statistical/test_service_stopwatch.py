"""No route is a stopwatch: whatever anybody reads around an answer time has the same law on two neighbours.

Two services are alike but for one person more in the second's data, with so many rows that a sum takes much longer.
A trial submits the sum shortly before an answer time, and a count by another analyst behind it. Then it reads every
route of every role at phases around answer times, live events, the ledger's own file, plans, and whether other jobs are
admitted; what counts is how each reply differs from the one before. How long replies take is outside the guarantee: it
is printed, and no test uses it.

These are measurements by the machine's clock, and take minutes: `make soak` makes them. The same by a clock that tests
set, step by step, is `tests/unit/service/test_stopwatch.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import datetime
from math import ceil
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest
from scipy.stats import ks_2samp  # type: ignore[import-untyped]
from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped]
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # type: ignore[import-untyped]

import expost as xp
from expost import Ledger
from old_window import post_when_done
from serving import Forked, Running
from soak import SOAK
from watching import COUNT, SUM, WHO, Everybody, Numbers, numbers

pytestmark = pytest.mark.skipif(not SOAK, reason="it takes minutes: `make soak`")
LANES = 3
"""Ledgers of a service, each with its own people who ask: their trials overlap, and each sees its own ledger alone."""
TRIALS = 102
"""Of each neighbour."""
FEW = 9
"""Where what differs does so nearly always."""
LEVEL = 0.01
NEIGHBOURS = ("base", "more")
DATA = """
[data.{name}]
path = "visits.parquet"
ledger = "{name}"
synthetic = true

[data.{name}.privacy]
unit = "person"
rows = 10
neighbours = "add-remove"
"""
ROWS = "SELECT i % 1000 AS person, i % 50 AS cost FROM range(20000) t(i)"
MORE = f"{ROWS} UNION ALL SELECT 1000, i % 50 FROM range(600000) t(i)"
Patch = Callable[[], None] | None


class Clock(NamedTuple):
    """The times of a service and of trials, in seconds."""

    every: float
    margin: float
    pace: float
    before: float
    """A sum is submitted so long before an answer time: long enough for the quick neighbour, not for the other."""

    @classmethod
    def of(cls, folder: Path, patience: float) -> Clock:
        """By what the sum takes on the slow neighbour now, on this machine, times the patience."""
        duckdb.sql(f"COPY ({MORE}) TO '{folder}/more.parquet' (FORMAT parquet)")
        table = xp.read(folder / "more.parquet", unit=xp.Unit("person", rows=10), neighbours="add-remove")
        ledger, took = xp.Ledger(epsilon=1), []
        for _ in range(4):
            since = time.monotonic()
            ledger.run(table.sum("cost", bounds=(0, 50)).mechanism(epsilon=0.01))
            took.append(time.monotonic() - since)
        scale = patience * min(6.0, max(1.0, max(took) / 0.4))
        print(f"\nthe sum takes {max(took):.2f} s: times are {scale:.1f} times the shortest")
        return cls(round(0.5 * scale, 2), round(1.5 * scale, 2), round(1.5 * scale, 2), 0.2 * scale / patience**0.5)

    def phases(self, until_due: float) -> tuple[float, float]:
        """After an answer time. At the last one the sum was answered, if its answer time was fixed at acceptance."""
        answered = max(until_due, ceil(2 * self.margin / self.every) * self.every)
        return 0.3 * self.every, answered + 0.3 * self.every


# ---- trials


class GivenUp(Exception):
    """A sum took too long for its lane, and was lost."""


class Watcher(Everybody):
    """Makes trials, and says what changed."""

    def __init__(self, running: Running, ledger: str, clock: Clock) -> None:
        super().__init__(running, ledger)
        self._clock, self._last = clock, dict[str, Numbers]()

    def trial(self, number: int) -> Numbers | None:
        """What changed at each phase around an answer time.

        None if that says nothing: its answer time came while everything was being read.
        """
        every, _, _, before = self._clock
        slot = (int((time.time() + before) // every) + 1) * every
        analyst, other = self.callers["analyst"], self.callers["other"]
        time.sleep(max(0.0, slot - before - time.time()))
        job, behind = analyst.ask(f"sum {number}", SUM), other.ask(f"count {number}", COUNT)
        found: Numbers = {"sum accepted": job.status, "count accepted": behind.status}
        self.job = job if job.status == 202 else self.job
        due, meanwhile = _seconds(json.loads(self.job.text)["due_at"]), False
        for place, phase in enumerate(self._clock.phases(due - slot)):
            time.sleep(max(0.0, slot + phase - time.time()))
            began = time.time()
            seen = self.look(f"probe {number}" if place == 0 else None)
            meanwhile |= began < due < time.time()
            found |= {f"{what}, phase {place}": value for what, value in seen}
        times = self._times()
        return None if meanwhile else found | times

    def look(self, probe: str | None = None) -> list[tuple[str, float]]:
        """How everything differs from the last look. A probe is one more job, which an account may have or not."""
        replies = [*self.replies(probe), *self.events()]
        seen = {what: numbers(reply) for what, reply in replies} | {"file": self.books()}
        changed = [
            (f"{what}: {name}", value - self._last.get(what, {}).get(name, 0.0))
            for what, found in seen.items()
            for name, value in found.items()
        ]
        self._last |= seen
        return changed

    def _times(self) -> Numbers:
        """When the sum was due and answered, by its own words."""
        job = self.told()
        starts, due, answered = (_seconds(job[name]) for name in ("starts_at", "due_at", "answered_at"))
        if job["state"] == "done" and job["result"]["state"] != "answered":
            raise GivenUp
        return {"until due": round((due - starts) // self._clock.every), "answered": max(answered - due, -1.0)}


def _seconds(text: str | None) -> float:
    return 0.0 if text is None else datetime.fromisoformat(text).timestamp()


# ---- two services


def prepared(folder: Path, rows: str, late: str, clock: Clock, patch: Patch) -> Running:
    folder.mkdir()
    duckdb.sql(f"COPY ({rows}) TO '{folder}/visits.parquet' (FORMAT parquet)")
    margin, pace = (clock.margin, clock.pace) if late == "lose" or patch else (0, 0.01)
    times = f"answer_every = {clock.every}\nmargin = {margin}\npace = {pace}\n"
    server = f'{times}late = "{late}"\nqueue = 1\njobs_at_once = 4'
    running = Forked(folder, server=server, more="".join(DATA.format(name=f"lane{lane}") for lane in range(LANES)))
    running.patch = patch
    unit = "person (column person)"
    for lane in range(LANES):
        ledger = Ledger.create(
            running.url, f"lane{lane}", 100, 1e-6, neighbours="add-remove", unit=unit, accounting="renyi"
        )
        for who in ("alice", "bob"):
            ledger.create_account(who, 100, 1e-6)
        running.add_tokens(*((f"lane{lane} {who}", role, f"lane{lane}{below}") for who, (role, below) in WHO.items()))
    return running


def watched(folder: Path, late: str, trials: int, patch: Patch = None) -> dict[str, list[Numbers]]:
    """What trials saw on each neighbour. On a machine that is busy with other things, with more time for each.

    A sum that was given up for others is lost, which its books show from then on, and the docs say so: then all trials
    are made again.
    """
    for patience in (1.0, 2.5, 6.0):
        at = folder / f"patience {patience:g}"
        at.mkdir(parents=True)
        with suppress(GivenUp):
            found = _watched(at, late, trials, patience, patch)
            if min(map(len, found.values())) >= trials / 2:
                return found
    raise AssertionError("the machine is too busy for answer times")


def _watched(folder: Path, late: str, trials: int, patience: float, patch: Patch) -> dict[str, list[Numbers]]:
    """What trials saw on each neighbour, at the same time. Those that say nothing are left out."""
    clock = Clock.of(folder, patience)
    found: dict[str, list[Numbers]] = {name: [] for name in NEIGHBOURS}
    with ExitStack() as stack, ThreadPoolExecutor(2 * LANES) as pool:
        lanes: list[tuple[str, Running, str]] = []
        for name, rows in zip(NEIGHBOURS, (ROWS, MORE), strict=True):
            running = prepared(folder / name, rows, late, clock, patch).start()
            stack.callback(running.stop)
            lanes += [(name, running, f"lane{lane}") for lane in range(LANES)]
        for (name, *_), seen in zip(
            lanes, pool.map(lambda each: lane_of(each[1], each[2], clock, trials), lanes), strict=True
        ):
            found[name] += seen
    print(f"\nof {trials} trials on each say something: {[len(seen) for seen in found.values()]}")
    return found


def lane_of(running: Running, ledger: str, clock: Clock, trials: int) -> list[Numbers]:
    """The trials of one ledger, one after the other."""
    watcher = Watcher(running, ledger, clock)
    try:
        time.sleep(clock.margin + 2 * clock.pace + 2 * clock.every)
        watcher.look()
        found = [watcher.trial(number) for number in range(trials // LANES)]
        print(f"\n{running.folder.name}: {len(watcher.took)} replies, {1000 * mean(watcher.took):.1f} ms on average")
    finally:
        watcher.close()
    return [each for each in found if each is not None]


# ---- can they be told apart?


class Verdict(NamedTuple):
    """How likely equal laws are, at most, by the number that differs most; and how often a classifier was right."""

    chance: float
    which: str
    accuracy: float
    by_luck: float
    """What a classifier that knows nothing reaches, with three standard errors."""


def judged(found: dict[str, list[Numbers]]) -> Verdict:
    names = sorted({name for seen in found.values() for one in seen for name in one})
    base, more = (np.array([[one.get(name, 0.0) for name in names] for one in found[each]]) for each in NEIGHBOURS)
    both = np.concatenate([base, more])
    different = {both[:, place].tobytes(): place for place in range(len(names)) if np.ptp(both[:, place]) > 0}
    tests = [(float(ks_2samp(base[:, at], more[:, at]).pvalue), names[at]) for at in different.values()]
    least, which = min(tests, default=(1.0, "nothing changes"))
    truth = np.repeat([0, 1], [len(base), len(more)])
    luck = 0.5 + 3 * (0.25 / len(both)) ** 0.5
    verdict = Verdict(min(1.0, len(tests) * least), which, _accuracy(both, truth), luck)
    print(f"{len(tests)} of {len(names)} numbers change, each in its own way: {verdict}")
    return verdict


def _accuracy(values: Any, truth: Any) -> float:
    """Of a random forest, on trials that it was not trained with: the mean of both neighbours'."""
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    forest = RandomForestClassifier(200, class_weight="balanced", random_state=1)
    right = cross_val_predict(forest, values, truth, cv=folds) == truth
    return float(np.mean([np.mean(right[truth == each]) for each in (0, 1)]))


def test_no_route_tells_how_long_a_job_takes(tmp_path: Path) -> None:
    """One time in a hundred chance alone looks like a difference: it has to be there again in new trials."""
    verdicts = (judged(watched(tmp_path / name, "lose", TRIALS)) for name in ("first", "again"))
    assert any(verdict.chance > LEVEL and verdict.accuracy <= verdict.by_luck for verdict in verdicts)


def test_answers_as_soon_as_they_are_ready_are_caught(tmp_path: Path) -> None:
    """The control: no margin, and what is late waits. The slower neighbour is answered later, which shows."""
    verdicts = (judged(watched(tmp_path / name, "wait", TRIALS)) for name in ("first", "again"))
    assert any(verdict.chance < LEVEL and verdict.accuracy > verdict.by_luck for verdict in verdicts)


def test_books_that_show_what_is_done_are_caught(tmp_path: Path) -> None:
    """The control: the old window, in which an answer time shows what the ledger got when a job was done.

    Everything else is as in the test, but that nothing is given up: then all trials would be made again. Few trials on
    a busy machine may miss it once.
    """
    verdicts = (judged(watched(tmp_path / name, "wait", FEW, post_when_done)) for name in ("first", "again"))
    assert any(verdict.chance < LEVEL or verdict.accuracy > verdict.by_luck for verdict in verdicts)
