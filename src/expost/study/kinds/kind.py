"""What a kind of question is: its keys, what it may end as, how it becomes a mechanism and its output an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

from expost.accounting.amounts import Amounts
from expost.accounting.capacities import LedgerMeters
from expost.cost import Cost
from expost.data import Column, PrivateTable
from expost.errors import InvalidValue
from expost.frame import Frame, number_text
from expost.guarantee import Guarantee
from expost.ledger.imagined import Imagined
from expost.mechanism import Mechanism, Release
from expost.mentions import brief, printable
from expost.question import Question as Asking
from expost.questions import NoisyStatistics, QuestionRecord
from expost.study.grammar import Key
from expost.study.model import Question

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Answer:
    """A released answer, for people, for later questions and for the record."""

    text: str
    """In words, on one line, with nothing in it that a terminal would obey."""
    value: Any
    """In plain JSON."""
    error: float | None = None
    """What noise moved it by at most, with 95 % confidence; None where that is not one number."""
    outcomes: tuple[str, ...] = ()
    beside: str | None = None
    """What is said beside a table of its numbers, which then stands for the text; None if the text says it best."""
    labels: tuple[str, ...] = ()
    """What its rows are called, where that reads better than their keys: bins of whole numbers."""
    frame: Frame | None = None
    """Its rows, as its release has them."""
    released: Any = None
    """The output itself, for later questions."""
    how: Mapping[str, str] = field(default_factory=dict)
    """How it was made, in words, by subject."""
    notice: str = ""
    """What to beware of."""
    drowned: bool = False
    """Whether noise is larger than the answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))

    @property
    def number(self) -> float | None:
        """The value, if it is one number."""
        plain = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return float(self.value) if plain else None


TYPICAL_SIZE = 1_000
"""Values that count, where their number is private and the study does not say how many to expect."""


@dataclass(frozen=True)
class Asked:
    """A question at the moment of asking: its table, its ε and δ, what was released before. No data."""

    question: Question
    table: PrivateTable
    epsilon: float
    delta: Fraction
    size: int
    """The public number of units, or a usual one while it was not looked at; 0 where it is private."""
    earlier: Mapping[str, Answer] = field(default_factory=dict)
    meters: LedgerMeters | None = None
    """By which its noise is priced, if the ledger has others than the basic sum."""
    replayed: bool = False
    """Whether it was asked before, and ε and δ are those of its mechanism then."""
    sized: bool = True
    """Whether the number of units is that of the data."""
    expected: int = 0
    """About how many rows will count, as the study says; 0 if it does not. Only plans reckon with it."""
    first: Release | None = None
    """What the first of its two questions released, once it did."""

    def __getitem__(self, key: str) -> Any:
        return self.question.values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """What the study says under a key."""
        return self.question.values.get(key, default)

    def given(self, *keys: str) -> dict[str, Any]:
        """Those of these keys that the study has, for parameters of the same names."""
        return {key: self[key] for key in keys if key in self.question.values}

    @property
    def rows(self) -> PrivateTable:
        """The table, with the question's own filter."""
        return self.table.where(self["where"]) if "where" in self.question.values else self.table

    def made(self, question: Asking, **terms: Any) -> Mechanism:
        """The mechanism of a question to a table, for the ε of this one unless another is stated."""
        mechanism: Mechanism = question.mechanism(**{"epsilon": self.epsilon, **terms})
        return mechanism

    def noised(self, question: Asking) -> Mechanism:
        """The question with the noise that was asked for: by default Laplace."""
        wanted, replayed = self.get("noise", "laplace"), self.replayed
        if wanted == "laplace" or (replayed and not self.delta):
            return self.made(question)
        if not self.delta and self.meters is None:
            raise InvalidValue(
                "Gaussian noise needs a δ where the basic sum is the only meter: leave 'noise' out, or state 'delta'"
            )
        normal = self.made(question, delta=self.delta, noise="gaussian", meters=self.meters)
        if wanted == "gaussian" or replayed:
            return normal
        return min(self.made(question), normal, key=_first_error)

    @property
    def columns(self) -> Column:
        """The column, or features and target: read when they are paid for, one value for each unit."""
        if self.table.neighbours != "substitute":
            raise InvalidValue(
                f"{self.question.kind!r} needs the number of units to be public: ask for a median, counts, sums or "
                'histograms; or, only if anybody may know that number, state neighbours = "substitute" in [privacy]'
            )
        names = (self["column"],) if "column" in self.question.values else (*self["features"], self["target"])
        return self.table.column(*names)

    @property
    def most_values(self) -> int | None:
        """The most values that can count, where that is public."""
        return self.size * self.table.unit.rows or None if self.sized else None

    def likely(self, groups: int = 1) -> int:
        """How many values may count, in each of some groups, where that is private."""
        return self.expected // groups or TYPICAL_SIZE

    def part(self, share: Fraction) -> float:
        """A share of its ε, rounded down."""
        return Cost.within(Fraction(str(self.epsilon)) * share).epsilon


