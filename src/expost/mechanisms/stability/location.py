"""Where the data lies: quantiles, the median and trimmed means, with noise for a proposed sensitivity.

A trimmed mean moves little between neighbours if the records next to the trimming points lie close together. How
little is
*proposed*; the distance is the number of changes after which that could be wrong. All arithmetic is on whole numbers:
data is rounded to a grid of about a thousandth of the noise.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost.checks import (
    as_bounds,
    as_confidence,
    as_positive,
    as_probability,
    as_whole,
    check_fields,
    optional,
    requested_delta,
    split_epsilon,
)
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.numbers import OfArrays
from expost.mechanisms.stability.order import arranged, check_records, rank, widening
from expost.mechanisms.stability.quantile_range import Bin
from expost.mechanisms.stability.release import Proposal, ProposeTestRelease
from expost.mechanisms.stability.test import StabilityTest
from expost.mechanisms.wrapper import Wrapper
from expost.noise import NoiseSource, discrete_laplace
from expost.noise.grid import FARTHEST, Grid
from expost.noise.sums import LaplaceSteps

_LOW = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class MeanOfRanks(Proposal[float]):
    """The mean of the records of some ranks, with noise for a sensitivity of at most ``proposed``.

    The ranks are all but the lowest and highest ⌊``trim``·n⌋, or the single one of a ``quantile``.

    Proof: lem-mean-of-ranks
    """

    proposed: Fraction
    epsilon: Fraction
    bounds: tuple[float, float] | None
    missing: float
    quantile: Fraction | None = None
    trim: Fraction = Fraction(0)

    @property
    def price(self) -> Fraction:
        """The ε of the noise."""
        return self.epsilon

    @cached_property
    def grid(self) -> Grid:
        """A thousand steps or more in the proposed sensitivity, and in the noise."""
        return Grid.within(min(self.proposed, self.proposed / self.epsilon) / 1024)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise, in steps of the grid."""
        return self.epsilon / self.grid.l1(self.proposed, 1)

    def ranks(self, size: int) -> tuple[int, int]:
        """The first and the last rank that count, from 1."""
        return ranks(size, self.quantile, self.trim)

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers."""
        check_records(data, "a quantile" if self.quantile is not None else "a trimmed mean")

    def distance(self, data: Any, cap: int) -> int:
        """Changes until the local sensitivity is above the proposed one."""
        size = len(data)
        (first, last), cap = self.ranks(size), min(cap, size)
        values = self._near(data, cap)
        least, most = (int(end) for end in self._ends)
        down = self._points(values[max(first - cap - 2, 0) : first]).tolist()[::-1]
        up = self._points(values[last - 1 : last + cap + 1]).tolist()
        down += [least] * (cap + 2 - len(down))
        up += [most] * (cap + 2 - len(up))
        reach = floor(self.proposed * (last - first + 1) / self.grid.step) + 1
        return widening(up, down, reach, cap)

    def release(self, data: Any, noise: NoiseSource) -> float:
        """The mean on the grid, with noise; within the bounds, if there are any."""
        first, last = self.ranks(len(data))
        points = self._points(self._near(data, 0)[first - 1 : last])
        mean = floor(Fraction(_sum(points), len(points)) + Fraction(1, 2))
        total = mean + discrete_laplace(noise, self.rate)
        value = self.grid.value(max(-FARTHEST, min(FARTHEST, total)))
        return value if self.bounds is None else min(max(value, self.bounds[0]), self.bounds[1])

    def _near(self, data: Any, cap: int) -> NDArray[Any]:
        """The data with the surroundings of the ranks in their places."""
        if isinstance(data, Arranged):
            return data.values
        first, last = self.ranks(len(data))
        return arranged(data, self.missing, [(first - cap - 1, first), (last, last + cap + 1)])

    def once(self, data: Any, cap: int) -> Arranged:
        """The data with its surroundings in their places, for distance and release alike."""
        return Arranged(self._near(data, min(cap, len(data))))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """The ends of the domain on the grid."""
        if self.bounds is None:
            return np.array([-FARTHEST, FARTHEST])
        return self.grid.round_all(np.array(self.bounds), Fraction(0))

    def _points(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Records on the grid, clamped to the domain."""
        floats = values.astype(np.float64)
        if self.bounds is not None:
            floats = np.clip(floats, *self.bounds)
        return self.grid.round_all(floats, Fraction(0))


