"""The operations on a ledger: what is asked of its rules, sent to its database, and recorded in its audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from expost.accounting.amounts import Capacity
from expost.cost import Cost
from expost.guarantee import Neighbours, Part
from expost.ledger.entry import Note, Path, Request

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


class Create(NamedTuple):
    """Create a ledger."""

    name: str
    limit: Cost
    neighbours: Neighbours | None
    unit: str | None
    meters: LedgerMeters | None = None
    """Other meters than the basic sum, if there are any."""
    capacity: Capacity | None = None
    """The limit on these meters, if it is known."""


class CreateAccount(NamedTuple):
    """Create an account below an existing one."""

    path: Path
    limit: Cost
    capacity: Capacity | None = None


class RaiseLimit(NamedTuple):
    """Raise the limit of an account; None leaves ε or δ as it is."""

    path: Path
    epsilon: Cost | None
    delta: Cost | None
    note: Note
    capacity: Capacity | None = None


class Close(NamedTuple):
    """Accept no more reservations, in an account and below it."""

    path: Path
    note: Note


class SetClock(NamedTuple):
    """Accept the machine's clock, though it is far from the time of the last line."""

    note: Note


class DropOutputs(NamedTuple):
    """Delete the stored outputs of entries up to a number, and nothing else."""

    upto: int
    note: Note


class Reserve(NamedTuple):
    """Reserve a worst case at every level, for a process (``owner``) or for ``lease`` microseconds."""

    request: Request
    begun: bool
    owner: str | None = None
    lease: int | None = None


class Begin(NamedTuple):
    """Record that sampling starts: from then on the entry cannot be voided."""

    entry: int


class Settle(NamedTuple):
    """Charge a part, and refund the rest. ``output`` is stored if the entry has a key; the trail has its ``digest``."""

    entry: int
    part: Part
    digest: str | None = None
    output: Any = None


class Forfeit(NamedTuple):
    """Charge the worst case."""

    entry: int


class Void(NamedTuple):
    """Charge nothing."""

    entry: int


Operation: TypeAlias = (
    Create | CreateAccount | RaiseLimit | Close | SetClock | DropOutputs | Reserve | Begin | Settle | Forfeit | Void
)
EVENTS: dict[type, str] = {
    Create: "create",
    CreateAccount: "account",
    RaiseLimit: "raise",
    Close: "close",
    SetClock: "clock",
    DropOutputs: "drop",
    Reserve: "reserve",
    Begin: "begin",
    Settle: "settle",
    Forfeit: "forfeit",
    Void: "void",
}
"""The names of operations in the audit trail."""
