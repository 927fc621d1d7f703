"""Somebody who reads everything of a service that anybody can read, and what changed since the last time."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode

from expost import Ledger
from expost.service.dashboard.pages import COOKIE
from serving import Running

WHO = {
    "analyst": ("analyst", "/alice"),
    "other": ("analyst", "/bob"),
    "custodian": ("custodian", ""),
    "auditor": ("auditor", ""),
}
"""Roles and accounts."""
SUM = {"name": "total", "kind": "sum", "column": "cost", "bounds": [0, 50], "epsilon": 0.01}
COUNT = {"name": "n", "kind": "count", "epsilon": 0.01}
LARGE = COUNT | {"epsilon": 1000}
WORDS = ("settled", "reserve", "forfeit", "answered", "accepted", "done", "lost", "refused", "Busy", "fits")
AMOUNTS = ("spent", "reserved", "remaining", "affordable", "charged", "before", "worst")
_AMOUNT = re.compile(rf"({'|'.join(AMOUNTS)})(?:_\w+)?\W+(?:epsilon\W+)?(\d[\d.e-]*)")
PAGES = ("/", "/entries", "/ask", "/ask/{data}/sum", "/jobs", "/jobs/{job}", "/reviews", "/audit", "/audit/trail.jsonl")
QUERIES = {"/v1/entries": "?last=1000", "/v1/jobs": "?limit=5", "/v1/audit": "?limit=1000", "/v1/events": "?once=true"}
"""So that what is new is among what is read."""
Numbers = dict[str, float]


class Reply(NamedTuple):
    """A reply's status and text."""

    status: int
    text: str


class Caller:
    """Somebody with a token and a session, on one connection that stays open; and the live events for them."""

    def __init__(self, running: Running, ledger: str, who: str) -> None:
        host, port = running.address.removeprefix("http://").split(":")
        self._data, secret = ledger, running.secrets[f"{ledger} {who}"]
        self._connection = HTTPConnection(host, int(port), timeout=60)
        self._headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
        form = {"content-type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/sign-in", urlencode({"token": secret}), form)
        signed_in = self._connection.getresponse()
        signed_in.read()
        self._headers["cookie"] = str(signed_in.getheader("set-cookie")).split(";")[0]
        assert COOKIE in self._headers["cookie"]
        self._heard = {path: self._listen(host, int(port), path) for path in ("/v1/events", "/live")}
        self.took: list[float] = []

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request."""
        sent = None if body is None else json.dumps(body)
        since = time.perf_counter()
        self._connection.request(method, path, sent, self._headers | headers)
        reply = self._connection.getresponse()
        found = Reply(reply.status, reply.read().decode())
        self.took.append(time.perf_counter() - since)
        return found

    def ask(self, key: str, question: dict[str, Any]) -> Reply:
        """Submit a job."""
        return self.call("POST", f"/v1/data/{self._data}/jobs", {"questions": [question]}, **{"idempotency-key": key})

    def plan(self, question: dict[str, Any]) -> Reply:
        """What a question would cost."""
        return self.call("POST", f"/v1/data/{self._data}/plan", {"questions": [question]})

    def _listen(self, host: str, port: int, path: str) -> socket.socket:
        listener = socket.create_connection((host, port), timeout=60)
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", *(f"{k}: {v}" for k, v in self._headers.items())]
        listener.sendall("\r\n".join([*lines, "", ""]).encode())
        listener.setblocking(False)
        return listener

    def heard(self) -> Iterator[tuple[str, Reply]]:
        """What live events have said since the last time."""
        for path, listener in self._heard.items():
            got = b""
            with suppress(BlockingIOError):
                while piece := listener.recv(65536):
                    got += piece
            yield f"{path} live", Reply(200, got.decode())

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
        for listener in self._heard.values():
            listener.close()


class Everybody:
    """All roles of one ledger of a service. Their first job is a sum, which loads modules and reads the file."""

    def __init__(self, running: Running, ledger: str) -> None:
        self.url, self.ledger = running.url, ledger
        self.callers = {who: Caller(running, ledger, who) for who in WHO}
        self.job = self.callers["analyst"].ask("first", SUM)
        """The last sum that was accepted."""
        self._routes = [(who, path) for who in self.callers for path in self._paths() if self._may(who, path)]

    def _paths(self) -> list[str]:
        """All routes that are read: those of the API's own description, so that none is forgotten, and pages."""
        described = json.loads(self.callers["analyst"].call("GET", "/v1/openapi.json").text)["paths"]
        return [path + QUERIES.get(path, "") for path, methods in described.items() if "get" in methods] + list(PAGES)

    def path(self, path: str) -> str:
        """A route's path, with this data set and the last job."""
        return path.format(data=self.ledger, job=json.loads(self.job.text).get("id"))

    def _may(self, who: str, path: str) -> bool:
        return self.callers[who].call("GET", self.path(path)).status == 200

    def told(self) -> dict[str, Any]:
        """What the analyst is told of the last sum."""
        found: dict[str, Any] = json.loads(self.callers["analyst"].call("GET", self.path("/v1/jobs/{job}")).text)
        return found

    def replies(self, probe: str | None = None) -> Iterator[tuple[str, Reply]]:
        """What everybody is told. A probe is one more job, which an account may have or not."""
        for who, path in self._routes:
            yield f"{who} {path}", self.callers[who].call("GET", self.path(path))
        for who in ("analyst", "other"):
            yield f"{who} plan", self.callers[who].plan(SUM)
            yield f"{who} cannot afford", self.callers[who].ask("too much", LARGE)
        if probe is not None:
            yield "analyst one more", self.callers["analyst"].ask(probe, COUNT)

    def events(self) -> Iterator[tuple[str, Reply]]:
        """What live events have said since the last time."""
        for who, caller in self.callers.items():
            yield from ((f"{who} {path}", reply) for path, reply in caller.heard())

    def books(self) -> Numbers:
        """The ledger's own file, as the command line and every other reader of it see it."""
        books = Ledger.load(self.url, self.ledger, read_only=True)
        entries = list(books.entries())
        amounts = {name: float(getattr(books, name).epsilon) for name in ("spent", "reserved", "remaining")}
        states = {state: sum(each.state == state for each in entries) for state in ("reserved", "settled", "forfeited")}
        lines = sum(1 for _ in books._store.trail())
        last = bool(entries) and entries[-1].account.endswith("alice")
        return amounts | states | {"lines": lines, "entries": len(entries), "alice last": last}

    @property
    def took(self) -> list[float]:
        """How long replies took: for people."""
        return [seconds for caller in self.callers.values() for seconds in caller.took]

    def close(self) -> None:
        """Hang up."""
        for caller in self.callers.values():
            caller.close()


def numbers(reply: Reply) -> Numbers:
    """A reply as numbers: its status and length, words that tell of progress, sums of amounts, and who comes last."""
    status, text = reply
    found: Numbers = {"status": status, "length": len(text), "alice last": text.rfind("alice") > text.rfind("bob")}
    found |= {f"'{word}'": text.count(word) for word in WORDS}
    sums = dict.fromkeys(AMOUNTS, 0.0)
    for name, amount in _AMOUNT.findall(text):
        with suppress(ValueError):
            sums[name] += float(amount)
    return found | {name: round(amount, 9) for name, amount in sums.items()}
