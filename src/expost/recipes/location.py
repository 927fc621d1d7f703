"""Location and spread: an inter-quartile range, then the median with everything that is left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost.cost import Cost, Number, exact
from expost.errors import BudgetExceeded, InvalidValue
from expost.ledger import Ledger
from expost.mechanism import Release
from expost.mechanisms import ProposeTestRelease, StableInterquartileRange, StableMedian, StableNoisyInterquartileRange
from expost.mechanisms.interquantile import Bin
from expost.mechanisms.order import check_records


@dataclass(frozen=True)
class LocationAndSpread:
    """The median and the inter-quartile range, either of which may be withheld; and the receipts."""

    location: Release
    spread: Release

    @property
    def charged(self) -> Cost:
        """What both steps cost."""
        return self.location.charged + self.spread.charged

    def __str__(self) -> str:
        return f"{self.location}\n{self.spread}"


def location_and_spread(
    ledger: Ledger,
    data: Any,
    *,
    fallback: Number,
    spread: StableInterquartileRange | StableNoisyInterquartileRange | None = None,
    slack: Number = 4,
    label: str | None = None,
) -> LocationAndSpread:
    """The inter-quartile range, and then the median with all that is left in the ledger.

    The median's proposed sensitivity is scaled by the range that came out; if that was withheld, or is 0, by
    ``fallback``, a public guess. What the range did not cost, the median gets: with the default half of what was
    reserved if the first scale answered; with a :class:`~expost.mechanisms.StableNoisyInterquartileRange`, the paper's
    analysis, a third if it was withheld. ``spread`` is by default a
    :class:`~expost.mechanisms.StableInterquartileRange` with half of the ledger's ε and δ.

    Proof: thm-location-and-spread
    """
    size = check_records(data, "location and spread")
    if exact(fallback, "fallback") <= 0:
        raise InvalidValue(f"fallback is a public guess of the inter-quartile range, above 0, got {fallback!r}")
    if not Fraction(1, 10**6) <= exact(slack, "slack") <= 10**6:
        raise InvalidValue(f"slack multiplies the proposed sensitivity; it lies between 1e-6 and 1e6, got {slack!r}")
    if spread is None:
        half = ledger.remaining.split(2)[1]
        spread = StableInterquartileRange(epsilon=half.epsilon, delta=half.delta)
    if spread.guarantee.worst_case <= ledger.remaining:  # else the ledger says so
        _median(ledger.remaining - spread.guarantee.worst_case, exact(fallback, "fallback"), size, slack)
    found = ledger.run(spread, on=data, label=label and f"{label}: spread")
    median = _median(ledger.remaining, _scale(found) or exact(fallback, "fallback"), size, slack)
    return LocationAndSpread(ledger.run(median, on=data, label=label and f"{label}: location"), found)


def _scale(found: Release) -> Fraction | None:
    """The published range, if there is one and it is of a size that a grid can have."""
    if found.withheld:
        return None
    scale = exact(found.value.upper if isinstance(found.value, Bin) else found.value, "scale")
    return scale if Fraction(1, 2**800) < scale < 2**800 else None


def _median(left: Cost, scale: Fraction, size: int, slack: Number) -> StableMedian:
    return StableMedian.scaled(scale, size=size, epsilon=left.epsilon, delta=left.delta, slack=slack)


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
    ledger: Ledger, data: Any, *, epsilon: Number, delta: Number, base: Number = 2, missing: Number = 0
) -> RangeInTwo:
    """The paper's analysis of the inter-quartile range as two mechanisms, for comparison with the others.

    Each discretisation is a mechanism of its own, with ``epsilon`` for its test, as much for its noise, and ``delta``.
    The second is run only if the first was withheld; which is first is drawn at random. Charges 2ε, 3ε or (nothing
    came out) 2ε, and δ for each leg that was run.

    Proof: thm-composition
    """
    check_records(data, "the inter-quartile range")
    both = StableNoisyInterquartileRange(epsilon=3 * exact(epsilon, "ε"), delta=delta, base=base, missing=missing)
    most = Cost(3 * exact(epsilon, "ε"), 2 * exact(delta, "δ"))
    if not most <= ledger.remaining:
        raise BudgetExceeded(most, ledger.remaining, ledger.name)
    proposals = both.proposals(both.legs.test.epsilon)
    swapped = ledger.noise.below(2) == 1
    releases: list[Release] = []
    for proposal in reversed(proposals) if swapped else proposals:
        leg = ProposeTestRelease(proposal=proposal, epsilon=both.legs.test.epsilon, delta=delta)
        releases.append(ledger.run(leg, on=data))
        if not releases[-1].withheld:
            break
    return RangeInTwo(tuple(releases))
