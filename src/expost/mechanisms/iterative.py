"""Steps until it is good enough: an iterative mechanism pays for the steps that it took (Algorithm 3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.accounting.losses import ApproximateDP, GaussianNoise, LaplaceNoise, Loss
from expost.accounting.planning import plan
from expost.accounting.renyi import Prices, laplace_noise, sampled_normal_noise
from expost.accounting.stopping import optimal_delta
from expost.checks import check_fields, common_unit, whole_sensitivity
from expost.cost import EPSILON_UNITS, Cost, Number, exact
from expost.errors import InteractionClosed, InvalidValue
from expost.estimate import Estimate
from expost.estimates import EstimateArray, frame_by_key, without_errors
from expost.frame import Frame
from expost.guarantee import Guarantee, Neighbours, Part, as_neighbours
from expost.mechanism import Interaction, Mechanism, fixed, read_by
from expost.mechanisms.gaussian import ROUNDED_NORMAL, l2_on_grid
from expost.mechanisms.numbers import GridNoise, NoiseLaw, Shape
from expost.noise import NoiseSource, vector
from expost.noise.grid import Grid

_STOPPED = "its steps may have ended because of what came out, which errors do not take into account"
Rule = Callable[[tuple[Any, ...]], bool]
"""Whether to stop, from the outputs released so far. It must look at nothing else that is private."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Iterative(Mechanism[Any, tuple[Any, ...]]):
    """Steps that build on what came out before, may stop early, and are charged for those that were taken.

    Parameters
    ----------
    steps
        For each step :class:`~expost.accounting.losses.GaussianNoise` (Gaussian noise on a value of L2 ``sensitivity``,
        also on a fresh Poisson sample), ``LaplaceNoise`` (on a single number), or a mechanism, which counts with its
        worst case.
    stops
        The numbers of steps after which it may stop. The last one is the number of all steps.
    delta
        The δ of every output. The ε of each stop is planned for it.
    sensitivity
        A bound on how far one record moves the value of a step that adds noise.
    weights
        Weights of the stops: a larger weight makes a stop cheaper, and others dearer.
    epsilons
        The ε of each stop, instead of a plan. Refused if they need a larger δ.
    compute
        For ``ledger.run``: the value of a step, from the data and the outputs so far. An exception in it, or a value of
        another shape, costs the worst case, because sampling has begun.
    until
        For ``ledger.run``: whether to stop, from the outputs so far.
    grid
        The step that floats are rounded to, a power of two. By default about a thousandth of the noise, and finer for
        longer arrays. The noise covers the rounding.
    missing
        What NaN counts as.
    neighbours
        The relation of the guarantee. Sampled steps need ``"add-remove"``.
    name
        For keys: what ``compute`` and ``until`` are, if no module has them under their names.

    With ``ledger.open`` it is driven from outside: ``for step in interaction: …``, leaving when it is good enough.
    The part is the stop that was reached, or would have been next. What decides to stop may read published outputs
    and public data only; a rule that reads private data must be a step. For sampled steps the guarantee is about
    one record that is in the data of all steps, or of none. Losses are fixed by a step's index; values may depend
    on everything that came out.

    >>> from expost.accounting.losses import GaussianNoise
    >>> walk = Iterative(steps=(GaussianNoise(10),) * 20, stops=(10, 20), delta=1e-5, sensitivity=1)
    >>> walk.part_of([0.5] * 7), walk.part_of([0.5] * 11)
    (10, 20)

    Proof: thm-iterative
    """

    steps: tuple[GaussianNoise | LaplaceNoise | Mechanism, ...]
    stops: tuple[int, ...]
    delta: Number
    sensitivity: Number | None = None
    weights: tuple[Number, ...] | None = None
    epsilons: tuple[Number, ...] | None = None
    compute: Callable[[Any, tuple[Any, ...]], Any] | None = None
    until: Rule | None = None
    grid: Number | None = None
    missing: Number = 0
    neighbours: Neighbours | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "stops", "weights", "epsilons"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else tuple(given))
        check_fields(self, "delta")
        as_neighbours(self.neighbours)
        for step in set(self.steps):
            self._check_step(step)
        _ = self.guarantee

    def _check_step(self, step: Any) -> None:
        if isinstance(step, GaussianNoise | LaplaceNoise):
            if self.sensitivity is None:
                raise InvalidValue(
                    f"{type(step).__name__} needs the sensitivity of the values it is given: pass sensitivity="
                )
            self._run_by(step)
        elif not isinstance(step, Mechanism):
            raise InvalidValue(
                f"a step is GaussianNoise(…), LaplaceNoise(…) or a mechanism, got a {type(step).__name__}"
            )
        if _rate(step) < 1 and self.neighbours != "add-remove":
            raise InvalidValue(
                f"Poisson samples are analysed for adding or removing a record: say neighbours='add-remove', "
                f"got {self.neighbours!r}"
            )
        relation = step.guarantee.neighbours if isinstance(step, Mechanism) else None
        if relation is not None and relation != self.neighbours:
            raise InvalidValue(f"a step is about {relation!r} neighbours: say neighbours={relation!r}")

    @cached_property
    def guarantee(self) -> Guarantee:
        """E at each stop, and δ."""
        losses = [_loss(step) for step in self.steps]
        if self.epsilons is None:
            found = plan(losses, self.stops, self.delta, weights=self.weights, neighbours=self.neighbours)
            return found.of_unit(self._unit)
        needed = optimal_delta(losses, self.stops, self.epsilons).upper
        if Fraction(needed) > exact(self.delta, "δ"):
            raise InvalidValue(
                f"these ε's need a δ of {needed:.6g}, got {self.delta!r}: leave epsilons out to plan them"
            )
        table = dict(zip(self.stops, self.epsilons, strict=True))
        return Guarantee(table, self.delta, neighbours=self.neighbours, unit=self._unit)  # type: ignore[arg-type]

    @property
    def _unit(self) -> str | None:
        """That of its steps, if any has one."""
        return common_unit(step.guarantee.unit for step in self.steps if isinstance(step, Mechanism))

    def renyi_prices(self, order: Number) -> Prices:
        """The sum of the steps taken: no extra δ, whatever the number of stops, in either direction of neighbours.

        A step whose own price needs a δ leaves the prices that the guarantee implies.

        Proof: lem-renyi-stopping
        """
        prices = {step: _renyi_price(step, order) for step in set(self.steps)}
        steps = [price for step in self.steps if (price := prices[step]) is not None]
        return Prices.stopped(steps, self.stops) if len(steps) == len(self.steps) else super().renyi_prices(order)

    def gaussian_prices(self) -> Prices | None:
        """The sum of the steps taken, if all are as private as Gaussian noise.

        Proof: thm-gaussian-pot
        """
        means = [mean for step in self.steps if (mean := _squared_mean(step)) is not None]
        return Prices.stopped(means, self.stops) if len(means) == len(self.steps) else None

    def part_of(self, output: tuple[Any, ...]) -> Part:
        """The stop that was reached, or the next one."""
        return self.stops[min(bisect_left(self.stops, len(output)), len(self.stops) - 1)]

    def check(self, data: Any) -> None:
        """A run in one go needs to know what to compute."""
        if self.compute is None:
            raise InvalidValue("to run in one go give compute=…; or drive it from outside with ledger.open(…)")
        if any(_rate(step) < 1 for step in self.steps):
            try:
                data[np.zeros(len(data), np.bool_)]
            except (TypeError, IndexError, KeyError):
                raise InvalidValue(
                    f"sampled steps choose records by a mask, which {type(data).__name__} does not take: try np.asarray"
                ) from None

    def sample(self, data: Any, noise: NoiseSource) -> tuple[Any, ...]:
        """All steps up to the first stop at which ``until`` says so."""
        assert self.compute is not None
        interaction = IterativeInteraction(self, noise)
        for step in interaction:
            rows = data[step.batch(len(data))] if step.sampling_rate < 1 else data
            step(self.compute(rows, interaction.transcript))
            if step.may_stop and self.until is not None and self.until(interaction.transcript):
                break
        return interaction.transcript

    def start(self, data: Any, noise: NoiseSource) -> IterativeInteraction:
        """An interaction driven from outside: iterate over its steps."""
        return IterativeInteraction(self, noise)

    def answer_of(self, output: tuple[Any, ...], origin: Hashable) -> Any:
        """What each step gave, without errors: those of steps that one stopped at may be others."""
        numbered = enumerate(zip(output, self.steps, strict=False), 1)
        return tuple(_read(one, step, (origin, number)) for number, (one, step) in numbered)

    def frame_of(self, answer: Any) -> Frame:
        """The rows of each step."""
        return frame_by_key("step", dict(enumerate(answer, 1)), self)

    def describe(self, output: tuple[Any, ...]) -> str:
        """How far it went."""
        return f"{len(output)} of at most {len(self.steps)} steps"

    def _run_by(self, step: GaussianNoise | LaplaceNoise | Mechanism) -> GridNoise | Mechanism:
        """What takes the value of a step, and gives its output."""
        if isinstance(step, Mechanism):
            return step
        kind = NormalStepNoise if isinstance(step, GaussianNoise) else LaplaceStepNoise
        assert self.sensitivity is not None
        return kind(
            noise_multiplier=step.noise_multiplier,
            sensitivity=self.sensitivity,
            grid=self.grid,
            missing=self.missing,
        )


