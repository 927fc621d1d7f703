"""Gaussian noise that is reduced step by step: a Brownian path, of which only roundings are ever looked at."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, floor, isqrt

from expost.errors import InvalidValue
from expost.noise.inversion import Uniform
from expost.noise.scalar import discrete_gaussian, keeps
from expost.noise.source import NoiseSource


class NormalNumber:
    """A normal real number of mean 0 whose bits are drawn as they are needed.

    Proof: thm-strips
    """

    def __init__(self, source: NoiseSource, variance: Fraction) -> None:
        if variance <= 0:
            raise InvalidValue(f"a normal law needs a variance above 0, got {variance}")
        self._width = isqrt(int(variance)) or 1
        scaled = variance / self._width**2
        while True:
            self._strip, self._place = discrete_gaussian(source, scaled), Uniform(source)
            if self._strip >= 0 and keeps(Uniform(source), self._strip, self._place, scaled):
                break
        self._negative = source.below(2) == 1

    def more(self) -> None:
        """Learn more of its bits."""
        self._place.more()

    @property
    def span(self) -> tuple[Fraction, Fraction]:
        """The ends of the interval that it is known to lie in."""
        low, high = (self._width * (self._strip + end) for end in self._place.span)
        return (-high, -low) if self._negative else (low, high)


def nearest(parts: Sequence[NormalNumber]) -> list[int]:
    """The whole numbers that are nearest to the sums of the first part, of the first two, and so on."""
    while True:
        lows, highs = (accumulate(ends, initial=Fraction(1, 2)) for ends in zip(*(p.span for p in parts), strict=True))
        ends = list(zip(lows, highs, strict=True))[1:]
        if all(floor(low) == ceil(high) - 1 for low, high in ends):
            return [floor(low) for low, _ in ends]
        for part in parts:
            part.more()


def normal_paths(source: NoiseSource, variances: Sequence[Fraction], size: int) -> list[list[int]]:
    """Rounded noise for each of falling variances, ``size`` numbers each.

    The numbers of one variance are independent and rounded normal. Before rounding, those of a larger variance are
    those of the next smaller one with independent noise added.

    Proof: lem-path
    """
    if any(large <= small for large, small in pairwise(variances)):
        raise InvalidValue(f"the variances of a path fall, got {list(map(str, variances))}")
    steps = [variances[-1], *(large - small for small, large in pairwise(reversed(variances)))]
    paths = [_path(source, steps) for _ in range(size)]
    return [[path[level] for path in paths] for level in range(len(variances))]


def _path(source: NoiseSource, steps: Sequence[Fraction]) -> list[int]:
    """One path, the largest variance first."""
    return nearest([NormalNumber(source, step) for step in steps])[::-1]
