"""`Quote`: what a plan would cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.accounting.amounts import Amounts
from expost.cost import Cost
from expost.guarantee import Guarantee
from expost.ledger.arguments import as_guarantees
from expost.mechanism import Mechanism

if TYPE_CHECKING:
    from expost.ledger.ledger import Ledger


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


def quoted(ledger: Ledger, planned: Iterable[Mechanism | Guarantee]) -> Quote:
    """What mechanisms would cost together, on every meter. Mechanisms are taken to run in one go if they can."""
    from expost.accounting.tariff import together
    from expost.ledger.imagined import Imagined

    now = Imagined.of(ledger)
    plans: Any = list(planned) if isinstance(planned, Iterable) else planned
    as_guarantees(plans)
    priced = [now.charges(plan) for plan in plans]
    worst, best = together(worst for worst, _ in priced), together(best for _, best in priced)
    if now.meters is None:
        return Quote(worst.cost, best.cost, now.remaining)
    room = now.after(worst) is not None
    return Quote(worst.cost, best.cost, now.remaining, worst.amounts, best.amounts, room)
