"""What a kind of question is: its keys, what it may end as, how it becomes a mechanism and its output an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

from expost.cost import Cost
from expost.data import PrivateTable
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.study.grammar import Key
from expost.study.model import Question

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Answer:
    """A released answer, for people, for later questions and for the record."""

    text: str
    value: Any
    """In plain JSON."""
    error: float | None = None
    """What noise moved it by at most, with 95 % confidence; None where that is not a number."""
    outcomes: tuple[str, ...] = ()
    bars: Mapping[str, float] | None = None
    """What a plot shows, if there is one."""
    released: Any = None
    """The output itself, for later questions."""

    @property
    def number(self) -> float | None:
        """The value, if it is one number."""
        plain = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return float(self.value) if plain else None


@dataclass(frozen=True)
class Asked:
    """A question at the moment of asking: its table, its ε and δ, what was released before. No data."""

    question: Question
    table: PrivateTable
    epsilon: float
    delta: Fraction
    size: int
    """The public number of units, or 0 where it is private."""
    earlier: Mapping[str, Answer] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.question.values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """What the study says under a key."""
        return self.question.values.get(key, default)

    @property
    def rows(self) -> PrivateTable:
        """The table, with the question's own filter."""
        return self.table.where(self["where"]) if "where" in self.question.values else self.table


class Unanswerable(Exception):
    """A question that cannot be asked after what was released before; the message says why. Others can."""


class Unscaled(Unanswerable):
    """A question that needs an earlier answer which there is not."""


Build = Callable[[Asked], Mechanism]


def _nothing(asked: Asked) -> None:
    return None


@dataclass(frozen=True)
class Kind:
    """One kind of question."""

    name: str
    help: str
    keys: tuple[Key, ...]
    mechanism: Build
    answer: Callable[[Asked, Any, Any], Answer]
    """From what was asked, its mechanism and its output."""
    on: Callable[[Asked], Any] = _nothing
    then: Callable[[Asked, Any], Any] | None = None
    """A second question about the first one's output, paid with what that left of ε; None if there is none to ask."""
    cheapest: Callable[[Any], Any] | None = None
    """The output that costs least, where that is not plain from the guarantee."""
    delta: bool = False
    """Whether it needs a δ."""
    outcomes: tuple[str, ...] = ()
    example: str = ""

    @property
    def reads(self) -> bool:
        """Whether it reads columns, one value a unit."""
        return self.on is not _nothing

    def price(self, asked: Asked) -> tuple[Cost, Cost]:
        """What it costs at worst and at best."""
        mechanism = self.mechanism(asked)
        claim = mechanism.guarantee
        best = claim.best_case if self.cheapest is None else claim.cost_of(mechanism.part_of(self.cheapest(mechanism)))
        worst = claim.worst_case if self.then is None else Cost.within(Fraction(str(asked.epsilon)), asked.delta)
        return worst, best


WHERE = Key("where", "text", "only rows for which this is true: age >= 18 AND city <> 'Rome'")
COLUMN = Key("column", "text", "a column, or an expression such as cost / 100", required=True)
COUNTED = Key("count", "text", "what is counted: rows, or units", choices=("rows", "units"))


def number_text(value: float) -> str:
    """A number as people read it."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def with_error(value: float, error: float | None) -> str:
    """A number and what noise may have moved it by, to the error's second digit; the error rounds up."""
    if error is None or error <= 0 or isinstance(value, int):
        return number_text(value) if error is None else f"{number_text(value)} ± {number_text(error)}"
    places = max(0, 1 - floor(log10(error)))
    return f"{value:,.{places}f} ± {ceil(error * 10**places) / 10**places:,.{places}f}"


def need_columns(asked: Asked) -> None:
    """What rank statistics and models need, said before any charge."""
    if asked.table.neighbours != "substitute":
        raise InvalidValue(
            f'{asked.question.kind!r} needs the number of units to be public: say neighbours = "substitute" in '
            "[privacy], or ask for counts, sums and histograms"
        )
