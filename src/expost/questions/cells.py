"""The number of rows, or units, in each of given cells; and which cells are large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost.cost import Number
from expost.data.unit import Of
from expost.errors import InvalidValue
from expost.questions.record import AQuestion, ColumnOf, QuestionRecord, column_of

if TYPE_CHECKING:
    from expost.data.histograms import CellsAbove, Histogram
    from expost.data.table import PrivateTable


@dataclass(frozen=True)
class _Counted(QuestionRecord[AQuestion]):
    """A question about cells."""

    column: ColumnOf | None = None
    keys: Sequence[Any] | None = None
    bins: int | Sequence[float] | None = None
    bounds: tuple[Number, Number] | None = None
    of: Of = "rows"
    other: str | None = None

    def __post_init__(self) -> None:
        for name in ("keys", "bins"):
            object.__setattr__(self, name, _as_tuple(getattr(self, name)))
        super().__post_init__()

    def histogram(self, table: PrivateTable) -> Histogram:
        """The cells of a table."""
        from expost.data.histograms import Histogram

        column = column_of(self.column, self.kind)
        if self.bins is None:
            value = table.key_column(column, stated=True)
        else:
            value = table.expression(column, ("integer", "number"), "a bin")
        record = self if isinstance(self, CountedCells) else CountedCells(**_settings_of(self))
        return Histogram.of_values(table, value, self.keys, self.bins, self.bounds, self.other, self.of, record)


@dataclass(frozen=True)
class CountedCells(_Counted["Histogram"]):
    """The number of rows, or units, for each of the given ``keys``, or in each of the ``bins``: a histogram.

    Parameters
    ----------
    column
        A column, or an expression.
    keys
        The values that are counted.
    bins
        A list of edges; or a number of bins of equal width, between ``bounds``.
    bounds
        The lowest and the highest edge, for a number of bins.
    of
        ``"rows"`` or ``"units"``.
    other
        What all other values are called; None if they are not counted.

    Proof: lem-histogram
    """

    kind: ClassVar[str] = "histogram"

    other: str | None = "other"

    def question(self, table: PrivateTable) -> Histogram:
        """The histogram."""
        return self.histogram(table)


@dataclass(frozen=True)
class LargeCells(_Counted["CellsAbove"]):
    """Which cells of a histogram are above a threshold: charged for those that are.

    Parameters
    ----------
    column, keys, bins, bounds, of, other
        As for :class:`CountedCells`; other values are not counted unless ``other`` says what they are called.
    threshold
        Above which a cell is large.
    at_most
        The most large cells looked for; those after the last one allowed are not compared.

    Proof: thm-table
    """

    kind: ClassVar[str] = "above"

    threshold: int | None = None
    at_most: int | None = None

    def question(self, table: PrivateTable) -> CellsAbove:
        """The cells, and what is looked for."""
        if self.threshold is None or self.at_most is None:
            raise InvalidValue("large cells are above a threshold, at most so many of them: pass threshold and at_most")
        return self.histogram(table).above(self.threshold, at_most=self.at_most)


def large_cells(cells: CountedCells | None, threshold: int, at_most: int) -> LargeCells | None:
    """The record of which of these cells are large; None if the cells have none."""
    return None if cells is None else LargeCells(**_settings_of(cells), threshold=threshold, at_most=at_most)


def _settings_of(record: _Counted[Any]) -> dict[str, Any]:
    """What both have."""
    return {each.name: getattr(record, each.name) for each in fields(_Counted)}


def _as_tuple(values: Any) -> Any:
    """A list of values as a tuple of plain ones; anything else as it is, for the histogram to refuse."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return values
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)
