"""The law of private quantiles, sampled exactly from order statistics.

A candidate that is off by k ranks weighs e^−(rate·k). The same weights come about in two steps: draw how many ranks to
give way, c with weight e^−(rate·c), and take every candidate between the records c ranks below the quantile and c ranks
above it. The number of these candidates is a difference of two order statistics. So nothing is listed but windows, and
windows are put in blocks that count as their largest, with a coin that makes up for the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain
from math import ceil, floor, prod
from typing import TypeAlias

import numpy as np

from expost.mechanisms.quantiles.ordered import Ordered
from expost.noise import NoiseSource, bernoulli, bernoulli_exp, geometric
from expost.noise.fixed import Bounds, exp_steps, ratio
from expost.noise.race import bernoulli_within, first_heads, weighted

Candidate: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """The quantile among n records as a place in their order, and how many ranks one unit of the score is."""

    place: Fraction
    unit: Fraction
    depth: int = 0
    """By how much all candidates but the quantile are worse than their deviation."""

    def settled(self, data: Ordered) -> Target:
        """With the depth of the quantile: how far it is from not being it any more.

        Proof: lem-quantile-depth
        """
        if not data.size:
            return self
        (middle,) = data.points([max(ceil(self.place), 1)])
        up = floor((data.below(middle) - self.place) / self.unit) + 1
        down = ceil((self.place - data.up_to(middle)) / self.unit)
        return replace(self, depth=max(-max(up, down), 0))

    def lowest(self, slack: int) -> int:
        """The rank of the lowest record that is at most ``slack`` too low."""
        return ceil(self.place - self.unit * max(slack - self.depth, 0))

    def highest(self, slack: int) -> int:
        """The rank of the highest record that is at most ``slack`` too high."""
        return ceil(self.place + self.unit * max(slack - self.depth, 0))

    def deviation(self, data: Ordered, candidate: int) -> int:
        """By how much a candidate is too high, or, below 0, too low.

        Proof: lem-quantile-score
        """
        if not data.size:
            return 0
        high, low = data.below(candidate) - self.place, self.place - data.up_to(candidate)
        if high >= 0:
            return floor(high / self.unit) + 1
        return min(-ceil(low / self.unit), 0)


@dataclass(frozen=True)
class Blocks:
    """Slacks in blocks: ``count`` blocks of ``width``, and one with all that is larger."""

    rate: Fraction
    width: int
    count: int

    @classmethod
    def covering(cls, rate: Fraction, bits: int, most: int) -> Blocks:
        """Blocks beyond which windows have no weight to speak of, or all contain everything: from ``most`` on."""
        width = max(1, floor(1 / rate))
        needed = ceil((Fraction(7, 10) * bits + 4) / (rate * width))
        return cls(rate, width, min(needed, -(-most // width)))

    def mass(self, block: int, bits: int) -> Bounds:
        """Bounds on 2^bits times the weight of a block's first slack times its width: what its slacks weigh at most.

        A slack c weighs (1 − e^−rate)·e^−(rate·c), so that all from c on weigh e^−(rate·c).
        """
        low, high = exp_steps(self.rate * self.width, block, bits)
        if block == self.count:
            return low, high
        next_low, next_high = exp_steps(self.rate, 1, bits)
        one = 1 << bits
        return self.width * low * (one - next_high) >> bits, -(-self.width * high * (one - next_low) >> bits)

    def keeps(self, source: NoiseSource, block: int, bits: int) -> bool:
        """A coin that makes up for rounding the block's mass up to this number of bits."""
        rounded = self.mass(block, bits)[1]

        def share(wanted: int) -> Bounds:
            work = bits + wanted + 16
            return ratio(self.mass(block, work), (rounded << (work - bits),) * 2, wanted)

        return bernoulli_within(source, share)

    def slack(self, source: NoiseSource, block: int, most: int) -> int | None:
        """A slack of the block, uniform, with a coin for its weight; None if the coin says no."""
        start = block * self.width
        if block == self.count:
            return start if start >= most else start + geometric(source, self.rate)
        ahead = source.below(self.width)
        return start + ahead if bernoulli_exp(source, self.rate * ahead) else None


@lru_cache(maxsize=256)
def _masses(blocks: Blocks, bits: int) -> tuple[int, ...]:
    return tuple(blocks.mass(block, bits)[1] for block in range(blocks.count + 1))


