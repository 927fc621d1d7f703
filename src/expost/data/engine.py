"""`Engine`: what a private table needs of a database or file reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from expost.data.expression import Kind, Tree


@runtime_checkable
class Engine(Protocol):
    """A source of rows that answers SQL queries, which only this package writes.

    An engine passes ``tests/conformance/test_engines.py``. It must evaluate each expression row by row, as
    :func:`~expost.data.expression.evaluate` does, without ever failing; give equal answers for equal rows, whatever
    their order and the number of threads; sum whole numbers exactly; and give equal values equal hashes. Engines are
    equal if they read the same rows from the same place. An engine whose rows have no order that is independent of
    their values has ``ordered = False``.
    """

    @property
    def name(self) -> str:
        """Where the rows come from, as shown to people."""

    @property
    def schema(self) -> Mapping[str, Kind]:
        """The columns and their kinds. Public."""

    @property
    def source(self) -> str:
        """The relation that has all rows, for a FROM clause."""

    def quote(self, name: str) -> str:
        """The name of a column, quoted."""

    def render(self, tree: Tree, derived: Collection[str] = ()) -> str:
        """An expression in SQL, over the columns of the source and the derived ones."""

    def owner(self, name: str) -> str:
        """The column that identifies units, in SQL: two values are equal if and only if the unit is the same.

        Rows in which it is NULL belong to no unit.
        """

    def bytes_of(self, text: str) -> str:
        """Text as bytes, in SQL: equal if and only if the texts are identical, whatever the engine's collation."""

    def scramble(self, key: int, columns: Sequence[str]) -> str:
        """A keyed hash of the columns, in SQL, to order rows by: every bit of it depends on all of them."""

    def total(self, column: str) -> str:
        """The exact sum of a column of 64-bit whole numbers, in SQL, for any number of rows."""

    def check(self, query: str) -> str:
        """The query itself, if it can be run: called when a question is planned, so that errors come before charges."""

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query. A failure raises :class:`~expost.errors.EngineFailed`, which quotes no data."""

    def arrays(self, query: str) -> list[NDArray[np.float64]]:
        """The columns of a numeric query; NULL is NaN. The rows keep the source's order."""
