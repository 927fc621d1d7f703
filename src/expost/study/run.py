"""Run a study: ask in order, pay for what came out, remember everything.

Which question is asked next, and with how much ε, depends on released answers and balances only, so the whole stays
within the ledger's limit (Proof: thm-ledger). Every attempt has a key: running a study again returns what was
released and samples nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from expost.accounting.amounts import Amounts, together
from expost.cost import Cost, decimal_text
from expost.errors import (
    AlreadyReserved,
    BudgetExceeded,
    EngineFailed,
    ExpostError,
    InvalidValue,
    KeyConflict,
    UnderWay,
    UnknownEntry,
)
from expost.ledger import Entry, Ledger
from expost.ledger.entry import Used
from expost.ledger.following import run_following
from expost.ledger.imagined import Imagined
from expost.ledger.statement import PRICE_HEADING
from expost.mechanism import Mechanism, Release
from expost.noise import NoiseSource
from expost.reporting.rows import named
from expost.study.check import Built, Questions, TooLittle
from expost.study.facts import how_made, notice_of
from expost.study.key import LOST, VALUES, asked_then, key_at_run, ledger_key
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Answer, Asked, Unanswerable, Unscaled, is_drowned
from expost.study.model import Condition, Question, Study
from expost.study.plan import require_fit
from expost.study.rehearsal import made_up_table, rehearsal_of
from expost.study.sources import find_ledger, imagined, new_ledger, open_table, public_size

OutcomeState = Literal["answered", "withheld", "skipped", "lost", "not possible", "not reached"]


@dataclass(frozen=True)
class Receipt:
    """One entry of the ledger that a question made."""

    entry: int
    what: str
    reserved: Cost
    charged: Cost
    stored: bool
    """Whether it was in the ledger already, so that nothing was sampled now."""
    release: Release | None = field(default=None, compare=False, repr=False)
    """What was published; None if it was lost."""
    amounts: Amounts | None = None
    """What was charged on every meter, if the ledger has several."""

    @property
    def refunded(self) -> Cost:
        """What was not charged of what was reserved."""
        return self.reserved - self.charged


@dataclass(frozen=True)
class Outcome:
    """What became of a question.

    Attributes
    ----------
    question
        The question.
    state
        ``"answered"``, ``"withheld"``, ``"skipped"``, ``"lost"``, ``"not possible"`` or ``"not reached"``.
    answer
        What was released, if anything was.
    why
        Why there is no answer.
    asked
        What each attempt asked for: what classic accounting would charge.
    receipts
        The entries of the ledger that it made, in order.
    """

    question: Question
    state: OutcomeState
    answer: Answer | None = None
    why: str = ""
    asked: tuple[Amounts, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def asked_cost(self) -> Cost:
        """What all attempts asked for, in the basic sum."""
        return sum((each.cost for each in self.asked), Cost(0))

    @property
    def how(self) -> dict[str, str]:
        """How its answer was made and what that cost, in words, by subject."""
        priced = any(receipt.amounts is not None for receipt in self.receipts)
        charged = _said((receipt.charged, receipt.amounts) for receipt in self.receipts)
        asked = _said((each.cost, each if priced else None) for each in self.asked)
        spared = "" if charged == asked else f", of {asked} asked for"
        return {} if self.answer is None else {**self.answer.how, "charged": f"{charged}{spared}"}


def _on_meters(entry: Entry) -> Amounts | None:
    """What was charged on every meter, if the ledger has several."""
    return entry.amounts if entry.is_metered else None


def _said(charges: Iterable[tuple[Cost, Amounts | None]]) -> str:
    """Charges in words, as receipts show them: noise that takes no δ has a ρ, and no ε."""
    used, price, priced = Used(Cost(0)), 0, False
    for cost, amounts in charges:
        used = used.plus(Used(cost) if amounts is None else Used.of(amounts))
        price, priced = price + (amounts.renyi if amounts else 0), priced or amounts is not None
    return f"{used}, {PRICE_HEADING} {decimal_text(price, 12)}" if priced and not used.is_noise else f"{used}"


@dataclass(frozen=True)
class Result:
    """A study that was run.

    Attributes
    ----------
    study
        The study.
    outcomes
        What became of each question, in order.
    size
        The number of units, where it is public.
    ledger
        The ledger or account that paid.
    error
        What stopped it, if something did.
    rehearsal
        Whether all rows were made up, so that no answer is about the data.
    """

    study: Study
    outcomes: tuple[Outcome, ...]
    size: int | None
    ledger: Ledger
    error: ExpostError | None = None
    rehearsal: bool = False

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
        budget, count = Imagined.of(self.ledger).unspent(), 0
        for outcome in self.outcomes:
            after = budget.after(*outcome.asked) if outcome.state in ("answered", "withheld") else None
            budget, count = (budget, count) if after is None else (after, count + 1)
        return count


class _Lost(Exception):
    """What was sampled was never delivered."""


QuestionProgress = Callable[[Question, Outcome | None], None]
"""Called before a question, with None, and after it."""


def run_study(
    study: Study,
    *,
    noise: NoiseSource | None = None,
    progress: QuestionProgress | None = None,
    rehearse: bool = False,
) -> Result:
    """Check everything, then ask. Stops cleanly where the budget ends: what was answered is in the result.

    ``rehearse`` asks made-up rows instead, with a ledger in memory: no value is read and nothing is charged.
    """
    table = made_up_table(study) if rehearse else open_table(study)
    study = rehearsal_of(study) if rehearse else study
    size = public_size(study, table)
    ledger = find_ledger(study, noise)
    budget = imagined(study, ledger)
    questions = Questions(study, table, size, budget)
    require_fit(questions, ledger, budget, size)
    ledger = ledger or new_ledger(study, noise)
    outcomes, error = ask_questions(questions, ledger, progress)
    return Result(study, outcomes, size, ledger, error, rehearse)


def ask_questions(
    questions: Questions, ledger: Ledger, progress: QuestionProgress | None = None
) -> tuple[tuple[Outcome, ...], ExpostError | None]:
    """Ask in order, without looking first whether all of it fits: what became of every question, and what ended it."""
    return _Run(questions, ledger, progress or (lambda question, outcome: None), ledger, LiveBudget(ledger)).all()


def ask_within(
    questions: Questions, journal: Ledger, published: Ledger, held: HeldBudget, between: Callable[[], None]
) -> tuple[tuple[Outcome, ...], ExpostError | None]:
    """Ask in order, within what was set aside before, and write what is sampled into a journal.

    What was published before is found in ``published``; ``between`` is called before each attempt at a question.
    """
    return _Run(questions, journal, lambda question, outcome: None, published, held, between).all()


class LiveBudget:
    """What a run may ask for: whatever its ledger has room for now."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def now(self) -> Imagined:
        """What remains."""
        return Imagined.of(self._ledger)

    def admit(self, worst: Amounts) -> bool:
        """Whether a question's worst case, with all of its steps, has room. A basic sum is asked when it reserves."""
        budget = self.now()
        return budget.meters is None or budget.after(worst) is not None


