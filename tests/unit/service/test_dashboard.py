"""The dashboard: pages per role, forms of one session only, headers, and what works without scripts."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

import httpx
import pytest

from expost import Ledger
from expost.mechanisms import Laplace
from expost.service.dashboard.pages import bar_of
from expost.service.database import ServiceTables
from expost.service.window import Window
from serving import COUNT, HTML, Running, answer, signed_in, submit

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


@pytest.mark.usefixtures("no_reviews")
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


# ---- bars


def amounts(limit: str, spent: str, reserved: str, remaining: str) -> dict[str, Any]:
    names = {"limit": limit, "spent": spent, "reserved": reserved, "remaining": remaining}
    return {name: {"epsilon": value, "delta": "0"} for name, value in names.items()}


@pytest.mark.parametrize(
    ("balance", "spent", "reserved"),
    [
        (amounts("1", "0.25", "0.25", "0.5"), "25.000", "25.000"),
        (amounts("1000", "0.5", "0", "0.5"), "50.000", "0.000"),  # an account above has spent most of what there was
        (amounts("3", "1", "0", "0"), "100.000", "0.000"),  # or all of it
        (amounts("1", "0", "0", "0"), "0.000", "0.000"),
        (amounts("1", "0.9", "0", "0.3"), "75.000", "0.000"),  # another meter has room for more than the basic sum
    ],
)
def test_bars_are_shares_of_what_can_be_had(balance: dict[str, Any], spent: str, reserved: str) -> None:
    assert bar_of(balance) == {"spent": spent, "reserved": reserved}


def test_more_small_questions_than_the_basic_sum_holds(tmp_path: Path) -> None:
    """What is spent never is more than the limit, and no bar leaves the page."""
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "metered", 1, 1e-6, accounting="renyi", neighbours="add-remove", unit="row")
    account = ledger.create_account("carol", 1, 1e-6)
    for _ in range(162):
        account.run(Laplace(epsilon=0.01, sensitivity=1), on=1)
    tables = ServiceTables(url)
    window = Window(tables, ("metered",))
    tables.close()
    assert sum(entry.charged.epsilon for entry in account.entries() if entry.charged is not None) > 1.6
    for name in ("metered", "metered/carol"):
        found = window.balance(name)
        assert 0 < float(found["spent"]["epsilon"]) + float(found["reserved"]["epsilon"]) <= 1
        assert 0 < sum(map(float, bar_of(found).values())) < 100
