"""Kills a process before and after each moment at which what is on a disk may change."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import Any


class Doom:
    """Kills this process at one of the moments when what is on a disk may just have changed."""

    def __init__(self, moment: int) -> None:
        self._left = moment

    def moment(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def on(self, owner: Any, name: str) -> None:
        """Moments before and after each call."""
        real = getattr(owner, name)

        def called(*given: Any, **named: Any) -> Any:
            self.moment()
            found = real(*given, **named)
            self.moment()
            return found

        setattr(owner, name, called)

    def in_the_end_of(self, owner: Any, name: str) -> None:
        """Moments around the commit of a transaction in a block."""
        real = getattr(owner, name)

        @contextmanager
        def called(*given: Any) -> Any:
            with real(*given) as run:
                yield run
                self.moment()
            self.moment()

        setattr(owner, name, called)
