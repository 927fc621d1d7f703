"""Whether what is reserved in a durable ledger is the sum of its open entries."""

from __future__ import annotations

from expost.ledger.engine import Engine
from expost.ledger.rows import RESERVED


def _each(text: str) -> str:
    """A text for each column of what is reserved."""
    return ", ".join(text.format(column) for column in RESERVED.split(", "))


# The sum of open entries at each level, minus what is reserved there. Parents have lower ids, so the recursion ends.
_UNSOUND = (
    f"WITH RECURSIVE held(account, {RESERVED}) AS (SELECT e.account, {_each('sum(e.{})')} FROM {{open}} "
    f"WHERE e.ledger = ? AND e.state = 'reserved' GROUP BY e.account UNION ALL SELECT a.parent, {_each('o.{}')} "
    "FROM held o JOIN expost_account a ON a.id = o.account WHERE a.parent < a.id) "
    f"SELECT 1 FROM (SELECT account, {RESERVED} FROM held "
    f"UNION ALL SELECT id, {_each('-{}')} FROM expost_account WHERE ledger = ?) one "
    f"GROUP BY account HAVING {_each('sum({}) <> 0').replace(', ', ' OR ')} LIMIT 1"
)


def is_sound(engine: Engine, ledger: int) -> bool:
    """Whether what is reserved is the sum of the open entries, in every account and on every meter."""
    return not engine.rows(_UNSOUND.format(open=engine.open_entries), ledger, ledger)
