"""Questions with noise: mechanisms that a ledger runs. The table is asked after the reservation, not before."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expost import bracket
from expost.checks import requested_delta, requested_epsilon
from expost.cost import Cost, Number, exact
from expost.data.histograms import Discovery, Histogram
from expost.data.questions import Planned, Question
from expost.data.sensitivity import Sensitivity
from expost.data.sums import Mean
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms import Laplace, SparseVector
from expost.mechanisms.additive import RELEASED, Additive
from expost.noise import Source, SystemNoise, vector
from expost.noise.grid import FARTHEST


class Asked(Mechanism):
    """A mechanism that brings its own data: a question to a table."""

    question: Planned

    def check(self, data: Any) -> None:
        """There is nothing to run it on but its table."""
        if data is not None:
            raise InvalidValue("a question knows its table: run it without on=…")
        _ = self.question.plan

    def part_of(self, output: Any) -> Part:
        """All outputs cost the same."""
        return RELEASED

    def __repr__(self) -> str:
        noise = getattr(self, "noise", None) or f"{self.guarantee.worst_case}"
        return f"{type(self).__name__}({self.question.title} of {self.question.table.title}; {noise})"


class OnNumbers(Asked):
    """A mechanism for numbers, run on those that answer a question."""

    question: Question
    noise: Additive | SparseVector

    @property
    def guarantee(self) -> Guarantee:
        """That of the mechanism."""
        return self.noise.guarantee

    def check(self, data: Any) -> None:
        """The mechanism can be run on so many numbers."""
        super().check(data)
        self.noise.check(self.question.nothing)


@dataclass(frozen=True, repr=False)
class Noisy(OnNumbers):
    """A count, a sum or a histogram with noise for its own sensitivity.

    Proof: thm-table
    """

    question: Question
    noise: Additive

    def sample(self, data: Any, noise: Source) -> Any:
        """Ask the table, add noise, say it in the question's terms."""
        return self.question.present(self.noise.sample(self.question.exact(), noise))

    def error_bound(self, confidence: Number) -> float:
        """How far the noise moves the answer at most, with this confidence: all numbers at once.

        What clamping, rounding to steps and leaving out rows beyond a unit's bounds change is not noise, and not in it.
        """
        steps = self.noise.error_bound(confidence, size=np.size(self.question.nothing))
        return float(steps if isinstance(self.question, Histogram) else self.question.present(round(steps)))

    def describe(self, output: Any) -> str:
        """What came out, and how far off noise may have put it."""
        bound = self.error_bound("0.95")
        if isinstance(output, dict):
            return f"{self.question.title}, all ± {bound:.6g} at 95 %"
        said = f"{output:.6g}" if isinstance(output, float) else f"{output}"
        return f"{self.question.title} {said} ± {bound:.6g} at 95 %"


@dataclass(frozen=True, repr=False)
class Above(OnNumbers):
    """Which cells of a histogram have more than a threshold, by a sparse vector: it pays for the positives that came.

    Proof: thm-table
    """

    question: Histogram
    noise: SparseVector

    def sample(self, data: Any, noise: Source) -> dict[Any, bool]:
        """{label: whether it was found to be above}."""
        found = self.noise.sample(self.question.exact(), noise)
        return dict(zip(self.question.labels, found.tolist(), strict=True))

    def part_of(self, output: Any) -> Part:
        """The sparse vector's part."""
        return self.noise.part_of(np.array(list(output.values()), bool))

    def describe(self, output: Any) -> str:
        """As the sparse vector says it."""
        return self.noise.describe(np.array(list(output.values()), bool))


