"""The records of ledgers: requests, entries, balances."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from expost.accounting.amounts import ABSENT, NO_AMOUNTS, Amounts, Counted, MeterBalance
from expost.cost import Cost, decimal_text
from expost.guarantee import Guarantee, Part
from expost.text import text_of

if TYPE_CHECKING:
    from expost.accounting.tariff import Tariff

Manner: TypeAlias = Literal["run", "open", "reserve"]
"""The operation that spends: a mechanism is run, an interaction opened, or a guarantee reserved."""
State: TypeAlias = Literal["reserved", "settled", "forfeited", "voided"]
Path: TypeAlias = tuple[str, ...]
"""The names of the ledger, of the accounts below it, and of the account itself."""


class Used(NamedTuple):
    """A charge as people see it: noise that takes no δ has no ε, but a ρ, or else a Rényi price.

    Attributes
    ----------
    cost
        ε and δ in the basic sum.
    squared
        2ρ of what is ρ-zCDP and has no ε, such as Gaussian noise, in units.
    price
        The Rényi price of what has neither, in units.
    is_noise
        Whether some of it has no ε.
    """

    cost: Cost
    squared: int = 0
    price: int = 0
    is_noise: bool = False

    @classmethod
    def of(cls, cost: Cost, amounts: Amounts | None) -> Self:
        """What a charge takes, on the meter that counts it by name."""
        if amounts is None or not amounts.unpriced:
            return cls(cost)
        known = amounts.is_known_at_all_orders
        return cls(cost, amounts.normal, 0, True) if known else cls(cost, 0, amounts.renyi, True)

    def plus(self, other: Used) -> Used:
        """Both together."""
        squared, price = self.squared + other.squared, self.price + other.price
        return Used(self.cost + other.cost, squared, price, self.is_noise or other.is_noise)

    def minus(self, other: Used) -> Used:
        """What is left of it."""
        return Used(self.cost - other.cost, self.squared - other.squared, self.price - other.price, self.is_noise)

    @property
    def rho_text(self) -> str:
        """ρ in full decimal digits, rounded up."""
        return decimal_text(-(-self.squared // 2), 12)

    def __str__(self) -> str:
        found = [f"{self.cost}"] if self.cost or not self.is_noise else []
        found += [f"ρ {self.rho_text}"] if self.squared or (self.is_noise and not self.price) else []
        return " + ".join(found + ([f"Rényi price {decimal_text(self.price, 12)}"] if self.price else []))


class Request(NamedTuple):
    """A request to spend.

    Attributes
    ----------
    operation
        ``"run"``, ``"open"`` or ``"reserve"``.
    account
        The account, preceded by those above it.
    subject
        The mechanism; or, for a reservation, the guarantee.
    guarantee
        The guarantee.
    label
        What it is for, in the caller's words.
    key
        The caller's unique name for it.
    tariff
        The price of each part on the meters of the ledger, if it has more than the basic sum.
    """

    operation: Manner
    account: Path
    subject: Any
    guarantee: Guarantee
    label: str | None
    key: str | None
    tariff: Tariff | None = None

    @property
    def priced_guarantee(self) -> Guarantee | Tariff:
        """What the ledger stores: the guarantee, with its prices if it has any."""
        return self.tariff or self.guarantee

    @property
    def worst(self) -> Cost:
        """The worst case, which is reserved, in the basic sum."""
        return self.guarantee.worst_case if self.tariff is None else self.tariff.worst.cost

    @property
    def worst_amounts(self) -> Amounts:
        """The worst case on the other meters of the ledger, if it has any."""
        return NO_AMOUNTS if self.tariff is None else self.tariff.worst.amounts

    def of_unit(self, unit: str | None) -> Request:
        """The same request, with the unit called so. Raises ``UnitMismatch`` if its guarantee is for another."""
        if unit in (None, self.guarantee.unit):
            return self
        tariff = None if self.tariff is None else self.tariff.of_unit(unit)
        return self._replace(guarantee=self.guarantee.of_unit(unit), tariff=tariff)

    def __repr__(self) -> str:
        return f"<{self.operation} of {'/'.join(self.account)!r}: {self.label or text_of(self.subject)}>"


class Entry(NamedTuple):
    """An entry of a ledger, as it was when it was read. It is immutable: read it again for its current state.

    States: reserved → settled | forfeited | voided. Settled charges the output's part, forfeited the
    worst case, voided nothing (only if sampling never began).

    Attributes
    ----------
    id
        Its number.
    request
        What was requested.
    state
        ``"reserved"``, ``"settled"``, ``"forfeited"`` or ``"voided"``.
    begun
        Whether sampling has begun.
    part
        The part that was charged, if it was settled.
    charged
        What was charged, once it has ended.
    reserved_at
        When it was reserved, by the clock of the ledger, which shows full hours.
    amounts
        What was charged on the other meters of the ledger, once it has ended.
    """

    id: int
    request: Request
    state: State
    begun: bool
    part: Part | None
    charged: Cost | None
    reserved_at: float
    amounts: Amounts | None = None

    @property
    def account(self) -> str:
        """The account's name, preceded by the names of those above it."""
        return "/".join(self.request.account)

    @property
    def what(self) -> str:
        """The label, or else the mechanism or guarantee."""
        return self.request.label or text_of(self.request.subject)

    @property
    def when(self) -> datetime:
        """When it was reserved, to the full hour (UTC). When it ended may depend on data, and is not recorded."""
        return datetime.fromtimestamp(self.reserved_at, UTC)

    @property
    def operation(self) -> Manner:
        """``"run"``, ``"open"`` or ``"reserve"``."""
        return self.request.operation

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was reserved for."""
        return self.request.guarantee

    @property
    def unit(self) -> str | None:
        """Whose privacy was paid for; None if the guarantee does not say it, as of mechanisms on plain arrays."""
        return self.request.guarantee.unit

    @property
    def label(self) -> str | None:
        """What it was for, in the caller's words."""
        return self.request.label

    @property
    def key(self) -> str | None:
        """The caller's unique name for the request, if it has one."""
        return self.request.key

    @property
    def reserved(self) -> Cost:
        """The worst case that was reserved, in the basic sum."""
        return self.request.worst

    @property
    def reserved_amounts(self) -> Amounts | None:
        """The worst case that was reserved on the other meters, if the ledger has any."""
        return None if self.request.tariff is None else self.request.tariff.worst.amounts

    @property
    def used(self) -> tuple[Used, Used | None, Used | None]:
        """What was reserved, charged and refunded, as people see it; the last two are None while it is open."""
        reserved = Used.of(self.reserved, self.reserved_amounts)
        if self.charged is None:
            return reserved, None, None
        charged = Used.of(self.charged, self.amounts)
        return reserved, charged, reserved.minus(charged)

    @property
    def refunded(self) -> Cost | None:
        """What was refunded; None while it is still reserved."""
        return None if self.charged is None else self.reserved - self.charged

    def __repr__(self) -> str:
        reserved, paid, _ = self.used
        charged = "" if paid is None else f", charged {paid}"
        part = "" if self.part is None else f", part {self.part!r}"
        return f"<entry {self.id} of {self.account!r}: {self.what}, {self.state}{part}, reserved {reserved}{charged}>"


