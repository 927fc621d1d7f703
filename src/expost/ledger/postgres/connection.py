"""Connections to PostgreSQL on which every request has a deadline."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cache
from typing import Any

import psycopg

from expost.ledger.deadline import time_left


@cache
def bounded(deadline: float) -> type[psycopg.Connection[Any]]:
    """A class of connections on which every request ends within that many seconds, whatever network and server do, or
    within what is left to the call that it is part of."""

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            allowed = time_left(deadline)
            return super().wait(_until(gen, time.monotonic() + allowed, allowed), *args, **options)

        def __del__(self, *args: Any) -> None:
            """Does not warn: a ledger that is garbage drops its connection."""

    return Bounded


def _until(steps: Generator[Any, Any, Any], end: float, deadline: float) -> Generator[Any, Any, Any]:
    """The same steps, until the deadline. psycopg resumes them ten times per second."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise psycopg.OperationalError(f"no answer within {round(deadline, 1):g} seconds")
            wanted = steps.send(ready)
    except StopIteration as done:
        return done.value
