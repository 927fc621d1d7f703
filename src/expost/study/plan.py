"""What a study will cost: the worst and the best of each question, and what would not fit. Touches no data.

Two ledgers are imagined: one that is charged the worst case of everything, one the best. A question fits for sure if
its worst case can be reserved in the first, and cannot be asked at all if it cannot be reserved in the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from expost.cost import Cost
from expost.errors import InvalidStudy, InvalidValue
from expost.ledger import Ledger
from expost.mechanisms.interquantile import Bin
from expost.study.kinds import Answer
from expost.study.model import Question, Study
from expost.study.open import NOMINAL_SIZE, Opened, asked_for, check_questions, open_ledger, open_table
from expost.study.questions import KINDS

Fit = Literal["stored", "fits", "may fit", "cannot fit"]


@dataclass(frozen=True)
class Line:
    """One question of a plan."""

    question: Question
    worst: Cost | None
    """Its worst case, if all before it cost their worst; None if nothing is left then."""
    best: Cost | None
    """Its best case, if all before it cost their best."""
    fit: Fit
    why: str


@dataclass(frozen=True)
class Plan:
    """What a study will cost."""

    study: Study
    lines: tuple[Line, ...]
    before: Cost
    """What the ledger has left now."""
    worst: Cost
    """What it will have left at worst."""
    best: Cost
    """What it will have left at best."""

    @property
    def fits(self) -> bool:
        """Whether every question may be asked."""
        return all(line.fit != "cannot fit" for line in self.lines)


def plan_study(study: Study) -> Plan:
    """The plan of a study, from its file, the data's schema and the ledger's balance."""
    opened = open_table(study)
    check_questions(opened)
    return plan_from(opened, open_ledger(study, create=False))


def plan_from(opened: Opened, ledger: Ledger | None, size: int | None = None) -> Plan:
    """The plan, given what the ledger has left and which questions it holds answers to.

    Without the public ``size``, answers about the data when it had another one count, too.
    """
    if ledger is None:
        return plan_questions(opened, opened.study.limit)
    study = opened.study
    words = [(entry.key or "").split(" ") for entry in ledger.entries()]
    keys = {" ".join(each[:3]) for each in words if size is None or f"n={size}" in each}  # without what a run adds
    stored = {question.name for question in study.questions if study.key(question) in keys}
    return plan_questions(opened, ledger.remaining, frozenset(stored))


def plan_questions(opened: Opened, before: Cost, stored: frozenset[str] = frozenset()) -> Plan:
    """Walk through the questions with both imagined ledgers."""
    walk = _Walk(opened, before, stored)
    lines = tuple(walk.line(question) for question in opened.study.questions)
    return Plan(opened.study, lines, before, walk.low, walk.high)


def require_fit(plan: Plan) -> None:
    """Refuse a study with a question that cannot be asked whatever comes out before."""
    problems = tuple((line.question.line, f"question {line.question.name!r} {line.why}")
                     for line in plan.lines if line.fit == "cannot fit")  # fmt: skip
    if problems:
        raise InvalidStudy(str(plan.study.file), problems)


class _Walk:
    """What is left in the two imagined ledgers."""

    def __init__(self, opened: Opened, before: Cost, stored: frozenset[str]) -> None:
        self.opened, self.stored = opened, stored
        self.low = self.high = before
        self.stand_ins: dict[str, Answer] = {}

    def line(self, question: Question) -> Line:
        if question.kind == "interquartile_range":
            self.stand_ins[question.name] = Answer("", None, released=Bin(1, 1.0, 2.0))
        if question.name in self.stored:
            return Line(question, Cost(0), Cost(0), "stored", "was asked before; the ledger has the answer")
        pessimist, optimist = self.price(question, self.low), self.price(question, self.high)
        worst = None if pessimist is None else pessimist[0]
        best = None if optimist is None else optimist[1]
        fit: Fit = "fits"
        why = ""
        if optimist is None or not optimist[0] <= self.high:
            asked = "something" if optimist is None else f"{optimist[0]}"
            fit, why = "cannot fit", f"cannot fit: it sets aside {asked}, and at best {self.high} would be left"
            if question.conditional:  # it may never be asked, as in a second run after it was not
                fit, why = "may fit", f"would not fit if it were asked: it sets aside {asked}, and {self.high} is left"
        elif worst is None or not worst <= self.low:
            fit, why = "may fit", f"fits only if earlier questions give back: at worst {self.low} is left"
        if worst is not None and worst <= self.low:
            self.low -= self.spent(question, worst)
        elif worst is not None:
            self.low = self.low if question.conditional else Cost.of_units(0, self.low.delta_units)
        if fit != "cannot fit" and best is not None and not question.conditional:
            self.high -= best
        return Line(question, worst, best, fit, why)

    def spent(self, question: Question, worst: Cost) -> Cost:
        """At worst, with as many repetitions as fit."""
        spent, left, times = worst, self.low - worst, 1
        repeat = question.repeat
        while repeat and times < repeat.at_most and worst <= left and repeat.floor.epsilon_units <= left.epsilon_units:
            spent, left, times = spent + worst, left - worst, times + 1
        return spent

    def price(self, question: Question, left: Cost) -> tuple[Cost, Cost] | None:
        """Worst and best, if so much is left when it is asked; None if that is too little to ask anything."""
        epsilon = question.amount.resolve(self.opened.study.limit, left)
        if not epsilon.epsilon_units:
            return None
        delta = question.delta_of(left)
        try:
            asked = asked_for(self.opened, question, epsilon.epsilon, NOMINAL_SIZE, self.stand_ins, delta)
            return KINDS[question.kind].price(asked)
        except InvalidValue:  # the settings were right before, so this is too little ε or δ
            return None
