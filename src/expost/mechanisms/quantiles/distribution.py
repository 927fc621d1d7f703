"""The empirical distribution function, from quantiles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from expost.checks import as_whole
from expost.cost import Number
from expost.estimates import Estimates
from expost.frame import Frame
from expost.guarantee import Neighbours
from expost.mechanism import Withheld
from expost.mechanisms.quantiles.quantiles import Ranked
from expost.noise import NoiseSource


class StepFunction(NamedTuple):
    """A distribution function as published: it has reached ``levels[i]`` at ``values[i]``.

    >>> StepFunction((3, 7), (0.5, 1.0))(4)
    0.5
    """

    values: tuple[float, ...]
    levels: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The share of records that are at most ``value``, as far as is known."""
        place = bisect_right(self.values, value)
        return self.levels[place - 1] if place else 0.0

    @property
    def frame(self) -> Frame:
        """A row for each step: the share of records, and the value that so many are at most."""
        return Estimates.by_key(("share",), self.levels, "value", self.values.__getitem__).frame


@dataclass(frozen=True, kw_only=True)
class DistributionFunction(Ranked[StepFunction | Withheld]):
    """The empirical distribution function, as evenly spaced quantiles that are chosen jointly, with pure ε.

    Parameters
    ----------
    points
        How many quantiles: 1/points, 2/points, …, 1. More of them are finer steps, each less accurate. Without bounds
        the last is left out, for nothing limits the largest record from above: two points at least.
    epsilon, bounds, neighbours, grid, missing
        As for :class:`QuantileOfRecords`.

    >>> DistributionFunction(points=4, epsilon=1, bounds=(0, 120), neighbours="substitute").guarantee.worst_case
    Cost(1)

    Proof: thm-quantiles
    """

    points: int
    epsilon: Number
    bounds: Any = None
    neighbours: Neighbours
    grid: Number | None = None
    missing: Number = 0

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The evenly spaced quantiles."""
        points = as_whole(self.points, "points", least=2 if self.bounds is None else 1, most=100)
        return tuple(Fraction(i, points) for i in range(1, points + (self.bounds is not None)))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The function as it is: its values are plain numbers."""
        return output

    def frame_of(self, answer: Any) -> Frame:
        """A row for each step."""
        floats = any(isinstance(value, float) for value in answer.values)
        rows: Frame = answer.frame
        return replace(rows, notes=(self._ranks_text(floats),))

    def sample(self, data: Any, noise: NoiseSource) -> StepFunction | Withheld:
        """The function."""
        chosen = self._chosen(data, noise)
        return chosen if isinstance(chosen, Withheld) else StepFunction(chosen, tuple(map(float, self.levels)))
