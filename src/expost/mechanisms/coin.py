"""The coin: the smallest mechanism whose outputs leak different amounts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any

from expost.checks import as_probability, as_whole, check_fields, requested_epsilon
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.guarantee import Guarantee, Neighbours, Part
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.noise import NoiseSource, bernoulli, discrete_laplace
from expost.noise.sums import LaplaceSteps, Term


@dataclass(frozen=True, kw_only=True)
class Coin(Mechanism[int, int | Withheld]):
    """Flips a coin: on heads it publishes a noisy integer, on tails nothing. Nothing costs nothing.

    Parameters
    ----------
    epsilon
        What an answer costs.
    sensitivity
        A bound on how far the integer moves between neighbouring databases.
    heads
        The probability of an answer, from 0 to 1.
    neighbours
        The relation that ``sensitivity`` is for: ``"add-remove"``, ``"substitute"``, or None for whichever the ledger
        has.

    The data is one integer, such as a count. An answer has discrete Laplace noise of scale sensitivity/ε.

    >>> Coin(epsilon=1, sensitivity=1).guarantee
    Guarantee({'answered': 1, 'nothing': 0})

    Proof: lem-coin
    """

    epsilon: Number
    sensitivity: int
    heads: Number = Fraction(1, 2)
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_fields(self, sensitivity=as_whole)
        requested_epsilon(self.epsilon)
        as_probability(self.heads, "heads")
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

    def sample(self, data: int, noise: NoiseSource) -> int | Withheld:
        """A noisy answer, or nothing."""
        if not bernoulli(noise, exact(self.heads, "heads")):
            return WITHHELD
        return int(data) + discrete_laplace(noise, self._rate)

    @property
    def _rate(self) -> Fraction:
        return Cost.within(self.epsilon).exact_epsilon / self.sensitivity

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The integer with its error: whether it is published does not depend on its noise."""
        return Estimate.of(output, Drawn((origin, 0), law=self._law))

    def _law(self) -> Term:
        return Term(Fraction(1), LaplaceSteps(self._rate))

    def part_of(self, output: int | Withheld) -> Part:
        """Whether it answered."""
        return "nothing" if output is WITHHELD else "answered"
