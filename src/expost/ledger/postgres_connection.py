"""A connection to PostgreSQL on which no request waits for ever."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cache
from typing import Any

import psycopg


@cache
def bounded(deadline: float) -> type[psycopg.Connection[Any]]:
    """Connections whose every request ends within that many seconds, whatever network and server do."""

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(_until(gen, time.monotonic() + deadline, deadline), *args, **options)

        def __del__(self, *args: Any) -> None:
            """Says nothing: who drops a ledger drops its connection, and what it holds ends with it."""

    return Bounded


def _until(steps: Generator[Any, Any, Any], end: float, deadline: float) -> Generator[Any, Any, Any]:
    """The same steps, until the time is over. psycopg wakes them ten times per second."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise psycopg.OperationalError(f"no answer within {deadline:g} seconds")
            wanted = steps.send(ready)
    except StopIteration as done:
        return done.value
