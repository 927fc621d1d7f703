"""Run a study: ask in order, pay for what came out, remember everything.

Which question is asked next, and with how much ε, depends on released answers and balances only, so the whole stays
within the ledger's limit (Proof: thm-ledger). Every attempt has a key: running a study again returns what was
released and samples nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from expost.cost import Cost
from expost.errors import (
    AlreadyReserved,
    BudgetExceeded,
    EngineFailed,
    ExpostError,
    InvalidStudy,
    InvalidValue,
    KeyConflict,
    UnknownEntry,
)
from expost.ledger import Entry, Ledger
from expost.mechanism import Mechanism, Release
from expost.noise import NoiseSource
from expost.study.key import LOST, VALUES, asked_then
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Answer, Asked, Unanswerable, Unscaled
from expost.study.kinds.robust import scale_of
from expost.study.model import Condition, Question, Study
from expost.study.plan import plan_from, require_fit
from expost.study.sources import Opened, asked_for, check_questions, open_ledger, open_table, problem

State = Literal["answered", "withheld", "skipped", "lost", "not possible", "not reached"]


@dataclass(frozen=True)
class Receipt:
    """What one entry of the ledger says about a question."""

    entry: int
    what: str
    reserved: Cost
    charged: Cost
    stored: bool
    """Whether it was there already, so that nothing was sampled now."""

    @property
    def refunded(self) -> Cost:
        """What came back."""
        return self.reserved - self.charged


@dataclass(frozen=True)
class Outcome:
    """What became of a question."""

    question: Question
    state: State
    answer: Answer | None = None
    why: str = ""
    asked: Cost = field(default_factory=lambda: Cost(0))
    """What all attempts asked for: what classic accounting would charge."""
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True)
class Result:
    """A study that was run."""

    study: Study
    outcomes: tuple[Outcome, ...]
    size: int | None
    """The number of units, where it is public."""
    ledger: Ledger
    error: ExpostError | None = None
    """What stopped it, if something did."""

    @property
    def asked(self) -> int:
        """How many questions could be asked."""
        return sum(outcome.state in ("answered", "withheld") for outcome in self.outcomes)

    @property
    def answered(self) -> int:
        """How many of them were answered."""
        return sum(outcome.state == "answered" for outcome in self.outcomes)

    @property
    def classic(self) -> int:
        """How many of them, at the same ε, would fit under the same limit if each were charged its worst case."""
        total, count = Cost(0), 0
        for outcome in self.outcomes:
            if outcome.state in ("answered", "withheld") and total + outcome.asked <= self.study.limit:
                total, count = total + outcome.asked, count + 1
        return count


class UnderWay(ExpostError):
    """Another run is asking the same question, which is never sampled twice."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label

    def __str__(self) -> str:
        return (
            f"another run is asking {self.label!r} right now, and nothing is sampled twice: run again when it is done; "
            "what it publishes will be here, too"
        )


class Lost(Exception):
    """What was sampled was never delivered."""


Progress = Callable[[Question, Outcome | None], None]
"""Called before a question, with None, and after it."""


def run_study(study: Study, *, noise: NoiseSource | None = None, progress: Progress | None = None) -> Result:
    """Check everything, then ask. Stops cleanly where the budget ends: what was answered is in the result."""
    opened = open_table(study)
    check_questions(opened)
    there = open_ledger(study, create=False)
    size = _public_size(opened)
    require_fit(plan_from(opened, there, size))
    _check_sizes(opened, size or 0)
    ledger = there if there is not None and study.books.url != "memory:" else None
    ledger = ledger or open_ledger(study, create=True, noise=noise)
    assert ledger is not None
    return _Run(opened, ledger, size or 0, progress or (lambda question, outcome: None)).all(size)


def _public_size(opened: Opened) -> int | None:
    if opened.study.privacy.neighbours != "substitute":
        return None
    try:
        return opened.table.counted()
    except InvalidValue as error:
        raise opened.study.wrong("privacy.size", str(error)) from None


def _check_sizes(opened: Opened, size: int) -> None:
    """What depends on the public number of units, such as blocks of a regression."""
    problems = []
    for question in opened.study.questions:
        if KINDS[question.kind].reads and size < 1:
            problems.append(problem(question, InvalidValue("the data has no units, and this needs some")))
        elif question.kind in ("regression", "logistic_regression", "training"):
            most = question.amount.resolve(opened.study.limit, opened.study.limit)
            asked, kind = asked_for(opened, question, most.epsilon, size, {}), KINDS[question.kind]
            try:
                kind.mechanism(asked).check(np.broadcast_to(np.float64(0), kind.on(asked).shape))  # no value is read
            except InvalidValue as error:
                problems.append(problem(question, error))
    if problems:
        raise InvalidStudy(str(opened.study.file), tuple(problems))


