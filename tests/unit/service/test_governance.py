"""Who governs what: only from above, never more than one has, and under one's own name. Verdicts are given once."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from books import execute, make
from expost.accounting.amounts import together
from expost.errors import InvalidValue
from expost.service.database import ServiceTables
from expost.service.jobs import Held, InFlight, JobRequest, Jobs
from expost.service.schedule import Schedule
from expost.service.tokens import find_token
from serving import COUNT, Running, answer, submit

TEAM = "people/team"


@pytest.fixture(scope="module")
def team(running: Running) -> Running:
    """A team with a custodian of its own, an account below it and one beside it."""
    ledger = running.ledger()
    inner = ledger.create_account("team", 10, 1e-6)
    inner.create_account("sub", 5, 1e-6)
    inner.create_account("end", 5, 1e-6)
    ledger.create_account("sibling", 10, 1e-6)
    running.add_tokens(
        ("lead", "custodian", TEAM), ("member", "analyst", TEAM), ("inner", "analyst", f"{TEAM}/sub"),
        ("watcher", "auditor", TEAM), ("top", "analyst", "people"),
    )  # fmt: skip
    return running


def fresh() -> str:
    return secrets.token_hex(6)


def token_id(running: Running, who: str) -> str:
    return running.secrets[who].split("_")[1]


def lines(running: Running, kind: str) -> list[dict[str, Any]]:
    """The bodies of the trail's lines of a kind."""
    return [event.body for event in running.ledger().audit_trail() if event.kind == kind]


def post(client: httpx.Client, route: str, **body: Any) -> httpx.Response:
    return client.post(f"/v1/admin/{route}", json=body)


def made(client: httpx.Client, role: str, account: str, name: str = "somebody", **more: Any) -> dict[str, Any]:
    reply = post(client, "tokens", role=role, account=account, name=name, **more)
    assert reply.status_code == 201, reply.text
    found: dict[str, Any] = reply.json()
    return found


def as_token(running: Running, secret: str) -> httpx.Client:
    return httpx.Client(base_url=running.address, headers={"authorization": f"Bearer {secret}"}, timeout=60)


# ---- from above

ACTS: dict[str, dict[str, Any]] = {
    "accounts": {"epsilon": "1"},
    "limits": {"epsilon": "7", "reason": "r"},
    "tokens": {"role": "custodian", "name": "x"},
    "closings": {"reason": "r"},
}
PLACES = {TEAM: 403, "people": 404, "people/sibling": 404, f"{TEAM}/end": 200}
"""Accounts as the team's custodian sees them (its own, the one above, beside, below), and what it gets there."""


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_custodian_governs_what_is_below(team: Running, act: str, place: str) -> None:
    account = f"{place}/{fresh()}" if act == "accounts" and place == f"{TEAM}/end" else place
    before = [event.hash for event in team.ledger().audit_trail()]
    with team.client("lead") as lead:
        status = post(lead, act, account=account, **ACTS[act]).status_code
    assert (status if status >= 400 else 200) == PLACES[place]
    after = [event.hash for event in team.ledger().audit_trail()]
    assert len(after) - len(before) == (1 if status < 400 else 0)


@pytest.mark.parametrize("act", ACTS)
def test_a_whole_ledger_is_governed_at_the_machine(team: Running, act: str) -> None:
    with team.client("custodian") as custodian:
        assert post(custodian, act, account="people", **ACTS[act]).status_code == 403


@pytest.mark.parametrize("limit", [{"epsilon": "1000000"}, {"epsilon": "1", "delta": "0.1"}])
def test_nobody_is_promised_more_than_there_is_above(team: Running, limit: dict[str, str]) -> None:
    with team.client("lead") as lead, team.client("custodian") as custodian:
        name = fresh()
        assert post(lead, "accounts", account=f"{TEAM}/{name}", **limit).status_code == 422
        more = {**limit, "epsilon": "1000000"}
        assert post(custodian, "limits", account=TEAM, reason="r", **more).status_code == 422
    assert name not in [each.name for each in team.ledger().account("team").accounts]
    assert team.ledger().account("team").limit.epsilon == 10


# ---- tokens


