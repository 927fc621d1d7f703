"""The records that ledgers keep."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from expost.accounting.amounts import ABSENT, Amounts, Counted, MeterBalance
from expost.cost import Cost, decimal_text
from expost.guarantee import Guarantee, Part
from expost.text import text_of

if TYPE_CHECKING:
    from expost.accounting.tariff import Tariff

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
    tariff: Tariff | None = None
    """What each part costs on the meters of the ledger, if it has others than the simple sum."""

    @property
    def claim(self) -> Guarantee | Tariff:
        """What the ledger keeps of it: the guarantee, with its prices if it has any."""
        return self.tariff or self.guarantee

    @property
    def worst(self) -> Cost:
        """What is reserved in the simple sum."""
        return self.guarantee.worst_case if self.tariff is None else self.tariff.worst.cost

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
    amounts: Amounts | None = None
    """What was charged on the other meters of the ledger, once it has ended."""

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
        """The worst case that was reserved, in the simple sum."""
        return self.request.worst

    @property
    def reserved_amounts(self) -> Amounts | None:
        """The worst case that was reserved on the other meters, if the ledger has any."""
        return None if self.request.tariff is None else self.request.tariff.worst.amounts

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


class Remaining(Cost):
    """What can still be asked for where there are several meters: (ε, δ), or normal noise of a ρ instead.

    ``epsilon`` is the largest of a guarantee without δ whose parts cost the same, and ``rho`` the largest
    (sensitivity/σ)²/2 of normal noise that takes no δ. One or the other fits, not both.
    """

    __slots__ = ("rho_units",)
    rho_units: int

    @classmethod
    def of(cls, epsilon_units: int, delta_units: int, rho_units: int) -> Self:
        """These numbers of 10⁻¹² ε, 10⁻¹⁸ δ and 10⁻¹² ρ."""
        self = cls.of_units(epsilon_units, delta_units)
        object.__setattr__(self, "rho_units", rho_units)
        return self

    @property
    def rho(self) -> float:
        """ρ as a float, for reading. Asking for it never asks for more than remains."""
        return Cost.of_units(self.rho_units).epsilon

    @property
    def rho_text(self) -> str:
        """ρ with every digit, as a person would write it."""
        return decimal_text(self.rho_units, 12)

    def __str__(self) -> str:
        simple = super().__str__() if self or not self.rho_units else ""
        return " or ".join([*([simple] if simple else []), *([f"ρ {self.rho_text}"] if self.rho_units else [])])

    def __repr__(self) -> str:
        return f"Remaining({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Remaining.of, (self.epsilon_units, self.delta_units, self.rho_units)


class Balance(NamedTuple):
    """What an account may spend, has spent, and has reserved."""

    limit: Cost
    spent: Cost
    reserved: Cost
    closed: bool = False
    line: int = 0
    """The line of the audit trail that changed it last."""
    meters: Counted | None = None
    """What is counted beside the simple sum, if anything is."""

    @property
    def held(self) -> MeterBalance | None:
        """The same with names."""
        return None if self.meters is None else MeterBalance.of(self.meters)

    @property
    def remaining(self) -> Cost:
        """limit − spent − reserved; nothing once it is closed. In the simple sum, if there are other meters."""
        if self.closed:
            return Cost(0)
        held = self.held
        if held is None:
            return self.limit - self.spent - self.reserved
        delta = held.capacity.delta - self.spent.delta_units - self.reserved.delta_units
        return Cost.of_units(0 if held.used.unpriced else max(0, self.simple_left), delta)

    @property
    def is_simple_alone(self) -> bool:
        """Whether the limit is too small for the other meters of the ledger."""
        held = self.held
        return held is not None and held.capacity.renyi == ABSENT

    @property
    def simple_left(self) -> int:
        """What the simple sum has left of ε, in units; negative if another meter admitted more."""
        return self.limit.epsilon_units - self.spent.epsilon_units - self.reserved.epsilon_units

    def has_room(self, worst: Cost) -> bool:
        """Whether a worst case can be reserved: what :class:`~expost.accounting.OdpFilter` decides, while open.

        Proof: thm-composition
        """
        limit, spent, reserved, closed, _, _ = self
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
    """Who changed a limit, and why. It is written to the audit trail."""

    by: str
    reason: str
