"""Losses with a density, cell by cell of a grid, as laws."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, erfc, exp, expm1, floor, inf, log, log1p, sqrt

import numpy as np

from expost.accounting.law import ULP, Blur, Floats, LossLaw, points, split_blur

_SPLIT = 1.4142135623730951
_ROOT_TWO_PI = 2.5066282746310002
_NARROW = 0.13  # a cell's width times (|z| + mean + 3), up to which four points integrate it: lem-cells
_NODES = (0.06943184420297371, 0.33000947820757187, 0.6699905217924281, 0.9305681557970263)
_WEIGHTS = (0.17392742256872692, 0.32607257743127307, 0.32607257743127307, 0.17392742256872692)
_TINY = 1e-250  # smaller masses count as vanished


@dataclass(frozen=True, eq=False)
class LossCells:
    """A loss between neighbouring grid points: P-masses p, and b = ∫ (1 − e^{a − y}) dP, a being the cell's left end.

    ``p_error`` and ``b_error`` bound what these may be off by, ``below`` and ``above`` P's masses left and right of
    the cells, ``position`` by how much floating point may have moved a grid point.

    Proof: lem-cells
    """

    step: float
    low: int
    p: Floats
    p_error: Floats
    b: Floats
    b_error: Floats
    below: float
    above: float
    position: float

    def law(self) -> LossLaw:
        """Each cell split between its ends, errors to the right; the tails go to the lowest point and to infinity."""
        most = self.p + self.p_error
        right = np.minimum(self._right, most)
        mass = np.append(most - right, 0.0)
        mass[1:] += right
        mass[0] += self.below
        return LossLaw(self.step, self.low, mass, self.above, self.position, blur=self._blur(most))

    @property
    def _right(self) -> Floats:
        """The mass of each cell that belongs to its right end, rounded up."""
        unsure = 16 * ULP + 4 * self.position / self.step
        return np.maximum(self.b + self.b_error, 0.0) / -expm1(-self.step) * (1 + unsure)

    def _blur(self, most: Floats) -> Blur:
        """What the split, the errors and the tails may have added."""
        solid = self.p > _TINY
        p, p_error, b_error = self.p[solid], self.p_error[solid], self.b_error[solid]
        growth = float((p_error / p).max(initial=0.0)) * 2
        drift = float((b_error / p).max(initial=0.0)) * 2 * exp(self.step)
        drift += 8 * self.position * expm1(self.step) / self.step + 64 * ULP * expm1(self.step)
        excess = float(most[~solid].sum()) + self.below + self.above
        return split_blur(self.step) + Blur(0.0, drift, growth, excess)


def laplace_cells(epsilon: float, step: float) -> LossCells:
    """The density ¼·e^{(y − ε)/2} between −ε and ε.

    Proof: lem-laplace-loss
    """
    low, high = floor(-epsilon / step + 1e-9), ceil(epsilon / step - 1e-9)
    ends = points(low, high, step)
    knots = np.clip(ends, -epsilon, epsilon)
    left, width = (knots[:-1] - ends[:-1]) / 2, np.diff(knots) / 2
    p = np.exp((knots[:-1] - epsilon) / 2) * np.expm1(width) / 2
    b = 2 * np.exp((ends[:-1] - epsilon) / 2) * np.sinh(left + width / 2) * np.sinh(width / 2)
    unsure = (16 + 8 * epsilon / step) * ULP  # a cell's width is a difference of numbers up to ε
    return LossCells(step, low, p, p * unsure, b, b * 2 * unsure, 0.0, 0.0, 64 * ULP * (1 + epsilon))


def normal_cells(mean: float, rate: float, step: float, reverse: bool, cut: float) -> LossCells:
    """(1 − rate)·N(0, 1) + rate·N(mean, 1) against N(0, 1), or in reverse, without tails of mass ``cut``.

    Proof: lem-gaussian-loss, lem-cells
    """
    far = sqrt(2 * log(1 / cut)) + 1e-9
    low, high = floor(_mixed_loss(-far, mean, rate) / step), ceil(_mixed_loss(mean + far, mean, rate) / step)
    losses = points(low, high, step)
    places = _places(losses, mean, rate)
    null, moved, b, errors = _integrals(places, losses, mean, rate, reverse)
    null_error, moved_error, b_error = errors
    below = _tail(np.array([-places[0], mean - places[0]]))
    above = _tail(np.array([places[-1], places[-1] - mean]))
    reach = max(abs(low), abs(high)) * step
    position = 16 * ULP * (2 + 2 * abs(log(rate)) + 2 * reach + mean * mean)
    if reverse:
        p, p_error = null[::-1], null_error[::-1]
        tails = float(above[0]), float(below[0])
        return LossCells(step, -high, p, p_error, b[::-1], b_error[::-1], *tails, position)
    p, p_error = (1 - rate) * null + rate * moved, (1 - rate) * null_error + rate * moved_error
    return LossCells(step, low, p, p_error + 4 * ULP * p, b, b_error, float(below.max()), float(above.max()), position)


Integrals = tuple[Floats, Floats, Floats, tuple[Floats, Floats, Floats]]


def _integrals(places: Floats, losses: Floats, mean: float, rate: float, reverse: bool) -> Integrals:
    """For each cell the mass of N(0, 1) and of N(mean, 1), and b; then what these may be off by."""
    with np.errstate(invalid="ignore"):
        width = np.diff(places)
        sizes = np.maximum(np.abs(places[:-1]), np.abs(places[1:])) + mean + 3
        narrow = np.isfinite(width) & (width * sizes <= _NARROW)
    rows = [np.empty(narrow.size) for _ in range(6)]
    for chosen, integrate in ((narrow, _by_points), (~narrow, _by_tails)):
        if chosen.any():
            edges = places[:-1][chosen], places[1:][chosen], losses[:-1][chosen], losses[1:][chosen]
            for row, found in zip(rows, integrate(*edges, mean, rate, reverse), strict=True):
                row[chosen] = found
    null, moved, b, null_error, moved_error, b_error = rows
    return null, moved, b, (null_error, moved_error, b_error)


def _by_points(
    left: Floats, right: Floats, _: Floats, upper: Floats, mean: float, rate: float, reverse: bool
) -> tuple[Floats, ...]:
    """Narrow cells by Gauss' rule with four points: relative errors only."""
    width = right - left
    null, moved, b = np.zeros(left.size), np.zeros(left.size), np.zeros(left.size)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        into = width * node
        z = left + into
        there = np.exp((z - mean) ** 2 * -0.5) * weight
        moved += there
        if reverse or rate < 1:  # else N(0, 1) itself is not needed
            null += np.exp(z * z * -0.5) * weight
        b += there * (np.expm1((width - into) * mean) if reverse else -np.expm1(into * -mean))
    scale = width / _ROOT_TWO_PI
    if reverse:
        b *= np.exp(-upper)
    null, moved, b = null * scale, moved * scale, b * scale * rate
    size = np.maximum(np.abs(left), np.abs(right)) + mean
    unsure = (2 * size * size + 64 + (np.abs(upper) if reverse else 0.0)) * ULP
    return null, moved, b, null * unsure + 1e-300, moved * unsure + 1e-300, b * unsure + 1e-300


