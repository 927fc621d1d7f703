"""A short interval that contains nearly all records, chosen from a geometric family with pure ε."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_interval, as_whole, check_fields, finite, requested_epsilon
from expost.cost import Number
from expost.errors import InvalidValue
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.moments.geometric_cells import Interval, records
from expost.mechanisms.numbers import OfArrays, shape_of
from expost.mechanisms.selection import PermuteAndFlip
from expost.noise import NoiseSource


@dataclass(frozen=True, kw_only=True)
class TypicalRange(OfArrays, FixedCost[NDArray[Any], Interval]):
    """An interval that contains all records but a few, and is not much longer than it must be, with pure ε.

    The candidates are the bounds, their halves, quarters and so on, each size also shifted by half of itself. One
    that leaves out k records and is j times halved scores −k + ``penalty``·j; permute-and-flip chooses.

    Without any bounds, :class:`PrivateRange` finds a range.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        Between which all candidates lie. They may be very loose: every doubling costs a step of ``scales``.
    neighbours
        ``"substitute"`` or ``"add-remove"``; the latter needs half the noise.
    penalty
        How many records an interval of twice the length must contain to be worth it. By default 4/ε, rounded up.
    scales
        How often the bounds are halved at most.
    first
        How often they are halved at least, unless they are taken as they are. With 3, an interval is an eighth as long
        or shorter: a little shorter is not worth any records.
    missing
        What NaN counts as.

    >>> TypicalRange(epsilon=1, bounds=(0, 1024), neighbours="substitute").guarantee.worst_case
    Cost(1)

    Proof: thm-typical-range
    """

    epsilon: Number
    bounds: Any
    neighbours: Neighbours
    penalty: int | None = None
    scales: int = 10
    missing: Number = 0
    first: int = 1

    def __post_init__(self) -> None:
        check_fields(self, epsilon=requested_epsilon, bounds=as_interval, missing=finite)
        check_fields(self, scales=partial(as_whole, least=0, most=16), first=partial(as_whole, least=1, most=16))
        if as_neighbours(self.neighbours) is None:
            raise InvalidValue(
                "neighbours is 'add-remove' or 'substitute' (is the number of records private, or public?), got None"
            )
        if self.penalty is not None:
            as_whole(self.penalty, "penalty", least=0, most=2**40)

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers; none at all will do."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 1:
            raise InvalidValue(f"a range is about a one-dimensional array, got shape {dimensions}: try .ravel()")

    def sample(self, data: Any, noise: NoiseSource) -> Interval:
        """The interval chosen."""
        lows, highs, _ = self.candidates
        chosen = self._choice.sample(-self.shortfalls(records(data, self.bounds, float(self.missing))), noise)
        return Interval(float(lows[chosen]), float(highs[chosen]))

    def shortfalls(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """For each candidate the records outside, and the penalty for every halving that it lacks.

        Proof: thm-typical-range
        """
        lows, highs, halvings = self.candidates
        values = np.sort(values)
        inside = np.searchsorted(values, highs, side="right") - np.searchsorted(values, lows, side="left")
        return np.asarray(len(values) - inside + self._penalty * (self.scales - halvings), np.int64)

    @cached_property
    def candidates(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """The lower and the upper ends, and how often each was halved."""
        low, high = self.bounds
        often = [0, *range(self.first, self.scales + 1)]
        places = [(halved, i) for halved in often for i in range(2 ** (halved + 1) - 1)]
        halved, starts = np.array(places, np.int64).T
        width = (high - low) / 2.0**halved
        lows = low + starts * width / 2
        return lows, np.where(halved == 0, high, np.minimum(lows + width, high)), halved

    @property
    def _penalty(self) -> int:
        return int(-(-4 // float(self.epsilon))) if self.penalty is None else self.penalty

    @cached_property
    def _choice(self) -> PermuteAndFlip:
        return PermuteAndFlip(
            epsilon=self.epsilon, sensitivity=1, monotone=self.neighbours == "add-remove", neighbours=self.neighbours
        )
