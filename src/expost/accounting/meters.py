"""Meters: several ways to add up what was spent, any one of which keeps a limit (ε, δ).

A meter gives every part a price and has a capacity for its share of δ. The basic sum needs no δ, so that keeping it
beside others costs nothing. All amounts are whole numbers: of 10⁻¹⁸ for δ, of 10⁻¹² for everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Protocol, Self

from expost.accounting.normal import normal_noise_for
from expost.accounting.renyi.orders import as_order, best_order, capacity
from expost.accounting.renyi.prices import Prices
from expost.accounting.renyi.tangent import largest_epsilon
from expost.cost import EPSILON_UNITS, Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee
from expost.mentions import brief

_FREE = Prices(otherwise=0)


class Priced(Protocol):
    """What meters ask of a mechanism. Every ``Mechanism`` answers it."""

    @property
    def guarantee(self) -> Guarantee:
        """What it guarantees: (P, E, δ)."""

    def renyi_prices(self, order: Number) -> Prices:
        """The Rényi price of each part at an order."""

    def gaussian_prices(self) -> Prices | None:
        """μ² of each part if the mechanism is as private as Gaussian noise; else None."""

    def concentrated_prices(self) -> Prices | None:
        """2ρ of each part if the mechanism is ρ-zCDP for its part; else None."""


@dataclass(frozen=True)
class Round:
    """A mechanism that somebody wants to run, as meters see it.

    Parameters
    ----------
    mechanism
        The mechanism, or anything else that has a guarantee and prices.
    interactive
        Whether it answers questions one at a time.
    delta
        Whether it takes its δ of the limit. Without, its prices must hold by themselves, like those of Gaussian noise;
        in the basic sum it then has no price, and from there on another meter must have room.
    """

    mechanism: Priced
    interactive: bool = False
    delta: bool = True

    @property
    def delta_units(self) -> int:
        """The δ that the round takes of the limit."""
        return self.mechanism.guarantee.worst_case.delta_units if self.delta else 0

    def basic_prices(self) -> Prices | None:
        """E of each part; None without the δ that it needs."""
        prices = Prices.of_guarantee(self.mechanism.guarantee)
        return prices if self.delta or not prices.delta else None

    def renyi_prices(self, order: Fraction) -> Prices:
        """The Rényi price of each part. In an interaction whose prices need a δ it is the ε of the part.

        Proof: lem-trimming, lem-renyi-interleaving, lem-renyi-causal
        """
        prices = self.mechanism.renyi_prices(order)
        name = type(self.mechanism).__name__
        if prices.delta and not self.delta:
            raise InvalidValue(f"the Rényi prices of this {name} hold only with its δ: run it with delta=True")
        return Prices.of_guarantee(self.mechanism.guarantee) if prices.delta and self.interactive else prices

    def gaussian_prices(self) -> Prices | None:
        """μ² of each part, for mechanisms that are as private as Gaussian noise."""
        return self.mechanism.gaussian_prices()

    def concentrated_prices(self) -> Prices | None:
        """2ρ of each part, for mechanisms that are ρ-zCDP."""
        return self.mechanism.concentrated_prices()


@dataclass(frozen=True)
class Affordable:
    """The largest single round that fits: ε of a pure guarantee, or ρ of Gaussian noise. Units of 10⁻¹²."""

    epsilon: int
    rho: int

    @classmethod
    def any_of(cls, found: Sequence[Affordable]) -> Affordable:
        """What at least one of them allows."""
        return cls(max((each.epsilon for each in found), default=0), max((each.rho for each in found), default=0))


class Meter(Protocol):
    """One way to add up, fixed before the first round. It may count in several dimensions."""

    @property
    def share(self) -> int:
        """What it takes of the limit's δ."""

    @property
    def capacity(self) -> tuple[int, ...]:
        """What the sum in each dimension may reach."""

    def prices(self, asked: Round) -> tuple[Prices, ...] | None:
        """What the parts of a round cost in each dimension; None if the round has no price here."""

    def affordable(self, remaining: tuple[int, ...]) -> Affordable:
        """What one round may cost if this remains."""


