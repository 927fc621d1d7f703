"""Sparse vector on paper: exact probabilities of its answers, for rational e^−rate, and of its wrong relatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from expost.guarantee import Part
from expost.mechanisms import AdaptiveSparseVector, SparseVector
from expost.verify import FiniteInteraction, log_up
from expost.verify.interaction import History

REACH = 24  # the threshold's noise is summed over −REACH, …, REACH; what is left out bounds the error
BELOW = "below"
GAPS = 3  # gaps 0, …, GAPS − 1 are told apart, larger ones lumped together


@dataclass(frozen=True)
class Noise:
    """Two-sided or one-sided noise with Pr[k] falling by ``fall`` a step."""

    fall: Fraction
    one_sided: bool

    def mass(self, k: int) -> Fraction:
        if self.one_sided:
            return (1 - self.fall) * self.fall**k if k >= 0 else Fraction(0)
        return (1 - self.fall) / (1 + self.fall) * self.fall ** abs(k)

    def reaches(self, m: int) -> Fraction:
        """Pr[noise ≥ m]."""
        if self.one_sided:
            return self.fall**m if m > 0 else Fraction(1)
        return self.fall**m / (1 + self.fall) if m > 0 else 1 - self.fall ** (1 - m) / (1 + self.fall)


class OnPaper(ABC):
    """What both sparse vectors have in common: a threshold with noise, and the real mechanism with the same noise."""

    alpha: Fraction
    at_most: int
    monotone: bool
    one_sided: bool

    @abstractmethod
    def chance(self, margin: int, answer: Any) -> Fraction:
        """Pr[answer] given that positive means: noise ≥ margin."""

    def settings(self, first: Fraction, second: Fraction) -> dict[str, Any]:
        """Of the mechanism, with ``first`` of ε for the threshold and ``second`` for the answers."""
        return {
            "threshold": 0,
            "at_most": self.at_most,
            "epsilon": first + second,
            "threshold_share": first / (first + second),
            "sensitivity": 1,
            "monotone": self.monotone,
            "noise": "one-sided" if self.one_sided else "two-sided",
            "neighbours": "add-remove" if self.monotone else None,
        }

    def probability(self, side: int, history: History) -> Fraction:
        """Σ over the threshold's noise of the product over answers. A question is its value on either database."""
        return sum(self.products(side, history), Fraction(0))

    @cache  # noqa: B019
    def products(self, side: int, history: History) -> list[Fraction]:
        """The probability of each threshold noise z and of these answers."""
        zs = range(0 if self.one_sided else -REACH, REACH + 1)
        if not history:
            return [Noise(self.alpha, self.one_sided).mass(z) for z in zs]
        question, answer = history[-1]
        before = self.products(side, history[:-1])
        return [p * self.chance(z - question[side], answer) for z, p in zip(zs, before, strict=True)]

    @property
    def slack(self) -> Fraction:
        """More than what cutting off the threshold's noise can add to any hockey-stick sum."""
        return 4 * self.alpha ** (REACH - 2) / (1 - self.alpha)


@dataclass(frozen=True)
class Model(OnPaper):
    """A sparse vector whose threshold noise falls by ``alpha`` and whose values' noise falls by ``a`` a step."""

    alpha: Fraction
    a: Fraction
    at_most: int
    monotone: bool = False
    one_sided: bool = False
    gap: bool = False

    @property
    def mechanism(self) -> SparseVector:
        """The real mechanism with this noise: ε₁ = ln 1/α, a share = ln 1/a."""
        shares = self.at_most * (1 if self.monotone else 2)
        first, second = log_up(1 / self.alpha).exact_epsilon, log_up(1 / self.a).exact_epsilon * shares
        return SparseVector(**self.settings(first, second), gap=self.gap)

    def ratio(self, part: Any) -> Fraction:
        """e^E of a part (t, k), exactly."""
        t, k = part
        return Fraction(self.alpha**-t * self.a**-k)

    def part_of(self, history: History) -> Part:
        positives = sum(answer != BELOW for _, answer in history)
        return self.mechanism_part(positives, len(history))

    @cache  # noqa: B019
    def mechanism_part(self, positives: int, answers: int) -> Part:
        return self.mechanism.part(positives, answers)

    @cache  # noqa: B019
    def chance(self, margin: int, answer: Any) -> Fraction:
        noise = Noise(self.a, self.one_sided)
        if answer == BELOW:
            return 1 - noise.reaches(margin)
        if not self.gap:
            return noise.reaches(margin)
        return noise.mass(margin + answer) if answer < GAPS else noise.reaches(margin + GAPS)

    def interaction(self, questions: Sequence[tuple[int, int]], rounds: int) -> FiniteInteraction:
        answers = [BELOW, *range(GAPS + 1)] if self.gap else [BELOW, True]
        return interaction(self.probability, questions, rounds, answers, self.part_of, self.finished)

    def finished(self, history: History) -> bool:
        return bool(sum(answer != BELOW for _, answer in history) == self.at_most)


def interaction(
    probability: Callable[[int, History], Fraction],
    questions: Sequence[tuple[int, int]],
    rounds: int,
    answers: Sequence[Any],
    part_of: Callable[[History], Part],
    finished: Callable[[History], bool],
) -> FiniteInteraction:
    """The tree of these questions; databases are called 0 and 1."""
    return FiniteInteraction(
        questions=lambda history: [] if len(history) == rounds or finished(history) else questions,
        answers=lambda history, question: answers,
        probability=cache(probability),
        part_of=part_of,
        neighbours=[(0, 1)],
    )


@dataclass(frozen=True)
class AdaptiveModel(OnPaper):
    """The adaptive sparse vector: noise for "far above" falls by ``a`` for one share, for "above" by its square."""

    alpha: Fraction
    a: Fraction
    at_most: int
    margin: int
    monotone: bool = False
    one_sided: bool = False

    @property
    def mechanism(self) -> AdaptiveSparseVector:
        share = log_up(1 / self.a).exact_epsilon * (1 if self.monotone else 2)
        first, second = log_up(1 / self.alpha).exact_epsilon, share * 2 * self.at_most
        return AdaptiveSparseVector(**self.settings(first, second), margin=self.margin)

    def ratio(self, part: Any) -> Fraction:
        t, k = part
        share = self.a ** (-1 if self.monotone else -2)
        return Fraction(self.alpha**-t * share**k)

    def chance(self, margin: int, answer: Any) -> Fraction:
        return self.chances(margin)[answer]

    @cache  # noqa: B019
    def chances(self, margin: int) -> tuple[Fraction, Fraction, Fraction]:
        """Pr[below], Pr[above], Pr[far above] given that above means: noise ≥ margin."""
        miss = 1 - Noise(self.a, self.one_sided).reaches(margin + self.margin)
        above = Noise(self.a**2, self.one_sided).reaches(margin)
        return miss * (1 - above), miss * above, 1 - miss

    def interaction(self, questions: Sequence[tuple[int, int]], rounds: int) -> FiniteInteraction:
        mechanism = self.mechanism

        def part_of(history: History) -> Part:
            return mechanism.part_of([answer for _, answer in history])

        def finished(history: History) -> bool:
            return bool(2 * self.at_most - sum((0, 2, 1)[answer] for _, answer in history) < 2)

        return interaction(self.probability, questions, rounds, [0, 1, 2], part_of, finished)
