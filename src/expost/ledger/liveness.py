"""Who is at work, and whether they still are.

A process that spends is written down with an identity and a deadline, and moves the deadline on while it
lives. If the deadline passes, or the process is known to be gone, what it had reserved is forfeited: its
output may have leaked. Time only decides *when* the worst case is charged, never *whether*.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

from expost.canonical import canonical
from expost.forks import around_forks

TTL = 60_000_000
"""Microseconds for which a process counts as alive after it was last heard of."""
BEAT = 15.0
"""Seconds between two beats of its heart."""

_LOG = logging.getLogger("expost.ledger")


@cache
def identity(pid: int) -> str:
    """A process, in words that another process on the same machine can check."""
    return canonical({"machine": _machine(), "pid": pid, "started": _started(pid)})


def is_gone(told: str) -> bool:
    """Whether the process of that identity is known to have ended. Of another machine's nothing is known."""
    try:
        who = json.loads(told)
        machine, pid, started = str(who["machine"]), int(who["pid"]), str(who["started"])
    except (ValueError, TypeError, KeyError):
        return False
    if machine != _machine() or started == "None":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is there, but somebody else's
        pass
    now = _started(pid)
    return now is not None and now != started


@cache
def _machine() -> str:
    """The boot of a machine, and the name space of its process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str | None:
    """When a process was started, in the kernel's words, or that it has ended; None where nobody says."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "ended" if fields[0] in "ZXx" else fields[19]


class Beating(Protocol):
    """A store that has to say that it is alive."""

    def beat(self) -> None:
        """Move the deadline on."""

    def tend(self) -> None:
        """Look after what this process and others left behind."""


class Heart:
    """One thread of this process that beats for every store in it; a forked child starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: weakref.WeakSet[Beating] = weakref.WeakSet()
        self._pid: int | None = None

    def watch(self, store: Beating) -> None:
        """Beat for the store as long as it is there."""
        with self._lock:
            self._stores.add(store)
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._run, name="expost-heart", daemon=True).start()

    def beat(self) -> None:
        """Once, for all, and before anything else is done. A store that cannot be reached is tried again next time."""
        with self._lock:
            stores = list(self._stores)
        reached = [store for store in stores if _did(store.beat, "renew its lease")]
        for store in reached:
            _did(store.tend, "look after what was left behind")

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(BEAT)
            self.beat()


def _did(work: Callable[[], None], what: str) -> bool:
    try:
        work()
    except Exception as error:
        _LOG.warning("a ledger could not be reached to %s: %s", what, error)
        return False
    return True


HEART = Heart()


def _forked() -> None:
    HEART.__init__()  # type: ignore[misc]
    identity.cache_clear()  # numbers of processes come again


around_forks(child=_forked)
