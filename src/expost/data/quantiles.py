"""Quantiles of a column, from counts by the engine: for any unit, with filters, under either neighbour relation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from expost import bracket
from expost.checks import as_confidence, as_probability, requested_epsilon
from expost.cost import Number, exact
from expost.data import query
from expost.data.expression import Expression
from expost.data.questions import MayLackUnits, Planned, PureMechanism, exact_bounds
from expost.data.sums import Clipped, as_missing
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms import Tally
from expost.mechanisms.moments.geometric_cells import LARGEST_RECORD
from expost.mechanisms.quantiles.candidates import Candidates, Lattice, candidates
from expost.mechanisms.quantiles.ordered import arrange
from expost.mechanisms.quantiles.quantiles import TOO_FEW, numbers_chosen, require_between, target
from expost.mechanisms.quantiles.windows import Windows
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.noise.grid import Grid

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

_CELLS = 2**20
_LARGEST_WHOLE = 2**60


@dataclass(frozen=True)
class AnySize:
    """A column or an expression without bounds: as a float of single precision, or as a whole number."""

    expression: Expression
    missing: float | None
    """What NULL and NaN count as; None if they do not count."""
    whole: bool

    @classmethod
    def of(cls, value: Expression, missing: Any, grid: Number | None) -> AnySize:
        """Checks the arguments."""
        if grid is not None:
            raise InvalidValue("a grid is for values within bounds: give bounds, or leave it out")
        largest = Fraction(_LARGEST_WHOLE if value.kind != "number" else LARGEST_RECORD)
        gone = as_missing(missing, -largest, largest)
        return cls(value.as_number(), gone, value.kind != "number")

    def fewest(self, table: PrivateTable) -> int:
        """The fewest values that a unit can have."""
        return 0 if self.missing is None else table.fewest

    @property
    def cell(self) -> str:
        """The value ``v``, in SQL."""
        return self.cell_of(query.VALUE)

    def cell_of(self, named: str) -> str:
        """The value of this name, in SQL."""
        if self.whole:
            gone = None if self.missing is None else round(self.missing)
            return query.clamped_number("BIGINT", _LARGEST_WHOLE, gone, named)
        return query.clamped_number("REAL", LARGEST_RECORD, self.missing, named)

    @property
    def lattice(self) -> Candidates:
        """The candidates."""
        return candidates(None, None, floats=not self.whole)

    def __repr__(self) -> str:
        gone = "missing dropped" if self.missing is None else f"missing {self.missing:g}"
        return f"{self.expression} (of any size, {gone})"


@dataclass(frozen=True, repr=False)
class Ranks(Planned):
    """Quantiles of the values of the rows that count.

    Parameters
    ----------
    table
        Whose rows.
    value
        The column, its bounds and its grid, if it has any, and what NULL and NaN count as.
    levels
        The quantiles, in ascending order.

    Proof: thm-table-quantiles
    """

    table: PrivateTable
    value: Clipped | AnySize
    levels: tuple[Fraction, ...]

    @classmethod
    def of(
        cls, table: PrivateTable, value: Expression, quantiles: Any, bounds: Any, missing: Any, grid: Number | None
    ) -> Ranks:
        """Checks the arguments."""
        several = quantiles if isinstance(quantiles, tuple | list) else (quantiles,)
        levels = tuple(as_probability(level, "a quantile") for level in several)
        if not levels or list(levels) != sorted(set(levels)):
            raise InvalidValue(f"quantiles are numbers from 0 to 1 in ascending order, got {brief(quantiles)}")
        if bounds is None:
            return cls(table, AnySize.of(value, missing, grid), levels)
        clipped = Clipped.of(value, bounds, missing, grid)
        if grid is None and clipped.grid.exponent < 0:
            low, high = exact_bounds(bounds)
            clipped = Clipped.of(value, bounds, missing, Grid.within((high - low) / _CELLS).step)
        return cls(table, clipped, levels)

    @property
    def title(self) -> str:
        """The quantiles and their column."""
        named = ", ".join(f"{float(level):g}" for level in self.levels)
        return f"quantile {named} of {self.value!r}"

    @property
    def relation(self) -> Neighbours:
        """How one unit changes the rows that count: by substituting one, or by adding and removing some."""
        fixed = self.table.unit.rows == 1 and self.value.fewest(self.table) == 1
        return "substitute" if self.table.neighbours == "substitute" and fixed else "add-remove"

    @property
    def moved(self) -> int:
        """How many such changes one unit makes.

        Proof: thm-table-quantiles
        """
        if self.relation == "substitute":
            return 1
        return self.table.unit.rows * (2 if self.table.neighbours == "substitute" else 1)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        drop = self.value.missing is None
        kept = query.kept_rows(self.table, self.value.expression, self.value.cell, drop=drop, cells=1)
        return self.table.engine.check(f"SELECT c, count(*) FROM {query.nested(kept)} GROUP BY c ORDER BY c")

    @property
    def lattice(self) -> Candidates:
        """The candidates."""
        if isinstance(self.value, AnySize):
            return self.value.lattice
        step = self.value.grid.step
        return Lattice(step, *self.value.ends, whole=step.denominator == 1)

    def tally(self) -> Tally:
        """The values and how often each occurs. Private: mechanisms call it, after the reservation."""
        return self._tally(*self.table.engine.arrays(self.plan))

    def windows(self, rate: Fraction) -> Windows:
        """The law of the choice. Private: mechanisms call it, after the reservation."""
        values, counts = self.table.engine.arrays(self.plan)
        return self.windows_of(values, counts, rate, self.relation)

    def windows_of(self, values: Any, counts: Any, rate: Fraction, relation: Neighbours) -> Windows:
        """The law of the choice, for these values and their counts."""
        arranged = arrange(self._tally(values, counts), self.lattice, 0.0)
        targets = tuple(target(level, arranged.size, relation) for level in self.levels)
        if len(targets) == 1:
            targets = (targets[0].settled(arranged),)
        return Windows(arranged, targets, rate, paired=relation == "substitute" and len(targets) > 1)

    def _tally(self, values: Any, counts: Any) -> Tally:
        """The values and how often each occurs, as the engine counted them."""
        if isinstance(self.value, AnySize):
            return Tally(values.astype(np.int64) if self.value.whole else values, counts.astype(np.int64))
        step = self.value.grid.step
        return Tally(values.astype(np.int64) if step == 1 else values * float(step), counts.astype(np.int64))

    def error_in_ranks(self, rate: Fraction, confidence: Number, relation: Neighbours) -> int:
        """How many ranks the values chosen at this rate are off at most, all at once, with this confidence."""
        miss, levels = 1 - as_confidence(confidence), self.levels
        wrong = self.lattice.size ** len(levels) - 1
        score = max(ceil(bracket.log(wrong / miss).upper / rate) - 1, 0)
        return max(ceil(target(level, 1, relation).unit * score) for level in levels)

    def permute_and_flip(self, *, epsilon: Number) -> PrivateQuantiles:
        """Choose values by their error in ranks, by permute-and-flip: ε-differentially private."""
        return PrivateQuantiles(question=self, epsilon=requested_epsilon(epsilon))


@dataclass(frozen=True, kw_only=True, repr=False)
class PrivateQuantiles(MayLackUnits[Any], PureMechanism[Any]):
    """Quantiles of a column, chosen on its grid: a number, or a tuple of them.

    Without bounds and with too few values they are ``WITHHELD``; where the number of values is public, refused before.

    Parameters
    ----------
    question
        Which quantiles of which table.
    epsilon
        The whole budget.

    Proof: thm-table-quantiles
    """

    question: Ranks
    epsilon: Number

    @property
    def _rate(self) -> Fraction:
        return exact(self.epsilon, "ε") / (2 * self.question.moved)

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """Query the counts, and choose."""
        values = numbers_chosen(self.question.lattice, self.question.windows(self._rate).sample(noise))
        return values if isinstance(values, Withheld) or len(values) > 1 else values[0]

    def check(self, data: Any) -> None:
        """Raise unless the query can be run and, without bounds, a public number of values is enough."""
        super().check(data)
        if self._counts_units:
            self.require(self.question.table.size)

    @property
    def _counts_units(self) -> bool:
        """Whether there are no bounds, and as many values as units, which is a public number."""
        return isinstance(self.question.value, AnySize) and self.question.relation == "substitute"

    def require(self, units: int) -> None:
        """Refuse a public number of units with which values may be beyond all records."""
        if self._counts_units:
            require_between(self.question.levels, units, self.error_bound("0.95"))

    def error_bound(self, confidence: Number) -> int:
        """How many ranks the values chosen are off at most, all at once, with this confidence.

        Proof: lem-quantile-error
        """
        return self.question.error_in_ranks(self._rate, confidence, self.question.relation)

    def describe(self, output: Any) -> str:
        """The values chosen, and their error bound in ranks."""
        if output is WITHHELD:
            return f"{self.question.title} {TOO_FEW}"
        off = self.error_bound("0.95")
        return f"{self.question.title} is {output}, off by at most {off} rank{'s' * (off != 1)} at 95 %"
