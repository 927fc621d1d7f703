"""What one step of a mechanism can lose at most: dominating pairs of the usual kinds of noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, exp, expm1, floor, log, sqrt
from typing import Any

import numpy as np

from expost.accounting.cells import Cells, clipped, laplace_cells, mixed_losses, normal_cells
from expost.accounting.law import EXACT, ULP, Floats, Law, split_blur
from expost.cost import Number, exact
from expost.errors import InvalidValue

CUT = 1e-19
"""Mass that a law may cut off at either end, unless one says otherwise."""


class Loss(ABC):
    """What one step of a mechanism can lose at most: a dominating pair, for all α > 0 and both directions.

    Compositions take one direction of neighbours for all steps (a record is there in all of them, or in none), and
    the larger of the two results. Where the direction may change from step to step, as with data sets derived from
    each other, that is not enough for losses that are not :attr:`symmetric`.
    """

    @abstractmethod
    def spread(self) -> float:
        """About the standard deviation of the loss."""

    @abstractmethod
    def upper(self, step: float, reverse: bool = False, cut: float = CUT) -> Law:
        """The law on the grid, from above. ``reverse`` exchanges P and Q; tails of mass ``cut`` may be cut off."""

    @abstractmethod
    def lower(self, step: float, reverse: bool = False) -> Law:
        """The law on the grid, from below."""

    @property
    def symmetric(self) -> bool:
        """Whether exchanging P and Q changes nothing."""
        return True

    def sketch(self, reverse: bool = False, cut: float = CUT) -> tuple[Floats, Floats]:
        """About the losses and their masses: for choosing grids, not for claims."""
        law = self.upper(self.spread() / 32 or 1.0, reverse, cut)
        return law.values, law.mass


@dataclass(frozen=True)
class ApproximateDP(Loss):
    """Any (ε, δ)-differentially private mechanism: randomised response dominates them all.

    Proof: lem-response-dominates
    """

    epsilon: Number
    delta: Number = 0

    def __post_init__(self) -> None:
        if exact(self.epsilon, "ε") < 0 or not 0 <= exact(self.delta, "δ") <= 1:
            raise InvalidValue(f"a step needs ε ≥ 0 and 0 ≤ δ ≤ 1, got {self.epsilon!r} and {self.delta!r}")

    def spread(self) -> float:
        """ε."""
        return float(exact(self.epsilon, "ε"))

    def upper(self, step: float, reverse: bool = False, cut: float = CUT) -> Law:
        """Two atoms, each split between two grid points, and δ at infinity."""
        epsilon, delta = self.spread(), float(exact(self.delta, "δ")) * (1 + ULP)
        up = (1 - float(exact(self.delta, "δ"))) / (1 + exp(-epsilon)) * (1 + 8 * ULP)
        atoms = [(epsilon, up), (-epsilon, up * exp(-epsilon) * (1 + 8 * ULP))]
        return _split_atoms(atoms, step, delta)

    def lower(self, step: float, reverse: bool = False) -> Law:
        """The same with ε rounded down to the grid, and δ·(1 − 2⁻⁵²) at infinity."""
        epsilon, delta = _down(self.spread(), step), float(exact(self.delta, "δ"))
        up = (1 - delta) / (1 + exp(-epsilon)) * (1 - 8 * ULP)
        atoms = [(epsilon, up), (-epsilon, up * exp(-epsilon) * (1 - 8 * ULP))]
        return _on_points(atoms, step, delta * (1 - ULP))


@dataclass(frozen=True)
class LaplaceNoise(Loss):
    """Laplace noise of ``noise_multiplier`` = scale/sensitivity on a single number.

    Proof: lem-laplace-loss
    """

    noise_multiplier: Number

    def __post_init__(self) -> None:
        _positive(self.noise_multiplier)

    def spread(self) -> float:
        """About ε = 1/``noise_multiplier``."""
        return float(1 / exact(self.noise_multiplier, "noise_multiplier"))

    def upper(self, step: float, reverse: bool = False, cut: float = CUT) -> Law:
        """Atoms at ±ε and a density between them."""
        epsilon = self.spread()
        return _join(
            _split_atoms(_laplace_atoms(epsilon, 1 + 8 * ULP), step, 0.0), laplace_cells(epsilon, step).upper()
        )

    def lower(self, step: float, reverse: bool = False) -> Law:
        """The same with more noise, such that ±ε are on the grid."""
        epsilon = _down(self.spread(), step)
        if epsilon == 0:
            return Law(step, 0, np.ones(1), shift=_shift(0.0))
        atoms = _on_points(_laplace_atoms(epsilon, 1 - 8 * ULP), step, 0.0)
        return clipped(_join(atoms, laplace_cells(epsilon, step).lower(edges=True)))


@dataclass(frozen=True)
class GaussianNoise(Loss):
    """Normal noise of ``noise_multiplier`` = σ/sensitivity, on a fresh Poisson sample of the given ``sampling_rate``.

    Sampling (a rate below 1) is for add-remove neighbours, with the sample kept secret, and not symmetric: with it a
    composition holds if one record is added to, or removed from, the data of all steps alike.

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

    def upper(self, step: float, reverse: bool = False, cut: float = CUT) -> Law:
        """Cells of two normal laws."""
        return self._cells(step, reverse, cut).upper()

    def lower(self, step: float, reverse: bool = False) -> Law:
        """Cells of two normal laws."""
        return clipped(self._cells(step, reverse, CUT).lower())

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

    def _cells(self, step: float, reverse: bool, cut: float) -> Cells:
        return normal_cells(*self._parameters(), step, reverse, cut)


