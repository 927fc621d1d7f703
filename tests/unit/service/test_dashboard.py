"""The dashboard: pages per role, forms of one session only, headers, and what works without scripts."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from serving import COUNT, Running, answer, submit

HTML = {"accept": "text/html"}


@contextmanager
def signed_in(running: Running, who: str) -> Iterator[tuple[httpx.Client, str]]:
    """A browser's client, which sends its cookie on loopback; and what its forms carry."""
    with httpx.Client(base_url=running.address, headers=HTML, timeout=30) as client:
        reply = client.post("/sign-in", data={"token": running.secrets[who]})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        cookie = reply.headers["set-cookie"]
        assert all(each in cookie for each in ("__Host-expost=", "HttpOnly", "Secure", "SameSite=strict", "Path=/"))
        client.headers["cookie"] = cookie.partition(";")[0]
        form = re.search(r'name="form" value="(\w+)"', client.get("/").text)
        assert form is not None
        yield client, form[1]


PAGES = {
    "alice": ("/", "/entries", "/ask", "/ask/people/count", "/jobs"),
    "custodian": ("/", "/entries", "/reviews", "/audit"),
    "auditor": ("/", "/entries", "/audit"),
}


def test_pages_are_for_their_roles_and_strict(running: Running) -> None:
    every = {each for pages in PAGES.values() for each in pages}
    for who, pages in PAGES.items():
        with signed_in(running, who) as (client, _):
            for path in every:
                reply = client.get(path)
                assert reply.status_code == (200 if path in pages else 403), (who, path)
                assert "default-src 'none'" in reply.headers["content-security-policy"]
                assert "unsafe" not in reply.headers["content-security-policy"]
                assert reply.headers["x-frame-options"] == "DENY"
                assert not re.search(r'(?:src|href)="(?:https?:)?//', reply.text)
                assert " style=" not in reply.text
                assert "<script>" not in reply.text


def test_nobody_is_shown_anything_without_signing_in(running: Running) -> None:
    with httpx.Client(base_url=running.address, headers=HTML, timeout=30) as client:
        for path in {each for pages in PAGES.values() for each in pages} | {"/live", "/audit/trail.jsonl"}:
            reply = client.get(path)
            assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in")
        for token in ("", "xp_0_0", running.secrets["engine"], "é" * 100, "x" * 10_000):
            assert client.post("/sign-in", data={"token": token}).status_code == 401


def test_forms_of_other_sites_and_sessions_are_refused(running: Running) -> None:
    fields = {**COUNT, "epsilon": "0.01", "do": "ask", "key": secrets.token_hex(8)}
    with signed_in(running, "alice") as (client, form), signed_in(running, "bob") as (_, other):
        for given in ({}, {"form": ""}, {"form": other}, {"form": "é"}):
            assert client.post("/ask/people/count", data={**fields, **given}).status_code == 403
        foreign = {"origin": "https://elsewhere.example"}
        assert client.post("/ask/people/count", data={**fields, "form": form}, headers=foreign).status_code == 403
        assert client.post("/sign-in", data={"token": "x"}, headers=foreign).status_code == 403
        assert client.post("/sign-out", data={"form": other}).status_code == 403
        same = {"origin": running.address}
        reply = client.post("/ask/people/count", data={**fields, "form": form}, headers=same)
        assert reply.status_code == 303
        assert client.get(reply.headers["location"]).status_code == 200


def test_ask_without_scripts(running: Running) -> None:
    with signed_in(running, "alice") as (client, form), running.client("alice") as api:
        typed = {"name": "bands", "column": "age", "bins": "4", "bounds": "0, 80", "epsilon": "3", "form": form}
        planned = client.post("/ask/people/histogram", data={**typed, "do": "plan"})
        assert "at worst" in planned.text
        assert "ε 3" in planned.text
        assert "±" in planned.text
        key = re.search(r'name="key" value="(\w+)"', planned.text)
        assert key is not None
        twice = [client.post("/ask/people/histogram", data={**typed, "do": "ask", "key": key[1]}) for _ in range(2)]
        assert len({reply.headers["location"] for reply in twice}) == 1  # pressed twice, asked once
        job = twice[0].headers["location"]
        answer(api, job.rpartition("/")[2])
        shown = client.get(job).text
        assert "<svg" in shown
        assert "Receipt" in shown
        wrong = client.post("/ask/people/histogram", data={**typed, "column": "<b>agee</b>", "do": "ask"})
        assert wrong.status_code == 422
        assert "&lt;b&gt;agee" in wrong.text
        assert "<b>agee" not in wrong.text


def test_a_page_says_what_was_not_compared(running: Running) -> None:
    with signed_in(running, "alice") as (client, form), running.client("alice") as api:
        typed = {"name": "busy", "column": "age", "bins": "2", "bounds": "0, 80", "epsilon": "1", "form": form}
        typed |= {"threshold": "-1000000", "at_most": "1", "do": "ask", "key": "not compared"}
        job = client.post("/ask/people/above", data=typed).headers["location"]
        answer(api, job.rpartition("/")[2])
        shown = client.get(job).text
        assert "above -1,000,000: 0 to 39; not compared: 40 to 79" in shown
        assert "Beware: stopped after 1 (at_most)" in shown


def test_others_things_are_not_there(running: Running) -> None:
    with running.client("bob") as bob, signed_in(running, "alice") as (client, _):
        job = submit(bob, secrets.token_hex(8), COUNT).json()["id"]
        for path in (f"/jobs/{job}", "/ask/theirs/count", "/ask/people/python", "/static/../pages.py", "/nothing"):
            assert client.get(path).status_code == 404, path


def test_review_and_audit_pages(running: Running) -> None:
    with running.client("alice") as alice, signed_in(running, "custodian") as (client, form):
        job = submit(alice, secrets.token_hex(8), COUNT, data="guarded").json()["id"]
        assert job in client.get("/reviews").text
        empty = client.post(f"/reviews/{job}", data={"form": form, "verdict": "accept", "reason": " "})
        assert empty.status_code == 422
        reply = client.post(f"/reviews/{job}", data={"form": form, "verdict": "decline", "reason": "too vague"})
        assert reply.status_code == 303
        assert answer(alice, job)["result"]["state"] == "declined"
        assert "Verified" in client.post("/audit", data={"form": form}).text
        assert "too vague" in client.get("/audit/trail.jsonl").text


def test_sign_out_ends_the_session(running: Running) -> None:
    with signed_in(running, "auditor") as (client, form):
        assert client.post("/sign-out", data={"form": form}).status_code == 303
        assert client.get("/").headers["location"] == "/sign-in"


@pytest.mark.parametrize("path", ["/static/%2e%2e/pages.py", "/static//etc/passwd", "/static/..%2f..%2fcore.py"])
def test_no_file_but_the_static_ones(running: Running, path: str) -> None:
    with running.client() as client:
        assert client.get(path).status_code == 404
