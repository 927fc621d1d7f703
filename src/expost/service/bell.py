"""Answer times: multiples of a public interval. Whatever changes for callers changes then."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from expost.errors import ExpostError
from expost.service.jobs import Jobs
from expost.service.posting import Poster
from expost.service.problems import incident
from expost.service.retention import Retention
from expost.service.window import Window

_TIDY = 600.0
"""Seconds after which it is looked again for what is too old to be kept; until then a batch at each answer time."""
_MOMENT = 0.25
"""Seconds after which others are accepted before more jobs are posted."""
_KEPT = 10_000
"""Names of answered jobs that are remembered, so that listeners hear of each once."""


class Bell:
    """Rings at each answer time: posts and delivers what is due, opens the window anew, and wakes who listens."""

    def __init__(
        self,
        jobs: Jobs,
        poster: Poster,
        window: Window,
        retention: Retention,
        every: float,
        *,
        patience: float = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._jobs, self._poster, self._window = jobs, poster, window
        self._retention, self._every, self._clock = retention, every, clock
        self._patience = round(patience * 1e6)
        """For how long jobs that are late are waited for, in microseconds."""
        self._gate = window.gate
        self._own = ThreadPoolExecutor(1, "expost-bell")
        """A thread of its own: answer times never wait for callers' work."""
        self._rung = asyncio.Event()
        self._announced: OrderedDict[str, None] = OrderedDict()
        self._tidy_at = 0.0
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
            self.answered = await asyncio.get_running_loop().run_in_executor(self._own, self._ring, slot)
            self.healthy = True
        except ExpostError:
            self.answered, self.healthy = {}, False
        except Exception as error:  # the next answer time must come all the same
            self.answered, self.healthy = {}, False
            incident(error)
        self.slot = slot
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    def until_next(self) -> float:
        """Seconds until the next answer time."""
        return self._every - self._clock() % self._every

    async def wait(self, seconds: float | None = None) -> bool:
        """Until the next answer time; False if that takes longer."""
        rung = self._rung
        with suppress(TimeoutError):
            await asyncio.wait_for(rung.wait(), seconds)
        return rung.is_set()

    def _ring(self, slot: float) -> dict[str, list[str]]:
        now = round(slot * 1e6)
        results = self._poster.results(self._jobs.due(now, self._patience))
        while self._post(now, results):
            pass
        with self._gate.closed():
            self._window.refresh()
        self._tidy(slot)
        return self._new(self._jobs.delivered_since(now - int(3 * self._every * 1e6) - 1))

    def _post(self, now: int, results: Iterator[tuple[int, str]]) -> bool:
        """Post and deliver for a moment, while nothing is accepted. Whether there may be more."""
        posted: list[tuple[int, str]] = []
        with self._gate.closed():
            until = time.monotonic() + _MOMENT
            for result in results:
                posted.append(result)
                if time.monotonic() > until:
                    break
            self._jobs.deliver(now, posted)
        return bool(posted)

    def _tidy(self, slot: float) -> None:
        """Remove what is too old to be kept."""
        if slot >= self._tidy_at and not self._retention.tidy(slot):
            self._tidy_at = slot + _TIDY

    def _new(self, delivered: list[tuple[str, str]]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for job, account in delivered:
            if job not in self._announced:
                self._announced[job] = None
                found.setdefault(account, []).append(job)
        while len(self._announced) > _KEPT:
            self._announced.popitem(last=False)
        return found
