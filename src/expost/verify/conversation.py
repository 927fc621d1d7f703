"""Exact checks of interactive mechanisms on finite trees of questions and answers.

An interactive claim is about every adaptive way of asking at once. The best of them is found by one
backward pass over the tree (thm-causal):

    L(h) = max( (P(h) − e^{E(h)}·Q(h))₊ if one may stop at h,  max over questions q of Σ_answers L(h, q, answer) )

and the claim holds when L at the root is at most δ for every ordered pair of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from expost import bracket
from expost.bracket import Bracket
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.verify.finite import Database, Verdict

History: TypeAlias = tuple[tuple[Any, Any], ...]
"""(question, answer) pairs, in order."""


@dataclass(frozen=True)
class Conversation:
    """An interactive mechanism on a finite tree.

    ``questions(history)`` may be asked next; none means that it is over. ``answers(history, question)``
    are possible. ``probability(database, history)`` is that of all the answers of a history given its
    questions, exactly. ``may_stop(history)``: whether the analyst may leave there (by default: anywhere).
    """

    questions: Callable[[History], Collection[Any]]
    answers: Callable[[History, Any], Collection[Any]]
    probability: Callable[[Database, History], Fraction]
    part_of: Callable[[History], Part]
    neighbours: Collection[tuple[Database, Database]]
    may_stop: Callable[[History], bool] = lambda history: True

    def ordered_pairs(self) -> Iterator[tuple[Database, Database]]:
        """Every pair of neighbours, in both orders."""
        for x, y in self.neighbours:
            yield x, y
            yield y, x


def best_strategy(
    conversation: Conversation, pair: tuple[Database, Database], ratio: Callable[[Part], Fraction]
) -> Fraction:
    """max over adaptive strategies of Σ (P − ratio·Q)₊ over complete transcripts, exactly.

    Proof: thm-causal
    """
    x, y = pair

    def value(history: History) -> Fraction:
        questions = conversation.questions(history)
        best = Fraction(0)
        if not questions or conversation.may_stop(history):
            allowed = ratio(conversation.part_of(history))
            best = conversation.probability(x, history) - allowed * conversation.probability(y, history)
        for question in questions:
            after = [(*history, (question, answer)) for answer in conversation.answers(history, question)]
            _check_causal(conversation, x, history, after)
            best = max(best, sum((value(later) for later in after), Fraction(0)))
        return max(best, Fraction(0))

    return value(())


def least_delta(conversation: Conversation, guarantee: Guarantee, digits: int = 40) -> Bracket[Fraction]:
    """The least δ at which every adaptive way of asking keeps the guarantee's E."""

    def ratio(part: Part) -> Bracket[Fraction]:
        return bracket.exp(guarantee.cost_of(part).exact_epsilon, digits)

    lower = upper = Fraction(0)
    for pair in conversation.ordered_pairs():
        lower = max(lower, best_strategy(conversation, pair, lambda part: ratio(part).upper))
        upper = max(upper, best_strategy(conversation, pair, lambda part: ratio(part).lower))
    return Bracket(lower, upper)


def check(conversation: Conversation, guarantee: Guarantee) -> Verdict:
    """Whether the guarantee holds for every adaptive way of asking.

    Proof: prop-decidable
    """
    delta, digits = guarantee.worst_case.exact_delta, 40
    while True:
        least = least_delta(conversation, guarantee, digits)
        if least.upper <= delta or least.lower > delta:
            return Verdict(least.upper <= delta, least)
        digits *= 2


def _check_causal(conversation: Conversation, database: Database, history: History, after: list[History]) -> None:
    total = sum((conversation.probability(database, later) for later in after), Fraction(0))
    if total != conversation.probability(database, history):
        raise InvalidValue(
            f"answers to a question must share the probability of the history before it; after {history!r} "
            f"on database {database!r} they do not"
        )
