"""What shows of a job is decided when it is accepted: its hold, its start and its answer time; never how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple

import duckdb
import pytest
from typer.testing import Result

from commands import CliRunner
from expost import Cost, Ledger
from expost.accounting.amounts import Amounts, together
from expost.cli.main import app
from expost.service.bell import Bell
from expost.service.config import read_config
from expost.service.database import ServiceTables
from expost.service.heartbeat import BEAT, Heartbeat
from expost.service.jobs import SILENCE, Held, InFlight, JobRequest, Jobs, ServiceJob
from expost.service.posting import LATE
from expost.service.schedule import Placed, Schedule, Times
from expost.service.window import Window, _held
from serving import COUNT, METERED, REVIEWED, UNIT, Forked, Running, answer, submit
from stepped import StandingClock, Stepped

SLOW = """
[data.slow]
path = "slow.parquet"
ledger = "people"

[data.slow.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"
"""
HEAVY = {"name": "top", "kind": "median", "column": "x", "bounds": [0, 10**9], "epsilon": 0.01}


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_job_holds_its_worst_case_until_its_answer_time(tmp_path: Path, clock: StandingClock) -> None:
    """The count is done at once, but nothing shows of it: balance, entries, trail and job stay as told."""
    running = Stepped(tmp_path, server='answer_every = 60\nmargin = 240\nlate = "lose"').on(clock).start()
    try:
        with running.client("alice") as client, running.client("custodian") as custodian:
            said = submit(client, "k", COUNT).json()
            same = {"account": "people/alice", "epsilon": "1000", "reason": "r"}
            assert custodian.post("/v1/admin/limits", json=same).json()["reserved"]["epsilon"] == "0.01"
            due, seen = seconds(said["due_at"]), []
            running.finish()
            for _ in running.answer_times(due - 1):
                account = client.get("/v1/account").json()
                seen.append((account["spent"]["epsilon"], client.get(f"/v1/jobs/{said['id']}").json()["state"]))
                assert client.get("/v1/entries").json() == []
                assert [each["line"] for each in custodian.get("/v1/audit").json() if '"reserve"' in each["line"]] == []
                assert list(running.ledger().entries()) == []  # nor in the ledger itself
            held = client.get("/v1/account").json()["reserved"]["epsilon"]
            job = running.answered(client, said["id"])
            after = client.get("/v1/account").json()
        assert len(seen) >= 4
        assert set(seen) == {("0", "accepted")}
        assert held == "0.01"
        assert seconds(job["answered_at"]) == due
        assert job["result"]["state"] == "answered"
        assert (after["spent"]["epsilon"], after["reserved"]["epsilon"]) == ("0.01", "0")
        assert [entry.state for entry in running.ledger().entries()] == ["settled"]
        running.ledger().verify()
    finally:
        running.stop()


def test_plans_on_several_meters_know_nothing_before_the_answer_time(tmp_path: Path, clock: StandingClock) -> None:
    """Most of what is held comes back, and it is done at once: plan, room and form are as at acceptance."""
    server = 'answer_every = 60\nmargin = 240\nlate = "lose"'
    running = Stepped(tmp_path, server=server, more=METERED).on(clock)
    ledger = Ledger.create(running.url, "metered", 1, 1e-6, neighbours="substitute", unit=UNIT, accounting="renyi")
    ledger.create_account("carol", 1, 1e-6)
    running.add_tokens(("carol", "analyst", "metered/carol"))
    running.start()
    above = {"name": "a", "kind": "above", "column": "city", "keys": ["x", "y"], "threshold": 10**6, "at_most": 2,
             "epsilon": 0.5}  # fmt: skip
    try:
        with running.client("carol") as client:

            def seen() -> tuple[str, str, Any]:
                plan = client.post("/v1/data/metered/plan", json={"questions": [COUNT]}).json()
                room = client.post("/v1/accounting", json={"charge": [6 * 10**11, 0, 10**12, 0, 6 * 10**11, 0, 0]})
                return plan["before"]["epsilon"], client.get("/v1/account").json()["remaining"]["epsilon"], room.json()

            before = seen()
            said = submit(client, "k", above, data="metered").json()
            running.finish()
            assert seen() == before  # what is held shows at the next answer time
            found = [seen() for _ in running.answer_times(seconds(said["due_at"]) - 1)]
            assert running.answered(client, said["id"])["result"]["state"] == "answered"
            after = seen()
    finally:
        running.stop()
    assert len(found) >= 4
    assert len(set(map(str, found))) == 1, found
    assert len({str(before), str(found[0]), str(after)}) == 3
    assert float(found[0][0]) < float(after[0]) < float(before[0])


def test_a_late_job_is_lost_at_its_worst_case(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT (i * 7919) % 1000003 AS x FROM range(3000000) t(i)) TO '{tmp_path}/slow.parquet'")
    running = Forked(tmp_path, server='answer_every = 0.2\nmargin = 0\npace = 0.001\nlate = "lose"', more=SLOW).start()
    try:
        with running.client("alice") as client:
            reply = submit(client, "k", HEAVY, data="slow")
            assert reply.status_code == 202, reply.text
            job = answer(client, reply.json()["id"])
            assert job["result"]["state"] in ("lost", "refused")
            assert job["answered_at"] == reply.json()["due_at"]
            spent = client.get("/v1/account").json()["spent"]["epsilon"]
            assert spent == ("0.01" if job["result"]["state"] == "lost" else "0")
        ledger = running.ledger()
        assert ledger.reserved == Cost(0)
        ledger.verify()
    finally:
        running.stop()


def test_a_job_that_had_its_time_is_late_and_no_incident(tmp_path: Path) -> None:
    """Its query is stopped while another's waits: that is told as what it is, not as an error of the engine."""
    rows = "SELECT i % 200000 AS person, (i * 7919) % 1000003 AS x FROM range(1200000) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/slow.parquet'")
    per_person = SLOW.replace('unit = "row"\nwho = "visitor"', 'unit = "person"\nrows = 10')
    per_person = per_person.replace("people", "persons")
    running = Forked(tmp_path, server='answer_every = 0.2\nmargin = 3\npace = 0.01\nlate = "lose"', more=per_person)
    ledger = Ledger.create(running.url, "persons", 1, neighbours="substitute", unit="person (column person)")
    for name in ("alice", "bob"):
        ledger.create_account(name, 1)
        running.add_tokens((f"slow {name}", "analyst", f"persons/{name}"))
    running.start()
    try:
        with running.client("slow alice") as client, running.client("slow bob") as bob:
            given_up = submit(client, "k", HEAVY, data="slow").json()
            waiting = submit(bob, "k", {"name": "n", "kind": "count", "epsilon": 0.01}, data="slow").json()
            job = answer(client, given_up["id"])
            assert (job["result"]["state"], job["result"]["problem"]["detail"]) == ("lost", LATE)
            assert job["answered_at"] == given_up["due_at"]
            assert answer(bob, waiting["id"])["result"]["state"] in ("answered", "lost")
            assert client.get("/v1/account").json()["spent"]["epsilon"] == "0.01"
        assert '"incident"' not in running.log.read_text()
    finally:
        running.stop()


