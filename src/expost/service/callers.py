"""Threads for what callers ask, of which each kind has its own: nobody's plans keep others' jobs waiting.

What grows with a request runs here, a few things of one account at a time, in the order in which they came; beyond a
number that waits, 429. Few threads each, because one at a time computes: more would only take turns with the event
loop. Who somebody is (:mod:`expost.service.door`), answer times (:mod:`expost.service.bell`) and jobs
(:mod:`expost.service.runner`) have threads of their own, and never wait for these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from expost.service.database import Made
from expost.service.problems import Refusal

_CLERKS = 32


class _Line:
    """What an account has in a lane."""

    def __init__(self, at_once: int) -> None:
        self.turn = asyncio.Semaphore(at_once)
        self.inside = 0


class Lane:
    """Work of one kind. An account has few pieces at a time among the threads, so that all accounts take turns.

    They are fewer than the threads: one account leaves a thread for others.
    """

    def __init__(self, name: str, *, threads: int, at_once: int, most: int) -> None:
        assert at_once < threads, name
        self._threads = ThreadPoolExecutor(threads, f"expost-{name}")
        self._name, self._at_once, self._most = name, at_once, most
        self._lines: dict[str, _Line] = {}

    async def run(self, account: str, work: Callable[[], Made]) -> Made:
        """Do it, when it is the account's turn. Raises ``Refusal`` if too much of the account waits already."""
        line = self._lines.setdefault(account, _Line(self._at_once))
        if line.inside >= self._most:
            raise Refusal(
                429, f"{self._most} {self._name} of this account are under way: send one after the other", error="Busy"
            )
        line.inside += 1
        try:
            async with line.turn:
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            line.inside -= 1
            if not line.inside:
                self._lines.pop(account, None)


class Callers:
    """Does callers' work."""

    def __init__(self) -> None:
        self.requests = Lane("requests", threads=8, at_once=4, most=64)
        self.plans = Lane("plans", threads=2, at_once=1, most=4)
        self.submissions = Lane("submissions", threads=8, at_once=4, most=100)
        self.rehearsals = Lane("rehearsals", threads=2, at_once=1, most=4)
        self.results = Lane("results", threads=4, at_once=1, most=100)
        """For results, which may be large: one of an account is made ready to be sent at a time."""
        self.balances = Lane("balances", threads=2, at_once=1, most=10_000)
        """For balances of many accounts, which all listeners of an account wait for at an answer time."""
        self._clerks = ThreadPoolExecutor(_CLERKS, "expost-clerk")
        """For what takes as long as one row of a table, whatever was asked: it mostly waits for the disk."""

    async def work(self, account: str, function: Callable[[], Made]) -> Made:
        """Read something for an account."""
        return await self.requests.run(account, function)

    async def briefly(self, function: Callable[[], Made]) -> Made:
        """Do something that does not grow with what was asked."""
        return await asyncio.get_running_loop().run_in_executor(self._clerks, function)
