"""Statistics of every group of rows at once: whole numbers that engines add up, and noise for them.

Proof: thm-group-by
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from expost.data import query, sensitivity
from expost.data.expression import Expression
from expost.data.sums import Clipped, error_of_mean
from expost.guarantee import Neighbours
from expost.mechanisms import Laplace
from expost.mechanisms.laplace_sums import repeated_reach, sum_reach, variance_error
from expost.mechanisms.linear.box import STEPS, Box
from expost.noise.sums import LaplaceSteps, Term

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

SHOWN_CONFIDENCE = Fraction(95, 100)
"""The confidence of errors that are published with their answers."""


@dataclass(frozen=True)
class Touched:
    """How much one unit can change over all groups together."""

    rows: int
    groups: int
    cells: int
    """The number of groups; for discovered ones, more than a unit and its substitute can be in."""
    neighbours: Neighbours

    def sums(self, low: int, high: int) -> int:
        """How far one unit moves the sums of values from ``low`` to ``high``, over all groups together (L1).

        Proof: lem-grouped-sums
        """
        if self.cells == 1:
            return sensitivity.of_number(*sensitivity.of_sum(0, self.rows, low, high), self.neighbours).l1
        twice = 1 if self.neighbours == "add-remove" else 2
        return twice * self.rows * max(abs(low), abs(high))

    @property
    def counts(self) -> int:
        """How far one unit moves the numbers of rows, over all groups together (L1)."""
        return sensitivity.of_rows(0, self.rows, self.cells, self.neighbours).l1

    @property
    def units(self) -> int:
        """How far one unit moves the numbers of units, over all groups together (L1)."""
        return sensitivity.of_units(0, self.groups, self.cells, self.neighbours).l1


@dataclass(frozen=True)
class Measure:
    """A whole number per group: what the engine computes, times a constant, with noise."""

    sql: str
    noise: Laplace
    times: int = 1


class GroupAggregate(ABC):
    """A statistic of the rows of each group."""

    adds_up = True
    """Whether the total of all groups can be computed from their noisy numbers."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is asked."""

    @property
    def expression(self) -> Expression | None:
        """What it is computed from, if there is anything."""
        return None

    def cell(self, value: str) -> str:
        """The value of a row in steps of the grid, in SQL."""
        raise NotImplementedError

    @abstractmethod
    def measures(self, table: PrivateTable, cell: str, touched: Touched, epsilon: Fraction) -> tuple[Measure, ...]:
        """What is computed from the cells of a group, with noise for its share of ε."""

    @abstractmethod
    def present(self, numbers: Sequence[int], measures: Sequence[Measure], groups: int) -> tuple[Any, float]:
        """The answer and its error at 95 %, from noisy numbers that were added up over several groups."""

    def law(self, measures: Sequence[Measure]) -> Term | None:
        """The law of the noise of a group's answer, if it is that of one number; else None."""
        return None

    def of_size(self, values: int) -> tuple[int, ...]:
        """The numbers of a group with that many values, as far as its error depends on them: where that is largest."""
        return (0,)


def _noise(epsilon: Fraction, moved: int, relation: Neighbours) -> Laplace:
    return Laplace(epsilon=epsilon, sensitivity=moved, neighbours=relation)


def reach(noise: Laplace, groups: int, miss: Fraction) -> float:
    """A bound on the sum of the noise of several groups, exceeded with probability at most ``miss``."""
    return repeated_reach(noise.rate, groups, miss)


