"""One deadline for all that a call does: whoever waits on the way waits no longer than what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

Done = TypeVar("Done")
_END: ContextVar[float] = ContextVar("expost_deadline", default=math.inf)


def all_within(seconds: float, work: Callable[..., Done], *values: object) -> Done:
    """Do work that ends, with all that it calls in this thread, within that many seconds; or earlier, if it is itself
    part of such work.

    It has a context of its own, which the interpreter leaves however the work ends: a block would have to set the
    deadline back, and an interrupt just then would leave one that is over to all later calls.
    """

    def bounded() -> Done:
        _END.set(min(_END.get(), time.monotonic() + seconds))
        return work(*values)

    return copy_context().run(bounded)


def time_left(seconds: float) -> float:
    """How long something may wait that may take that many seconds by itself."""
    return max(0.0, min(seconds, _END.get() - time.monotonic()))
