"""A composition that grows step by step and is read after each.

Spectra are multiplied. Sums of many losses are smooth, so that only the lowest frequencies matter; the others are
dropped, with a bound on what they could have been, and δ is read off those that are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, exp, floor, inf, log, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.accounting.composition import Step, as_loss
from expost.accounting.convolution import Tails
from expost.accounting.law import ULP, Floats, LossLaw, lighter, log_peak
from expost.accounting.losses import Loss
from expost.cost import Number, exact

_LADDER = tuple(sign * 2.0 ** (i / 2) for sign in (-1, 1) for i in range(-12, 24))
_UNSURE = 1e-11  # absolute: what reading a sum off up to 2²⁰ frequencies may be off by, and more


@dataclass(frozen=True, eq=False)
class _Term:
    """A step's law from above on a circle: its spectrum, its tails, and what else must be counted."""

    law: LossLaw
    tails: Tails
    spectrum: NDArray[np.complexfloating[Any, Any]]
    norm: float


class IncrementalComposition:
    """What the steps so far cost, from above; adding a step and reading are quick however many there were.

    Parameters
    ----------
    grid
        The step of the grid of losses. Half of it is a quarter of the error.
    miss
        What windows may cut off in every step; it counts as lost.

    A reading holds for steps whose number and losses were fixed beforehand. It is **not a filter**: it is not valid if
    an output, or a reading that depends on one, decided when to stop or which loss came next. For stopping use
    :func:`plan` or ``Iterative``, which pay for it. Below δ ≈ 10⁻¹¹ a reading is Chernoff's bound: finite, not tight.

    >>> from expost.accounting.losses import GaussianNoise
    >>> running = IncrementalComposition(2.0**-10)
    >>> for _ in range(3):
    ...     running.add(GaussianNoise(5))
    >>> 1.326 < running.epsilon(1e-5) < 1.327
    True

    Proof: thm-optimal-stopping
    """

    def __init__(self, grid: float, *, miss: float = 1e-18) -> None:
        self._step = grid
        self._size = 1024
        self._terms: dict[tuple[Loss, bool, int], _Term] = {}
        self._sides = {False: _Side(self._step, miss)}

    def add(self, loss: Step) -> None:
        """One step more."""
        each = as_loss(loss)
        if not each.symmetric and True not in self._sides:
            self._sides[True] = replace(self._sides[False])
        for reverse, side in self._sides.items():
            term = self._term(each, reverse)
            while side.width(term) > self._size or term.law.mass.size > self._size:
                self._grow()
                term = self._term(each, reverse)
            side.add(term, self._size)

    def epsilon(self, delta: Number) -> float:
        """An ε that is certainly enough at this δ."""
        at = float(exact(delta, "δ"))
        return max(side.epsilon(at, self._size) for side in self._sides.values())

    def _term(self, loss: Loss, reverse: bool) -> _Term:
        key = (loss, reverse and not loss.symmetric, self._size)
        if key not in self._terms:
            law = lighter(loss.law(self._step, reverse))
            circle = np.zeros(max(self._size, 1 << law.mass.size.bit_length()))
            circle[np.arange(law.low, law.high + 1) % circle.size] = law.mass
            norm = sqrt(float((law.mass**2).sum()))
            self._terms[key] = _Term(law, Tails.of(law, _LADDER), np.fft.rfft(circle), norm)
        return self._terms[key]

    def _grow(self) -> None:
        self._size *= 2
        for side in self._sides.values():
            side.grow(self._size)