class HeldBudget:
    """What a run may ask for: what was set aside for it at a public time, on every meter.

    So what it asks depends on its own released answers alone, not on what else is charged meanwhile. What it does not
    use comes back to others when it is over; it cannot use it again itself.
    """

    def __init__(self, books: Imagined, held: Amounts) -> None:
        self._books, self._held, self._used = books, held, together([])

    def now(self) -> Imagined:
        """What remained then, without what was asked since."""
        return self._books.after(self._used) or self._books.emptied()

    def admit(self, worst: Amounts) -> bool:
        """Whether it is within what was set aside, together with all before it; if so it counts from now on."""
        used = together([self._used, worst])
        within = all(one <= most for one, most in zip(used, self._held, strict=True))
        self._used = used if within else self._used
        return within


class _Run:
    """A study under way. What it samples is written into ``ledger``, and known from ``published``."""

    def __init__(
        self,
        questions: Questions,
        ledger: Ledger,
        progress: QuestionProgress,
        published: Ledger,
        budget: LiveBudget | HeldBudget,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.between = between
        self.questions, self.study, self.ledger, self.progress = questions, questions.study, ledger, progress
        self.published, self.budget = published, budget
        self.answers: dict[str, Answer] = {}
        self.keys: dict[str, str] = {}
        """Those of the answers."""
        self.unnoticed: dict[str, tuple[Asked, Answer]] = {}
        """What was asked last, and the answer before what other answers tell of it."""

    def all(self) -> tuple[tuple[Outcome, ...], ExpostError | None]:
        """What became of every question, and the error that ended the run, if one did."""
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
        return tuple(map(self.noticed, outcomes)), error

    def noticed(self, outcome: Outcome) -> Outcome:
        """With what all answers tell of its own, those after it, too."""
        if outcome.answer is None:
            return outcome
        notice = self.notice(*self.unnoticed[outcome.question.name])
        return replace(outcome, answer=replace(outcome.answer, notice=notice))

    def one(self, question: Question) -> tuple[Outcome, ExpostError | None]:
        """A question with its condition and its repetitions; and the error that ends the run, if one does."""
        if question.only_if is not None and not self.holds(question.only_if):
            return Outcome(question, "skipped", why=f"{question.only_if.text} does not hold"), None
        receipts: list[Receipt] = []
        asked: list[Amounts] = []
        answer: Answer | None = None

        def ended(state: OutcomeState, why: Exception | str = "") -> Outcome:
            return Outcome(question, state, answer, str(why), tuple(asked), tuple(receipts))

        for attempt in range(1, (question.repeat.at_most if question.repeat else 1) + 1):
            self.between()
            try:
                worst, answer = self.attempt(question, attempt, receipts)
            except Unanswerable as error:
                return ended("skipped" if isinstance(error, Unscaled) else "not possible", error), None
            except _Lost as error:
                return ended("lost", error), None
            except ExpostError as error:
                if isinstance(error, BudgetExceeded) and answer is not None:  # a repetition that no longer fits
                    break
                return ended("lost" if isinstance(error, EngineFailed) else "not possible", error), error
            asked.append(worst)
            if self.over(question, answer, attempt):
                break
        return ended("withheld" if answer is not None and "withheld" in answer.outcomes else "answered"), None

    def over(self, question: Question, answer: Answer, attempt: int) -> bool:
        """Whether no repetition follows. One that was made before does, whatever remains now."""
        repeat = question.repeat
        if repeat is None or repeat.until in answer.outcomes:
            return True
        if self.stored(self.key(question, attempt + 1)) is not None:
            return False
        return self.budget.now().remaining.epsilon_units < repeat.floor.epsilon_units

    def holds(self, condition: Condition) -> bool:
        """Whether an earlier released answer was this; one that was never released was not."""
        answer = self.answers.get(condition.question)
        if answer is None:
            return False
        if condition.outcome is not None:
            return condition.outcome in answer.outcomes
        if answer.number is None:
            return False
        return answer.number > condition.number if condition.sign == ">" else answer.number < condition.number

    def attempt(self, question: Question, attempt: int, receipts: list[Receipt]) -> tuple[Amounts, Answer]:
        """One attempt: what it asked for, and its answer. Steps that are stored are not sampled again."""
        kind, key = KINDS[question.kind], self.key(question, attempt)
        stored = self.stored(key)
        try:
            cost = self.cost(question, stored)
            asked = self.questions.asked(question, cost, self.answers, replayed=stored is not None)
            mechanism, on = self.built(asked, cost)
            worst = self.worst(asked, mechanism, new=stored is None)
        except BudgetExceeded:
            if self.stored(key) != stored:  # another run reserved it since
                raise UnderWay(question.label) from None
            raise
        run = run_following if kind.made_from(asked) else Ledger.run
        release = self.release(run, mechanism, on, key, question.label, stored, receipts)
        following = None if kind.then is None else kind.then(asked, release)
        if following is not None:
            second = self.key(question, attempt, VALUES)
            mechanism, asked = following, replace(asked, first=release)
            label = question.label + VALUES
            release = self.release(run_following, mechanism, None, second, label, self.stored(second), receipts)
        self.keys[question.name] = key
        return worst, self.answer(asked, mechanism, release)

    def answer(self, asked: Asked, mechanism: Mechanism, release: Release) -> Answer:
        """What was released, and how it was made."""
        kind = KINDS[asked.question.kind]
        answer = kind.answer(asked, mechanism, release.output)
        drowned = is_drowned(answer, kind.accuracy(asked, mechanism), amount=kind.amount(asked))
        answer = replace(answer, drowned=drowned or answer.drowned)
        how = how_made(asked, self.study.privacy, kind, mechanism, answer)
        self.unnoticed[asked.question.name] = asked, answer
        frame = named(release.frame, asked.question.name)
        return replace(answer, frame=frame, how=how, notice=self.notice(asked, answer))

    def notice(self, asked: Asked, answer: Answer) -> str:
        """What to beware of, by all that was published so far."""
        known = [(one, self.answers[one.name].released) for one in self.study.questions if one.name in self.answers]
        return notice_of(asked, answer, known)

    def key(self, question: Question, attempt: int, step: str = "") -> str:
        """The ledger's key."""
        asked = self.questions.asked(question, Cost(0), self.answers)
        after = [self.keys[name] for name in KINDS[question.kind].made_from(asked)]
        return key_at_run(ledger_key(self.study, question, attempt, step), self.questions.size, after)

    def stored(self, key: str) -> Entry | None:
        """What the ledger has under a key."""
        try:
            return self.published.reservation(key).entry
        except UnknownEntry:
            return None

    def cost(self, question: Question, stored: Entry | None) -> Cost:
        """What it asks for now; or what it asked for then, from its reservation."""
        if stored is not None:
            return asked_then(question, stored)
        budget = self.budget.now()
        cost = self.questions.cost(question, budget, self.answers)
        if not cost.epsilon_units:
            raise BudgetExceeded(Cost.of_units(1, cost.delta_units), budget.remaining, self.ledger.name)
        if budget.meters is None and not cost <= budget.remaining:
            raise BudgetExceeded(cost, budget.remaining, self.ledger.name)
        return cost

    def worst(self, asked: Asked, mechanism: Mechanism, *, new: bool) -> Amounts:
        """What it costs at worst. A new one has room for all of its steps on one of several meters."""
        budget = self.budget.now()
        worst, _ = KINDS[asked.question.kind].charges(asked, mechanism, budget)
        if new and not self.budget.admit(worst):
            raise BudgetExceeded(budget.shown(worst), budget.remaining, self.ledger.name)
        return worst

    def built(self, asked: Asked, cost: Cost) -> Built:
        """The mechanism, and the columns that it reads."""
        try:
            return self.questions.build(asked)
        except InvalidValue as error:
            raise Unanswerable(str(error)) from None
        except TooLittle:
            raise BudgetExceeded(cost, self.budget.now().remaining, self.ledger.name) from None

    def release(
        self,
        run: Callable[..., Release],
        mechanism: Mechanism,
        on: Any,
        key: str,
        label: str,
        stored: Entry | None,
        receipts: list[Receipt],
    ) -> Release:
        """Run it, or read what it published before."""
        if stored is None:
            try:
                made = run(self.ledger, mechanism, on, key=key, label=label)
            except (AlreadyReserved, KeyConflict):  # since we looked
                raise UnderWay(label) from None
            entry = made.entry
            receipts.append(Receipt(entry.id, label, made.reserved, made.charged, False, made, _on_meters(entry)))
            return made
        if stored.state == "reserved":
            raise UnderWay(label)
        assert stored.charged is not None
        if stored.state != "settled":
            receipts.append(Receipt(stored.id, label, stored.reserved, stored.charged, True, None, _on_meters(stored)))
            raise _Lost(LOST)
        release = self.published.stored_release(mechanism, stored)
        receipts.append(Receipt(stored.id, label, stored.reserved, stored.charged, True, release, _on_meters(stored)))
        return release