def test_a_job_can_be_cancelled_until_it_starts(tmp_path: Path, clock: StandingClock) -> None:
    running = Stepped(tmp_path, server="answer_every = 60\nmargin = 0\npace = 240\njobs_at_once = 1").on(clock).start()
    try:
        with running.client("alice") as client, running.client("bob") as bob:
            first, second = (submit(client, key, COUNT).json() for key in "ab")
            assert seconds(second["starts_at"]) >= seconds(first["starts_at"]) + 240
            assert client.delete(f"/v1/jobs/{first['id']}").status_code == 409  # it has started
            assert bob.delete(f"/v1/jobs/{second['id']}").status_code == 404
            gone = client.delete(f"/v1/jobs/{second['id']}")
            assert (gone.status_code, gone.json()["result"]["state"]) == (200, "cancelled")
            assert client.delete(f"/v1/jobs/{second['id']}").status_code == 409
            assert running.answered(client, first["id"])["result"]["state"] == "answered"
            for _ in running.answer_times(seconds(second["due_at"])):
                pass
            assert client.get("/v1/account").json()["reserved"]["epsilon"] == "0"
        assert running.ledger().spent == Cost(0.01)
    finally:
        running.stop()


def test_questions_in_flight_are_bounded(tmp_path: Path) -> None:
    running = Forked(tmp_path, server="answer_every = 30\nmargin = 600\nqueue = 3\nquestions = 4").start()
    try:
        with running.client("alice") as client, running.client("bob") as bob:
            two = [COUNT, COUNT | {"name": "other"}]
            assert submit(client, "a", *two).status_code == 202
            assert submit(client, "b", *two).status_code == 202
            full = submit(client, "c", COUNT)
            assert full.status_code == 429
            assert 1 <= int(full.headers["retry-after"]) <= 30  # until the next answers
            again = submit(client, "a", *two)  # what was accepted before is
            assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
            assert submit(bob, "c", COUNT).status_code == 202
    finally:
        running.stop()