def _by_tails(
    left: Floats, right: Floats, lower: Floats, upper: Floats, mean: float, rate: float, reverse: bool
) -> tuple[Floats, ...]:
    """Wide cells by differences of normal tails."""
    null, null_error = _between(left, right)
    moved, moved_error = _between(left - mean, right - mean)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.expm1(upper if reverse else lower) + rate
        parts = _times(ratio, null), rate * moved
        b = (parts[0] - parts[1] if reverse else parts[1] - parts[0]) * (np.exp(-upper) if reverse else 1.0)
        error = _times(np.abs(ratio), null_error) + rate * moved_error + 8 * ULP * (np.abs(parts[0]) + parts[1])
        error = error * (np.exp(-upper) if reverse else 1.0)
    p, p_error = (null, null_error) if reverse else (null + moved, null_error + moved_error)
    known = np.isfinite(b) & np.isfinite(error)
    b, error = np.where(known, b, p / 2), np.where(known, error, p / 2 + p_error)  # past floating point: anything
    return null, moved, b, null_error, moved_error, error


def _between(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Masses of a normal law between two places each, and what they may be off by."""
    knots = np.concatenate([left, right])
    tail = _tail(np.abs(knots))
    finite = np.where(np.isfinite(knots), knots, 0.0)
    error = tail * (finite * finite + 32) * ULP + 1e-300  # what vanished counts, too
    first, last = tail[: left.size], tail[left.size :]
    mass = np.where(left >= 0, first - last, np.where(right <= 0, last - first, 1 - first - last))
    straddles = (left < 0) & (right > 0)
    unsure = error[: left.size] + error[left.size :] + np.where(straddles, 2 * ULP, 0.0)
    return np.clip(mass, 0.0, None), unsure


def _tail(z: Floats) -> Floats:
    """Pr[N(0, 1) > z] for each z, within a relative (z² + 32)·2⁻⁵² (the C library's erfc and its argument)."""
    return np.fromiter(map(erfc, (z / _SPLIT).tolist()), np.float64, z.size) / 2


def _times(ratio: Floats, mass: Floats) -> Floats:
    """ratio·mass where a mass of 0 stays 0."""
    return np.multiply(ratio, mass, where=mass > 0, out=np.zeros_like(mass))


def _mixed_loss(x: float, mean: float, rate: float) -> float:
    """ln(1 − rate + rate·e^{mean·x − mean²/2})."""
    exponent = mean * x - mean * mean / 2
    if rate == 1:
        return exponent
    return exponent + log(rate + (1 - rate) * exp(-exponent)) if exponent > 30 else log1p(rate * expm1(exponent))


def mixed_losses(x: Floats, mean: float, rate: float) -> Floats:
    """The same for many numbers."""
    exponent = mean * x - mean * mean / 2
    if rate == 1:
        return exponent
    small = np.minimum(exponent, 30.0)
    large = exponent + np.log(rate + (1 - rate) * np.exp(-np.maximum(exponent, 0.0)))
    return np.asarray(np.where(exponent > 30, large, np.log1p(rate * np.expm1(small))))


def _places(losses: Floats, mean: float, rate: float) -> Floats:
    """Where the loss takes these values; −∞ below all that it takes."""
    if rate == 1:
        return (losses + mean * mean / 2) / mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inside = np.where(losses > 30, losses + np.log1p((rate - 1) * np.exp(-losses)), np.log(np.expm1(losses) + rate))
    inside = np.where(np.isnan(inside), -inf, inside)
    return (inside - log(rate)) / mean + mean / 2
