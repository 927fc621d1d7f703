"""One deadline for all that a call does: whoever waits on the way waits no longer than what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("expost_deadline", default=math.inf)


@contextmanager
def all_within(seconds: float) -> Iterator[None]:
    """What is done in this block, in this thread, ends within that many seconds; or earlier, if a block around it says
    so."""
    before = _END.set(min(_END.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _END.reset(before)


def time_left(seconds: float) -> float:
    """How long something may wait that may take that many seconds by itself."""
    return max(0.0, min(seconds, _END.get() - time.monotonic()))
