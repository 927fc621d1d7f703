"""The operations on a ledger: what is asked of its rules, sent to its database, and recorded in its audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from expost.accounting.amounts import Amounts
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
    capacity: Amounts | None = None
    """The limit on these meters, if it is known."""
    drawn: str | None = None
    """What tells the ledger from others of its name, at whatever address and hour: random, if it is durable."""


class CreateAccount(NamedTuple):
    """Create an account below an existing one."""

    path: Path
    limit: Cost
    capacity: Amounts | None = None
    note: Note | None = None


class RaiseLimit(NamedTuple):
    """Raise the limit of an account; None leaves ε or δ as it is."""

    path: Path
    epsilon: Cost | None
    delta: Cost | None
    note: Note
    capacity: Amounts | None = None


class Close(NamedTuple):
    """Accept no more reservations, in an account and below it."""

    path: Path
    note: Note
    to: str | None = None
    """The database in which the ledger goes on, if it is closed only here: its address and its mark."""


class Reopen(NamedTuple):
    """Go on in another database: the line that closed the ledger where it was is quoted by its number and hash."""

    note: Note
    closed: tuple[int, str]


class Remark(NamedTuple):
    """Record that something was done about an account, elsewhere than in the books. Changes no balance."""

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
    """Charge a part, and refund the rest. ``output``, which is stored if the entry has a key, is the text of the output
    and a nonce; the trail has its ``digest``.
    """

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
    Create
    | CreateAccount
    | RaiseLimit
    | Close
    | Reopen
    | Remark
    | SetClock
    | DropOutputs
    | Reserve
    | Begin
    | Settle
    | Forfeit
    | Void
)
Ending: TypeAlias = Settle | Forfeit | Void
"""What ends an entry."""
EVENTS: dict[type, str] = {
    Create: "create",
    CreateAccount: "account",
    RaiseLimit: "raise",
    Close: "close",
    Reopen: "reopen",
    Remark: "remark",
    SetClock: "clock",
    DropOutputs: "drop",
    Reserve: "reserve",
    Begin: "begin",
    Settle: "settle",
    Forfeit: "forfeit",
    Void: "void",
}
"""The names of operations in the audit trail."""
