"""When a noisy answer is good enough: rules that read what was released, and how likely each is to be wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_confidence, as_positive, finite
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.noise.sums import LaplaceSteps

_INTERVALS = 32  # that the truth may lie in, for each level


class StoppingRule(ABC):
    """When an answer is good enough: a function of what was released, and of how far off that may be."""

    confidence: Number

    @abstractmethod
    def met(self, values: Sequence[Fraction], error: Fraction) -> bool:
        """Whether to stop at these values, none of which is further off than ``error``."""

    def miss_per_level(self, rates: tuple[Fraction, ...], rounding: Fraction, size: int) -> Fraction:
        """How likely noise of a level may be to exceed the error that :meth:`met` gets, such that the confidence holds.

        By default no level and none of ``size`` values exceeds it.

        Proof: lem-error-at-stop
        """
        return (1 - as_confidence(self.confidence)) / max(size, 1) / len(rates)

    def __str__(self) -> str:
        return f"at {float(100 * as_confidence(self.confidence)):g} %"


@dataclass(frozen=True, kw_only=True)
class RelativeError(StoppingRule):
    """Stop when every value is within this share of the truth, with this confidence.

    Parameters
    ----------
    within
        The share of the true value, from a millionth to a million: 0.05 for five percent.
    confidence
        One less the probability that it stops where that does not hold. A truth of 0 has no relative error: whatever
        stops there is such a case, and rarer than that.
    """

    within: Number
    confidence: Number = Fraction(19, 20)

    def __post_init__(self) -> None:
        if not Fraction(1, 10**6) <= as_positive(self.within, "within") <= 10**6:
            raise InvalidValue(f"within is a share of the truth, from a millionth to a million, got {self.within}")
        as_confidence(self.confidence)

    def met(self, values: Sequence[Fraction], error: Fraction) -> bool:
        """Whether the error is within the share of the least that the truth can be."""
        within = exact(self.within, "within")
        return all(error <= within * (abs(value) - error) for value in values)

    def miss_per_level(self, rates: tuple[Fraction, ...], rounding: Fraction, size: int) -> Fraction:
        """More than by default: long before and long after the level at which it should stop, errors do not matter.

        Proof: lem-relative-error
        """
        miss = (1 - as_confidence(self.confidence)) / max(size, 1)
        return _relative_miss(rates, rounding, exact(self.within, "within"), miss)

    def __str__(self) -> str:
        return f"± {float(100 * exact(self.within, 'within')):g} % {super().__str__()}"


@dataclass(frozen=True, kw_only=True)
class AbsoluteError(StoppingRule):
    """Stop when every value is within this distance of the truth, with this confidence.

    Parameters
    ----------
    within
        The distance.
    confidence
        With which that holds for what is released at the stop.
    """

    within: Number
    confidence: Number = Fraction(19, 20)

    def __post_init__(self) -> None:
        as_positive(self.within, "within")
        finite(self.within, "within")
        as_confidence(self.confidence)

    def met(self, values: Sequence[Fraction], error: Fraction) -> bool:
        """Whether the error is within the distance."""
        return error <= exact(self.within, "within")

    def miss_per_level(self, rates: tuple[Fraction, ...], rounding: Fraction, size: int) -> Fraction:
        """All that the confidence leaves: the level at which it stops does not depend on the noise.

        Proof: lem-error-at-stop
        """
        return (1 - as_confidence(self.confidence)) / max(size, 1)

    def __str__(self) -> str:
        return f"± {float(exact(self.within, 'within')):g} {super().__str__()}"


@dataclass(frozen=True, kw_only=True)
class Decided(StoppingRule):
    """Stop when it is clear on which side of a threshold every true value is, with this confidence.

    Parameters
    ----------
    threshold
        What the truth is compared with.
    confidence
        With which every released value is on the same side as the truth.
    """

    threshold: Number
    confidence: Number = Fraction(19, 20)

    def __post_init__(self) -> None:
        finite(self.threshold, "threshold")
        as_confidence(self.confidence)

    def met(self, values: Sequence[Fraction], error: Fraction) -> bool:
        """Whether every value is further from the threshold than it may be off."""
        threshold = exact(self.threshold, "threshold")
        return all(abs(value - threshold) > error for value in values)

    def __str__(self) -> str:
        return f"compared with {float(exact(self.threshold, 'threshold')):g} {super().__str__()}"


@lru_cache(1024)
def _relative_miss(rates: tuple[Fraction, ...], rounding: Fraction, within: Fraction, miss: Fraction) -> Fraction:
    """The largest found, by bisection, with which relative errors miss at most that often."""
    low, high = miss / len(rates), miss
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if _misses(rates, rounding, within, middle) <= miss else (low, middle)
    return low


def _misses(rates: tuple[Fraction, ...], rounding: Fraction, within: Fraction, each: Fraction) -> float:
    """An upper bound on the probability that some level stops too far from the truth, for every truth.

    Proof: lem-relative-error
    """
    share, added = float(within), float(rounding)
    widths = np.array([LaplaceSteps(rate).reach(each) for rate in rates]) + added
    inner = np.geomspace(widths.min() / 8 + 1e-9, widths.max() + 1e-9, _INTERVALS * len(rates))
    least, most = np.append(0.0, inner)[:, None], np.append(inner, np.inf)[:, None]
    needed = np.maximum((1 + share) * least, (1 + 1 / share) * (widths - most)) * (1 - 1e-9)
    chances = _reaches(np.array(rates, float), np.ceil(needed - added - 1e-9))
    return float(chances.sum(axis=1).max()) * (1 + 1e-9)


def _reaches(rates: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability that discrete Laplace noise is that many steps or more in size."""
    return np.where(steps <= 0, 1.0, 2 * np.exp(-rates * np.maximum(steps, 0)) / (1 + np.exp(-rates)))