class _Run:
    """A study under way."""

    def __init__(self, opened: Opened, ledger: Ledger, size: int, progress: Progress) -> None:
        self.opened, self.study, self.ledger, self.size = opened, opened.study, ledger, size
        self.progress = progress
        self.answers: dict[str, Answer] = {}

    def all(self, size: int | None) -> Result:
        outcomes: list[Outcome] = []
        error: ExpostError | None = None
        for question in self.study.questions:
            if error is not None:
                outcomes.append(Outcome(question, "not reached", why="the run had ended"))
                continue
            self.progress(question, None)
            outcome, error = self.one(question)
            if outcome.answer is not None:
                self.answers[question.name] = outcome.answer
            outcomes.append(outcome)
            self.progress(question, outcome)
        return Result(self.study, tuple(outcomes), size, self.ledger, error)

    def one(self, question: Question) -> tuple[Outcome, ExpostError | None]:
        """A question with its condition and its repetitions; and the error that ends the run, if one does."""
        if question.only_if is not None and not self.holds(question.only_if):
            return Outcome(question, "skipped", why=f"{question.only_if.text} does not hold"), None
        receipts: list[Receipt] = []
        state: State
        asked, answer = Cost(0), None
        for attempt in range(1, (question.repeat.at_most if question.repeat else 1) + 1):
            try:
                cost, answer = self.attempt(question, attempt, receipts)
            except Unanswerable as error:
                state = "skipped" if isinstance(error, Unscaled) else "not possible"
                return Outcome(question, state, answer, str(error), asked, tuple(receipts)), None
            except Lost as error:
                return Outcome(question, "lost", answer, str(error), asked, tuple(receipts)), None
            except BudgetExceeded as error:
                if answer is not None:  # a repetition that no longer fits
                    break
                return Outcome(question, "not possible", None, str(error), asked, tuple(receipts)), error
            except ExpostError as error:
                state = "lost" if isinstance(error, EngineFailed) else "not possible"
                return Outcome(question, state, answer, str(error), asked, tuple(receipts)), error
            asked += cost
            if self.over(question, answer, attempt):
                break
        state = "withheld" if answer is not None and "withheld" in answer.outcomes else "answered"
        return Outcome(question, state, answer, "", asked, tuple(receipts)), None

    def over(self, question: Question, answer: Answer, attempt: int) -> bool:
        """Whether no repetition follows. One that was made before does, whatever remains now."""
        repeat = question.repeat
        if repeat is None or repeat.until in answer.outcomes:
            return True
        if self.stored(self.key(question, attempt + 1)) is not None:
            return False
        return self.ledger.remaining.epsilon_units < repeat.floor.epsilon_units

    def holds(self, condition: Condition) -> bool:
        """Whether an earlier released answer was so; one that was never released was not."""
        answer = self.answers.get(condition.question)
        if answer is None:
            return False
        if condition.outcome is not None:
            return condition.outcome in answer.outcomes
        if answer.number is None:
            return False
        return answer.number > condition.number if condition.sign == ">" else answer.number < condition.number

    def attempt(self, question: Question, attempt: int, receipts: list[Receipt]) -> tuple[Cost, Answer]:
        """One attempt: what it asked for, and its answer. Steps that are stored are not sampled again."""
        kind, key = KINDS[question.kind], self.key(question, attempt)
        stored = self.stored(key)
        try:
            cost = self.cost(question, stored)
        except BudgetExceeded:
            if self.stored(key) != stored:  # it was set aside for another run since
                raise UnderWay(question.label) from None
            raise
        asked = asked_for(self.opened, question, cost.epsilon, self.size, dict(self.answers), cost.exact_delta)
        mechanism = self.made(asked, cost)
        release = self.release(mechanism, kind.on(asked), key, question.label, stored, receipts)
        following = kind.then(asked, release) if kind.then is not None else None
        if following is not None:
            step = self.key(question, attempt, VALUES)
            second = self.release(following, None, step, question.label + VALUES, self.stored(step), receipts)
            mechanism, release = following, second
        worst = release.reserved if kind.then is None else cost
        return worst, kind.answer(asked, mechanism, release.value)

    def key(self, question: Question, attempt: int, step: str = "") -> str:
        """The ledger's key. Another number of units, or another released scale, makes it another question."""
        facts = [f"n={self.size}"] if self.size else []
        if isinstance(question.values.get("scale"), str):
            facts.append(f"scale={scale_of(asked_for(self.opened, question, 1, self.size, self.answers))!r}")
        return " ".join((self.study.key(question, attempt, step), *facts))

    def stored(self, key: str) -> Entry | None:
        """What the ledger holds under a key."""
        try:
            return self.ledger.reservation(key).entry
        except UnknownEntry:
            return None

    def cost(self, question: Question, stored: Entry | None) -> Cost:
        """What it asks for now; or what it asked for then, as its reservation tells."""
        if stored is not None:
            return asked_then(question, stored)
        remaining = self.ledger.remaining
        cost = question.asks(self.study.limit, remaining)
        if not cost.epsilon_units:
            raise BudgetExceeded(Cost.of_units(1, cost.delta_units), remaining, self.ledger.name)
        if not cost <= remaining:
            raise BudgetExceeded(cost, remaining, self.ledger.name)
        return cost

    def made(self, asked: Asked, cost: Cost) -> Mechanism:
        """The mechanism. If there is none now, but with all that it could get there is, too little is left."""
        question, limit, make = asked.question, self.study.limit, KINDS[asked.question.kind].mechanism
        try:
            return make(asked)
        except InvalidValue as error:
            most = question.amount.resolve(limit, limit).epsilon
            try:
                make(replace(asked, epsilon=most, delta=question.delta_of(limit)))
            except InvalidValue:
                raise Unanswerable(str(error)) from None
        raise BudgetExceeded(cost, self.ledger.remaining, self.ledger.name)

    def release(
        self, mechanism: Mechanism, on: Any, key: str, label: str, stored: Entry | None, receipts: list[Receipt]
    ) -> Release:
        """Run it, or read what it published before."""
        if stored is None:
            try:
                made = self.ledger.run(mechanism, on=on, key=key, label=label)
            except (AlreadyReserved, KeyConflict):  # since we looked
                raise UnderWay(label) from None
            receipts.append(Receipt(made.entry.id, label, made.reserved, made.charged, False))
            return made
        if stored.state == "reserved":
            raise UnderWay(label)
        assert stored.charged is not None
        receipts.append(Receipt(stored.id, label, stored.reserved, stored.charged, True))
        if stored.state != "settled":
            raise Lost(LOST)
        return Release(mechanism, self.ledger.output(key), stored, replayed=True)
