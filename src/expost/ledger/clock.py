"""The clock of a ledger: full hours, never backwards, and never a year ahead unless a person confirms it."""

from __future__ import annotations

from datetime import UTC, datetime

from expost.errors import LedgerUnavailable
from expost.ledger.operations import (
    Close,
    Create,
    CreateAccount,
    DropOutputs,
    Operation,
    RaiseLimit,
    Remark,
    Reserve,
    SetClock,
)

HOUR = 3_600_000_000
TRUST = 366 * 24 * HOUR
"""How far a clock may be ahead of the last line before a person has to confirm it."""
TICKS: frozenset[type] = frozenset({CreateAccount, RaiseLimit, Close, Remark, DropOutputs, Reserve})
"""Operations that advance the ledger's clock. Endings do not: when work ended may depend on the data."""

SETS: frozenset[type] = frozenset({Create, SetClock})
"""Operations that set the ledger's clock to the machine's clock."""
TIMED = TICKS | SETS
"""All operations that read the machine's clock."""


def full_hour(at: int) -> int:
    """A time rounded down to the full hour, both in microseconds since 1970."""
    return at - at % HOUR


def tick(at: int, now: int, operation: Operation) -> int:
    """The ledger's clock after an operation; it never goes backwards.

    Raises ``LedgerUnavailable`` if the machine's clock is ahead by more than :data:`TRUST`; ``Close`` then leaves the
    ledger's clock unchanged. Only ``SetClock``, which is in the audit trail with a name and a reason, moves it so far,
    or back.
    """
    if type(operation) in SETS:
        return full_hour(now)
    if type(operation) not in TICKS or 0 <= now - at < HOUR:  # in the same hour, as most are
        return at
    if now - at > TRUST and type(operation) is Close:  # closing is always possible
        return at
    if now - at > TRUST:
        raise LedgerUnavailable(
            f"this machine's clock shows {_day(now)}, more than a year after the last line of the audit trail, of "
            f"{_day(at)}: correct the clock or, if it is right, confirm it with `expost ledger clock`"
        )
    return max(at, full_hour(now))


def _day(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d}"
