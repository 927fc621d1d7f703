"""The composition experiment in filter form: may the next mechanism run, given what was spent so far?

A *filter* is fixed before the first mechanism runs, and everything else is chosen adaptively: before each
mechanism it sees the ε that each earlier part really cost, every δ, and the worst case of the next
mechanism, and answers CONT or HALT (``docs/theory.md``, Definition def-filter). An *odometer* never
halts for ε; it reads what has been spent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from expost.accounting.amounts import METERS, Amounts, MeterPlaces, basic_capacity
from expost.cost import Cost, Number
from expost.errors import BudgetExceeded, InvalidValue
from expost.mentions import brief

FilterState = TypeVar("FilterState")


class Decision(Enum):
    """What a filter answers."""

    CONT = "CONT"
    HALT = "HALT"

    def __repr__(self) -> str:
        return self.value


CONT = Decision.CONT
HALT = Decision.HALT


class Filter(Protocol[FilterState]):
    """A rule for going on. It keeps a running state, so that N decisions cost O(N) in all.

    Other ways of accounting (zCDP, Rényi) plug in here with a state of their own.
    """

    def start(self) -> FilterState:
        """The state before anything was charged."""

    def charge(self, state: FilterState, cost: Cost) -> FilterState:
        """The state after a mechanism whose part cost ``cost``."""

    def decide(self, state: FilterState, worst: Cost) -> Decision:
        """May a mechanism run that costs ``worst`` in its worst case?"""


def has_room(capacity: Amounts, used: Amounts) -> bool:
    """The rule of every ledger: some meter has room for all that is used, and so have the δ's.

    What is used is every charge, the worst case of everything that is open, and that of the next mechanism.

    >>> held = basic_capacity(Cost(1))
    >>> has_room(held, Amounts.of(Cost("0.75") + Cost("0.25"))), has_room(held, Amounts.of(Cost("1.000000000001")))
    (True, False)

    Proof: thm-composition, thm-meters
    """
    if used.delta <= capacity.delta:
        for meter in METERS:
            if is_within(meter, capacity, used):
                return True
    return False


def is_within(meter: MeterPlaces, capacity: Amounts, used: Amounts) -> bool:
    """Whether all that one meter counts is within capacity."""
    for count in meter:  # noqa: SIM110  # a generator takes longer, and this runs for every reservation
        if used[count] > capacity[count]:
            return False
    return True


def decide(rule: Filter[FilterState], charges: Iterable[Cost], worst: Cost) -> Decision:
    """The filter as a function of the whole sequence: what was charged, and the next worst case.

    >>> decide(OdpFilter(Cost(1)), [Cost(0.25), Cost(0.25)], Cost(0.5))
    CONT
    """
    state = rule.start()
    for cost in charges:
        state = rule.charge(state, cost)
    return rule.decide(state, worst)


@dataclass(frozen=True, slots=True)
class OdpFilter:
    """CONT while the ε's of the parts that came out, the δ's, and the next worst case fit the limit.

    The filter that every ledger uses. Whatever an adversary does under it is (ε, δ)-differentially
    private for the limit (ε, δ).

    Parameters
    ----------
    limit
        The most that may be spent.

    >>> odp = OdpFilter(Cost(1, delta=1e-6))
    >>> odp.decide(Cost(0.75), Cost(0.25)), odp.decide(Cost(0.75), Cost("0.250000000001"))
    (CONT, HALT)

    Proof: thm-composition
    """

    limit: Cost

    def __post_init__(self) -> None:
        if not isinstance(self.limit, Cost):
            raise InvalidValue(f"a filter's limit is a Cost, got {brief(self.limit)}")

    def start(self) -> Cost:
        """Nothing was charged."""
        return Cost(0)

    def charge(self, state: Cost, cost: Cost) -> Cost:
        """The running sum."""
        return state + cost

    def decide(self, state: Cost, worst: Cost) -> Decision:
        """CONT if the worst case fits beside what was charged."""
        return CONT if has_room(basic_capacity(self.limit), Amounts.of(state + worst)) else HALT


@dataclass(frozen=True, slots=True)
class Odometer:
    """What has been spent so far, readable at any time; only δ has a bound, and it is fixed at the start.

    If the δ's never pass the bound, everything published so far guarantees E = the sum of the ε's of the
    parts that came out, at that δ: an output guarantee for the whole.

    Parameters
    ----------
    delta
        The bound on the sum of all δ's.
    spent
        What has been spent so far. By default nothing.

    >>> odometer = Odometer(delta=1e-6)
    >>> odometer.charge(Cost(0.25)).charge(Cost(0.5, delta=1e-7)).reading
    Cost(0.75, delta=1e-6)

    Proof: thm-composition-is-odp
    """

    delta: Number
    spent: Cost = field(default_factory=lambda: Cost(0))

    def __post_init__(self) -> None:
        _ = self.bound  # refuses a δ that is none

    @property
    def bound(self) -> Cost:
        """The δ that was fixed at the start, as a cost of no ε."""
        return Cost.within(0, self.delta)

    @property
    def reading(self) -> Cost:
        """(Σ ε of the parts that came out, the δ that was fixed)."""
        return Cost.of_units(self.spent.epsilon_units, self.bound.delta_units)

    def charge(self, cost: Cost) -> Odometer:
        """The odometer after one more mechanism; refuses a δ beyond the bound."""
        remaining = Cost.of_units(cost.epsilon_units, self.bound.delta_units - self.spent.delta_units)
        if not cost <= remaining:
            raise BudgetExceeded(cost, remaining, "odometer")
        return Odometer(self.delta, self.spent + cost)
