"""Trimmed means with pure ε: private quantiles for the noise, then the mean of the records between."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_share, split_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.moments.geometric_cells import Interval
from expost.mechanisms.moments.moments import POINTS, Clamp, Winsorized, WithinInterval, shown_within
from expost.mechanisms.moments.private_range import WITHHELD_PART
from expost.mechanisms.quantiles.quantiles import QuantilesOfRecords
from expost.noise import NoiseSource

NO_BAR = "too few values for this trim and ε"
"""What is told of a mean between quantiles that may lie beyond the values, or have few of them between."""
ONE_POINT = "both quantiles are the same"


def surely_between(trim: Fraction, size: float, off: int) -> bool:
    """Whether the quantiles at ``trim`` and 1 − ``trim``, off by at most so many ranks, frame what they should.

    That is: both lie among the values, and between them at least half of the share that should.

    Proof: lem-surely-between
    """
    return off < trim * Fraction(size) and 4 * off <= (1 - 2 * trim) * Fraction(size)


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(WithinInterval):
    """The mean without the lowest and the highest ⌊trim·n⌋ records, with pure ε.

    :class:`QuantilesOfRecords` at ``trim`` and 1 − ``trim`` choose an interval with a share of ε. Records are clamped
    to it, and the noise is for its length: outliers cost nothing. With so few records that the quantiles, off by their
    error bound, may lie beyond all of them, the error of the mean is not published (see :meth:`knows_error`).

    Data and neighbours are those of :class:`MeanOfRecords`.

    Parameters
    ----------
    trim
        The share of records left out on either side, above 0 and below 1/2.
    epsilon
        The whole budget.
    bounds
        Between which all records lie, or count as lying. They may be loose, or None: records of any size. Without them,
        too few records make the quantiles be withheld; then the value is, too, and costs their share alone.
    range_share
        The share of ε for the interval.
    missing
        What NaN counts as.

    >>> TrimmedMean(trim=0.1, epsilon=1, bounds=(0, 1_000_000)).guarantee.worst_case
    Cost(1)

    Proof: thm-trimmed-mean
    """

    trim: Number
    epsilon: Number
    bounds: Any = None
    range_share: Number = Fraction(1, 2)
    missing: Number = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < exact(self.trim, "trim") < Fraction(1, 2):
            raise InvalidValue(f"the share trimmed from either side is above 0 and below 1/2, got {self.trim!r}")
        as_share(self.range_share, "range_share")
        _ = self._ends

    @property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        """ε for the interval, and for the mean."""
        return split_epsilon(self.epsilon, self.range_share, "range_share")

    @property
    def _ends(self) -> QuantilesOfRecords:
        trim = exact(self.trim, "trim")
        return QuantilesOfRecords(
            quantiles=(trim, 1 - trim), epsilon=self._budgets[0], bounds=self.bounds, neighbours="substitute",
            missing=self.missing,
        )  # fmt: skip

    @property
    def guarantee(self) -> Guarantee:
        """ε for every value; without bounds, what the quantiles cost if they were withheld."""
        if self.bounds is not None:
            return super().guarantee
        return Guarantee({RELEASED: self.epsilon, WITHHELD_PART: self._budgets[0]}, neighbours="substitute")

    @property
    def what(self) -> str:
        """What it is."""
        return "trimmed mean"

    def _why(self, output: Winsorized) -> str:
        return why_bare(output)

    def _epsilons(self, output: Winsorized) -> tuple[Fraction, ...]:
        return (self._budgets[1],)

    def part_of(self, output: Any) -> Part:
        """Whether there is a value."""
        return WITHHELD_PART if output is WITHHELD else RELEASED

    def check(self, data: Any) -> None:
        """A one-dimensional array of at least one number; without bounds, of enough for the quantiles."""
        super().check(data)
        self._ends.check(data)

    def knows_error(self, size: int) -> bool:
        """Whether that many records are enough for the quantiles to lie among them, and half of the rest between."""
        return surely_between(exact(self.trim, "trim"), size, int(self._ends.error_bound("0.95")))

    def sample(self, data: Any, noise: NoiseSource) -> Winsorized | Withheld:
        """The interval, and the mean between; without a bar if that is a single number, or there are too few records.

        How many there are is public.
        """
        found = super().sample(data, noise)
        if isinstance(found, Withheld) or (found.low < found.high and self.knows_error(len(data))):
            return found
        return found._replace(noise=None)

    def describe(self, output: Any) -> str:
        """The value, the interval, and its error or why that is not known."""
        text = super().describe(output)
        return text if output is WITHHELD else f"{text}{why_no_error(output)}"

    def _clamp(self, values: NDArray[np.float64], noise: NoiseSource) -> Clamp | None:
        ends = self._ends.sample(values, noise)
        return None if isinstance(ends, Withheld) else Clamp(Interval(*ends), self._budgets[1])

    def _statistic(self, points: NDArray[np.int64], width: Fraction) -> tuple[int, int, Fraction]:
        size, left_out = len(points), int(len(points) * exact(self.trim, "trim"))
        kept = np.sort(points)[left_out : size - left_out]
        return int(kept.sum()), POINTS, width / (POINTS * len(kept))

    def _shown(self, value: Fraction, interval: Interval) -> float:
        return shown_within(value, interval)

    def _moved(self, share: Fraction, extent: Fraction, width: Fraction) -> Fraction:
        return Fraction(0)  # records beyond the quantiles are what is left out


def why_no_error(found: Winsorized) -> str:
    """Why a mean between two quantiles has no error; nothing if it has one."""
    return "" if found.noise is not None else f"; no error is known: {why_bare(found)}"


def why_bare(found: Winsorized) -> str:
    """Why such a mean has no error, in short."""
    return NO_BAR if found.low < found.high else ONE_POINT
