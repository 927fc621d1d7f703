"""A robust line with pure ε: the median slope of lines through pairs of records, and the mean of what it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_share, split_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.mechanisms.linear.box import STEPS, BoundedFit, LinearFit
from expost.mechanisms.moments.moments import MeanOfRecords, mean_within
from expost.mechanisms.quantiles.candidates import Lattice
from expost.mechanisms.quantiles.ordered import arrange
from expost.mechanisms.quantiles.quantiles import MedianOfRecords
from expost.mechanisms.quantiles.windows import Target, Windows
from expost.noise import NoiseSource

_PAIRS = 2**17  # beyond these, pairs cost time and add little
_FEW = 64
"""Of n·ε. Below it lines are kept within the target's bounds, which measured best on small samples of five data sets.
Above it that would only bias lines that leave the bounds where the feature has no values."""
_STEEPEST = sqrt(1 / 2)
"""The sine of slope 1: from one corner of the bounds to the other."""


@dataclass(frozen=True, kw_only=True)
class TheilSen(BoundedFit):
    """A line through records with one feature: the median of the slopes between pairs of records, with pure ε.

    Half of ε chooses the slope, by its rank among the slopes (see :class:`MedianOfRecords`). The rest is for the mean
    (:class:`MeanOfRecords`) of the target less slope times feature, which makes the intercept. Outliers hardly move the
    slope, and few records are enough. Where n·ε is below 64, the line is kept within the target's bounds, and a median
    takes the place of the mean. Where residuals are skewed, the slope is not that of least squares, however many
    records there are.

    The data is an array with a row per person: the feature, and the target last. Neighbours exchange one person, and
    n is public. Values are clamped to their bounds.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        A list with the pair (lowest, highest) of the feature.
    target_bounds
        Between which the target lies.
    slope_share
        The share of ε for the slope.
    missing
        What NaN counts as, in feature and target alike.

    >>> TheilSen(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 1)).guarantee.worst_case
    Cost(1)

    Proof: thm-theil-sen
    """

    slope_share: Number = Fraction(1, 2)
    missing: Number = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bounds) != 1:
            raise InvalidValue(f"a line has one feature, got bounds for {len(self.bounds)}: take LeastSquares")
        as_share(self.slope_share, "slope_share")
        _ = self._budgets

    @property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        """ε for the slope, and for the intercept."""
        return split_epsilon(self.epsilon, self.slope_share, "slope_share")

    def sample(self, data: Any, noise: NoiseSource) -> LinearFit:
        """The slope, and the mean of what it leaves."""
        rows = self.box.steps(data, float(self.missing))
        slope = self._slope(rows, noise)
        intercept = self._intercept(rows / STEPS, slope, noise)
        if self._few(len(rows)):
            intercept, slope = within_bounds(intercept, slope)
        return self.box.restored(intercept, np.array([slope]))

    def _few(self, size: int) -> bool:
        """Whether noise alone would put the line beyond the target's bounds. Both numbers are public."""
        return size * exact(self.epsilon, "ε") < _FEW

    def _slope(self, rows: NDArray[np.int64], noise: NoiseSource) -> float:
        """In units of the half bounds. Candidates are lines of evenly spaced sines of their angles."""
        size, (spent, _) = len(rows), self._budgets
        rounds, cells = rounds_of(size), 2 ** _doublings(size * spent, 5, 20)
        steepest = int(cells * _STEEPEST) if self._few(size) else cells - 1
        lattice = Lattice(Fraction(1, cells), -steepest, steepest, whole=False)
        (chosen,) = median_slope(sines(rows, _shuffled(size, noise), rounds), lattice, rounds, spent).sample(noise)
        sine = lattice.value(chosen)
        return float(sine / np.sqrt(1 - sine**2))

    def _intercept(self, points: NDArray[np.float64], slope: float, noise: NoiseSource) -> float:
        feature, target = points.T
        reach, spent = 1 + abs(slope), self._budgets[1]
        if self._few(len(points)):
            middle = MedianOfRecords(epsilon=spent, bounds=(-1, 1), grid=Fraction(1, 32), neighbours="substitute")
            return float(cast(float, middle.sample(target - slope * feature, noise)))  # never withheld: it has bounds
        scales = _doublings(len(points) * spent / 16, 0, 6)
        mean = MeanOfRecords(epsilon=spent, bounds=(-reach, reach), scales=scales)
        return mean_within(mean, target - slope * feature, noise)


def within_bounds(intercept: float, slope: float) -> tuple[float, float]:
    """The line whose values on both ends of the feature's bounds are clamped to the target's bounds.

    >>> within_bounds(0.5, 1)
    (0.25, 0.75)
    """
    low, high = (min(max(intercept + end * slope, -1.0), 1.0) for end in (-1, 1))
    return (low + high) / 2, (high - low) / 2


def rounds_of(size: int) -> int:
    """How often every record is paired with another one on either side: as often as time allows."""
    return max(1, min((size - 1) // 2, _PAIRS // size))


def sines(rows: NDArray[np.int64], order: NDArray[np.int64], rounds: int) -> NDArray[np.float64]:
    """The slopes between records at most ``rounds`` apart in a circular order, as sines of angles, each twice.

    Records with the same feature have no slope: they count once as the steepest one downwards, and once upwards.

    Proof: thm-theil-sen
    """
    first, second = np.tile(order, rounds), np.concatenate([np.roll(order, k) for k in range(1, rounds + 1)])
    across, up = (rows[first] - rows[second]).T
    sine = up * np.where(across < 0, -1, 1) / np.maximum(np.hypot(across, up), 1)
    return np.concatenate([np.where(across == 0, end, sine) for end in (-1.0, 1.0)])


def median_slope(slopes: NDArray[np.float64], lattice: Lattice, rounds: int, epsilon: Fraction) -> Windows:
    """The private median of slopes, of which one person moves four per round.

    Proof: thm-theil-sen
    """
    middle = Target(Fraction(len(slopes), 2), Fraction(1))
    return Windows(arrange(slopes, lattice, 0.0), (middle,), epsilon / (2 * 4 * rounds), paired=False)


def _shuffled(size: int, noise: NoiseSource) -> NDArray[np.int64]:
    """The records in random order; nothing private depends on how random it is."""
    return np.argsort(noise.words(size), kind="stable")


def _doublings(number: Fraction, least: int, most: int) -> int:
    """How often 1 can be doubled up to a number, within limits."""
    return min(max(int(number).bit_length() - 1, least), most)
