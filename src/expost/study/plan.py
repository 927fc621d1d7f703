"""What a study will cost: the worst and the best of each question, and what would not fit. Touches no data.

Two ledgers are imagined: one that is charged the worst case of everything, one the best. A question fits for sure if
its worst case can be reserved in the first, and cannot be asked at all if it cannot be reserved in the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from expost.cost import Cost
from expost.errors import InvalidStudy, InvalidValue
from expost.ledger import Ledger
from expost.mechanisms.stability.quantile_range import Bin
from expost.study.key import Stored, stored_questions
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Answer
from expost.study.model import Question, Study
from expost.study.sources import NOMINAL_SIZE, Opened, asked_for, check_questions, left_before, open_ledger, open_table

Fit = Literal["stored", "lost", "fits", "may fit", "cannot fit"]


@dataclass(frozen=True)
class Line:
    """One question of a plan."""

    question: Question
    worst: Cost | None
    """Its worst case, with repetitions, if all before it cost their worst; None if nothing is left then."""
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
    return plan_from(opened, open_ledger(study, create=False), study.privacy.size)


def plan_from(opened: Opened, ledger: Ledger | None, size: int | None) -> Plan:
    """The plan, given what the ledger has left and which questions it holds answers to.

    Where the number of units is public, but not known here, answers about any number of them count.
    """
    study = opened.study
    walk = _Walk(opened, left_before(study, ledger), {} if ledger is None else stored_questions(study, ledger, size))
    before = walk.low
    lines = tuple(walk.line(question) for question in study.questions)
    return Plan(study, lines, before, walk.low, walk.high)


def require_fit(plan: Plan) -> None:
    """Refuse a study with a question that cannot be asked whatever comes out before."""
    problems = tuple((line.question.line, f"question {line.question.name!r} {line.why}")
                     for line in plan.lines if line.fit == "cannot fit")  # fmt: skip
    if problems:
        raise InvalidStudy(str(plan.study.file), problems)


class _Walk:
    """What is left in the two imagined ledgers."""

    def __init__(self, opened: Opened, before: Cost, stored: Mapping[str, Stored]) -> None:
        self.opened, self.stored = opened, stored
        self.low = self.high = before
        self.stand_ins: dict[str, Answer] = {}

    def line(self, question: Question) -> Line:
        if question.kind == "interquartile_range":
            self.stand_ins[question.name] = Answer("", None, released=Bin(1, 1.0, 2.0))
        if question.name in self.stored:
            return self.again(question, self.stored[question.name])
        pessimist, optimist = self.price(question, self.low), self.price(question, self.high)
        worst = None if pessimist is None else pessimist[0]
        best = None if optimist is None else optimist[1]
        if optimist is None or not optimist[0] <= self.high:
            asked = "something" if optimist is None else f"{optimist[0]}"
            if question.conditional:  # it may never be asked, as in a second run after it was not
                why = f"would not fit if it were asked: it sets aside {asked}, and {self.high} is left"
                return Line(question, worst, best, "may fit", why)
            why = f"cannot fit: it sets aside {asked}, and at best {self.high} would be left"
            return Line(question, worst, best, "cannot fit", why)
        if not question.conditional:
            self.high -= optimist[1]
        if worst is None or not worst <= self.low:
            why = f"fits only if earlier questions give back: at worst {self.low} is left"
            self.low = Cost(0)  # if it does fit, it may take everything; if not, the run ends
            return Line(question, worst, best, "may fit", why)
        worst += self.repeated(question, self.low - worst)
        self.low -= worst
        return Line(question, worst, best, "fits", "")

    def again(self, question: Question, stored: Stored) -> Line:
        """A question that was asked before: free, but for what may follow if a run was interrupted."""
        if stored.last.state == "forfeited":
            return Line(question, Cost(0), Cost(0), "lost", stored.why)
        more = stored.unfinished + self.repeated(question, self.low, stored.attempts)
        self.low = self.low - more if more <= self.low else Cost(0)
        why = stored.why
        if question.repeat is not None and more.epsilon_units:
            why += f"; asked again if that did not end as {question.repeat.until!r}"
        return Line(question, more, Cost(0), "stored", why)

    def repeated(self, question: Question, left: Cost, times: int = 1) -> Cost:
        """What repetitions cost at worst, with so much left after so many times."""
        spent, repeat = Cost(0), question.repeat
        for _ in range(times, repeat.at_most if repeat else 1):
            asked = question.asks(self.opened.study.limit, left)
            floor = repeat.floor.epsilon_units if repeat else 0
            if left.epsilon_units < floor or not asked <= left or not asked.epsilon_units:
                break
            spent, left = spent + asked, left - asked
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