def test_what_needs_refunds_of_the_same_job_is_refused(tmp_path: Path) -> None:
    running = Forked(tmp_path, epsilon=1).start()
    above = {"name": "a", "kind": "above", "column": "city", "keys": ["x", "y"], "threshold": 10**6, "at_most": 1,
             "epsilon": 0.9}  # fmt: skip
    try:
        with running.client("alice") as client:
            reply = submit(client, "k", above, COUNT | {"epsilon": 0.5})
            assert (reply.status_code, reply.json()["error"]) == (409, "BudgetExceeded")
            answer(client, submit(client, "one", above).json()["id"])
            assert answer(client, submit(client, "two", COUNT | {"epsilon": 0.5}).json()["id"])["result"]["asked"] == 1
    finally:
        running.stop()


# ---- schedules and turns


def test_jobs_are_posted_by_answer_time_and_acceptance(tmp_path: Path) -> None:
    """Whichever was done first: the trail's lines do not tell."""
    url = f"sqlite:///{tmp_path}/books.db"
    Ledger.create(url, "people", 1, neighbours="substitute", unit=UNIT)
    tables = ServiceTables(url)
    jobs = Jobs(tables, "here", InFlight(9, 9, 9), Schedule(10, 0, 0), {})
    due = {1: 30, 2: 20, 3: 30, 4: 20, 5: 40}

    def fill(run: Any) -> None:
        for number, at in due.items():
            run(
                "INSERT INTO expost_job (id, account, token, key, data, definition, body, questions, state, owner, "
                "accepted_at, lane, starts_at, next_at, due_at, begun) VALUES (?, 'people', 't', ?, 'd', 'd', '', 1, "
                "'accepted', 'here', 0, 0, 0, 0, ?, 1)", str(number), str(number), at,
            )  # fmt: skip

    tables.write(fill)
    for number in (3, 4, 1, 2):  # in this order they are done
        jobs.keep(number, "{}", "[]")
    found = [job.id for job in jobs.due(30)]
    tables.close()
    assert found == ["2", "4", "1", "3"]


def test_slots_follow_from_public_times() -> None:
    schedule = Schedule(every=10, margin=25, pace=3)
    assert schedule.times(100, 0, questions=2, accounts=1) == (100, 106, 140)
    assert schedule.times(100, 106, questions=1, accounts=4) == (106, 118, 140)
    assert schedule.due(95) == 120  # just in time is in time


class Planned(NamedTuple):
    """A job of a made-up day."""

    number: int
    account: str
    times: Times
    questions: int


def a_day(random: Random, schedule: Schedule) -> list[Planned]:
    """Jobs that come in bursts, of accounts that ask more and less."""
    jobs, now = list[Planned](), 0
    for number in range(random.randint(5, 60)):
        now += random.choice([0, 0, 0, 1, 5, 30])
        account, questions = random.choice("aaaabcd"), random.choice([1, 1, 2, 8])
        open_ = [job for job in jobs if job.times.due > now]
        placed = [Placed(job.times.start, job.times.due, job.questions * schedule.pace) for job in open_]
        free_at = max((job.times.next for job in open_ if job.account == account), default=0)
        accounts = len({account, *(job.account for job in open_)})
        jobs.append(Planned(number, account, schedule.times(now, free_at, questions, accounts, placed), questions))
    return jobs


