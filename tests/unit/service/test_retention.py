"""The service's tables: migrations run in order, all or none; and what is not kept for ever goes, a batch at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from books import make
from expost.errors import ExpostError, InvalidValue
from expost.ledger.address import open_engine
from expost.service.client.calls import error_of_problem
from expost.service.database import ServiceTables
from expost.service.results import charged_in, ended, result_text
from expost.service.retention import RESULT_GONE, Retention, without_answers
from expost.service.schema import make_tables, service_migrations
from serving import Forked, signed_in

DAY = 86_400
NOW = 1000 * DAY
ANSWER = result_text({
    "state": "answered", "asked": 1, "answered": 1, "problem": None,
    "questions": [{"name": "old", "receipts": [
        {"entry": 7, "stored": False, "charged": {"epsilon": "0.25", "delta": "0"}, "output": "1234567"},
        {"entry": 6, "stored": True, "charged": {"epsilon": "0.5", "delta": "0"}, "output": "1234567"},
    ]}],
})  # fmt: skip
LOST = result_text(ended("lost", "", {"title": "Lost", "status": 409, "detail": "late", "entries": [9],
                                      "charged": {"epsilon": "1", "delta": "0"}}))  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    new: Callable[[], str] = request.getfixturevalue(f"{request.param}_url")
    found = new()
    make(found)
    return found


def add_job(run: Any, number: int, *, answered: float | None, result: str | None = ANSWER, token: str = "t") -> None:
    state = "accepted" if answered is None else "done"
    run("INSERT INTO expost_job (id, account, token, key, data, definition, body, questions, state, owner, "
        "accepted_at, starts_at, next_at, due_at, result, delivered_at) "
        "VALUES (?, 'a', ?, ?, 'd', 'd', '{}', 1, ?, 'gone', 0, 0, 0, 0, ?, ?)",
        f"job{number}", token, f"key{number}", state, result if answered is not None else None,
        None if answered is None else int(answered * 1e6))  # fmt: skip


def add_token(run: Any, name: str, expires: int, maker: str | None = None) -> None:
    run("INSERT INTO expost_token (id, digest, role, account, name, made_at, expires_at, maker) "
        "VALUES (?, 'x', 'analyst', 'a', 'n', 0, ?, ?)", name, expires, maker)  # fmt: skip


def test_old_results_go_and_their_lines_stay(url: str) -> None:
    tables = ServiceTables(url)
    old, young = NOW - 91 * DAY, NOW - 89 * DAY

    def fill(run: Any) -> None:
        jobs = [(old, ANSWER), (old + 1, LOST), (old + 2, ANSWER), (young, ANSWER)]
        for number, (answered, result) in enumerate(jobs):
            add_job(run, number, answered=answered, result=result)
        add_job(run, 9, answered=None)

    tables.write(fill)
    assert not Retention(tables, None).tidy(NOW)
    rounds = [Retention(tables, 90, batch=2).tidy(NOW) for _ in range(3)]
    found = dict(tables.rows("SELECT id, result FROM expost_job"))
    tables.close()
    assert rounds == [True, False, False]
    assert found["job3"] == ANSWER
    assert found["job9"] is None
    for name, state, charged in (("job0", "answered", 0.25), ("job1", "lost", 1), ("job2", "answered", 0.25)):
        assert json.loads(found[name])["state"] == state
        assert "1234567" not in found[name]
        assert charged_in(found[name]).epsilon == charged
    assert json.loads(found["job0"])["problem"]["entries"] == [7, 6]


def test_a_service_lets_old_results_go(tmp_path: Path) -> None:
    """While it runs; and whoever looks at such a job is told."""
    running = Forked(tmp_path, server="keep_results = 1")
    tables = ServiceTables(running.url)
    tables.write(lambda run: add_job(run, 1, answered=time.time() - 2 * DAY))
    tables.write(lambda run: run("UPDATE expost_job SET account = 'people/alice'"))
    tables.close()
    running.start()
    try:
        with running.client("alice") as client:
            for _ in range(1000):
                found = client.get("/v1/jobs/job1").json()["result"]
                if not found["questions"]:
                    break
                time.sleep(0.05)
            (line,) = client.get("/v1/jobs").json()
        with signed_in(running, "alice") as (browser, _):
            shown = browser.get("/jobs/job1")
    finally:
        running.stop()
    assert (found["state"], line["outcome"], found["problem"]["title"]) == ("answered", "answered", "Not kept")
    assert shown.status_code == 200
    assert "no longer keeps the result" in shown.text
    assert "1234567" not in shown.text


def test_who_asks_again_is_told() -> None:
    problem = json.loads(without_answers(ANSWER))["problem"]
    error = error_of_problem(problem, "a", "key0")
    assert (type(error), str(error)) == (ExpostError, RESULT_GONE)


def test_tokens_that_ended_long_ago_go(url: str) -> None:
    tables = ServiceTables(url)
    old, young = NOW - 91 * DAY, NOW - 89 * DAY

    def fill(run: Any) -> None:
        add_token(run, "maker", old)
        add_token(run, "made", old, "maker")
        add_token(run, "parent", old)
        add_token(run, "child", young, "parent")
        add_token(run, "asker", old)
        add_job(run, 1, answered=None, token="asker")
        run("INSERT INTO expost_session (digest, token, expires_at) VALUES ('old', 'made', ?)", old)
        run("INSERT INTO expost_session (digest, token, expires_at) VALUES ('young', 'child', ?)", young)
        for name, seen in (("gone", old), ("forgotten", old), ("here", young)):  # job 1 waits for the first
            run("INSERT INTO expost_server (name, seen_at) VALUES (?, ?)", name, seen * 10**6)

    tables.write(fill)
    for _ in range(2):  # those that were made with others first
        Retention(tables, 90).tidy(NOW)
    left = {name for (name,) in tables.rows("SELECT id FROM expost_token")}
    sessions = {name for (name,) in tables.rows("SELECT digest FROM expost_session")}
    servers = {name for (name,) in tables.rows("SELECT name FROM expost_server")}
    tables.close()
    assert left == {"parent", "child", "asker"}
    assert sessions == {"young"}
    assert servers == {"gone", "here"}


# ---- migrations


def migrate(url: str, *more: tuple[str, str]) -> None:
    """As a version would that has more migrations."""
    engine = open_engine(url)
    backend = "sqlite" if engine.local else "postgres"
    try:
        with engine.transaction() as run:
            make_tables(run, backend, [*service_migrations(backend), *more])
    finally:
        engine.close()


def ran(url: str) -> list[str]:
    tables = ServiceTables(url)
    found = [name for (name,) in tables.rows("SELECT name FROM expost_service ORDER BY name")]
    tables.close()
    return found


def test_migrations_that_are_missing_are_run(url: str) -> None:
    assert ran(url) == ["0001_service"]
    engine = open_engine(url)
    with engine.transaction() as run:
        add_job(run, 1, answered=5)
    later = ("0008_first", "ALTER TABLE expost_job ADD COLUMN more INTEGER NOT NULL DEFAULT 7")
    last = ("0009_last", "CREATE TABLE expost_more (id TEXT); INSERT INTO expost_more VALUES ('x')")
    migrate(url, later)
    migrate(url, later, last)
    assert [tuple(row) for row in engine.rows("SELECT id, more FROM expost_job")] == [("job1", 7)]
    assert [tuple(row) for row in engine.rows("SELECT id FROM expost_more")] == [("x",)]
    engine.close()


def test_a_migration_that_fails_changes_nothing(url: str) -> None:
    before = ran(url)
    good = ("0008_good", "ALTER TABLE expost_job ADD COLUMN more TEXT")
    with pytest.raises(Exception, match=r"nowhere"):
        migrate(url, good, ("0009_bad", "CREATE TABLE expost_more (id TEXT); SELECT 1 FROM nowhere"))
    assert ran(url) == before
    tables = ServiceTables(url)
    with pytest.raises(Exception, match=r"more"):
        tables.rows("SELECT more FROM expost_job")
    tables.close()


def test_tables_of_a_newer_version_are_left_alone(url: str) -> None:
    tables = ServiceTables(url)
    tables.write(lambda run: run("INSERT INTO expost_service (name, digest) VALUES ('9999_later', 'x')"))
    tables.close()
    with pytest.raises(InvalidValue, match=r"a newer expost \(migration '9999_later'\)"):
        ServiceTables(url)
