"""Steps that another library takes: reserved for all of them, charged for those that were begun."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from expost.accounting.losses import GaussianNoise
from expost.accounting.planning import plan
from expost.accounting.renyi import Prices, sampled_normal_noise
from expost.accounting.renyi.prices import units_above
from expost.checks import as_flag, as_whole, requested_delta
from expost.cost import Number
from expost.errors import InteractionClosed, InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part, as_neighbours
from expost.mechanism import Interaction, Mechanism
from expost.noise import NoiseSource

_MOST_PARTS = 10_000
"""With more steps than this, parts of single steps are parts of a few."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CountedSteps(Mechanism[Any, int]):
    """Equal steps that run elsewhere, one after the other, and may end after any of them.

    Parameters
    ----------
    count
        The number of steps at most.
    stops
        The numbers of steps that have an ε of their own; the last is ``count``. Between two, the next one counts.
    delta
        The δ of the whole.
    neighbours
        The relation of the guarantee.
    every_step
        Whether each step is a part of its own: in a ledger with Rényi prices it then pays for exactly the steps that
        were begun. In the basic sum it changes nothing.

    What decides to stop may look at nothing but what the steps published.

    Proof: thm-iterative, lem-renyi-stopping
    """

    count: int
    stops: tuple[int, ...]
    delta: Number
    neighbours: Neighbours | None
    every_step: bool = False

    def __post_init__(self) -> None:
        as_whole(self.count, "count")
        stops = tuple(as_whole(stop, "a stop", most=self.count) for stop in self.stops)
        if not stops or list(stops) != sorted(set(stops)) or stops[-1] != self.count:
            raise InvalidValue(f"stops are growing numbers of steps, the last of them all {self.count}, got {stops!r}")
        as_flag(self.every_step, "every_step")
        object.__setattr__(self, "stops", stops)
        object.__setattr__(self, "delta", requested_delta(self.delta))
        as_neighbours(self.neighbours)
        _ = self.guarantee

    @abstractmethod
    def _planned(self) -> Guarantee:
        """E of each stop, and δ."""

    @abstractmethod
    def _renyi_price(self, order: Number) -> Fraction | None:
        """The Rényi price of one step; None if it is not known."""

    def _squared_mean(self) -> Fraction | None:
        """μ² of one step, if it is as private as Gaussian noise."""
        return None

    @cached_property
    def guarantee(self) -> Guarantee:
        """E of each part: that of the stop reached, or of the next one."""
        planned = self._planned()
        table: dict[Part, Number] = {
            label: planned.cost_of(_reached(self.stops, label)).exact_epsilon for label in self._labels
        }
        return Guarantee(table, planned.worst_case.exact_delta, neighbours=self.neighbours)

    @cached_property
    def _labels(self) -> tuple[int, ...]:
        """The numbers of steps that are parts."""
        if not self.every_step:
            return self.stops
        unit = -(-self.count // _MOST_PARTS)
        return tuple(sorted({*range(unit, self.count + 1, unit), *self.stops}))

    def renyi_prices(self, order: Number) -> Prices:
        """The sum of the steps taken, without a δ; what the guarantee implies, if the price of a step is not known.

        Proof: lem-renyi-stopping
        """
        price = self._renyi_price(order)
        return super().renyi_prices(order) if price is None else self._stopped(price)

    def gaussian_prices(self) -> Prices | None:
        """The sum of the steps taken, if they are as private as Gaussian noise.

        Proof: thm-gaussian-pot
        """
        mean = self._squared_mean()
        return None if mean is None else self._stopped(mean)

    def _stopped(self, price: Fraction) -> Prices:
        return Prices({label: units_above(label * price) for label in self._labels})

    def part_of(self, output: int) -> Part:
        """The part of a number of steps."""
        return _reached(self._labels, as_whole(output, "the number of steps", 0, self.count))

    def start(self, data: Any, noise: NoiseSource) -> StepCounter:
        """An interaction that counts."""
        return StepCounter(self)

    @property
    def what(self) -> str:
        """How many."""
        return "steps"

    def describe(self, output: int) -> str:
        """How far it went."""
        return f"{output} of at most {self.count} steps"


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisySteps(CountedSteps):
    """Steps of DP-SGD in another library: Gaussian noise on sums of clipped gradients of fresh Poisson samples.

    Parameters
    ----------
    noise_multiplier
        The deviation of the noise over the longest gradient.
    sampling_rate
        The probability with which each record is in the sample of a step.
    count
        The number of steps at most.
    stops
        The numbers of steps that have an ε of their own, the last of them ``count``. Between two, the next one counts.
    delta
        The δ of the whole.
    neighbours
        ``"add-remove"``.
    every_step
        Whether each step is a part of its own: see :class:`CountedSteps`.

    Proof: thm-iterative, lem-gaussian-loss, lem-renyi-sampled
    """

    noise_multiplier: Number
    sampling_rate: Number

    def __post_init__(self) -> None:
        if self.neighbours != "add-remove":
            raise InvalidValue("Poisson samples are analysed for adding or removing a record")
        super().__post_init__()

    def _planned(self) -> Guarantee:
        step = GaussianNoise(self.noise_multiplier, self.sampling_rate)
        return plan([step] * self.count, self.stops, self.delta)

    def _renyi_price(self, order: Number) -> Fraction:
        return sampled_normal_noise(order, self.noise_multiplier, self.sampling_rate)


class StepCounter(Interaction):
    """Counts steps: ``for number in interaction: …``. A step counts when it begins, whatever happens in it.

    Leaving the loop, or an exception, charges what was begun.
    """

    def __init__(self, mechanism: CountedSteps) -> None:
        super().__init__(mechanism)
        self._most = mechanism.count

    def __iter__(self) -> Iterator[int]:
        """The numbers of the steps, from 1."""
        while len(self._transcript) < self._most and not self.closed:
            yield self.begin_step()

    def begin_step(self) -> int:
        """One more step begins: its number. Raises ``InteractionClosed`` if there are no more."""
        with self._lock:
            if len(self._transcript) == self._most:
                raise InteractionClosed(f"all {self._most} steps that were reserved were taken: plan more of them")
            return self._answer(lambda: len(self._transcript) + 1)

    @property
    def output(self) -> int:
        """The number of steps that were begun."""
        return len(self._transcript)


def _reached(labels: tuple[int, ...], steps: int) -> int:
    return labels[min(bisect_left(labels, steps), len(labels) - 1)]
