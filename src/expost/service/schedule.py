"""The timetable of jobs: when each starts and is answered, from what is public alone, so that no job makes others late.

The questions of a data set are asked one at a time, in its *lane*, which a job has for a *pace* per question. It is
accepted for an answer time by which it is done, whatever else was accepted before or will be, if no question takes
longer than its pace; and one that does takes nothing from others, for it is given up as soon as somebody waits.

Proof: lem-timetable
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Placed(NamedTuple):
    """A job in the timetable of a lane, in microseconds."""

    start: int
    due: int
    work: int
    """For how long it may have the lane."""


class Times(NamedTuple):
    """When a job starts, when the account's next one may, and when it is answered."""

    start: int
    next: int
    due: int


@dataclass(frozen=True)
class Schedule:
    """How jobs are placed in a lane, in microseconds.

    The jobs of an account follow one another at the pace that all accounts with jobs leave it, so that nobody's jobs
    keep others' waiting; each is answered at the first answer time, a margin after its own work, at which it and all
    that was accepted before will be done.
    """

    every: int
    margin: int
    pace: int
    """The time that a question may take while others wait."""

    def times(self, now: int, free_at: int, questions: int, accounts: int, placed: Iterable[Placed] = ()) -> Times:
        """The times of a new job of an account that is free at a time, among those of so many accounts."""
        start, work = max(now, free_at), questions * self.pace
        others = [each._replace(start=max(each.start, now)) for each in placed]  # what is gone may have come before
        return Times(start, start + work * max(1, accounts), self._fitting(start, work, others))

    def due(self, start: int, work: int = 0) -> int:
        """The first answer time a margin after some work."""
        return -(-(start + self.margin + work) // self.every) * self.every

    def _fitting(self, start: int, work: int, placed: list[Placed]) -> int:
        """The first answer time that leaves all others of a lane theirs, and by which it is done itself."""
        table = _Table(placed)
        due = max(self.due(start, work + self.pace), table.last_without_room(start, work, self.pace) + 1)
        while True:
            due = -(-due // self.every) * self.every
            done = table.free(start, due) + work + self.pace
            if done <= due:
                return due
            due = done


class _Table:
    """What a lane was given. ``busy[a, b]`` is the work of all that start at the a-th start or later and are due at the
    b-th due time or before.
    """

    def __init__(self, placed: list[Placed]) -> None:
        start, due, work = np.array(placed, np.int64).reshape(-1, 3).T
        self._start, row = np.unique(start, return_inverse=True)
        self._dues, column = np.unique(due, return_inverse=True)
        busy = np.zeros((len(self._start) + 1, len(self._dues)), np.int64)
        np.add.at(busy, (row, column), work)
        self._busy = np.cumsum(np.cumsum(busy[::-1], 0)[::-1], 1)

    def free(self, start: int, due: int) -> int:
        """When the lane is free of what may come before a job that starts and is due then, busy since any time."""
        column = int(np.searchsorted(self._dues, due, side="right")) - 1
        if column < 0:
            return start
        since = np.append(self._start[self._start <= start], start)
        places = np.append(np.arange(len(since) - 1), np.searchsorted(self._start, start))
        return int((since + self._busy[places, column]).max())

    def last_without_room(self, start: int, work: int, pace: int) -> int:
        """The last due time by which not all would be done, if this work came before it; -1 if there is none."""
        since = self._start <= start
        done = self._start[since, None] + self._busy[:-1][since] + work + pace
        at_start = start + self._busy[np.searchsorted(self._start, start)] + work + pace
        late = (done > self._dues).any(0) | (at_start > self._dues)
        return int(self._dues[late].max(initial=-1))
