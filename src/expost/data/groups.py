"""Group-by: the same questions about every group of rows, in one charge."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from expost.checks import as_flag, equal_share, requested_epsilon
from expost.cost import Cost, Number
from expost.data.answers import joined
from expost.data.discovery import Discovery, TopKeys
from expost.data.expression import Expression
from expost.data.group_keys import GroupKey, stated_keys
from expost.data.histograms import MOST_BINS, listed_keys
from expost.data.questions import Planned, PureMechanism, TableMechanism
from expost.errors import InvalidValue
from expost.mechanism import Mechanism, Withheld
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.question import Question, Terms
from expost.questions.count import Count
from expost.questions.covariance import Correlation, Covariance
from expost.questions.mean import Mean
from expost.questions.quantile import Median, Quantile
from expost.questions.ratio import Ratio
from expost.questions.regression import LinearRegression
from expost.questions.share import Share
from expost.questions.statistic import Statistic
from expost.questions.statistics import FOUND_UNITS, Statistics
from expost.questions.sum import Sum
from expost.questions.variance import Variance

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.data.unit import Of

_Made = TypeVar("_Made")
_BEHIND = frozenset(["epsilon_of_each", "made_for_each", "of", "plan", "touched", "what"])
"""What questions and studies use of groups, and nobody types."""


@dataclass(frozen=True, repr=False)
class Groups(Planned):
    """Groups of rows by the values of one or several columns. Rows whose value is NULL, or no key, are in no group.

    Parameters
    ----------
    table
        Whose rows.
    values
        The columns or expressions to group by.
    keys
        A value for each group, or a tuple of values of several columns; empty if keys are discovered.

    Proof: thm-table-groups
    """

    table: PrivateTable
    values: tuple[Expression, ...]
    keys: tuple[Any, ...]

    @classmethod
    def of(cls, table: PrivateTable, values: Sequence[Any], keys: Any) -> Groups:
        """Checks the arguments."""
        if not values or not all(isinstance(value, str) for value in values):
            raise InvalidValue(f"groups are by one or more columns or expressions, got {brief(list(values))}")
        listed = () if keys is None else stated_keys(values, keys)
        read = tuple(table.key_column(value, stated=keys is not None) for value in values)
        if len(set(read)) < len(read):
            raise InvalidValue(f"groups are by different columns or expressions, got {brief(list(values))}")
        for place, value in enumerate(read if listed else ()):
            listed = _as_kept(listed, place, value)
        return cls(table, read, tuple(key[0] for key in listed) if len(read) == 1 else listed)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns of the keys are called."""
        return tuple(value.name for value in self.values)

    def rows(self, key: Any) -> PrivateTable:
        """The rows of one group: those whose values are equal to the key's."""
        table = self.table
        for value, wanted in zip(self.values, key if len(self.values) > 1 else (key,), strict=True):
            table = table.narrowed(value.equals(wanted))
        return table

    # ---- statistics of all groups in one charge

    def count(self, *, of: Of = "rows") -> GroupStatistic:
        """The number of rows, or units, of each group."""
        return self.asked(Count(of))

    def sum(
        self, value: str, *, bounds: Any, missing: Number | str = "drop", grid: Number | None = None
    ) -> GroupStatistic:
        """The sum of clamped values of each group, as :meth:`PrivateTable.sum`."""
        return self.asked(Sum(value, bounds, missing, grid))

    def mean(
        self, value: str, *, bounds: Any = None, missing: Number | str = "drop", grid: Number | None = None
    ) -> GroupStatistic:
        """The mean of clamped values of each group, as :meth:`PrivateTable.mean`."""
        return self.asked(Mean(value, bounds, missing, grid))

    def ratio(self, over: str, under: str, *, bounds: Any, missing: Number | str = "drop") -> GroupStatistic:
        """The sum of one column over that of another, in each group, as :meth:`PrivateTable.ratio`."""
        return self.asked(Ratio((over, under), bounds, missing))

    def share(self, condition: str, *, missing: bool | str = "drop") -> GroupStatistic:
        """The share of rows of each group for which a condition is true, as :meth:`PrivateTable.share`."""
        return self.asked(Share(condition, missing))

    def variance(self, value: str, *, bounds: Any = None, missing: Number | str = "drop") -> GroupStatistic:
        """The variance of clamped values of each group, as :meth:`PrivateTable.variance`."""
        return self.asked(Variance(value, bounds, missing))

    def covariance(
        self, first: str, second: str, *, bounds: Any = None, missing: Number | str = "drop"
    ) -> GroupStatistic:
        """The covariance of two columns in each group, as :meth:`PrivateTable.covariance`."""
        return self.asked(Covariance((first, second), bounds, missing))

    def correlation(
        self, first: str, second: str, *, bounds: Any = None, missing: Number | str = "drop"
    ) -> GroupStatistic:
        """The correlation of two columns in each group, as :meth:`PrivateTable.correlation`."""
        return self.asked(Correlation((first, second), bounds, missing))

    def regression(
        self,
        features: Sequence[str],
        target: str,
        *,
        bounds: Any,
        target_bounds: tuple[Number, Number],
        missing: Number | str = "drop",
    ) -> GroupStatistic:
        """Linear regression in each group, as :meth:`PrivateTable.regression`."""
        return self.asked(LinearRegression(features, target, bounds, target_bounds, missing))

    def quantile(self, value: str, quantile: Any, **options: Any) -> GroupStatistic:
        """A quantile of each group, as :meth:`PrivateTable.quantile`."""
        return self.asked(Quantile(value, quantile, **options))

    def median(self, value: str, **options: Any) -> GroupStatistic:
        """The median of each group, as :meth:`PrivateTable.median`."""
        return self.asked(Median(value, **options))

    def asked(self, statistic: Statistic) -> GroupStatistic:
        """A statistic of every group, as a question of its own, whose column has a name that no key has."""
        if not isinstance(statistic, Statistic):
            raise InvalidValue(
                f"groups are asked statistics, such as xp.Count(); got a {type(statistic).__name__}: ask about each "
                "group by itself, as in ask(lambda rows: rows.histogram(…))"
            )
        name = statistic.read(self.table).what
        while name in (*self.names, FOUND_UNITS):
            name += "_"
        return GroupStatistic(self, statistic, name)

    def agg(self, *unnamed: Any, total: bool = False, **statistics: GroupStatistic | Statistic) -> Statistics:
        """Several statistics of every group in one charge: ``groups.agg(n=xp.Count(), cost=xp.Mean("cost", …))``.

        Those that the groups make, such as ``groups.count()``, are taken, too. A unit counts with at most ``unit.rows``
        rows in ``unit.groups`` groups, for all statistics alike, so ε is split among the statistics but not among the
        groups. Keys that were not given are discovered: those that enough units have, for a share of ε and a δ.
        ``total=True`` adds a row for all groups together, with the statistics that add up, at no cost.
        """
        total = as_flag(total, "total")
        if unnamed or (not statistics and self.keys):
            raise InvalidValue("agg() takes statistics by name, at least one: groups.agg(n=groups.count())")
        asked = tuple(self._own(name, each) for name, each in statistics.items())
        names = [*self.names, *([] if self.keys else [FOUND_UNITS]), *statistics]
        if len(set(names)) < len(names):
            raise InvalidValue(f"columns need different names, got {', '.join(map(repr, names))}: rename one of them")
        keys = self.keys if len(self.values) > 1 else tuple((key,) for key in self.keys)
        question = Statistics(self.table, self.values, keys, tuple(statistics), asked, total)
        question.refuse_same_names()
        for name, ranks in question.ranks:
            if ranks.interval:
                raise InvalidValue(
                    f"{name!r} asks for an interval, which quantiles that are asked of all groups at once do not have: "
                    "leave it out, or ask each group by itself, as in groups.ask(lambda rows: rows.median(…, "
                    "interval=True))"
                )
        return question

    def _own(self, name: str, each: Any) -> Statistic:
        if isinstance(each, Statistic):
            return each
        if not isinstance(each, GroupStatistic):
            raise InvalidValue(
                f"agg() takes statistics, and {name!r} is a {type(each).__name__}: make it from the groups, as "
                'groups.count() or groups.mean(…), or by itself, as xp.Count() or xp.Mean("cost", bounds=…)'
            )
        if each.groups != self:
            raise InvalidValue(f"{name!r} is a statistic of other groups: make it from these")
        return each.statistic

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _BEHIND]

    @property
    def what(self) -> str:
        """What is asked of each group, which is not known here."""
        return "answer"

    @property
    def title(self) -> str:
        """The number of groups, and what they are by."""
        return f"{len(self.keys) or 'discovered'} groups by {', '.join(map(str, self.values))}"

    @cached_property
    def plan(self) -> str:
        """Empty: each group's question has its own query."""
        return ""

    @property
    def touched(self) -> int:
        """The number of groups that one unit, and the unit that replaces it, can be in.

        Proof: thm-table-groups
        """
        if self.table.unit.column is not None:
            return len(self.keys)
        return min(1 if self.table.neighbours == "add-remove" else 2, len(self.keys))

    def epsilon_of_each(self, epsilon: Number) -> float:
        """What each group has of an ε, if each is asked by itself: the whole over the groups that a unit can be in."""
        return Cost(equal_share(epsilon, self.touched)).epsilon

    def ask(self, question: Callable[[PrivateTable], Question]) -> EachGroup:
        """A question about each group by itself, made from its rows.

        ``visits.by("city", ["Rome", "Oslo"]).ask(lambda rows: rows.correlation("age", "cost", bounds=…))``. Its ε is
        shared among the groups that a unit can be in; :meth:`agg` shares none, where it has the statistic.
        """
        return EachGroup(self, self.made_for_each(question))

    def made_for_each(self, make: Callable[[PrivateTable], _Made]) -> tuple[_Made, ...]:
        """What is made from the rows of each group, in the order of the keys."""
        if not self.keys:
            raise InvalidValue("ask() needs the keys of the groups: pass them, as in by('city', keys=['Rome', 'Oslo'])")
        first = make(self.rows(self.keys[0]))  # counted before the others are made
        cells = len(getattr(getattr(first, "question", first), "labels", ())) or 1
        if cells * len(self.keys) > MOST_BINS:
            raise InvalidValue(
                f"{len(self.keys)} groups with {cells} cells each are more than {MOST_BINS} cells: use fewer of either"
            )
        return (first, *(make(self.rows(key)) for key in self.keys[1:]))


