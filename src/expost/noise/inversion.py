"""A uniform real number whose bits are drawn as they are needed, and exact inversion with it.

Let U be uniform in [0, 1) and F(k) = Pr[X < k]. The number X with F(X) ≤ U < F(X + 1) has the law's
distribution exactly. The first bits of U and certified bounds on F decide almost every comparison; where
they do not, more bits are drawn and tighter bounds computed, until they do. Nothing is ever decided on a
rounded probability.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from expost.noise.source import NoiseSource

if TYPE_CHECKING:
    from expost.noise.laws import Law

WORD = 64
"""How many bits are drawn at a time."""


class Uniform:
    """A uniform real in [0, 1) whose first ``bits`` bits are known: they read ``draw``."""

    def __init__(self, source: NoiseSource, draw: int = 0, bits: int = 0) -> None:
        self._source = source
        self.draw = draw
        self.bits = bits

    def more(self) -> None:
        """Learn one word more."""
        self.draw = self.draw << WORD | self._source.below(1 << WORD)
        self.bits += WORD

    @property
    def span(self) -> tuple[Fraction, Fraction]:
        """The ends of the interval that it is known to lie in; the upper one is not reached."""
        return Fraction(self.draw, 1 << self.bits), Fraction(self.draw + 1, 1 << self.bits)

    def reaches(self, law: Law, k: int) -> bool:
        """Whether U ≥ Pr[X < k], which is the event X ≥ k.

        Proof: thm-inversion
        """
        while True:
            low, high = law.below(k, self.bits)
            if high <= self.draw:
                return True
            if self.draw < low:
                return False
            self.more()


def invert(law: Law, uniform: Uniform) -> int:
    """The number X with Pr[X' < X] ≤ U < Pr[X' < X + 1]: doubling steps away from 0, then bisection.

    Proof: thm-inversion
    """
    low, high, step = 0, 0, 1
    if uniform.reaches(law, 0):
        while uniform.reaches(law, high := low + step):
            low, step = high, 2 * step
    else:
        while not uniform.reaches(law, low := high - step):
            high, step = low, 2 * step
    while high - low > 1:  # X ≥ low and X < high
        middle = (low + high) // 2
        low, high = (middle, high) if uniform.reaches(law, middle) else (low, middle)
    return low
