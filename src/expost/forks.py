"""Which process this is, and what a forked copy of it does first. Works where there is no fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple


class Process(NamedTuple):
    """A process. Equal only within it: numbers are used again, but a forked copy is always another."""

    number: int
    birth: object


_here = Process(os.getpid(), object())


def here() -> Process:
    """This process."""
    return _here if _here.number == os.getpid() else _born()


def around_forks(
    *,
    child: Callable[[], object],
    before: Callable[[], object] | None = None,
    parent: Callable[[], object] | None = None,
) -> None:
    """Have things done before every fork, and after it in the child and in the parent."""
    if hasattr(os, "register_at_fork"):
        hooks = {"before": before, "after_in_parent": parent, "after_in_child": child}
        os.register_at_fork(**{name: hook for name, hook in hooks.items() if hook is not None})


def _born() -> Process:
    global _here
    _here = Process(os.getpid(), object())
    return _here


around_forks(child=_born)
