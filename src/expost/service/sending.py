"""Replies that are large: sent in slices, as fast as they are read, and few of an account at a time.

A reply that is given to a connection whole is in memory until its client has read all of it, and a client need not
read. Who reads too slowly is let go by :mod:`expost.service.connections`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from expost.service.problems import Refusal

Message = MutableMapping[str, Any]
LARGE_REPLY = 262_144
"""Bytes of a reply of which few are under way."""
AT_ONCE = 4
_SLICE = 65_536
_ENDLESS = b"text/event-stream"
"""Listeners are counted at the door."""


class Replies:
    """The large replies that are under way."""

    def __init__(self) -> None:
        self._sent: Counter[str] = Counter()

    def begin(self, account: str, message: Message) -> bool:
        """Count a reply that begins, if it is large, and say so. Refuses one too many of an account."""
        if not _is_large(message["status"], {name.lower(): value for name, value in message.get("headers", [])}):
            return False
        if self._sent[account] >= AT_ONCE:
            raise Refusal(
                429, f"{AT_ONCE} large replies to this account are under way: read one after the other", error="Busy"
            )
        self._sent[account] += 1
        return True

    def end(self, account: str) -> None:
        """One was sent, or cut off."""
        self._sent[account] -= 1
        self._sent += Counter()  # forgets those who have none


def _is_large(status: int, headers: dict[bytes, bytes]) -> bool:
    length = headers.get(b"content-length")
    if length is None:
        return status != HTTPStatus.NO_CONTENT and not headers.get(b"content-type", b"").startswith(_ENDLESS)
    return int(length) > LARGE_REPLY


async def send_slices(message: Message, send: Callable[[Message], Awaitable[None]]) -> None:
    """Send a part of a reply, each slice when the client has read those before."""
    body = message.get("body", b"")
    if message["type"] != "http.response.body" or len(body) <= _SLICE:
        await send(message)
        return
    view = memoryview(body)
    for start in range(0, len(body), _SLICE):
        more = start + _SLICE < len(body) or message.get("more_body", False)
        await send({"type": "http.response.body", "body": bytes(view[start : start + _SLICE]), "more_body": more})
