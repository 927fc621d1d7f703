"""The service under kills, concurrency and two processes: never two charges, never an answer without one."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from books import wait_until
from expost import Cost, Ledger
from expost.ledger.entry import Note
from expost.ledger.transfer import back_up, move_ledger
from expost.service.database import ServiceTables
from serving import COUNT, Forked, Running, answer, submit
from soak import SOAK

KILLS = min(SOAK, 100) or 2
CLIENTS, EACH = (16, 200) if SOAK else (8, 10)


@contextmanager
def started(running: Running) -> Iterator[Running]:
    try:
        yield running.start()
    finally:
        running.stop()


def keyed(ledger: Ledger) -> dict[str, Any]:
    """Entries that a question made, by key."""
    found = [entry for entry in ledger.entries() if entry.operation == "run"]
    assert len({entry.key for entry in found}) == len(found)
    return {str(entry.key): entry for entry in found}


def check(running: Running, answers: dict[str, dict[str, Any]]) -> None:
    """Every answer has its one charge, and every charge is of a job that was accepted; the trail verifies."""
    ledger = Ledger.load(running.url, "people")
    entries = {entry.id: entry for entry in ledger.entries() if entry.key is not None}
    paid: set[int] = set()
    for job in answers.values():
        if job["result"]["state"] == "lost":  # its process died: the worst case of all that it asked
            lost = [entries[entry] for entry in job["result"]["problem"]["entries"]]
            assert sum((each.charged or Cost(0) for each in lost), Cost(0)) == Cost.from_json(
                job["result"]["problem"]["charged"]
            )
            assert paid.isdisjoint(each.id for each in lost)
            paid |= {each.id for each in lost}
        for question in job["result"]["questions"]:
            for receipt in question["receipts"]:
                entry = entries[receipt["entry"]]
                assert entry.id not in paid, "one charge is that of one job"
                paid.add(entry.id)
                assert entry.charged == Cost.from_json(receipt["charged"])
                assert (receipt["output"] is not None) == (entry.state == "settled")
            assert question["state"] != "answered" or question["receipts"]
    assert {entry.id for entry in entries.values()} == paid
    assert ledger.spent == sum((entry.charged or Cost(0) for entry in entries.values()), Cost(0))
    assert ledger.spent <= ledger.limit
    assert ledger.reserved == Cost(0)
    ledger.verify()


def test_killed_in_the_middle_of_jobs(new_url: Callable[[], str], tmp_path: Path) -> None:
    """Jobs with slow questions; the process dies at random moments, starts again, and clients repeat their keys."""
    url = new_url()
    kind = Running if SOAK or url.startswith("sqlite") else Forked  # as an operator starts it, and as quickly as can be
    running = kind(tmp_path, url, epsilon=100_000, server='name = "one"')
    chance, answers = random.Random(5), dict[str, dict[str, Any]]()
    slow = {"name": "fit", "kind": "logistic_regression", "features": ["ratio"], "target": "old", "norm": 1,
            "threshold": 0.5, "test_share": 0.1, "missing": 0, "epsilon": 0.5}  # fmt: skip
    derive = {"ratio": "age / 80", "old": "CASE WHEN age >= 40 THEN 1 ELSE 0 END"}
    keys: list[str] = []
    for number in range(KILLS):
        running.start()
        new = [f"job-{number}-{n}" for n in range(4)]
        keys += new
        with running.client("alice") as client, suppress(httpx.TransportError):
            for key in new:
                submit(client, key, {**COUNT, "epsilon": 0.5}, slow, derive=derive)
            time.sleep(chance.uniform(0, 0.25))
        running.kill()
    with started(running), running.client("alice") as client:
        for key in keys:
            accepted = submit(client, key, {**COUNT, "epsilon": 0.5}, slow, derive=derive)
            assert accepted.status_code in (200, 202), accepted.text
            answers[key] = answer(client, accepted.json()["id"])
        for key in keys:  # once more: the same answers, and no charge
            again = submit(client, key, {**COUNT, "epsilon": 0.5}, slow, derive=derive)
            assert again.json() == answers[key]
    check(running, answers)
    states = [each["state"] for job in answers.values() for each in job["result"]["questions"]]
    assert states.count("answered") > 0


def test_many_clients_against_a_limit_for_half_of_them(new_url: Callable[[], str], tmp_path: Path) -> None:
    """Exactly half of the jobs fit, whoever comes first; the other half is refused, and charged nothing."""
    jobs = CLIENTS * EACH
    running = Forked(tmp_path, new_url(), epsilon=jobs / 2 * 0.5, server="answer_every = 0.1\nqueue = 4000")
    question = {**COUNT, "epsilon": 0.5}

    def work(client_number: int) -> list[dict[str, Any]]:
        who = ("alice", "bob")[client_number % 2]
        found = []
        with running.client(who) as client:
            for n in range(EACH):
                reply = submit(client, f"{client_number}-{n}", question)
                found.append({"reply": reply.status_code, "job": reply.json()})
            for each in found:
                if each["reply"] == 202:
                    each["done"] = answer(client, each["job"]["id"])
        return found

    with started(running), ThreadPoolExecutor(CLIENTS) as pool:
        done = [each for found in pool.map(work, range(CLIENTS)) for each in found]
    answered = [each["done"] for each in done if each.get("done", {}).get("result", {}).get("state") == "answered"]
    refused = [each for each in done if each["reply"] == 409 or each.get("done", {})["result"]["state"] == "refused"]
    assert len(answered) == jobs // 2
    assert len(refused) == jobs - jobs // 2
    ledger = Ledger.load(running.url, "people")
    assert (ledger.spent, ledger.remaining.epsilon_units) == (Cost(jobs / 2 * 0.5), 0)
    assert len(keyed(ledger)) == jobs // 2
    assert "people" not in json.dumps([each["done"]["result"]["problem"] for each in refused if "done" in each])
    ledger.verify()


def test_two_processes_on_postgres(postgres_url: Callable[[], str], tmp_path: Path) -> None:
    """Any of them takes a job, any of them shows it; one is killed, and comes back under its name."""
    first = Forked(tmp_path, postgres_url(), server='name = "first"')
    other = tmp_path / "second.toml"
    other.write_text(first.file.read_text().replace('name = "first"', 'name = "second"'))
    second = Forked.beside(first, other)
    answers = {}
    with started(first), started(second):
        for number in range(10):
            with first.client("alice") as one, second.client("alice") as two:
                asked, shown = (one, two) if number % 2 else (two, one)
                accepted = submit(asked, f"k{number}", COUNT).json()
                assert submit(shown, f"k{number}", COUNT).json()["id"] == accepted["id"]
                if number == 5:
                    first.kill()
                    first.start()
                    shown = two
                answers[f"k{number}"] = answer(shown, accepted["id"])
    check(first, answers)


def test_the_database_goes_away(tmp_path: Path) -> None:
    """503, and nothing is sampled; when it is back, everything goes on."""
    from servers import Server

    server = Server()
    try:
        running = Forked(tmp_path, server.url)
        with started(running), running.client("alice") as client:
            answer(client, submit(client, "before", COUNT).json()["id"])
            server.stop("immediate")
            reply = submit(client, "during", COUNT)
            assert reply.status_code == 503, reply.text
            assert reply.headers["content-type"] == "application/problem+json"
            server.start()
            accepted = submit(client, "after", COUNT)
            assert accepted.status_code == 202
            answer(client, accepted.json()["id"])
        spent = Ledger.load(running.url, "people").spent
        assert spent in (Cost(0.02), Cost(0.03))  # "during" may have been recorded; it is charged at most once
    finally:
        server.remove()


def test_backed_up_and_moved(postgres_url: Callable[[], str], tmp_path: Path) -> None:
    """A backup has everything. A moved ledger has its trail, and what was asked under a key is not sampled again."""
    running = Forked(tmp_path)
    with started(running), running.client("alice") as client:
        first = answer(client, submit(client, "k", COUNT).json()["id"])
    back_up(running.url, str(tmp_path / "copy.db"))
    restored, moved = tmp_path / "restored.toml", tmp_path / "moved.toml"
    restored.write_text(running.file.read_text().replace("books.db", "copy.db"))
    copy = Forked.beside(running, restored)
    with started(copy), copy.client("alice") as client:
        assert submit(client, "k", COUNT).json() == first  # tokens and jobs are there, too
    target, url = postgres_url(), running.url
    for name in ("people", "others"):
        move_ledger(url, name, target, Note("custodian", "to the server"))
    moved.write_text(running.file.read_text().replace(url, target))
    running.url = target
    running.add_tokens(("alice", "analyst", "people/alice"))
    there = Forked.beside(running, moved)
    with started(there), there.client("alice") as client:
        again = answer(client, submit(client, "k", COUNT).json()["id"])
    receipts = [job["result"]["questions"][0]["receipts"][0] for job in (first, again)]
    assert receipts[1] == receipts[0] | {"stored": True}
    ledger = Ledger.load(target, "people")
    assert ledger.spent == Cost(0.01)
    ledger.verify()


def test_a_graceful_stop_keeps_what_is_ready(sqlite_url: Callable[[], str], tmp_path: Path) -> None:
    """What was sampled before is answered after the next start, and nothing is sampled again."""
    running = Forked(tmp_path, sqlite_url(), server="answer_every = 3600\nmargin = 3600")
    tables = ServiceTables(running.url)
    with started(running), running.client("alice") as client:
        jobs = [submit(client, f"k{n}", COUNT).json()["id"] for n in range(3)]
        wait_until(lambda: tables.rows("SELECT count(*) FROM expost_job WHERE state = 'ready'") == [(3,)])
    kept = [text for (text,) in tables.rows("SELECT postings FROM expost_job ORDER BY number")]
    tables.write(lambda run: run("UPDATE expost_job SET due_at = 1 RETURNING id"))  # its answer time comes
    tables.close()
    assert keyed(running.ledger()) == {}
    text = running.file.read_text().replace("answer_every = 3600", "answer_every = 0.1")
    running.file.write_text(text)
    with started(running), running.client("alice") as client:
        answers = [answer(client, job)["result"] for job in jobs]
    assert [each["state"] for each in answers] == ["answered"] * 3
    published = [each["questions"][0]["receipts"][0]["output"] for each in answers]
    assert all(f'"output\\",{each}]' in text for each, text in zip(published, kept, strict=True))
    assert len(keyed(running.ledger())) == 3