class IterativeInteraction(Interaction):
    """An iterative mechanism under way: iterate over its steps. Leaving settles at the stop reached, or the next."""

    def __init__(self, mechanism: Iterative, noise: NoiseSource) -> None:
        super().__init__(mechanism)
        self._iterative = mechanism
        self._noise = noise
        self._sampled = 0
        """Steps that have their sample."""

    def __iter__(self) -> Iterator[IterativeStep]:
        """The steps that remain. Each must be given its value before the next one comes."""
        while not self.closed and len(self._transcript) < len(self._iterative.steps):
            step = IterativeStep(self, len(self._transcript))
            yield step
            if not step.answered and not self.closed:
                raise InteractionClosed(f"step {step.number} was given no value: call step(value), or leave the loop")

    def finished(self) -> bool:
        """Whether all steps were taken."""
        return len(self._transcript) == len(self._iterative.steps)

    def take(self, index: int, value: Any) -> Any:
        """The output of a step. Arrays cannot be written to: they are what will be published."""
        self._refuse_forked()
        with self._lock:  # of two threads that take one step, the second is refused before anything is sampled
            if index != len(self._transcript):
                raise InteractionClosed(f"step {index + 1} was taken already, or is not next")
            taken = self._iterative._run_by(self._iterative.steps[index])
            taken.check(value)
            return self._answer(lambda: self._evaluate(taken, value))

    def _evaluate(self, step: GridNoise | Mechanism, value: Any) -> Any:
        output = step.sample(value, self._noise)
        return fixed(output) if isinstance(output, np.ndarray) else output

    def has_sample(self, index: int) -> bool:
        """Whether the step's sample was drawn, through whichever object."""
        return index < self._sampled

    def draw(self, index: int, size: int) -> NDArray[np.bool_]:
        """The next step's Poisson sample, once. It is secret: only the step's own output may depend on it."""
        self._refuse_forked()
        with self._lock:
            if self.has_sample(index):
                raise InvalidValue(f"step {index + 1} has its sample already; a second one would tell records apart")
            if index != len(self._transcript):
                raise InteractionClosed(f"step {index + 1} is not next")
            self._sampled = index + 1
        return vector.bernoulli(self._noise, _rate(self._iterative.steps[index]), size)


