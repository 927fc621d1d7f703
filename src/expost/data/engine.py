"""`Engine`: what a private table needs of a database or file reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from expost.data.expression import Kind, Tree


@runtime_checkable
class Engine(Protocol):
    """A source of rows that answers queries in SQL, which only this package writes.

    An engine passes ``tests/conformance/test_engines.py``. What it must get right: expressions have the values that
    :func:`~expost.data.expression.evaluate` gives them, row by row, and none of them fails; equal rows give equal
    answers whatever their order and the number of threads; whole numbers are summed exactly; what is equal has equal
    hashes and is indistinguishable. Engines are equal if they read the same rows from the same place. One whose rows
    have no order that is independent of what they say has ``ordered = False``.
    """

    @property
    def name(self) -> str:
        """Where the rows come from, for people."""

    @property
    def schema(self) -> Mapping[str, Kind]:
        """The columns and what they hold. Public."""

    @property
    def source(self) -> str:
        """All rows, for FROM."""

    def quote(self, name: str) -> str:
        """The name of a column, whatever characters it has."""

    def render(self, tree: Tree, derived: Collection[str] = ()) -> str:
        """An expression over a row of the source, or over the derived columns beside it."""

    def owner(self, name: str) -> str:
        """The column that identifies whom a row is about: equal values for the same unit, and only for it."""

    def bytes_of(self, text: str) -> str:
        """Text as bytes, which are equal if and only if the texts are the same, whatever an engine's collation."""

    def scramble(self, key: int, columns: Sequence[str]) -> str:
        """A number to order rows by: a hash of the columns under a key, in which every bit depends on all of them."""

    def total(self, column: str) -> str:
        """The exact sum of a column of 64-bit whole numbers, whatever their number."""

    def check(self, query: str) -> str:
        """The query, which can be run: made when a question is planned, so that nothing public fails after a charge."""

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query. A failure raises :class:`~expost.errors.EngineFailed`, which quotes no data."""

    def arrays(self, query: str) -> list[NDArray[np.float64]]:
        """The columns of a query, all numbers; NULL is NaN. The rows keep the source's order."""