@dataclass(frozen=True, repr=False)
class GroupStatistic(Planned, Question[Any]):
    """A statistic of every group of rows, asked by itself; :meth:`Groups.agg` asks several in one charge.

    Parameters
    ----------
    groups
        The groups.
    statistic
        What is computed of each.
    name
        What its column is called.

    Proof: thm-group-by
    """

    groups: Groups
    statistic: Statistic
    name: str

    def __post_init__(self) -> None:
        _ = self._question.readings

    @property
    def table(self) -> PrivateTable:  # type: ignore[override]
        """Whose rows."""
        return self.groups.table

    @property
    def what(self) -> str:
        """The statistic."""
        return self.name

    @property
    def title(self) -> str:
        """The groups and the statistic."""
        return self._question.title

    @cached_property
    def plan(self) -> str:
        """The first query that will be run."""
        return self._question.plan

    @cached_property
    def _question(self) -> Statistics:
        return self.groups.agg(total=False, **{self.name: self.statistic})

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """As of a question with several statistics."""
        return self._question._mechanism(terms)


@dataclass(frozen=True, repr=False)
class EachGroup(Planned, Question[Any]):
    """A question about each group by itself.

    Parameters
    ----------
    groups
        The groups.
    questions
        The question about each, in the order of the keys.

    Proof: thm-table-groups
    """

    groups: Groups
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        for each in self.questions:
            if not isinstance(each, Question):
                raise InvalidValue(
                    f"ask() takes a function from the rows of a group to a question, without an ε; got a "
                    f"{type(each).__name__}: write ask(lambda rows: rows.count())"
                )
            if discovers(each):
                raise InvalidValue(
                    f"ask() has no δ to share among groups, and the {getattr(each, 'title', 'question')} takes one to "
                    "find keys: discover the keys of both at once, as in table.by('city', 'diagnosis').count()"
                )

    @property
    def table(self) -> PrivateTable:  # type: ignore[override]
        """Whose rows."""
        return self.groups.table

    @property
    def what(self) -> str:
        """What is asked of each group, which is not known here."""
        return self.groups.what

    @property
    def title(self) -> str:
        """The groups."""
        return f"questions to {self.groups.title}"

    @cached_property
    def plan(self) -> str:
        """Empty: each group's question has its own query."""
        return ""

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """The ε is shared among the groups that a unit can be in."""
        epsilon = terms.only_epsilon(f"asking {self.title}", "laplace")
        share = self.groups.epsilon_of_each(epsilon)
        made: Any = tuple(each.mechanism(epsilon=share, noise=terms.noise) for each in self.questions)
        return Grouped(question=self.groups, mechanisms=made, epsilon=requested_epsilon(epsilon))


