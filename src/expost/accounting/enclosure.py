"""Brackets that are as narrow as was asked for, or say why they are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt

from expost.bracket import Bracket

TOLERANCE = 2e-4
"""How wide a bracket may be, relative to its upper end, unless one says otherwise."""
ALL_LOST = "δ is at most what these steps lose whatever ε is"
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Enclosure(Bracket[float]):
    """A bracket, and why it is wider than was asked for.

    Attributes
    ----------
    lower
        The lower bound.
    upper
        The upper bound.
    reason
        Why it is wider than was asked for; empty if it is not.
    """

    reason: str = ""


@dataclass(frozen=True)
class Grids:
    """Where to begin, how fine a grid may be, what it is rounded to, and why there is none that is finer."""

    step: float
    finest: float
    snap: Callable[[float], float]
    reason: str

    @classmethod
    def only(cls, step: float) -> Grids:
        """One that was asked for."""
        return cls(step, step, lambda _: step, f"the grid is {step:g}, as was asked for")


def enclosed(read: Callable[[float], Bracket[float]], enough: Callable[[float], float], grids: Grids) -> Enclosure:
    """What is read on a grid; or on finer ones, while the bracket is wider than is enough for its upper end."""
    step, found = grids.step, read(grids.step)
    for _ in range(_TRIES):
        if found.upper == inf or found.width <= enough(found.upper):
            break
        finer = max(step * max(sqrt(0.7 * enough(found.upper) / found.width), 1 / 8), grids.finest)
        if finer > 0.95 * step:
            break
        step = grids.snap(finer)
        more = read(step)
        found = Bracket(max(found.lower, more.lower), min(found.upper, more.upper))
    wide = found.upper == inf or found.width > enough(found.upper)
    return Enclosure(found.lower, found.upper, "" if not wide else ALL_LOST if found.upper == inf else grids.reason)
