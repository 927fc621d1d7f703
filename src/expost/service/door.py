"""Who comes in: tokens and sessions, looked up by threads of their own and remembered for a second; and who listens."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from expost.service.database import Made, ServiceTables
from expost.service.problems import Refusal
from expost.service.tokens import (
    AccessToken,
    digest_of_secret,
    find_session,
    find_token,
    list_tokens,
    open_sessions,
    sign_in,
    sign_out,
)

_REMEMBERED = 1.0
"""Seconds for which a token is not looked up again: for so long another process may not know that it was revoked."""
_MOST_REMEMBERED = 10_000


class Door:
    """Knows who somebody is. That never waits for what others ask."""

    def __init__(self, database: ServiceTables, ledgers: tuple[str, ...], listeners: int, connections: int) -> None:
        self._database, self._ledgers, self._listeners = database, ledgers, listeners
        self.connections = connections
        """How many there may be at a time. Most are left for those who do not wait."""
        self._threads = ThreadPoolExecutor(2, "expost-door")
        self._tokens: dict[str, tuple[AccessToken, float]] = {}
        self._revoked: frozenset[str] = frozenset()
        self._sessions: frozenset[str] = frozenset()
        self._looked_until = 0.0
        self._looking = asyncio.Lock()
        self._listening: Counter[str] = Counter()

    async def token_of(self, secret: str, *, session: bool = False) -> AccessToken | None:
        """The token of a secret, or of a browser's session; None if it is not valid."""
        key = ("s" if session else "t") + digest_of_secret(secret)
        known = self._tokens.get(key)
        if known is not None and known[1] > time.monotonic() and known[0].valid:
            return known[0]
        find = find_session if session else find_token
        found = await self._look(lambda: find(self._database, secret))
        self._tokens.pop(key, None)
        if found is not None and found.path[0] not in self._ledgers:
            found = None  # a ledger that is no longer served
        if found is not None:
            if len(self._tokens) > _MOST_REMEMBERED:
                self._tokens.clear()
            self._tokens[key] = found, time.monotonic() + _REMEMBERED
        return found

    async def sign_in(self, token: AccessToken) -> str:
        """A session of a token; its secret, for a cookie."""
        return await self._look(lambda: sign_in(self._database, token))

    async def sign_out(self, session: str) -> None:
        """End a session."""
        await self._look(lambda: sign_out(self._database, session))
        self.forget()

    def forget(self) -> None:
        """Look every token up again: one was revoked, or somebody signed out."""
        self._tokens.clear()
        self._looked_until = 0.0

    async def is_live(self, token: AccessToken, session: str | None = None) -> bool:
        """Whether a token, and a browser's session, have not ended meanwhile. Looked up once for all who listen."""
        digest = None if session is None else digest_of_secret(session)
        async with self._looking:
            unknown = digest is not None and digest not in self._sessions  # signed in since, or signed out
            if unknown or self._looked_until < time.monotonic():
                found = await self._look(lambda: list_tokens(self._database))
                self._revoked = frozenset(each.id for each in found if each.revoked)
                self._sessions = await self._look(lambda: open_sessions(self._database))
                self._looked_until = time.monotonic() + _REMEMBERED
        signed_in = digest is None or digest in self._sessions
        return signed_in and token.valid and token.id not in self._revoked

    @contextmanager
    def listening(self, token: AccessToken) -> Iterator[None]:
        """Somebody listens, or waits for an answer, with a token. Refuses one of a token that has as many as it may.

        A connection that waits is never closed for another: so a token has a quarter of all at most, and all tokens
        together three quarters.
        """
        most = max(1, min(self._listeners, self.connections // 4))
        if self._listening[token.id] >= most:
            raise Refusal(
                429, f"a token has at most {most} live listeners and requests that wait: close some", error="Busy"
            )
        if self._listening.total() >= max(1, self.connections * 3 // 4):
            raise Refusal(429, "too many listen or wait already: ask without waiting, or come again", error="Busy")
        self._listening[token.id] += 1
        try:
            yield
        finally:
            self._listening[token.id] -= 1
            self._listening += Counter()  # forgets those who have none

    async def _look(self, function: Callable[[], Made]) -> Made:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)
