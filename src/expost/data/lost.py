"""What bounds and the cap on rows take away: values that are moved to a bound, units that have too many rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import check_fields, split_epsilon
from expost.cost import Number, exact
from expost.data import query, rows, sensitivity
from expost.data.clipped import Clipped
from expost.data.questions import Planned, PureMechanism
from expost.data.sensitivity import Sensitivity
from expost.estimate import USUAL, Estimate
from expost.estimates import Estimates
from expost.frame import Frame
from expost.mechanism import Mechanism
from expost.mechanisms import Laplace
from expost.noise import NoiseSource
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.questions.lost_values import LostValues

_BELOW, _INSIDE, _ABOVE = range(3)
SHARES = "values below the bounds", "values above the bounds", "units with more such rows"
"""What the shares are of."""


class LostShare(NamedTuple):
    """A share from 0 to 1, and where it lies for certain at 95 %, together with the others of its answer."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """How far off it is at most."""
        return max(self.high - self.value, self.value - self.low)

    def __str__(self) -> str:
        places = 0 if self.error >= 0.01 else 1
        shown = round(100 * self.value, places)
        off = max(100 * self.high - shown, shown - 100 * self.low)
        return f"{shown:.{places}f} ± {ceil(off * 10**places) / 10**places:.{places}f} %"


class LostShares(NamedTuple):
    """What a sum or a mean within bounds does not see.

    Parameters
    ----------
    below
        Of the values that count, the share below the lower bound, which count as that bound.
    above
        The share above the upper bound.
    units
        Of the units that have a value, the share with more of them than count; None if every row is a unit.
    """

    below: LostShare
    above: LostShare
    units: LostShare | None

    @property
    def estimates(self) -> Estimates:
        """The shares by what they are of. Their intervals hold for all of them at once, at 95 %."""
        named = zip(SHARES, self, strict=True)
        return Estimates.named(
            {what: Estimate.between(share.value, (share.low, share.high)) for what, share in named if share is not None}
        )

    @property
    def frame(self) -> Frame:
        """A row for each share."""
        return self.estimates.frame


@dataclass(frozen=True, repr=False)
class Lost(Planned, Question[Any]):
    """The share of values that bounds move, and of units that have more rows than count.

    The rows that are left out are not counted themselves: one unit may have any number of them.

    Parameters
    ----------
    table
        Whose rows.
    value
        The column or expression, and its bounds.
    record
        The settings that it was made from, if it was made from a record of them.

    Proof: thm-lost
    """

    table: PrivateTable
    value: Clipped
    record: LostValues | None = field(default=None, compare=False, repr=False)

    @property
    def title(self) -> str:
        """What is looked at."""
        low, high = self.value.bounds
        return f"what is lost of {self.value.expression} ({low:g} … {high:g})"

    @property
    def what(self) -> str:
        """Shares, each with a name of its own."""
        return f"what is lost of {self.value.expression.name}"

    @property
    def _cell(self) -> str:
        """Where a value lies, in SQL."""
        low, high = map(query.double, self.value.bounds)
        missing = "NULL" if self.value.missing is None else f"{_INSIDE}"
        return (
            f"CASE WHEN v IS NULL OR isnan(v) THEN {missing} WHEN v < {low} THEN {_BELOW} WHEN v > {high} "
            f"THEN {_ABOVE} ELSE {_INSIDE} END"
        )

    @cached_property
    def plan(self) -> str:
        """The query for the number of values below, within and above the bounds."""
        return self._counted(rows.one_cell(self.table, self.value.expression, self._cell, drop=True))

    @cached_property
    def units_plan(self) -> str:
        """The query for the number of units with at most as many rows as count, and with more."""
        owned = rows.owned_rows(self.table, {"v": self.value.expression}, {"c": self._cell}, needed=["c"])
        more = f"CASE WHEN count(*) > {self.table.unit.rows} THEN 1 ELSE 0 END"
        return self._counted(f"SELECT {more} AS c FROM {query.nested(owned)} GROUP BY u")

    def _counted(self, cells: str) -> str:
        return self.table.engine.check(f"SELECT c, count(*) FROM {query.nested(cells)} GROUP BY c")

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the numbers of values."""
        fewest = self.value.fewest(self.table)
        return sensitivity.of_rows(fewest, self.table.unit.rows, 3, self.table.neighbours)

    @property
    def units_sensitivity(self) -> Sensitivity:
        """Of the numbers of units: each is in one of two cells."""
        return sensitivity.of_units(self.value.fewest(self.table), 1, 2, self.table.neighbours)

    def exact(self) -> tuple[NDArray[np.int64], ...]:
        """The numbers of values; and of units, unless every row is one. Private: after the reservation."""
        plans = [(self.plan, 3)] if self.table.unit.column is None else [(self.plan, 3), (self.units_plan, 2)]
        found = tuple(np.zeros(cells, np.int64) for _, cells in plans)
        for counts, (plan, _) in zip(found, plans, strict=True):
            for cell, count in self.table.engine.fetch(plan):
                counts[int(cell)] = count
        return found

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """From counts with Laplace noise; half of ε is for those of units, unless every row is one."""
        return NoisyLost(question=self, epsilon=terms.only_epsilon(self.title, "laplace"))


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyLost(PureMechanism[Any]):
    """The shares of what bounds and the cap on rows take away, from counts with Laplace noise.

    Parameters
    ----------
    question
        What is looked at.
    epsilon
        The whole budget.

    Proof: thm-lost
    """

    question: Lost
    epsilon: Number

    def __post_init__(self) -> None:
        check_fields(self, "epsilon")
        _ = self._noises

    @cached_property
    def _noises(self) -> tuple[Laplace, ...]:
        """For the numbers of values; and of units, unless every row is one."""
        asked, relation = self.question, self.question.table.neighbours
        if asked.table.unit.column is None:
            shares, moved = [exact(self.epsilon, "ε")], [asked.sensitivity]
        else:
            shares = [*split_epsilon(self.epsilon, Fraction(1, 2), "share")]
            moved = [asked.sensitivity, asked.units_sensitivity]
        return tuple(
            Laplace(epsilon=share, sensitivity=each.l1, neighbours=relation)
            for share, each in zip(shares, moved, strict=True)
        )

    def _reaches(self) -> list[int]:
        """How far each kind of noise moves any count at most: all at once, at 95 %."""
        miss = (1 - USUAL) / len(self._noises)
        return [int(noise.error_bound(1 - miss, n=cells)) for noise, cells in zip(self._noises, (3, 2), strict=False)]

    def check(self, data: Any) -> None:
        """Raise unless both queries can be run and this noise can be sampled."""
        super().check(data)
        if self.question.table.unit.column is not None:
            _ = self.question.units_plan

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        for noise in self._noises:
            noise.check(np.zeros(3, np.int64))

    def sample(self, data: Any, noise: NoiseSource) -> LostShares:
        """Count, add noise, and compute the shares."""
        return self.shares(
            [each.sample(counts, noise) for each, counts in zip(self._noises, self.question.exact(), strict=True)]
        )

    def shares(self, counts: Any) -> LostShares:
        """The shares, from the noisy numbers of values, and of units."""
        reaches, values = self._reaches(), [int(count) for count in counts[0]]
        below, above = (_share(values[cell], sum(values) - values[cell], reaches[0], 2) for cell in (_BELOW, _ABOVE))
        if len(counts) == 1:
            return LostShares(below, above, None)
        within, over = (int(count) for count in counts[1])
        return LostShares(below, above, _share(over, within, reaches[1], 1))

    def expected_error(self, values: int, units: int) -> float:
        """How far off any share will be at most, at 95 %, if so many values and units count."""
        known = zip((values, units), self._reaches(), (2, 1), strict=False)
        return max(
            _share(some, size - some, reach, cells).error
            for size, reach, cells in known
            for some in (size * tenth // 10 for tenth in range(11))
        )

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The shares by what they are of."""
        return output.estimates

    def describe(self, output: LostShares) -> str:
        """The shares."""
        units = "" if output.units is None else f"; {output.units} of their units have more such rows than count"
        return f"{self.question.title}: {output.below} of the values are below, {output.above} above the bounds{units}"


def _share(some: int, others: int, reach: int, cells: int) -> LostShare:
    """A share from two noisy counts, the second a sum over cells, each moved by at most ``reach``.

    It grows with the first count and falls with the second, so that its ends are those of the counts.
    """
    low, least = max(some - reach, 0), max(others - cells * reach, 0)
    high, most = max(some + reach, 0), max(others + cells * reach, 0)
    return LostShare(
        _ratio(max(some, 0), max(others, 0)), _ratio(low, most), 1.0 if least == 0 else _ratio(high, least)
    )


def _ratio(some: int, others: int) -> float:
    return some / (some + others) if some + others else 0.0
