"""Connections that cannot be held for nothing: deadlines for what is sent and read, and a number that is kept.

Without these, a few hundred half-sent requests, which need no token, take all file descriptors away. uvicorn has a
deadline for connections that are idle after a reply, and for no others.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_WITHIN, BODY_WITHIN, READ_WITHIN = 10.0, 20.0, 60.0
"""Seconds for all headers of a request, for its body, and for a client that does not read what it is sent."""
READ_AGAIN = 1.0
"""Seconds that a client gets back for what it has read of a reply: uvicorn's 48 kB or more."""
BACKLOG = 128
"""Connections that are accepted at once, before any of them can be closed: descriptors are left for them."""
_OTHER_FILES = 64
"""Descriptors for databases, data and logs."""


def room_for(wanted: int) -> int:
    """How many connections can be open at a time: those wanted, if there are descriptors, of which it asks for more."""
    try:
        import resource
    except ImportError:  # where there are no such limits
        return wanted
    needed = wanted + BACKLOG + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - BACKLOG - _OTHER_FILES))


class GuardedConnection(H11Protocol):
    """A connection of HTTP that ends if its client is slow. Where all are taken, the one that waits longest makes room.

    One that has a request under way is never closed for another.
    """

    most = 1000
    headers_within, body_within, read_within, read_again = HEADERS_WITHIN, BODY_WITHIN, READ_WITHIN, READ_AGAIN

    _sending: Any = None
    """What the client is sending: headers, a body, or nothing that is waited for."""
    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _since = 0.0
    _patience = 0.0
    """Seconds for which the client may still not read: a reply as a whole has a deadline that grows with its length."""
    _changed = 0.0
    """When it began to read, or not to."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, if there is room."""
        waiting = [each for each in self.connections if isinstance(each, GuardedConnection) and each.is_waiting]
        full = len(self.connections) >= self.most
        super().connection_made(transport)
        self._since = self._changed = self.loop.time()
        self._patience = self.read_within
        if full and waiting:
            min(waiting, key=lambda each: each._since).end()
        elif full:
            self.end()
        self._await("headers", self.headers_within)

    @property
    def is_waiting(self) -> bool:
        """Whether it is open, and no request of it is being worked on."""
        busy = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return not busy and not self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        super().data_received(data)
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._await("body", self.body_within)
        elif state is h11.IDLE:
            self._await("headers", self.headers_within)
        else:
            self._await(None, 0)

    def on_response_complete(self) -> None:
        """Idle connections have uvicorn's deadline, and wait from now on."""
        super().on_response_complete()
        self._since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended."""
        self._await(None, 0)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written to."""
        super().pause_writing()
        self._pass(1.0)
        self._reading = self.loop.call_later(self._patience, self.end)

    def resume_writing(self) -> None:
        """The client reads."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
            self._pass(-1.0)
            self._patience = min(self.read_within, self._patience + self.read_again)
        super().resume_writing()

    def _pass(self, sign: float) -> None:
        """Time in which nothing waited for the client brings patience back, and time in which it did takes it."""
        now = self.loop.time()
        self._patience = max(0.0, min(self.read_within, self._patience + sign * (now - self._changed)))
        self._changed = now

    def end(self) -> None:
        """Close it now, whatever was sent."""
        self.transport.abort()  # also if it was closed: then it would wait until all that it has was read

    def _await(self, what: str | None, seconds: float) -> None:
        """Wait for something to be sent whole: time begins with its first byte, and more bytes do not prolong it."""
        if what == self._sending:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._sending = what
        self._deadline = None if what is None else self.loop.call_later(seconds, self.end)