@dataclass(frozen=True)
class BasicMeter:
    """The sum of the ε's of the parts that came out. It takes no share of δ.

    Parameters
    ----------
    capacity
        The limit on ε, in units of 10⁻¹², as a tuple of one. :meth:`of` makes it from an ε.
    share
        0: it takes nothing of the limit's δ.

    Proof: thm-meters
    """

    capacity: tuple[int, ...]
    share: int = 0

    @classmethod
    def of(cls, epsilon: Number) -> Self:
        """The meter of a limit, which rounds down."""
        return cls((Cost.within(epsilon).epsilon_units,))

    def prices(self, asked: Round) -> tuple[Prices, ...] | None:
        """The ε of each part."""
        prices = asked.basic_prices()
        return None if prices is None else (prices,)

    def affordable(self, remaining: tuple[int, ...]) -> Affordable:
        """All that remains, and no Gaussian noise without a δ."""
        return Affordable(remaining[0], 0)


@dataclass(frozen=True)
class RenyiMeter:
    """The sum of Rényi prices at one order. Several orders are several meters, each with a share of δ.

    Parameters
    ----------
    order
        The order α, above 1.
    capacity
        What the sum may reach, in units of 10⁻¹², as a tuple of one. :meth:`of` makes it from a limit (ε, δ).
    share
        What it takes of the limit's δ, in units of 10⁻¹⁸.

    >>> RenyiMeter.of(1, 1e-6).order
    Fraction(2815, 128)

    Proof: thm-meters
    """

    order: Fraction
    capacity: tuple[int, ...]
    share: int

    @classmethod
    def of(cls, epsilon: Number, delta: Number, order: Number | None = None) -> Self:
        """The meter of a limit ε for this share of δ, at the best order unless one is given."""
        share = Cost.within(0, delta)
        chosen = best_order(epsilon, share.exact_delta) if order is None else as_order(order)
        most = floor(capacity(chosen, epsilon, share.exact_delta) * EPSILON_UNITS)
        if most < 1:
            raise InvalidValue(
                f"ε {brief(epsilon)} with δ {brief(delta)} leaves no room at order {float(chosen):g}: "
                "leave the order out, or take a larger one"
            )
        return cls(chosen, (most,), share.delta_units)

    def prices(self, asked: Round) -> tuple[Prices, ...]:
        """The prices at the order."""
        return (asked.renyi_prices(self.order),)

    def affordable(self, remaining: tuple[int, ...]) -> Affordable:
        """The largest ε whose price fits, and ρ = price/α."""
        return Affordable(largest_epsilon(self.order, remaining[0]), floor(remaining[0] / self.order))


@dataclass(frozen=True)
class GaussianMeter:
    """The sum of μ² = (sensitivity/σ)² of Gaussian noise, and a part of ε, fixed beforehand, for everything else.

    For Gaussian noise it holds more than any Rényi order.

    Parameters
    ----------
    capacity
        What the ε's of everything else and the sum of μ² may reach, in units of 10⁻¹². :meth:`of` makes them from a
        limit (ε, δ).
    share
        What it takes of the limit's δ, in units of 10⁻¹⁸.

    Proof: thm-gaussian-pot
    """

    capacity: tuple[int, ...]
    share: int

    @classmethod
    def of(cls, epsilon: Number, delta: Number, others: Number = 0) -> Self:
        """The meter of a limit ε for this share of δ, with ``others`` of ε for what is not Gaussian noise."""
        share, aside = Cost.within(0, delta), Cost.within(others)
        rest = exact(epsilon, "ε") - aside.exact_epsilon
        if rest <= 0:
            raise InvalidValue(f"others is below ε {brief(epsilon)}: Gaussian noise needs a share, got {brief(others)}")
        multiplier = normal_noise_for(rest, share.exact_delta)
        return cls((aside.epsilon_units, floor(EPSILON_UNITS / multiplier**2)), share.delta_units)

    def prices(self, asked: Round) -> tuple[Prices, ...] | None:
        """μ² if it has one, else E."""
        normal = asked.gaussian_prices()
        if normal is not None:
            return _FREE, normal
        basic = asked.basic_prices()
        return None if basic is None else (basic, _FREE)

    def affordable(self, remaining: tuple[int, ...]) -> Affordable:
        """What remains for others, and ρ = μ²/2."""
        return Affordable(remaining[0], remaining[1] // 2)