def least(costs: Iterable[Cost]) -> Cost:
    """The smallest ε and the smallest δ of all: what fits at every level."""
    epsilons, deltas = zip(*((cost.epsilon_units, cost.delta_units) for cost in costs), strict=True)
    return Cost.of_units(min(epsilons), min(deltas))


class Remaining(Cost):
    """What remains of a ledger with several meters: (ε, δ), or a ρ of Gaussian noise instead.

    ``epsilon`` is the largest that fits of a guarantee without δ whose parts cost the same, and ``rho`` the largest
    (sensitivity/σ)²/2 of Gaussian noise that takes no δ. One or the other fits, not both. Ledgers make it.

    Attributes
    ----------
    epsilon
        The largest ε that fits.
    delta
        The δ that remains.
    rho
        The largest ρ of Gaussian noise that fits instead.
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
        """ρ as a float, rounded down: a request for it never exceeds what remains."""
        return Cost.of_units(self.rho_units).epsilon

    @property
    def rho_text(self) -> str:
        """ρ in full decimal digits."""
        return decimal_text(self.rho_units, 12)

    def __str__(self) -> str:
        basic = super().__str__() if self or not self.rho_units else ""
        return " or ".join([*([basic] if basic else []), *([f"ρ {self.rho_text}"] if self.rho_units else [])])

    def __repr__(self) -> str:
        return f"Remaining({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Remaining.of, (self.epsilon_units, self.delta_units, self.rho_units)


class Balance(NamedTuple):
    """The balance of an account.

    Attributes
    ----------
    limit
        The most that may be spent.
    spent
        What was charged.
    reserved
        The worst case of everything that is open.
    closed
        Whether the account was closed.
    line
        The line of the audit trail that changed it last.
    meters
        The counts of other meters than the basic sum, if there are any.
    """

    limit: Cost
    spent: Cost
    reserved: Cost
    closed: bool = False
    line: int = 0
    meters: Counted | None = None

    @property
    def meter_balance(self) -> MeterBalance | None:
        """The counts of other meters, by name."""
        return None if self.meters is None else MeterBalance.of(self.meters)

    @property
    def remaining(self) -> Cost:
        """limit − spent − reserved; nothing once it is closed. In the basic sum, if there are other meters."""
        if self.closed:
            return Cost(0)
        counts = self.meter_balance
        if counts is None:
            return self.limit - self.spent - self.reserved
        delta = counts.capacity.delta - self.spent.delta_units - self.reserved.delta_units
        return Cost.of_units(0 if counts.used.unpriced else max(0, self.basic_remaining), delta)

    @property
    def is_basic_alone(self) -> bool:
        """Whether the limit is too small for the other meters of the ledger."""
        counts = self.meter_balance
        return counts is not None and counts.capacity.renyi == ABSENT

    @property
    def basic_remaining(self) -> int:
        """The ε that remains in the basic sum, in units; negative if another meter admitted more."""
        return self.limit.epsilon_units - self.spent.epsilon_units - self.reserved.epsilon_units


class View(NamedTuple):
    """A consistent snapshot of an account."""

    levels: tuple[Balance, ...]
    """The balances of the account and of all above it, the ledger's own first."""
    entries: Iterable[Entry]
    """Its entries and those of all accounts below, in order of reservation."""


class Note(NamedTuple):
    """Who ordered a change, and why, for the audit trail."""

    by: str
    reason: str
