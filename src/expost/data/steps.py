"""What makes one table of another, row by row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableStep:
    """A filter, or a derived column."""

    expression: str
    column: str | None = None

    @property
    def said(self) -> str:
        """What it does, for people."""
        return self.expression

    @property
    def size(self) -> int:
        """How many parts it has beside its expression, when it is rendered."""
        return 0
