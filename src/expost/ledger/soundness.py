"""Whether what is reserved in a durable ledger is the sum of its open entries."""

from __future__ import annotations

from typing import Any

from expost.accounting.amounts import NO_AMOUNTS, Amounts
from expost.errors import LedgerCorrupt
from expost.ledger.engine import Engine
from expost.ledger.rows import amounts_of, counted_of

# The sum of open entries at each level, minus what is reserved there. Parents have lower ids, so the recursion ends.
_UNSOUND = (
    "WITH RECURSIVE reserved(account, epsilon, delta) AS (SELECT e.account, sum(e.epsilon), sum(e.delta) FROM {open} "
    "WHERE e.ledger = ? AND e.state = 'reserved' GROUP BY e.account UNION ALL SELECT a.parent, r.epsilon, r.delta "
    "FROM reserved r JOIN expost_account a ON a.id = r.account WHERE a.parent < a.id) "
    "SELECT 1 FROM (SELECT account, epsilon, delta FROM reserved "
    "UNION ALL SELECT id, -epsilon_reserved, -delta_reserved FROM expost_account WHERE ledger = ?) one "
    "GROUP BY account HAVING sum(epsilon) <> 0 OR sum(delta) <> 0 LIMIT 1"
)


def is_sound(engine: Engine, ledger: int, *, metered: bool) -> bool:
    """Whether what is reserved is the sum of the open entries, in every account and on every meter."""
    unsound = engine.rows(_UNSOUND.format(open=engine.open_entries), ledger, ledger)
    return not unsound and (not metered or _are_meters_sound(engine, ledger))


def _are_meters_sound(engine: Engine, ledger: int) -> bool:
    with engine.snapshot() as rows:
        accounts = rows("SELECT id, parent, meters FROM expost_account WHERE ledger = ? ORDER BY id", ledger)
        entries = rows(
            f"SELECT e.account, e.meters FROM {engine.open_entries} WHERE e.ledger = ? AND e.state = 'reserved'", ledger
        )
    try:
        return _add_up(accounts, entries)
    except LedgerCorrupt:  # numbers that cannot be read
        return False


def _add_up(accounts: list[Any], entries: list[Any]) -> bool:
    """Whether each account has reserved, on every meter, the sum of the open entries of it and of those below."""
    sums: dict[int, Amounts] = {}
    for account, amounts in entries:
        sums[account] = sums.get(account, NO_AMOUNTS).more(amounts_of(amounts) or NO_AMOUNTS)
    for account, parent, _ in reversed(accounts):  # parents have lower ids
        if parent is not None:
            sums[parent] = sums.get(parent, NO_AMOUNTS).more(sums.get(account, NO_AMOUNTS))
    counted = {account: counted_of(meters) for account, _, meters in accounts}
    return all(found and found[9:] == sums.get(account, NO_AMOUNTS) for account, found in counted.items())
