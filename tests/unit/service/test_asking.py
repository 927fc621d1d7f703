"""Asking: jobs, keys, answer times, reviews, rehearsals; and requests that are refused without any charge."""

from __future__ import annotations

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from expost import Cost
from serving import COUNT, Forked, Running, answer, submit


def key() -> str:
    return secrets.token_hex(8)


def balances(running: Running) -> Any:
    """All balances, once nothing is reserved any more."""
    ledger = running.ledger()
    until = time.monotonic() + 60
    while ledger.reserved and time.monotonic() < until:
        time.sleep(0.01)
    return ledger.spent, ledger.account("alice").spent, ledger.account("bob").spent


def test_an_answer_its_charge_and_its_replay(running: Running) -> None:
    before = running.ledger().account("alice").spent
    with running.client("alice") as client:
        name = key()
        first = submit(client, name, COUNT)
        assert (first.status_code, first.json()["state"], first.json()["result"]) == (202, "accepted", None)
        found = answer(client, first.json()["id"])
        (asked,) = found["result"]["questions"]
        assert abs(asked["value"] - 1500) < 3000
        assert asked["receipts"][0]["charged"] == {"epsilon": "0.01", "delta": "0"}
        again = submit(client, name, COUNT)
        assert again.json() == found
        conflict = submit(client, name, COUNT | {"epsilon": 0.02})
        assert (conflict.status_code, conflict.json()["error"]) == (409, "KeyConflict")
        other = answer(client, submit(client, key(), COUNT).json()["id"])  # another key asks anew
        assert other["result"]["questions"][0]["receipts"][0]["stored"] is False
    assert running.ledger().account("alice").spent - before == Cost(0.02)


def test_answers_come_at_answer_times_and_in_order(running: Running) -> None:
    with running.client("bob") as client:
        jobs = [submit(client, key(), COUNT).json()["id"] for _ in range(5)]
        found = [answer(client, job) for job in jobs]
    times = [each["answered_at"] for each in found]
    assert times == sorted(times)
    assert all(each[-4:] in {f"{n}00Z" for n in range(10)} for each in times), times
    assert all(each["answered_at"] > each["accepted_at"] for each in found)


def test_a_study_as_toml_with_conditions_and_derived_columns(running: Running) -> None:
    text = """
[derive]
half = "age / 2"

[[question]]
name = "many"
kind = "count"
where = "half >= 20"
epsilon = 2

[[question]]
name = "few"
kind = "count"
where = "half >= 20"
epsilon = 0.1
only_if = "many < 10"
"""
    with running.client("alice") as client:
        found = answer(client, submit(client, key(), toml=text).json()["id"])["result"]
    assert [each["state"] for each in found["questions"]] == ["answered", "skipped"]
    assert abs(found["questions"][0]["value"] - 3000) < 50


@pytest.mark.usefixtures("no_reviews")
def test_a_review_is_recorded_in_the_trail(running: Running) -> None:
    with running.client("alice") as alice, running.client("custodian") as custodian:
        jobs = [submit(alice, key(), COUNT, data="guarded").json() for _ in range(2)]
        assert {job["state"] for job in jobs} == {"review"}
        waiting = {each["job"]: each for each in custodian.get("/v1/admin/reviews").json()}
        shown = waiting[jobs[0]["id"]]
        assert (shown["asked"]["questions"], shown["plan"]["questions"][0]["worst"]["epsilon"]) == ([COUNT], "0.01")
        before = running.ledger().account("alice").spent
        for job, accept in zip(jobs, (True, False), strict=True):
            body = {"accept": accept, "reason": f"reason {accept}"}
            assert custodian.post(f"/v1/admin/reviews/{job['id']}", json=body).status_code == 204
            assert custodian.post(f"/v1/admin/reviews/{job['id']}", json=body).status_code == 409
        accepted, declined = (answer(alice, job["id"]) for job in jobs)
        assert accepted["result"]["state"] == "answered"
        assert (declined["result"]["state"], declined["review"]["verdict"]) == ("declined", "declined")
        assert running.ledger().account("alice").spent - before == Cost(0.01)
        trail = custodian.get("/v1/audit/export").text
    for verdict, job in zip(("accepted", "declined"), jobs, strict=True):
        assert trail.count(f"review of job {job['id']}: {verdict}: reason") == 1
    running.ledger().verify()


