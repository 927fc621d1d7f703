"""What a study will cost: the worst and the best of each question, and what would not fit. Touches no data.

Two ledgers are imagined: one that is charged the worst case of everything, one the best. A question fits for sure if
its worst case can be reserved in the first, and cannot be asked at all if it cannot be reserved in the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar

from expost.accounting.amounts import Amounts, together
from expost.cost import Cost
from expost.errors import InvalidStudy, InvalidValue
from expost.guarantee import Guarantee
from expost.ledger import Ledger
from expost.ledger.imagined import Imagined
from expost.mechanism import Mechanism
from expost.study.check import LineProblem, Questions, TooLittle, problem
from expost.study.key import Stored, other_versions, stored_questions
from expost.study.kinds import KINDS
from expost.study.kinds.kind import SAYS_NOTHING, Accuracy, Answer, Asked, NoBar
from expost.study.kinds.lost import unasked_losses
from expost.study.model import Question, Study
from expost.study.sources import find_ledger, imagined, open_table

Fit = Literal["stored", "lost", "fits", "may fit", "cannot fit"]
_Found = TypeVar("_Found")
ACCOUNTINGS: tuple[Literal["basic", "renyi"], ...] = ("basic", "renyi")


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
    accuracy: Accuracy | NoBar | None = None
    """What can be expected of its answer, with what remains at worst; None if it is stored, or cannot be asked."""
    needs_refunds: bool = False
    """Whether it fits only if questions before it cost less than their worst."""

    @property
    def expected(self) -> str:
        """How far noise will move its answer at most, in a few words."""
        if isinstance(self.accuracy, NoBar):
            return "with the answer" if self.accuracy.later else "none"
        return "" if self.accuracy is None else str(self.accuracy).removeprefix("± ")

    def error_json(self) -> dict[str, Any]:
        """What is known of its accuracy, for other programs."""
        known = self.accuracy if isinstance(self.accuracy, Accuracy) else None
        return {
            "error": None if known is None else known.error,
            "error_of": "" if known is None else known.about,
            "error_is_a_share": known is not None and known.relative,
            "no_error": str(self.accuracy) if isinstance(self.accuracy, NoBar) else "",
        }


@dataclass(frozen=True)
class Plan:
    """What a study will cost.

    Attributes
    ----------
    study
        The study.
    lines
        What each question will cost, in order.
    before
        What remains in the ledger or account now.
    worst
        What will remain at worst.
    best
        What will remain at best.
    held
        What all questions that fit for sure cost at worst, together.
    attempts
        How often something may be asked, repetitions included.
    takes
        What the questions take of the limit under each accounting, while the ledger does not exist and one can choose.
    """

    study: Study
    lines: tuple[PlanLine, ...]
    before: Cost
    worst: Cost
    best: Cost
    held: Amounts
    attempts: int
    takes: Mapping[str, ShareOfLimit] = field(default_factory=dict)

    @property
    def which_fits_more(self) -> str:
        """What the questions would take of the limit if costs were added up in the other way, if that is less.

        Empty if there is no choice any more.
        """
        if len(self.takes) < len(ACCOUNTINGS):
            return ""
        stated = self.study.ledger.accounting or "basic"
        (other,) = set(ACCOUNTINGS) - {stated}
        now, then = self.takes[stated].worst, self.takes[other].worst
        if now < 1.005 * then:
            return ""
        return (
            f'with accounting = "{other}" in [ledger], questions with a stated ε would take {100 * then:.3g} % of the '
            f"limit at worst, and not {100 * now:.3g} %: state that before the first run"
        )

    @property
    def about_errors(self) -> list[str]:
        """What ± covers, and why some answers have none, or none yet."""
        bare: dict[str, list[str]] = {}
        for line in self.lines:
            if isinstance(line.accuracy, NoBar):
                bare.setdefault(str(line.accuracy), []).append(line.question.name)
        known = any(isinstance(line.accuracy, Accuracy) for line in self.lines)
        covers = ["± covers noise, not what clipping to bounds or leaving out rows changes"] if known else []
        unasked = ", ".join(unasked_losses(self.study.questions))
        offer = [f'{unasked}: kind = "lost", asked before, says how many values are clipped'] if unasked else []
        return covers + offer + [f"{', '.join(names)}: {why}" for why, names in bare.items()]

    @property
    def fits(self) -> bool:
        """Whether every question may be asked."""
        return all(line.fit != "cannot fit" for line in self.lines)


def plan_study(study: Study) -> Plan:
    """The plan of a study, from its file, the data's schema and the ledger's balance.

    Where the number of units is public, but not stated, stored answers about any number of them count.
    """
    table, ledger = open_table(study), find_ledger(study)
    budget = imagined(study, ledger)
    questions = Questions(study, table, study.privacy.size, budget)
    return _plan(_Walk(questions, ledger, budget, study.privacy.size), choose=ledger is None)


def plan_questions(questions: Questions, budget: Imagined) -> Plan:
    """The plan of questions that were never asked before, where this remains."""
    return _plan(_Walk(questions, None, budget, None))


def _plan(walk: _Walk, *, choose: bool = False) -> Plan:
    before = walk.low.remaining
    lines = walk.through(walk.full_line)
    takes = shares_of(walk.study.limit, walk.planned) if choose else {}
    held = together(walk.held)
    return Plan(walk.study, tuple(lines), before, walk.low.remaining, walk.high.remaining, held, len(walk.held), takes)


def other_version(study: Study, versions: str) -> str:
    """The note on a question that was answered about another version of the data."""
    return f"is asked again: the ledger has its answer about version {versions}, and [data] says {study.data.version!r}"


def require_fit(questions: Questions, ledger: Ledger | None, budget: Imagined, size: int | None) -> None:
    """Refuse a study with a question that is wrong, or that cannot be asked whatever comes out before."""
    walk = _Walk(questions, ledger, budget, size)
    found = zip(questions.study.questions, walk.through(walk.at_best), strict=True)
    unfit = [(question.line, f"question {question.name!r} {why}") for question, (_, fit, why) in found
             if fit == "cannot fit"]  # fmt: skip
    _refuse(questions.study, unfit)


def _refuse(study: Study, problems: list[LineProblem]) -> None:
    if problems:
        raise InvalidStudy(str(study.file), tuple(problems))


class _Walk:
    """What remains in the two imagined ledgers."""

    def __init__(self, questions: Questions, ledger: Ledger | None, budget: Imagined, size: int | None) -> None:
        study = questions.study
        self.questions, self.study = questions, study
        self.stored: Mapping[str, Stored] = {} if ledger is None else stored_questions(study, ledger, size)
        self.versions = {} if ledger is None else other_versions(study, ledger)
        self.low = self.high = budget
        self.stand_ins: dict[str, Answer] = {}
        self.planned: list[PlannedQuestion] = []
        """What would be asked for sure with a stated ε, as often as it may be."""
        self.held: list[Amounts] = []
        """What fits for sure, at its worst."""

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
        found, remaining = self.asking(question, self.high), self.high.remaining
        conditional = question.only_if is not None or KINDS[question.kind].may_lack(question)
        if found is not None and self.high.after(found.worst) is not None:
            if not conditional:
                self.high = self.high.after(found.best) or self.high.emptied()
            return self.high.shown(found.best), "fits", ""
        best, asked = (None, "something") if found is None else map(self.high.shown, (found.best, found.worst))
        if conditional:  # it may never be asked, as in a second run after it was not
            return best, "may fit", f"would not fit if it were asked: it reserves {asked}, and {remaining} remains"
        return best, "cannot fit", f"cannot fit: it reserves {asked}, and at best {remaining} would remain"

    def full_line(self, question: Question) -> PlanLine:
        """Its best and its worst case, and what can be expected of its answer."""
        low, high = self.low, self.high
        line = self.line(question)
        if line.fit not in ("fits", "may fit"):
            return line
        if question.name in self.versions and not line.why:
            line = replace(line, why=other_version(self.study, self.versions[question.name]))
        accuracy = self.accuracy(question, low) or self.accuracy(question, high)
        nothing = SAYS_NOTHING if isinstance(accuracy, Accuracy) and accuracy.drowned else ""
        return replace(line, accuracy=accuracy, why="; ".join(filter(None, (line.why, nothing))))

    def accuracy(self, question: Question, budget: Imagined) -> Accuracy | NoBar | None:
        """What can be expected of its answer, if this remains when it is asked."""
        found = self.asking(question, budget)
        if found is None or budget.after(found.worst) is None:
            return None
        return KINDS[question.kind].accuracy(found.asked, found.mechanism)

    def line(self, question: Question) -> PlanLine:
        """Its best and its worst case."""
        best, fit, why = self.at_best(question)
        if fit == "stored":
            return self.again(question, self.stored[question.name])
        if fit == "lost":
            return PlanLine(question, Cost(0), best, fit, why)
        found = self.asking(question, self.low)
        worst = None if found is None else self.low.shown(found.worst)
        if fit != "fits":
            return PlanLine(question, worst, best, fit, why)
        if found is None or (after := self.low.after(found.worst)) is None:
            why = f"fits only if earlier questions are refunded: at worst {self.low.remaining} remains"
            self.low = self.low.emptied()  # if it does fit, it may take everything; if not, the run ends
            return PlanLine(question, worst, best, "may fit", why, needs_refunds=True)
        again, self.low = self.repeated(question, after)
        self.held += [found.worst, *again]
        if question.amount.of != "remaining":  # such a question takes what there is
            self.planned += [found] * (1 + len(again))
        return PlanLine(question, self.low.shown(together([found.worst, *again])), best, "fits", "")

    def again(self, question: Question, stored: Stored) -> PlanLine:
        """A question that was asked before: free, but for what may follow if a run was interrupted."""
        rest, _ = self.low.charges(Guarantee.uniform(stored.unfinished.exact_epsilon))
        after = self.low.after(rest)
        more, self.low = self.repeated(question, after or self.low.emptied(), stored.attempts)
        why = stored.why
        if question.repeat is not None and (rest.cost or more):
            why += f"; asked again if that did not end as {question.repeat.until!r}"
        return PlanLine(question, self.low.shown(together([rest, *more])), Cost(0), "stored", why)

    def repeated(self, question: Question, budget: Imagined, times: int = 1) -> tuple[list[Amounts], Imagined]:
        """What repetitions cost at worst, after a number of times, and what remains then."""
        charges: list[Amounts] = []
        for _ in range(times, question.repeat.at_most if question.repeat else 1):
            floor = question.repeat.floor.epsilon_units if question.repeat else 0
            found = self.asking(question, budget) if budget.remaining.epsilon_units >= floor else None
            after = None if found is None else budget.after(found.worst)
            if found is None or after is None:
                break
            charges, budget = [*charges, found.worst], after
        return charges, budget

    def asking(self, question: Question, budget: Imagined) -> PlannedQuestion | None:
        """It, if this remains when it is asked; None if that is too little to ask anything."""
        cost = self.questions.cost(question, budget, self.stand_ins)
        if not cost.epsilon_units:
            self.questions.check(question, self.stand_ins)
            return None
        asked = self.questions.asked(question, cost, self.stand_ins)
        try:
            mechanism, _ = self.questions.build(asked)
        except TooLittle:
            return None
        return PlannedQuestion(asked, mechanism, *KINDS[question.kind].charges(asked, mechanism, budget))


class PlannedQuestion(NamedTuple):
    """A question with its mechanism, and what that costs."""

    asked: Asked
    mechanism: Mechanism
    worst: Amounts
    best: Amounts


class ShareOfLimit(NamedTuple):
    """What questions take of a limit. Above 1 they do not fit."""

    worst: float
    best: float


def shares_of(limit: Cost, planned: Iterable[PlannedQuestion]) -> dict[str, ShareOfLimit]:
    """What questions take of a new ledger's limit, by each way to add up that it has room for."""
    found: dict[str, ShareOfLimit] = {}
    questions = list(planned)
    for accounting in ACCOUNTINGS if questions else ():
        with suppress(InvalidValue):  # no δ, or too little of it
            budget = Imagined.of(Ledger(limit, accounting=accounting))
            charged = [_charges(each, budget) for each in questions]
            found[accounting] = ShareOfLimit(
                *(budget.taken(together(charges)) for charges in zip(*charged, strict=True))
            )
    return found


def _charges(found: PlannedQuestion, budget: Imagined) -> tuple[Amounts, Amounts]:
    """What a question costs. By the basic sum, Gaussian noise that has no δ would be Laplace noise."""
    asked, kind = found.asked, KINDS[found.asked.question.kind]
    if budget.meters is not None or not found.worst.unpriced or asked.delta:
        return kind.charges(asked, found.mechanism, budget)
    values = {key: value for key, value in asked.question.values.items() if key != "noise"}
    pure = replace(asked, question=replace(asked.question, values=values))
    return kind.charges(pure, kind.mechanism(pure), budget)
