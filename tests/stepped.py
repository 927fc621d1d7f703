"""A service in this process, for tests that say when answer times come and when a job's work ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import httpx
import uvicorn

from books import wait_until
from expost.data.stopping import Stopper
from expost.service.bell import Bell
from expost.service.config import read_config
from expost.service.connections import GuardedConnection
from expost.service.core import Service
from expost.service.jobs import ServiceJob
from expost.service.runner import Runner
from expost.service.server import behind_limits, create_app
from serving import Running


class StandingClock:
    """The time of everything in this process; it moves when a test moves it."""

    def __init__(self) -> None:
        self.now = float(time.time() // 3600 * 3600)  # an answer time, however far apart they are

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return round(self.now * 1e9)


class Stepped(Running):
    """Its bell rings when a test rings it, by the test's clock; its jobs begin, and go on when the test says so."""

    _service: Service
    _loop: asyncio.AbstractEventLoop
    _server: uvicorn.Server
    _thread: threading.Thread

    def on(self, clock: StandingClock) -> Self:
        """With this clock, by which everything else in this process goes, too. Its jobs may go on from the start."""
        self._clock, self.go, self._begun, self._waiting = clock, threading.Event(), 0, 0
        self.go.set()
        return self

    def start(self, file: Path | None = None) -> Self:
        """Serve from a thread, and wait until it listens."""
        config = read_config(file or self.file)
        self._service = service = Service(config)
        here: Any = service
        here.bell._clock, here.bell.ring_for_ever, here.runner._outcome = self._clock.time, self._silence, self._outcome
        here.bell.wait = self._wait
        service.door.connections = 1000
        settings = uvicorn.Config(
            behind_limits(create_app(service), config), host="127.0.0.1", port=0, http=GuardedConnection, ws="none",
            log_level="error", timeout_graceful_shutdown=5, timeout_keep_alive=600,
        )  # fmt: skip
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive())
        self.address = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        return self

    async def _silence(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.Event().wait()

    def _outcome(self, job: ServiceJob, between: Callable[[], None], stopper: Stopper) -> tuple[str, str]:
        """What a job publishes, once it may go on."""
        self.go.wait(600)
        return Runner._outcome(self._service.runner, job, between, stopper)

    async def _wait(self, seconds: float | None = None) -> bool:
        """For an answer time, as a live event does."""
        self._begun, self._waiting = self._begun + 1, self._waiting + 1
        try:
            return await Bell.wait(self._service.bell, seconds)
        finally:
            self._waiting -= 1

    def listened(self, count: int) -> None:
        """Wait until so many listen to live events, and were sent all that there was."""
        wait_until(lambda: self._waiting == count)

    def ring(self, slot: float) -> None:
        """An answer time comes, and all who listen are sent what there is."""
        again = self._begun + self._waiting
        asyncio.run_coroutine_threadsafe(self._service.bell.ring(slot), self._loop).result(240)
        wait_until(lambda: self._begun >= again)

    def answer_times(self, until: float) -> Iterator[float]:
        """They come one after the other, up to a moment; all that should be done by then is done."""
        every = self._service.config.answer_every
        while (slot := (self._clock.now // every + 1) * every) <= until:
            self._clock.now = slot
            self.finish()
            self.ring(slot)
            yield slot

    def finish(self) -> None:
        """Let jobs go on whose time has come, until all of them are done."""
        self.go.set()
        with self._service.runner._changed:
            self._service.runner._changed.notify_all()
        wait_until(lambda: not self.at_work())

    def answered(self, client: httpx.Client, job: str) -> dict[str, Any]:
        """A job at its answer time."""
        due = client.get(f"/v1/jobs/{job}").json()["due_at"]
        for _ in self.answer_times(datetime.fromisoformat(due).timestamp()):
            pass
        found: dict[str, Any] = client.get(f"/v1/jobs/{job}").json()
        assert found["state"] == "done"
        return found

    def at_work(self, begun: bool = False) -> int:
        """How many jobs should have started, and are not done; or how many of them are at work."""
        which = f"state = 'accepted' AND starts_at <= {int(self._clock.now * 1e6)} {'AND begun = 1' if begun else ''}"
        ((found,),) = self._service.database.rows(f"SELECT count(*) FROM expost_job WHERE {which}")
        return int(found)

    def stop(self) -> int:
        """Let everything go."""
        self.go.set()
        self._service.stopping = self._server.should_exit = True
        self._thread.join(240)
        assert not self._thread.is_alive()
        return 0
