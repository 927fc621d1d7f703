"""Logs as lines of JSON: class names, routes and incident numbers; no value, question or token."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One object per line. An exception is its class's name: its words may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        facts = getattr(record, "facts", {})
        found = {"at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
                 "level": record.levelname.lower(), "logger": record.name, **facts}  # fmt: skip
        if record.name.startswith("expost"):
            found["event"] = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        elif record.name == "uvicorn.error" and not record.exc_info:
            found["event"] = str(record.msg)  # its template, without what is filled in
        if record.exc_info and record.exc_info[0] is not None:
            found["class"] = record.exc_info[0].__name__
        return json.dumps(found)


class Limited(logging.Filter):
    """Lets through so many lines of one kind in a while; the first line after that says how many were left out.

    For what others' code says, of which an attacker can cause any number. What this service says itself is one line for
    each request, with the number of an incident if there was one, and is never left out.
    """

    def __init__(self, most: int = 20, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._seconds, self._clock = most, seconds, clock
        self._kinds: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
        if record.name.startswith("expost"):
            return True
        now, kind = self._clock(), (record.name, record.levelno)
        since, said = self._kinds.get(kind, (now, 0))
        if now - since >= self._seconds:
            if said > self._most:
                record.facts = {"left_out": said - self._most}
            since, said = now, 0
        self._kinds[kind] = since, said + 1
        return said < self._most


def set_up_logs(level: int = logging.INFO) -> None:
    """Everything to standard error, as lines of JSON."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # nobody reads them
    logging._srcfile = None  # nor which line of the source it was
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Limited())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("expost.service").setLevel(level)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
