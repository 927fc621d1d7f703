"""`Tariff`: what each part of a request costs on every meter of a ledger, in whole units, fixed at reservation."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Self

from expost.accounting.amounts import CONCENTRATED, Amounts
from expost.accounting.meters import Priced, Round
from expost.accounting.renyi.orders import as_order
from expost.accounting.renyi.prices import Prices
from expost.cost import Cost, Number
from expost.errors import InvalidValue, UnknownPart
from expost.fingerprint import ordered
from expost.guarantee import Guarantee, Part

LARGEST_PRICE = 2**62
"""Units: a price is below, so that two of them can be added up in 64 bits."""


class Tariff:
    """The prices of a request, part by part. Immutable.

    Parameters
    ----------
    guarantee
        (P, E, δ) of the request.
    takes_delta
        Whether it takes its δ. Without, it has no price in the basic sum.
    renyi
        The Rényi price of each part in the fixed order of parts, and then of every other label, if there may be others.
    normal
        μ² of each part likewise, if it is as private as Gaussian noise; or 2ρ, if it is concentrated.
    concentrated
        Whether it is ρ-zCDP and no more, and takes no δ.

    Proof: thm-meters
    """

    __slots__ = (
        "_hash",
        "_otherwise",
        "_table",
        "concentrated",
        "guarantee",
        "normal",
        "renyi",
        "takes_delta",
        "worst",
    )

    def __init__(
        self,
        guarantee: Guarantee,
        takes_delta: bool,
        renyi: tuple[int, ...],
        normal: tuple[int, ...] | None,
        concentrated: bool = False,
    ) -> None:
        parts = fixed_parts(guarantee)
        places = len(parts) + (guarantee.otherwise is not None)
        for prices in (renyi, renyi if normal is None else normal):
            if len(prices) != places or not all(type(price) is int and 0 <= price < LARGEST_PRICE for price in prices):
                raise InvalidValue(f"{places} parts have {places} prices, each a number of units below 2^62")
        if concentrated and (takes_delta or normal is None):
            raise InvalidValue("a concentrated request has its ρ and takes no δ")
        self.guarantee, self.takes_delta, self.renyi, self.normal = guarantee, takes_delta, renyi, normal
        self.concentrated = concentrated
        rows = [self._charge(cost, place) for place, cost in enumerate(_costs(guarantee, parts))]
        self._otherwise = None if guarantee.otherwise is None else rows[-1]
        self._table = dict(zip(parts, rows, strict=False))
        self.worst = _worst(rows)
        self._hash = hash((guarantee, takes_delta, renyi, normal, concentrated))

    def _charge(self, cost: Cost, place: int) -> Amounts:
        renyi, normal = self.renyi[place], self.normal[place] if self.normal else 0
        if not self.takes_delta:
            foreign = CONCENTRATED if self.concentrated else int(not self.normal)
            return Amounts(renyi=renyi, normal=normal, unpriced=1, foreign=foreign)
        epsilon, delta = cost.epsilon_units, cost.delta_units
        return Amounts(epsilon, delta, renyi, normal, 0 if self.normal else epsilon)

    def of(self, part: Part) -> Amounts:
        """What a part costs."""
        found = (self._table.get(part) or self._otherwise) if part in self.guarantee else None
        if found is None:
            raise UnknownPart(part, self.guarantee)
        return found

    @property
    def best(self) -> Amounts:
        """The least that can come out, of each by itself."""
        rows = [*self._table.values(), *([] if self._otherwise is None else [self._otherwise])]
        return Amounts(*map(min, zip(*rows, strict=True)))

    def of_unit(self, unit: str | None) -> Self:
        """The same prices, with the unit called so: see :meth:`~expost.guarantee.Guarantee.of_unit`."""
        return type(self)(self.guarantee.of_unit(unit), *self._prices)

    @property
    def _prices(self) -> tuple[bool, tuple[int, ...], tuple[int, ...] | None, bool]:
        return self.takes_delta, self.renyi, self.normal, self.concentrated

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the guarantee is not among them."""
        normal = None if self.normal is None else list(self.normal)
        kind = {"concentrated": True} if self.concentrated else {}
        return {**kind, "delta": self.takes_delta, "normal": normal, "renyi": list(self.renyi)}

    @classmethod
    def from_json(cls, guarantee: Guarantee, data: Any) -> Self:
        """The tariff that :meth:`to_json` wrote."""
        normal = data["normal"]
        known = None if normal is None else tuple(normal)
        return cls(guarantee, bool(data["delta"]), tuple(data["renyi"]), known, bool(data.get("concentrated")))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tariff):
            return NotImplemented
        return self is other or (self._prices == other._prices and self.guarantee == other.guarantee)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        kind = ", concentrated=True" if self.concentrated else ""
        return f"Tariff({self.guarantee!r}, {self.takes_delta!r}, {self.renyi!r}, {self.normal!r}{kind})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tariff, (self.guarantee, *self._prices)