class Arranged:
    """Records of which those near the ranks that matter are in their places. Private."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)


def ranks(size: int, quantile: Fraction | None, trim: Fraction) -> tuple[int, int]:
    """The first and the last rank that count among ``size`` records."""
    if quantile is not None:
        return rank(quantile, size), rank(quantile, size)
    cut = floor(trim * size)
    return cut + 1, size - cut


def _sum(points: NDArray[np.int64]) -> int:
    """The exact sum: high and low halves cannot overflow."""
    return (int(np.sum(points >> 32)) << 32) + int(np.sum(points & _LOW))


class _Located(OfArrays, Wrapper[Any, float | Withheld]):
    """What the mechanisms about location share: a proposal behind a test."""

    epsilon: Number
    delta: Number
    proposed: Number
    test_share: Number
    bounds: Any
    missing: Number

    def __post_init__(self) -> None:
        as_positive(self.proposed, "the proposed sensitivity")
        check_fields(self, "epsilon", "missing", "delta", bounds=optional(as_bounds))
        _ = self._proposal.grid, self.guarantee

    @property
    def _window(self) -> dict[str, Any]:
        """Which ranks count."""
        raise NotImplementedError

    @cached_property
    def _halves(self) -> tuple[Fraction, Fraction]:
        """ε of the test, and of the noise."""
        return split_epsilon(self.epsilon, self.test_share, "test_share")

    @cached_property
    def _proposal(self) -> MeanOfRanks:
        return MeanOfRanks(
            proposed=exact(self.proposed, "proposed"),
            epsilon=self._halves[1],
            bounds=self.bounds,
            missing=float(self.missing),
            **self._window,
        )

    @cached_property
    def inner(self) -> ProposeTestRelease[float]:
        """The proposal behind its test."""
        return ProposeTestRelease(proposal=self._proposal, test_epsilon=self._halves[0], delta=self.delta)

    def sample(self, data: Any, noise: NoiseSource) -> float | Withheld:
        """The value with noise, or ⊥."""
        return self.inner.sample(self._proposal.once(data, self.inner.test.cap), noise)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The value with its error: whether it is released does not depend on its noise."""
        return Estimate.of(output, Drawn((origin, 0), self._reach))

    def _reach(self, miss: Fraction) -> float:
        return self.error_bound(1 - miss)

    def error_bound(self, confidence: Number) -> float:
        """How far a value that is released is at most from the statistic of the clamped data, with this confidence.

        Proof: lem-location-error
        """
        proposal = self._proposal
        return proposal.grid.value(LaplaceSteps(proposal.rate).reach(1 - as_confidence(confidence)) + 1)

    def describe(self, output: float | Withheld) -> str:
        """The value, and how far off it may be."""
        return "withheld" if output is WITHHELD else f"{output:.6g} ± {self.error_bound('0.95'):.3g} at 95 %"


@dataclass(frozen=True, kw_only=True)
class StableQuantile(_Located):
    """A quantile by propose-test-release: with noise for a proposed sensitivity, or ⊥ if that may be too small.

    Parameters
    ----------
    quantile
        From 0 to 1: the record of rank ⌈quantile·n⌉ is released.
    epsilon
        The whole budget. ⊥ costs the test's share only.
    delta
        The δ of every output.
    proposed
        The proposed sensitivity: how far one person may move the result. :meth:`scaled` makes it from a range.
    test_share
        The share of ε for the test; the rest is for the noise.
    bounds
        The range that values are clamped to. By default 2^60 steps of the grid, which is a thousandth of ``proposed``
        or finer.
    missing
        What NaN counts as.

    The data is a one-dimensional array with one value per person; neighbours exchange one, and n is public. Where
    bounds are known, :class:`QuantileOfRecords` is mostly more accurate and needs no δ.

    >>> StableQuantile(quantile=0.9, epsilon=1, delta=1e-6, proposed=0.1).guarantee
    Guarantee({'released': 1, 'withheld': 0.5}, delta=1e-6, neighbours='substitute')

    Proof: thm-location
    """

    quantile: Number
    epsilon: Number
    delta: Number
    proposed: Number
    test_share: Number = Fraction(1, 2)
    bounds: Any = None
    missing: Number = 0

    def __post_init__(self) -> None:
        as_probability(self.quantile, "quantile")
        super().__post_init__()

    @property
    def what(self) -> str:
        """What it is."""
        return "median" if exact(self.quantile, "quantile") == Fraction(1, 2) else "quantile"

    @property
    def _window(self) -> dict[str, Any]:
        return {"quantile": exact(self.quantile, "quantile")}

    @classmethod
    def scaled(
        cls,
        scale: Number | Bin,
        *,
        size: int,
        epsilon: Number,
        delta: Number,
        slack: Number = 4,
        test_share: Number = Fraction(1, 2),
        **rest: Any,
    ) -> Self:
        """Propose slack·scale·(changes the test asks for)/size, which data of this scale and size should keep.

        Data with an inter-quantile range of ``scale`` has about size/scale records per unit near its middle; the slack
        is for those where they are sparser.
        """
        test = StabilityTest(split_epsilon(epsilon, test_share, "test_share")[0], exact(requested_delta(delta), "δ"))
        proposed = (
            exact(slack, "slack") * as_scale(scale) * (test.cap + 2) / as_whole(size, "size (the number of records)")
        )
        return cls(epsilon=epsilon, delta=delta, proposed=_rounded(proposed), test_share=test_share, **rest)