@dataclass(frozen=True)
class GroupCount(GroupAggregate):
    """The number of rows, or units, of each group."""

    of: str

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Only of rows: a unit may be in several groups."""
        return self.of == "rows"

    @property
    def title(self) -> str:
        """What is counted."""
        return f"count of {self.of}"

    def measures(self, table: PrivateTable, cell: str, touched: Touched, epsilon: Fraction) -> tuple[Measure, ...]:
        """One number."""
        people = self.of == "units" and table.unit.column is not None
        moved = touched.units if self.of == "units" else touched.counts
        counted = "count(DISTINCT u)" if people else "count(*)"
        return (Measure(counted, _noise(epsilon, moved, touched.neighbours)),)

    def present(self, numbers: Sequence[int], measures: Sequence[Measure], groups: int) -> tuple[Any, float]:
        """The count."""
        return int(numbers[0]), reach(measures[0].noise, groups, 1 - SHOWN_CONFIDENCE)

    def law(self, measures: Sequence[Measure]) -> Term:
        """That of the count."""
        return Term(Fraction(1), LaplaceSteps(measures[0].noise.rate))


@dataclass(frozen=True)
class GroupSum(GroupAggregate):
    """The sum of clamped values of each group."""

    value: Clipped

    @property
    def title(self) -> str:
        """What is summed."""
        return f"sum of {self.value!r}"

    @property
    def expression(self) -> Expression:
        """The value."""
        return self.value.expression

    def cell(self, value: str) -> str:
        """The clamped value, in steps."""
        return self.value.cell_of(value)

    def measures(self, table: PrivateTable, cell: str, touched: Touched, epsilon: Fraction) -> tuple[Measure, ...]:
        """One sum."""
        noise = _noise(epsilon, touched.sums(*self.value.ends), touched.neighbours)
        return (Measure(table.engine.total(cell), noise),)

    def present(self, numbers: Sequence[int], measures: Sequence[Measure], groups: int) -> tuple[Any, float]:
        """The sum in units of the data, and its error."""
        step = self.value.grid.step
        return float(int(numbers[0]) * step), reach(measures[0].noise, groups, 1 - SHOWN_CONFIDENCE) * float(step)

    def law(self, measures: Sequence[Measure]) -> Term:
        """That of the sum, in units of the data."""
        return Term(self.value.grid.step, LaplaceSteps(measures[0].noise.rate))


@dataclass(frozen=True)
class GroupMean(GroupAggregate):
    """The mean of clamped values of each group: a noisy sum around the middle of the bounds, over a noisy count."""

    value: Clipped

    @property
    def title(self) -> str:
        """What is averaged."""
        return f"mean of {self.value!r}"

    @property
    def expression(self) -> Expression:
        """The value."""
        return self.value.expression

    def cell(self, value: str) -> str:
        """The clamped value, in steps from the middle."""
        return self.value.cell_of(value, self.value.middle)

    def measures(self, table: PrivateTable, cell: str, touched: Touched, epsilon: Fraction) -> tuple[Measure, ...]:
        """A sum and a count, each with half of ε."""
        low, high = (end - self.value.middle for end in self.value.ends)
        summed = _noise(epsilon / 2, touched.sums(low, high), touched.neighbours)
        counted = _noise(epsilon / 2, touched.counts, touched.neighbours)
        return Measure(table.engine.total(cell), summed), Measure(f"count({cell})", counted)

    def of_size(self, values: int) -> tuple[int, ...]:
        """A sum and a count, of values at the upper bound: nearer to the middle the error is smaller."""
        return (self.value.ends[1] - self.value.middle) * values, values

    def present(self, numbers: Sequence[int], measures: Sequence[Measure], groups: int) -> tuple[Any, float]:
        """The mean, within the bounds. Noise s on the sum and c on the count N moves it by (s − c·mean)/(N + c)."""
        low, high = self.value.bounds
        total, count = int(numbers[0]), max(int(numbers[1]), 1)
        mean = min(max(float((self.value.middle + Fraction(total, count)) * self.value.grid.step), low), high)
        rates = [measure.noise.rate for measure in measures]
        return mean, error_of_mean(self.value, rates, 1 - SHOWN_CONFIDENCE, mean, count, groups)


@dataclass(frozen=True)
class GroupVariance(GroupAggregate):
    """The variance of clamped values of each group (divided by n), from noisy sums of values and of squares."""

    value: Expression
    bounds: tuple[float, float]
    missing: float | None

    @property
    def title(self) -> str:
        """What it is the variance of."""
        return f"variance of {self.value} ({self.bounds[0]:g} … {self.bounds[1]:g})"

    @property
    def expression(self) -> Expression:
        """The value."""
        return self.value

    @property
    def _ends(self) -> tuple[float, float]:
        box = Box((self.bounds,))
        return float(box.middles[0]), float(box.halves[0])

    def cell(self, value: str) -> str:
        """The clamped value, in steps from the middle of the bounds; half their width is a fixed number of steps."""
        middle, half = self._ends
        gone = None
        if self.missing is not None:
            gone = round(max(-1.0, min(1.0, (self.missing - middle) / half)) * STEPS)
        return query.steps_around(value, middle, half, STEPS, gone)

    def measures(self, table: PrivateTable, cell: str, touched: Touched, epsilon: Fraction) -> tuple[Measure, ...]:
        """A count, a sum and a sum of squares: one row moves each by at most 1, and the noise covers all three."""
        noise = _noise(epsilon, 3 * touched.counts * STEPS**2, touched.neighbours)
        total = table.engine.total
        return (
            Measure(f"count({cell})", noise, STEPS**2),
            Measure(total(cell), noise, STEPS),
            Measure(total(f"{cell} * {cell}"), noise),
        )

    def of_size(self, values: int) -> tuple[int, ...]:
        """A count and two sums, of values at the upper bound: nearer to the middle the error is smaller."""
        return values * STEPS**2, values * STEPS**2, values * STEPS**2

    def present(self, numbers: Sequence[int], measures: Sequence[Measure], groups: int) -> tuple[Any, float]:
        """The variance, within its possible range, and its error.

        Proof: lem-variance-error
        """
        count = max(numbers[0] / STEPS**2, 1.0)
        mean, square = (number / STEPS**2 / count for number in numbers[1:])
        variance, half = min(max(square - mean**2, 0.0), 1.0), self._ends[1]
        rate, miss = measures[0].noise.rate, 1 - SHOWN_CONFIDENCE

        def moved(weights: tuple[float, ...], missed: Fraction) -> float:
            return sum_reach((rate,) * len(weights), weights, missed, groups) / STEPS**2 / count

        error = variance_error(mean, variance, miss, moved) if count > 1 else 1.0
        return variance * half**2, min(1.0, error) * half**2
