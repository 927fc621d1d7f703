"""Statistics that follow from the number of rows, the sums of values and of their products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_interval, as_whole, finite
from expost.data import query
from expost.data.expression import NUMBER_KINDS, Expression
from expost.errors import InvalidValue
from expost.mechanisms.linear.box import STEPS, Box
from expost.mentions import brief
from expost.noise.sums import StepLaw
from expost.questions.noised import Noised
from expost.questions.ratio import both_there
from expost.questions.statistic import ColumnOf, Reach, Reading, Sums, Total, check_pairs

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.mechanism import Mechanism

_MOST_VALUES = 20


@dataclass(frozen=True)
class Products(Reading):
    """A statistic of clamped values that is a function of their moments.

    Values are scaled to −1 … 1, in whole steps, and products are in squared steps.

    Parameters
    ----------
    columns
        The columns or expressions; the target of a regression last.
    bounds
        A pair (lowest, highest) for each of them.
    missing
        What NULL and NaN count as; None if rows with any of them do not count.

    Proof: thm-table-moments, lem-grouped-products
    """

    name: ClassVar[str]

    columns: tuple[Expression, ...]
    bounds: tuple[tuple[float, float], ...]
    missing: float | None

    @classmethod
    def of(cls, table: PrivateTable, columns: Sequence[ColumnOf], bounds: Sequence[Any], missing: Any) -> Any:
        """Checks the settings."""
        check_pairs(bounds)
        values = [table.expression(column, NUMBER_KINDS, f"a {cls.name}") for column in columns]
        if len(values) != len(bounds):
            raise InvalidValue(
                f"bounds are one pair for each of {len(values)} values, the lowest first, got {len(bounds)}"
            )
        as_whole(len(values), "the number of values", most=_MOST_VALUES)
        if isinstance(missing, str) and missing != "drop":
            raise InvalidValue(f"missing is what NULL and NaN count as, a number or 'drop'; got {brief(missing)}")
        gone = None if missing == "drop" else finite(missing, "missing")
        pairs = tuple(as_interval(pair) for pair in bounds)
        return cls(tuple(value.as_number() for value in values), pairs, gone)

    @property
    def values(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """The columns."""
        return self.columns

    @property
    def dropped(self) -> bool:  # type: ignore[override]
        """Whether rows without all values do not count."""
        return self.missing is None

    @property
    def title(self) -> str:
        """The statistic and its values."""
        low_high = (f"{low:g} … {high:g}" for low, high in self.bounds)
        values = ", ".join(f"{value} ({ends})" for value, ends in zip(self.values, low_high, strict=True))
        gone = "missing dropped" if self.missing is None else f"missing {self.missing:g}"
        return f"{self.name} of {values}, {gone}"

    @property
    def what(self) -> str:
        """The statistic and its columns, without the rules for values."""
        return f"{self.name} of {' and '.join(value.name for value in self.values)}"

    @cached_property
    def box(self) -> Box:
        """The bounds of all values."""
        return Box(self.bounds)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of values whose products are added up."""
        values = range(len(self.values))
        return [(i, j) for i in values for j in values if i <= j]

    def noise_on(self, laws: Sequence[StepLaw | None]) -> str:
        """On all sums."""
        return "on sums of values and of their products"

    def cells(self, values: Sequence[str]) -> list[str]:
        """The values, in steps from the middle of their bounds."""
        ends = zip(values, self.box.middles.tolist(), self.box.halves.tolist(), strict=True)
        return [query.steps_around(name, mid, half, STEPS, self._gone(mid, half)) for name, mid, half in ends]

    def _gone(self, middle: float, half: float) -> int | None:
        if self.missing is None:
            return None
        return int(np.clip(np.floor((self.missing - middle) / half * STEPS + 0.5), -STEPS, STEPS))

    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """The number of rows, the sums and the sums of products, with one noise for all of them."""
        there = both_there(cells) if missing else list(cells)
        products = [f"{there[i]} * {there[j]}" for i, j in self.pairs]
        sql = (f"count({there[0]})", *map(total, [*there, *products]))
        times = (STEPS**2, *(STEPS,) * len(there), *(1,) * len(products))
        moved = reach.products(len(there), STEPS, dropped=self.dropped)
        return (Sums(sql, moved, times=times, public=int(reach.one_row_each(dropped=self.dropped))),)

    def of_size(self, values: int) -> tuple[int, ...]:
        """Of values at the upper bound: nearer to the middle the error is smaller."""
        return (values * STEPS**2,) * (1 + len(self.values) + len(self.pairs))

    @abstractmethod
    def array_mechanism(self, **settings: Any) -> Mechanism:
        """The mechanism for an array of records, where their number is public."""

    def moments(self, noised: Noised) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """The noisy number of rows, at least 1; and for values in −1 … 1 the means, and the means of products."""
        scaled, values = np.array(noised.numbers, np.float64) / STEPS**2, len(self.values)
        size = max(float(scaled[0]), 1.0)
        means, products = scaled[1 : 1 + values] / size, np.zeros((values, values))
        for (i, j), product in zip(self.pairs, scaled[1 + values :] / size, strict=True):
            products[i, j] = products[j, i] = product
        return size, means, products

    def place(self, *which: int) -> int:
        """Where the sum of a value is among the numbers, or that of the product of two."""
        return 1 + which[0] if len(which) == 1 else 1 + len(self.values) + self.pairs.index((min(which), max(which)))
