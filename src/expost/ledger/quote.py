"""`Quote`: what a plan would cost."""

from __future__ import annotations

from typing import NamedTuple

from expost.cost import Cost


class Quote(NamedTuple):
    """What a plan would cost. δ is the same at worst and at best: it is never refunded."""

    worst: Cost
    best: Cost
    remaining: Cost

    @property
    def fits(self) -> bool:
        """Whether even the worst case can be asked for now."""
        return self.worst <= self.remaining