@dataclass(frozen=True, kw_only=True)
class StableMedian(StableQuantile):
    """The median by propose-test-release (of an even number of records the lower one): :class:`StableQuantile` at 1/2.

    Parameters
    ----------
    epsilon, delta, proposed, test_share, bounds, missing
        As for :class:`StableQuantile`.
    quantile
        One half. Leave it out.

    >>> StableMedian.scaled(2, size=10_000, epsilon=1, delta=1e-6).proposed
    0.0448

    Proof: thm-location
    """

    quantile: Number = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class StableTrimmedMean(_Located):
    """The mean without the lowest and highest ⌊trim·n⌋ records, by propose-test-release.

    Parameters
    ----------
    trim
        The share of records left out on either side, from 0 and below 1/2.
    epsilon
        The whole budget. ⊥ costs the test's share only.
    delta
        The δ of every output.
    proposed
        The proposed sensitivity: how far one person may move the result. :meth:`scaled` makes it from a range.
    test_share
        The share of ε for the test; the rest is for the noise.
    bounds
        The range that values are clamped to. By default 2^60 steps of the grid, which is a thousandth of ``proposed``
        or finer.
    missing
        What NaN counts as.

    Data and neighbours are those of :class:`StableQuantile`.

    >>> StableTrimmedMean(trim=0.1, epsilon=1, test_share=0.25, delta=1e-6, proposed=0.01).guarantee
    Guarantee({'released': 1, 'withheld': 0.25}, delta=1e-6, neighbours='substitute')

    Proof: thm-location
    """

    trim: Number
    epsilon: Number
    delta: Number
    proposed: Number
    test_share: Number = Fraction(1, 2)
    bounds: Any = None
    missing: Number = 0

    def __post_init__(self) -> None:
        if not 0 <= exact(self.trim, "trim") < Fraction(1, 2):
            raise InvalidValue(f"the share trimmed from either side lies in [0, 1/2), got {self.trim!r}")
        super().__post_init__()

    @property
    def what(self) -> str:
        """What it is."""
        return "trimmed mean"

    @property
    def _window(self) -> dict[str, Any]:
        return {"trim": exact(self.trim, "trim")}

    @classmethod
    def scaled(
        cls,
        scale: Number | Bin,
        *,
        trim: Number,
        size: int,
        epsilon: Number,
        delta: Number,
        slack: Number = 2,
        **rest: Any,
    ) -> Self:
        """Propose slack·scale/(records that count); ``scale`` is the range between the trimming quantiles."""
        first, last = ranks(as_whole(size, "size (the number of records)"), None, exact(trim, "trim"))
        proposed = exact(slack, "slack") * as_scale(scale) / max(last - first + 1, 1)
        return cls(trim=trim, epsilon=epsilon, delta=delta, proposed=_rounded(proposed), **rest)


def as_scale(scale: Number | Bin) -> Fraction:
    """A published scale: a number, or the upper edge of a bin; above 0."""
    number = exact(scale.upper if isinstance(scale, Bin) else scale, "scale")
    if number <= 0:
        raise InvalidValue(f"a scale must be above 0, got {scale!r}: propose a sensitivity of your own instead")
    return number


def _rounded(number: Fraction) -> float:
    """To four digits, for reading; it is a proposal, so any number will do."""
    return float(f"{float(number):.4g}")
