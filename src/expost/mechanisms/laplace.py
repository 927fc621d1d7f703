"""The Laplace mechanism: noise for sums and counts that one person moves little, in L1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from expost import bracket
from expost.cost import EPSILON_UNITS, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part, as_neighbours
from expost.mechanism import Mechanism
from expost.mechanisms.numbers import (
    RELEASED,
    Shape,
    add,
    least_units,
    miss_probability,
    positive,
    requested_epsilon,
    shape_of,
)
from expost.noise import Source, discrete_laplace, vector
from expost.noise.grid import Grid


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """Data plus discrete Laplace noise: ε-differentially private, whatever comes out.

    ``sensitivity`` bounds the L1 distance of the data on neighbouring databases. The data is an int, a
    float, or an array of either. Whole numbers stay whole. Floats are rounded to a grid (``grid``, a power
    of two; by default about a thousandth of the noise, finer for longer arrays) and the noise covers
    the rounding. Data and results are clamped to ±2^60 steps; NaN counts as ``missing``.

    >>> Laplace(epsilon=0.5, sensitivity=1).error_bound(0.95)
    6

    Proof: thm-laplace
    """

    epsilon: Number
    sensitivity: Number
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", requested_epsilon(self.epsilon))
        positive(self.sensitivity, "sensitivity")
        exact(self.missing, "missing")
        as_neighbours(self.neighbours)
        if self.grid is not None:
            Grid.of(exact(self.grid, "grid"))

    @classmethod
    def for_accuracy(
        cls,
        within: Number,
        confidence: Number,
        *,
        sensitivity: Number,
        size: int = 1,
        floats: bool = False,
        grid: Number | None = None,
        missing: Number = 0,
        neighbours: Neighbours | None = None,
    ) -> Laplace:
        """The one with the least ε whose :meth:`error_bound` is at most ``within``.

        >>> Laplace.for_accuracy(10, 0.95, sensitivity=1)
        Laplace(epsilon=0.288..., sensitivity=1, grid=None, missing=0, neighbours=None)
        """
        wanted = exact(within, "within")

        def at(units: int) -> Laplace:
            epsilon = Fraction(units, EPSILON_UNITS)
            return cls(epsilon=epsilon, sensitivity=sensitivity, grid=grid, missing=missing, neighbours=neighbours)

        def suffices(units: int) -> bool:
            return exact(at(units).error_bound(confidence, size=size, floats=floats), "") <= wanted

        return at(least_units(suffices, f"± {within} at {confidence}"))

    @property
    def guarantee(self) -> Guarantee:
        """ε for every output."""
        return Guarantee.uniform(self.epsilon, neighbours=self.neighbours)

    def part_of(self, output: Any) -> Part:
        """All outputs cost the same."""
        return RELEASED

    def check(self, data: Any) -> None:
        """Numbers, of a kind and a size that the noise can be made for."""
        _, rate = self._calibrate(shape_of(data))
        vector.check_rate(rate)

    def sample(self, data: Any, noise: Source) -> Any:
        """The data with noise; whole numbers stay whole."""
        shape = shape_of(data)
        grid, rate = self._calibrate(shape)
        return add(
            data,
            shape,
            grid,
            exact(self.missing, "missing"),
            one=lambda: discrete_laplace(noise, rate),
            many=lambda size: vector.discrete_laplace(noise, rate, size),
        )

    def error_bound(self, confidence: Number, *, size: int = 1, floats: bool = False) -> float:
        """How far off the result is at most, with this confidence: all ``size`` values at once.

        ``floats`` asks for float data, whose rounding to the grid is then included.

        Proof: lem-laplace-error
        """
        miss = miss_probability(confidence, size)
        grid, rate = self._calibrate(Shape(floats, (size,)))
        # |X| > t has probability 2·e^−(rate·(t+1))/(1 + e^−rate)
        odds = 2 / (miss * (1 + bracket.exp(-rate).lower))
        steps = max(ceil(bracket.log(odds).upper / rate) - 1, 0)
        return grid.value(2 * steps + 1) / 2 if floats else steps

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        """The grid, and the rate of the noise on it."""
        epsilon, sensitivity = exact(self.epsilon, "ε"), exact(self.sensitivity, "sensitivity")
        if not shape.floats:
            if sensitivity < 1:
                raise InvalidValue(
                    f"whole numbers that move at all move by 1, but sensitivity is {self.sensitivity}: "
                    "declare at least 1, or give floats"
                )
            return Grid(0), epsilon / floor(sensitivity)
        if self.grid is not None:
            grid = Grid.of(exact(self.grid, "grid"))
        else:
            grid = Grid.within(min(sensitivity, sensitivity / epsilon) / (1024 * max(shape.size, 1)))
        return grid, epsilon / grid.l1(sensitivity, shape.size)
