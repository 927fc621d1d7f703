"""`Column`: values that stay in the engine until a mechanism reads them, after the reservation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.data import query, rows
from expost.data.expression import Expression
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mechanism import PrivateData
from expost.mentions import Argument, brief

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


@dataclass(frozen=True)
class Column(PrivateData):
    """One value, or one row of values, per unit: an array that rank statistics and regressions run ``on``.

    Under substitution the number of units is public, and so is the shape. NULL is NaN; the mechanism
    decides what it counts as. If the unit is a row, values are in the source's order, otherwise in ascending order.

    Parameters
    ----------
    table
        The table, unfiltered, with one row per unit, under substitution.
    values
        The columns or expressions.

    Proof: lem-column
    """

    table: PrivateTable
    values: tuple[Expression, ...]

    @classmethod
    def of(cls, table: PrivateTable, values: Sequence[Expression]) -> Column:
        """The columns of a table; raises where the number of values is not public, or the query cannot be run."""
        if not values:
            raise InvalidValue("column() got no names: name at least one column")
        if table.neighbours != "substitute":
            raise InvalidValue(
                "columns need a public number of units, and under 'add-remove' it is private: use the table's own "
                "median, quantile or mean; or, only if anybody may know that number, read it with ",
                Argument("neighbours", "substitute"),
            )
        if table.filtered:
            raise InvalidValue(
                "columns need a public number of rows, and after a filter it is private: use the filtered table's own "
                "median, quantile, mean or histogram"
            )
        if table.unit.rows != 1:
            raise InvalidValue(
                f"columns need one row per unit, and a unit may have {table.unit.rows}: use the table's own median, "
                "quantile or mean; or let its unit have ",
                Argument("rows", 1),
                ", which leaves out all but one row of each unit",
            )
        if table.unit.column is None and not table.ordered:
            raise InvalidValue(
                "columns keep the order of the rows, and rows of a partitioned folder, of a join or of Spark have no "
                "order: use the table's own median, quantile or mean"
            )
        if table.unit.column is not None and len(values) > 1:
            raise InvalidValue(
                f"several columns keep the order of the rows, and units by {table.unit.column!r} have no order: write "
                "a file with exactly one row per unit, and read it with ",
                Argument("unit", "row"),
            )
        column = cls(table, tuple(value.as_number() for value in values))
        _ = column.plan  # the query can be run
        return column

    @property
    def unit_name(self) -> str:
        """Whose privacy is protected: the unit of the table."""
        return self.table.unit.title

    @property
    def relation(self) -> Neighbours:
        """That of the table."""
        return self.table.neighbours

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Always float64."""
        return np.dtype(np.float64)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of units, which is public, and of columns if there are several; checks the declared size."""
        units = self.table.counted()
        self.table.engine.check(self.plan)  # again: a caller's table may have changed since the column was named
        return (units,) if len(self.values) == 1 else (units, len(self.values))

    @property
    def ndim(self) -> int:
        """1, or 2 for several columns."""
        return 1 if len(self.values) == 1 else 2

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def plan(self) -> str:
        """The query that will be run."""
        if self.table.unit.column is None:
            named = [f"{query.rendered(self.table, value)} AS v{i}" for i, value in enumerate(self.values)]
            asked = f"SELECT {', '.join(named)} FROM {query.relation(self.table)}"
        else:
            kept = rows.one_cell(self.table, self.values[0], query.VALUE, drop=False)
            asked = f"SELECT c FROM {query.nested(kept)}"
        return self.table.engine.check(asked)

    @cached_property
    def _values(self) -> NDArray[np.float64]:
        values = np.column_stack(self.table.engine.arrays(self.plan)) + 0.0  # −0.0 becomes 0.0
        if self.table.unit.column is not None:
            values.sort(axis=0)
        if len(values) != self.shape[0]:
            raise InvalidValue(f"{brief(self.table.name)} changed while it was read: read it again when nobody writes")
        return values[:, 0] if self.ndim == 1 else values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = self._values if dtype is None else self._values.astype(dtype, copy=False)
        return values.copy() if copy is not False else values

    def __repr__(self) -> str:
        return f"Column({', '.join(repr(value.name) for value in self.values)}, table={self.table!r})"
