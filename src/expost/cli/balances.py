"""Balances and entries of ledgers, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from expost.cli.console import out
from expost.cli.tables import print_json

if TYPE_CHECKING:
    from expost.accounting.amounts import Amounts
    from expost.cost import Cost
    from expost.ledger import Entry, Ledger
    from expost.ledger.durable import DurableStore
    from expost.ledger.statement import Totals


def show_balance(ledger: Ledger, as_json: bool) -> None:
    """Print a balance."""
    from expost.ledger.statement import totals_of

    totals = totals_of(ledger)
    if as_json:
        print_json(balance_facts(ledger, totals))
        return
    closed = ", closed" * totals.closed
    title = f"{ledger.name} (unit {ledger.unit}, neighbours {ledger.neighbours}{closed})"
    lines = [title, *(f"  {what:9}  {cost}" for what, cost in totals.costs.items())]
    lines += [f"  {reading}" for reading in ledger.meters if len(ledger.meters) > 1]
    out.print("\n".join(lines), soft_wrap=True)


def balance_facts(ledger: Ledger, totals: Totals | None = None) -> dict[str, Any]:
    """What is known of an account, for other programs."""
    from expost.ledger.statement import totals_of

    totals = totals or totals_of(ledger)
    return {
        "name": ledger.name,
        "unit": ledger.unit,
        "neighbours": ledger.neighbours,
        "closed": totals.closed,
        **{what: cost.to_json() for what, cost in totals.costs.items()},
        **_meters(ledger),
    }


def accounts_of(store: DurableStore) -> Iterator[tuple[str, bool, dict[str, Cost], dict[str, Any]]]:
    """All accounts of a ledger: the name, whether it was closed, its costs, and all of it for other programs."""
    from expost.ledger import Remaining
    from expost.ledger.metered import balance_shown
    from expost.ledger.readings import readings

    found = store.all_balances()
    for path in found:
        levels = tuple(found[path[: depth + 1]] for depth in range(len(path)))
        name, closed = "/".join(path), any(level.closed for level in levels)
        costs = balance_shown(store.meters, levels)
        facts = {"name": name, "unit": store.unit, "neighbours": store.neighbours, "closed": closed}
        facts |= {what: cost.to_json() for what, cost in costs.items()}
        if isinstance(left := costs["remaining"], Remaining):
            meters = [reading._asdict() for reading in readings(store.meters, levels[-1])]
            facts |= {"meters": meters, "remaining_rho": left.rho_text}
        yield name, closed, costs, facts


def _meters(ledger: Ledger) -> dict[str, Any]:
    """What several meters show, in units of 10⁻¹², and the ρ of Gaussian noise that remains."""
    from expost.ledger import Remaining

    remaining = ledger.remaining
    if not isinstance(remaining, Remaining):
        return {}
    return {"meters": [reading._asdict() for reading in ledger.meters], "remaining_rho": remaining.rho_text}


def entry_row(entry: Entry) -> tuple[str, ...]:
    """An entry as cells of a table."""
    when, part = f"{entry.when:%Y-%m-%d %H:00}", "" if entry.part is None else str(entry.part)
    costs = ("" if used is None else str(used) for used in entry.used)
    return str(entry.id), when, entry.account, entry.what, entry.state, part, *costs


def _on_meters(what: str, entry: Entry, amounts: Amounts | None) -> dict[str, Any]:
    """Amounts in units, where there are several meters."""
    return {f"{what}_amounts": amounts._asdict()} if entry.is_metered and amounts is not None else {}


def entry_facts(entry: Entry) -> dict[str, Any]:
    """What a ledger's line says about an entry. Not what was published."""
    return {
        "id": entry.id,
        "account": entry.account,
        "operation": entry.operation,
        "what": entry.what,
        "unit": entry.unit,
        "key": entry.key,
        "state": entry.state,
        "part": entry.part,
        "reserved": entry.reserved.to_json(),
        "charged": None if entry.charged is None else entry.charged.to_json(),
        "refunded": None if entry.refunded is None else entry.refunded.to_json(),
        **_on_meters("reserved", entry, entry.reserved_amounts),
        **_on_meters("charged", entry, entry.amounts),
        "reserved_at": entry.when.isoformat(),
    }
