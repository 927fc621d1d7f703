"""Sums of independent losses: convolution with its rounding error, powers by doubling, windows by Chernoff's bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, floor, inf, log, log2, sqrt

import numpy as np

from expost.accounting.losses import Floats, Law

_ULP = 2.0**-52
_DIRECT = 2**19  # products: up to here direct convolution is as fast, and its error is relative
_TILTS = tuple(2.0**i for i in range(-5, 8))


@dataclass(frozen=True)
class Tails:
    """ln E[e^{±tY}] for some t: what Chernoff's bound needs. Adds up over independent losses."""

    right: tuple[float, ...]
    left: tuple[float, ...]

    @classmethod
    def of(cls, law: Law) -> Tails:
        """Of the finite losses."""
        keep = law.mass > 0
        if not keep.any():
            return cls((0.0,) * len(_TILTS), (0.0,) * len(_TILTS))
        mass, values = law.mass[keep], law.values[keep]
        if float(np.abs(values).max()) * _TILTS[-1] < 600:
            return cls(_moments(mass, np.exp(_TILTS[0] * values)), _moments(mass, np.exp(-_TILTS[0] * values)))
        logs = np.log(mass)

        def moment(tilt: float) -> float:
            terms = logs + tilt * values
            top = float(terms.max())
            return top + log(float(np.exp(terms - top).sum())) + 1e-9

        return cls(tuple(moment(t) for t in _TILTS), tuple(moment(-t) for t in _TILTS))

    def __add__(self, other: Tails) -> Tails:
        return Tails(_plus(self.right, other.right), _plus(self.left, other.left))

    def __mul__(self, count: int) -> Tails:
        return Tails(tuple(count * x for x in self.right), tuple(count * x for x in self.left))

    def window(self, miss: float) -> tuple[float, float]:
        """An interval that the sum leaves on either side with mass at most ``miss``."""
        high = min((moment - log(miss)) / tilt for moment, tilt in zip(self.right, _TILTS, strict=True))
        low = max((log(miss) - moment) / tilt for moment, tilt in zip(self.left, _TILTS, strict=True))
        return low, high

    def tilted(self, tilt: float) -> Tails:
        """Of the tilted law: ln E[e^{(t + tilt)Y}] less that of the tilt, and chords are above what is convex."""
        inner = (self.right[0] + self.left[0]) / 2
        places = [*(-t for t in reversed(_TILTS)), 0.0, *_TILTS]
        heights = [*reversed(self.left), inner, *self.right]
        steps, level = np.array(_TILTS), self.right[_TILTS.index(tilt)] - 1e-9
        right = np.interp(tilt + steps, places, heights, right=inf) - level
        left = np.interp(tilt - steps, places, heights, left=inf) - level
        return Tails(tuple(right.tolist()), tuple(left.tolist()))

    def moments(self) -> list[tuple[float, float]]:
        """Each t with ln E[e^{tY}]."""
        return list(zip(_TILTS, self.right, strict=True))

    def tilt_at(self, loss: float) -> float:
        """Which tilt says most about passing this loss; 0 if none says anything that floating point can hold."""
        bounds = {0.0: 0.0}
        bounds |= {tilt: moment - tilt * loss for tilt, moment in self.moments() if moment < 600}
        return min(bounds, key=bounds.__getitem__)


def tilted(law: Law, tails: Tails, tilt: float, upper: bool) -> Law:
    """The masses times e^{tilt·loss}, scaled to add up to no more than 1; the tilt is 0 or one of those of the tails.

    Proof: lem-tilt
    """
    if tilt == 0:
        return law
    level, turned = tails.right[_TILTS.index(tilt)], tilt * law.values
    with np.errstate(divide="ignore"):
        logs = 0.0 if np.abs(turned).max() + abs(level) < 600 else np.log(law.mass)
    drift = 4 * _ULP * (np.abs(turned) + abs(level) + np.where(law.mass > 0, np.abs(logs), 0.0) + 2)
    turned = np.exp(turned + logs - level) * (1 + drift if upper else 1 - drift)
    mass = turned if isinstance(logs, np.ndarray) else law.mass * turned
    return replace(law, mass=mass, slack=law.mass.size * 1e-300, tilt=tilt, level=level)


def upright(law: Law) -> Law:
    """A tilted law's own masses, each at most 1; its slack is still that of the tilted ones.

    Proof: lem-tilt
    """
    if not law.tilt:
        return law
    with np.errstate(divide="ignore"):
        logs = np.log(law.mass)
    return replace(law, mass=np.exp(np.minimum(logs + (law.level - law.tilt * law.values), 0.0)))


def fft_error(size: int, first: float, second: float) -> float:
    """A bound on the L2 error of a convolution by FFT of this size, from the factors' norms.

    ``first`` and ``second`` bound ‖F‖∞·‖g‖₂ and ‖G‖∞·‖f‖₂.

    Proof: lem-fft
    """
    return 32 * _ULP * log2(size + 2) * (first + second)


