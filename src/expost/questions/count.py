"""The number of rows, or of units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from expost.data import rows
from expost.data.unit import Of, as_of
from expost.questions.noised import Noised
from expost.questions.statistic import Reach, Reading, Statistic, Sums, Total

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.statistics import NumericStatistic  # noqa: F401  # named in brackets


@dataclass(frozen=True)
class Count(Statistic["NumericStatistic[int]"]):
    """The number of rows, or of units. At most ``unit.rows`` rows of each unit count.

    Of a table: ``table.count()``. Of an array: ``xp.Count()``.

    Parameters
    ----------
    of
        ``"rows"`` or ``"units"``.

    Proof: lem-number, lem-histogram
    """

    kind: ClassVar[str] = "count"

    of: Of = "rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_of(self.of)

    def read(self, table: PrivateTable) -> CountOfTable:
        """It has no columns."""
        return CountOfTable(table, self.of)


@dataclass(frozen=True)
class CountOfTable(Reading):
    """The number of rows, or units, of a table."""

    table: PrivateTable
    of: Of
    step = Fraction(1)

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Only of rows: a unit may be in several groups."""
        return self.of == "rows"

    @property
    def title(self) -> str:
        """What is counted."""
        return self.what

    @property
    def what(self) -> str:
        """What is counted."""
        return f"count of {self.of}"

    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """One number."""
        people = self.of == "units" and self.table.unit.column is not None
        moved = reach.units if self.of == "units" else reach.counts(dropped=False)
        return (Sums(("count(DISTINCT u)" if people else "count(*)",), moved),)

    @cached_property
    def alone(self) -> str:
        """The query for all rows of the table, which need not be told apart."""
        return rows.count_rows(self.table) if self.of == "rows" else rows.count_units(self.table)

    def answer(self, noised: Noised) -> Any:
        """The count."""
        return int(noised.numbers[0])
