"""The appendix' conjecture: k coins of which k′ said nothing cost no more than k − k′ answers, even under advanced
composition. Checked exactly, with the optimal composition of randomised responses as the rule.

Found (docs/theory.md, prop-coin-conjecture and ex-adaptive-filter): true for coins of one ε; false as soon as the ε of
the next coin may be chosen after seeing the last answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from expost.accounting import CONT, HALT, Decision
from expost.cost import Cost
from expost.verify import FiniteMechanism, Move, worst_delta_at

SMALL, LARGE = Cost(1), Cost(2)  # names of two prices; the likelihood ratios behind them are rational


@cache
def optimal_delta(ratios: tuple[Fraction, ...], ratio: Fraction) -> Fraction:
    """The least δ at e^ε = ratio of answering by randomised responses of these ratios, all fixed in advance."""
    likelihoods = {Fraction(1): Fraction(1)}  # P/Q → Q
    for r in ratios:
        after: dict[Fraction, Fraction] = {}
        for likelihood, mass in likelihoods.items():
            for factor, q in ((r, 1 / (1 + r)), (1 / r, r / (1 + r))):
                after[likelihood * factor] = after.get(likelihood * factor, Fraction(0)) + mass * q
        likelihoods = after
    return sum(((x - ratio) * mass for x, mass in likelihoods.items() if x > ratio), Fraction(0))


@dataclass(frozen=True)
class OptimalFilter:
    """CONT while the optimal composition of what was answered, and of what may be, stays within (ratio, δ)."""

    ratio: Fraction
    delta: Fraction
    prices: tuple[tuple[Cost, Fraction], ...]

    def start(self) -> tuple[Fraction, ...]:
        """Nothing was answered yet."""
        return ()

    def charge(self, state: tuple[Fraction, ...], cost: Cost) -> tuple[Fraction, ...]:
        """One more answer of this price; nothing is charged nothing."""
        return tuple(sorted((*state, dict(self.prices)[cost]))) if cost else state

    def decide(self, state: tuple[Fraction, ...], worst: Cost) -> Decision:
        """Whether an answer of this price still fits."""
        return CONT if optimal_delta(self.charge(state, worst), self.ratio) <= self.delta else HALT


def coin(ratio: Fraction, price: Cost, heads: Fraction = Fraction(1, 2)) -> Move:
    """On heads a randomised response, on tails nothing; nothing is charged nothing."""
    truth = ratio / (1 + ratio)
    laws = {
        x: {0: heads * (truth if x == 0 else 1 - truth), 1: heads * (truth if x == 1 else 1 - truth), "no": 1 - heads}
        for x in (0, 1)
    }
    mechanism = FiniteMechanism(laws, [(0, 1)], lambda output: "nothing" if output == "no" else "answered")
    return Move(mechanism, price, lambda part: price if part == "answered" else Cost(0))


def of_one_epsilon(answers: int = 3, more: int = 4) -> tuple[Fraction, Fraction]:
    """δ of so many answers, and the most that coins reach that are flipped ``more`` times beyond them: e^ε = 2 each."""
    ratio = Fraction(3, 2)
    delta = optimal_delta((Fraction(2),) * answers, ratio)
    rule = OptimalFilter(ratio, delta, ((SMALL, Fraction(2)),))
    return delta, worst_delta_at([coin(Fraction(2), SMALL)], rule, answers + more, ratio)


def of_chosen_epsilon(rounds: int = 3) -> tuple[Fraction, Fraction]:
    """δ that the rule guarantees, and what is reached, when the next answer's ε may follow from the last answer."""
    ratio, delta = Fraction(3, 2), Fraction(3, 8)
    rule = OptimalFilter(ratio, delta, ((SMALL, Fraction(2)), (LARGE, Fraction(3))))
    answers = [coin(Fraction(2), SMALL, heads=Fraction(1)), coin(Fraction(3), LARGE, heads=Fraction(1))]
    return delta, worst_delta_at(answers, rule, rounds, ratio)
