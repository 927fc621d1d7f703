"""Signs of life on a timer of their own, however far apart answer times are; and jobs of processes that give none."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from threading import Event, Thread

from expost.errors import ExpostError
from expost.service.jobs import SILENCE, Jobs, ServiceJob
from expost.service.problems import incident

BEAT = SILENCE / 10
"""Seconds between two signs of life."""


class Heartbeat:
    """Says that this process lives, and takes over the jobs of others that are silent.

    After a silence of its own it leaves others as long to be heard again: what kept it from the database may have kept
    them.
    """

    def __init__(
        self,
        jobs: Jobs,
        put: Callable[[ServiceJob], None],
        *,
        every: float = BEAT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._jobs, self._put, self._every, self._clock = jobs, put, every, clock
        self._heard_at, self._heard_since = -inf, inf
        """Its last sign of life; and the first after its last silence."""
        self._ended = Event()
        self._thread = Thread(target=self._run, name="expost-heartbeat", daemon=True)

    def start(self) -> None:
        """Beat from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def beat(self) -> None:
        """Give a sign of life, and look for jobs whose process gave none for long."""
        now = self._clock()
        self._jobs.beat(int(now * 1e6))
        self._heard_since = now if now - self._heard_at > SILENCE / 2 else self._heard_since
        self._heard_at = now
        if now - self._heard_since >= SILENCE:
            for job in self._jobs.adopt(int(now * 1e6)):
                self._put(job)

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            try:
                self.beat()
            except ExpostError:  # the database cannot be reached: it is tried again
                pass
            except Exception as error:
                incident(error)
