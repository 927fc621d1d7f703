"""The composition game, played exactly: what the best adaptive adversary gets out of a filter.

In each round the adversary picks a mechanism, an ordered pair of neighbouring databases and a guarantee that
the filter admits, sees the output, and goes on. Its advantage at ε is Σ_views (P − e^ε·Q)₊; the best
one is found by backward induction over everything it could do (thm-game). The likelihood ratio P/Q, the
filter's state and the rounds that remain are all that matters of a history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Generic, TypeVar

from expost import bracket
from expost.accounting import CONT, Filter, OdpFilter
from expost.bracket import Bracket
from expost.cost import Cost
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.verify.finite import FiniteMechanism, Verdict, judge

GameState = TypeVar("GameState")


@dataclass(frozen=True, eq=False)
class Move:
    """Something that an adversary may play. :meth:`of` makes it from a mechanism and its guarantee.

    Parameters
    ----------
    mechanism
        The mechanism, with the exact law of its outputs.
    worst
        The worst case that it declares.
    charge
        What each part is charged.
    """

    mechanism: FiniteMechanism
    worst: Cost
    charge: Callable[[Part], Cost]

    @classmethod
    def of(cls, mechanism: FiniteMechanism, guarantee: Guarantee) -> Move:
        """Play a mechanism under its guarantee."""
        return cls(mechanism, guarantee.worst_case, guarantee.cost_of)

    def outcomes(self) -> list[list[tuple[Fraction, Fraction, Cost]]]:
        """For each ordered pair of databases: (P, Q, charge) of each output."""
        self.mechanism.require_complete()
        laws, part_of = self.mechanism.laws, self.mechanism.part_of
        return [
            [
                (laws[x].get(output, Fraction(0)), laws[y].get(output, Fraction(0)), self.charge(part_of(output)))
                for output in self.mechanism.outputs(x, y)
            ]
            for x, y in self.mechanism.ordered_pairs()
        ]


class _Game(Generic[GameState]):
    """The tree of everything an adversary can do, merged where histories do not differ in what matters."""

    def __init__(self, moves: Sequence[Move], rule: Filter[GameState], rounds: int) -> None:
        if rounds < 0:
            raise InvalidValue(f"a game has rounds, 0 or more, got {rounds}")
        self._rounds = rounds
        self._moves = [(move.worst, move.outcomes()) for move in moves]
        self._rule = rule

    def open_to(self, state: GameState) -> list[list[tuple[Fraction, Fraction, Cost]]]:
        """The outcome tables that the filter lets the adversary choose among."""
        return [table for worst, tables in self._moves if self._rule.decide(state, worst) is CONT for table in tables]

    def advantage(self, ratio: Fraction) -> Fraction:
        """The best Σ (P − ratio·Q)₊ over views."""
        rule = self._rule

        @cache
        def value(likelihood: Fraction, state: GameState, rounds: int) -> Fraction:
            """The best value from here, divided by the probability of being here under Q."""
            best = max(likelihood - ratio, Fraction(0))
            if rounds == 0:
                return best
            for table in self.open_to(state):
                total = Fraction(0)
                for p, q, cost in table:
                    if not q:
                        total += likelihood * p  # impossible under Q: every bit of it counts
                    else:
                        total += q * value(likelihood * p / q, rule.charge(state, cost), rounds - 1)
                best = max(best, total)
            return best

        return value(Fraction(1), rule.start(), self._rounds)

    def largest_ratio(self) -> Fraction | None:
        """The largest P/Q of any view, None if some view is impossible under Q."""
        rule = self._rule

        @cache
        def value(state: GameState, rounds: int) -> Fraction | None:
            best = Fraction(1)
            if rounds == 0:
                return best
            for table in self.open_to(state):
                for p, q, cost in table:
                    if not p:
                        continue
                    after = value(rule.charge(state, cost), rounds - 1) if q else None
                    if after is None:
                        return None
                    best = max(best, p / q * after)
            return best

        return value(rule.start(), self._rounds)


def worst_delta_at(moves: Sequence[Move], rule: Filter[Any], rounds: int, ratio: Fraction) -> Fraction:
    """The exact δ that the best adversary reaches at e^ε = ratio, in at most ``rounds`` rounds.

    Proof: thm-game
    """
    return _Game(moves, rule, rounds).advantage(ratio)


def worst_delta(
    moves: Sequence[Move], rule: Filter[Any], rounds: int, epsilon: Cost, digits: int = 40
) -> Bracket[Fraction]:
    """The δ that the best adversary reaches at ε, bracketed to about ``digits`` digits."""
    game = _Game(moves, rule, rounds)
    ratio = bracket.exp(epsilon.exact_epsilon, digits)
    return Bracket(game.advantage(ratio.upper), game.advantage(ratio.lower))


def worst_ratio(moves: Sequence[Move], rule: Filter[Any], rounds: int) -> Fraction | None:
    """The exact e^ε that the best adversary reaches at δ = 0; None where no finite one suffices.

    Proof: thm-game
    """
    return _Game(moves, rule, rounds).largest_ratio()


def play(moves: Sequence[Move], limit: Cost, rounds: int, rule: Filter[Any] | None = None) -> Verdict:
    """Whether every adversary stays within the limit's (ε, δ), under the ODP filter or another rule.

    Proof: prop-decidable
    """
    admit = rule or OdpFilter(limit)
    return judge(lambda digits: worst_delta(moves, admit, rounds, limit, digits), limit.exact_delta)[0]
