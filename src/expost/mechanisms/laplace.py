"""The Laplace mechanism: noise for sums and counts that one person moves little, in L1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from expost.accounting.renyi import Prices, laplace_noise
from expost.checks import check_fields, whole_sensitivity
from expost.cost import Number, exact
from expost.guarantee import Neighbours
from expost.mechanisms.additive import Additive
from expost.mechanisms.numbers import NoiseLaw, Shape
from expost.noise import discrete_laplace, vector
from expost.noise.grid import Grid
from expost.noise.sums import LaplaceSteps, StepLaw


@dataclass(frozen=True, kw_only=True)
class Laplace(Additive):
    """The Laplace mechanism: data plus discrete Laplace (two-sided geometric) noise, ε-differentially private.

    Parameters
    ----------
    epsilon
        The whole budget. Every output costs all of it.
    sensitivity
        A bound on the L1 distance of the data on neighbouring databases.
    grid
        The step that floats are rounded to, a power of two. By default about a thousandth of the noise, and finer for
        longer arrays. The noise covers the rounding.
    missing
        What NaN counts as.
    neighbours
        The relation that ``sensitivity`` is for: ``"add-remove"``, ``"substitute"``, or None for whichever the ledger
        has.

    The data is an int, a float, or an array of either. Whole numbers stay whole. Data and results are clamped to ±2^60
    steps of the grid.

    >>> Laplace(epsilon=0.5, sensitivity=1).error_bound(0.95)
    6

    Proof: thm-laplace
    """

    _law = NoiseLaw(discrete_laplace, vector.discrete_laplace)

    epsilon: Number
    sensitivity: Number
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, "epsilon")
        super().__post_init__()

    @property
    def rate(self) -> Fraction:
        """Of the noise of a whole number."""
        return self._calibrate(Shape(floats=False, dimensions=None))[1]

    def renyi_prices(self, order: Number) -> Prices:
        """Of the noise's own law, for whichever kind of data it has the least steps.

        Proof: lem-renyi-laplace
        """
        kinds = (True, False) if exact(self.sensitivity, "sensitivity") >= 1 else (True,)
        rate = max(self._calibrate(Shape(floats, None))[1] for floats in kinds)
        return Prices.uniform(laplace_noise(order, self.epsilon, floor(exact(self.epsilon, "ε") / rate)))

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        epsilon, sensitivity = exact(self.epsilon, "ε"), exact(self.sensitivity, "sensitivity")
        grid = self.grid_for(shape, min(sensitivity, sensitivity / epsilon) / max(shape.size, 1))
        if shape.floats:
            return grid, epsilon / grid.l1(sensitivity, shape.size)
        return grid, epsilon / floor(whole_sensitivity(self.sensitivity))

    def _steps(self, parameter: Fraction) -> StepLaw:
        return LaplaceSteps(parameter)