@dataclass(frozen=True, kw_only=True, repr=False)
class Grouped(PureMechanism[Any]):
    """{key: answer} for each of several groups of rows.

    Parameters
    ----------
    question
        The groups.
    mechanisms
        The question about each group, in the order of the keys; each costs at most its share of ε.
    epsilon
        The whole budget.

    Proof: thm-table-groups
    """

    question: Groups
    mechanisms: tuple[TableMechanism[Any], ...]
    epsilon: Number

    def __post_init__(self) -> None:
        share = Cost(equal_share(self.epsilon, self.question.touched))
        if len(self.mechanisms) != len(self.question.keys):
            raise InvalidValue(f"{len(self.question.keys)} groups need one question each, got {len(self.mechanisms)}")
        for key, mechanism in zip(self.question.keys, self.mechanisms, strict=True):
            if not isinstance(mechanism, TableMechanism) or not _is_about(mechanism, self.question.rows(key)):
                raise InvalidValue(
                    f"the question about group {brief(key)} is not about its rows: make it from the rows that the "
                    "function receives"
                )
            if not mechanism.guarantee.worst_case <= share:
                raise InvalidValue(
                    f"the question about group {brief(key)} costs {mechanism.guarantee.worst_case}, more than its "
                    f"share of {share}: pass on the ε that the function receives, without δ"
                )

    def check(self, data: Any) -> None:
        """Raise unless all questions can be run."""
        super().check(data)
        for mechanism in self.mechanisms:
            mechanism.check(data)

    def check_noise(self) -> None:
        """Raise unless the noise of all of them can be sampled."""
        for mechanism in self.mechanisms:
            mechanism.check_noise()

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, Any]:
        """An answer for each group, with noise of its own."""
        answers = (mechanism.sample(data, noise) for mechanism in self.mechanisms)
        return dict(zip(self.question.keys, answers, strict=True))

    @property
    def noise_words(self) -> str:
        """That of the first group, as of all."""
        return self.mechanisms[0].noise_words

    @property
    def what(self) -> str:
        """What is asked of each group, if that is the same."""
        asked = {mechanism.what for mechanism in self.mechanisms}
        return asked.pop() if len(asked) == 1 else self.question.what

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The number of each group by its key; several of each by both keys. Masks and models stay what they are."""
        asked = zip(self.question.keys, self.mechanisms, strict=True)
        answers = {key: _answer(mechanism, output[key], (origin, key)) for key, mechanism in asked}
        return joined(self.question.names, answers, self.what)

    def describe(self, output: Any) -> str:
        """The answer of each group."""
        said_of = zip(self.question.keys, self.mechanisms, strict=True)
        return "; ".join(f"{key}: {mechanism.describe(output[key])}" for key, mechanism in said_of)


def discovers(question: Question[Any]) -> bool:
    """Whether keys are found in the data, which takes a δ."""
    asked = getattr(question, "groups", question)
    return isinstance(question, Discovery | TopKeys) or (isinstance(asked, Groups | Statistics) and not asked.keys)


def _as_kept(keys: Sequence[GroupKey], place: int, value: Expression) -> tuple[GroupKey, ...]:
    """The keys, of which those of this column are checked to be values of it, and made to."""
    distinct = dict.fromkeys(key[place] for key in keys)
    kept = dict(zip(distinct, listed_keys(value, distinct), strict=True))
    return tuple((*key[:place], kept[key[place]], *key[place + 1 :]) for key in keys)


def _answer(mechanism: TableMechanism[Any], output: Any, origin: Hashable) -> Any:
    return output if isinstance(output, Withheld) else mechanism.answer_of(output, origin)


def _is_about(mechanism: TableMechanism[Any], rows: PrivateTable) -> bool:
    """Whether it is about these rows, or some of them, with the same unit and neighbours."""
    asked: PrivateTable = mechanism.question.table
    same = (asked.engine, asked.unit, asked.neighbours) == (rows.engine, rows.unit, rows.neighbours)
    return same and asked.steps[: len(rows.steps)] == rows.steps
