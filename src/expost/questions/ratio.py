"""The ratio of two sums, such as cost per visit or a share of a total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from expost.cost import Number
from expost.data.clipped import Clipped
from expost.data.expression import NUMBER_KINDS, Expression
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.noise.sums import StepLaw, Term
from expost.questions.noised import Noised
from expost.questions.statistic import ColumnOf, Reach, Reading, Statistic, Sums, Total, check_listed, check_pairs

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.statistics import Statistics  # noqa: F401  # named in brackets


@dataclass(frozen=True)
class Ratio(Statistic["Statistics"]):
    """The sum of one column over the sum of another: each has half of ε.

    Of a table: ``table.ratio("cost", "visits", bounds=[(0, 500), (0, 20)])``.
    Of an array: ``xp.Ratio(bounds=[(0, 500), (0, 20)])``.

    Parameters
    ----------
    columns
        Two columns or expressions: what is divided, and by what.
    bounds
        A pair (lowest, highest) for each; values beyond are moved there.
    missing
        What NULL and NaN count as; with ``"drop"`` a row counts only if it has both values.

    Proof: thm-ratio
    """

    kind: ClassVar[str] = "ratio"

    columns: Sequence[ColumnOf] = ()
    bounds: Sequence[tuple[Number, Number]] = ()
    missing: Number | str = "drop"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns != ():
            check_listed(self.columns, "columns")

    def read(self, table: PrivateTable) -> RatioOfTable:
        """Both columns, parsed; raises for bounds that do not fit."""
        check_listed(self.columns, "columns")
        check_pairs(self.bounds)
        if len(self.columns) != 2 or len(self.bounds) != 2:
            raise InvalidValue(
                f"a ratio is of two columns, with a pair of bounds for each; got {len(self.columns)} columns and "
                f"{len(self.bounds)} pairs"
            )
        parsed = (table.expression(column, NUMBER_KINDS, "a ratio") for column in self.columns)
        pairs = zip(parsed, self.bounds, strict=True)
        over, under = (Clipped.of(value, ends, self.missing, None, summed=True) for value, ends in pairs)
        return RatioOfTable(over, under)


@dataclass(frozen=True)
class RatioOfTable(Reading):
    """The sum of one value over the sum of another."""

    over: Clipped
    under: Clipped

    @property
    def values(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """Both values."""
        return self.over.expression, self.under.expression

    @property
    def dropped(self) -> bool:  # type: ignore[override]
        """Whether rows without both values do not count."""
        return self.over.missing is None

    @property
    def title(self) -> str:
        """What is divided by what."""
        return f"ratio of {self.over!r} to {self.under!r}"

    @property
    def what(self) -> str:
        """What is divided by what, without the rules for values."""
        return f"ratio of {self.over.expression.name} to {self.under.expression.name}"

    def cells(self, values: Sequence[str]) -> list[str]:
        """The clamped values, in steps."""
        return [self.over.cell_of(values[0]), self.under.cell_of(values[1])]

    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """Two sums, with half of ε each."""
        one, other = both_there(cells) if missing else cells
        half, dropped = Fraction(1, 2), self.dropped
        return (
            Sums((total(one),), reach.sums(*self.over.ends, dropped=dropped), half),
            Sums((total(other),), reach.sums(*self.under.ends, dropped=dropped), half),
        )

    def noise_on(self, laws: Sequence[StepLaw | None]) -> str:
        """On both."""
        return "on both sums"

    def answer(self, noised: Noised) -> Any:
        """The ratio, with an interval that holds for both sums at once; ``how`` has both."""
        pair = [
            Estimate.of(
                value.grid.value(noised.numbers[place]),
                Drawn((noised.origin, place), law=partial(_same, noised.term(place, value.grid.step)))
                if noised.groups == 1
                else Drawn((noised.origin, place), partial(_of_total, noised, place, value)),
            )
            for place, value in enumerate((self.over, self.under))
        ]
        return pair[0] / pair[1]


def both_there(cells: Sequence[str]) -> list[str]:
    """Cells that are NULL where any of them is."""
    there = " AND ".join(f"{cell} IS NOT NULL" for cell in cells)
    return [f"CASE WHEN {there} THEN {cell} END" for cell in cells] if len(cells) > 1 else list(cells)


def _same(term: Term) -> Term:
    return term


def _of_total(noised: Noised, place: int, value: Clipped, miss: Fraction) -> float:
    """How far the noise of several groups goes."""
    return noised.noise.reach((1.0,), miss, place) * float(value.grid.step) * (1 + 2**-40)