def tariff_of_mechanism(mechanism: Priced, order: Number, *, interactive: bool, basic_alone: bool = False) -> Tariff:
    """The prices of a mechanism at an order.

    It takes its δ only where its Rényi prices need it, or where there is no meter but the basic sum.
    """
    guarantee, prices = mechanism.guarantee, mechanism.renyi_prices(order)
    takes = bool(prices.delta) or basic_alone or not guarantee.worst_case.delta_units
    asked = Round(mechanism, interactive, delta=takes)
    renyi = _aligned(guarantee, asked.renyi_prices(as_order(order)))
    assert renyi is not None
    normal, concentrated = asked.gaussian_prices(), None if takes else asked.concentrated_prices()
    if normal is None and concentrated is not None:
        return Tariff(guarantee, False, renyi, _aligned(guarantee, concentrated), concentrated=True)
    return Tariff(guarantee, asked.delta, renyi, _aligned(guarantee, normal))


def tariff_of_guarantee(guarantee: Guarantee, order: Fraction, *, interactive: bool) -> Tariff:
    """The prices that a guarantee implies at an order, whatever keeps it."""
    return _implied(guarantee, order.numerator, order.denominator, interactive)


@lru_cache(maxsize=1024)
def _implied(guarantee: Guarantee, numerator: int, denominator: int, interactive: bool) -> Tariff:
    """Remembered by whole numbers: the hash of a fraction takes its time."""
    return tariff_of_mechanism(_Known(guarantee), Fraction(numerator, denominator), interactive=interactive)


class _Known(NamedTuple):
    """A mechanism that is known by its guarantee."""

    guarantee: Guarantee

    def renyi_prices(self, order: Number) -> Prices:
        from expost.accounting.renyi.tangent import tangent_prices

        return tangent_prices(self.guarantee, order)

    def gaussian_prices(self) -> Prices | None:
        return None

    def concentrated_prices(self) -> Prices | None:
        return None


@lru_cache(maxsize=1024)
def fixed_parts(guarantee: Guarantee) -> tuple[Part, ...]:
    """The parts in the order in which ledgers write them."""
    return tuple(part for part, _ in ordered(guarantee)["parts"])


def _costs(guarantee: Guarantee, parts: tuple[Part, ...]) -> list[Cost]:
    rest = guarantee.otherwise
    delta = guarantee.worst_case.delta_units
    return [*map(guarantee.cost_of, parts), *([] if rest is None else [Cost.of_units(rest.epsilon_units, delta)])]


def _aligned(guarantee: Guarantee, prices: Prices | None) -> tuple[int, ...] | None:
    """Prices in the fixed order of parts."""
    if prices is None:
        return None
    parts = fixed_parts(guarantee)
    rows = [prices.of(part) for part in parts]
    if guarantee.otherwise is not None:
        unlisted = prices.table.keys() - set(parts)
        rows.append(prices.worst if unlisted or prices.otherwise is None else prices.otherwise)
    return tuple(rows)


def _worst(rows: list[Amounts]) -> Amounts:
    """The most of each by itself."""
    return Amounts(*map(max, zip(*rows, strict=True)))
