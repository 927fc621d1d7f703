"""`TableStep`: a filter or a derived column, which makes one table from another row by row."""

from __future__ import annotations

from dataclasses import dataclass

from expost.data.expression import Expression


@dataclass(frozen=True)
class TableStep:
    """A filter, or a derived column."""

    expression: Expression
    column: str | None = None

    @property
    def description(self) -> str:
        """What it does, as shown to people."""
        return self.expression.text

    @property
    def size(self) -> int:
        """How many parts it adds to its expression when it is rendered."""
        return 0
