"""Exact sampling for arrays: tables of what can be decided in advance, and exact inversion for the rest."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from expost.noise.inversion import WORD, Uniform, invert
from expost.noise.laws import Law
from expost.noise.source import NoiseSource

LARGEST = 2**62
"""Arrays hold no noise beyond ±LARGEST. Whoever adds it to data clamps the sum well within (lem-saturation)."""

_PREFIX = 16
_TAIL = 22  # cells past the 2^−_TAIL tails are left to exact inversion
_UNDECIDED = np.iinfo(np.int64).min


def saturated(number: int) -> int:
    """``number`` clamped to what arrays of noise hold."""
    return max(-LARGEST, min(LARGEST, number))


class Table:
    """The decisions about one law that can be made in advance.

    The guide answers most draws from 16 bits; the cells, each the interval of 64-bit draws that certainly
    give one value, answer nearly all others; the rest is inverted exactly. A table is a cache of certified
    answers and no more: whatever is or is not in it, the distribution is the law's.

    Proof: thm-inversion
    """

    def __init__(self, law: Law) -> None:
        self.law = law
        values, first, last = _certain_cells(law)
        self._values, self._first, self._last = values, first, last
        self._guide = self._build_guide()

    def draw(self, source: NoiseSource, size: int) -> NDArray[np.int64]:
        """``size`` independent numbers of the law."""
        prefix = source.words(size, _PREFIX)
        numbers: NDArray[np.int64] = self._guide[prefix]
        undecided = np.flatnonzero(numbers == _UNDECIDED)
        if undecided.size:
            numbers[undecided] = self._finish(source, prefix[undecided])
        return numbers

    def _finish(self, source: NoiseSource, prefix: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
        words = prefix.astype(np.uint64) << np.uint64(WORD - _PREFIX)
        words |= source.words(prefix.size) >> np.uint64(_PREFIX)
        numbers = self._look_up(words)
        for i in np.flatnonzero(numbers == _UNDECIDED):
            numbers[i] = saturated(invert(self.law, Uniform(source, int(words[i]), WORD)))
        return numbers

    def _look_up(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        cell = np.searchsorted(self._first, words, side="right") - 1
        certain = (cell >= 0) & (words <= self._last[cell])
        return np.where(certain, self._values[cell], _UNDECIDED)

    def _build_guide(self) -> NDArray[np.int64]:
        start = np.arange(1 << _PREFIX, dtype=np.uint64) << np.uint64(WORD - _PREFIX)
        at_start = self._look_up(start)
        at_end = self._look_up(start | np.uint64((1 << (WORD - _PREFIX)) - 1))
        return np.where(at_start == at_end, at_start, _UNDECIDED)


def _certain_cells(law: Law) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    """The values of a law between its tails, and for each the first and the last 64-bit draw that is certain.

    A draw u represents all reals in [u, u + 1)/2^64, so it is certain of k if 2^64·F(k) ≤ u and
    u + 1 ≤ 2^64·F(k + 1), by the bounds on F.
    """
    tail = 1 << (WORD - _TAIL)
    bottom = _bottom(law, tail)
    values: list[int] = []
    firsts: list[int] = []
    lasts: list[int] = []
    k, (_, first) = bottom, law.below(bottom, WORD)
    while first < (1 << WORD) - tail or not values:
        low, high = law.below(k + 1, WORD)
        if first < low:
            values.append(k)
            firsts.append(first)
            lasts.append(low - 1)
        if low == 1 << WORD:
            break
        k, first = k + 1, high
    return np.array(values, np.int64), np.array(firsts, np.uint64), np.array(lasts, np.uint64)


def _bottom(law: Law, tail: int) -> int:
    """The largest k ≤ 0, nearly, below which the law has at most the weight ``tail``/2^64."""
    heavy, light = 1, 0
    while law.below(light, WORD)[0] > tail:
        heavy, light = light, 2 * light - 1
    while heavy - light > 1:
        middle = (heavy + light) // 2
        heavy, light = (middle, light) if law.below(middle, WORD)[0] > tail else (heavy, middle)
    return light


@lru_cache(maxsize=64)  # half a megabyte each
def table(law: Law) -> Table:
    """The table of a law, built once."""
    return Table(law)


def draw(source: NoiseSource, law: Law, size: int) -> NDArray[np.int64]:
    """``size`` independent numbers of the law; past ±2^62 there is only ±2^62.

    Proof: thm-inversion
    """
    if size < 32:  # not worth a table
        return np.array([saturated(invert(law, Uniform(source))) for _ in range(size)], np.int64)
    return table(law).draw(source, size)
