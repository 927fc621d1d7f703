"""Histograms: over cells that are stated, or over keys that are discovered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import finite
from expost.cost import Number, said
from expost.data import query, sensitivity
from expost.data.expression import Tree, is_text
from expost.data.expression.tree import Stated
from expost.data.questions import Planned, Question, as_bounds, as_number, as_of
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.mechanisms import SparseVector

if TYPE_CHECKING:
    from expost.data.answers import Above, Discovered
    from expost.data.table import Of, PrivateTable


@dataclass(frozen=True, repr=False)
class Histogram(Question):
    """How many rows, or units, each of the stated cells has.

    Proof: lem-histogram
    """

    table: PrivateTable
    text: str
    labels: tuple[Any, ...]
    """What the cells are called; the rest last, if it is counted."""
    other: str | None
    of: Of
    edges: tuple[float, ...]
    """Of bins, exactly; the first and the last of bins of equal width; none of keys."""
    value: Tree = field(compare=False)
    cell: str = field(compare=False)
    """What makes a cell of the value, in the engine's words."""
    places: Mapping[Any, int] = field(compare=False)
    """Where the cells that the engine names stand."""

    @classmethod
    def of_values(
        cls, table: PrivateTable, value: str, keys: Any, bins: Any, bounds: Any, other: Any, of: Of
    ) -> Histogram:
        """From what a person says."""
        as_of(of)
        if (keys is None) == (bins is None):
            raise InvalidValue("a histogram has keys=[…] or bins=…, one of them; discover() finds keys itself")
        if other is not None and not isinstance(other, str):
            raise InvalidValue(f"other is what the rest is called, or None not to count it; got {said(other)}")
        if keys is not None:
            if bounds is not None:
                raise InvalidValue("bounds= are for a number of bins; keys have none")
            edges: tuple[float, ...] = ()
            labels, tree, cell, places = _keys(table, value, keys)
        else:
            edges, (labels, tree, cell, places) = _bins(table, value, bins, bounds)
        if other is not None and other in labels:
            raise InvalidValue(f"{other!r} is one of the keys: call the rest something else, with other=")
        named = labels if other is None else (*labels, other)
        return cls(table, value, named, other, of, edges, tree, cell, places)

    @property
    def title(self) -> str:
        """What is counted, and what happens to the rest."""
        rest = "the rest not counted" if self.other is None else f"the rest in {self.other!r}"
        return f"histogram of {self.of} by {self.text} ({len(self.labels)} cells, {rest})"

    @property
    def sensitivity(self) -> Sensitivity:
        """From the rows and cells that a unit can have, and from whether it can have none."""
        unit, cells = self.table.unit, len(self.labels)
        fewest = 0 if self.other is None else self.table.fewest
        if self.of == "rows":
            return sensitivity.of_rows(fewest, unit.rows, cells, self.table.neighbours)
        return sensitivity.of_units(fewest, unit.groups, cells, self.table.neighbours)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        kept = query.kept_rows if self.of == "rows" else query.kept_pairs
        cells, drop = len(self.labels), self.other is None
        return self.table.engine.check(query.tally(kept(self.table, self.value, self.cell, drop=drop, cells=cells)))

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

    def only(self, labels: Iterable[Any]) -> Histogram:
        """The cells of these labels alone, the rest not counted."""
        wanted = set(labels)
        cells = {cell: self.labels[place] for cell, place in self.places.items() if self.labels[place] in wanted}
        if not cells or len(cells) < len(wanted):
            raise InvalidValue("only() takes labels of stated cells, at least one")
        named = tuple(cells.values())
        chosen = f"CASE WHEN {self.cell} IN ({', '.join(map(str, cells))}) THEN {self.cell} END"
        return replace(self, labels=named, other=None, cell=chosen, places={cell: i for i, cell in enumerate(cells)})

    def above(self, threshold: int, *, at_most: int, epsilon: Number) -> Above:
        """Which cells have more than ``threshold``, at most so many: a sparse vector, which gives back what it can."""
        from expost.data.answers import Above

        noise = SparseVector(
            threshold=threshold,
            at_most=at_most,
            epsilon=epsilon,
            sensitivity=self._moved().each,
            monotone=self.table.neighbours == "add-remove",
            neighbours=self.table.neighbours,
        )
        return Above(self, noise)


