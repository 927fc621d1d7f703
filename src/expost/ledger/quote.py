"""`Quote`: what a plan would cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.accounting.amounts import NO_AMOUNTS, Amounts
from expost.cost import Cost
from expost.guarantee import Guarantee
from expost.ledger.arguments import as_guarantees
from expost.ledger.entry import Balance, Manner, Path
from expost.ledger.metered import remaining, with_reserved
from expost.ledger.prices import prices_of
from expost.ledger.store import Store
from expost.mechanism import Mechanism

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Charge, Tariff


class Quote(NamedTuple):
    """What a plan would cost. δ is the same at worst and at best: it is never refunded."""

    worst: Cost
    best: Cost
    remaining: Cost
    worst_amounts: Amounts | None = None
    """On the meters beside the simple sum, if the ledger has any; ``worst`` and ``best`` leave out what takes no δ."""
    best_amounts: Amounts | None = None
    has_room: bool = False
    """Whether at least one meter has room for all of it at worst."""

    @property
    def fits(self) -> bool:
        """Whether even the worst case can be asked for now."""
        return self.has_room if self.worst_amounts is not None else self.worst <= self.remaining


def quoted(store: Store, path: Path, planned: Iterable[Mechanism | Guarantee], *, simple_alone: bool) -> Quote:
    """What mechanisms would cost together, on every meter. Mechanisms are taken to run in one go."""
    plans: Any = list(planned) if isinstance(planned, Iterable) else planned
    guarantees, meters, levels = as_guarantees(plans), store.meters, store.balances(path)
    worst: Cost = sum((each.worst_case for each in guarantees), Cost(0))
    best: Cost = sum((each.best_case for each in guarantees), Cost(0))
    if meters is None:
        return Quote(worst, best, remaining(None, levels))
    found = zip(plans, guarantees, strict=True)
    priced = [prices_of(meters, _manner(plan), plan, each, simple_alone=simple_alone) for plan, each in found]
    return _metered(meters, levels, priced)


def _manner(plan: Mechanism | Guarantee) -> Manner:
    if isinstance(plan, Guarantee):
        return "reserve"
    return "open" if type(plan).sample is Mechanism.sample else "run"


def _metered(meters: LedgerMeters, levels: tuple[Balance, ...], tariffs: list[Tariff]) -> Quote:
    worst, best = _together([each.worst for each in tariffs]), _together([each.best for each in tariffs])
    room = all(with_reserved(level, worst) is not None for level in levels)
    return Quote(worst.cost, best.cost, remaining(meters, levels), worst.amounts, best.amounts, room)


def _together(charges: list[Charge]) -> Charge:
    from expost.accounting.tariff import Charge

    cost, amounts = Cost(0), NO_AMOUNTS
    for charge in charges:
        cost, amounts = cost + charge.cost, amounts.more(charge.amounts)
    return Charge(cost, amounts)
