"""What one step of a mechanism can lose at most: dominating pairs of the usual kinds of noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, exp, expm1, floor, log, sqrt
from typing import Any

import numpy as np

from expost.accounting.cells import laplace_cells, mixed_losses, normal_cells
from expost.accounting.law import EXACT, ULP, Blur, Floats, LossLaw, split_blur
from expost.cost import Number, exact
from expost.errors import InvalidValue

CUT = 1e-19
"""Mass that a law may cut off at either end, unless one says otherwise."""


class Loss(ABC):
    """What one step of a mechanism can lose at most: a dominating pair, for all α > 0 and both directions.

    Compositions take one direction of neighbours for all steps (a record is there in all of them, or in none), and
    the larger of the two results. Where the direction may change from step to step, as with data sets derived from
    each other, that is not enough for losses that are not :attr:`symmetric`: use :class:`EitherDirection` for these.
    """

    @abstractmethod
    def spread(self) -> float:
        """About the standard deviation of the loss."""

    @abstractmethod
    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """The law on the grid. ``reverse`` exchanges P and Q; tails of mass ``cut`` may be cut off."""

    @property
    def symmetric(self) -> bool:
        """Whether exchanging P and Q changes nothing."""
        return True

    def sketch(self, reverse: bool = False, cut: float = CUT) -> tuple[Floats, Floats]:
        """About the losses and their masses: for choosing grids only."""
        law = self.law(self.spread() / 32 or 1.0, reverse, cut)
        return law.values, law.mass


@dataclass(frozen=True)
class ApproximateDP(Loss):
    """Any (ε, δ)-differentially private step: randomised response dominates them all.

    Parameters
    ----------
    epsilon, delta
        What the step guarantees.

    Proof: lem-response-dominates
    """

    epsilon: Number
    delta: Number = 0

    def __post_init__(self) -> None:
        if exact(self.epsilon, "ε") < 0 or not 0 <= exact(self.delta, "δ") <= 1:
            raise InvalidValue(f"a step needs ε ≥ 0 and 0 ≤ δ ≤ 1, got {self.epsilon!r} and {self.delta!r}")

    def spread(self) -> float:
        """The ε of the step."""
        return float(exact(self.epsilon, "ε"))

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """Two atoms, each split between two grid points, and δ at infinity."""
        epsilon, delta = self.spread(), float(exact(self.delta, "δ")) * (1 + ULP)
        up = (1 - float(exact(self.delta, "δ"))) / (1 + exp(-epsilon)) * (1 + 8 * ULP)
        atoms = [(epsilon, up), (-epsilon, up * exp(-epsilon) * (1 + 8 * ULP))]
        return _split_atoms(atoms, grid, delta)


@dataclass(frozen=True)
class LaplaceNoise(Loss):
    """Laplace noise on a single number.

    Parameters
    ----------
    noise_multiplier
        The scale of the noise over the sensitivity.

    Proof: lem-laplace-loss
    """

    noise_multiplier: Number

    def __post_init__(self) -> None:
        _positive(self.noise_multiplier)

    def spread(self) -> float:
        """About ε = 1/``noise_multiplier``."""
        return float(1 / exact(self.noise_multiplier, "noise_multiplier"))

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """Atoms at ±ε and a density between them."""
        epsilon = self.spread()
        atoms = [(epsilon, 0.5 * (1 + 8 * ULP)), (-epsilon, exp(-epsilon) / 2 * (1 + 8 * ULP))]
        return _join(_split_atoms(atoms, grid, 0.0), laplace_cells(epsilon, grid).law())


@dataclass(frozen=True)
class GaussianNoise(Loss):
    """Gaussian noise, also on a fresh Poisson sample: a step of DP-SGD.

    Parameters
    ----------
    noise_multiplier
        The standard deviation σ of the noise over the L2 sensitivity.
    sampling_rate
        The probability with which each record is in the sample, independently; 1 for no sampling.

    Sampling (a rate below 1) is for add-remove neighbours, with the sample kept secret, and not symmetric: with it a
    composition holds if one record is added to, or removed from, the data of all steps alike; otherwise see
    :class:`EitherDirection`.

    Proof: lem-gaussian-loss
    """

    noise_multiplier: Number
    sampling_rate: Number = 1

    def __post_init__(self) -> None:
        _positive(self.noise_multiplier)
        if not 0 < exact(self.sampling_rate, "sampling_rate") <= 1:
            raise InvalidValue(f"a sampling_rate is above 0 and at most 1, got {self.sampling_rate!r}")

    @property
    def symmetric(self) -> bool:
        """Only without sampling."""
        return exact(self.sampling_rate, "sampling_rate") == 1

    def spread(self) -> float:
        """About the standard deviation, near which most losses are."""
        mean, rate = self._parameters()
        return mean if rate == 1 else min(mean, rate * sqrt(expm1(min(mean * mean, 50.0))))

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """Cells of two normal laws."""
        return normal_cells(*self._parameters(), grid, reverse, cut).law()

    def sketch(self, reverse: bool = False, cut: float = CUT) -> tuple[Floats, Floats]:
        """At evenly spaced values of the noise."""
        mean, rate = self._parameters()
        far = sqrt(2 * log(1 / cut))
        z = np.linspace(-far, mean + far, 256 + 16 * int(mean))
        here, there = np.exp(-z * z / 2), np.exp(-((z - mean) ** 2) / 2)
        losses, weights = mixed_losses(z, mean, rate), here if reverse else (1 - rate) * here + rate * there
        return -losses if reverse else losses, weights / weights.sum()

    def _parameters(self) -> tuple[float, float]:
        mean, rate = 1 / exact(self.noise_multiplier, "noise_multiplier"), exact(self.sampling_rate, "sampling_rate")
        return float(mean), float(rate)


@dataclass(frozen=True)
class EitherDirection(Loss):
    """A sampled step with its neighbours in either direction, whatever the direction in the other steps.

    Parameters
    ----------
    loss
        The step in one direction.

    For data that is derived, or chosen, from step to step: a record may be there in one step and gone in the next.
    The step counts with the larger of its two hockey sticks at every α, a dominating pair for both directions: a bound
    from above that no adversary quite reaches.

    Proof: lem-either-direction
    """

    loss: GaussianNoise

    def spread(self) -> float:
        """That of the loss itself."""
        return self.loss.spread()

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """Positive losses as forwards, negative ones as in reverse, and the rest of the mass at 0."""
        forward, backward = (self.loss.law(grid, way, cut) for way in (False, True))
        mass = np.zeros(forward.high - backward.low + 1)
        mass[1 - backward.low :] = forward.mass[1 - forward.low :]
        mass[: -backward.low] = backward.mass[: -backward.low]
        surplus = max(0.0, float(backward.mass.sum()) + backward.infinity - 1) + 64 * ULP
        mass[-backward.low] = max(0.0, 1 - float(mass.sum())) + surplus
        blur = forward.blur.or_(backward.blur) + Blur(excess=surplus)
        return LossLaw(grid, backward.low, mass, forward.infinity, max(forward.shift, backward.shift), blur=blur)

    def sketch(self, reverse: bool = False, cut: float = CUT) -> tuple[Floats, Floats]:
        """About the losses of both directions and their masses: for choosing grids only."""
        (up, high), (down, low) = (self.loss.sketch(way, cut) for way in (False, True))
        values, masses = np.concatenate([down[down < 0], up[up > 0]]), np.concatenate([low[down < 0], high[up > 0]])
        return np.append(values, 0.0), np.append(masses, max(1 - float(masses.sum()), 0.0))


def _split_atoms(atoms: list[tuple[float, float]], step: float, infinity: float) -> LossLaw:
    """Atoms (loss, mass), each split between the grid points around it so that P and Q keep their masses."""
    low = min(floor(loss / step + 1e-9) for loss, _ in atoms)
    mass = np.zeros(max(ceil(loss / step - 1e-9) for loss, _ in atoms) - low + 1)
    blur = EXACT
    for loss, weight in atoms:
        left, right = floor(loss / step + 1e-9), ceil(loss / step - 1e-9)
        if left >= right:
            mass[left - low] += weight
            continue
        share = min(1.0, max(0.0, expm1(left * step - loss) / expm1(-step)) + 1e-13)
        mass[left - low] += weight * (1 - share)
        mass[right - low] += weight * share
        blur = split_blur(step)
    shift = _shift(max(abs(loss) for loss, _ in atoms)) + 2e-9 * step
    extra = Blur(drift=2 * shift + 4e-13 * expm1(step), growth=64 * ULP, excess=2 * ULP * infinity)
    return LossLaw(step, low, mass, infinity, shift, blur=blur + extra)


def _join(first: LossLaw, second: LossLaw) -> LossLaw:
    """The sum of two parts of one law."""
    low, high = min(first.low, second.low), max(first.high, second.high)
    mass = np.zeros(high - low + 1)
    for part in (first, second):
        mass[part.low - low : part.high - low + 1] += part.mass
    infinity, shift = first.infinity + second.infinity, max(first.shift, second.shift)
    return LossLaw(first.step, low, mass, infinity, shift, blur=first.blur.or_(second.blur))


def _shift(reach: float) -> float:
    """By how much rounding may have moved a loss of at most ``reach``."""
    return 64 * ULP * (1 + reach)


def _positive(noise_multiplier: Any) -> None:
    if exact(noise_multiplier, "noise_multiplier") <= 0:
        raise InvalidValue(f"a noise_multiplier is above 0, got {noise_multiplier!r}")