def test_a_token_gives_no_more_than_its_maker_has(team: Running) -> None:
    with team.client("lead") as lead:
        for more in ({"days": 3650.0}, {"days": 3.0}):  # the maker's ends in two days
            reply = post(lead, "tokens", role="analyst", account=f"{TEAM}/sub", name="x", **more)
            assert (reply.status_code, reply.json()["error"]) == (422, "InvalidValue")
        assert post(lead, "tokens", role="engine", account=f"{TEAM}/sub", name="x").status_code == 403
        own = find_token(ServiceTables(team.url), team.secrets["lead"])
        assert own is not None
        token = made(lead, "custodian", f"{TEAM}/sub")
        assert token["expires_at"] <= own.expires_at
        assert token["maker"] == own.id
    with team.client("custodian") as custodian:
        made(custodian, "engine", f"{TEAM}/sub")


def test_what_was_made_with_a_token_ends_with_it(team: Running) -> None:
    with team.client("custodian") as custodian:
        first = made(custodian, "custodian", TEAM, "first")
        with as_token(team, first["secret"]) as client:
            second = made(client, "custodian", f"{TEAM}/sub", "second")
            beside = made(client, "analyst", f"{TEAM}/sub", "beside")
        with as_token(team, second["secret"]) as client:
            assert post(client, "accounts", account=f"{TEAM}/sub/below", epsilon="1").status_code == 201
            third = made(client, "auditor", f"{TEAM}/sub/below", "third")
        other = made(custodian, "analyst", f"{TEAM}/sub", "other")
        assert custodian.delete(f"/v1/admin/tokens/{first['id']}").status_code == 204
    for token in (first, second, beside, third, other):
        with as_token(team, token["secret"]) as client:
            assert client.get("/v1/account").status_code == (200 if token is other else 401)
    ended = [line for line in lines(team, "remark") if line["reason"].startswith("revoked")]
    for token in (first, second, beside, third):
        (line,) = [each for each in ended if each["reason"].startswith(f"revoked token {token['id']} ")]
        assert line["account"] == token["account"]
        assert line["by"] == f"token {token_id(team, 'custodian')} (custodian)"


def test_who_may_revoke(team: Running) -> None:
    with team.client("lead") as lead, team.client("custodian") as custodian:
        for who, status in (("member", 403), ("alice", 404), ("custodian", 404)):
            assert lead.delete(f"/v1/admin/tokens/{token_id(team, who)}").status_code == status
        peer = made(custodian, "custodian", TEAM, "peer")
        assert lead.delete(f"/v1/admin/tokens/{peer['id']}").status_code == 403
    with as_token(team, peer["secret"]) as client:  # one's own can be given up
        assert client.delete(f"/v1/admin/tokens/{peer['id']}").status_code == 204
        assert client.get("/v1/account").status_code == 401


def test_nobody_signs_as_another(team: Running) -> None:
    with team.client("custodian") as custodian:
        forger = made(custodian, "custodian", TEAM, "custodian")  # the name of the custodian above
        assert post(custodian, "limits", account=f"{TEAM}/sub", epsilon="6", reason="from above").status_code == 200
        with as_token(team, forger["secret"]) as client:
            assert post(client, "limits", account=f"{TEAM}/sub", epsilon="7", reason="forged").status_code == 200
            account = f"{TEAM}/{fresh()}"
            assert post(client, "accounts", account=account, epsilon="1").status_code == 201
    signed = {line["reason"]: line["by"] for line in lines(team, "raise")}
    assert signed["from above"] == f"token {token_id(team, 'custodian')} (custodian)"
    assert signed["forged"] == f"token {forger['id']} (custodian)"
    (created,) = [line for line in lines(team, "account") if line["account"] == account]
    assert created["by"] == signed["forged"]
    (given,) = [line for line in lines(team, "remark") if f"made token {forger['id']}" in line["reason"]]
    assert (given["account"], given["by"]) == (TEAM, signed["from above"])
    team.ledger().verify()


# ---- reviews


def guarded(client: httpx.Client) -> str:
    reply = submit(client, fresh(), COUNT, data="guarded")
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def test_reviews_are_decided_from_above(team: Running) -> None:
    yes, no = {"accept": True, "reason": "r"}, {"accept": False, "reason": "r"}
    with team.client("lead") as lead, team.client("member") as member, team.client("custodian") as custodian:
        job = guarded(member)
        assert job not in [each["job"] for each in lead.get("/v1/admin/reviews").json()]
        for verdict in (yes, no):
            assert lead.post(f"/v1/admin/reviews/{job}", json=verdict).status_code == 403
        assert custodian.post(f"/v1/admin/reviews/{job}", json=yes).status_code == 204
        with team.client("inner") as inner:
            job = guarded(inner)
        assert lead.post(f"/v1/admin/reviews/{job}", json=yes).status_code == 204
        with as_token(team, made(lead, "analyst", f"{TEAM}/sub")["secret"]) as own:
            jobs = [guarded(own) for _ in range(2)]
        assert [lead.post(f"/v1/admin/reviews/{each}", json=yes).status_code for each in jobs] == [403, 403]
        assert lead.post(f"/v1/admin/reviews/{jobs[0]}", json=no).status_code == 204
        assert custodian.post(f"/v1/admin/reviews/{jobs[1]}", json=yes).status_code == 204
    with team.client("top") as top:
        assert submit(top, fresh(), COUNT, data="guarded").status_code == 403


