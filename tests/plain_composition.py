"""A second composition of sampled Gaussian noise, plain and slow, that shares nothing with the library's.

Losses are split between grid points from above, and merged to grid points from below: to merge outputs is
post-processing, so the pair that is left is dominated. Masses are whole numbers of 2⁻¹⁰⁴ in limbs of eight bits, and
are multiplied by transforms that are rounded to whole numbers. These are off by less than 0.2 for up to 2²¹ points, so
that nothing is lost; nothing is tilted, and no smear is undone. What quadrature and places may be off by is added with
a wide margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, expm1, floor, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LIMBS, BITS = 13, 8
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
MASS_ERROR, PLACE_ERROR = 1e-11, 1e-13  # relative, and of a loss: what one step may be off by, and far more
PIECES = 4  # of a step, that are merged
FAR = 13.0  # deviations: what is further away has less than 10⁻³⁷ of the mass
BUDGET = 1e-8  # of δ: what windows may cut off in all


@dataclass(frozen=True)
class Sampled:
    """Gaussian noise on a Poisson sample, against no record, or in reverse."""

    noise_multiplier: float
    sampling_rate: float
    reverse: bool = False

    def loss(self, z: Floats) -> Floats:
        """ln P/Q where the noise, in units of σ, is z."""
        mean, rate = 1 / self.noise_multiplier, self.sampling_rate
        power = mean * z - mean * mean / 2
        far = power + np.log(rate + (1 - rate) * np.exp(-np.maximum(power, 0.0)))
        found = np.where(power > 30, far, np.log1p(rate * np.expm1(np.minimum(power, 30.0))))
        return -found if self.reverse else found

    def places(self, losses: Floats) -> Floats:
        """Where the loss is this."""
        mean, rate = 1 / self.noise_multiplier, self.sampling_rate
        y = -losses if self.reverse else losses
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.log(np.expm1(np.minimum(y, 30.0)) + rate)
        far = y + np.log1p((rate - 1) * np.exp(-np.maximum(y, 0.0)))
        inside = np.where(y > 30, far, np.where(np.isnan(near), -np.inf, near))
        return np.asarray((inside - log(rate)) / mean + mean / 2)

    def ends(self, cut: float) -> tuple[float, float]:
        """Losses between which the loss is, but for mass ``cut`` on either side."""
        far = sqrt(2 * log(1 / cut))
        first, last = self.loss(np.array([-far, 1 / self.noise_multiplier + far]))
        return min(first, last), max(first, last)

    def integrals(self, edges: Floats, over: Any) -> Floats:
        """∫ over(loss, left edge) dP between neighbouring edges, by Gauss' rule on short pieces."""
        places = np.clip(self.places(edges), -FAR, 1 / self.noise_multiplier + FAR)
        ordered, lefts = (places[::-1], edges[-2::-1]) if self.reverse else (places, edges[:-1])
        fine = np.union1d(ordered, np.arange(ordered[0], ordered[-1], 0.5))
        cell = np.clip(np.searchsorted(ordered, fine[:-1], side="right") - 1, 0, lefts.size - 1)
        middle, half = (fine[1:] + fine[:-1]) / 2, (fine[1:] - fine[:-1]) / 2
        found = np.zeros(middle.size)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            z = middle + half * node
            y = self.loss(z)
            density = np.exp(-z * z / 2 + (0.0 if self.reverse else y)) / sqrt(2 * np.pi)
            found += weight * half * density * over(y, lefts[cell])
        summed = np.bincount(cell, found, lefts.size)
        return np.asarray(summed[::-1] if self.reverse else summed, np.float64)


