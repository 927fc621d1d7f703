"""Values that are found in the data: those that enough units have, or that most have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from expost.data.expression import KEY_KINDS
from expost.data.unit import Of
from expost.errors import InvalidValue
from expost.questions.record import ColumnOf, QuestionRecord, column_of

if TYPE_CHECKING:
    from expost.data.discovery import Discovery, TopKeys
    from expost.data.table import PrivateTable


@dataclass(frozen=True)
class Discover(QuestionRecord["Discovery"]):
    """The number of units, or rows, of each value that enough of them have.

    Parameters
    ----------
    column
        A column, or an expression.
    of
        ``"units"`` or ``"rows"``.

    Proof: thm-discovery
    """

    kind: ClassVar[str] = "discover"

    column: ColumnOf | None = None
    of: Of = "units"

    def question(self, table: PrivateTable) -> Discovery:
        """The values that are looked for."""
        from expost.data.discovery import Discovery

        value = table.expression(column_of(self.column, self.kind), KEY_KINDS, "a key")
        return replace(Discovery.of_values(table, value, self.of), record=self)


@dataclass(frozen=True)
class Top(QuestionRecord["TopKeys"]):
    """The values that most units have, most frequent first, without counts.

    Parameters
    ----------
    column
        A column, or an expression.
    at_most
        The most values that are looked for.
    without
        Public values to leave out.

    Proof: thm-top-k
    """

    kind: ClassVar[str] = "top"

    column: ColumnOf | None = None
    at_most: int | None = None
    without: Sequence[Any] = ()

    def question(self, table: PrivateTable) -> TopKeys:
        """The values that are looked for."""
        if self.at_most is None:
            raise InvalidValue("the top values are at most so many: pass at_most=")
        return Discover(self.column).question(table).top(self.at_most, without=tuple(self.without))


def top_of(discover: Discover | None, at_most: int, without: tuple[Any, ...]) -> Top | None:
    """The record of the most frequent of these values; None if they have none."""
    return None if discover is None else Top(discover.column, at_most, without)
