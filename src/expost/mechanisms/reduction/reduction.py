"""Noise reduction: more and more accurate answers to one question, charged like the last one alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from expost.accounting.renyi import Prices, tangent_prices
from expost.cost import Number
from expost.guarantee import Guarantee
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.numbers import Shape, shape_of
from expost.mechanisms.reduction.levels import Leveled
from expost.mechanisms.reduction.rules import StoppingRule
from expost.noise import NoiseSource, vector
from expost.noise.chain import laplace_chains


@dataclass(frozen=True, kw_only=True)
class NoiseReduction(Leveled, Laplace):
    """Noise reduction ("accuracy first"): less and less noise, until the answer is good enough.

    The noises of all levels are drawn together, such that an earlier answer is a later one with more noise. So all
    answers together reveal no more than the last one, and only its ε is charged.

    Parameters
    ----------
    epsilon
        The ε of the last level: what is reserved.
    sensitivity, grid, missing, neighbours
        As for :class:`Laplace`.
    levels
        How many answers there are at most, up to 200.
    ratio
        How much more ε each level has than the one before: by default a quarter more.
    until
        When to stop, for ``ledger.run``: :class:`RelativeError`, :class:`AbsoluteError`, :class:`Decided`, or another
        :class:`StoppingRule`. It reads what was released, never the data.

    With ``ledger.run`` the value is a :class:`Reduced`: the first answer that meets the rule, or the last. With
    ``ledger.open`` each ``refine()`` gives the next answer, and whoever reads them decides when to stop. The data is a
    number, or an array of at most 10,000. The part is the level of the last answer.

    >>> from expost import RelativeError
    >>> rule = RelativeError(within="0.1")
    >>> reduction = NoiseReduction(epsilon=1, sensitivity=1, until=rule, neighbours="add-remove")
    >>> reduction.guarantee.epsilon_of(1), reduction.guarantee.epsilon_of(24)
    (0.005902958103, 1.0)

    Proof: thm-noise-reduction
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_levels(self.epsilons, "ε")

    @classmethod
    def for_accuracy(cls, within: Number, confidence: Number, **parameters: Any) -> Self:
        """The one whose last level has the least ε that makes its ``error_bound`` at most ``within``."""
        own = {name: parameters.pop(name) for name in ("levels", "ratio", "until") if name in parameters}
        plain = Laplace.for_accuracy(within, confidence, **parameters)
        rest = {name: value for name, value in parameters.items() if name not in cls._about}
        return cls(epsilon=plain.epsilon, **rest, **own)

    @cached_property
    def epsilons(self) -> tuple[Fraction, ...]:
        """The ε of each level."""
        return self._amounts(self.epsilon)

    @cached_property
    def guarantee(self) -> Guarantee:
        """For each level its own ε."""
        return Guarantee(dict(enumerate(self.epsilons, 1)), neighbours=self.neighbours)

    def renyi_prices(self, order: Number) -> Prices:
        """What the guarantee implies. The law of one level says nothing more, as the noise decides where it stops."""
        return tangent_prices(self.guarantee, order)

    def check_start(self, data: Any) -> None:
        """Numbers that the noise of every level can be made for."""
        super().check_start(data)
        vector.check_rate(self._parameters(shape_of(data))[0])

    def _parameters(self, shape: Shape) -> list[Fraction]:
        _, last = self._calibrate(shape)
        return [last * epsilon / self.epsilons[-1] for epsilon in self.epsilons]

    def _noises(self, noise: NoiseSource, shape: Shape) -> list[list[int]]:
        return laplace_chains(noise, self._parameters(shape), shape.size)

    def _miss(self, rule: StoppingRule, shape: Shape) -> Fraction:
        return rule.miss_per_level(tuple(self._parameters(shape)), self._rounding(shape), shape.size)
