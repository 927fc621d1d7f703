"""The liveness of processes: heartbeats, and which processes are given up.

A process that reserves is recorded with an identity, and sends heartbeats while it lives. What it left open is
forfeited, because its output may have leaked: when the process is known to have ended or, where that cannot be known,
when it has been silent for long. Time only decides *when* the worst case is charged, never *whether*.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from expost.canonical import canonical
from expost.forks import around_forks

_LOG = logging.getLogger("expost.ledger")


@cache
def identity(pid: int) -> str:
    """A process, described so that other processes on the same machine can check whether it is alive."""
    return canonical({"machine": _machine(), "pid": pid, "started": _started(pid)})


Standing: TypeAlias = Literal["alive", "gone", "unknown"]


def standing(owner: str, *, local: bool = False, here: str | None = None) -> Standing:
    """Whether the process of that identity is alive, as far as this machine knows; not known for other machines.

    ``here`` is how this machine describes itself, if not by its boot id.

    With ``local``, all processes are of this machine, so one of another boot is gone. That needs the kernel's boot id
    on both sides: a host name may change while a process runs.
    """
    try:
        who = json.loads(owner)
        machine, pid, started = str(who["machine"]), int(who["pid"]), str(who["started"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "unknown"
    here = here or _machine()
    if local and None not in (boots := {_boot(machine), _boot(here)}) and len(boots) == 2:
        return "gone"
    if machine != here or started == "None":
        return "unknown"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except (OSError, OverflowError):  # it exists, but belongs to another user
        pass
    now = _started(pid)
    if now is None:
        return "unknown"
    return "alive" if now == started else "gone"


class Processes(Protocol):
    """The processes that use ledgers, as one of them sees them."""

    def me(self) -> str:
        """The identity of this process, for others to look up."""

    def standing(self, owner: str, *, local: bool) -> Standing:
        """Whether the process of that identity is alive, as far as is known here. With ``local``, it is of this
        machine."""


class SystemProcesses:
    """The processes of the operating system. All objects are equal."""

    def me(self) -> str:
        """The identity of this process."""
        return identity(os.getpid())

    def standing(self, owner: str, *, local: bool) -> Standing:
        """Whether the process of that identity is alive."""
        return standing(owner, local=local)

    def __eq__(self, other: object) -> bool:
        return type(other) is SystemProcesses

    def __hash__(self) -> int:
        return hash(SystemProcesses)

    def __repr__(self) -> str:
        return "SystemProcesses()"


class Judge:
    """Decides which processes are given up.

    A process on this machine is given up when it has ended, and never before. Any other is given up after ``silence``
    seconds without a heartbeat, during all of which this judge checked at least every two beats. After an outage, or
    when this process was delayed itself, observation starts again. No wall clock matters. ``doubtful`` are the
    processes that are neither known to be alive or gone nor silent for long.
    """

    def __init__(
        self,
        beat: float,
        silence: float,
        timer: Callable[[], float],
        *,
        local: bool,
        processes: Processes = SystemProcesses(),  # noqa: B008  # it has no state
    ) -> None:
        self._late, self._silence, self._timer, self._local = 2 * beat, silence, timer, local
        self._processes = processes
        self._looked = timer()
        self._seen: dict[str, tuple[int, float]] = {}
        """The heartbeats of each process, and since when there was no new one."""
        self.doubtful: set[str] = set()

    def given_up(self, owners: Iterable[tuple[str, str, int]], me: str | None) -> tuple[str, ...]:
        """Which of the processes (name, identity, heartbeats) are given up now."""
        now = self._timer()
        if now - self._looked > self._late:
            self._seen.clear()
        self._looked = now
        self.doubtful.clear()
        asked = list(owners)
        found = tuple(name for name, owner, beats in asked if name != me and self._is_given_up(name, owner, beats, now))
        self._seen = {name: self._seen[name] for name, _, _ in asked if name in self._seen}  # observed without a gap
        return found

    def _is_given_up(self, name: str, owner: str, beats: int, now: float) -> bool:
        known = self._processes.standing(owner, local=self._local)
        if known != "unknown":
            return known == "gone"
        before, since = self._seen.get(name, (None, now))
        if before != beats:
            since = now
        self._seen[name] = (beats, since)
        if now - since >= self._silence:
            return True
        self.doubtful.add(name)
        return False


@cache
def _machine() -> str:
    """The boot id of this machine and its namespace of process ids, or else its host name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _boot(machine: str) -> str | None:
    """The boot id in a machine's description; None for a host name."""
    boot, _, space = machine.partition(" ")
    return boot if space.startswith("pid:[") else None


def _started(pid: int) -> str | None:
    """When a process was started, by the kernel's clock, or ``"ended"``; None where that is not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "ended" if fields[0] in "ZXx" else fields[19]


class Beating(Protocol):
    """A store that needs heartbeats."""

    @property
    def address(self) -> tuple[str, str]:
        """Its database, and its name there."""

    def is_out_of_reach(self, error: Exception) -> bool:
        """Whether the error means that nothing in the database can be reached now."""

    def beat(self) -> None:
        """Record a heartbeat."""

    def tend(self) -> None:
        """Forfeit what this process and others left open."""


class Heart:
    """A thread that sends the heartbeats of all stores of this process; a forked child starts its own."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._lock = threading.Lock()
        self._stores: weakref.WeakSet[Beating] = weakref.WeakSet()
        self._pid: int | None = None
        self._failed: set[str | tuple[str, str]] = set()
        """The databases and ledgers with a warning, until they can be reached again."""

    def watch(self, store: Beating) -> None:
        """Send heartbeats for a store as long as it exists."""
        with self._lock:
            self._stores.add(store)
            if self._pid != os.getpid():
                threading.Thread(target=self._run, name="expost-heart", daemon=True).start()
                self._pid = os.getpid()

    def beat(self) -> None:
        """Send one heartbeat for every store, then tend them. A store that cannot be reached is tried again next time.

        A database that cannot be reached is tried once, however many ledgers are in it.
        """
        with self._lock:
            stores = list(self._stores)
        lost: set[str] = set()
        reached = [store for store in stores if self._did(store, store.beat, "send a heartbeat", lost)]
        for store in reached:
            self._did(store, store.tend, "forfeit what was left open", lost)

    def _did(self, store: Beating, work: Callable[[], None], what: str, lost: set[str]) -> bool:
        database = store.address[0]
        if database in lost:
            return False
        try:
            work()
        except Exception as error:
            if store.is_out_of_reach(error):
                lost.add(database)
                self._warn(database, what, error)
            else:
                self._warn(store.address, what, error)
            return False
        self._failed -= {database, store.address}
        return True

    def _warn(self, where: str | tuple[str, str], what: str, error: Exception) -> None:
        """Warn once, until it can be reached again."""
        if where not in self._failed:
            self._failed.add(where)
            _LOG.warning("a ledger could not be reached to %s: %s", what, error)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(self._every)
            self.beat()


_HEARTS: dict[float, Heart] = {}


def heart(every: float) -> Heart:
    """This process's heart with that many seconds between heartbeats."""
    return _HEARTS.setdefault(every, Heart(every))


def _forked() -> None:
    _HEARTS.clear()
    identity.cache_clear()  # process ids are reused


around_forks(child=_forked)
