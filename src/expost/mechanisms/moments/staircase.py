"""Staircase noise for one whole number: less noise than Laplace's for the same ε, most of all if ε is large."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp
from typing import NamedTuple

from expost import bracket
from expost.noise import NoiseSource, geometric
from expost.noise.fixed import Bounds, exp_steps, ratio
from expost.noise.race import bernoulli_within

_LARGE = Fraction(100)


class Staircase(NamedTuple):
    """Noise for a whole number that moves by at most ``width``: x weighs e^−(ε·stair(``|x|``)).

    The first stair has ``first`` numbers from 0 on, each further one ``width``.

    Proof: thm-staircase
    """

    epsilon: Fraction
    width: int
    first: int

    @classmethod
    def of(cls, epsilon: Fraction, width: int) -> Staircase:
        """With a first stair for the least mean size."""
        share = 1 / (1 + exp(float(min(epsilon, _LARGE)) / 2))
        return cls(epsilon, width, ceil(width * share))

    def stair(self, size: int) -> int:
        """The stair of a number of this size, counted from 0."""
        return (size + self.width - self.first) // self.width

    def draw(self, source: NoiseSource) -> int:
        """One number."""
        if bernoulli_within(source, self._on_first):
            return source.below(2 * self.first - 1) - (self.first - 1)
        size = self.first + geometric(source, self.epsilon) * self.width + source.below(self.width)
        return size if source.below(2) else -size

    def _on_first(self, bits: int) -> Bounds:
        """Bounds on 2^bits times the probability of the first stair."""
        work, inside = bits + 16, 2 * self.first - 1
        low, high = exp_steps(self.epsilon, 1, work)
        others = 2 * self.width - inside
        one = 1 << work
        whole = inside * one + others * low, inside * one + others * high
        return ratio((inside * (one - high), inside * (one - low)), whole, bits)

    def reach(self, miss: Fraction) -> int:
        """The least size that the noise exceeds with probability at most ``miss``.

        Proof: thm-staircase
        """
        epsilon = min(self.epsilon, _LARGE)
        ratio = bracket.exp(-epsilon).upper
        inside, further = 2 * self.first - 1, 2 * self.width * ratio / (1 - ratio)
        beyond = further / (further + inside)
        if beyond <= miss:  # on the first stair, from which each number takes two, one of either sign
            return max(ceil(self.first - 1 - (miss * (further + inside) - further) / 2), 0)
        stairs = ceil(bracket.log(beyond / miss).upper / epsilon) - 1  # that are exceeded too often
        above = beyond * bracket.exp(-epsilon * stairs).upper
        places = ceil(self.width * (1 - miss / above) / (1 - ratio)) if above > miss else 0
        return self.first - 1 + stairs * self.width + min(places, self.width)
