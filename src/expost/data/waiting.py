"""A progress line for long queries: the time that has passed, and how to cancel.

It shows no percentage: the progress over time would reveal more about the data than the total time, which whoever
waits sees anyway.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

_SHOWN: ContextVar[TextIO | None] = ContextVar("expost progress", default=None)
_PATIENCE, _PACE = 1.0, 0.5
"""Seconds before the line first appears, and between its updates."""


@contextmanager
def progress(file: TextIO | None = None) -> Iterator[None]:
    """Show how long a query has been running, once it takes over a second: ``with xp.progress(): ledger.run(…)``.

    The line goes to ``file``, by default standard error, and is erased when the query ends. An interrupt (Ctrl-C, or
    the notebook's stop button) cancels the query; its reservation is charged in full, because sampling had begun.
    """
    token = _SHOWN.set(file or sys.stderr)
    try:
        yield
    finally:
        _SHOWN.reset(token)


@contextmanager
def waiting(name: str) -> Iterator[None]:
    """Show progress, if it is wanted, while a query of this table runs."""
    file = _SHOWN.get()
    if file is None:
        yield
        return
    over = threading.Event()
    sign = threading.Thread(target=_tick, args=(name, file, over), daemon=True)
    sign.start()
    try:
        yield
    finally:
        over.set()
        sign.join()


def _tick(name: str, file: TextIO, over: threading.Event) -> None:
    start, wait, width = time.monotonic(), _PATIENCE, 0
    while not over.wait(wait):
        passed = time.monotonic() - start
        text = f"{name}: {passed:.0f} s · an interrupt cancels the query, which is charged in full"
        file.write(f"\r{text.ljust(width)}")
        file.flush()
        wait, width = _PACE, max(width, len(text))
    if width:
        file.write(f"\r{' ' * width}\r")
        file.flush()
