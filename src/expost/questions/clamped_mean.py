"""The mean of values clamped to two of their quantiles, which are found privately first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from expost.cost import Number
from expost.data.expression import NUMBER_KINDS
from expost.errors import InvalidValue
from expost.questions.record import ColumnOf, QuestionRecord, column_of

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.data.winsorized import WinsorizedMean


@dataclass(frozen=True)
class ClampedMean(QuestionRecord["WinsorizedMean"]):
    """The winsorised mean: of values clamped to their quantiles ``trim`` and 1 − ``trim``.

    Parameters
    ----------
    column
        A column, or an expression.
    trim
        The share that is clamped on either side.
    bounds
        The lowest and the highest value that counts, which may be loose; without bounds values may have any size.
    missing
        What NULL and NaN count as; with ``"drop"`` they do not count.
    grid
        What values are rounded to.

    Proof: thm-winsorized-mean
    """

    kind: ClassVar[str] = "winsorized_mean"

    column: ColumnOf | None = None
    trim: Number | None = None
    bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"
    grid: Number | None = None

    def question(self, table: PrivateTable) -> WinsorizedMean:
        """The column, parsed, and its two quantiles."""
        from expost.data.winsorized import WinsorizedMean

        value = table.expression(column_of(self.column, self.kind), NUMBER_KINDS, "a winsorised mean")
        if self.trim is None:
            raise InvalidValue("trim is the share clamped on either side: pass trim=, such as 0.05")
        found = WinsorizedMean.of(table, value, self.trim, self.bounds, self.missing, self.grid)
        return replace(found, record=self)
