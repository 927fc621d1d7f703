"""Nothing of one account is in anything that another can get: replies, headers, pages, events, log lines."""

from __future__ import annotations

import json
import secrets
from urllib.parse import quote

import httpx

from serving import COUNT, Running, answer, submit
from studies import CANARY
from unit.service.test_dashboard import signed_in

MARK = "kumquat7731"
PAGES = ("/", "/entries", "/jobs", "/ask", "/ask/people/count", "/live", "/reviews", "/audit", "/audit/trail.jsonl")


def test_a_marker_of_alice_is_nowhere_for_bob(running: Running) -> None:
    key = f"{MARK}-key-{secrets.token_hex(4)}"
    question = {"name": f"{MARK}_name", "kind": "count", "label": f"{MARK} label", "epsilon": 0.01,
                "where": f"word = '{CANARY}' OR word = '{MARK}'"}  # fmt: skip
    got: list[str] = []

    def note(reply: httpx.Response) -> httpx.Response:
        got.append(f"{reply.status_code} {dict(reply.headers)} {reply.text}")
        return reply

    with running.client("alice") as alice, running.client("bob") as bob, running.client("engine") as engine:
        job = submit(alice, key, question).json()["id"]
        waiting = submit(alice, f"{key}-w", question, data="guarded").json()["id"]
        answer(alice, job)
        assert MARK in alice.get("/v1/entries").text  # alice sees her own
        same = note(submit(bob, key, COUNT))  # her key is free for him
        assert same.status_code == 202
        answer(bob, same.json()["id"])
        for client in (bob, engine):
            for path, methods in bob.get("/v1/openapi.json").json()["paths"].items():
                for method in methods:
                    for thing in (job, waiting, key, "people", "people/alice", "1"):
                        where = path
                        for name in ("data", "job", "token_id", "key"):
                            where = where.replace(f"{{{name}}}", quote(thing, safe=""))
                        params = {"account": "people/alice"} if "account" in str(methods[method]) else {}
                        params |= {"once": "true"} if path == "/v1/events" else {}
                        note(client.request(method, where, params=params, json={} if method == "post" else None))
            note(client.get("/v1/entries"))
            note(client.get("/v1/statement"))
        note(submit(bob, "short", COUNT | {"epsilon": 100_000}))
    with signed_in(running, "bob") as (browser, form):
        for path in (*PAGES, f"/jobs/{job}", f"/reviews/{waiting}"):
            with browser.stream("GET", path) as reply:  # live events have no end
                got.append(f"{reply.status_code} {dict(reply.headers)} {next(reply.iter_text(), '')}")
        note(browser.post(f"/reviews/{waiting}", data={"form": form, "verdict": "accept", "reason": "r"}))
    assert len(got) > 100
    log = running.log.read_text()
    assert len(log.splitlines()) > 100
    secret = [secret for secret in running.secrets.values() if secret in log or any(secret in each for each in got)]
    assert secret == []
    # thing echoed in no reply: only bob's own key may come back, in his own job
    others = [each for each in got if MARK in each and key not in json.dumps(each)]
    assert others == []
    foreign = [each for each in got if f"{MARK}_name" in each or f"{MARK} label" in each or CANARY in each]
    assert foreign == []
    assert MARK not in log
    assert CANARY not in log
    assert "age >= 60" not in log
