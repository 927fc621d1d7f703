"""Every role on every route, on own and on others' things. The routes are those of the OpenAPI document."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx
import pytest

from serving import COUNT, Running, submit

EVERYBODY = ("custodian", "auditor", "alice", "bob", "engine", "stranger", None)
Own = Callable[["Things"], dict[str, Any]]


class Things(NamedTuple):
    """Things of alice's account, of bob's, and of the custodian of their ledger."""

    job: str
    waiting: str
    token: str
    reservation: str


class Call(NamedTuple):
    """A call that is right, but for who makes it; and for whom it answers 2xx."""

    make: Own
    allowed: tuple[str | None, ...]


ASK = {"questions": [COUNT]}
READERS = ("custodian", "auditor", "alice", "bob", "stranger")
OWN_ALICE = {"params": {"account": "people/alice"}}


def key() -> dict[str, str]:
    return {"idempotency-key": secrets.token_hex(8)}


def fresh() -> str:
    return secrets.token_hex(6)


MATRIX: dict[str, Call] = {
    "GET /v1/data": Call(lambda t: {}, ("alice", "bob")),
    "GET /v1/data/{data}": Call(lambda t: {"data": "people"}, ("alice", "bob")),
    "GET /v1/kinds": Call(lambda t: {}, ("alice", "bob")),
    "POST /v1/data/{data}/plan": Call(lambda t: {"data": "people", "json": ASK}, ("alice", "bob")),
    "POST /v1/data/{data}/rehearsal": Call(lambda t: {"data": "people", "json": ASK}, ("alice", "bob")),
    "POST /v1/data/{data}/jobs": Call(lambda t: {"data": "people", "json": ASK, "headers": key()}, ("alice", "bob")),
    "GET /v1/jobs": Call(lambda t: {}, ("alice", "bob")),
    "GET /v1/jobs/{job}": Call(lambda t: {"job": t.job}, ("alice",)),
    "DELETE /v1/jobs/{job}": Call(lambda t: {"job": t.waiting}, ("alice",)),
    "GET /v1/account": Call(lambda t: dict(OWN_ALICE), ("custodian", "auditor", "alice")),
    "GET /v1/accounts": Call(lambda t: {}, READERS),
    "GET /v1/accounting": Call(lambda t: {}, READERS),
    "POST /v1/accounting": Call(lambda t: {"json": {"charge": [1, 0, 0, 0, 0, 0, 0]}}, READERS),
    "GET /v1/entries": Call(lambda t: dict(OWN_ALICE), ("custodian", "auditor", "alice")),
    "GET /v1/statement": Call(lambda t: dict(OWN_ALICE), ("custodian", "auditor", "alice")),
    "GET /v1/audit": Call(lambda t: {}, ("custodian", "auditor", "stranger")),
    "GET /v1/audit/verification": Call(lambda t: {}, ("custodian", "auditor", "stranger")),
    "GET /v1/audit/export": Call(lambda t: {}, ("custodian", "auditor", "stranger")),
    "GET /v1/events": Call(lambda t: {"params": {"once": "true"}}, READERS),
    "POST /v1/admin/accounts": Call(
        lambda t: {"json": {"account": f"people/{fresh()}", "epsilon": "1"}}, ("custodian",)
    ),
    "POST /v1/admin/limits": Call(
        lambda t: {"json": {"account": "people/alice", "epsilon": "1000", "reason": "r"}}, ("custodian",)
    ),
    "POST /v1/admin/closings": Call(lambda t: {"json": {"account": "people/closable", "reason": "r"}}, ("custodian",)),
    "GET /v1/admin/tokens": Call(lambda t: {}, ("custodian", "stranger")),
    "POST /v1/admin/tokens": Call(
        lambda t: {"json": {"role": "analyst", "account": "people/alice", "name": "x"}}, ("custodian",)
    ),
    "DELETE /v1/admin/tokens/{token_id}": Call(lambda t: {"token_id": t.token}, ("custodian",)),
    "GET /v1/admin/reviews": Call(lambda t: {}, ("custodian", "stranger")),
    "POST /v1/admin/reviews/{job}": Call(
        lambda t: {"job": t.waiting, "json": {"accept": True, "reason": "r"}}, ("custodian",)
    ),
    "POST /v1/engine/reservations": Call(
        lambda t: {"json": {"key": fresh(), "label": "x", "parts": {"a": "0.01"}, "lease": 60}}, ("engine",)
    ),
    "POST /v1/engine/reservations/{key}/settlement": Call(
        lambda t: {"key": t.reservation, "json": {"part": "a"}}, ("engine",)
    ),
    "POST /v1/engine/reservations/{key}/forfeiture": Call(lambda t: {"key": t.reservation}, ("engine",)),
    "GET /health": Call(lambda t: {}, EVERYBODY),
    "GET /ready": Call(lambda t: {}, EVERYBODY),
    "GET /metrics": Call(lambda t: {}, ("custodian", "auditor", "stranger")),
}
"""Each route, a right call about alice's (or the engine's) things, and who gets 2xx. Others get 401, 403 or 404."""


def things(running: Running) -> Things:
    with running.client("alice") as alice, running.client("custodian") as custodian, running.client("engine") as engine:
        made = custodian.post("/v1/admin/accounts", json={"account": "people/closable", "epsilon": "1"})
        assert made.status_code in (201, 409)
        job = submit(alice, fresh(), COUNT).json()["id"]
        waiting = submit(alice, fresh(), COUNT, data="guarded").json()["id"]
        token = custodian.post(
            "/v1/admin/tokens", json={"role": "auditor", "account": "people/alice", "name": "x"}
        ).json()["id"]
        reservation = fresh()
        engine.post(
            "/v1/engine/reservations", json={"key": reservation, "label": "x", "parts": {"a": "0.01"}, "lease": 60}
        ).raise_for_status()
    return Things(job, waiting, token, reservation)


def call(client: httpx.Client, route: str, given: dict[str, Any]) -> httpx.Response:
    method, path = route.split()
    options = {name: given[name] for name in ("json", "params", "headers") if name in given}
    return client.request(method, path.format(**given), **options)


def documented(running: Running) -> dict[str, Any]:
    with running.client() as client:
        paths = client.get("/v1/openapi.json").json()["paths"]
    return {f"{method.upper()} {path}": about for path, methods in paths.items() for method, about in methods.items()}


def test_every_route_has_a_rule(running: Running) -> None:
    assert set(documented(running)) == set(MATRIX)


@pytest.mark.parametrize("route", MATRIX)
def test_exactly_the_listed_cells_answer(running: Running, route: str) -> None:
    make, allowed = MATRIX[route]
    found = things(running)
    given = make(found)
    got: dict[str | None, int] = {}
    for who in sorted(EVERYBODY, key=lambda each: each in allowed):  # who may comes last: it may use things up
        with running.client(who) as client:
            got[who] = call(client, route, given).status_code
    assert {who for who, status in got.items() if 200 <= status < 300} == set(allowed), got
    for who in set(EVERYBODY) - set(allowed):
        assert got[who] == 401 if who is None else got[who] in (403, 404), (who, got)


def test_a_route_without_a_token_refuses_bad_ones(running: Running) -> None:
    with running.client() as client:
        for header in ("", "Bearer", "Bearer x", "Bearer xp_0_0", "Basic xp", f"Bearer {running.secrets['alice']}x"):
            assert client.get("/v1/account", headers={"authorization": header}).status_code == 401
        reply = client.get("/v1/account")
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.headers["content-type"] == "application/problem+json"
