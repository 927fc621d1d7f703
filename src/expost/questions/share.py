"""The share of rows for which a condition holds: noisy numbers of rows for which it does, and for which it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from expost.data.expression import Expression
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.mentions import brief
from expost.noise.sums import StepLaw
from expost.questions.mean import Averaged
from expost.questions.noised import Noised, NoiseOfNumbers
from expost.questions.statistic import ColumnOf, Reach, Reading, Statistic, Sums, Total

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.statistics import Statistics  # noqa: F401  # named in brackets


@dataclass(frozen=True)
class Share(Statistic["Statistics"]):
    """The share of rows for which a condition is true, of those that count.

    Of a table: ``table.share("cost > 100")``. Of an array: ``xp.Share("value > 100")``.

    Parameters
    ----------
    condition
        A comparison, such as ``"cost > 100"``, or any other expression that is true or false.
    missing
        What a condition that is NULL counts as: True or False; with ``"drop"`` such rows do not count. NaN is a value,
        above all numbers: ``"cost > 100 AND NOT isnan(cost)"``.

    Proof: thm-share
    """

    kind: ClassVar[str] = "share"

    condition: ColumnOf | None = None
    missing: bool | str = "drop"

    def read(self, table: PrivateTable) -> ShareOfTable:
        """The condition, parsed; raises if it is none."""
        if self.condition is None:
            raise InvalidValue("of which rows is the share? Pass a condition, as in xp.Share('cost > 100')")
        condition = table.expression(self.condition, ("boolean",), "a share")
        if self.missing == "drop":
            return ShareOfTable(condition, None)
        if not isinstance(self.missing, bool):
            raise InvalidValue(
                f"missing is what a condition that is NULL counts as, True, False or 'drop'; got {brief(self.missing)}"
            )
        return ShareOfTable(condition, self.missing)


@dataclass(frozen=True)
class ShareOfTable(Reading):
    """The share of rows for which a condition is true.

    Parameters
    ----------
    condition
        What is true or false in each row.
    missing
        What NULL counts as; None if such rows do not count.
    """

    condition: Expression
    missing: bool | None

    @property
    def values(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """The condition."""
        return (self.condition,)

    @property
    def dropped(self) -> bool:  # type: ignore[override]
        """Whether rows for which the condition is NULL do not count."""
        return self.missing is None

    @property
    def title(self) -> str:
        """The condition, and the rule for NULL."""
        gone = "dropped" if self.missing is None else str(self.missing).lower()
        return f"{self.what} (missing {gone})"

    @property
    def what(self) -> str:
        """The condition."""
        return f"share of {self.condition.name}"

    def cells(self, values: Sequence[str]) -> list[str]:
        """1 if the condition is true, and 0 if it is not."""
        gone = "CAST(NULL AS BIGINT)" if self.missing is None else f"{self.missing:d}"
        return [f"CASE WHEN {values[0]} IS NULL THEN {gone} WHEN {values[0]} THEN 1 ELSE 0 END"]

    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """The rows for which it does not hold, and those for which it does: two cells of one histogram.

        Where the number of rows is public: that number, and the rows for which it holds.
        """
        of, holds = (f"count(CASE WHEN {cells[0]} = {value} THEN 1 END)" for value in (0, 1))
        if reach.one_row_each(dropped=self.dropped):
            return (Sums((f"count({cells[0]})", holds), reach.sums(0, 1, dropped=self.dropped), public=1),)
        return (Sums((of, holds), reach.counts(dropped=self.dropped, kinds=2)),)

    def of_size(self, values: int) -> tuple[int, ...]:
        """For none of them it holds: the error is smaller for shares between."""
        return values, 0

    def noise_on(self, laws: Sequence[StepLaw | None]) -> str:
        """Rows for which the condition holds, and for which it does not."""
        return "on the number of rows for which it holds" + ("" if laws[0] is None else ", and of the others")

    def answer(self, noised: Noised) -> Any:
        """The share, from 0 to 1, with its error for any confidence; ``how`` has the number of rows."""
        first, holds = noised.numbers
        rows = max(first if noised.laws[0] is None else first + holds, 1)
        share = min(max(holds / rows, 0.0), 1.0)
        bound = partial(error_of_share, noised.noise, share, rows)
        return Estimate.of(share, Drawn(noised.origin, bound), how=Averaged(rows))


def error_of_share(noise: NoiseOfNumbers, share: float, rows: int, miss: Fraction) -> float:
    """How far noise on the numbers of rows moved a share at most, from the share and the number of rows with noise.

    A number of 1 may be a noisy one below 1, so its bound is 1.

    Proof: lem-share-error
    """
    if rows <= 1:
        return 1.0
    if noise.laws[0] is None:
        return min(1.0, noise.reach((1.0,), miss, 1) / rows * (1 + 2**-40))
    error = 1.0
    for _ in range(4):
        weights = min(1.0, share + error), min(1.0, 1 - share + error)  # of rows for which it does not hold, and does
        larger = int(weights[1] > weights[0])
        part = ceil(32 * weights[1 - larger] / weights[larger]) / 32  # rounded up, so that few are looked up
        reach = weights[larger] * noise.reach((1.0, part), miss, larger, 1 - larger)
        error = min(error, reach / rows * (1 + 2**-40))
    return error
