"""What bounds and the cap on rows take away from other answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from expost.cost import Number
from expost.data.clipped import Clipped
from expost.data.expression import NUMBER_KINDS
from expost.errors import InvalidValue
from expost.questions.record import ColumnOf, QuestionRecord, column_of

if TYPE_CHECKING:
    from expost.data.lost import Lost
    from expost.data.table import PrivateTable


@dataclass(frozen=True)
class LostValues(QuestionRecord["Lost"]):
    """The share of values that bounds move, and of units that have more rows than count.

    Parameters
    ----------
    column
        A column, or an expression.
    bounds
        The lowest and the highest value that counts in other questions.
    missing
        What NULL and NaN count as; with ``"drop"`` they do not count.

    Proof: thm-lost
    """

    kind: ClassVar[str] = "lost"

    column: ColumnOf | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"

    def question(self, table: PrivateTable) -> Lost:
        """The column, parsed, and its bounds."""
        from expost.data.lost import Lost

        value = table.expression(column_of(self.column, self.kind), NUMBER_KINDS, "a share of values")
        if self.bounds is None:
            raise InvalidValue("values are lost to bounds: pass bounds=(lowest, highest)")
        return Lost(table, Clipped.of(value, self.bounds, self.missing, None), self)