def convolve(a: Law, b: Law, tails: Tails, miss: float, upper: bool) -> Law:
    """The law of the sum of two independent losses, cut to a window that it leaves with mass 2·``miss`` at most."""
    mass, error = _product(a.mass, b.mass, upper)
    low, high = tails.window(miss)
    start = max(floor(low / a.step) - a.low - b.low, 0)
    stop = mass.size if high == inf else min(ceil(high / a.step) - a.low - b.low + 1, mass.size)
    start = min(start, mass.size - 1)
    cut = mass[start : max(stop, start + 1)]
    sign = 1 if upper else -1
    infinity = a.infinity + b.infinity - a.infinity * b.infinity * (1 - sign * 4 * _ULP)
    return Law(
        a.step,
        a.low + b.low + start,
        cut,
        infinity=infinity * (1 + sign * 4 * _ULP),
        shift=a.shift + b.shift,
        lost=a.lost + b.lost,
        slack=_slack(a, b) + error + (2 * miss if upper else 0.0),
        tilt=a.tilt,
        level=a.level + b.level,
    )


def _slack(a: Law, b: Law) -> float:
    """What the factors' slacks come to in the product."""
    if not a.slack and not b.slack:
        return 0.0
    whole_a, whole_b = max(1.0, float(a.mass.sum())), max(1.0, float(b.mass.sum()))
    return (a.slack * whole_b + b.slack * whole_a + a.slack * b.slack) * (1 + 1e-9)


def power(law: Law, tails: Tails, count: int, miss: float, upper: bool) -> Law:
    """The law of the sum of ``count`` independent losses of one law."""
    result: Law | None = None
    done, doubled = 0, 1
    while True:
        if count & doubled:
            done += doubled
            share = miss * done / count
            result = law if result is None else convolve(result, law, tails * done, share, upper)
        if done == count:
            assert result is not None
            return result
        doubled *= 2
        law = convolve(law, law, tails * doubled, miss * doubled / count / 4, upper)


def product(laws: Sequence[tuple[Law, Tails]], miss: float, upper: bool) -> Law:
    """The law of the sum of independent losses, added up like a tournament, small ones first."""
    round_ = list(laws)
    share = miss / (2 * len(round_))
    while len(round_) > 1:
        round_.sort(key=lambda row: row[0].mass.size)
        pairs = [
            (convolve(a, b, tails + more, share, upper), tails + more)
            for (a, tails), (b, more) in zip(round_[::2], round_[1::2], strict=False)
        ]
        round_ = pairs + round_[2 * len(pairs) :]
    return round_[0][0]


def point(step: float) -> Law:
    """The law of no loss at all."""
    return Law(step, 0, np.ones(1))


def total(tails: Sequence[Tails]) -> Tails:
    """The tails of the sum."""
    return reduce(lambda a, b: a + b, tails)


def fast_length(size: int) -> int:
    """A length that is quick to transform, and at least ``size``: 2^a·{1, 3/2, 5/4}."""
    power_ = 1 << max(size - 1, 1).bit_length()
    return min(n for n in (power_, power_ * 3 // 4, power_ * 5 // 8) if n >= size)


def _product(a: Floats, b: Floats, upper: bool) -> tuple[Floats, float]:
    """The convolution, and a bound on the L1 error that is not relative."""
    if a.size * b.size <= _DIRECT or min(a.size, b.size) <= 16:
        drift = 4 * _ULP * min(a.size, b.size)
        return np.convolve(a, b) * (1 + drift if upper else 1 - drift), 0.0
    size = a.size + b.size - 1
    length = fast_length(size)
    transformed = np.fft.rfft(a, length)
    other = transformed if a is b else np.fft.rfft(b, length)
    mass = np.fft.irfft(transformed * other, length)[:size]
    error = fft_error(length, float(a.sum()) * _norm(b), float(b.sum()) * _norm(a))
    return np.clip(mass, 0.0, None), sqrt(size) * error


def _moments(mass: Floats, growth: Floats) -> tuple[float, ...]:
    """ln Σ mass·growth^(1, 2, 4, …): squaring keeps the error below what is added."""
    found = [log(float(mass @ growth)) + 1e-9]
    for _ in _TILTS[1:]:
        growth *= growth
        found.append(log(float(mass @ growth)) + 1e-9)
    return tuple(found)


def _norm(a: Floats) -> float:
    return sqrt(float((a * a).sum())) * (1 + 1e-9)


def _plus(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def lighter(law: Law) -> Law:
    """The law without its zeros at either end."""
    used = np.flatnonzero(law.mass)
    if not used.size:
        return replace(law, mass=np.zeros(1))
    return replace(law, low=law.low + int(used[0]), mass=law.mass[used[0] : used[-1] + 1])