@dataclass(eq=False)
class _Side:
    """One direction: the spectrum of the sum, its tails, its mass at infinity, and the L2 error so far.

    Proof: lem-fft
    """

    step: float
    miss: float
    spectrum: NDArray[np.complexfloating[Any, Any]] | None = None
    tails: Tails | None = None
    infinity: float = 0.0
    shift: float = 0.0
    error: float = 0.0
    hint: int = 0
    dropped: float = 0.0

    def _after(self, term: _Term) -> Tails:
        return term.tails if self.tails is None else self.tails + term.tails

    def width(self, term: _Term) -> int:
        """How many points the sum needs after this step."""
        low, high = self._after(term).window(self.miss)
        return ceil((high - low) / self.step) + 4

    def add(self, term: _Term, size: int) -> None:
        """One step more."""
        self.tails = self._after(term)
        if self.spectrum is None:
            self.spectrum = term.spectrum.copy()
        else:
            self.spectrum = self.spectrum * term.spectrum[: self.spectrum.size]
        self._drop()
        self.error = self.error * (1 + 1e-9) + 64 * ULP * log2(size) * term.norm
        self.infinity = (self.infinity + term.law.infinity + term.law.slack) * (1 + 4 * ULP) + 2 * self.miss
        self.shift += term.law.shift

    def masses(self, size: int) -> tuple[int, Floats]:
        """The lowest loss in steps, and the masses from there on."""
        assert self.spectrum is not None
        assert self.tails is not None
        low = floor(self.tails.window(self.miss)[0] / self.step) - 1
        circle = np.fft.irfft(self.spectrum, size)  # dropped frequencies are zeros
        cut = low % size
        return low, np.concatenate([circle[cut:], circle[:cut]])

    def grow(self, size: int) -> None:
        """The same on a circle of twice the length."""
        if self.spectrum is None:
            return
        low, masses = self.masses(size // 2)
        circle = np.zeros(size)
        circle[np.arange(low, low + masses.size) % size] = masses
        self.spectrum = np.fft.rfft(circle)
        self.error += 64 * ULP * log2(size) + self.dropped
        self.dropped = 0.0

    def _drop(self) -> None:
        """Forget high frequencies that are negligible now; later ones are at most as large."""
        assert self.spectrum is not None
        last = self.spectrum.size // 2
        if last >= 64 and abs(self.spectrum[last]) < 1e-18:
            rest = float(np.abs(self.spectrum[last:]).sum())
            if rest < 1e-15:
                self.spectrum = self.spectrum[:last].copy()
                self.dropped += 2 * rest

    def epsilon(self, delta: float, size: int) -> float:
        """An ε at which δ is certainly at most this."""
        if self.spectrum is None or self.tails is None:
            return 0.0
        unsure = sqrt(size) * self.error + (self.dropped + 1e-15) * 2 + _UNSURE
        wanted = delta * (1 - 1e-12) - self.infinity - unsure
        if wanted <= 0:
            return self._by_moments(delta * (1 - 1e-12) - self.infinity)
        low, top = self.tails.window(self.miss)
        first, last = floor(low / self.step) - 1, floor(low / self.step) - 2 + size
        index, inside = self._cell(wanted, max(first, -1), min(last, ceil(top / self.step) + 1), last, size)
        return max(0.0, index * self.step + inside + self.shift + 1e-12)

    def _by_moments(self, delta: float) -> float:
        """Chernoff's bound, for a δ that is smaller than rounding errors; infinite below what is lost in any case.

        Proof: lem-tilt
        """
        if delta <= 0 or self.tails is None:
            return inf
        moments = zip(self.tails.at, self.tails.moments, strict=True)
        found = min((moment + log_peak(tilt) - log(delta)) / tilt for tilt, moment in moments if tilt > 0)
        return max(0.0, found * (1 + 1e-12) + self.shift)

    def _cell(self, wanted: float, least: int, most: int, last: int, size: int) -> tuple[int, float]:
        """The cell in which δ is what is wanted, and where in it: Newton's steps, from where it was before."""
        index = min(max(self.hint, least), most)
        left, right = least, most + 1
        for _ in range(64):
            here, there = self._sums(index, last, size)
            inside = log((here - wanted) / there) if here - wanted > 0 and there > 0 else None
            if here - there <= wanted:
                right = min(right, index)
            else:
                left = max(left, index)
                if inside is not None and inside <= self.step:
                    self.hint = index
                    return index, inside
            if right - left <= 1:
                self.hint = right
                return right, 0.0
            guess = (left + right) // 2 if inside is None else index + floor(inside / self.step)
            index = min(max(guess, left + 1), right - 1)
        return right, 0.0

    def _sums(self, index: int, last: int, size: int) -> tuple[float, float]:
        """Σ mass and Σ mass·e^{ε − y} over the losses above the grid point, read off the spectrum."""
        assert self.spectrum is not None
        count = max(last - index, 1)
        steps = np.arange(self.spectrum.size)
        turns = _roots(size)
        here, there = turns[(steps * index) % size] * self.spectrum, turns[steps]
        decay = exp(-self.step)
        ends = turns[(steps * count) % size]
        with np.errstate(invalid="ignore", divide="ignore"):
            flat = there * (1 - ends) / (1 - there)
        flat[0] = count
        falling = decay * there * (1 - decay**count * ends) / (1 - decay * there)
        weights = np.full(steps.size, 2.0)
        weights[0] = 1.0
        if steps.size == size // 2 + 1:
            weights[-1] = 1.0
        return float((weights * (here * flat).real).sum()) / size, float((weights * (here * falling).real).sum()) / size


@lru_cache(maxsize=8)
def _roots(size: int) -> NDArray[np.complexfloating[Any, Any]]:
    """e^{2πi·j/size}."""
    return np.asarray(np.exp(2j * np.pi * np.arange(size) / size))
