"""Quantiles of a column, from counts by the engine: for any unit, with filters, under either neighbour relation."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.checks import as_confidence, as_flag, as_probability, requested_epsilon
from expost.cost import Number, exact
from expost.data import query, rows
from expost.data.clipped import Clipped, as_missing, exact_bounds
from expost.data.expression import Expression
from expost.data.questions import MayLackUnits, Planned, PureMechanism
from expost.errors import InvalidValue
from expost.estimate import USUAL, Estimate
from expost.estimates import Estimates
from expost.guarantee import Neighbours
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.mechanisms import Tally
from expost.mechanisms.moments.geometric_cells import LARGEST_RECORD
from expost.mechanisms.quantiles.between import CHOICES, Between, between, windows_between
from expost.mechanisms.quantiles.candidates import Candidates, Lattice, candidates
from expost.mechanisms.quantiles.ordered import arrange
from expost.mechanisms.quantiles.quantiles import TOO_FEW, numbers_chosen, require_between, target, worst_score
from expost.mechanisms.quantiles.windows import Windows
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.noise.grid import Grid
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.record import QuestionRecord

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
class Ranks(Planned, Question[Any]):
    """Quantiles of the values of the rows that count.

    Parameters
    ----------
    table
        Whose rows.
    value
        The column, its bounds and its grid, if it has any, and what NULL and NaN count as.
    levels
        The quantiles, in ascending order.
    interval
        Whether two more values are chosen for the same ε, that the one quantile lies between with 95 % confidence.
    record
        The settings that it was made from, if it was made from a record of them.

    Proof: thm-table-quantiles
    """

    table: PrivateTable
    value: Clipped | AnySize
    levels: tuple[Fraction, ...]
    interval: bool = False
    record: QuestionRecord | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        table: PrivateTable,
        value: Expression,
        quantiles: Any,
        bounds: Any,
        missing: Any,
        grid: Number | None,
        interval: bool = False,
    ) -> Ranks:
        """Checks the arguments."""
        interval = as_flag(interval, "interval")
        if interval and (isinstance(quantiles, tuple | list) and len(quantiles) != 1):
            raise InvalidValue("an interval is for one quantile, got several: ask about each, or leave interval out")
        several = quantiles if isinstance(quantiles, tuple | list) else (quantiles,)
        levels = tuple(as_probability(level, "a quantile") for level in several)
        if not levels or list(levels) != sorted(set(levels)):
            raise InvalidValue(f"quantiles are numbers from 0 to 1 in ascending order, got {brief(quantiles)}")
        if bounds is None:
            return cls(table, AnySize.of(value, missing, grid), levels, interval)
        clipped = Clipped.of(value, bounds, missing, grid)
        if grid is None and clipped.grid.exponent < 0:
            low, high = exact_bounds(bounds)
            clipped = Clipped.of(value, bounds, missing, Grid.within((high - low) / _CELLS).step)
        return cls(table, clipped, levels, interval)

    @property
    def title(self) -> str:
        """The quantiles and their column."""
        named = ", ".join(f"{float(level):g}" for level in self.levels)
        return f"quantile {named} of {self.value!r}"

    @property
    def what(self) -> str:
        """The quantile and its column."""
        if len(self.levels) > 1:
            return f"quantile of {self.value.expression.name}"
        return f"{level_name(self.levels[0])} of {self.value.expression.name}"

    @property
    def terms(self) -> tuple[str, ...]:
        """What several quantiles are called, each by its level; nothing if there is one."""
        return tuple(f"{float(level):.15g}" for level in self.levels) if len(self.levels) > 1 else ()

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
        kept = rows.one_cell(self.table, self.value.expression, self.value.cell, drop=drop)
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
        score = worst_score(self.lattice.size, self.choices, rate, 1 - as_confidence(confidence))
        return max(ceil(target(level, 1, relation).unit * score) for level in self.levels)

    @property
    def choices(self) -> int:
        """How many values are chosen jointly."""
        return CHOICES if self.interval else len(self.levels)

    def chosen(self, values: Any, counts: Any, rate: Fraction, relation: Neighbours, noise: NoiseSource) -> Any:
        """A value for each quantile, from these values and their counts; with its interval if that was asked for.

        One value where there is one quantile, and ``WITHHELD`` if one of them is no number.
        """
        if self.interval:
            arranged = arrange(self._tally(values, counts), self.lattice, 0.0)
            off = self.error_in_ranks(rate, USUAL, relation)
            at = target(self.levels[0], arranged.size, relation)
            law = windows_between(arranged, at, off, rate, paired=relation == "substitute")
            return between(self.lattice, law.sample(noise), floats=self.floats, within=self.bounds)
        found = numbers_chosen(self.lattice, self.windows_of(values, counts, rate, relation).sample(noise))
        return found if isinstance(found, Withheld) or len(found) > 1 else found[0]

    @property
    def floats(self) -> bool:
        """Whether values are rounded to the candidates."""
        if isinstance(self.value, AnySize):
            return not self.value.whole
        return not self.value.expression.is_whole or self.value.grid.step != 1

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which values count as lying, if there are any."""
        return None if isinstance(self.value, AnySize) else self.value.bounds

    def why_unknown(self, ranks: int, rows: int | None = None) -> str:
        """Why no error is known in the units of the column, and what is known: it is told beside values.

        ``rows`` is their number, if that is public.
        """
        off = f"{ranks} rank{'s' * (ranks != 1)}"
        share = "" if rows is None else f" ({100 * ranks / rows:.2g} % of the rows)"
        each = "all " if len(self.levels) > 1 else ""
        return f"{each}within {off}{share} at 95 %, and how far that is in the column's unit is not known"

    @property
    def public_rows(self) -> int | None:
        """The number of rows that count, if it is public and was declared."""
        return self.table.declared if self.relation == "substitute" else None

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """Values are chosen by their error in ranks, by permute-and-flip."""
        return PrivateQuantiles(question=self, epsilon=requested_epsilon(terms.only_epsilon(f"a {self.title}")))


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
        asked = self.question
        values, counts = asked.table.engine.arrays(asked.plan)
        return asked.chosen(values, counts, self._rate, asked.relation, noise)

    def check(self, data: Any) -> None:
        """Raise unless the query can be run and, without bounds, a public number of values is enough."""
        super().check(data)
        if self._may_lack:
            self.require(self.question.table.size)

    @property
    def _may_lack(self) -> bool:
        """Whether there are no bounds, and at most a public number of values."""
        return isinstance(self.question.value, AnySize) and self.question.table.neighbours == "substitute"

    def require(self, units: int) -> None:
        """Refuse a public number of units with which quantiles may be beyond all values, however many of them count."""
        if self._may_lack:
            require_between(self.question.levels, units * self.question.table.unit.rows, self.error_bound("0.95"))

    def error_bound(self, confidence: Number) -> int:
        """How many ranks the values chosen are off at most, all at once, with this confidence.

        Proof: lem-quantile-error
        """
        return self.question.error_in_ranks(self._rate, confidence, self.question.relation)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The value chosen; several by their levels. Their errors are known in ranks only."""
        if output is WITHHELD:
            return output
        if isinstance(output, Between):
            return output.estimate
        levels, why = (
            self.question.levels,
            self.question.why_unknown(self.error_bound("0.95"), self.question.public_rows),
        )
        if len(levels) == 1:
            return Estimate.unknown(output, why)
        numbers = [Estimate.unknown(value, why) for value in output]
        return Estimates.by_key(("quantile",), [*map(float, levels)], self.what, numbers.__getitem__)

    def describe(self, output: Any) -> str:
        """The values chosen, and their error bound in ranks."""
        if output is WITHHELD:
            return f"{self.question.title} {TOO_FEW}"
        if isinstance(output, Between):
            return f"{self.question.title} is {output.value}, between {output.low:.6g} and {output.high:.6g} at 95 %"
        off = self.error_bound("0.95")
        return f"{self.question.title} is {output}, off by at most {off} rank{'s' * (off != 1)} at 95 %"


def level_name(level: Fraction) -> str:
    """What a quantile is called."""
    return "median" if level == Fraction(1, 2) else f"quantile {float(level):g}"
