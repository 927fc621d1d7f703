"""Gaussian noise for vectors with a bounded L2 sensitivity: one mechanism for each analysis, and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from expost.accounting.normal import epsilon_of_zcdp, normal_noise_for
from expost.accounting.renyi import Prices, normal_noise, zcdp
from expost.checks import check_fields, whole_sensitivity
from expost.cost import EPSILON_UNITS, Number, exact
from expost.guarantee import Guarantee, Neighbours
from expost.mechanisms.additive import Additive
from expost.mechanisms.numbers import GridNoise, NoiseLaw, Shape
from expost.noise import discrete_gaussian, rounded_gaussian, vector
from expost.noise.grid import Grid
from expost.noise.sums import GaussianSteps, RoundedGaussianSteps, StepLaw

ROUNDED_NORMAL = NoiseLaw(rounded_gaussian, vector.rounded_gaussian)


class RoundedNormal(Additive):
    """A mechanism that adds rounded Gaussian noise."""

    _law = ROUNDED_NORMAL

    def _steps(self, parameter: Fraction) -> StepLaw:
        return RoundedGaussianSteps(parameter)


@dataclass(frozen=True, kw_only=True)
class Gaussian(RoundedNormal):
    """The Gaussian mechanism: data plus rounded Gaussian noise, (ε, δ)-private by the exact ("analytic") analysis.

    Parameters
    ----------
    epsilon
        The whole budget. Every output costs all of it.
    delta
        The δ of every output, above 0.
    sensitivity
        A bound on the L2 distance of the data on neighbouring databases.
    grid
        The step that floats are rounded to, a power of two. By default about a thousandth of the noise, and finer for
        longer arrays. The noise covers the rounding.
    missing
        What NaN counts as.
    neighbours
        The relation that ``sensitivity`` is for: ``"add-remove"``, ``"substitute"``, or None for whichever the ledger
        has.

    The data is an int, a float, or an array of either. Whole numbers stay whole. The noise is continuous Gaussian noise
    rounded to the grid, sampled exactly, so the result is a rounding of the continuous mechanism's. Data and results
    are clamped to ±2^60 steps of the grid.

    >>> Gaussian(epsilon=1, delta=1e-6, sensitivity=1).error_bound(0.95)
    8

    Proof: thm-analytic-gaussian
    """

    _most = 1000 * EPSILON_UNITS

    epsilon: Number
    delta: Number
    sensitivity: Number
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "delta")
        super().__post_init__()
        self._ratio()

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ) for every output."""
        return Guarantee.uniform(self.epsilon, self.delta, neighbours=self.neighbours)

    def renyi_prices(self, order: Number) -> Prices:
        """α/2σ², without any δ.

        Proof: lem-renyi-normal
        """
        return Prices.uniform(normal_noise(order, self._ratio()))

    def gaussian_prices(self) -> Prices:
        """1/σ², in units of the sensitivity.

        Proof: thm-gaussian-pot
        """
        return Prices.uniform(1 / self._ratio() ** 2)

    def _ratio(self) -> Fraction:
        return normal_noise_for(exact(self.epsilon, "ε"), exact(self.delta, "δ"))

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        ratio = self._ratio()
        grid, sensitivity = l2_on_grid(self, shape, min(ratio, Fraction(1)))
        return grid, (ratio * sensitivity) ** 2


@dataclass(frozen=True, kw_only=True)
class Concentrated(Additive):
    """A mechanism that adds noise by the ρ of zCDP, and states ε for a δ."""

    _buys = "rho"

    rho: Number
    delta: Number
    sensitivity: Number
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, "rho", "delta")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Concentrated):
    """The discrete Gaussian mechanism: ρ-zCDP (concentrated differential privacy), and (ε, δ)-private for the δ given.

    Parameters
    ----------
    rho
        The ρ of zCDP. The noise has variance sensitivity²/2ρ.
    delta
        The δ at which ε is stated, above 0. ε follows from ρ and δ.
    sensitivity
        A bound on the L2 distance of the data on neighbouring databases.
    grid
        The step that floats are rounded to, a power of two. By default about a thousandth of the noise, and finer for
        longer arrays. The noise covers the rounding.
    missing
        What NaN counts as.
    neighbours
        The relation that ``sensitivity`` is for: ``"add-remove"``, ``"substitute"``, or None for whichever the ledger
        has.

    Data is read as by :class:`Gaussian`.

    >>> DiscreteGaussian(rho=0.1, delta=1e-6, sensitivity=1).guarantee
    Guarantee.uniform(2.141939361353, delta=1e-6)

    Proof: thm-zcdp
    """

    _law = NoiseLaw(discrete_gaussian, vector.discrete_gaussian)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ) for every output."""
        epsilon = epsilon_of_zcdp(exact(self.rho, "ρ"), exact(self.delta, "δ"))
        return Guarantee.uniform(epsilon, self.delta, neighbours=self.neighbours)

    def renyi_prices(self, order: Number) -> Prices:
        """αρ, without any δ.

        Proof: lem-renyi-normal
        """
        return Prices.uniform(zcdp(order, self.rho))

    def concentrated_prices(self) -> Prices:
        """2ρ.

        Proof: lem-renyi-normal
        """
        return Prices.uniform(2 * exact(self.rho, "ρ"))

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        rho = exact(self.rho, "ρ")
        grid, sensitivity = l2_on_grid(self, shape, 1 / (1 + rho))
        return grid, sensitivity**2 / (2 * rho)

    def _steps(self, parameter: Fraction) -> StepLaw:
        return GaussianSteps(parameter)


def l2_on_grid(noise: GridNoise, shape: Shape, finest: Fraction) -> tuple[Grid, Fraction]:
    """The grid, and the L2 sensitivity in its steps."""
    sensitivity = exact(noise.sensitivity, "sensitivity")
    grid = noise.grid_for(shape, sensitivity * finest / (isqrt(shape.size) + 1))
    return grid, grid.l2(sensitivity, shape.size) if shape.floats else whole_sensitivity(noise.sensitivity)
