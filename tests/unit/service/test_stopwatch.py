"""No route is a stopwatch: until its answer time, nothing that anybody reads tells whether a job's work is done.

Two services are alike but for one person more in the second's data. A sum is asked of both, and a count by another
analyst behind it. In the first both are done at once; in the second the sum is at work, and the count waits for it,
until just before their answer time. Meanwhile every route of every role is read, live events, the ledger's own file,
plans, and whether other jobs are admitted: all of it is the same, letter by letter. The clock of both is the test's, so
that it makes no difference how quick a machine is. How long replies take is outside the guarantee.

`tests/statistical/test_service_stopwatch.py` looks for differences by the machine's clock, in `make soak`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from books import wait_until
from expost import Ledger
from expost.service.runner import Runner
from old_window import post_when_done
from stepped import StandingClock, Stepped
from watching import COUNT, SUM, WHO, Everybody, Reply, numbers

EVERY, MARGIN, PACE = 60, 120, 30
SERVER = """answer_every = {every}
margin = {margin}
pace = {pace}
late = "{late}"
queue = 2
jobs_at_once = 1"""
DATA = """
[data.visits]
path = "visits.parquet"
ledger = "visits"
synthetic = true

[data.visits.privacy]
unit = "person"
rows = 10
neighbours = "add-remove"
"""
ROWS = "SELECT i % 100 AS person, i % 50 AS cost FROM range(300) t(i)"
MORE = f"{ROWS} UNION ALL SELECT 100, i % 50 FROM range(100) t(i)"


def prepared(folder: Path, rows: str, late: str, clock: StandingClock) -> Stepped:
    folder.mkdir()
    duckdb.sql(f"COPY ({rows}) TO '{folder}/visits.parquet' (FORMAT parquet)")
    margin = MARGIN if late == "lose" else 0
    server = SERVER.format(every=EVERY, margin=margin, pace=PACE if margin else 0.01, late=late)
    running = Stepped(folder, server=server, more=DATA).on(clock)
    unit = "person (column person)"
    ledger = Ledger.create(running.url, "visits", 100, 1e-6, neighbours="add-remove", unit=unit, accounting="renyi")
    for who in ("alice", "bob"):
        ledger.create_account(who, 100, 1e-6)
    running.add_tokens(*((f"visits {who}", role, f"visits{below}") for who, (role, below) in WHO.items()))
    return running


class Side:
    """One of the two services, and everybody who reads it."""

    def __init__(self, running: Stepped) -> None:
        self.running, self.everybody = running, Everybody(running, "visits")
        running.listened(2 * len(WHO))

    def ask(self, number: int) -> float:
        """Submit a sum, and a count behind it; when both are due."""
        alice, bob = (self.everybody.callers[who] for who in ("analyst", "other"))
        self.everybody.job, behind = alice.ask(f"sum {number}", SUM), bob.ask(f"count {number}", COUNT)
        assert [self.everybody.job.status, behind.status] == [202, 202]
        return max(self._due(self.everybody.job), self._due(behind))

    @staticmethod
    def _due(reply: Reply) -> float:
        return datetime.fromisoformat(re.findall(r'"due_at": ?"([^"]*)"', reply.text)[0]).timestamp()

    def seen(self, probe: str | None, *, answers: bool) -> dict[str, object]:
        """What everybody is told. Where new answers are among it, as numbers: their noise is not the same."""
        found: dict[str, object] = {"file": self.everybody.books()}
        for what, reply in self.everybody.events():  # without signs of life, which come by the machine's clock
            found[what] = re.findall("(?:event|data): .*", self._masked(reply.text))
        for what, reply in self.everybody.replies(probe):
            if "tokens" in what:  # in the order of their names
                found[what] = sorted(re.findall("{.*?}", self._masked(reply.text)))
            else:
                found[what] = numbers(reply) | {"length": 0} if answers else (reply.status, self._masked(reply.text))
        return found

    def _masked(self, text: str) -> str:
        """Without names and hashes that are drawn at random."""
        return re.sub("[0-9a-f]{12,}", "#", text.replace(str(self.running.folder), ""))


def differences(base: Side, more: Side, probe: str | None = None, *, answers: bool = False) -> list[str]:
    """What is not the same on both sides."""
    one, other = (side.seen(probe, answers=answers) for side in (base, more))
    return [what for what in one if one[what] != other.get(what)] + [what for what in other if what not in one]


def story(tmp_path: Path, late: str, clock: StandingClock) -> Iterator[tuple[str, list[str]]]:
    """What can be told apart, step by step."""
    with ExitStack() as stack:
        sides = []
        for name, rows in (("base", ROWS), ("more", MORE)):
            running = prepared(tmp_path / name, rows, late, clock).start()
            stack.callback(running.stop)
            sides.append(Side(running))
            stack.callback(sides[-1].everybody.close)
        base, more = sides

        def rings(until: float) -> Iterator[float]:
            """Answer times come; what is at work on the second side is not done for that."""
            for slot in base.running.answer_times(until):
                more.running.ring(slot)
                yield slot

        more.running.finish()  # the first sum
        for _ in rings(clock.now + 10 * EVERY):
            pass
        assert [side.everybody.told()["result"]["state"] for side in sides] == ["answered"] * 2
        yield "before", differences(base, more, answers=True)
        more.running.go.clear()
        clock.now += EVERY / 3
        due, other = (side.ask(1) for side in sides)
        assert due == other
        wait_until(lambda: more.running.at_work(begun=True))
        base.running.finish()
        yield "accepted", differences(base, more, "probe")
        for at in rings(due - 1):
            yield f"{(due - at) / EVERY:g} answer times before", differences(base, more)
        if late == "lose":
            more.running.finish()
            yield "both are done", differences(base, more)
        for _ in rings(due):
            yield "the answer time", differences(base, more, answers=True)
        for _ in rings(due + 2 * EVERY):
            yield "after it", differences(base, more, answers=True)


def test_no_route_tells_how_far_a_job_is(tmp_path: Path, clock: StandingClock) -> None:
    told = dict(story(tmp_path, "lose", clock))
    assert {step: found for step, found in told.items() if found} == {}
    assert list(told)[:2] == ["before", "accepted"]
    assert list(told)[-3:] == ["both are done", "the answer time", "after it"]


def test_books_that_show_what_is_done_are_caught(
    tmp_path: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the old window, in which the ledger got what was done when it was done."""
    monkeypatch.setattr(Runner, "_outcome", Runner._outcome)  # as it was, afterwards
    post_when_done()
    told = dict(story(tmp_path, "lose", clock))
    assert told["before"] == []
    assert "file" in told["accepted"]
    early = {what for step, found in told.items() if step.endswith("times before") for what in found}
    assert {"file", "analyst /v1/account", "other /v1/events live"} <= early


def test_answers_as_soon_as_they_are_ready_are_caught(tmp_path: Path, clock: StandingClock) -> None:
    """The control: no margin, and what is late waits. The slower neighbour is answered later, which shows."""
    told = dict(story(tmp_path, "wait", clock))
    assert told["before"] + told["accepted"] == []
    assert {"file", "analyst /v1/account", "other /v1/events live"} <= {*told["the answer time"]}
