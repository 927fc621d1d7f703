"""Exact checks of interactive mechanisms on finite trees of questions and answers.

The guarantee of an interactive mechanism is for every adaptive way of asking at once. The best of them is found by one
backward pass over the tree (thm-causal):

    L(h) = max( (P(h) − e^{E(h)}·Q(h))₊ if one may stop at h,  max over questions q of Σ_answers L(h, q, answer) )

and the guarantee holds when L at the root is at most δ for every ordered pair of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from expost import bracket
from expost.bracket import Bracket
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.verify.finite import Database, Verdict, Witness, both_orders, judge

History: TypeAlias = tuple[tuple[Any, Any], ...]
"""(question, answer) pairs, in order."""


@dataclass(frozen=True)
class FiniteInteraction:
    """An interactive mechanism on a finite tree.

    Parameters
    ----------
    questions
        ``questions(history)``: what may be asked next. It is over where there is none.
    answers
        ``answers(history, question)``: the possible answers.
    probability
        ``probability(database, history)``: the exact probability of all answers of a history, given its questions.
    part_of
        ``part_of(history)``: the part of a complete transcript.
    neighbours
        The pairs of neighbouring databases. Each counts in both orders.
    may_stop
        ``may_stop(history)``: whether the analyst may stop there. By default anywhere.
    """

    questions: Callable[[History], Collection[Any]]
    answers: Callable[[History, Any], Collection[Any]]
    probability: Callable[[Database, History], Fraction]
    part_of: Callable[[History], Part]
    neighbours: Collection[tuple[Database, Database]]
    may_stop: Callable[[History], bool] = lambda history: True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", tuple(self.neighbours))

    def ordered_pairs(self) -> Iterator[tuple[Database, Database]]:
        """Every pair of neighbours, in both orders."""
        return both_orders(self.neighbours)


def best_strategy(
    interaction: FiniteInteraction, pair: tuple[Database, Database], ratio: Callable[[Part], Fraction]
) -> tuple[Fraction, frozenset[History]]:
    """max over adaptive strategies of Σ (P − ratio·Q)₊ over complete transcripts, exactly.

    Also the event that attains it: the transcripts, of one strategy, whose gap is positive.

    Proof: thm-causal
    """
    x, y = pair

    def best(history: History) -> tuple[Fraction, frozenset[History]]:
        questions = interaction.questions(history)
        found = Fraction(0), frozenset[History]()
        if not questions or interaction.may_stop(history):
            allowed = ratio(interaction.part_of(history)) * interaction.probability(y, history)
            gap = interaction.probability(x, history) - allowed
            if gap > 0:
                found = gap, frozenset([history])
        for question in questions:
            after = [(*history, (question, answer)) for answer in interaction.answers(history, question)]
            _check_causal(interaction, x, history, after)
            below = [best(later) for later in after]
            total = sum((value for value, _ in below), Fraction(0))
            if total > found[0]:
                found = total, frozenset[History]().union(*(event for _, event in below))
        return found

    return best(())


def interaction_delta(interaction: FiniteInteraction, guarantee: Guarantee, digits: int = 40) -> Bracket[Fraction]:
    """The least δ at which every adaptive way of asking keeps the guarantee's E."""

    def ratio(part: Part) -> Bracket[Fraction]:
        return bracket.exp(guarantee.cost_of(part).exact_epsilon, digits)

    lower = upper = Fraction(0)
    for pair in interaction.ordered_pairs():
        lower = max(lower, best_strategy(interaction, pair, lambda part: ratio(part).upper)[0])
        upper = max(upper, best_strategy(interaction, pair, lambda part: ratio(part).lower)[0])
    return Bracket(lower, upper)


def check_interaction(interaction: FiniteInteraction, guarantee: Guarantee) -> Verdict:
    """Whether the guarantee holds for every adaptive way of asking. If not, the worst event is the witness:
    transcripts of one strategy, questions included.

    Proof: prop-decidable
    """
    for pair in interaction.neighbours:
        if any(interaction.probability(database, ()) != 1 for database in pair):
            raise InvalidValue("the empty history has probability 1; bound a truncation with best_strategy yourself")
    delta = guarantee.worst_case.exact_delta
    verdict, digits = judge(lambda digits: interaction_delta(interaction, guarantee, digits), delta)
    return verdict if verdict else replace(verdict, witness=_witness(interaction, guarantee, digits))


def _witness(interaction: FiniteInteraction, guarantee: Guarantee, digits: int) -> Witness:
    def ratio(part: Part) -> Fraction:
        return bracket.exp(guarantee.cost_of(part).exact_epsilon, digits).upper

    found = [(best_strategy(interaction, pair, ratio), pair) for pair in interaction.ordered_pairs()]
    (_, event), (x, y) = max(found, key=lambda row: row[0][0])
    probability = sum((interaction.probability(x, history) for history in event), Fraction(0))
    allowed = guarantee.worst_case.exact_delta
    for history in event:
        allowed += ratio(interaction.part_of(history)) * interaction.probability(y, history)
    return Witness((x, y), event, probability, allowed)


def _check_causal(interaction: FiniteInteraction, database: Database, history: History, after: list[History]) -> None:
    total = sum((interaction.probability(database, later) for later in after), Fraction(0))
    if total != interaction.probability(database, history):
        raise InvalidValue(
            f"answers to a question must share the probability of the history before it; after {history!r} "
            f"on database {database!r} they do not"
        )
