"""The paper's inter-quartile range as two mechanisms, each with its own reservation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost import Cost, Ledger, Release
from expost.cost import Number, exact
from expost.errors import BudgetExceeded
from expost.mechanisms import ProposeTestRelease, StableNoisyInterquartileRange
from expost.mechanisms.stability.order import check_records


@dataclass(frozen=True)
class RangeInTwo:
    """The inter-quartile range as two mechanisms: what came out of each leg that was run."""

    legs: tuple[Release, ...]

    @property
    def value(self) -> Any:
        """The range, or WITHHELD."""
        return self.legs[-1].value

    @property
    def charged(self) -> Cost:
        """What the legs cost."""
        return sum((leg.charged for leg in self.legs), Cost(0))


def interquartile_range_in_two(
    ledger: Ledger, on: Any, *, epsilon: Number, delta: Number, grid: Number = 2, missing: Number = 0
) -> RangeInTwo:
    """The paper's analysis of the inter-quartile range as two mechanisms, for comparison with the others.

    Each discretisation is a mechanism of its own, with ``epsilon`` for its test, as much for its noise, and ``delta``.
    The second is run only if the first was withheld; which is first is drawn at random. Charges 2ε, 3ε or (nothing
    came out) 2ε, and δ for each leg that was run.

    Proof: thm-composition
    """
    check_records(on, "the inter-quartile range")
    both = StableNoisyInterquartileRange(epsilon=3 * exact(epsilon, "ε"), delta=delta, grid=grid, missing=missing)
    most = Cost(3 * exact(epsilon, "ε"), 2 * exact(delta, "δ"))
    if not most <= ledger.remaining:
        raise BudgetExceeded(most, ledger.remaining, ledger.name)
    proposals = both.proposals(both.legs.test.epsilon)
    swapped = ledger.noise.below(2) == 1
    releases: list[Release] = []
    for proposal in reversed(proposals) if swapped else proposals:
        leg = ProposeTestRelease(proposal=proposal, test_epsilon=both.legs.test.epsilon, delta=delta)
        releases.append(ledger.run(leg, on=on))
        if not releases[-1].withheld:
            break
    return RangeInTwo(tuple(releases))
