"""The records that ledgers keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue, KeyConflict, LedgerClosed
from expost.guarantee import Guarantee, Part
from expost.ledger.codec import claim_digest, described
from expost.text import text_of

Operation: TypeAlias = Literal["run", "open", "reserve"]
State: TypeAlias = Literal["reserved", "settled", "forfeited", "voided"]
Path: TypeAlias = tuple[str, ...]
"""An account's name behind the names of those above it, the ledger's own first."""


class Request(NamedTuple):
    """Somebody wants to spend: who, what for, and under which key."""

    operation: Operation
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
        """When it was reserved, to the full hour (UTC). When it ended is not told: that would tell of the work."""
        return datetime.fromtimestamp(self.reserved_at, UTC)

    @property
    def operation(self) -> Operation:
        """``"run"``, ``"open"`` or ``"reserve"``."""
        return self.request.operation

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""
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
        """The worst case that was set aside."""
        return self.request.guarantee.worst_case

    @property
    def refunded(self) -> Cost | None:
        """What came back; None while it is still reserved."""
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
    """What an account may spend, has spent, and has set aside."""

    limit: Cost
    spent: Cost
    reserved: Cost
    closed: bool = False

    @property
    def remaining(self) -> Cost:
        """limit − spent − reserved; nothing once it is closed."""
        return Cost(0) if self.closed else self.limit - self.spent - self.reserved


class Note(NamedTuple):
    """Who changed a limit, and why. It stands in the audit trail."""

    by: str
    reason: str


def refusal(levels: Mapping[Path, Balance], worst: Cost) -> LedgerClosed | BudgetExceeded:
    """Why a request was refused: a closed level, else the shortest of those that are short and what fits at all."""
    for path, balance in levels.items():
        if balance.closed:
            return LedgerClosed("/".join(path))
    left = {path: balance.remaining for path, balance in levels.items()}
    short = {path: remaining for path, remaining in left.items() if not worst <= remaining}
    path = min(short, key=lambda path: short[path].epsilon_units)
    return BudgetExceeded(worst, short[path], "/".join(path), least(left.values()))


def same_request(entry: Entry, request: Request) -> Entry:
    """The entry that a key stands for, if it was for this very request. Of another account's nothing is told."""
    then, now = entry.request, request
    if then.account != now.account:
        raise KeyConflict(str(now.key), "account")
    subject, asked = described(then.subject, keyed=True), described(now.subject, keyed=True)
    differences = {
        "operation": then.operation != now.operation,
        "mechanism": subject.fingerprint != asked.fingerprint,
        "guarantee": claim_digest(then.guarantee) != claim_digest(now.guarantee),
        "label": then.label != now.label,
        "table": bool(subject.data) and subject.data != asked.data,
    }
    for name, differs in differences.items():
        if differs:
            raise KeyConflict(str(now.key), name, entry)
    return entry


def raised(current: Cost, epsilon: Cost | None, delta: Cost | None) -> Cost:
    """The new limit, if it is nowhere below the current one."""
    new = Cost.of_units(
        current.epsilon_units if epsilon is None else epsilon.epsilon_units,
        current.delta_units if delta is None else delta.delta_units,
    )
    if not current <= new:
        raise InvalidValue(f"a limit only goes up: it is {current}, {new} would be less; close() ends spending")
    return new
