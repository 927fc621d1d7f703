"""Privacy-loss laws on a grid, from above and from below.

A mechanism with a dominating pair (P, Q) loses ln P/Q at each output. A :class:`Law` keeps what that loss does
under P on the multiples of a step, in one of two ways. The *upper* law splits every loss between the two grid
points around it so that P and Q keep their masses: that is itself a dominating pair. The *lower* law is dominated.
What floating point may have got wrong is kept beside the masses and always counted against us.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, erfc, exp, expm1, floor, inf, log, log1p, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.cost import Number, exact
from expost.errors import InvalidValue

Floats: TypeAlias = NDArray[np.float64]

_ULP = 2.0**-52
_FAR = 9.0  # standard deviations: a normal number passes them with probability 10⁻¹⁹


@dataclass(frozen=True, eq=False)
class Law:
    """P-masses of the losses (low + i)·step.

    An upper law promises E[w(L + Y)] ≤ Σ mass·w(L + y + shift) + infinity + slack, and a lower law
    E[w(L + Y)] ≥ Σ mass·w(L + y − shift) + infinity − lost − slack, for every w between 0 and 1 that the recursion
    of thm-optimal-stopping meets. A *tilted* law keeps mass·e^{tilt·y − level} instead, and its slack bounds the sum
    of what these may be off by: small numbers of large losses keep their digits.

    Proof: thm-grid-laws, lem-tilt
    """

    step: float
    low: int
    mass: Floats
    infinity: float = 0.0
    shift: float = 0.0
    lost: float = 0.0
    slack: float = 0.0
    tilt: float = 0.0
    level: float = 0.0

    @property
    def high(self) -> int:
        """The largest loss, in steps."""
        return self.low + self.mass.size - 1

    @property
    def values(self) -> Floats:
        """The losses."""
        return points(self.low, self.high, self.step)


def points(low: int, high: int, step: float) -> Floats:
    """The grid points from low to high."""
    return np.arange(low, high + 1, dtype=np.float64) * step


class Loss(ABC):
    """What one step of a mechanism can lose at most: a dominating pair, for all α > 0 and both directions."""

    @abstractmethod
    def spread(self) -> float:
        """About the standard deviation of the loss."""

    @abstractmethod
    def upper(self, step: float, reverse: bool = False) -> Law:
        """The law on the grid, from above. ``reverse`` exchanges P and Q."""

    @abstractmethod
    def lower(self, step: float, reverse: bool = False) -> Law:
        """The law on the grid, from below."""

    @property
    def symmetric(self) -> bool:
        """Whether exchanging P and Q changes nothing."""
        return True

    def lattice(self) -> float | None:
        """The loss that a grid should hit exactly, if there is one."""
        return None

    def detail(self) -> float:
        """How fine a grid must be to follow the law, if its spread does not tell."""
        return inf


@dataclass(frozen=True)
class Response(Loss):
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

    def lattice(self) -> float | None:
        """ε, if it is not 0."""
        return self.spread() or None

    def upper(self, step: float, reverse: bool = False) -> Law:
        """Two atoms, each split between two grid points, and δ at infinity."""
        epsilon, delta = self.spread(), float(exact(self.delta, "δ")) * (1 + _ULP)
        up = (1 - float(exact(self.delta, "δ"))) / (1 + exp(-epsilon)) * (1 + 8 * _ULP)
        atoms = [(epsilon, up), (-epsilon, up * exp(-epsilon) * (1 + 8 * _ULP))]
        return _split_atoms(atoms, step, delta)

    def lower(self, step: float, reverse: bool = False) -> Law:
        """The same with ε rounded down to the grid, and δ·(1 − 2⁻⁵²) at infinity."""
        epsilon, delta = _down(self.spread(), step), float(exact(self.delta, "δ"))
        up = (1 - delta) / (1 + exp(-epsilon)) * (1 - 8 * _ULP)
        atoms = [(epsilon, up), (-epsilon, up * exp(-epsilon) * (1 - 8 * _ULP))]
        return _on_points(atoms, step, delta * (1 - _ULP))


@dataclass(frozen=True)
class LaplaceNoise(Loss):
    """Laplace noise of ``ratio`` = scale/sensitivity on a single number.

    Proof: lem-laplace-loss
    """

    ratio: Number

    def __post_init__(self) -> None:
        _positive(self.ratio)

    def spread(self) -> float:
        """About ε = 1/ratio."""
        return float(1 / exact(self.ratio, "ratio"))

    def lattice(self) -> float | None:
        """ε: the loss has an atom there."""
        return self.spread()

    def upper(self, step: float, reverse: bool = False) -> Law:
        """Atoms at ±ε and a density between them."""
        return _join(_split_atoms(_laplace_atoms(self.spread(), 1 + 8 * _ULP), step, 0.0), self._cells(step).upper())

    def lower(self, step: float, reverse: bool = False) -> Law:
        """The same with more noise, such that ±ε are on the grid."""
        epsilon = _down(self.spread(), step)
        if epsilon == 0:
            return Law(step, 0, np.ones(1), shift=_shift(0.0))
        atoms = _on_points(_laplace_atoms(epsilon, 1 - 8 * _ULP), step, 0.0)
        return _clipped(_join(atoms, LaplaceNoise(1 / exact(epsilon, "ε"))._cells(step).lower(edges=True)))

    def _cells(self, step: float) -> _Cells:
        epsilon = self.spread()
        low, high = floor(-epsilon / step + 1e-9), ceil(epsilon / step - 1e-9)
        knots = np.clip(np.arange(low, high + 1) * step, -epsilon, epsilon)
        width = np.expm1(np.diff(knots) / 2) / 2
        p = np.exp((knots[:-1] - epsilon) / 2) * width
        q = np.exp((-knots[1:] - epsilon) / 2) * width
        return _Cells(step, low, p, p * 8 * _ULP, q, q * 8 * _ULP, 0.0, 0.0)


@dataclass(frozen=True)
class GaussianNoise(Loss):
    """Normal noise of ``ratio`` = σ/sensitivity, on a fresh Poisson sample of the given ``rate``.

    Sampling (rate < 1) is for add-remove neighbours, with the sample kept secret.

    Proof: lem-gaussian-loss
    """

    ratio: Number
    rate: Number = 1

    def __post_init__(self) -> None:
        _positive(self.ratio)
        if not 0 < exact(self.rate, "rate") <= 1:
            raise InvalidValue(f"a sampling rate lies above 0 and is at most 1, got {self.rate!r}")

    @property
    def symmetric(self) -> bool:
        """Only without sampling."""
        return exact(self.rate, "rate") == 1

    def spread(self) -> float:
        """About the standard deviation, near which most losses are."""
        mean = float(1 / exact(self.ratio, "ratio"))
        rate = float(exact(self.rate, "rate"))
        return mean if rate == 1 else min(mean, rate * sqrt(expm1(min(mean * mean, 50.0))))

    def detail(self) -> float:
        """The slope of the loss where most records are: with little noise on a sample they are nearly one atom."""
        mean, rate = float(1 / exact(self.ratio, "ratio")), float(exact(self.rate, "rate"))
        return inf if self.symmetric or mean < 4 / 3 else rate * mean * exp(-mean * mean / 2)

    def upper(self, step: float, reverse: bool = False) -> Law:
        """Cells of two normal laws."""
        return self._cells(step, reverse).upper()

    def lower(self, step: float, reverse: bool = False) -> Law:
        """Cells of two normal laws."""
        return _clipped(self._cells(step, reverse).lower())

    def _cells(self, step: float, reverse: bool) -> _Cells:
        mean, rate = float(1 / exact(self.ratio, "ratio")), float(exact(self.rate, "rate"))
        low, high = floor(_mixed_loss(-_FAR, mean, rate) / step), ceil(_mixed_loss(mean + _FAR, mean, rate) / step)
        where = _places(points(low, high, step), mean, rate)
        null, null_error = _normal_cells(where)
        mirrored = rate == 1 and low == -high
        moved, moved_error = (null[::-1], null_error[::-1]) if mirrored else _normal_cells(where - mean)
        mixed, mixed_error = (1 - rate) * null + rate * moved, (1 - rate) * null_error + rate * moved_error
        below = _tail(np.array([-where[0], mean - where[0]]))
        above = _tail(np.array([where[-1], where[-1] - mean]))
        if not reverse:
            return _Cells(step, low, mixed, mixed_error, null, null_error, float(below.max()), float(above.max()))
        p, p_error, q, q_error = (row[::-1] for row in (null, null_error, mixed, mixed_error))
        return _Cells(step, -high, p, p_error, q, q_error, float(above[0]), float(below[0]))


@dataclass(frozen=True, eq=False)
class _Cells:
    """P and Q masses of the cells between neighbouring grid points, what they may be off by, and P's tails."""

    step: float
    low: int
    p: Floats
    p_error: Floats
    q: Floats
    q_error: Floats
    below: float
    above: float

    @cached_property
    def _ratio(self) -> Floats:
        with np.errstate(over="ignore"):  # what is infinite is put on the safe side below
            return np.asarray(np.exp(points(self.low, self.low + self.p.size - 1, self.step)))

    def upper(self) -> Law:
        """Each cell split between its ends, errors to the right; the tails go to the lowest point and to infinity."""
        most = self.p + self.p_error
        error = (self.p_error + _ratio_times(self._ratio, self.q_error) + 8 * _ULP * most) / -expm1(-self.step)
        right = np.nan_to_num(np.clip(self._right() + error, 0.0, most), nan=np.inf)
        right = np.minimum(right, most)
        mass = np.append(most - right, 0.0)
        mass[1:] += right
        mass[0] += self.below
        return Law(self.step, self.low, mass, self.above, _shift(self._reach()))

    def lower(self, edges: bool = False) -> Law:
        """The split law with every cell pulled together a little: a contraction, so dominated."""
        least = np.clip(self.p - self.p_error, 0.0, None)
        error = (self.p_error + _ratio_times(self._ratio, self.q_error) + 8 * _ULP * self.p) / -expm1(-self.step)
        right = np.nan_to_num(np.clip(self._right() - error, 0.0, least), nan=0.0)
        mass = np.append(least - right, 0.0)
        mass[1:] += right
        inner = np.minimum(_ratio_times(self._ratio, self.q + self.q_error), self.p + self.p_error)  # Q·ratio ≤ P
        mass, lost = _pull(mass, inner, self.step, edges)
        return Law(self.step, self.low, mass, 0.0, _shift(self._reach()), lost)

    def _right(self) -> Floats:
        """The share of each cell that belongs to its right end."""
        return (self.p - _ratio_times(self._ratio, self.q)) / -expm1(-self.step)

    def _reach(self) -> float:
        return max(abs(self.low), abs(self.low + self.p.size)) * self.step


