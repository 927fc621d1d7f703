"""The filter of several meters: a round may begin if at least one meter has room for its worst case."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from expost.accounting.filters import CONT, HALT, Decision
from expost.accounting.meters import Affordable, BasicMeter, GaussianMeter, Meter, RenyiMeter, Round
from expost.cost import Cost
from expost.errors import InvalidValue
from expost.guarantee import Part
from expost.mentions import brief


@dataclass(frozen=True)
class MeterSum:
    """What a meter counts: a sum in each dimension, and the number of rounds that have no price on it.

    Those are counted, not summed up, so that one that was voided can be subtracted again.
    """

    units: tuple[int, ...]
    unpriced: int = 0

    def __add__(self, other: MeterSum) -> MeterSum:
        units = tuple(a + b for a, b in zip(self.units, other.units, strict=True))
        return MeterSum(units, self.unpriced + other.unpriced)

    def __sub__(self, other: MeterSum) -> MeterSum:
        units = tuple(a - b for a, b in zip(self.units, other.units, strict=True))
        return MeterSum(units, self.unpriced - other.unpriced)

    def remaining(self, capacity: tuple[int, ...]) -> tuple[int, ...] | None:
        """What remains in each dimension; None if one is exceeded or a round has no price."""
        remaining = tuple(most - used for used, most in zip(self.units, capacity, strict=True))
        return None if self.unpriced or min(remaining) < 0 else remaining


@dataclass(frozen=True)
class Metered:
    """What was charged, and what is reserved, together: δ, and an amount on each meter."""

    delta: int
    amounts: tuple[MeterSum, ...]

    def __add__(self, other: Metered) -> Metered:
        amounts = tuple(a + b for a, b in zip(self.amounts, other.amounts, strict=True))
        return Metered(self.delta + other.delta, amounts)

    def __sub__(self, other: Metered) -> Metered:
        amounts = tuple(a - b for a, b in zip(self.amounts, other.amounts, strict=True))
        return Metered(self.delta - other.delta, amounts)


@dataclass(frozen=True)
class MeterFilter:
    """CONT while the rounds' δ's fit and at least one meter has room for the worst case of the next round.

    Parameters
    ----------
    limit
        The (ε, δ) of everything together.
    meters
        The meters. What their shares leave of δ is for the rounds' own δ's.

    Every meter is charged the part that came out. Whatever an adversary does under it is (ε, δ)-differentially private
    for the limit (ε, δ).

    >>> rule = MeterFilter.of(Cost(1, delta=1e-6))
    >>> [type(meter).__name__ for meter in rule.meters]
    ['BasicMeter', 'RenyiMeter', 'GaussianMeter']

    Proof: thm-meters
    """

    limit: Cost
    meters: tuple[Meter, ...]

    def __post_init__(self) -> None:
        if not self.meters:
            raise InvalidValue("a filter needs at least one meter: take MeterFilter.of(limit)")
        if self.rounds_delta < 0:
            raise InvalidValue(
                f"the shares of the meters exceed the limit's δ, which is {self.limit.delta:g}: take smaller ones"
            )

    @classmethod
    def of(cls, limit: Cost) -> Self:
        """The default: half of δ for Gaussian noise, a quarter for Rényi prices, a quarter for the rounds' own δ's.

        A meter that has no room under the limit is left out.
        """
        if not isinstance(limit, Cost):
            raise InvalidValue(f"a filter's limit is a Cost, got {brief(limit)}")
        epsilon, quarter = limit.exact_epsilon, limit.exact_delta / 4
        others = (_renyi(epsilon, quarter), _gaussian(epsilon, 2 * quarter))
        return cls(limit, (BasicMeter((limit.epsilon_units,)), *(meter for meter in others if meter is not None)))

    @property
    def rounds_delta(self) -> int:
        """What the rounds' own δ's may add up to."""
        return self.limit.delta_units - sum(meter.share for meter in self.meters)

    def start(self) -> Metered:
        """Nothing was charged."""
        return Metered(0, tuple(MeterSum((0,) * len(meter.capacity)) for meter in self.meters))

    def decide(self, state: Metered, asked: Round) -> Decision:
        """May this round begin?"""
        after = state + self.worst(asked)
        pairs = zip(self.meters, after.amounts, strict=True)
        room = any(amount.remaining(meter.capacity) is not None for meter, amount in pairs)
        return CONT if room and after.delta <= self.rounds_delta else HALT

    def affordable(self, state: Metered) -> Affordable:
        """The largest ε of a pure guarantee, and the largest ρ of Gaussian noise without a δ, that may begin next."""
        pairs = zip(self.meters, state.amounts, strict=True)
        found = [
            meter.affordable(remaining)
            for meter, amount in pairs
            if (remaining := amount.remaining(meter.capacity)) is not None
        ]
        return Affordable.any_of(found)

    def worst(self, asked: Round) -> Metered:
        """What is reserved for a round: add it when the round begins, subtract it if it is voided."""
        return Metered(asked.delta_units, tuple(_amount(meter, asked, None) for meter in self.meters))

    def price(self, asked: Round, part: Part) -> Metered:
        """What a round is charged in place of its worst case when ``part`` came out. δ is never refunded."""
        return Metered(asked.delta_units, tuple(_amount(meter, asked, (part,)) for meter in self.meters))

    def charge(self, state: Metered, asked: Round, part: Part) -> Metered:
        """The state after a round that was run at once."""
        return state + self.price(asked, part)


def _amount(meter: Meter, asked: Round, came_out: tuple[Part] | None) -> MeterSum:
    prices = meter.prices(asked)
    if prices is None:
        return MeterSum((0,) * len(meter.capacity), 1)
    return MeterSum(tuple(each.worst if came_out is None else each.of(*came_out) for each in prices))


def _renyi(epsilon: Fraction, share: Fraction) -> RenyiMeter | None:
    try:
        return RenyiMeter.of(epsilon, share)
    except InvalidValue:
        return None


def _gaussian(epsilon: Fraction, share: Fraction) -> GaussianMeter | None:
    try:
        meter = GaussianMeter.of(epsilon, share)
    except InvalidValue:
        return None
    return meter if meter.capacity[1] else None
