"""`Engine`: the little that a private table needs of whatever holds the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

Kind: TypeAlias = Literal["integer", "number", "text", "boolean", "time", "other"]
"""What a column holds, as far as questions care."""


@runtime_checkable
class Engine(Protocol):
    """A source of rows that answers queries given as SQLGlot expressions.

    An engine passes ``tests/conformance/test_engines.py``. What it must get right: equal rows give equal answers
    whatever their order and the number of threads; whole numbers are summed exactly; what is equal has equal hashes and
    cannot be told apart; nothing that stands in the data makes a query fail. Engines are equal if they read the same
    rows from the same place.
    """

    @property
    def name(self) -> str:
        """Where the rows come from, for people."""

    @property
    def schema(self) -> Mapping[str, Kind]:
        """The columns and what they hold. Public."""

    def source(self) -> exp.Table:
        """All rows, with the columns of the schema."""

    def blank(self) -> exp.Table:
        """The same columns, but no rows: what queries are planned on. Where that is not at hand, the source will do."""

    def describe(self, query: exp.Select) -> Mapping[str, Kind]:
        """The columns that a query would give. Reads no data; what is wrong with the query raises InvalidValue."""

    def attempt(self, expression: exp.Expression) -> exp.Expression:
        """The expression, but NULL in every row in which it would fail."""

    def scramble(self, key: int, columns: Sequence[exp.Expression]) -> exp.Expression:
        """A number to order rows by: a hash of the columns under a key."""

    def total(self, column: exp.Expression) -> exp.Expression:
        """The exact sum of a column of 64-bit whole numbers, whatever their number."""

    def text(self, query: exp.Select) -> str:
        """The query in the engine's own words. Made when a question is planned, before anything is charged."""

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query. A failure raises :class:`~expost.errors.EngineFailed`, which quotes no data."""

    def arrays(self, query: str) -> list[NDArray[np.float64]]:
        """The columns of a query, all numbers; NULL is NaN. The rows keep the source's order."""