@pytest.mark.usefixtures("no_reviews")
def test_reviews_have_the_plan_of_when_they_were_asked_and_come_in_pages(running: Running) -> None:
    with running.client("bob") as bob, running.client("custodian") as custodian:

        def listed(**params: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = custodian.get("/v1/admin/reviews", params=params).json()
            return found

        before = [each["job"] for each in listed()]
        jobs = [submit(bob, key(), COUNT, data="guarded").json()["id"] for _ in range(3)]
        shown = listed(**({"after": before[-1]} if before else {}))
        assert [each["job"] for each in shown] == jobs
        answer(bob, submit(bob, key(), COUNT).json()["id"])
        again = listed(after=jobs[0], limit=1)
        assert again == shown[1:2], "nothing is planned anew, whatever was spent since"
        plan = bob.post("/v1/data/guarded/plan", json={"questions": [COUNT]}).json()
        assert plan["questions"] == again[0]["plan"]["questions"]
        assert plan["before"] != again[0]["plan"]["before"]
        assert listed(after=jobs[2]) == []
        for wrong, status in (({"after": "0" * 32}, 404), ({"limit": 21}, 422), ({"limit": 0}, 422)):
            assert custodian.get("/v1/admin/reviews", params=wrong).status_code == status
        for job in jobs:
            assert bob.delete(f"/v1/jobs/{job}").status_code == 200


def test_a_rehearsal_is_free_and_marked(running: Running) -> None:
    before = balances(running)
    with running.client("alice") as client:
        body = {"questions": [COUNT]}
        found = client.post("/v1/data/people/rehearsal", json=body).json()
        assert found["rehearsal"] is True
        assert found["questions"][0]["value"] < 1300  # of a thousand rows, not of 6000
        assert client.post("/v1/data/guarded/rehearsal", json=body).status_code == 404
    assert balances(running) == before


def test_what_is_short_is_refused_without_the_name_of_a_level(running: Running) -> None:
    before = balances(running)
    with running.client("alice") as client:
        reply = submit(client, key(), COUNT | {"epsilon": 100_000})
    problem = reply.json()
    assert (reply.status_code, problem["error"]) == (409, "BudgetExceeded")
    assert problem["requested"]["epsilon"] == "100000"
    assert "largest affordable" in problem["detail"]
    assert "people" not in reply.text
    assert balances(running) == before


BAD: list[tuple[Any, int, str]] = [
    ({"questions": [COUNT], "ledger": "people"}, 422, "/ledger"),
    ({"questions": [COUNT], "path": "/etc/passwd"}, 422, "/path"),
    ({"questions": "x"}, 422, "/questions"),
    ({"questions": [1]}, 422, "/questions/0"),
    ({}, 422, ""),
    ({"questions": []}, 422, "/questions"),
    ({"questions": [COUNT], "toml": "x"}, 422, ""),
    ({"questions": [COUNT, COUNT]}, 422, "/questions/1/name"),
    ({"questions": [COUNT | {"epsilon": True}]}, 422, "/questions/0/epsilon"),
    ({"questions": [COUNT | {"epsilon": 1e-13}]}, 422, "/questions/0/epsilon"),
    ({"questions": [COUNT | {"kind": "python"}]}, 422, "/questions/0/kind"),
    ({"questions": [COUNT | {"where": "__import__('os')"}]}, 422, "/questions/0/where"),
    ({"questions": [COUNT | {"where": "age >= (SELECT 1)"}]}, 422, "/questions/0/where"),
    ({"questions": [COUNT | {"where": "age"}]}, 422, "/questions/0/where"),
    ({"questions": [COUNT | {"code": "1"}]}, 422, "/questions/0/code"),
    ({"questions": [COUNT], "derive": {"age": "1"}}, 422, "/derive/age"),
    ({"questions": [COUNT], "derive": {"x/y": "nothing + 1"}}, 422, "/derive/x~1y"),
    ({"toml": "[data]\npath = '/etc/passwd'\n"}, 422, "/toml"),
    ({"toml": "[limit]\nepsilon = 1\n"}, 422, "/toml"),
    ({"toml": "= 3"}, 422, "/toml"),
    ({"questions": [{"name": f"q{n}", "kind": "count", "epsilon": 1} for n in range(101)]}, 422, "/questions"),
]


@pytest.mark.parametrize(("body", "status", "pointer"), BAD)
def test_bad_requests_have_a_pointer_and_reserve_nothing(
    running: Running, body: Any, status: int, pointer: str
) -> None:
    before = balances(running)
    with running.client("alice") as client:
        reply = client.post("/v1/data/people/jobs", json=body, headers={"idempotency-key": key()})
    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (status, pointer), reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert balances(running) == before


def test_unreadable_bodies(running: Running) -> None:
    deep = '{"questions": ' + "[" * 5000 + "]" * 5000 + "}"
    with running.client("alice") as client:

        def send(content: bytes, kind: str = "application/json") -> httpx.Response:
            headers = {"content-type": kind, "idempotency-key": key()}
            return client.post("/v1/data/people/jobs", content=content, headers=headers)

        assert send(b'{"questions": [').status_code == 400
        assert send(b"\xff\xfe").status_code == 400
        assert send(deep.encode()).status_code == 400
        assert send(b'{"questions": [{"name": "x", "kind": "count", "epsilon": NaN}]}').status_code == 400
        assert send(b"x" * 70_000).status_code == 413
        assert send(b"{}", "text/plain").status_code == 415
        huge = b'{"questions": [{"name": "x", "kind": "count", "epsilon": 1' + b"0" * 5000 + b"}]}"
        assert 400 <= send(huge).status_code < 500
        missing = client.post("/v1/data/people/jobs", json={"questions": [COUNT]})
        assert (missing.status_code, missing.json()["errors"][0]["pointer"]) == (422, "/header/Idempotency-Key")
        assert client.get("/v1/nothing").status_code == 404
        assert client.put("/v1/data").status_code == 405


def test_kinds_that_are_not_allowed(running: Running) -> None:
    with running.client("alice") as client:
        reply = submit(client, key(), {"name": "m", "kind": "median", "column": "age", "bounds": [0, 100],
                                       "epsilon": 1}, data="guarded")  # fmt: skip
    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, "/questions/0/kind")
    assert "allowed are count, sum" in reply.text