class IterativeStep:
    """One step of an interaction: ``step.batch(n)``, then ``step(value)``."""

    def __init__(self, interaction: IterativeInteraction, index: int) -> None:
        self._interaction = interaction
        self._index = index

    @property
    def number(self) -> int:
        """1 for the first step."""
        return self._index + 1

    @property
    def answered(self) -> bool:
        """Whether the interaction has this step's output."""
        return self._index < len(self._interaction._transcript)

    @property
    def sampling_rate(self) -> Fraction:
        """How likely each record is in the step's sample; 1 if there is none."""
        return _rate(self._interaction._iterative.steps[self._index])

    @property
    def may_stop(self) -> bool:
        """Whether an interaction may stop after this step without paying for more."""
        return self.number in self._interaction._iterative.stops

    def batch(self, size: int) -> NDArray[np.bool_]:
        """A secret Poisson sample of ``size`` records, for this step only. Drawn once."""
        return self._interaction.draw(self._index, size)

    def __call__(self, value: Any) -> Any:
        """The output of the step for this value, which may use the records of :meth:`batch` only."""
        if self.answered:
            raise InteractionClosed(f"step {self.number} was taken already")
        if self.sampling_rate < 1 and not self._interaction.has_sample(self._index):
            raise InvalidValue(
                f"step {self.number} is paid for a sample: call step.batch(n) and use those records only"
            )
        return self._interaction.take(self._index, value)


