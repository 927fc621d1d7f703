"""Threads that run jobs: what nobody waits for ends, cannot pile up, and does not prolong a stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from threading import Event, Thread
from typing import Any

import duckdb
import pytest

import expost as xp
from expost.data.stopping import Stopper
from expost.errors import EngineFailed
from expost.service.jobs import ServiceJob
from expost.service.runner import Runner

FOR_EVER = "SELECT sum(sqrt(range)) FROM range(1000000000000)"


class Table:
    """Instead of the table of jobs."""

    def __init__(self) -> None:
        self.kept: list[int] = []

    def begin(self, number: int) -> bool:
        return True

    def keep(self, number: int, result: str, postings: str) -> None:
        self.kept.append(number)


class Held(Runner):
    """Its jobs end when they are let go."""

    def __init__(self, lanes: int, pace: float = inf) -> None:
        self.table: Any = Table()
        super().__init__({}, self.table, lanes, pace)
        self.begun: list[int] = []
        self.go = Event()

    def _outcome(self, job: ServiceJob, between: Callable[[], None], stopper: Stopper) -> tuple[str, str]:
        self.begun.append(job.number)
        self.go.wait(120)
        between()
        return "{}", "[]"


def job(number: int, lane: int = 0, due: int = 0) -> ServiceJob:
    return ServiceJob(number, str(number), "a", "t", "k", "d", "", "", "accepted", "", 0, lane, 0, 0, due, None, 0,
                      None, None, None, None)  # fmt: skip


def until(true: Any) -> None:
    for _ in range(6000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come true within a minute")


def test_a_lane_has_one_question_at_a_time_of_whoever_is_due_first() -> None:
    runner = Held(2)
    runner.start()
    try:
        runner.put(job(1, due=50))
        until(lambda: runner.begun == [1])
        for number, due in ((2, 40), (3, 30), (4, 60)):
            runner.put(job(number, due=due))
        runner.put(job(5, lane=1))  # another data set
        until(lambda: 5 in runner.begun)
        assert runner.begun == [1, 5]
        runner.go.set()
        until(lambda: len(runner.table.kept) == 5)
        assert [number for number in runner.begun if number != 5] == [1, 3, 2, 4]
    finally:
        runner.go.set()
        runner.stop(5)


def test_who_takes_longer_than_the_pace_is_given_up_if_somebody_waits() -> None:
    runner = Held(1, pace=0.1)
    runner.start()
    try:
        runner.put(job(1))
        time.sleep(0.3)  # nobody waits
        assert runner.begun == [1]
        runner.put(job(2))
        until(lambda: runner.begun == [1, 2])
        runner.go.set()
        until(lambda: runner.table.kept == [2])
        assert runner.table.kept == [2]  # what was given up keeps nothing after its last question
    finally:
        runner.go.set()
        runner.stop(5)


def test_threads_of_what_is_given_up_do_not_pile_up() -> None:
    runner = Held(1, pace=0.01)
    runner.start()
    try:
        for number in range(30):
            runner.put(job(number))
        until(lambda: len(runner.begun) == 9)  # one has the lane, and eight are lost
        time.sleep(0.2)
        assert len(runner.begun) == 9
        runner.go.set()
        until(lambda: len(runner.begun) == 30)  # some may be given up for the next one, on a busy machine
    finally:
        runner.go.set()
        runner.stop(5)


def test_stopping_takes_one_grace_time() -> None:
    runner = Held(5)
    runner.start()
    for number in range(5):
        runner.put(job(number, lane=number))
    until(lambda: len(runner.begun) == 5)
    since = time.monotonic()
    runner.stop(2)
    assert 1.9 < time.monotonic() - since < 9  # and not one for each of the five
    runner.go.set()


def test_a_query_that_nobody_waits_for_ends() -> None:
    """The table can be asked again afterwards: an engine runs one query at a time."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT range AS x FROM range(10)")
    engine: Any = xp.read(connection, table="visits", unit="row", neighbours="add-remove").engine
    stopper, ended = Stopper(), []

    def run() -> None:
        with stopper.within():
            for query in (FOR_EVER, "SELECT 1"):
                try:
                    engine.fetch(query)
                except EngineFailed as error:
                    ended.append(error.kind)

    thread = Thread(target=run, daemon=True)
    thread.start()
    until(lambda: stopper._interrupt is not None)
    stopper.stop()
    thread.join(60)
    assert ended == ["InterruptException", "QueryStopped"]
    assert engine.fetch(f"SELECT count(*) FROM {engine.source}") == [(10,)]


@pytest.mark.parametrize("pause", [0.0, 0.0005, 0.002])
def test_a_stop_that_comes_as_a_query_begins(pause: float) -> None:
    """An interrupt before a query begins is forgotten by the engine, and is given again."""
    connection, stopper, ended = duckdb.connect(), Stopper(), []

    def run() -> None:
        with stopper.running(connection.interrupt):
            time.sleep(0.001)
            try:
                connection.execute(FOR_EVER)
            except duckdb.Error:
                ended.append(True)

    thread = Thread(target=run, daemon=True)
    thread.start()
    time.sleep(pause)
    stopper.stop()
    thread.join(60)
    assert not thread.is_alive()
