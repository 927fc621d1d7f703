"""What a study will cost: the worst and the best of each question, and what would not fit. Touches no data.

Two ledgers are imagined: one that is charged the worst case of everything, one the best. A question fits for sure if
its worst case can be reserved in the first, and cannot be asked at all if it cannot be reserved in the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from expost.cost import Cost
from expost.errors import InvalidStudy, InvalidValue
from expost.ledger import Ledger
from expost.study.check import LineProblem, Questions, TooLittle, problem
from expost.study.key import Stored, other_versions, stored_questions
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Accuracy, Answer
from expost.study.model import Question, Study
from expost.study.sources import find_ledger, open_table, remaining_before

Fit = Literal["stored", "lost", "fits", "may fit", "cannot fit"]
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class PlanLine:
    """One question of a plan."""

    question: Question
    worst: Cost | None
    """Its worst case, with repetitions, if all before it cost their worst; None if nothing remains then."""
    best: Cost | None
    """Its best case, if all before it cost their best."""
    fit: Fit
    why: str
    accuracy: Accuracy | None = None
    """What can be expected of its answer, with what remains at worst; None if that is not known before."""


@dataclass(frozen=True)
class Plan:
    """What a study will cost."""

    study: Study
    lines: tuple[PlanLine, ...]
    before: Cost
    """What remains in the ledger or account now."""
    worst: Cost
    """What will remain at worst."""
    best: Cost
    """What will remain at best."""

    @property
    def fits(self) -> bool:
        """Whether every question may be asked."""
        return all(line.fit != "cannot fit" for line in self.lines)


def plan_study(study: Study) -> Plan:
    """The plan of a study, from its file, the data's schema and the ledger's balance.

    Where the number of units is public, but not stated, stored answers about any number of them count.
    """
    questions = Questions(study, open_table(study), study.privacy.size)
    return _plan(_Walk(questions, find_ledger(study), study.privacy.size))


def plan_questions(questions: Questions, remaining: Cost) -> Plan:
    """The plan of questions that were never asked before, where this remains."""
    walk = _Walk(questions, None, None)
    walk.low = walk.high = remaining
    return _plan(walk)


def _plan(walk: _Walk) -> Plan:
    before = walk.low
    lines = walk.through(walk.full_line)
    return Plan(walk.study, tuple(lines), before, walk.low, walk.high)


def other_version(study: Study, versions: str) -> str:
    """What is said of a question that was answered about another version of the data."""
    return f"is asked again: the ledger has its answer about version {versions}, and [data] says {study.data.version!r}"


def require_fit(questions: Questions, ledger: Ledger | None, size: int | None) -> None:
    """Refuse a study with a question that is wrong, or that cannot be asked whatever comes out before."""
    walk = _Walk(questions, ledger, size)
    found = zip(questions.study.questions, walk.through(walk.at_best), strict=True)
    unfit = [(question.line, f"question {question.name!r} {why}") for question, (_, fit, why) in found
             if fit == "cannot fit"]  # fmt: skip
    _refuse(questions.study, unfit)


def _refuse(study: Study, problems: list[LineProblem]) -> None:
    if problems:
        raise InvalidStudy(str(study.file), tuple(problems))


class _Walk:
    """What remains in the two imagined ledgers."""

    def __init__(self, questions: Questions, ledger: Ledger | None, size: int | None) -> None:
        study = questions.study
        self.questions, self.study = questions, study
        self.stored: Mapping[str, Stored] = {} if ledger is None else stored_questions(study, ledger, size)
        self.versions = {} if ledger is None else other_versions(study, ledger)
        self.low = self.high = remaining_before(study, ledger)
        self.stand_ins: dict[str, Answer] = {}

    def through(self, each: Callable[[Question], _Found]) -> list[_Found]:
        """All questions in order; what is wrong with any of them is raised at the end, all of it."""
        found, problems = [], []
        for question in self.study.questions:
            try:
                found.append(each(question))
            except InvalidValue as error:
                problems.append(problem(question, error))
            stand_in = KINDS[question.kind].stand_in
            if stand_in is not None:
                self.stand_ins[question.name] = stand_in
        _refuse(self.study, problems)
        return found

    def at_best(self, question: Question) -> tuple[Cost | None, Fit, str]:
        """Its best case, if all before it cost their best."""
        stored = self.stored.get(question.name)
        if stored is not None:
            self.questions.check(question, self.stand_ins)
            return Cost(0), "lost" if stored.last.state == "forfeited" else "stored", stored.why
        price = self.price(question, self.high)
        conditional = question.only_if is not None or KINDS[question.kind].may_lack(question)
        if price is not None and price[0] <= self.high:
            self.high -= Cost(0) if conditional else price[1]
            return price[1], "fits", ""
        best, asked = (None, "something") if price is None else (price[1], f"{price[0]}")
        if conditional:  # it may never be asked, as in a second run after it was not
            return best, "may fit", f"would not fit if it were asked: it reserves {asked}, and {self.high} remains"
        return best, "cannot fit", f"cannot fit: it reserves {asked}, and at best {self.high} would remain"

    def full_line(self, question: Question) -> PlanLine:
        """Its best and its worst case, and what can be expected of its answer."""
        low, high = self.low, self.high
        line = self.line(question)
        if line.fit not in ("fits", "may fit"):
            return line
        if question.name in self.versions and not line.why:
            line = replace(line, why=other_version(self.study, self.versions[question.name]))
        return replace(line, accuracy=self.accuracy(question, low) or self.accuracy(question, high))

    def accuracy(self, question: Question, remaining: Cost) -> Accuracy | None:
        """What can be expected of its answer, if this remains when it is asked."""
        cost = question.asks(self.study.limit, remaining)
        if not cost.epsilon_units or not cost <= remaining:
            return None
        asked = self.questions.asked(question, cost, self.stand_ins)
        try:
            return KINDS[question.kind].accuracy(asked, self.questions.build(asked)[0])
        except TooLittle:
            return None

    def line(self, question: Question) -> PlanLine:
        """Its best and its worst case."""
        best, fit, why = self.at_best(question)
        if fit == "stored":
            return self.again(question, self.stored[question.name])
        if fit == "lost":
            return PlanLine(question, Cost(0), best, fit, why)
        price = self.price(question, self.low)
        worst = None if price is None else price[0]
        if fit != "fits":
            return PlanLine(question, worst, best, fit, why)
        if worst is None or not worst <= self.low:
            why = f"fits only if earlier questions are refunded: at worst {self.low} remains"
            self.low = Cost(0)  # if it does fit, it may take everything; if not, the run ends
            return PlanLine(question, worst, best, "may fit", why)
        worst += self.repeated(question, self.low - worst)
        self.low -= worst
        return PlanLine(question, worst, best, "fits", "")

    def again(self, question: Question, stored: Stored) -> PlanLine:
        """A question that was asked before: free, but for what may follow if a run was interrupted."""
        more = stored.unfinished + self.repeated(question, self.low, stored.attempts)
        self.low = self.low - more if more <= self.low else Cost(0)
        why = stored.why
        if question.repeat is not None and more.epsilon_units:
            why += f"; asked again if that did not end as {question.repeat.until!r}"
        return PlanLine(question, more, Cost(0), "stored", why)

    def repeated(self, question: Question, remaining: Cost, times: int = 1) -> Cost:
        """What repetitions cost at worst, after a number of times."""
        spent, repeat = Cost(0), question.repeat
        for _ in range(times, repeat.at_most if repeat else 1):
            asked = question.asks(self.study.limit, remaining)
            floor = repeat.floor.epsilon_units if repeat else 0
            if remaining.epsilon_units < floor or not asked <= remaining or not asked.epsilon_units:
                break
            spent, remaining = spent + asked, remaining - asked
        return spent

    def price(self, question: Question, remaining: Cost) -> tuple[Cost, Cost] | None:
        """Worst and best, if this remains when it is asked; None if that is too little to ask anything."""
        cost = question.asks(self.study.limit, remaining)
        if not cost.epsilon_units:
            self.questions.check(question, self.stand_ins)
            return None
        asked = self.questions.asked(question, cost, self.stand_ins)
        try:
            return KINDS[question.kind].price(asked, self.questions.build(asked)[0])
        except TooLittle:
            return None