@dataclass(frozen=True)
class Whole:
    """Masses of losses (low + i)·step in whole numbers of 2⁻¹⁰⁴, the lowest limb first; and of infinite losses."""

    step: float
    low: int
    limbs: Floats
    infinity: float = 0.0

    @classmethod
    def of(cls, step: float, low: int, mass: Floats, infinity: float = 0.0) -> Whole:
        """Of masses, rounded down."""
        limbs, rest = np.zeros((LIMBS, mass.size)), mass.copy()
        for k in range(LIMBS - 1, -1, -1):
            limbs[k] = np.floor(rest * 2.0**BITS)
            rest = rest * 2.0**BITS - limbs[k]
        return cls(step, low, limbs, infinity)

    @property
    def mass(self) -> Floats:
        """In floating point."""
        return np.asarray((self.limbs * 2.0 ** (BITS * np.arange(-LIMBS, 0))[:, None]).sum(axis=0))

    def times(self, other: Whole) -> Whole:
        """The law of the sum, each mass rounded down to a whole number of 2⁻¹⁰⁴."""
        size = self.limbs.shape[1] + other.limbs.shape[1] - 1
        whole = 1 << (size - 1).bit_length()
        length = min(n for n in (whole, whole * 3 // 4, whole * 5 // 8) if n >= size)
        first = np.fft.rfft(self.limbs, length)
        second = first if other is self else np.fft.rfft(other.limbs, length)
        carry, found = np.zeros(size, np.int64), np.zeros((LIMBS, size))
        for k in range(2 * LIMBS - 1):
            pairs = range(max(0, k - LIMBS + 1), min(k, LIMBS - 1) + 1)
            numbers = np.fft.irfft(sum(first[i] * second[k - i] for i in pairs), length)[:size]
            rounded = np.rint(numbers)
            assert np.abs(numbers - rounded).max() < 0.25  # these are whole numbers below 2⁴¹
            carry += rounded.astype(np.int64)
            if k >= LIMBS:
                found[k - LIMBS] = carry % 2**BITS
            carry >>= BITS
        found[LIMBS - 1] = carry
        infinity = self.infinity + other.infinity - self.infinity * other.infinity
        return Whole(self.step, self.low + other.low, found, infinity)

    def trimmed(self, miss: float, upper: bool) -> Whole:
        """Without ends of mass ``miss``: dropped, or moved up to the first loss that is kept, and to infinity."""
        mass = self.mass
        start = int(np.searchsorted(np.cumsum(mass), miss))
        stop = mass.size - int(np.searchsorted(np.cumsum(mass[::-1]), miss))
        kept = self.limbs[:, start:stop].copy()
        if upper:
            kept[:, :1] += Whole.of(self.step, 0, mass[:start].sum(keepdims=True) * (1 + 1e-9)).limbs
            kept[0] += 1  # for what was rounded down
        more = (float(mass[stop:].sum()) * (1 + 1e-9) + 1e-30) if upper else 0.0
        return Whole(self.step, self.low + start, kept, self.infinity + more)


def power(law: Whole, count: int, miss: float, upper: bool) -> Whole:
    """The law of the sum of ``count`` losses."""
    result, done, left = None, 1, count
    while True:
        if left & 1:
            result = law if result is None else result.times(law).trimmed(miss / 64, upper)
        left >>= 1
        if not left:
            assert result is not None
            return result
        done *= 2
        law = law.times(law).trimmed(miss * done / count / 64, upper)


def _one(losses: Floats, left: Floats) -> Floats:
    return np.ones(losses.size)


def split(loss: Sampled, step: float, cut: float) -> Whole:
    """From above: every loss split between the grid points around it, P and Q keeping their masses."""
    first, last = loss.ends(cut)
    low, high = floor(first / step), ceil(last / step)
    edges = np.arange(low, high + 1, dtype=np.float64) * step
    p = loss.integrals(edges, _one)
    right = loss.integrals(edges, lambda y, left: -np.expm1(left - y)) / -expm1(-step)
    mass = np.append(np.maximum(p - right, 0.0), 0.0)
    mass[1:] += right
    mass[0] += max(0.0, 1 - float(mass.sum())) + cut
    return Whole.of(step, low, mass + 2.0**-103, cut)


def merged(loss: Sampled, step: float, cut: float) -> Whole:
    """From below: outputs are merged, the last of them in part, until together they lose just a grid point."""
    first, last = loss.ends(cut)
    low, high = floor(first / step) - 1, ceil(last / step) + 1
    edges = np.arange(low * PIECES, high * PIECES + 1, dtype=np.float64) * (step / PIECES)
    p, q = loss.integrals(edges, _one), loss.integrals(edges, lambda y, left: np.exp(-y))
    kept = (p > 1e-40) & (q > 0)
    mass, place, ratio = np.zeros(high - low + 1), low, exp(low * step)
    here, there = 0.0, 0.0  # P- and Q-mass merged so far
    for more, less in zip(p[kept].tolist(), q[kept].tolist(), strict=True):
        while here + more > ratio * (there + less):
            share = (ratio * there - here) / (more - ratio * less)
            if share > 0:
                mass[place - low] = here + share * more
                more, less = more * (1 - share), less * (1 - share)
                here = there = 0.0
            place += 1
            ratio = exp(place * step)
        here, there = here + more, there + less
    mass[max(place - low - 1, 0)] += here
    return Whole.of(step, low, mass * (1 - MASS_ERROR))


def epsilon_of(law: Whole, delta: float) -> float:
    """Where Σ mass·(1 − e^{ε − y}) + infinity is δ."""
    mass, losses = law.mass, (law.low + np.arange(law.limbs.shape[1])) * law.step
    low, high = 0.0, max(float(losses[-1]), 0.0)
    for _ in range(100):
        middle = (low + high) / 2
        found = float((mass * np.maximum(-np.expm1(middle - losses), 0.0)).sum()) + law.infinity
        low, high = (middle, high) if found > delta else (low, middle)
    return low


def bracket(setting: dict[str, Any], step: float) -> tuple[float, float]:
    """Bounds on ε at δ, the larger of the two directions."""
    noise, rate, steps, delta = (setting[name] for name in ("noise_multiplier", "sampling_rate", "steps", "delta"))
    miss, cut = BUDGET * delta, min(1e-3 * BUDGET * delta / steps, 1e-15)
    unsure = steps * MASS_ERROR + 1e-9

    def above(reverse: bool, step: float) -> float:
        law = power(split(Sampled(noise, rate, reverse), step, cut), steps, miss, True)
        return float(epsilon_of(law, delta * exp(-unsure)) * (1 + 1e-12) + steps * PLACE_ERROR)

    upper = above(False, step)
    if above(True, 4 * step) > upper:  # the other direction costs less: a coarse grid will do to see it
        upper = max(upper, above(True, step))
    below = power(merged(Sampled(noise, rate), step, cut), steps, miss, False)
    lower = epsilon_of(below, delta * exp(unsure)) * (1 - 1e-12) - steps * PLACE_ERROR
    return max(0.0, lower), upper


def narrow_bracket(setting: dict[str, Any], width: float) -> tuple[float, float]:
    """Bounds that are at most ``width`` times ε apart, or the best that a grid of 2²⁰ points gives."""
    first, last = Sampled(setting["noise_multiplier"], setting["sampling_rate"]).ends(1e-20)
    step, finest = (last - first) / 2000, (last - first) / 2**20
    while True:
        lower, upper = bracket(setting, step)
        off = (upper - lower) / upper
        if off <= width or step <= finest:
            return lower, upper
        step = max(step * min(max(sqrt(0.7 * width / off), 1 / 8), 0.8), finest)
