"""Histograms over given cells: keys, or bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_confidence, as_whole, finite, requested_epsilon
from expost.comparison import Comparison
from expost.cost import Number, exact
from expost.data import query, rows, sensitivity
from expost.data.answers import DrawnCells
from expost.data.clipped import exact_bounds
from expost.data.expression import Expression, Kind, is_text
from expost.data.expression.tree import Stated, fits
from expost.data.questions import NumericQuestion, OnNumbers, Planned, PureMechanism
from expost.data.sensitivity import Sensitivity
from expost.data.unit import as_of
from expost.errors import InvalidValue
from expost.estimates import Estimates
from expost.frame import number_text
from expost.guarantee import Part
from expost.mechanism import Mechanism
from expost.mechanisms import AboveMask, SparseVector
from expost.mechanisms.histogram import balanced_laplace, noisy_counts
from expost.mentions import brief, shown_labels
from expost.noise import NoiseSource, vector
from expost.noise.sums import LaplaceSteps
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.data.unit import Of
    from expost.questions.cells import CountedCells, LargeCells


@dataclass(frozen=True, repr=False)
class Histogram(NumericQuestion[Mapping[Any, int]]):
    """The number of rows, or units, in each of the given cells.

    Parameters
    ----------
    table
        Whose rows.
    value
        The column or expression.
    labels
        The names of the cells; ``other`` last, if it is counted.
    other
        The label of all other values; None if they are not counted.
    of
        ``"rows"`` or ``"units"``.
    edges
        The edges of bins; for bins of equal width the first edge, the last edge and their number; empty for keys.
    cell
        The cell of a value, in SQL.
    places
        The index among the labels of each cell that the engine returns.
    record
        The settings that it was made from, if it was made from a record of them.

    Proof: lem-histogram
    """

    table: PrivateTable
    value: Expression
    labels: tuple[Any, ...]
    other: str | None
    of: Of
    edges: tuple[float, ...]
    cell: str = field(compare=False)
    places: Mapping[Any, int] = field(compare=False)
    record: CountedCells | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_values(
        cls,
        table: PrivateTable,
        value: Expression,
        keys: Any,
        bins: Any,
        bounds: Any,
        other: Any,
        of: Of,
        record: CountedCells | None = None,
    ) -> Histogram:
        """Checks the arguments."""
        as_of(of)
        if (keys is None) == (bins is None):
            raise InvalidValue("a histogram takes either keys or bins: pass one of them, or discover the keys")
        if other is not None and not isinstance(other, str):
            raise InvalidValue(
                f"other is the label of all other values, a text, or None not to count them; got {brief(other)}"
            )
        if keys is not None:
            if bounds is not None:
                raise InvalidValue("bounds are for a number of bins, and keys were given: leave bounds out")
            edges: tuple[float, ...] = ()
            labels, cell, places = _keys(table, value, keys)
        else:
            value = value.as_number()
            edges, (labels, cell, places) = _bins(bins, bounds)
        if other is not None and other in labels:
            raise InvalidValue(f"{other!r}, the label of all other values, is also one of the keys: pass another label")
        named = labels if other is None else (*labels, other)
        return cls(table, value, named, other, of, edges, cell, places, record)

    @property
    def title(self) -> str:
        """What is counted, and what happens to all other values."""
        rest = "the rest not counted" if self.other is None else f"the rest in {self.other!r}"
        return f"histogram of {self.of} by {self.value} ({len(self.labels)} cells, {rest})"

    @property
    def what(self) -> str:
        """What is counted: rows, or units."""
        return self.of

    @property
    def key_names(self) -> tuple[str, ...]:
        """The column, or expression, that was asked."""
        return (self.value.name,)

    @property
    def sensitivity(self) -> Sensitivity:
        """From the fewest and the most rows, or cells, that a unit can have."""
        unit, cells = self.table.unit, len(self.labels)
        fewest = 0 if self.other is None else self.table.fewest
        if self.of == "rows":
            return sensitivity.of_rows(fewest, unit.rows, cells, self.table.neighbours)
        return sensitivity.of_units(fewest, unit.groups, cells, self.table.neighbours)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        cells, drop = len(self.labels), self.other is None
        return self.table.engine.check(rows.tally(self.table, self.of, self.value, self.cell, drop=drop, known=cells))

    @property
    def nothing(self) -> NDArray[np.int64]:
        """A count of 0 for each label."""
        return np.zeros(len(self.labels), np.int64)

    def exact(self) -> NDArray[np.int64]:
        """The counts, in the order of the labels; cells without rows have 0."""
        counts = self.nothing
        for cell, count in self.table.engine.fetch(self.plan):
            counts[len(self.labels) - 1 if cell is None else self.places[cell]] += count
        return counts

    def present(self, numbers: Any) -> dict[Any, int]:
        """{label: count}."""
        return dict(zip(self.labels, np.asarray(numbers).tolist(), strict=True))

    @property
    def fixed(self) -> bool:
        """Whether every unit is in exactly one cell, so that the total is public."""
        one = self.table.unit.rows == 1 and self.table.fewest == 1 and self.other is not None
        return self.table.neighbours == "substitute" and one and len(self.labels) > 1

    def _pure(self, epsilon: Number) -> Any:
        """With Laplace noise; it adds up to zero where every unit is in exactly one cell."""
        if self.fixed:
            return BalancedCounts(question=self, epsilon=requested_epsilon(epsilon))
        return super()._pure(epsilon)

    def mostly_other(self, counts: Mapping[Any, int], error: float) -> str:
        """What to beware of if most of what was published is in no stated cell; a fact about published numbers alone.

        Keys that are spelled otherwise than in the data find nothing, and nobody may look into the data for that.
        """
        if self.other is None or len(self.labels) < 2:
            return ""
        inside = sum(count + error for label, count in counts.items() if label != self.other)
        if counts[self.other] - error <= inside:
            return ""
        if self.edges:
            return "most of what was counted has no value within these bins"
        spelled = (
            ": are they spelled as in the data, capital and small letters, too?" if self.value.kind == "text" else ""
        )
        return f"most of what was counted has none of these keys{spelled}"

    def only(self, labels: Iterable[Any]) -> Histogram:
        """The histogram of these labels only; all other values are not counted."""
        wanted = set(labels)
        cells = {cell: self.labels[place] for cell, place in self.places.items() if self.labels[place] in wanted}
        if not cells or len(cells) < len(wanted):
            raise InvalidValue(f"only() takes labels of this histogram's cells, at least one: {brief(self.labels)}")
        named = tuple(cells.values())
        chosen = f"CASE WHEN {self.cell} IN ({', '.join(map(str, cells))}) THEN {self.cell} END"
        record = None if self.record is None or self.edges else replace(self.record, keys=named, other=None)
        places = {cell: i for i, cell in enumerate(cells)}
        return replace(self, labels=named, other=None, cell=chosen, places=places, record=record)

    def above(self, threshold: int, *, at_most: int) -> CellsAbove:
        """Which cells are above ``threshold``, ``at_most`` of them: a sparse vector, charged for those found.

        {label: :class:`~expost.mechanisms.Comparison`}. Cells after the last one allowed are not compared: with
        ``at_most`` as large as the number of cells, all are.
        """
        return CellsAbove(self, threshold, at_most)


@dataclass(frozen=True, repr=False)
class CellsAbove(Planned, Question[dict[Any, Comparison]]):
    """Which cells of a histogram are above a threshold.

    Parameters
    ----------
    histogram
        The cells.
    threshold
        Above which a cell is looked for.
    at_most
        The most cells looked for; those after the last one allowed are not compared.

    Proof: thm-table
    """

    histogram: Histogram
    threshold: int
    at_most: int

    @property
    def table(self) -> PrivateTable:  # type: ignore[override]
        """Whose rows."""
        return self.histogram.table

    @property
    def record(self) -> LargeCells | None:  # type: ignore[override]
        """The settings that say which cells."""
        from expost.questions.cells import large_cells

        return large_cells(self.histogram.record, self.threshold, self.at_most)

    @property
    def what(self) -> str:
        """What is compared."""
        return self.histogram.what

    @property
    def title(self) -> str:
        """What is looked for."""
        return f"cells above {self.threshold} of a {self.histogram.title}"

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        return self.histogram.plan

    def _mechanism(self, terms: Terms) -> Mechanism[None, dict[Any, Comparison]]:
        """By a sparse vector, which is charged for the cells found."""
        table = self.table
        noise = SparseVector(
            threshold=self.threshold,
            at_most=self.at_most,
            epsilon=terms.only_epsilon(f"finding {self.title}", "laplace"),
            sensitivity=self.histogram._moved().each,
            monotone=table.neighbours == "add-remove",
            neighbours=table.neighbours,
        )
        return Above(question=self.histogram, noise=noise)


@dataclass(frozen=True, kw_only=True, repr=False)
class BalancedCounts(PureMechanism[Mapping[Any, int]]):
    """A histogram whose total is public, with noise that adds up to zero: exact more often than independent noise.

    Parameters
    ----------
    question
        The histogram.
    epsilon
        The whole budget.

    Proof: thm-histogram
    """

    question: Histogram
    epsilon: Number

    def __post_init__(self) -> None:
        if not self.question.fixed:
            raise InvalidValue(
                "noise that adds up to zero needs neighbours='substitute' and every unit in exactly one cell: use "
                "histogram.mechanism(epsilon=…)"
            )
        as_whole(len(self.question.labels), "the number of cells", most=MOST_KEYS)

    @property
    def rate(self) -> Fraction:
        """The noise has probabilities proportional to e^−(rate·``|k|``), given that it adds up to zero."""
        return exact(self.epsilon, "ε") / 2

    @property
    def noise_words(self) -> str:
        """The noise and its scale."""
        return f"Laplace, scale {number_text(1 / float(self.rate))}, adding up to zero"

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        vector.check_rate(self.rate)

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, int]:
        """Query the table, and add noise."""
        drawn = balanced_laplace(noise, self.rate, len(self.question.labels))
        return dict(zip(self.question.labels, noisy_counts(self.question.exact(), drawn), strict=True))

    def error_bound(self, confidence: Number) -> int:
        """How far off any count is at most, with this confidence for all of them at once.

        Proof: lem-histogram-error
        """
        return LaplaceSteps(self.rate).reach((1 - as_confidence(confidence)) / len(self.question.labels))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """Each count with its error by itself. Noises add up to zero, so that no law of their sums is stated.

        Proof: lem-histogram-error
        """
        cells = DrawnCells(list(output.values()), origin, bound=LaplaceSteps(self.rate).reach)
        return Estimates.by_key(self.question.key_names, list(output), self.what, cells)

    def describe(self, output: Any) -> str:
        """The error bound of the counts."""
        error = self.error_bound("0.95")
        beware = self.question.mostly_other(output, error)
        told = f"; beware: {beware}" if beware else ""
        return f"{self.question.title}, all ± {error} at 95 %, adding up to their number{told}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Above(OnNumbers[dict[Any, Comparison]]):
    """Which cells of a histogram are above a threshold, by a sparse vector: charged for those found.

    Parameters
    ----------
    question
        The histogram.
    noise
        The sparse vector.

    Proof: thm-table
    """

    question: Histogram
    noise: SparseVector

    def __post_init__(self) -> None:
        if not isinstance(self.noise, SparseVector):
            raise InvalidValue(f"cells are compared by a SparseVector, got {brief(self.noise)}: use histogram.above(…)")

    @property
    def record(self) -> LargeCells | None:
        """The settings that say which cells."""
        from expost.questions.cells import large_cells

        return large_cells(self.question.record, self.noise.threshold, self.noise.at_most)

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, Comparison]:
        """{label: above, below, or not compared}."""
        return dict(zip(self.question.labels, self.noise.sample(self.question.exact(), noise), strict=True))

    def part_of(self, output: Any) -> Part:
        """The sparse vector's part."""
        return self.noise.part_of(AboveMask.of(output.values()))

    def describe(self, output: Any) -> str:
        """As the sparse vector describes it, with the labels of the cells that are above."""
        counted, stopped, why = self.noise.describe(AboveMask.of(output.values())).partition(";")
        return f"{counted}{shown_labels(label for label, above in output.items() if above)}{stopped}{why}"