def test_a_full_queue(tmp_path_factory: pytest.TempPathFactory) -> None:
    service = Forked(tmp_path_factory.mktemp("queue"), server="answer_every = 30\nmargin = 600\nqueue = 2").start()
    try:
        with service.client("alice") as client, service.client("bob") as other:
            got = [submit(client, f"k{n}", COUNT).status_code for n in (1, 2, 3, 1)]
            assert got == [202, 202, 429, 202]
            assert submit(other, "k1", COUNT).status_code == 202
    finally:
        assert service.stop() in (0, -15)  # the signal itself, after all was put away


def test_administration(running: Running) -> None:
    with running.client("custodian") as client:
        name = f"people/{secrets.token_hex(4)}"
        made = client.post("/v1/admin/accounts", json={"account": name, "epsilon": "0.5", "delta": "1e-6"})
        assert (made.status_code, made.json()["limit"]) == (201, {"epsilon": "0.5", "delta": "1e-6"})
        assert client.post("/v1/admin/accounts", json={"account": name, "epsilon": "1"}).status_code == 409
        token = client.post(
            "/v1/admin/tokens", json={"role": "analyst", "account": name, "name": "n", "days": 1}
        ).json()
        bearer = {"authorization": f"Bearer {token['secret']}"}
        with httpx.Client(base_url=running.address, headers=bearer, timeout=60) as new:
            assert new.get("/v1/account").json()["account"] == name
            assert submit(new, "k", COUNT | {"epsilon": 0.6}).status_code == 409
            limit = {"account": name, "epsilon": "0.7", "reason": "board"}
            assert client.post("/v1/admin/limits", json=limit).json()["limit"]["epsilon"] == "0.7"
            assert client.post("/v1/admin/limits", json=limit | {"epsilon": "0.1"}).status_code == 422
            assert client.post("/v1/admin/closings", json={"account": name, "reason": "end"}).json()["closed"]
            until = time.monotonic() + 30
            while not new.get("/v1/account").json()["closed"] and time.monotonic() < until:  # at the next answer time
                time.sleep(0.01)
            assert submit(new, "k", COUNT).json()["error"] == "LedgerClosed"
            assert client.delete(f"/v1/admin/tokens/{token['id']}").status_code == 204
            assert new.get("/v1/account").status_code == 401
        listed = [each for each in client.get("/v1/admin/tokens").json() if each["id"] == token["id"]]
        assert listed[0]["revoked"]
        assert "secret" not in json.dumps(listed)


