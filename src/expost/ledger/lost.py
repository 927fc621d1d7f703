"""Servers that did not answer a short while ago: whoever asks next is told at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from expost.errors import Busy, LedgerUnavailable, RequestRejected


class LostServers:
    """Notes which servers did not answer those who load ledgers, after they were patient."""

    def __init__(self) -> None:
        self.seconds = 5.0
        """How long a server is not asked again."""
        self.now = time.monotonic
        self._known: dict[str, tuple[float, str]] = {}
        """Since when, and the error."""

    @contextmanager
    def noting(self, url: str) -> Iterator[None]:
        """Note that the server of that address does not answer, if the block finds that out."""
        try:
            yield
        except (Busy, RequestRejected):
            raise
        except LedgerUnavailable as error:
            self._known.setdefault(url, (self.now(), str(error)))
            raise

    def refuse(self, url: str) -> None:
        """Raise if it was found a short while ago that the server does not answer."""
        since, error = self._known.get(url, (0.0, None))
        if error is None:
            return
        if (ago := self.now() - since) < self.seconds:
            raise LedgerUnavailable(
                f"{error}; so it was {ago:.0f} seconds ago: try again {self.seconds:g} seconds after that"
            )
        self._known.pop(url, None)


LOST_SERVERS = LostServers()
"""Those of this process."""