def _pull(mass: Floats, inner: Floats, step: float, edges: bool) -> tuple[Floats, float]:
    """Lower the hockey stick at each grid point by what a chord may lie above it; returns masses and what was lost.

    ``edges``: the law ends in atoms, and nothing is pulled there.

    Proof: lem-pull
    """
    pull = np.zeros(mass.size + 2)
    pull[1:-1] = np.maximum(np.append(inner, 0.0), np.append(0.0, inner))
    lost = 0.0
    if edges and mass.size > 2:
        pull[1] = pull[-2] = 0.0
        pull[2], pull[-3] = max(pull[2], 4 * inner[0]), max(pull[-3], 4 * inner[-1])
    elif not edges:
        mode = int(pull.argmax())
        steep = np.flatnonzero(pull[2 : mode + 1] > 3 * pull[1:mode])
        start = int(steep[-1]) + 2 if steep.size else 1
        np.maximum(pull[:start], pull[start] * np.exp(-step * np.arange(start, 0, -1)), out=pull[:start])
        pull[0] = pull[1] * exp(-step)
        steep = np.flatnonzero(pull[mode:-2] > 3 * pull[mode + 1 : -1])
        stop = mode + int(steep[0]) if steep.size else mass.size
        np.maximum(pull[stop:], pull[stop], out=pull[stop:])
        pull[-1] = pull[-2]
        lost = expm1(step) / 4 * float(pull[-1])
    growth = exp(step)
    pulled = mass - (pull[2:] - (1 + growth) * pull[1:-1] + growth * pull[:-2]) / 4
    return pulled, lost + 16 * _ULP * float(pull.sum())


