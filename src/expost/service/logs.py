"""Logs as lines of JSON: class names, routes and incident numbers; no value, question or token."""

from __future__ import annotations

import json
import logging
import sys
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


def set_up_logs(level: int = logging.INFO) -> None:
    """Everything to standard error, as lines of JSON."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # nobody reads them
    logging._srcfile = None  # nor which line of the source it was
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("expost.service").setLevel(level)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
