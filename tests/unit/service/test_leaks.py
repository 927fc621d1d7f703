"""Nothing of one account is in anything that another can get: replies, headers, pages, events, log lines."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator
from urllib.parse import quote

import httpx

from expost.canonical import canonical
from expost.ledger.codec import encode
from serving import COUNT, Running, answer, signed_in, submit
from studies import CANARY

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


SECOND = {"name": "old", "kind": "count", "where": "age >= 60", "epsilon": 20}
"""Its noise is nearly always 0, so that the same is answered again."""


def written(value: int) -> Iterator[str]:
    """The ways to write an answer, by itself and beside what the trail says of it."""
    for text in dict.fromkeys((str(value), f"{float(value)}", encode(value), canonical(value), json.dumps(str(value)))):
        yield from (text, f"{text}\n", f'{{"output":{text}}}', f'{{"output": {text}}}', f'["released",{text}]')
        yield from (f"nonce:{text}", f"nonce::{text}", f"released{text}", f"[{text}]")


def recovered(seen: str, answers: range) -> set[int]:
    """What somebody who tries all answers finds: those of which a hash was seen."""
    hashes = set(re.findall("[0-9a-f]{32,128}", seen))
    tried = (hashlib.sha256, hashlib.sha1, hashlib.md5, hashlib.sha512, hashlib.blake2b)
    return {
        value for value in answers for text in written(value)
        if not hashes.isdisjoint(make(text.encode()).hexdigest() for make in tried)
    }  # fmt: skip


def test_an_auditor_who_tries_all_answers_finds_none(running: Running) -> None:
    """An answer has few possible values: a hash of it alone told it within milliseconds."""
    with running.client("alice") as alice, running.client("auditor") as auditor:
        found = [answer(alice, submit(alice, secrets.token_hex(8), SECOND).json()["id"]) for _ in range(3)]
        said = [each["result"]["questions"][0] for each in found]
        lines, after = list[str](), 0
        while page := auditor.get("/v1/audit", params={"after": after, "limit": 1000}).json():
            lines, after = [*lines, *(each["line"] for each in page)], page[-1]["sequence"]
        others = [auditor.get(path).text for path in ("/v1/audit/export", "/v1/entries?last=1000", "/v1/statement")]
    values = [each["value"] for each in said]
    assert len(set(values)) < 3
    around = range(min(values) - 20, max(values) + 20)
    seen = "\n".join([*lines, *others])
    assert recovered(seen, around) == set()
    entries = {each["receipts"][0]["entry"] for each in said}
    settled = [json.loads(line) for line in lines]
    outputs = [each["body"]["output"] for each in settled if each["event"] == "settle" and each["entry"] in entries]
    assert len(set(outputs)) == 3, "equal answers have different commitments"
    assert recovered(hashlib.sha256(encode(values[0]).encode()).hexdigest(), around) == {values[0]}  # the control
