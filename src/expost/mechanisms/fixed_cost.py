"""Mechanisms that cost the same whatever comes out."""

from __future__ import annotations

from typing import Any

from expost.cost import Number
from expost.guarantee import Guarantee, Part
from expost.mechanism import In, Mechanism, Out

RELEASED = "released"
"""The only part of a mechanism that costs the same whatever comes out."""


class FixedCost(Mechanism[In, Out]):
    """A mechanism with ε for every output: of its own ``neighbours``, or, without such a field, by substitution."""

    epsilon: Number

    @property
    def guarantee(self) -> Guarantee:
        """ε for every output."""
        return Guarantee.uniform(self.epsilon, neighbours=getattr(self, "neighbours", "substitute"))

    def part_of(self, output: Any) -> Part:
        """All outputs cost the same."""
        return RELEASED