def test_nobody_accepts_through_a_token_that_they_made(team: Running) -> None:
    """Of a custodian's own tokens one asks and another accepts: it is the custodian that accepts."""
    yes = {"accept": True, "reason": "r"}
    team.ledger().account("team").account("sub").create_account("deep", 1, 1e-6)
    team.add_tokens(("other", "custodian", f"{TEAM}/sub"))
    with team.client("lead") as lead, team.client("custodian") as custodian, team.client("other") as other:
        puppet = made(lead, "custodian", f"{TEAM}/sub")["secret"]
        with as_token(team, puppet) as accepts:
            asks = made(lead, "analyst", f"{TEAM}/sub/deep")["secret"]
            further = made(accepts, "analyst", f"{TEAM}/sub/deep")["secret"]
            foreign = made(custodian, "analyst", f"{TEAM}/sub/deep")["secret"]
            for secret, verdict in ((asks, 403), (further, 403), (foreign, 204)):
                with as_token(team, secret) as asking:
                    job, again = guarded(asking), guarded(asking)
                assert accepts.post(f"/v1/admin/reviews/{job}", json=yes).status_code == verdict
                assert other.post(f"/v1/admin/reviews/{again}", json=yes).status_code == 204, "nobody's but its own"
        given = made(custodian, "custodian", f"{TEAM}/sub")["secret"]
        with as_token(team, given) as accepts, as_token(team, foreign) as asking:
            reply = accepts.post(f"/v1/admin/reviews/{guarded(asking)}", json=yes)
            assert reply.status_code == 204, "the ledger's custodian has made both, and is above both"


def test_one_verdict_stands(team: Running) -> None:
    with team.client("inner") as inner:
        jobs = [guarded(inner) for _ in range(12)]
    for job in jobs:
        got: dict[bool, int] = {}
        start = threading.Barrier(2)

        def give(accept: bool, job: str = job, got: dict[bool, int] = got, start: threading.Barrier = start) -> None:
            with team.client("custodian") as client:
                client.get("/health")
                start.wait()
                reply = client.post(f"/v1/admin/reviews/{job}", json={"accept": accept, "reason": "race"})
                got[accept] = reply.status_code

        threads = [threading.Thread(target=give, args=(accept,)) for accept in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got.values()) == [204, 409]
        with team.client("inner") as inner:
            verdict = answer(inner, job)["review"]["verdict"]
        assert verdict == ("accepted" if got[True] == 204 else "declined")
        (line,) = [each["reason"] for each in lines(team, "remark") if f"review of job {job}" in each["reason"]]
        assert line == f"review of job {job}: {verdict}: race"


def test_closing_declines_what_waits(team: Running) -> None:
    account = f"{TEAM}/{fresh()}"
    with team.client("custodian") as custodian:
        assert post(custodian, "accounts", account=account, epsilon="1").status_code == 201
        token = made(custodian, "analyst", account)
        with as_token(team, token["secret"]) as client:
            job, other = guarded(client), guarded(client)
            team.ledger().account("team").account(account.rpartition("/")[2]).close(by="me", reason="at the machine")
            reply = custodian.post(f"/v1/admin/reviews/{other}", json={"accept": True, "reason": "r"})
            assert (reply.status_code, reply.json()["error"]) == (409, "LedgerClosed")
            assert post(custodian, "closings", account=account, reason="done").status_code == 200
            assert [answer(client, each)["result"]["state"] for each in (job, other)] == ["declined", "declined"]
    team.ledger().verify()


