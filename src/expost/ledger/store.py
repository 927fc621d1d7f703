"""The seam between a ledger's rules and where its books are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from expost.cost import Cost
from expost.guarantee import Neighbours, Part
from expost.ledger.engine import Settings
from expost.ledger.entry import Balance, Entry, Note, Path, Request, View
from expost.ledger.trail import Event, Head

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


class Store(Protocol):
    """The books. Each method is one atomic step: it happens at every level of the accounts, or not at all.

    At every instant, for every account and everything below it: what was charged, plus the worst case of
    everything still reserved, is within the limit (``docs/theory.md``, thm-ledger).
    """

    @property
    def address(self) -> tuple[str, str] | None:
        """Where another process finds these books: an url and the ledger's name; None if nowhere."""

    @property
    def unit(self) -> str | None:
        """Who one record is about."""

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation that every guarantee in these books is about, once one has fixed it."""

    @property
    def meters(self) -> LedgerMeters | None:
        """The meters beside the simple sum, if these books have any."""

    @property
    def manner(self) -> tuple[Settings | None, bool]:
        """How the books were opened: with which settings, and whether for reading only."""

    def create_account(self, path: Path, limit: Cost) -> None:
        """A new account under an existing one. Its limit may be larger than its parent's."""

    def accounts(self, path: Path) -> tuple[str, ...]:
        """The names directly below an account."""

    def balances(self, path: Path) -> tuple[Balance, ...]:
        """The balance of the account and of every one above it, the ledger's own first, at one instant."""

    def earlier(self, request: Request) -> Entry | None:
        """The entry of the request's key; ``KeyConflict`` if it was another request."""

    def reserve(self, request: Request, *, begin: bool, lease: float | None = None) -> Entry:
        """Reserve the worst case, bound to this process's life, or for ``lease`` seconds whoever lives.

        Raises ``BudgetExceeded``, ``LedgerClosed``, ``AlreadyReserved``, ``NeighbourMismatch``.
        """

    def begin(self, entry: int) -> None:
        """From here on output may have leaked, and the entry can no longer be voided."""

    def settle(self, entry: int, part: Part, output: Any) -> Entry:
        """Charge what the entry's own guarantee asks for this part, and refund the rest.

        Keeps the output if the request had a key. Raises ``UnknownPart``.
        """

    def forfeit(self, entry: int) -> Entry:
        """Charge the worst case."""

    def void(self, entry: int) -> Entry:
        """Charge nothing; only while sampling has not begun."""

    def output(self, entry: int) -> Any:
        """The output that was kept for an entry with a key."""

    def find(self, id_or_key: int | str) -> Entry:
        """The entry of that number or key."""

    def view(self, path: Path, *, last: int | None = None) -> View:
        """Balances and entries of one instant: all entries of the account and of those below, or the last ones."""

    def raise_limit(self, path: Path, epsilon: Cost | None, delta: Cost | None, note: Note) -> None:
        """Allow more from now on; None leaves the ε or δ as it is."""

    def close(self, path: Path, note: Note) -> None:
        """Reserve nothing more, here and below; what is open can still end."""

    def set_clock(self, note: Note) -> None:
        """Accept what the clock shows, though it is far from the last line."""

    def check(self) -> None:
        """Compare what is reserved with the open entries. If they differ, nothing more is reserved."""

    def recover(self) -> int:
        """Forfeit what processes left open that have ended or are given up; how many entries."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """The audit trail, behind a line."""

    def verify(self, known: Head | None, *, since: bool = False) -> Head:
        """Apply the trail to the rules again, from the start or since a known head. Raises ``LedgerCorrupt``."""
