"""What every request and reply goes through: size, depth, text, headers, and a line in the log.

No request passes with text that cannot be kept: a half of a surrogate pair, which nothing can encode, or the character
zero, which PostgreSQL refuses. So whatever is accepted can be stored, answered and shown. Bodies that are not small are
read by threads of their own, and nothing here takes longer than a request is long.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from math import isfinite
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.responses import JSONResponse

from expost.data.expression import is_text
from expost.service.addresses import OwnNames
from expost.service.asked import Fault
from expost.service.problems import LOG, Refusal, incident
from expost.service.sending import Replies, send_slices

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
DEEPEST_JSON = 20
MOST_VALUES = 20_000
"""Values in a request, those in lists included: more than the keys of any question."""
_SMALL = 4096
"""Bytes that are read sooner than a thread is woken."""
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Strings of JSON. One that does not end reaches to the end of the text: it is not looked at again."""
_BRACKETS = re.compile(r"[\[\]{}]")
_FORM = b"application/x-www-form-urlencoded"
_FINITE = "numbers are finite, and below 1.8e308"
_TEXT = "text has no half of a surrogate pair, and no character zero: leave it out"
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
        super().__init__(problem.body(), problem.status, problem.headers)


class Limits:
    """Reads a request's body whole, up to the largest, before anything looks at it. No reply is without headers."""

    def __init__(self, app: Any, largest: int, names: OwnNames, *, secure: bool) -> None:
        self._app, self._largest, self._own = app, largest, names
        self._headers = [*_HEADERS.items(), *([(b"strict-transport-security", b"max-age=31536000")] if secure else [])]
        self._replies = Replies()
        self._readers = ThreadPoolExecutor(2, "expost-reading")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        since, status, ended = time.perf_counter(), 0, False
        large, dropped = False, False

        async def guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal status, ended, large, dropped
            if message["type"] == "http.response.start":
                try:
                    large = self._replies.begin(_account(scope), message)
                except Refusal as problem:  # the application replies as if it were heard
                    await ProblemReply(problem)(scope, receive, guarded)
                    dropped = True
                if not dropped:
                    status = message["status"]
                    self._add_headers(message)
            if not dropped:
                await send_slices(message, send)
                ended = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            body = await self._body(scope, receive)
            await self._app(scope, _replay(body, receive), guarded)
        except Refusal as problem:
            await ProblemReply(problem)(scope, receive, guarded)
        except Exception as error:
            if status and not ended:
                raise  # half of a reply was sent: all that is left is to cut it off
            if not ended:  # the application replies to its own errors, with an incident, and raises them all the same
                await ProblemReply(incident(error))(scope, receive, guarded)
        finally:
            if large:
                self._replies.end(_account(scope))
        if LOG.isEnabledFor(logging.INFO):
            LOG.info("request", extra={"facts": _facts(scope, status, time.perf_counter() - since)})

    def _add_headers(self, message: MutableMapping[str, Any]) -> None:
        given = {name for name, _ in message.get("headers", [])}
        more = [each for each in self._headers if each[0] not in given]
        message["headers"] = [*message.get("headers", []), *more]

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        _check_address(scope)
        headers = dict(scope["headers"])
        if not self._own.has(headers.get(b"host", b"").decode("latin-1")):
            raise Refusal(421, "this service has another name: a custodian states its names as 'hosts' in server.toml")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self._largest:
            raise Refusal(413, f"a request has at most {self._largest} bytes")
        read = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            read += message.get("body", b"")
            more = message.get("more_body", False)
            if len(read) > self._largest:
                raise Refusal(413, f"a request has at most {self._largest} bytes")
        body = bytes(read)
        if body:
            check = _check_json if scope["path"].startswith("/v1/") else _check_form
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if len(body) <= _SMALL:
                check(body, kind)
            else:
                await asyncio.get_running_loop().run_in_executor(self._readers, check, body, kind)
        return body


def _account(scope: Scope) -> str:
    """Whose token came with a request, once that is known."""
    return str(scope.get("state", {}).get("account", ""))


def _check_address(scope: Scope) -> None:
    """The path and the query are text, also behind their percent signs."""
    for part in (scope.get("raw_path") or scope["path"].encode(), scope.get("query_string", b"")):
        _decoded(part)


def _check_form(body: bytes, kind: bytes) -> None:
    """What a browser sends for a form of ours: fields that are text."""
    if kind != _FORM:
        raise Refusal(415, "send a form, with the header Content-Type: application/x-www-form-urlencoded")
    _decoded(body)


def _decoded(quoted: bytes) -> None:
    try:
        text = unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        raise _unreadable("this is not UTF-8, behind its percent signs") from None
    if "\0" in text:
        raise _unreadable(_TEXT)


def _check_json(body: bytes, kind: bytes) -> None:
    if kind != b"application/json":
        raise Refusal(415, "send JSON, with the header Content-Type: application/json")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(f"this is not UTF-8, at byte {error.start}") from None
    if _depth(text) > DEEPEST_JSON:
        raise _unreadable(f"this is more than {DEEPEST_JSON} levels deep")
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        where = f", at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise _unreadable(f"this is not JSON{where}") from None
    for number, (pointer, value) in enumerate(_values(found, "")):
        if number >= MOST_VALUES:
            raise _unreadable(f"a request has at most {MOST_VALUES} values")
        if isinstance(value, str) and not is_text(value):
            raise _unreadable(_TEXT, pointer)
        if not is_finite(value):
            raise Refusal(422, _FINITE, faults=[Fault(pointer, _FINITE)], error="InvalidValue")


def is_finite(value: Any) -> bool:
    """Whether it is no number, or one that floats come near: JSON reads 1e400 as infinity."""
    try:
        return not isinstance(value, int | float) or isfinite(value)
    except OverflowError:
        return False


def _values(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """Every key and value, and a JSON pointer to it."""
    yield pointer, value
    if isinstance(value, dict):
        for name, each in value.items():
            yield pointer, name
            yield from _values(each, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _values(each, f"{pointer}/{place}")


def _unreadable(detail: str, pointer: str = "") -> Refusal:
    return Refusal(400, detail, faults=[Fault(pointer, detail)], error="InvalidValue")


def _no_number(name: str) -> None:
    raise ValueError(name)


def _depth(text: str) -> int:
    """How deep brackets go, outside of strings."""
    deep = deepest = 0
    for sign in _BRACKETS.findall(_STRINGS.sub("", text)):
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