@dataclass(frozen=True)
class Accuracy:
    """How far noise will move an answer at most, in 95 of 100 cases: known before it is asked."""

    error: float
    about: str = ""
    """Of what, if not of the answer itself."""
    relative: bool = False
    """Whether the error is a share of the true answer."""
    within: float | None = None
    """How wide the range is that the answer lies in whatever the data is, where that is public."""
    nominal: bool = False
    """Whether the error is for a number of values that nobody stated."""

    @property
    def drowned(self) -> bool:
        """Whether noise is known to move the answer across its whole range, so that it says nothing.

        That is the rule before an answer is paid for; :func:`is_drowned` is the one for the answer itself.
        """
        return self.within is not None and not self.nominal and 2 * self.error >= self.within

    def __str__(self) -> str:
        shown = f"{number_text(100 * self.error)} % of the answer" if self.relative else number_text(self.error)
        about = self.about.replace("ranks", "rank") if self.error == 1 else self.about
        return f"± {shown} {about}".rstrip()


@dataclass(frozen=True)
class NoBar:
    """Why nothing is known of an answer's accuracy before it is asked."""

    why: str
    later: bool = False
    """Whether the answer will have an error bar all the same."""

    def __str__(self) -> str:
        return f"the error bar comes with the answer: {self.why}" if self.later else f"no error bar: {self.why}"


DROWNED = "noise is larger than the answer"
SAYS_NOTHING = "noise is larger than the answer can be, so it would say nothing"


def is_drowned(answer: Answer, expected: Accuracy | NoBar, *, amount: bool) -> bool:
    """Whether noise is larger than an answer: than its range, or, of amounts, than all of its numbers."""
    if answer.value is None:  # withheld
        return False
    if isinstance(expected, Accuracy) and answer.error is not None:
        expected = replace(expected, error=answer.error, nominal=False)
    if isinstance(expected, Accuracy) and expected.drowned:
        return True
    numbers = _numbers_of(answer.value)
    if not amount or not answer.error or not numbers:
        return False
    return answer.error >= max(map(abs, numbers))


def _numbers_of(value: Any) -> list[float]:
    each = value.values() if isinstance(value, Mapping) else [value]
    return [float(one) for one in each if isinstance(one, int | float) and not isinstance(one, bool)]


def _first_error(mechanism: Any) -> float:
    """What two kinds of noise are compared by."""
    if isinstance(mechanism, NoisyStatistics):
        return mechanism.first_bound
    return float(mechanism.error_bound(CONFIDENCE))


class Unanswerable(Exception):
    """A question that cannot be asked after what was released before; the message says why. Others can."""


class Unscaled(Unanswerable):
    """A question that needs an earlier answer that was not released."""


@dataclass(frozen=True)
class OfGroups:
    """How a kind is asked about all groups of rows in one charge."""

    answer: Callable[[Asked, Any, float | None], Answer]
    """From the value of one group, and its error: of quantiles in ranks."""
    about: str = "each"
    """What the error is of."""
    within: Callable[[Asked], float | None] = lambda asked: None
    """How wide the range is that the answer of a group lies in whatever the data is."""