MOST_KEYS = 10_000
MOST_BINS = 100_000
"""Their labels and places take memory: a million would be half a gigabyte, from a question of one line."""
_Cells = tuple[tuple[Any, ...], str, dict[Any, int]]
"""Labels, the value's cell in SQL, and the index of each cell among the labels."""


def _keys(table: PrivateTable, value: Expression, keys: Any) -> _Cells:
    listed = listed_keys(value, keys)
    ordered, written = in_order(table, value.kind, listed)
    places = {key: i for i, key in enumerate(listed)}
    cell = query.key_of(written)
    return listed, cell, {i: places[key] for i, key in enumerate(ordered)}


def in_order(table: PrivateTable, kind: Kind | None, keys: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Keys in the engine's order, and their SQL literals: text by its bytes."""
    ordered = sorted(keys, key=str.encode) if kind == "text" else sorted(keys)
    written = [table.engine.render(Stated(key, kind)) for key in ordered]
    return ordered, [table.engine.bytes_of(each) for each in written] if kind == "text" else written


def listed_keys(value: Expression, keys: Any) -> tuple[Any, ...]:
    """The keys, checked to be distinct values of the column's kind."""
    types: dict[Any, type] = {"text": str, "integer": int, "boolean": bool}
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidValue(f"keys are a list of values, got {brief(keys)}")
    listed = tuple(key.item() if isinstance(key, np.generic) else key for key in keys)
    if value.kind == "integer":
        listed = tuple(int(key) if isinstance(key, float) and key.is_integer() else key for key in listed)
    wrong = [key for key in listed if type(key) is not types[value.kind]]
    if wrong and value.kind == "integer" and isinstance(wrong[0], float):
        remedy = "leave it out" if wrong[0] != wrong[0] else "ask for bins, or derive a column of keys"
        raise InvalidValue(f"keys of numbers are whole, and {brief(wrong[0])} is not: {remedy}")
    if wrong:
        raise InvalidValue(
            f"{brief(value.name)} holds {value.kind}, but {brief(wrong[0])} is of another kind: keys are values of the "
            "column"
        )
    large = [key for key in listed if value.kind == "integer" and not fits(key)]
    if large:
        raise InvalidValue(f"whole numbers as keys have at most 64 bits: leave out {brief(large[0])}, which no row has")
    if not listed or len(set(listed)) < len(listed):
        raise InvalidValue(
            f"keys are a list of different values, at least one: got {len(listed)}, of which {len(set(listed))} differ"
        )
    if len(listed) > MOST_KEYS:
        raise InvalidValue(f"a histogram has at most {MOST_KEYS} keys, got {len(listed)}: discover them")
    if value.kind == "text" and not all(map(is_text, listed)):
        raise InvalidValue("text keys are valid UTF-8, without NUL: leave out the others, which no row has")
    return listed


def _bins(bins: Any, bounds: Any) -> tuple[tuple[float, ...], _Cells]:
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        edges = _even_edges(int(bins), bounds)
        stated: tuple[float, ...] = (edges[0], edges[-1], int(bins))
        cell = query.even_bin_of(edges[0], edges[-1], int(bins))
    else:
        if bounds is not None:
            raise InvalidValue("bounds are for a number of bins, and a list of edges was given: leave bounds out")
        edges = [finite(edge, "an edge") for edge in _listed(bins)]
        if len(edges) > MOST_BINS + 1:
            raise InvalidValue(f"there are at most {MOST_BINS} bins, got {len(edges) - 1}: use wider ones")
        _ascend(edges)
        cell, stated = query.bin_of(edges), tuple(edges)
    labels = tuple(f"[{a:.12g}, {b:.12g})" for a, b in pairwise(edges))
    if len(set(labels)) < len(labels):
        raise InvalidValue("some edges are equal in twelve digits, which their labels show: use wider bins")
    return stated, (labels, cell, {i: i for i in range(len(labels))})


def _even_edges(bins: int, bounds: Any) -> list[float]:
    if bounds is None or not 1 <= bins <= MOST_BINS:
        raise InvalidValue(
            f"a number of bins is from 1 to {MOST_BINS}, and needs bounds, the lowest and the highest edge, "
            f"got {bins} bins {'without' if bounds is None else 'with'} bounds"
        )
    low, high = (float(end) for end in exact_bounds(bounds))
    if not isfinite(high - low):
        raise InvalidValue(
            f"bounds from {low:g} to {high:g} are further apart than the largest float: pass narrower ones"
        )
    edges = [low + i * ((high - low) / bins) for i in range(bins)] + [high]
    _ascend(edges)
    return edges


def _ascend(edges: list[float]) -> None:
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise InvalidValue("bins need at least two edges, in ascending order: are the bins too narrow for floats?")


def _listed(bins: Any) -> list[Any]:
    if isinstance(bins, str) or not isinstance(bins, Iterable):
        raise InvalidValue(f"bins are a list of edges, or a number with bounds; got {brief(bins)}")
    return list(bins)
