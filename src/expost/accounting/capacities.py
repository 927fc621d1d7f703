"""The meters of a ledger: chosen when it is created, with a capacity under the limit of each account."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from expost.accounting.amounts import ABSENT, BASIC_METER, GAUSSIAN_METER, RENYI_METER, Amounts, capacity_with
from expost.accounting.filters import is_within
from expost.accounting.meters import Affordable, GaussianMeter, Priced, RenyiMeter
from expost.accounting.normal import delta_of_normal_noise, root
from expost.accounting.odometer import admitting_share
from expost.accounting.renyi.orders import LARGEST_ORDER, as_order, best_order, capacity, capacity_above, delta_at
from expost.accounting.tariff import Tariff, tariff_of_guarantee, tariff_of_mechanism
from expost.cost import DELTA_UNITS, EPSILON_UNITS, Cost, Number, decimal_text
from expost.errors import InvalidValue
from expost.guarantee import Guarantee
from expost.mentions import Argument, brief


@dataclass(frozen=True, kw_only=True)
class RenyiAccounting:
    """Rényi prices and Gaussian noise beside the basic sum: a ledger admits what fits on at least one of them.

    Parameters
    ----------
    order
        The order α of Rényi prices, above 1. By default the one that holds most under the limit.
    delta
        The share of the limit's δ for Rényi prices, a sixteenth of it for what is shown as spent. By default a quarter.
    gaussian_delta
        The share for Gaussian noise, which is counted by itself. By default two thirds of the rest; 0 does without.
    others
        The ε, of the limit's, that what is not Gaussian noise may use beside Gaussian noise.

    What the shares leave of δ is for mechanisms that have a δ of their own.

    Proof: thm-meters
    """

    order: Number | None = None
    delta: Number | None = None
    gaussian_delta: Number | None = None
    others: Number = 0

    def under(self, limit: Cost) -> LedgerMeters:
        """The meters of a ledger with this limit. Raises ``InvalidValue`` where there is no room for Rényi prices."""
        renyi, gaussian = self._shares(limit)
        order = self._order(limit, Fraction(admitting_share(renyi), DELTA_UNITS))
        others = Cost.within(self.others)
        if gaussian and others.epsilon_units >= limit.epsilon_units:
            raise InvalidValue(f"others is below the limit's ε {limit.epsilon_text}, got {brief(self.others)}")
        return LedgerMeters(order, limit.delta_units, renyi, gaussian, others.epsilon_units)

    def _order(self, limit: Cost, share: Fraction) -> Fraction:
        try:
            order = best_order(limit.exact_epsilon, share) if self.order is None else as_order(self.order)
        except InvalidValue:
            if self.order is not None:
                raise
            raise InvalidValue(
                f"the limit {limit} has no room for Rényi prices at any order: {_remedy(limit, share)}, or take ",
                Argument("accounting", "basic"),
            ) from None
        if capacity(order, limit.exact_epsilon, share) * EPSILON_UNITS < 1:
            raise InvalidValue(
                f"the limit {limit} has no room for Rényi prices at order {float(order):g}: leave order out, or take "
                "a larger one"
            )
        return order

    def _shares(self, limit: Cost) -> tuple[int, int]:
        whole = limit.delta_units
        if not whole:
            raise InvalidValue(
                f"Rényi accounting needs a δ, and the limit is {limit}: give ",
                Argument("delta"),
                " as well, or take ",
                Argument("accounting", "basic"),
            )
        renyi = whole // 4 if self.delta is None else Cost.within(0, self.delta).delta_units
        rest = 2 * (whole - renyi) // 3
        gaussian = rest if self.gaussian_delta is None else Cost.within(0, self.gaussian_delta).delta_units
        if not 0 < renyi < whole or renyi + gaussian > whole:
            raise InvalidValue(
                f"the shares of Rényi prices (delta={brief(self.delta)}) and of Gaussian noise "
                f"(gaussian_delta={brief(self.gaussian_delta)}) are parts of the limit's δ {limit.delta:g}: the first "
                "is above 0 and below it, and both together at most it"
            )
        return renyi, gaussian


Accounting: TypeAlias = Literal["basic", "renyi"] | RenyiAccounting
"""How a ledger adds up: ε's alone, or on several meters."""


