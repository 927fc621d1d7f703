"""Privacy-loss laws on a grid: masses of losses, and everything that they may be off by.

A mechanism with a dominating pair (P, Q) loses ln P/Q at each output. A :class:`LossLaw` keeps what that loss does
under P on the multiples of a step: every loss is split between the two grid points around it so that P and Q keep
their masses, which gives a dominating pair again. What floating point may have got wrong is kept beside the masses and
always counted against us, and so is how far the law may be above the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, log1p, pi, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

ULP = 2.0**-52


@dataclass(frozen=True)
class Blur:
    """How far a law may be above the truth; adds up over independent losses.

    Σ mass·w(L + y) + infinity − slack ≤ e^growth·(E[w(L + Y + Z + drift)] + excess), where Z is the loss of normal
    noise with (sensitivity/σ)² = ``smear``, for every w of thm-optimal-stopping. Splitting on a grid of step h smears
    π·h²/8.

    Proof: lem-blur
    """

    smear: float = 0.0
    drift: float = 0.0
    growth: float = 0.0
    excess: float = 0.0

    def __add__(self, other: Blur) -> Blur:
        return Blur(
            self.smear + other.smear,
            self.drift + other.drift,
            self.growth + other.growth,
            self.excess + other.excess,
        )

    def __mul__(self, count: int) -> Blur:
        return Blur(count * self.smear, count * self.drift, count * self.growth, count * self.excess)

    def or_(self, other: Blur) -> Blur:
        """What covers both parts of one law."""
        return Blur(
            max(self.smear, other.smear),
            max(self.drift, other.drift),
            max(self.growth, other.growth),
            self.excess + other.excess,
        )


EXACT = Blur()


def split_blur(step: float) -> Blur:
    """What splitting between grid points does, whatever the law.

    Proof: lem-blur
    """
    return Blur(smear=pi * step * step / 8 * (1 + 1e-12))


@dataclass(frozen=True, eq=False)
class LossLaw:
    """P-masses of the losses (low + i)·step.

    A law guarantees E[w(L + Y)] ≤ Σ mass·w(L + y + shift) + infinity + slack for every w between 0 and 1 that the
    recursion of thm-optimal-stopping meets; its ``blur`` bounds it from the other side. A *tilted* law keeps
    mass·e^{tilt·y − level} instead, and its slack bounds the sum of what these may be off by: small numbers of large
    losses keep their digits.

    Proof: thm-grid-laws, lem-tilt
    """

    step: float
    low: int
    mass: Floats
    infinity: float = 0.0
    shift: float = 0.0
    slack: float = 0.0
    tilt: float = 0.0
    level: float = 0.0
    blur: Blur = EXACT

    @property
    def high(self) -> int:
        """The largest loss, in steps."""
        return self.low + self.mass.size - 1

    @property
    def values(self) -> Floats:
        """The losses."""
        return points(self.low, self.high, self.step)

    @property
    def deviation(self) -> float:
        """About the standard deviation of the kept masses."""
        whole = float(self.mass.sum())
        if whole <= 0:
            return 0.0
        places = np.arange(self.mass.size, dtype=np.float64)
        mean = float((self.mass * places).sum()) / whole
        return self.step * sqrt(max(float((self.mass * (places - mean) ** 2).sum()) / whole, 0.0))


def points(low: int, high: int, step: float) -> Floats:
    """The grid points from low to high."""
    return np.arange(low, high + 1, dtype=np.float64) * step


def log_peak(tilt: float) -> float:
    """The logarithm of the largest e^{−tilt·t}·(1 − e^{−t}) over t > 0.

    Proof: lem-tilt
    """
    return tilt * log(tilt) - (1 + tilt) * log1p(tilt) if tilt else 0.0


def lighter(law: LossLaw) -> LossLaw:
    """The law without its zeros at either end."""
    used = np.flatnonzero(law.mass)
    if not used.size:
        return replace(law, mass=np.zeros(1))
    return replace(law, low=law.low + int(used[0]), mass=law.mass[used[0] : used[-1] + 1])


def trimmed(law: LossLaw, miss: float) -> LossLaw:
    """The law without its ends, each of kept mass at most ``miss``, which its slack covers.

    Proof: thm-grid-laws
    """
    rising, falling = np.cumsum(law.mass), np.cumsum(law.mass[::-1])
    start = int(np.searchsorted(rising, miss, side="right"))
    stop = law.mass.size - int(np.searchsorted(falling, miss, side="right"))
    if start >= stop:
        return law
    return replace(law, low=law.low + start, mass=law.mass[start:stop], slack=law.slack + 2 * miss * (1 + 1e-9))


def tilted(law: LossLaw, tilt: float) -> LossLaw:
    """The masses times e^{tilt·loss}, scaled to add up to no more than 1.

    Proof: lem-tilt
    """
    if tilt == 0 or not law.mass.any():
        return law
    law = lighter(law)
    with np.errstate(divide="ignore"):
        logs = np.log(law.mass)
    turned = logs + tilt * law.values
    top = float(turned.max())
    level = top + log(float(np.exp(turned - top).sum())) + 1e-9
    sizes = np.where(law.mass > 0, np.abs(logs) + np.abs(tilt * law.values), 0.0)
    drift = 4 * ULP * (float(sizes.max()) + abs(level) + 2)
    mass = np.exp(turned - level) * (1 + drift)
    blur = law.blur + Blur(growth=2 * drift)
    return replace(law, mass=mass, slack=law.mass.size * 1e-300, tilt=tilt, level=level, blur=blur)


def upright(law: LossLaw) -> LossLaw:
    """A tilted law's own masses, each at most 1; its slack is still that of the tilted ones.

    Proof: lem-tilt
    """
    if not law.tilt:
        return law
    turned = law.level - law.tilt * law.values
    if float(np.abs(turned).max()) < 600:
        return replace(law, mass=np.minimum(law.mass * np.exp(turned), 1.0))
    with np.errstate(divide="ignore"):
        logs = np.log(law.mass)
    return replace(law, mass=np.exp(np.minimum(logs + turned, 0.0)))