def _clipped(law: Law) -> Law:
    """Without negative masses: each is made up for by the next larger losses, which moves mass down.

    What they cannot make up for counts as lost; and all masses are scaled to be no more than 1 together.

    Proof: lem-pull
    """
    tails = np.cumsum(law.mass[::-1])[::-1]
    debts = tails - np.maximum(np.minimum.accumulate(tails), 0.0)
    mass = law.mass - debts
    mass[:-1] += debts[1:]
    unsure = 8 * _ULP * float(np.abs(tails[debts != 0]).sum())
    lost = law.lost + max(0.0, -float(tails.min())) + unsure - float(mass[mass < 0].sum())
    mass = np.clip(mass, 0.0, None)
    whole = (float(mass.sum()) + law.infinity) * (1 + 1e-12)
    return replace(law, mass=mass / max(1.0, whole), lost=lost)


def _split_atoms(atoms: list[tuple[float, float]], step: float, infinity: float) -> Law:
    """Atoms (loss, mass), each split between the grid points around it so that P and Q keep their masses."""
    low = min(floor(loss / step + 1e-9) for loss, _ in atoms)
    mass = np.zeros(max(ceil(loss / step - 1e-9) for loss, _ in atoms) - low + 1)
    for loss, weight in atoms:
        left, right = floor(loss / step + 1e-9), ceil(loss / step - 1e-9)
        if left >= right:
            mass[left - low] += weight
            continue
        share = min(1.0, max(0.0, expm1(left * step - loss) / expm1(-step)) + 1e-13)
        mass[left - low] += weight * (1 - share)
        mass[right - low] += weight * share
    return Law(step, low, mass, infinity, _shift(max(abs(loss) for loss, _ in atoms)) + 2e-9 * step)


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
    infinity = first.infinity + second.infinity
    return Law(first.step, low, mass, infinity, max(first.shift, second.shift), first.lost + second.lost)


