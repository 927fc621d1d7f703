"""The coin: the smallest mechanism whose outputs leak different amounts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any

from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.noise import Source, bernoulli, discrete_laplace


@dataclass(frozen=True)
class Coin(Mechanism):
    """Flips a coin: on heads a noisy answer, on tails nothing. Nothing costs nothing.

    ``data`` is one integer (a count, say) that changes by at most ``sensitivity`` between neighbours. On
    heads it is published with discrete Laplace noise of scale sensitivity/ε.

    >>> Coin(epsilon=1, sensitivity=1).guarantee
    Guarantee({'answered': 1, 'nothing': 0})

    Proof: lem-coin
    """

    epsilon: Number
    sensitivity: int
    heads: Number = Fraction(1, 2)
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        if isinstance(self.sensitivity, bool) or not isinstance(self.sensitivity, int) or self.sensitivity < 1:
            raise InvalidValue(f"sensitivity must be a whole number of at least 1, got {self.sensitivity!r}")
        if not Cost.within(self.epsilon).epsilon_units:
            raise InvalidValue(f"ε must be at least 1e-12, got {self.epsilon!r}: without ε there is no answer")
        if not 0 <= exact(self.heads, "heads") <= 1:
            raise InvalidValue(f"heads is a probability and lies between 0 and 1, got {self.heads!r}")
        _ = self.guarantee

    @cached_property
    def guarantee(self) -> Guarantee:
        """ε if it answered, 0 if it did not."""
        asked = Cost.within(self.epsilon).exact_epsilon
        return Guarantee({"answered": asked, "nothing": 0}, neighbours=self.neighbours)

    def check(self, data: Any) -> None:
        """The data is one integer."""
        if isinstance(data, bool) or not isinstance(data, Integral):
            raise InvalidValue(f"Coin answers about one integer, got data of type {type(data).__name__}")

    def sample(self, data: int, noise: Source) -> int | Withheld:
        """A noisy answer, or nothing."""
        if not bernoulli(noise, exact(self.heads, "heads")):
            return WITHHELD
        return int(data) + discrete_laplace(noise, Cost.within(self.epsilon).exact_epsilon / self.sensitivity)

    def part_of(self, output: int | Withheld) -> Part:
        """Whether it answered."""
        return "nothing" if output is WITHHELD else "answered"
