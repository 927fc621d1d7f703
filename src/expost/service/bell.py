"""Answer times: multiples of a public interval. Whatever changes for callers changes then."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from expost.errors import ExpostError
from expost.service.jobs import SILENCE, Jobs
from expost.service.problems import incident
from expost.service.runner import Runner
from expost.service.window import Window

_KEPT = 10_000
"""Names of answered jobs that are remembered, so that listeners hear of each once."""


class Bell:
    """Rings at each answer time: keeps results, delivers them, opens the window anew, and wakes who listens."""

    def __init__(
        self, jobs: Jobs, runner: Runner, window: Window, every: float, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._jobs, self._runner, self._window, self._every, self._clock = jobs, runner, window, every, clock
        self._rung = asyncio.Event()
        self._announced: OrderedDict[str, None] = OrderedDict()
        self._beat_at = self._looked_at = 0.0
        self.slot = 0.0
        """The last answer time."""
        self.answered: dict[str, list[str]] = {}
        """The jobs that were answered then, by account."""
        self.healthy = True

    async def ring_for_ever(self) -> None:
        """At every multiple of the interval."""
        while True:
            slot = (self._clock() // self._every + 1) * self._every
            await asyncio.sleep(max(0.0, slot - self._clock()))
            await self.ring(slot)

    async def ring(self, slot: float) -> None:
        """Deliver what is due at one answer time."""
        try:
            self.answered = await asyncio.to_thread(self._ring, slot)
            self.healthy = True
        except ExpostError:
            self.answered, self.healthy = {}, False
        except Exception as error:  # the next answer time must come all the same
            self.answered, self.healthy = {}, False
            incident(error)
        self.slot = slot
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Until the next answer time; False if that takes longer."""
        rung = self._rung
        with suppress(TimeoutError):
            await asyncio.wait_for(rung.wait(), seconds)
        return rung.is_set()

    def _ring(self, slot: float) -> dict[str, list[str]]:
        now, ready = int(slot * 1e6), self._runner.take_ready()
        try:
            self._jobs.ring(ready, now)
        except BaseException:
            self._runner.give_back(ready)
            raise
        self._window.refresh()
        self._look_after(slot)
        return self._new(self._jobs.delivered_since(now - int(3 * self._every * 1e6) - 1))

    def _look_after(self, slot: float) -> None:
        """Signs of life; and the jobs of processes that give none."""
        if slot - self._beat_at >= SILENCE / 6:
            self._beat_at = slot
            self._jobs.beat(int(slot * 1e6))
        if slot - self._looked_at >= SILENCE / 3:
            self._looked_at = slot
            for job in self._jobs.adopt(int(slot * 1e6), everybody=False):
                self._runner.put(job)

    def _new(self, delivered: list[tuple[str, str]]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for job, account in delivered:
            if job not in self._announced:
                self._announced[job] = None
                found.setdefault(account, []).append(job)
        while len(self._announced) > _KEPT:
            self._announced.popitem(last=False)
        return found