def finished(random: Random, jobs: list[Planned], slowest: int) -> dict[int, int]:
    """When each job is done, if the lane asks one question at a time, of the job that is due first."""
    left, done, now = {job.number: job.questions for job in jobs}, dict[int, int](), 0
    while len(done) < len(jobs):
        ready = [job for job in jobs if left[job.number] and job.times.start <= now]
        if not ready:
            now = min(job.times.start for job in jobs if left[job.number])
            continue
        first = min(ready, key=lambda job: (job.times.due, job.number))
        now += random.choice([slowest, random.randint(1, slowest)])
        left[first.number] -= 1
        if not left[first.number]:
            done[first.number] = now
    return done


@pytest.mark.parametrize("seed", range(150))
def test_nobody_is_late_while_questions_keep_their_pace(seed: int) -> None:
    random = Random(seed)
    schedule = Schedule(every=10, margin=random.choice([0, 20]), pace=random.choice([1, 5]))
    jobs = a_day(random, schedule)
    done = finished(random, jobs, schedule.pace)
    assert all(done[job.number] <= job.times.due for job in jobs)


def test_without_a_timetable_somebody_would_be() -> None:
    """The control: answer times a margin after the start, whatever else was accepted."""
    late = 0
    for seed in range(50):
        random, schedule = Random(seed), Schedule(every=10, margin=20, pace=5)
        jobs = [
            job._replace(times=job.times._replace(due=schedule.due(job.times.start, job.questions * 5)))
            for job in a_day(random, schedule)
        ]
        late += any(done > jobs[number].times.due for number, done in finished(random, jobs, 5).items())
    assert late > 10


def test_many_jobs_of_one_account_do_not_keep_another_waiting() -> None:
    schedule, placed, free_at = Schedule(10**6, 3 * 10**6, 5 * 10**5), list[Placed](), 0
    for _ in range(50):
        times = schedule.times(0, free_at, 1, 1, placed)
        placed, free_at = [*placed, Placed(times.start, times.due, 5 * 10**5)], times.next
    assert placed[-1].due == 29 * 10**6
    assert schedule.times(0, 0, 1, 2, placed).due <= 5 * 10**6


# ---- after a restart


class Crowd:
    """Jobs of one lane, each of an account of its own, and the processes that have them."""

    def __init__(self, tmp_path: Path, schedule: Schedule, **settings: Any) -> None:
        running = Running(tmp_path, **settings)
        self.tables, self.schedule = ServiceTables(running.url), schedule
        self._data = read_config(running.file).data["people"]

    def process(self, name: str, lane: int = 0) -> Jobs:
        return Jobs(self.tables, name, InFlight(50, 500, 50), self.schedule, {"people": lane})

    def ask(self, jobs: Jobs, account: str, now: int, questions: int = 1) -> ServiceJob:
        self._asked = getattr(self, "_asked", 0) + 1
        request = JobRequest(account, "token", f"k{self._asked}", self._data, "{}", questions)
        found: ServiceJob = jobs.accept(request, now, lambda run, account: Held(together([]), ())).result().job
        return found

    def planned(self, found: list[ServiceJob], questions: dict[int, int]) -> list[Planned]:
        return [Planned(job.number, job.account, Times(*job[12:15]), questions[job.number]) for job in found]


