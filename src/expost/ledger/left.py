"""Processes that left entries open in a durable ledger, and whether what is reserved is the sum of open entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from expost.accounting.amounts import NO_AMOUNTS, Amounts
from expost.errors import LedgerCorrupt
from expost.ledger.engine import Engine
from expost.ledger.liveness import Judge
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


class LeftBehind:
    """Checks the processes and open entries of one ledger."""

    def __init__(self, engine: Engine, ledger: int, metered: object = None) -> None:
        self._engine, self._ledger, self._metered = engine, ledger, metered
        settings = engine.settings
        self._judge = Judge(settings.beat, settings.silence, settings.timer, local=engine.local)

    def is_sound(self) -> bool:
        """Whether what is reserved is the sum of the open entries, in every account and on every meter."""
        unsound = self._engine.rows(_UNSOUND.format(open=self._engine.open_entries), self._ledger, self._ledger)
        return not unsound and (self._metered is None or self._are_meters_sound())

    def _are_meters_sound(self) -> bool:
        with self._engine.snapshot() as rows:
            accounts = rows("SELECT id, parent, meters FROM expost_account WHERE ledger = ? ORDER BY id", self._ledger)
            entries = rows(
                f"SELECT e.account, e.meters FROM {self._engine.open_entries} WHERE e.ledger = ? "
                "AND e.state = 'reserved'", self._ledger,
            )  # fmt: skip
        try:
            return _add_up(accounts, entries)
        except LedgerCorrupt:  # numbers that cannot be read
            return False

    def has_leases(self) -> bool:
        """Whether there are open entries with a lease, or of a process that was given up."""
        return bool(self._engine.rows(
            f"SELECT 1 FROM {self._engine.open_entries} WHERE e.ledger = ? AND e.state = 'reserved' "
            "AND (e.lease IS NOT NULL OR EXISTS (SELECT 1 FROM expost_owner o "
            "WHERE o.id = e.owner AND o.expired = 1)) LIMIT 1",
            self._ledger,
        ))  # fmt: skip

    def given_up(self, look: Callable[[], None]) -> tuple[str, ...]:
        """The processes that have ended, or are given up now. ``look`` records that this process checked."""
        owners = self._engine.rows(
            "SELECT id, identity, beats, seen FROM expost_owner WHERE ledger = ? AND expired = 0", self._ledger
        )
        dead = self._judge.given_up((row[:3] for row in owners), self._engine.owner(self._ledger))
        return (*dead, *self._silent({row[0]: row[3] for row in owners if row[0] in self._judge.doubtful}, look))

    def _silent(self, seen: dict[str, int], look: Callable[[], None]) -> list[str]:
        """The processes that two checks, this one and one ``silence`` earlier, both found silent for ``silence``.

        A write to the ledger counts as a check. If there was none since, this check is recorded for later ones.
        """
        if not seen:
            return []
        silence, now = int(self._engine.settings.silence * 1e6), self._engine.now()
        late = {name: last + silence for name, last in seen.items() if last + silence <= now}
        if not all(self._looked(since, now) for since in late.values()):
            look()
        return [name for name, since in late.items() if self._looked(since, now - silence)]

    def _looked(self, since: int, until: int) -> bool:
        """Whether a process wrote to the ledger in that interval."""
        sql = "SELECT 1 FROM expost_owner WHERE ledger = ? AND expired = {} AND seen BETWEEN ? AND ? LIMIT 1"
        return any(self._engine.rows(sql.format(expired), self._ledger, since, until) for expired in (0, 1))


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
