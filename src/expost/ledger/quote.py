"""`Quote`: what a plan would cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.accounting.amounts import Amounts
from expost.cost import Cost
from expost.guarantee import Guarantee
from expost.ledger.arguments import as_guarantees
from expost.ledger.whose import check_plan
from expost.mechanism import Mechanism

if TYPE_CHECKING:
    from expost.ledger.ledger import Ledger


class Quote(NamedTuple):
    """What a plan would cost. δ is the same at worst and at best: it is never refunded.

    Attributes
    ----------
    worst, best
        Its cost at worst and at best; with several meters without the noise that takes no δ.
    remaining
        What remains of the ledger.
    worst_amounts, best_amounts
        Its cost on every meter, if the ledger has several.
    has_room
        Whether some meter has room for the worst case of all of it.
    known
        The entries that have published what is asked already: these questions are free.
    """

    worst: Cost
    best: Cost
    remaining: Cost
    worst_amounts: Amounts | None = None
    best_amounts: Amounts | None = None
    has_room: bool = False
    known: tuple[int, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether even the worst case can be reserved now."""
        return self.has_room


def quoted(
    ledger: Ledger, planned: Iterable[Mechanism | Guarantee], known: Mapping[int, int] = MappingProxyType({})
) -> Quote:
    """What mechanisms would cost together, on every meter. Those that can be run are priced as runs.

    ``known`` has the entries of those that cost nothing, by their places in the plan.
    """
    from expost.accounting.amounts import together
    from expost.ledger.imagined import Imagined

    now = Imagined.of(ledger)
    plans: Any = list(planned) if isinstance(planned, Iterable) else planned
    check_plan(ledger, ledger.name.partition("/")[0], as_guarantees(plans))
    priced = [now.charges(plan) for place, plan in enumerate(plans) if place not in known]
    entries = tuple(known.values())
    worst, best = together(worst for worst, _ in priced), together(best for _, best in priced)
    room = not priced or now.after(worst) is not None
    if now.meters is None:
        return Quote(worst.cost, best.cost, now.remaining, has_room=room, known=entries)
    return Quote(worst.cost, best.cost, now.remaining, worst, best, room, entries)