@dataclass(frozen=True)
class QuestionKind:
    """One kind of question."""

    name: str
    help: str
    keys: tuple[Key, ...]
    asks: type[QuestionRecord[Any]] | Callable[[Asked], Mechanism]
    """The record of its settings; or how it becomes a mechanism, if no record of a table says it."""
    answer: Callable[[Asked, Any, Any], Answer]
    """From what was asked, its mechanism and its output."""
    example: str
    accuracy: Callable[[Asked, Any], Accuracy | NoBar]
    """What can be expected of an answer, or why that is not known before."""
    reads: bool = False
    """Whether it reads columns, one value for each unit, instead of asking the table itself."""
    delta: bool = False
    """Whether it always needs a δ."""
    number: bool = False
    """Whether its answer is one number, which conditions can compare."""
    outcomes: tuple[str, ...] = ()
    then: Callable[[Asked, Release], Mechanism | None] | None = None
    """A second question about the first one's output, paid with the ε that this did not use; None if nothing is."""
    first_share: Callable[[Question], Fraction] = lambda question: Fraction(1)
    """The share of ε that the first of two questions gets."""
    cheapest: Callable[[Any], Any] | None = None
    """The output that costs least, where the guarantee does not say."""
    made_from: Callable[[Asked], Mapping[str, Any]] = lambda asked: {}
    """What it takes from earlier answers, by their questions' names. The ledger's key has the keys of those."""
    may_lack: Callable[[Question], bool] = lambda question: False
    """Whether it may be passed over, because an earlier answer was not released."""
    noise: str = ""
    """What makes its answers private, in words, where that is not noise added to numbers."""
    covers: str = "noise, in 95 of 100 cases; not what clipping to bounds or leaving out rows changes"
    """What ± in its answers covers."""
    cells: bool = False
    """Whether it counts cells, of which one unit may be in several."""
    amount: Callable[[Asked], bool] = lambda asked: False
    """Whether its numbers are amounts, none below 0: then noise as large as they are leaves nothing of them."""
    from_zero: bool = False
    """Whether its numbers are counts or sums: drawn as bars from zero, and all others as points."""
    stand_in: Answer | None = None
    """Stands for its answer while later questions are planned."""
    of_groups: OfGroups | None = None
    """How groups are asked all at once; None if each is asked by itself."""
    numbers: Callable[[Mapping[str, Any]], int] = lambda values: 1 + listed(values)
    """The most numbers that one answer has, from its settings alone; a name of many characters counts as several."""
    noised: Callable[[Asked, Any], Mechanism] = lambda asked, question: asked.made(question)
    """The mechanism of a question to a table."""
    made: Callable[[Asked], Mechanism] | None = None
    """How it becomes a mechanism in two steps, or for each of several groups; its record says what is asked."""

    @property
    def record(self) -> type[QuestionRecord[Any]] | None:
        """The record of its settings, if it asks a table."""
        return cast("type[QuestionRecord[Any]]", self.asks) if isinstance(self.asks, type) else None

    def mechanism(self, asked: Asked) -> Mechanism:
        """The mechanism of a question, from public facts alone."""
        if self.made is not None:
            return self.made(asked)
        if not isinstance(self.asks, type):
            return self.asks(asked)
        question: Any = asked.rows.asked(self.record_of(asked.question.values))
        return self.noised(asked, question)

    def record_of(self, values: Mapping[str, Any]) -> QuestionRecord[Any]:
        """What a study asks with these values."""
        record, own = self.record, self._recorded
        assert record is not None
        return record.from_settings(
            {name: key.read(values[key.name]) for name, key in own.items() if key.name in values}
        )

    def stated(self, record: QuestionRecord[Any]) -> dict[str, Any]:
        """How a study asks what a record says. Raises ``InvalidValue`` for a setting that it has no words for."""
        own = self._recorded
        found = record.settings(*(name for name, key in own.items() if key.required))
        for name, value in found.items():
            if name not in own or own[name].wrong(value):
                raise InvalidValue(
                    f"a {self.name} with {name}={brief(getattr(record, name))} has no words in a study, nor in a "
                    "question to a service: leave that out"
                )
        return {own[name].name: value for name, value in found.items()}

    @property
    def _recorded(self) -> dict[str, Key]:
        """The keys of what its record has, by the names there."""
        names = () if self.record is None else self.record.names()
        return {key.setting or key.name: key for key in self.keys if (key.setting or key.name) in names}

    def charges(self, asked: Asked, mechanism: Mechanism, budget: Imagined) -> tuple[Amounts, Amounts]:
        """What it costs at worst and at best."""
        cheapest = None if self.cheapest is None else mechanism.part_of(self.cheapest(mechanism))
        worst, best = budget.charges(mechanism, cheapest)
        if self.then is None:
            return worst, best
        whole, _ = budget.charges(Guarantee.uniform(Cost.within(Fraction(str(asked.epsilon))).exact_epsilon))
        price = whole.renyi + worst.renyi  # the second question has less than the whole ε
        return whole._replace(renyi=price), best

    def size(self, question: Question) -> int:
        """The most numbers that all answers to a question have together, its repetitions and second steps included."""
        times = question.repeat.at_most if question.repeat else 1
        return max(1, self.numbers(question.values)) * times * (1 if self.then is None else 2)

    def needs_delta(self, values: Mapping[str, Any]) -> bool:
        """Whether it needs a δ with these settings."""
        discovered = "by" in values and "by_keys" not in values and self.of_groups is not None
        return self.delta or discovered or any(values.get(key.name) in key.needs_delta for key in self.keys)

    def refers_to(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The earlier questions that its settings name, by key."""
        named = {key.name: values.get(key.name) for key in self.keys if key.refers_to}
        return {key: name for key, name in named.items() if isinstance(name, str)}


_SHORT = 100
"""Characters of a name that take as much room as a number."""


def name_size(name: Any) -> int:
    """How many numbers a name takes the room of."""
    return max(1, -(-len(name) // _SHORT)) if isinstance(name, str) else 1


def listed(values: Mapping[str, Any], *which: str) -> int:
    """How many things are listed in these settings, or in all but those of groups."""
    lists = [values.get(name) for name in which or set(values) - {"by", "by_keys"}]
    return sum(name_size(each) for found in lists if isinstance(found, list) for each in found)


def always(asked: Asked) -> bool:
    """Whatever is asked."""
    return True