@dataclass(frozen=True, repr=False)
class Discovery(Planned):
    """How many units, or rows, have each value that enough of them have. NULL is no value.

    Proof: thm-discovery
    """

    table: PrivateTable
    text: str
    of: Of
    value: Tree = field(compare=False)

    @classmethod
    def of_values(cls, table: PrivateTable, value: str, of: Of) -> Discovery:
        """From what a person says."""
        as_of(of)
        return cls(table, value, of, table.expression(value, ("text", "integer", "boolean"), "a key"))

    @property
    def alone(self) -> tuple[tuple[int, int], ...]:
        """The worst that a unit can do to keys that nobody else has: so much in one, and 1 in each of so many others.

        Proof: lem-lone-keys
        """
        rows, groups = self.table.unit.rows, self.table.unit.groups
        return ((1, groups - 1),) if self.of == "units" else ((rows, 0), (rows - groups + 1, groups - 1))

    @property
    def sensitivity(self) -> Sensitivity:
        """As of a histogram with any number of cells."""
        unit, relation = self.table.unit, self.table.neighbours
        if self.of == "rows":
            return sensitivity.of_rows(0, unit.rows, 2, relation)
        return sensitivity.of_units(0, unit.groups, 2 * unit.groups + 1, relation)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        kept = query.kept_rows if self.of == "rows" else query.kept_pairs
        cell = _key(self.table, self.value)
        return self.table.engine.check(query.tally(kept(self.table, self.value, cell, drop=True, cells=None)))

    def exact(self) -> list[tuple[Any, int]]:
        """Every value and its count, in the order of the values. Private, the values included."""
        return sorted((_said(key), int(count)) for key, count in self.table.engine.fetch(self.plan))

    def laplace(self, *, epsilon: Number, delta: Number) -> Discovered:
        """Release what, with Laplace noise, has at least as much as no single unit is likely to reach."""
        from expost.data.answers import Discovered

        return Discovered(self, epsilon, delta)

    @property
    def title(self) -> str:
        """What is counted."""
        return f"discovery of {self.of} by {self.text} (NULL not counted)"


def _key(table: PrivateTable, value: Tree) -> str:
    """The value as something that is equal for what is the same: text by its bytes."""
    return table.engine.bytes_of(query.VALUE) if value.kind == "text" else query.VALUE


Cells = tuple[tuple[Any, ...], Tree, str, dict[Any, int]]
"""Labels, the value, what makes a cell of it, and where the cells stand among the labels."""


def _keys(table: PrivateTable, text: str, keys: Any) -> Cells:
    tree = table.expression(text, ("text", "integer", "boolean"), "a key")
    listed = _listed_keys(text, tree, keys)
    ordered = sorted(listed, key=str.encode) if tree.kind == "text" else sorted(listed)
    render = table.engine.render
    written = [render(Stated(key, tree.kind)) for key in ordered]
    if tree.kind == "text":
        written = list(map(table.engine.bytes_of, written))
    places = {key: i for i, key in enumerate(listed)}
    cell = query.key_of(_key(table, tree), written)
    return listed, tree, cell, {i: places[key] for i, key in enumerate(ordered)}


def _listed_keys(text: str, tree: Tree, keys: Any) -> tuple[Any, ...]:
    types: dict[Any, type] = {"text": str, "integer": int, "boolean": bool}
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidValue(f"keys are a list of values, got {said(keys)}")
    listed = tuple(key.item() if isinstance(key, np.generic) else key for key in keys)
    wrong = [key for key in listed if type(key) is not types[tree.kind]]
    if wrong:
        raise InvalidValue(
            f"{said(text)} holds {tree.kind}, and {said(wrong[0])} is none: keys are values of the column"
        )
    if tree.kind == "integer" and any(not -(2**63) <= key < 2**63 for key in listed):
        raise InvalidValue("keys that are whole numbers have at most 64 bits")
    if not listed or len(set(listed)) < len(listed):
        raise InvalidValue("keys are listed once each, and there is at least one")
    if tree.kind == "text" and not all(map(is_text, listed)):
        raise InvalidValue("keys are text that can be written in UTF-8, without NUL")
    return listed


def _bins(table: PrivateTable, text: str, bins: Any, bounds: Any) -> tuple[tuple[float, ...], Cells]:
    tree = as_number(table.expression(text, ("integer", "number"), "a bin"))
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        edges = _even_edges(int(bins), bounds)
        cell, stated = query.even_bin_of(edges[0], edges[-1], int(bins)), (edges[0], edges[-1])
    else:
        if bounds is not None:
            raise InvalidValue("bounds= are for a number of bins; a list of edges has its own")
        edges = [finite(edge, "an edge") for edge in _listed(bins)]
        _ascend(edges)
        cell, stated = query.bin_of(edges), tuple(edges)
    labels = tuple(f"[{a:.12g}, {b:.12g})" for a, b in pairwise(edges))
    if len(set(labels)) < len(labels):
        raise InvalidValue("some edges are too close to be told apart in twelve digits: take wider bins")
    return stated, (labels, tree, cell, {i: i for i in range(len(labels))})


def _even_edges(bins: int, bounds: Any) -> list[float]:
    if bounds is None or not 1 <= bins <= 10**6:
        raise InvalidValue("a number of bins, from 1 to a million, goes with bounds=(lowest, highest)")
    low, high = (float(end) for end in as_bounds(bounds))
    if not isfinite(high - low):
        raise InvalidValue(f"bounds of {said(bounds)} are further apart than floats go: take narrower ones")
    edges = [low + i * ((high - low) / bins) for i in range(bins)] + [high]
    _ascend(edges)
    return edges


def _ascend(edges: list[float]) -> None:
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise InvalidValue("the edges of bins ascend, and there are at least two: are the bins too narrow for floats?")


def _said(key: Any) -> Any:
    """A key as people write it. Bytes that are no text keep apart what is apart."""
    return bytes(key).decode(errors="surrogateescape") if isinstance(key, bytes | bytearray) else key


def _listed(bins: Any) -> list[Any]:
    if isinstance(bins, str) or not isinstance(bins, Iterable):
        raise InvalidValue(f"bins are a list of edges, or a number with bounds=(lowest, highest); got {said(bins)}")
    return list(bins)