@pytest.mark.parametrize("recorded", [False, True])
def test_a_verdict_survives_a_kill(tmp_path: Path, recorded: bool) -> None:
    """A process dies after the verdict was taken, before or after its line was written: it is recorded once."""
    running = Running(tmp_path, data="review = true").start()
    with running.client("alice") as alice:
        job = submit(alice, fresh(), COUNT).json()["id"]
    running.kill()
    ledger = running.ledger()
    decision = {"verdict": "declined", "by": "custodian", "token": token_id(running, "custodian"), "reason": "r",
                "at": str(int(time.time())), "after": str(ledger.head.sequence)}  # fmt: skip
    execute(running.url, f"UPDATE expost_job SET decision = '{json.dumps(decision)}' WHERE id = '{job}'")
    if recorded:
        ledger.account("alice").remark(by="x", reason=f"review of job {job}: declined: r")
    running.start()
    try:
        with running.client("alice") as alice:
            assert answer(alice, job)["result"]["state"] == "declined"
        assert len([each for each in lines(running, "remark") if f"review of job {job}" in each["reason"]]) == 1
    finally:
        running.stop()


def test_what_waits_for_a_review_is_not_in_the_way(team: Running) -> None:
    tables = ServiceTables(team.url)
    jobs = Jobs(tables, fresh(), InFlight(2, 100, 3), Schedule(1, 0, 0), {"d": 0})

    def accept(review: bool) -> str:
        data: Any = SimpleNamespace(name="d", definition="", review=review)
        request = JobRequest("nobody/here", "t", fresh(), data, "{}")
        verdict: str = jobs.accept(request, 1, lambda run, account: Held(together([]), ())).result().verdict
        return verdict

    try:
        assert [accept(True) for _ in range(4)] == ["new", "new", "new", "full"]
        assert [accept(False) for _ in range(3)] == ["new", "new", "full"]
    finally:
        tables.write(lambda run: run("DELETE FROM expost_job WHERE account = 'nobody/here'"))
        tables.close()


# ---- numbers, listeners, tables


def test_numbers_are_those_of_the_account(team: Running) -> None:
    with team.client("watcher") as watcher, team.client("auditor") as auditor, team.client("inner") as inner:
        answer(inner, submit(inner, fresh(), COUNT).json()["id"])
        own, whole = watcher.get("/metrics").text, auditor.get("/metrics").text
    limits = [re.search(r'expost_epsilon\{account="([^"]*)",of="limit"\} (\S+)', text) for text in (own, whole)]
    assert [found and found.groups() for found in limits] == [(TEAM, "10"), ("people", "1000")]
    done = [int(re.findall(r'expost_jobs\{account="[^"]*",state="done"\} (\d+)', text)[0]) for text in (own, whole)]
    tables = ServiceTables(team.url)
    rows = tables.rows("SELECT account FROM expost_job WHERE state = 'done'")
    tables.close()
    assert done[0] == sum(account == TEAM or account.startswith(f"{TEAM}/") for (account,) in rows)
    assert done[1] == sum(account.startswith("people") for (account,) in rows)


@pytest.mark.parametrize("how", ["sign-out", "revoke"])
def test_listening_ends_with_the_session(team: Running, how: str) -> None:
    with team.client("custodian") as custodian:
        token = made(custodian, "analyst", f"{TEAM}/sub")
        with httpx.Client(base_url=team.address, headers={"accept": "text/html"}, timeout=30) as client:
            reply = client.post("/sign-in", data={"token": token["secret"]})
            client.headers["cookie"] = reply.headers["set-cookie"].partition(";")[0]
            form = re.search(r'name="form" value="(\w+)"', client.get("/").text)
            assert form is not None
            with client.stream("GET", "/live") as events:
                heard = events.iter_text()
                assert "event: balances" in next(heard)
                if how == "revoke":
                    custodian.delete(f"/v1/admin/tokens/{token['id']}").raise_for_status()
                else:
                    assert client.post("/sign-out", data={"form": form[1]}).status_code == 303
                until = time.monotonic() + 60
                assert all(time.monotonic() < until for _ in heard)  # and it ends


def test_tables_of_another_version_are_left_alone(sqlite_url: Any, postgres_url: Any) -> None:
    for url in (sqlite_url(), postgres_url()):
        make(url)
        ServiceTables(url).close()
        ServiceTables(url).close()
        execute(url, "UPDATE expost_service SET digest = 'x'")
        with pytest.raises(InvalidValue):
            ServiceTables(url)
        execute(url, "DROP TABLE expost_service")  # tables that nobody recorded
        with pytest.raises(InvalidValue):
            ServiceTables(url)
