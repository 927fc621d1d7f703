"""The records of ledgers: requests, entries, balances."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from expost.accounting.amounts import ABSENT, NO_AMOUNTS, Amounts, basic_capacity
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


Accounts: TypeAlias = tuple[Path, ...]
"""A set of accounts, in the order in which lines of the audit trail have their balances; the ledger's own is first."""


@lru_cache(4096)
def lineage(path: Path) -> Accounts:
    """An account and all above it, the ledger's own first."""
    return tuple(path[:depth] for depth in range(1, len(path) + 1))


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
    def of(cls, amounts: Amounts) -> Self:
        """What a charge takes, on the meter that counts it by name."""
        if not amounts.unpriced:
            return cls(amounts.cost)
        known = amounts.is_known_at_all_orders
        return cls(amounts.cost, *((amounts.normal, 0) if known else (0, amounts.renyi)), is_noise=True)

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
    def accounts(self) -> Accounts:
        """What its entry is charged to: all of them, or it is refused. With each account all above it are among them.

        Proof: thm-ledger
        """
        return lineage(self.account)

    @property
    def priced_guarantee(self) -> Guarantee | Tariff:
        """What the ledger stores: the guarantee, with its prices if it has any."""
        return self.tariff or self.guarantee

    @property
    def worst(self) -> Amounts:
        """The worst case, which is reserved."""
        return self.tariff.worst if self.tariff is not None else Amounts.of(self.guarantee.worst_case)

    def price(self, part: Part) -> Amounts:
        """What a part costs. Raises ``UnknownPart``."""
        return Amounts.of(self.guarantee.cost_of(part)) if self.tariff is None else self.tariff.of(part)

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
    amounts
        What was charged on every meter, once it has ended.
    reserved_at
        When it was reserved, by the clock of the ledger, which shows full hours.
    """

    id: int
    request: Request
    state: State
    begun: bool
    part: Part | None
    amounts: Amounts | None
    reserved_at: float

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
        return self.request.worst.cost

    @property
    def reserved_amounts(self) -> Amounts:
        """The worst case that was reserved on every meter."""
        return self.request.worst

    @property
    def charged(self) -> Cost | None:
        """What was charged in the basic sum, once it has ended."""
        return None if self.amounts is None else self.amounts.cost

    @property
    def is_metered(self) -> bool:
        """Whether its ledger has several meters, so that its amounts have Rényi prices."""
        return self.request.tariff is not None

    @property
    def used(self) -> tuple[Used, Used | None, Used | None]:
        """What was reserved, charged and refunded, as people see it; the last two are None while it is open."""
        reserved = Used.of(self.reserved_amounts)
        if self.amounts is None:
            return reserved, None, None
        charged = Used.of(self.amounts)
        return reserved, charged, reserved.minus(charged)

    @property
    def refunded(self) -> Cost | None:
        """What was refunded; None while it is still reserved."""
        return None if self.amounts is None else self.reserved_amounts.minus(self.amounts).cost

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
    """The balance of an account: of each thing that is counted, what it holds, what was charged, and what is reserved.

    Attributes
    ----------
    limit
        The most that may be spent, as it was stated.
    capacity
        What the limit holds. Its ε is the limit's; with several meters its δ is what is left of the limit's for rounds.
    charged
        What was charged.
    reserved
        The worst case of everything that is open.
    closed
        Whether the account was closed.
    line
        The line of the audit trail that changed it last.
    """

    limit: Cost
    capacity: Amounts
    charged: Amounts = NO_AMOUNTS
    reserved: Amounts = NO_AMOUNTS
    closed: bool = False
    line: int = 0

    @classmethod
    def basic(cls, limit: Cost) -> Self:
        """A new account in a ledger that has the basic sum alone."""
        return cls(limit, basic_capacity(limit))

    @property
    def used(self) -> Amounts:
        """Charged and reserved."""
        return self.charged.plus(self.reserved)

    @property
    def remaining(self) -> Cost:
        """What the basic sum still holds; nothing once it is closed."""
        if self.closed:
            return Cost(0)
        left = self.capacity.minus(self.used)
        return Cost.of_units(max(0, left.epsilon) if left.unpriced >= 0 else 0, left.delta)

    @property
    def is_metered(self) -> bool:
        """Whether its ledger has several meters."""
        return self.capacity.others != ABSENT

    @property
    def is_basic_alone(self) -> bool:
        """Whether its ledger has several meters, and the limit is too small for all but the basic sum."""
        return self.is_metered and self.capacity.renyi == ABSENT


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