def _split_atoms(atoms: list[tuple[float, float]], step: float, infinity: float) -> Law:
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
    extra = type(blur)(drift=2 * shift + 4e-13 * expm1(step), growth=64 * ULP, excess=2 * ULP * infinity)
    return Law(step, low, mass, infinity, shift, blur=blur + extra)


def _on_points(atoms: list[tuple[float, float]], step: float, infinity: float) -> Law:
    """Atoms that are on the grid already, but for 10⁻¹² of a step, which the shift covers."""
    places = [round(loss / step) for loss, _ in atoms]
    mass = np.zeros(max(places) - min(places) + 1)
    for place, (_, weight) in zip(places, atoms, strict=True):
        mass[place - min(places)] += weight
    return Law(step, min(places), mass, infinity, _shift(max(abs(loss) for loss, _ in atoms)) + 2e-12 * step)


def _join(first: Law, second: Law) -> Law:
    """The sum of two parts of one law."""
    low, high = min(first.low, second.low), max(first.high, second.high)
    mass = np.zeros(high - low + 1)
    for part in (first, second):
        mass[part.low - low : part.high - low + 1] += part.mass
    infinity, shift, lost = first.infinity + second.infinity, max(first.shift, second.shift), first.lost + second.lost
    return Law(first.step, low, mass, infinity, shift, lost, blur=_either(first, second))


def _either(first: Law, second: Law) -> Any:
    """What covers the blur of either part."""
    a, b = first.blur, second.blur
    return type(a)(max(a.smear, b.smear), max(a.drift, b.drift), max(a.growth, b.growth), a.excess + b.excess)


def _laplace_atoms(epsilon: float, factor: float) -> list[tuple[float, float]]:
    return [(epsilon, 0.5 * factor), (-epsilon, exp(-epsilon) / 2 * factor)]


def _down(value: float, step: float) -> float:
    """The largest multiple of the step that is no more than ``value``, or ``value`` if that is all but one itself."""
    return min(floor(value / step + 1e-12) * step, value)


def _shift(reach: float) -> float:
    """By how much rounding may have moved a loss of at most ``reach``."""
    return 64 * ULP * (1 + reach)


def _positive(noise_multiplier: Any) -> None:
    if exact(noise_multiplier, "noise_multiplier") <= 0:
        raise InvalidValue(f"a noise_multiplier is above 0, got {noise_multiplier!r}")
