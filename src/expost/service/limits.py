"""What every request and reply goes through: size, depth, encoding, headers, and a line in the log."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import JSONResponse

from expost.service.asked import Fault
from expost.service.problems import LOG, Refusal, incident

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
DEEPEST_JSON = 20
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": (
        b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
}


class JsonReply(JSONResponse):
    """JSON with numbers that every reader has."""


class ProblemReply(JSONResponse):
    """A refusal."""

    media_type = "application/problem+json"

    def __init__(self, problem: Refusal) -> None:
        headers = {"www-authenticate": "Bearer"} if problem.status == 401 else {}
        headers |= {"retry-after": "1"} if problem.status in (429, 503) else {}
        super().__init__(problem.body(), problem.status, headers)


class Limits:
    """Reads a request's body whole, up to the largest, before anything looks at it. No reply is without headers."""

    def __init__(self, app: Any, largest: int, *, secure: bool) -> None:
        self._app, self._largest = app, largest
        self._headers = [*_HEADERS.items(), *([(b"strict-transport-security", b"max-age=31536000")] if secure else [])]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        since, status = time.perf_counter(), 0

        async def guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message.get("headers", [])}
                message["headers"] = [
                    *message.get("headers", []), *(each for each in self._headers if each[0] not in given)
                ]  # fmt: skip
            await send(message)

        try:
            body = await self._body(scope, receive)
            await self._app(scope, _replay(body, receive), guarded)
        except Refusal as problem:
            await ProblemReply(problem)(scope, receive, guarded)
        except Exception as error:
            if status:
                raise
            await ProblemReply(incident(error))(scope, receive, guarded)
        if LOG.isEnabledFor(logging.INFO):
            LOG.info("request", extra={"facts": _facts(scope, status, time.perf_counter() - since)})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._largest:
            raise Refusal(413, f"a request has at most {self._largest} bytes")
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._largest:
                raise Refusal(413, f"a request has at most {self._largest} bytes")
        if body and scope["path"].startswith("/v1/"):
            _check_json(bytes(body), headers.get(b"content-type", b""))
        return bytes(body)


def _check_json(body: bytes, kind: bytes) -> None:
    if kind.partition(b";")[0].strip().lower() != b"application/json":
        raise Refusal(415, "send JSON, with the header Content-Type: application/json")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(f"this is not UTF-8, at byte {error.start}") from None
    if _depth(text) > DEEPEST_JSON:
        raise _unreadable(f"this is more than {DEEPEST_JSON} levels deep")
    try:
        json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        where = f", at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise _unreadable(f"this is not JSON{where}") from None


def _unreadable(detail: str) -> Refusal:
    return Refusal(400, detail, faults=[Fault("", detail)], error="InvalidValue")


def _no_number(name: str) -> None:
    raise ValueError(name)


def _depth(text: str) -> int:
    """How deep brackets go, outside of strings."""
    deep = deepest = 0
    for sign in re.findall(r"[\[\]{}]", _STRINGS.sub("", text)):
        deep += 1 if sign in "[{" else -1
        deepest = max(deepest, deep)
    return deepest


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _facts(scope: Scope, status: int, seconds: float) -> dict[str, Any]:
    """The route, never the path: a path may hold what somebody typed."""
    route = getattr(scope.get("route"), "path", "none")
    return {"method": scope["method"], "route": route, "status": status, "milliseconds": round(1000 * seconds)}
