"""An audit of as many samples as there is time for."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import TypeVar

from expost.errors import InvalidValue
from expost.verify.audit.samples import Progress, SampledOutputs

_Result = TypeVar("_Result")
_FEWEST = 20  # chunks, however little time there is
_GROWTH, _MARGIN = 8, 1.3  # from round to round at most; and how much longer the next may take than foretold


def within(
    seconds: float,
    more: Callable[[SampledOutputs, int, Progress | None], SampledOutputs],
    tested: Callable[[SampledOutputs], _Result],
    progress: Progress | None = None,
    clock: Callable[[], float] = perf_counter,
) -> _Result:
    """The test of the samples of the last round that fitted: each has more of them, as long as the next seems to fit.

    ``more(outputs, chunks, progress)`` draws until there are so many chunks. What a round takes is foretold from the
    last one, which had at least an eighth of its samples: a test can take far longer than the samples did, and more
    than in proportion where parts are many. How many samples there are
    depends on the clock: on how long drawing and testing took, and not on whether anything was found.
    """
    if not 0 < seconds < inf:
        raise InvalidValue(f"seconds are above 0 and finite, got {seconds!r}")
    start = clock()

    def passed(_: float) -> None:
        assert progress is not None
        progress(min((clock() - start) / seconds, 1.0))

    chunks, new, outputs = 0, _FEWEST, SampledOutputs()
    while True:
        before = clock()
        outputs = more(outputs, chunks + new, None if progress is None else passed)
        drawn, chunks = clock(), chunks + new
        result = tested(outputs)
        now = clock()
        drawing, testing = _MARGIN * (drawn - before) / new, _MARGIN * (now - drawn) / chunks
        room = start + seconds - now - testing * chunks
        new = int(min(room / max(drawing + testing, 1e-9), (_GROWTH - 1) * chunks))
        if new < chunks // 4:  # hardly more than there are
            break
    if progress is not None:
        progress(1.0)
    return result
