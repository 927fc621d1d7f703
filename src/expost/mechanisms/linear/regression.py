"""Linear regression with pure ε: by sums where there is much data for the budget, and else by the median of slopes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from expost.cost import Number, exact
from expost.mechanisms.linear.box import BoundedFit, LinearFit
from expost.mechanisms.linear.least_squares import LeastSquares
from expost.mechanisms.linear.theil_sen import TheilSen
from expost.noise import NoiseSource

_MUCH = 4000  # n·ε from which on the noise of sums is small beside what a median of slopes is off by


@dataclass(frozen=True, kw_only=True)
class RegressionOfRecords(BoundedFit):
    """Linear regression with pure ε: :class:`TheilSen` or :class:`LeastSquares`, whichever suits the public facts.

    One feature and n·ε below 4000: the median of slopes. The noise of sums would be larger than what the median
    differs from least squares by. More features or more data: least squares.

    Parameters
    ----------
    epsilon
        The whole budget.
    bounds
        A pair (lowest, highest) for each feature.
    target_bounds
        Between which the target lies.
    missing
        What NaN counts as, in features and target alike.

    >>> RegressionOfRecords(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 1)).method(n=1000)
    TheilSen(epsilon=1.0, bounds=((0.0, 1.0),), target_bounds=(0.0, 1.0), slope_share=Fraction(1, 2), missing=0.0)

    Proof: thm-linear-regression
    """

    missing: Number = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.method(n=1)

    def method(self, *, n: int) -> LeastSquares | TheilSen:
        """The mechanism for n records."""
        few = len(self.bounds) == 1 and n * exact(self.epsilon, "ε") < _MUCH
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return TheilSen(**given) if few else LeastSquares(**given)

    def sample(self, data: Any, noise: NoiseSource) -> LinearFit:
        """The fit of the method for this number of records."""
        return self.method(n=len(data)).sample(data, noise)