def test_jobs_that_had_not_begun_follow_one_another_after_a_restart(tmp_path: Path) -> None:
    """Their due times passed meanwhile: each has another, by which those before it are done, too."""
    second = 10**6
    crowd = Crowd(tmp_path, Schedule(second, 2 * second, second))
    before = crowd.process("here")
    jobs = [crowd.ask(before, f"people/a{number}", 0) for number in range(12)]
    assert before.begin(jobs[0].number)
    found = crowd.process("here", lane=1).own(16 * second, everybody=True)
    assert [job.number for job in found] == [job.number for job in jobs[1:]]
    assert [job.due_at // second for job in found] == [20 if place < 3 else 18 + place for place in range(1, 12)]
    assert {job.starts_at for job in found} == {16 * second}
    assert {job.lane for job in found} == {1}  # in lanes as they are now
    lost = before.find(jobs[0].id)
    assert lost is not None
    assert (lost.begun, lost.due_at) == (2, jobs[0].due_at)
    crowd.tables.close()


def test_which_jobs_had_begun_changes_nothing_for_others_after_a_restart(tmp_path: Path) -> None:
    seen = []
    for begun in ((), (0, 1), (0, 1, 2)):
        (tmp_path / str(len(begun))).mkdir()
        crowd = Crowd(tmp_path / str(len(begun)), Schedule(10, 20, 5))
        here = crowd.process("here")
        jobs = [crowd.ask(here, f"people/a{number}", 0) for number in range(8)]
        for number in begun:
            here.begin(jobs[number].number)
            if number == 0:
                here.keep(jobs[number].number, "{}", "[]")
        seen.append([job.due_at for job in here.own(200, everybody=True)][-5:])
        crowd.tables.close()
    assert len(set(map(str, seen))) == 1, seen


@pytest.mark.parametrize("seed", range(20))
def test_nobody_is_late_after_a_restart_or_an_adoption(seed: int, tmp_path: Path) -> None:
    """Whoever keeps the pace: those that were adopted, those who were there, and those who ask afterwards."""
    random = Random(seed)
    crowd = Crowd(tmp_path, Schedule(10, random.choice([0, 20]), 5))
    here, there, questions, times = crowd.process("here"), crowd.process("there"), dict[int, int](), dict[int, Any]()

    def asked(jobs: Jobs, now: int) -> None:
        count = random.choice([1, 1, 2, 8])
        job = crowd.ask(jobs, f"people/{random.choice('aaaabcd')}", now, count)
        questions[job.number], times[job.number] = count, job

    for number in range(20):
        asked(random.choice([here, there]), number)
    now = random.choice([25, 100, 400])
    here.beat(now)
    told = {number: (job.starts_at, job.due_at) for number, job in times.items()}
    if seed % 2:
        again = here.own(now, everybody=True)
        assert {job.number for job in again} == set(times)
    else:  # what this process has itself is over by then
        over = "UPDATE expost_job SET state = 'done', result = '{}', delivered_at = 1 WHERE owner = 'here'"
        crowd.tables.write(lambda run: run(over))
        times = {number: job for number, job in times.items() if job.owner == "there"}
        for _ in range(3):
            asked(here, now + SILENCE * 10**6)
        again, now = here.adopt(now + SILENCE * 10**6), now + SILENCE * 10**6
        assert all(job.owner == "here" for job in again)
    times |= {job.number: job for job in again}
    for number in range(5):
        asked(here, now + number)
    assert all(job.starts_at >= told[job.number][0] and job.due_at >= told[job.number][1] for job in again)
    planned = crowd.planned([job._replace(starts_at=max(job.starts_at, now)) for job in times.values()], questions)
    done = finished(random, planned, 5)
    assert all(done[job.number] <= job.times.due for job in planned)
    crowd.tables.close()


def test_processes_that_live_keep_their_jobs_however_rare_answers_are(tmp_path: Path) -> None:
    """Signs of life come on a timer of their own: before, at answer times, a minute apart, and a process that rang
    a millisecond earlier took what the other was running."""
    crowd = Crowd(tmp_path, Schedule(60 * 10**6, 0, 5))
    here, there, now, put = crowd.process("here"), crowd.process("there"), [1e6], list[ServiceJob]()
    hearts = [Heartbeat(jobs, put.append, clock=lambda: now[0]) for jobs in (here, there)]

    def live(seconds: float, *who: Heartbeat) -> None:
        until = now[0] + seconds
        while now[0] < until:
            now[0] += BEAT
            for heart in who:
                heart.beat()

    live(120, *hearts)
    running, waiting = (crowd.ask(there, f"people/{name}", int(now[0] * 1e6)) for name in "ab")
    assert there.begin(running.number)
    live(120, *hearts)
    assert put == []
    there.keep(running.number, "{}", "[]")
    live(SILENCE + 2 * BEAT, hearts[0])  # one has ended
    assert [job.number for job in put] == [waiting.number]
    assert {job.owner for job in here.last(2)} == {"here"}
    asked = crowd.ask(there, "people/c", int(now[0] * 1e6))
    now[0] += 2 * SILENCE  # the database was away, for all of them
    live(SILENCE - 2 * BEAT, hearts[0])
    assert len(put) == 1
    live(4 * BEAT, hearts[0])
    assert [job.number for job in put] == [waiting.number, asked.number]
    crowd.tables.close()


def test_a_service_gives_signs_of_life_between_answer_times(tmp_path: Path) -> None:
    running = Forked(tmp_path, server="answer_every = 600").start()
    tables = ServiceTables(running.url)
    try:
        since, until = tables.rows("SELECT seen_at FROM expost_server"), time.monotonic() + SILENCE
        while tables.rows("SELECT seen_at FROM expost_server") == since:
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        tables.close()
        running.stop()


def test_a_service_that_was_killed_answers_what_had_not_begun(tmp_path: Path, clock: StandingClock) -> None:
    """All were due while nobody served: before, they then had one answer time together, and most were lost."""
    killed = Forked(tmp_path, server='answer_every = 60\nmargin = 60\npace = 50\njobs_at_once = 1\nlate = "lose"')
    ledger = killed.ledger()
    for number in range(5):
        ledger.create_account(f"a{number}", 1)
        killed.add_tokens((f"a{number}", "analyst", f"people/a{number}"))
    killed.start()
    jobs = [submit(killed.client(f"a{number}"), "k", COUNT).json()["id"] for number in range(5)]
    killed.kill()
    tables, never = ServiceTables(killed.url), "result = NULL, postings = NULL, delivered_at = NULL"
    as_if = f"state = 'accepted', begun = 0, starts_at = 1, next_at = 1, due_at = 1, {never}"  # long ago
    tables.write(lambda run: run(f"UPDATE expost_job SET {as_if}"))
    tables.close()
    running = Stepped.beside(killed, killed.file).on(clock).start()
    try:
        clients = [running.client(f"a{number}") for number in range(5)]
        due = [
            seconds(client.get(f"/v1/jobs/{job}").json()["due_at"]) for client, job in zip(clients, jobs, strict=True)
        ]
        assert [at - clock.now for at in due] == [180, 180, 240, 300, 300]  # one after the other
        found = [running.answered(client, job) for client, job in zip(clients, jobs, strict=True)]
        assert [job["result"]["state"] for job in found] == ["answered"] * 5
        assert [seconds(job["answered_at"]) for job in found] == due
        assert running.ledger().spent == Cost("0.05")
        running.ledger().verify()
    finally:
        running.stop()


# ---- posting


def test_others_are_accepted_while_many_jobs_are_posted(tmp_path: Path) -> None:
    """Books count a job's hold or its entries at every moment, and nobody waits until the last job is posted."""
    window, delivered = Window(ServiceTables(Running(tmp_path).url), ("people",)), list[int]()

    def results(due: Any) -> Iterator[tuple[int, str]]:
        for number in range(20):
            time.sleep(0.1)
            yield number, "{}"

    jobs: Any = SimpleNamespace(
        due=lambda slot, patience: [], deliver=lambda slot, found: delivered.extend(number for number, _ in found),
        delivered_since=lambda when: [],
    )  # fmt: skip
    others: Any = SimpleNamespace(results=results, tidy=lambda slot: False)
    bell = Bell(jobs, others, window, others, 1)
    ringing = Thread(target=bell._ring, args=(1.0,))
    ringing.start()
    waited = []
    while ringing.is_alive():
        before = len(delivered)
        with window.gate.opened():
            waited.append(len(delivered) - before)
            assert delivered == list(range(len(delivered)))
        time.sleep(0.01)
    assert delivered == list(range(20))
    assert max(waited) < 10, waited  # those of a moment, in which few are posted


def test_what_is_out_of_time_is_never_kept(tmp_path: Path) -> None:
    """A job that is late is lost in one step, before its entry is made: what its thread finds later changes nothing."""
    running = Running(tmp_path)
    tables = ServiceTables(running.url)
    jobs = Jobs(tables, "one", InFlight(50, 500, 50), Schedule(10**6, 0, 0), {"people": 0})
    data, held = read_config(running.file).data["people"], Held(together([]), ())

    def accepted(key: str) -> int:
        request = JobRequest("people/alice", "token", key, data, "{}")
        return int(jobs.accept(request, 1, lambda run, account: held).result().job.number)

    begun, waiting = accepted("a"), accepted("b")
    assert jobs.begin(begun)
    assert not jobs.begin(begun)  # nobody samples twice
    assert jobs.due(10**7, patience=10**8) == []
    assert [(job.number, job.begun) for job in jobs.due(10**7)] == [(begun, 4), (waiting, 3)]
    jobs.keep(begun, "{}", "[]")
    assert not jobs.begin(waiting)
    assert [job.state for job in jobs.due(10**7)] == ["accepted", "accepted"]
    tables.close()


# ---- at the machine


def job_command(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["job", *map(str, arguments)], env={"COLUMNS": "250", "TERM": "dumb"})


def test_jobs_at_the_machine(tmp_path: Path, clock: StandingClock) -> None:
    """The custodian sees what waits, and cancels it until it starts; the trail has a line, and the books are free."""
    slow = "answer_every = 60\nmargin = 0\npace = 240\njobs_at_once = 1"
    running = Stepped(tmp_path, server=slow, more=REVIEWED).on(clock).start()
    file = running.file
    try:
        with running.client("alice") as client:
            first, *others, second = (submit(client, key, COUNT).json() for key in "abcdef")
            waits = submit(client, "w", COUNT, data="guarded").json()
            listed = job_command("list", file, "--waiting", "--account", "people")
            assert second["id"] in listed.output
            assert "0.01" in listed.output
            assert json.loads(job_command("list", file, "--json", "--last", "1").output)[0]["id"] == waits["id"]
            assert job_command("list", file, "--account", "people/bob", "--json").output.strip() == "[]"
            running.answered(client, first["id"])
            over = json.loads(job_command("show", file, first["id"], "--json").output)
            assert (over["outcome"], over["charged"]["epsilon"], over["held"]) == ("answered", "0.01", None)
            assert "result" not in over
            shown = job_command("show", file, second["id"]).output
            assert "set aside: ε 0.01" in shown
            assert '"where": "age >= 60"' in shown
            late = job_command("cancel", file, first["id"], "--reason", "r")
            assert late.exit_code != 0
            assert "has started, or is over" in late.output
            assert "there is no job 'x'" in job_command("cancel", file, "x", "--reason", "r").output
            assert "a reason is one line" in job_command("cancel", file, second["id"], "--reason", " ").output
            gone = job_command("cancel", file, second["id"], "--reason", "a [mistake]")
            assert gone.output.startswith(
                f"cancelled {second['id']}: nothing was charged, and ε 0.01 that was set aside"
            )
            assert job_command("cancel", file, waits["id"], "--reason", "a").exit_code == 0
            found = running.answered(client, second["id"])["result"]
            assert found["state"] == "cancelled"
            assert found["problem"]["detail"].endswith("by the custodian, and nothing was charged: a [mistake]")
            assert {running.answered(client, each["id"])["result"]["state"] for each in others} == {"answered"}
            assert client.get("/v1/account").json()["reserved"]["epsilon"] == "0"
        lines = [line.body for line in running.ledger().audit_trail() if line.kind == "remark"]
        assert lines[-2]["reason"] == f"cancelled job {second['id']}: a [mistake]"
        assert running.ledger().spent == Cost("0.05")
    finally:
        running.stop()


# ---- what is held


def test_what_is_held_is_added_up_by_charge(tmp_path: Path) -> None:
    """Charges that are equal are counted, not read one by one: accepting a job does not take longer the more wait."""
    running = Running(tmp_path)
    tables = ServiceTables(running.url)
    jobs = Jobs(tables, "one", InFlight(50, 500, 50), Schedule(10**6, 10**6, 10**4), {"people": 0})
    data = read_config(running.file).data["people"]
    charges = [Amounts(25 * 10**10, 10**9, 3, 1, 4, 1, 5)] * 3 + [Amounts(5 * 10**11)]
    left = iter(charges)
    for number in range(len(charges)):
        request = JobRequest("people/alice", "token", f"k{number}", data, "{}")
        assert jobs.accept(request, 1, lambda run, account: Held(next(left), ())).result().verdict == "new"
    assert len(_held(tables.rows)) == 2
    assert together(charge for _, charge in _held(tables.rows)) == together(charges)
    tables.close()
