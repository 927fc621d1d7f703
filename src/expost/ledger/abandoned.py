"""Processes that left entries open in a durable ledger: which of them are given up, and when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from expost.ledger.engine import Engine
from expost.ledger.liveness import Judge

MONTH = 30 * 86400 * 10**6
"""After how many microseconds of silence a process that left nothing open is forgotten."""


class Abandoned:
    """Finds what was abandoned in one ledger: by processes that ended or are silent, or with a lease."""

    def __init__(self, engine: Engine, ledger: int) -> None:
        self._engine, self._ledger = engine, ledger
        settings = engine.settings
        self._judge = Judge(
            settings.beat, settings.silence, settings.timer, local=engine.local, processes=settings.processes
        )

    def has_leases(self) -> bool:
        """Whether there are open entries with a lease, or of a process that was given up."""
        return bool(self._engine.rows(
            f"SELECT 1 FROM {self._engine.open_entries} WHERE e.ledger = ? AND e.state = 'reserved' "
            "AND (e.lease IS NOT NULL OR EXISTS (SELECT 1 FROM expost_owner o "
            "WHERE o.id = e.owner AND o.expired = 1)) LIMIT 1",
            self._ledger,
        ))  # fmt: skip

    def has_forgotten(self) -> bool:
        """Whether there are processes that were silent for a month and left nothing open."""
        return bool(self._engine.rows(
            "SELECT 1 FROM expost_owner o WHERE o.ledger = ? AND o.seen < ? AND NOT EXISTS "
            f"(SELECT 1 FROM {self._engine.open_entries} WHERE e.ledger = o.ledger AND e.state = 'reserved' "
            "AND e.owner = o.id) LIMIT 1",
            self._ledger, self._engine.now() - MONTH,
        ))  # fmt: skip

    def given_up(self, look: Callable[[], None]) -> tuple[str, ...]:
        """The processes that have ended, or are given up now, of those that left something open. ``look`` records that
        this process checked."""
        owners = self._engine.rows(
            f"SELECT DISTINCT o.id, o.identity, o.beats, o.seen FROM {self._engine.open_entries} "
            "JOIN expost_owner o ON o.id = e.owner WHERE e.ledger = ? AND e.state = 'reserved' AND o.expired = 0",
            self._ledger,
        )
        dead = self._judge.given_up((row[:3] for row in owners), self._engine.owner(self._ledger))
        return (*dead, *self._silent({row[0]: row[3] for row in owners if row[0] in self._judge.doubtful}, look))

    def _silent(self, seen: dict[str, int], look: Callable[[], None]) -> list[str]:
        """The processes that two checks, this one and one ``silence`` earlier, both found silent for ``silence``.

        A write to the ledger counts as a check. If there was none since, this check is recorded for later ones.
        """
        if not seen:
            return []
        silence, now = int(self._engine.settings.silence * 1e6), self._engine.now()
        late = {name: last + silence for name, last in seen.items() if last + silence <= now}
        if not late:
            return []
        sql = "SELECT seen FROM expost_owner WHERE ledger = ? AND seen BETWEEN ? AND ?"
        looks = sorted(when for (when,) in self._engine.rows(sql, self._ledger, min(late.values()), now))

        def looked(since: int, until: int) -> bool:
            """Whether a process wrote to the ledger in that interval."""
            first = bisect_left(looks, since)
            return first < len(looks) and looks[first] <= until

        if not all(looked(since, now) for since in late.values()):
            look()
        return [name for name, since in late.items() if looked(since, now - silence)]
