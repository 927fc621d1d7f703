"""Hypothetical balances: whether charges would fit, and what would remain. Nothing is reserved."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from expost.accounting.amounts import METERS, Amounts, together
from expost.cost import Cost
from expost.guarantee import Guarantee, Part
from expost.ledger.entry import Balance, Manner
from expost.ledger.metered import charge_shown, remaining, with_reserved
from expost.ledger.prices import prices_of
from expost.mechanism import Mechanism

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.ledger.ledger import Ledger


class Imagined(NamedTuple):
    """The balances of an account and of all above it, as they would be after some charges."""

    meters: LedgerMeters | None
    levels: tuple[Balance, ...]
    basic_alone: bool = False
    """Whether one of them has only the basic sum, although the ledger has other meters."""

    @classmethod
    def of(cls, ledger: Ledger, levels: tuple[Balance, ...] | None = None) -> Imagined:
        """A ledger or account as it is now, or as it was with these balances."""
        return cls(ledger._store.meters, levels or ledger._store.balances(ledger._path), ledger._basic_alone)

    @property
    def remaining(self) -> Cost:
        """What could still be reserved."""
        return remaining(self.meters, self.levels)

    def charges(self, plan: Mechanism | Guarantee, cheapest: Part | None = None) -> tuple[Amounts, Amounts]:
        """What a request costs at worst, and at best: for the part ``cheapest``, or else the least on each meter.

        A mechanism that can be run, not only opened, is priced as a run.
        """
        guarantee = plan if isinstance(plan, Guarantee) else plan.guarantee
        if self.meters is not None:
            tariff = prices_of(self.meters, _manner(plan), plan, guarantee, basic_alone=self.basic_alone)
            return tariff.worst, tariff.best if cheapest is None else tariff.of(cheapest)
        best = guarantee.best_case if cheapest is None else guarantee.cost_of(cheapest)
        return Amounts.of(guarantee.worst_case), Amounts.of(best)

    def after(self, *charges: Amounts) -> Imagined | None:
        """The balances after these charges, too; None if they do not fit at some level."""
        charge = together(charges)
        levels = [with_reserved(level, charge) for level in self.levels]
        found = tuple(level for level in levels if level is not None)
        return self._replace(levels=found) if len(found) == len(levels) else None

    def unspent(self) -> Imagined:
        """The account by itself, as if nothing had been charged or reserved."""
        own = self.levels[-1]
        return self._replace(levels=(Balance(own.limit, own.capacity),))

    def emptied(self) -> Imagined:
        """The balances if nothing remained."""
        return self._replace(levels=tuple(level._replace(closed=True) for level in self.levels))

    def shown(self, charge: Amounts) -> Cost:
        """A charge as shown to people: ε and δ, or the ρ of noise that takes no δ."""
        return charge_shown(self.meters, charge)

    def taken(self, charge: Amounts) -> float:
        """The share of its limit that a charge takes, on the meter where that is least; above 1 if it does not fit."""
        return max(_taken(level, charge) for level in self.levels)


def _manner(plan: Mechanism | Guarantee) -> Manner:
    if isinstance(plan, Guarantee):
        return "reserve"
    return "open" if type(plan).sample is Mechanism.sample else "run"


def _taken(level: Balance, charge: Amounts) -> float:
    shares = [*map(_share, charge, level.capacity)]
    least = min(max(shares[count] for count in meter) for meter in METERS)
    return max(least, shares[Amounts._fields.index("delta")])


def _share(used: int, most: int) -> float:
    """The share of a capacity, which may be absent."""
    if most < 0 or (used and not most):
        return inf
    return float(Fraction(used, most)) if used else 0.0
