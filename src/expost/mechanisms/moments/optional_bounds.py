"""What statistics cost that search for a range where no bounds are given."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from expost.checks import split_epsilon
from expost.cost import Number
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, In, Out
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.moments.private_range import WITHHELD_PART, RangeSearch


class OptionalBounds(FixedCost[In, Out]):
    """A mechanism with ε for every output if it has bounds. Otherwise the part is the level of its search for a range.

    Without a clear range the value is withheld before any noise for it is drawn, and the ε of that noise is refunded.

    Proof: thm-moments
    """

    bounds: Any
    _columns: ClassVar[int] = 1

    @property
    def guarantee(self) -> Guarantee:
        """ε for every output; without bounds, the noise and what the search for ranges cost, by its level."""
        if self.bounds is not None:
            return super().guarantee
        return self._search.guarantee(self._budgets[1])

    def part_of(self, output: Any) -> Part:
        """The level of the search, or that there was no range; with bounds, all outputs cost the same."""
        if self.bounds is not None:
            return super().part_of(output)
        return WITHHELD_PART if output is WITHHELD else output.level

    @property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        """Without bounds: ε for ranges, at most, and for the noise."""
        return split_epsilon(self.epsilon, self._search_share, "range_share")

    @property
    def _search_share(self) -> Number:
        return "1/2"

    @property
    def _search(self) -> RangeSearch:
        return RangeSearch(self._budgets[0], "substitute", self._columns)
