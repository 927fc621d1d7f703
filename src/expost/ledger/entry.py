"""The records that ledgers keep."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from expost.cost import Cost
from expost.guarantee import Guarantee, Part
from expost.text import text_of

Manner: TypeAlias = Literal["run", "open", "reserve"]
"""How something is spent: a mechanism run, an interaction opened, a guarantee reserved."""
State: TypeAlias = Literal["reserved", "settled", "forfeited", "voided"]
Path: TypeAlias = tuple[str, ...]
"""An account's name behind the names of those above it, the ledger's own first."""


class Request(NamedTuple):
    """Somebody wants to spend: who, what for, and under which key."""

    operation: Manner
    account: Path
    subject: Any
    """The mechanism; or, for a reservation, the guarantee."""
    guarantee: Guarantee
    label: str | None
    key: str | None

    def __repr__(self) -> str:
        return f"<{self.operation} of {'/'.join(self.account)!r}: {self.label or text_of(self.subject)}>"


class Entry(NamedTuple):
    """One line of a ledger, as it stood when it was read. Entries do not change; reading again reads anew.

    States: reserved → settled | forfeited | voided. Settled charges the part that came out, forfeited the
    worst case, voided nothing (only where sampling never began).
    """

    id: int
    request: Request
    state: State
    begun: bool
    part: Part | None
    charged: Cost | None
    reserved_at: float
    """By the clock of the books, which shows full hours."""

    @property
    def account(self) -> str:
        """Who: the account's name, behind the names of those above it."""
        return "/".join(self.request.account)

    @property
    def what(self) -> str:
        """What for: the label, or else the mechanism or guarantee."""
        return self.request.label or text_of(self.request.subject)

    @property
    def when(self) -> datetime:
        """When it was reserved, to the full hour (UTC). When it ended is not recorded: that may depend on data."""
        return datetime.fromtimestamp(self.reserved_at, UTC)

    @property
    def operation(self) -> Manner:
        """``"run"``, ``"open"`` or ``"reserve"``."""
        return self.request.operation

    @property
    def guarantee(self) -> Guarantee:
        """What was guaranteed."""
        return self.request.guarantee

    @property
    def label(self) -> str | None:
        """What the caller called it."""
        return self.request.label

    @property
    def key(self) -> str | None:
        """The caller's own name for the request, if it gave one."""
        return self.request.key

    @property
    def reserved(self) -> Cost:
        """The worst case that was reserved."""
        return self.request.guarantee.worst_case

    @property
    def refunded(self) -> Cost | None:
        """What was refunded; None while it is still reserved."""
        return None if self.charged is None else self.reserved - self.charged

    def __repr__(self) -> str:
        charged = "" if self.charged is None else f", charged {self.charged}"
        part = "" if self.part is None else f", part {self.part!r}"
        return (
            f"<entry {self.id} of {self.account!r}: {self.what}, {self.state}{part}, reserved {self.reserved}{charged}>"
        )


def least(costs: Iterable[Cost]) -> Cost:
    """The smaller ε and the smaller δ of them all: what fits everywhere."""
    epsilons, deltas = zip(*((cost.epsilon_units, cost.delta_units) for cost in costs), strict=True)
    return Cost.of_units(min(epsilons), min(deltas))


class Balance(NamedTuple):
    """What an account may spend, has spent, and has reserved."""

    limit: Cost
    spent: Cost
    reserved: Cost
    closed: bool = False
    line: int = 0
    """The line of the audit trail that changed it last."""

    @property
    def remaining(self) -> Cost:
        """limit − spent − reserved; nothing once it is closed."""
        return Cost(0) if self.closed else self.limit - self.spent - self.reserved

    def has_room(self, worst: Cost) -> bool:
        """Whether a worst case can be reserved: what :class:`~expost.accounting.OdpFilter` decides, while open.

        Proof: thm-composition
        """
        limit, spent, reserved, closed, _ = self
        return (
            not closed
            and spent.epsilon_units + reserved.epsilon_units + worst.epsilon_units <= limit.epsilon_units
            and spent.delta_units + reserved.delta_units + worst.delta_units <= limit.delta_units
        )


class View(NamedTuple):
    """An account at one instant."""

    levels: tuple[Balance, ...]
    """The balances of the account and of all above it, the ledger's own first."""
    entries: Iterable[Entry]
    """Its entries and those of all accounts below, in order of reservation."""


class Note(NamedTuple):
    """Who changed a limit, and why. It stands in the audit trail."""

    by: str
    reason: str