def test_reading(running: Running) -> None:
    with running.client("alice") as client:
        answer(client, submit(client, key(), COUNT).json()["id"])
        own = client.get("/v1/account").json()
        entry = client.get("/v1/entries", params={"last": 1}).json()[0]
        assert (entry["state"], entry["account"], entry["what"]) == ("settled", "people/alice", "old")
        assert "old" in client.get("/v1/statement").text
        assert client.get("/v1/statement", params={"by": "day"}).text.startswith("day")
        said = client.get("/v1/events", params={"once": "true"}).text
        assert json.loads(said.split("data: ")[1])[0]["spent"] == own["spent"]
    with running.client("auditor") as client:
        head = client.get("/v1/audit/verification").json()
        *lines, end = [json.loads(line) for line in client.get("/v1/audit/export").text.splitlines()]
        assert len(lines) <= head["sequence"]
        assert end == {"end": f"{lines[-1]['line']['sequence']}:{lines[-1]['hash']}"}
        assert [each["sequence"] for each in client.get("/v1/audit", params={"after": 2, "limit": 3}).json()] == [
            3,
            4,
            5,
        ]
        assert 'expost_epsilon{account="people",of="limit"} 1000' in client.get("/metrics").text


def test_a_listener_hears_changes_until_its_token_is_revoked(running: Running) -> None:
    with running.client("custodian") as client:
        wanted = {"role": "analyst", "account": "people/alice", "name": "listener", "days": 1}
        token = client.post("/v1/admin/tokens", json=wanted).json()
        with httpx.Client(base_url=running.address, headers={"authorization": f"Bearer {token['secret']}"}) as own:
            heard: list[str] = []
            with own.stream("GET", "/v1/events") as reply:
                for line in reply.iter_lines():
                    heard += [line] if line.startswith("event: ") else []
                    if heard == ["event: balances"] and line.startswith("data: "):
                        submit(own, key(), COUNT)
                    if heard[-1:] == ["event: job"]:
                        client.delete(f"/v1/admin/tokens/{token['id']}")
            assert heard[0] == "event: balances"
            assert heard[-1] == "event: job"
            assert len(heard) >= 3  # at the latest with the job came its charge
            assert own.get("/v1/events").status_code == 401


def test_engines_do_not_take_what_is_held_for_jobs(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = "answer_every = 30\nexternal_engines = true"
    service = Forked(tmp_path_factory.mktemp("held"), server=settings, epsilon=10).start()

    def reserve(name: str, epsilon: str) -> httpx.Response:
        body = {"key": name, "label": "x", "parts": {"a": epsilon}, "lease": 60}
        return engine.post("/v1/engine/reservations", json=body)

    try:
        with service.client("bob") as bob, service.client("engine") as engine:
            assert reserve("first", "2").status_code == 201
            assert submit(bob, "k", COUNT | {"epsilon": 7}).status_code == 202
            refused = reserve("second", "2")
            assert (refused.status_code, refused.json()["error"]) == (409, "BudgetExceeded")
            assert refused.json()["affordable"]["epsilon"] == "1"
            assert reserve("third", "1").status_code == 201
            assert reserve("first", "2").json()["error"] == "AlreadyReserved", "not that there is too little"
    finally:
        service.stop()


def test_one_key_from_many_clients_at_once(running: Running) -> None:
    before, same = running.ledger().account("alice").spent, key()

    def work(_: int) -> tuple[int, str]:
        with running.client("alice") as client:
            reply = submit(client, same, COUNT)
            return reply.status_code, reply.json()["id"]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(24)))
    assert len({job for _, job in found}) == 1
    assert {status for status, _ in found} == {202}
    with running.client("alice") as client:
        answer(client, found[0][1])
    assert running.ledger().account("alice").spent - before == Cost(0.01)