@dataclass(frozen=True, kw_only=True)
class NormalStepNoise(GridNoise):
    """Rounded Gaussian noise, ``noise_multiplier`` times the L2 sensitivity of values on the grid.

    Proof: thm-iterative
    """

    _law = ROUNDED_NORMAL

    noise_multiplier: Number
    sensitivity: Number
    grid: Number | None
    missing: Number

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        multiplier = exact(self.noise_multiplier, "noise_multiplier")
        grid, sensitivity = l2_on_grid(self, shape, min(multiplier, Fraction(1)))
        return grid, (multiplier * sensitivity) ** 2


@dataclass(frozen=True, kw_only=True)
class LaplaceStepNoise(NormalStepNoise):
    """Rounded Laplace noise, ``noise_multiplier`` times the sensitivity of a number on the grid.

    Proof: thm-iterative
    """

    _law = NoiseLaw(lambda noise, rate: int(vector.rounded_laplace(noise, rate, 1)[0]), vector.rounded_laplace)

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        if shape.size > 1:
            raise InvalidValue("a Laplace step is for a single number; for arrays take GaussianNoise, or a mechanism")
        multiplier = exact(self.noise_multiplier, "noise_multiplier")
        sensitivity = exact(self.sensitivity, "sensitivity")
        grid = self.grid_for(shape, sensitivity * min(multiplier, Fraction(1)))
        moved = Fraction(grid.l1(sensitivity, 1)) if shape.floats else whole_sensitivity(self.sensitivity)
        return grid, 1 / (multiplier * moved)


def _read(output: Any, step: Any, origin: Hashable) -> Any:
    """What a step gave, as people read it."""
    if isinstance(step, Mechanism):
        return without_errors(read_by(step, output, origin), _STOPPED)
    if isinstance(output, np.ndarray):
        return EstimateArray.of(output, origin, why=_STOPPED)
    return Estimate.unknown(output, _STOPPED)


def _rate(step: Any) -> Fraction:
    return exact(step.sampling_rate, "sampling_rate") if isinstance(step, GaussianNoise) else Fraction(1)


def _renyi_price(step: Any, order: Number) -> Fraction | None:
    """The price of a step, unless it needs a δ."""
    if isinstance(step, GaussianNoise):
        return sampled_normal_noise(order, step.noise_multiplier, step.sampling_rate)
    if isinstance(step, LaplaceNoise):
        return laplace_noise(order, 1 / exact(step.noise_multiplier, "noise_multiplier"), None)
    prices = step.renyi_prices(order)
    return None if prices.delta else Fraction(prices.worst, EPSILON_UNITS)


def _squared_mean(step: Any) -> Fraction | None:
    """μ² of a step that is as private as Gaussian noise."""
    if isinstance(step, GaussianNoise) and step.symmetric:
        return 1 / exact(step.noise_multiplier, "noise_multiplier") ** 2
    prices = step.gaussian_prices() if isinstance(step, Mechanism) else None
    return None if prices is None else Fraction(prices.worst, EPSILON_UNITS)


def _loss(step: Loss | Mechanism) -> Loss:
    if isinstance(step, Loss):
        return step
    worst: Cost = step.guarantee.worst_case
    return ApproximateDP(worst.exact_epsilon, worst.exact_delta)
