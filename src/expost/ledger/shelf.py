"""What a ledger in memory remembers of its releases, so that a report can show them: rows, and no data."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sized
from threading import Lock
from typing import Any

from expost.frame import Frame
from expost.mechanism import Release

MOST_ON_SHELF = 200_000
"""Numbers, of all releases together: the oldest are forgotten first."""
_LARGEST = 20_000
"""Numbers of one release: nobody reads longer ones on a page."""


class Shelf:
    """The releases of a ledger in memory, by entry.

    A mechanism of a table holds its data, and would keep it in memory as long as the ledger lives: of those the rows
    are made at once. Of others they are made when somebody looks, since writing long rows takes longer than sampling.
    """

    def __init__(self, most: int = MOST_ON_SHELF) -> None:
        self._most, self._size = most, 0
        self._found: OrderedDict[int, tuple[int, Frame | Release[Any]]] = OrderedDict()
        self._lock = Lock()

    def put(self, release: Release[Any]) -> None:
        """Remember a release; the oldest are forgotten where there are too many."""
        size = _size(release.output)
        if size > min(self._most, _LARGEST):
            return
        kept = release.frame if getattr(release.mechanism, "question", None) is not None else release
        with self._lock:
            self._found[release.entry.id] = size, kept
            self._size += size
            while self._size > self._most:
                _, (less, _) = self._found.popitem(last=False)
                self._size -= less

    def frame(self, entry: int) -> Frame | None:
        """The rows of an entry's release, if they are remembered."""
        _, kept = self._found.get(entry, (0, None))
        return kept.frame if isinstance(kept, Release) else kept


def _size(output: Any) -> int:
    size = getattr(output, "size", None)
    return max(1, size) if isinstance(size, int) else max(1, len(output)) if isinstance(output, Sized) else 1
