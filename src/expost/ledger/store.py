"""`Store`: where a ledger's books are kept, in memory or in a database."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from expost.cost import Cost
from expost.errors import ExpostError
from expost.guarantee import Neighbours, Part
from expost.ledger.engine import Settings
from expost.ledger.entry import Balance, Entry, Note, Path, Request, State, View
from expost.ledger.operations import Ending
from expost.ledger.shelf import Shelf
from expost.ledger.trail import Head, TrailLine

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


class Store(Protocol):
    """The books of a ledger. Each method is atomic: it takes effect at every level of accounts, or not at all.

    Invariant, for every account with all accounts below it: what was charged, plus the worst case of everything still
    reserved, is within the limit (``docs/theory.md``, thm-ledger).
    """

    @property
    def address(self) -> tuple[str, str] | None:
        """The URL and the ledger's name by which other processes find these books; None if in memory."""

    @property
    def identity(self) -> Hashable:
        """Which books these are: the same for all who read them."""

    @property
    def unit(self) -> str | None:
        """Whose privacy is protected, once a guarantee has fixed it."""

    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbour relation of every guarantee, once one has fixed it."""

    @property
    def meters(self) -> LedgerMeters | None:
        """Other meters than the basic sum, if there are any."""

    @property
    def shelf(self) -> Shelf | None:
        """What is remembered of releases without a key, in memory; None where nothing is."""

    @property
    def manner(self) -> tuple[Settings | None, bool]:
        """The settings with which the books were opened, and whether they are read-only."""

    def one_deadline(self) -> AbstractContextManager[None]:
        """A block in which all calls together take no longer than one may."""

    def create_account(self, path: Path, limit: Cost, note: Note | None = None) -> None:
        """Create an account below an existing one. Its limit may be larger than its parent's."""

    def accounts(self, path: Path) -> tuple[str, ...]:
        """The names directly below an account."""

    def balances(self, path: Path) -> tuple[Balance, ...]:
        """The balances of the account and of all above it, the ledger's own first, in one snapshot."""

    def earlier(self, request: Request) -> Entry | None:
        """The entry of the request's key, if there is one. Raises ``KeyConflict`` if it was for another request."""

    def reserve(self, request: Request, *, begin: bool, lease: float | None = None) -> Entry:
        """Reserve the worst case for as long as this process lives, or for ``lease`` seconds whether it lives or not.

        Raises ``BudgetExceeded``, ``LedgerClosed``, ``AlreadyReserved``, ``NeighbourMismatch``, ``UnitMismatch``.
        """

    def reserve_all(self, requests: Sequence[Request], *, begin: bool) -> list[Entry | ExpostError]:
        """Reserve many worst cases, in order and in few transactions: the entry of each, or why there is none."""

    def end_all(self, endings: Sequence[Ending]) -> list[Entry]:
        """Settle, forfeit or void many entries, in order and in few transactions. An output is given as it is."""

    def begin(self, entry: int) -> None:
        """Record that sampling starts: output may leak from then on, and the entry cannot be voided."""

    def settle(self, entry: int, part: Part, output: Any) -> Entry:
        """Charge the cost of this part in the entry's guarantee, and refund the rest.

        Stores the output if the request had a key. Raises ``UnknownPart``.
        """

    def forfeit(self, entry: int) -> Entry:
        """Charge the worst case."""

    def void(self, entry: int) -> Entry:
        """Charge nothing; allowed only before sampling has begun."""

    def output(self, entry: int) -> Any:
        """The stored output of an entry with a key."""

    def find(self, id_or_key: int | str) -> Entry:
        """The entry of that number or key."""

    def view(self, path: Path, *, last: int | None = None, state: State | None = None) -> View:
        """A snapshot of balances and entries: all entries of the account and of those below, or the last ones, or those
        in a state."""

    def raise_limit(self, path: Path, epsilon: Cost | None, delta: Cost | None, note: Note) -> None:
        """Raise the limit of an account; None leaves ε or δ as it is."""

    def close(self, path: Path, note: Note) -> None:
        """Accept no more reservations, in an account and below it; open entries can still end."""

    def remark(self, path: Path, note: Note) -> None:
        """Record that something was done about an account, elsewhere than in the books."""

    def set_clock(self, note: Note) -> None:
        """Accept the machine's clock, though it is far from the time of the last line."""

    def check(self) -> None:
        """Compare what is reserved with the open entries. Raises, and stops reservations, if they differ."""

    def recover(self) -> int:
        """Forfeit the open entries of processes that have ended or are given up. Returns how many entries."""

    def trail(self, after: int = 0) -> Iterator[TrailLine]:
        """The events of the audit trail after a line."""

    def verify(self, known: Head | None, *, since: bool = False) -> Head:
        """Replay the trail by the rules, from the start or after a known head. Raises ``LedgerCorrupt``."""