def _laplace_atoms(epsilon: float, factor: float) -> list[tuple[float, float]]:
    return [(epsilon, 0.5 * factor), (-epsilon, exp(-epsilon) / 2 * factor)]


def _down(value: float, step: float) -> float:
    """The largest multiple of the step that is no more than ``value``, or ``value`` if that is all but one itself."""
    return min(floor(value / step + 1e-12) * step, value)


def _shift(reach: float) -> float:
    """By how much rounding may have moved a loss of at most ``reach``."""
    return 64 * _ULP * (1 + reach)


def _ratio_times(ratio: Floats, mass: Floats) -> Floats:
    """ratio·mass where a mass of 0 stays 0."""
    return np.multiply(ratio, mass, where=mass > 0, out=np.zeros_like(mass))


def _mixed_loss(x: float, mean: float, rate: float) -> float:
    """ln(1 − rate + rate·e^{mean·x − mean²/2})."""
    exponent = mean * x - mean * mean / 2
    if rate == 1:
        return exponent
    return exponent + log(rate + (1 - rate) * exp(-exponent)) if exponent > 30 else log1p(rate * expm1(exponent))


def _places(losses: Floats, mean: float, rate: float) -> Floats:
    """Where the loss takes these values; −∞ below all that it takes."""
    if rate == 1:
        return (losses + mean * mean / 2) / mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inside = np.where(losses > 30, losses + np.log1p((rate - 1) * np.exp(-losses)), np.log(np.expm1(losses) + rate))
    inside = np.where(np.isnan(inside), -np.inf, inside)
    return (inside - log(rate)) / mean + mean / 2


def _tail(z: Floats) -> Floats:
    """Pr[N(0, 1) > z] for each z, within a relative (z² + 32)·2⁻⁵² (the C library's erfc and its argument)."""
    return np.fromiter(map(erfc, (z / 1.4142135623730951).tolist()), np.float64, z.size) / 2


def _normal_cells(knots: Floats) -> tuple[Floats, Floats]:
    """Masses of a normal law between neighbouring knots, and what they may be off by."""
    tail = _tail(np.abs(knots))
    finite = np.where(np.isfinite(knots), knots, 0.0)
    error = tail * (finite * finite + 32) * _ULP + 1e-300  # what vanished counts, too
    left, right = tail[:-1], tail[1:]
    mass = np.where(knots[:-1] >= 0, left - right, np.where(knots[1:] <= 0, right - left, 1 - left - right))
    straddles = (knots[:-1] < 0) & (knots[1:] > 0)
    return np.clip(mass, 0.0, None), error[:-1] + error[1:] + np.where(straddles, 2 * _ULP, 0.0)


def _positive(ratio: Any) -> None:
    if exact(ratio, "ratio") <= 0:
        raise InvalidValue(f"a ratio of noise to sensitivity must be above 0, got {ratio!r}")