@dataclass(frozen=True, repr=False)
class NoisyMean(Asked):
    """A mean: the noisy sum of differences from the middle of the bounds, over the count, within the bounds.

    Proof: thm-mean
    """

    question: Mean
    epsilon: Number
    count_share: Number = "1/2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", requested_epsilon(self.epsilon))
        if not 0 < exact(self.count_share, "count_share") < 1:
            raise InvalidValue(f"count_share is the count's share of ε, between 0 and 1, got {self.count_share!r}")
        _ = self._shares

    @property
    def guarantee(self) -> Guarantee:
        """ε for every output."""
        return Guarantee.uniform(self.epsilon, neighbours=self.question.table.neighbours)

    @cached_property
    def _shares(self) -> tuple[Laplace | None, Laplace | None]:
        """The noise of the sum, and of the count; None where one unit moves nothing."""
        whole, moved = Cost.within(self.epsilon), self.question.count_sensitivity.l1
        share = exact(self.count_share, "count_share")
        count, total = whole.split([share, 1 - share]) if moved else (Cost(0), whole)
        return self._noise(total, self.question.sum_sensitivity), self._noise(count, self.question.count_sensitivity)

    def _noise(self, share: Cost, moved: Sensitivity) -> Laplace | None:
        if not moved.l1:
            return None
        return Laplace(epsilon=share.exact_epsilon, sensitivity=moved.l1, neighbours=self.question.table.neighbours)

    def check(self, data: Any) -> None:
        """The noise can be made."""
        super().check(data)
        for each in self._shares:
            if each is not None:
                each.check(0)

    def sample(self, data: Any, noise: Source) -> float:
        """Within the bounds, whatever the noise."""
        total, count = self.question.exact()
        for_sum, for_count = self._shares
        noisy_total = total if for_sum is None else for_sum.sample(total, noise)
        noisy_count = count if for_count is None else for_count.sample(count, noise)
        value = self.question.value
        mean = float((self.question.middle + Fraction(noisy_total, max(noisy_count, 1))) * value.grid.step)
        return min(max(mean, value.bounds[0]), value.bounds[1])

    def error_bound(self, confidence: Number, *, values: int) -> float:
        """How far the noise moves the mean at most, with this confidence, if so many values are averaged.

        Whatever the mean is: it lies within the bounds. What clamping and leaving out rows change is not in it.
        """
        miss = (1 - exact(confidence, "confidence")) / 2
        moved = [0.0 if each is None else float(each.error_bound(1 - miss)) for each in self._shares]
        low, high = self.question.value.bounds
        if values <= moved[1]:
            return high - low
        step = float(self.question.value.grid.step)
        return min(high - low, (moved[0] * step + moved[1] * (high - low) / 2) / (values - moved[1]))

    def describe(self, output: Any) -> str:
        """The mean."""
        return f"{self.question.title} {output:.6g}"


@dataclass(frozen=True, repr=False)
class Discovered(Asked):
    """{key: noisy count} of those keys whose noisy count reaches :attr:`threshold`, the largest first.

    A key that one unit alone brings in is released with probability at most δ, all such keys taken together.

    Proof: thm-discovery
    """

    question: Discovery
    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", requested_epsilon(self.epsilon))
        object.__setattr__(self, "delta", requested_delta(self.delta))
        if bracket.exp(-self.rate).upper > 1 - exact(self.delta, "δ"):
            raise InvalidValue(f"ε {self.epsilon} is too small for a δ of {self.delta}: a smaller δ will do")
        _ = self.threshold

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ) for every output."""
        return Guarantee.uniform(self.epsilon, self.delta, neighbours=self.question.table.neighbours)

    @property
    def rate(self) -> Fraction:
        """The noise has probabilities proportional to e^−(rate·``|k|``)."""
        return exact(self.epsilon, "ε") / self.question.sensitivity.l1

    @cached_property
    def threshold(self) -> int:
        """The least that keeps δ."""
        low = max(first for first, _ in self.question.alone)  # one unit alone would reach it half of the time
        high = 2 * low + 1
        while not self._suffices(high):
            high *= 2
            if high > FARTHEST:
                raise InvalidValue(f"no threshold is high enough for ε {self.epsilon} and δ {self.delta}: take more ε")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffices(middle) else (middle, high)
        return high

    def _suffices(self, threshold: int) -> bool:
        return leak(threshold, self.rate, self.question.alone) <= exact(self.delta, "δ")

    def check(self, data: Any) -> None:
        """The noise can be made."""
        super().check(data)
        vector.discrete_laplace(SystemNoise(), self.rate, 0)

    def sample(self, data: Any, noise: Source) -> dict[Any, int]:
        """Noise for every key that is there; keys that are not there are never released."""
        found = self.question.exact()
        counts = np.array([count for _, count in found], np.int64)
        noisy = np.clip(counts + vector.discrete_laplace(noise, self.rate, len(found)), -FARTHEST, FARTHEST)
        released = [(key, count) for (key, _), count in zip(found, noisy.tolist(), strict=True)]
        reached = [pair for pair in released if pair[1] >= self.threshold]
        return dict(sorted(reached, key=lambda pair: (-pair[1], pair[0])))

    def describe(self, output: Any) -> str:
        """How many there are."""
        return f"{len(output)} keys with at least {self.threshold}"


def leak(threshold: int, rate: Fraction, alone: tuple[tuple[int, int], ...]) -> Fraction:
    """An upper bound on the probability that some key reaches the threshold that one unit alone brought in.

    ``alone`` are the worst ways to bring keys in: so much in one key, and 1 in each of so many others.

    Proof: lem-lone-keys
    """

    def tail(count: int) -> Fraction:
        return bracket.exp(-rate * (threshold - count)).upper / (1 + bracket.exp(-rate).lower)

    return max(tail(first) + others * tail(1) for first, others in alone)
