"""A composition that grows step by step and is read after each: spectra are multiplied, and inverted to read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, inf, log, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.accounting.composition import Step, as_loss
from expost.accounting.convolution import Tails, lighter
from expost.accounting.losses import Floats, Law, Loss
from expost.cost import Number, exact

_ULP = 2.0**-52


@dataclass(frozen=True, eq=False)
class _Term:
    """A step's law from above on a circle: its spectrum, its tails, and what else must be counted."""

    law: Law
    tails: Tails
    spectrum: NDArray[np.complexfloating[Any, Any]]
    norm: float


class Running:
    """What the steps so far cost, from above; adding a step and reading are quick however many there were.

    >>> from expost.accounting.losses import GaussianNoise
    >>> running = Running(2.0**-10)
    >>> for _ in range(3):
    ...     running.add(GaussianNoise(5))
    >>> 1.326 < running.epsilon(1e-5) < 1.327
    True

    Proof: thm-optimal-stopping
    """

    def __init__(self, step: float, *, miss: float = 1e-18) -> None:
        self._step, self._miss = step, miss
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
            law = lighter(loss.upper(self._step, reverse))
            circle = np.zeros(max(self._size, 1 << law.mass.size.bit_length()))
            circle[np.arange(law.low, law.high + 1) % circle.size] = law.mass
            norm = sqrt(float((law.mass**2).sum()))
            self._terms[key] = _Term(law, Tails.of(law), np.fft.rfft(circle), norm)
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

    def _after(self, term: _Term) -> Tails:
        return term.tails if self.tails is None else self.tails + term.tails

    def width(self, term: _Term) -> int:
        """How many points the sum needs after this step."""
        low, high = self._after(term).window(self.miss)
        return ceil((high - low) / self.step) + 4

    def add(self, term: _Term, size: int) -> None:
        """One step more."""
        self.tails = self._after(term)
        self.spectrum = term.spectrum.copy() if self.spectrum is None else self.spectrum * term.spectrum
        self.error = self.error * (1 + 1e-9) + 64 * _ULP * log2(size) * term.norm
        self.infinity = (self.infinity + term.law.infinity) * (1 + 4 * _ULP) + 2 * self.miss
        self.shift += term.law.shift

    def masses(self, size: int) -> tuple[int, Floats]:
        """The lowest loss in steps, and the masses from there on."""
        assert self.spectrum is not None
        assert self.tails is not None
        low = floor(self.tails.window(self.miss)[0] / self.step) - 1
        circle = np.fft.irfft(self.spectrum, size)
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
        self.error += 64 * _ULP * log2(size)

    def epsilon(self, delta: float, size: int) -> float:
        """An ε at which δ is certainly at most this."""
        if self.spectrum is None:
            return 0.0
        low, masses = self.masses(size)
        unsure = sqrt(size) * (self.error + 32 * _ULP * log2(size))
        wanted = delta * (1 - 1e-12) - self.infinity - unsure
        if wanted <= 0:
            return inf
        index, here, there = self._cell(np.maximum(masses, 0.0), low, wanted)
        inside = log(max(1.0, (here - wanted) / there)) if there > 0 else 0.0
        return max(0.0, index * self.step + inside + self.shift + 1e-12)

    def _cell(self, masses: Floats, low: int, wanted: float) -> tuple[int, float, float]:
        """The last grid point whose δ is above what is wanted, searched for from where it was before."""
        decays = np.exp(-self.step * np.arange(1, masses.size + 1))

        def sums(index: int) -> tuple[float, float]:
            above = masses[max(index + 1 - low, 0) :]
            skipped = max(low - index - 1, 0)
            here, there = float(above.sum()), float((above * decays[: above.size]).sum())
            return here, there * float(np.exp(-self.step * skipped))

        def enough(index: int) -> bool:
            here, there = sums(index)
            return here - there + 1e-13 * here <= wanted

        left, right, gap = self.hint, self.hint + 1, 1
        while right < low + masses.size and not enough(right):
            left, right, gap = right, right + gap, 2 * gap
        gap = 1
        while left > -1 and enough(left):
            left, right, gap = left - gap, left, 2 * gap
        left = max(left, -1)
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (left, middle) if enough(middle) else (middle, right)
        self.hint = max(left, 0)
        return left, *sums(left)