class Windows:
    """Candidates between order statistics around each target, proposed with weight e^−(rate·score). Private.

    The score is the largest deviation of any target if ``paired`` is false, else the largest deviation upwards plus the
    largest downwards.

    Proof: thm-windows
    """

    def __init__(self, data: Ordered, targets: tuple[Target, ...], rate: Fraction, *, paired: bool) -> None:
        self._data, self._targets, self._rate, self._paired = data, targets, rate, paired
        full = data.lattice.size ** len(targets)
        far = (ceil(max(t.place, data.size - t.place) / t.unit) + t.depth + 1 for t in targets)
        self._most = max(far) if data.size else 0
        self._blocks = Blocks.covering(rate, full.bit_length(), self._most)
        self._bits = full.bit_length() + 64
        last = data.lattice.size - 1
        ends = [(block + 1) * self._blocks.width - 1 for block in range(self._blocks.count)]
        self._lows = [[*data.points([t.lowest(end) for end in ends]), 0] for t in targets]
        self._highs = [[*data.points([max(t.highest(end), 1) for end in ends]), last] for t in targets]

    def sample(self, source: NoiseSource) -> Candidate:
        """The choice of permute-and-flip among all candidates."""
        cells, sums = self._cells()
        scale = self._bits * (2 if self._paired else 1)
        total = Fraction(sums[-1], 1 << scale)
        return first_heads(source, total, lambda: self._propose(source, cells, sums), self._exponent)

    def _cells(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Pairs of blocks, and the running sums of what they weigh at most."""
        masses, blocks = _masses(self._blocks, self._bits), range(self._blocks.count + 1)
        if not self._paired:
            return [(i, i) for i in blocks], list(accumulate(self._count(i, i) * masses[i] for i in blocks))
        upper = [np.array(highs, dtype=object) + 1 for highs in self._highs]
        columns = np.array(masses, dtype=object)
        rows = (
            prod((ends - lows[i] for ends, lows in zip(upper, self._lows, strict=True)), start=columns * masses[i])
            for i in blocks
        )
        return [(i, j) for i in blocks for j in blocks], list(accumulate(chain.from_iterable(rows)))

    def _count(self, low: int, high: int) -> int:
        """The number of candidates in the largest window of two blocks."""
        return prod(highs[high] - lows[low] + 1 for lows, highs in zip(self._lows, self._highs, strict=True))

    def _propose(self, source: NoiseSource, cells: list[tuple[int, int]], sums: list[int]) -> Candidate | None:
        """A candidate with probability e^−(rate·score) over the sum of the cells; else None."""
        low, high = cells[weighted(source, sums)]
        blocks = (low, high) if self._paired else (low,)
        if not all(self._blocks.keeps(source, block, self._bits) for block in blocks):
            return None
        drawn = [self._blocks.slack(source, block, self._most) for block in blocks]
        slacks = [slack for slack in drawn if slack is not None]
        if len(slacks) < len(blocks):
            return None
        window = self._window(slacks[0], slacks[-1])
        sizes = [last - first + 1 for first, last in window]
        if not bernoulli(source, Fraction(prod(sizes), self._count(low, high))):
            return None
        return tuple(first + source.below(size) for (first, _), size in zip(window, sizes, strict=True))

    def _window(self, down: int, up: int) -> list[tuple[int, int]]:
        """The first and the last candidate for each target."""
        last = self._data.lattice.size - 1
        if not self._data.size or min(down, up) >= self._most:
            return [(0, last)] * len(self._targets)
        lows = [self._data.points([t.lowest(down)])[0] for t in self._targets]
        highs = [self._data.points([max(t.highest(up), 1)])[0] for t in self._targets]
        return list(zip(lows, highs, strict=True))

    def _exponent(self, candidate: Candidate) -> Fraction:
        return self._rate * self.score(candidate)

    def score(self, candidate: Candidate) -> int:
        """How far off a candidate is."""
        off = [t.deviation(self._data, y) for t, y in zip(self._targets, candidate, strict=True)]
        if self._paired:
            return max(0, *off) - min(0, *off)
        worst = max(map(abs, off))
        return worst + self._targets[0].depth if worst else 0