class LedgerMeters(NamedTuple):
    """The order and the shares of δ that were fixed when a ledger was created. Accounts use the same order.

    Proof: thm-meters
    """

    order: Fraction
    delta: int
    """The limit's δ then. Another limit has shares in the same proportion."""
    renyi: int
    gaussian: int
    others: int

    def capacity(self, limit: Cost) -> Amounts:
        """What a limit holds. Without room for Rényi prices there is only the basic sum."""
        renyi = self._renyi(limit)
        normal = ABSENT if renyi == ABSENT else self._normal(limit)
        return self._holding(limit, renyi, normal)

    def raised(self, limit: Cost, before: Amounts) -> Amounts:
        """What a higher limit holds: at least what was held before, on the same meters.

        The Gaussian meter stays as it is: who raises a limit may have seen answers, and its μ is fixed beforehand.

        Proof: lem-raised-capacity
        """
        renyi = ABSENT if before.renyi == ABSENT else max(before.renyi, self._renyi(limit))
        return self._holding(limit, renyi, before.normal)

    def _holding(self, limit: Cost, renyi: int, normal: int) -> Amounts:
        return capacity_with(limit, self._rounds(limit, renyi, normal), renyi, normal, self.others)

    def allows_raised(self, limit: Cost, found: Amounts, before: Amounts) -> bool:
        """Whether a recorded capacity may be that of a limit that was raised.

        Proof: lem-raised-capacity
        """
        same_meters = (found.renyi == ABSENT) == (before.renyi == ABSENT) and found.normal == before.normal
        grows = found.delta >= before.delta and found.renyi >= before.renyi
        return same_meters and grows and self._allows_beside_normal(limit, found)

    def allows(self, limit: Cost, found: Amounts) -> bool:
        """Whether a recorded capacity may be that of a new account's limit. Refuses what is certainly too much.

        Proof: lem-renyi-capacity, thm-analytic-gaussian
        """
        return self._allows_beside_normal(limit, found) and (
            found.normal == ABSENT or (found.normal >= 0 and self._normal_holds(limit, found.normal))
        )

    def _allows_beside_normal(self, limit: Cost, found: Amounts) -> bool:
        return (
            found.epsilon == limit.epsilon_units
            and found.delta <= self._rounds(limit, found.renyi, found.normal)
            and found.others == self.others
            and (found.renyi == ABSENT or self._renyi_above(limit) >= found.renyi >= 0)
        )

    def renyi_share(self, limit: Cost) -> int:
        """What Rényi prices take of a limit's δ, at the ledger's order and at the further ones of readings together."""
        return self._share(limit, self.renyi)

    def _admitting(self, limit: Cost) -> Fraction:
        return Fraction(admitting_share(self.renyi_share(limit)), DELTA_UNITS)

    def _share(self, limit: Cost, part: int) -> int:
        return part * limit.delta_units // self.delta

    def _rounds(self, limit: Cost, renyi: int, normal: int) -> int:
        taken = self.renyi * (renyi != ABSENT) + self.gaussian * (normal != ABSENT)
        return self._share(limit, self.delta - taken)

    def _renyi(self, limit: Cost) -> int:
        try:
            return RenyiMeter.of(limit.exact_epsilon, self._admitting(limit), self.order).capacity[0]
        except InvalidValue:
            return ABSENT

    def _normal(self, limit: Cost) -> int:
        share = Fraction(self._share(limit, self.gaussian), DELTA_UNITS)
        try:
            return GaussianMeter.of(limit.exact_epsilon, share, self._aside).capacity[1] or ABSENT
        except InvalidValue:
            return ABSENT

    @property
    def _aside(self) -> Fraction:
        return Fraction(self.others, EPSILON_UNITS)

    def _renyi_above(self, limit: Cost) -> int:
        share = self._admitting(limit)
        return capacity_above(self.order, limit.exact_epsilon, share) if share else ABSENT

    def _normal_holds(self, limit: Cost, normal: int) -> bool:
        share, rest = Fraction(self._share(limit, self.gaussian), DELTA_UNITS), limit.exact_epsilon - self._aside
        if not share or rest <= 0:
            return False
        ratio = root(Fraction(EPSILON_UNITS, normal)).upper if normal else None
        return ratio is None or delta_of_normal_noise(ratio, rest).lower <= share

    def tariff_of_guarantee(self, guarantee: Guarantee, *, interactive: bool) -> Tariff:
        """The prices that a guarantee implies, whatever keeps it."""
        return tariff_of_guarantee(guarantee, self.order, interactive=interactive)

    def tariff_of_mechanism(self, mechanism: Priced, *, interactive: bool, basic_alone: bool) -> Tariff:
        """The prices of a mechanism, lower where its noise is known."""
        return tariff_of_mechanism(mechanism, self.order, interactive=interactive, basic_alone=basic_alone)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_json` reads them back."""
        return {**self._asdict(), "order": str(self.order)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The meters that :meth:`to_json` wrote."""
        order, delta, renyi, gaussian, others = (data[name] for name in cls._fields)
        return cls(as_order(order), int(delta), int(renyi), int(gaussian), int(others))


def affordable(meters: LedgerMeters, capacity: Amounts, used: Amounts) -> Affordable:
    """The largest ε of a pure guarantee with one part, and the largest ρ of Gaussian noise, for which there is room."""
    found, remaining = [], capacity.minus(used)
    if is_within(BASIC_METER, capacity, used):
        found.append(Affordable(remaining.epsilon, 0))
    if is_within(RENYI_METER, capacity, used):
        found.append(RenyiMeter(meters.order, (capacity.renyi,), 0).affordable((remaining.renyi,)))
    if is_within(GAUSSIAN_METER, capacity, used):
        found.append(Affordable(remaining.others, remaining.normal // 2))
    return Affordable.any_of(found)


def meters_of(accounting: Any, limit: Cost) -> LedgerMeters | None:
    """The meters that a ledger is to have; None for the basic sum alone."""
    if accounting == "basic":
        return None
    if accounting == "renyi":
        return RenyiAccounting().under(limit)
    if isinstance(accounting, RenyiAccounting):
        return accounting.under(limit)
    raise InvalidValue(f"accounting is 'basic', 'renyi' or RenyiAccounting(…), got {brief(accounting)}")


def _remedy(limit: Cost, share: Fraction) -> str:
    """Which δ would do, if the same part of it is for Rényi prices."""
    least = delta_at(LARGEST_ORDER, Fraction(1, EPSILON_UNITS), limit.exact_epsilon)
    needed = ceil(least * limit.exact_delta / share * DELTA_UNITS) + 4
    return f"a δ of {decimal_text(needed, 18)} would do" if needed < DELTA_UNITS else "give a larger ε"
