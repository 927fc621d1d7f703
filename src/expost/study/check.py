"""Questions as mechanisms: each is built once, and what is publicly wrong with one is found before any charge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from expost.cost import Cost
from expost.data import Column, PrivateTable
from expost.data.questions import MayLackUnits, TableMechanism
from expost.errors import InvalidValue
from expost.ledger.imagined import Imagined
from expost.mechanism import Mechanism
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Answer, Asked
from expost.study.model import Question, Study
from expost.study.toml import toml_words

NOMINAL_SIZE = 10_000
"""Stands for the number of units while nothing is read: no price depends on it."""
Built = tuple[Mechanism, Column | None]
"""A mechanism, and the columns that it reads, if it does not ask the table itself."""
LineProblem = tuple[int | None, str]
"""A line of the study, and what is wrong there."""


def _go_on() -> None:
    """However long it takes."""


class TooLittle(Exception):
    """The settings of a question are right, but its ε or δ is too small."""


class Questions:
    """The questions of a study, for a table of ``size`` units; None if that is private, or was not looked at."""

    def __init__(
        self, study: Study, table: PrivateTable, size: int | None, budget: Imagined, go_on: Callable[[], None] = _go_on
    ) -> None:
        self.study, self.table, self._known = study, table, size
        self._go_on = go_on
        """Raises if pricing has taken too long; it is asked before each price and mechanism."""
        self.meters = None if budget.basic_alone else budget.meters
        self.size = 0 if table.neighbours != "substitute" else NOMINAL_SIZE if size is None else size
        self._built: dict[tuple[object, ...], Built] = {}

    def asked(self, question: Question, cost: Cost, earlier: Mapping[str, Answer], *, replayed: bool = False) -> Asked:
        """A question with its ε and δ, and the earlier answers that it names."""
        named = KINDS[question.kind].refers_to(question.values).values()
        own = {name: earlier[name] for name in named if name in earlier}
        epsilon, delta = cost.epsilon, cost.exact_delta
        sized = self._known is not None
        expected = self.study.data.expected
        return Asked(question, self.table, epsilon, delta, self.size, own, self.meters, replayed, sized, expected)

    def cost(self, question: Question, budget: Imagined, earlier: Mapping[str, Answer]) -> Cost:
        """What a question asks for, given what remains.

        Where parts of one answer differ in cost, a share of what remains may have no room on a meter whose price of
        the costliest part is above that of an answer with one part: then it is the most that has room.
        """
        self._go_on()
        limit, remaining = self.study.limit, budget.remaining
        cost = question.asks(limit, remaining)
        if budget.meters is None or question.amount.of != "remaining" or not cost.epsilon_units:
            return cost

        def fits(units: int) -> bool:
            return self._fits(question, Cost.of_units(units, cost.delta_units), budget, earlier)

        low, high = 0, cost.epsilon_units
        if fits(high):
            return cost
        while high - low > high // 1000:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return Cost.of_units(low, cost.delta_units)

    def _fits(self, question: Question, cost: Cost, budget: Imagined, earlier: Mapping[str, Answer]) -> bool:
        asked = self.asked(question, cost, earlier)
        try:
            mechanism, _ = self.build(asked)
        except TooLittle:
            return False
        worst, _ = KINDS[asked.question.kind].charges(asked, mechanism, budget)
        return budget.after(worst) is not None

    def build(self, asked: Asked) -> Built:
        """Its mechanism. Raises ``InvalidValue`` for settings that are wrong whatever ε, else ``TooLittle``."""
        try:
            return self._once(asked)
        except InvalidValue:
            limit = self.study.limit
            most = asked.question.asks(limit, limit)
            self._once(replace(asked, epsilon=most.epsilon, delta=most.exact_delta))
        raise TooLittle

    def check(self, question: Question, earlier: Mapping[str, Answer]) -> None:
        """Build it with all the ε that it could get."""
        limit = self.study.limit
        self._once(self.asked(question, question.asks(limit, limit), earlier))

    def _once(self, asked: Asked) -> Built:
        kind = KINDS[asked.question.kind]
        key = (asked.question.name, asked.epsilon, asked.delta, asked.replayed, *kind.made_from(asked).items())
        if key not in self._built:
            self._go_on()
            on = asked.columns if kind.reads else None
            mechanism = kind.mechanism(asked)
            if on is not None and self._known is not None:
                shape = (self._known,) if len(on.values) == 1 else (self._known, len(on.values))
                mechanism.check(np.broadcast_to(np.float64(0), shape))
            if isinstance(mechanism, TableMechanism):
                mechanism.check_noise()
            if isinstance(mechanism, MayLackUnits) and self._known:
                mechanism.require(self._known)
            self._built[key] = mechanism, on
        return self._built[key]


def problem(question: Question, error: InvalidValue) -> LineProblem:
    """What is wrong with a question, at the line of the key that the error is about."""
    what = error.text(toml_words)
    for key, value in question.values.items():
        if error.about is not None and error.about in (value if isinstance(value, list) else [value]):
            return question.lines.get(key, question.line), f"question {question.name!r}: {key}: {what}"
    return question.line, f"question {question.name!r}: {what}"
