"""The same question about every group of rows, in one charge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from expost.checks import equal_share, requested_epsilon
from expost.cost import Cost, Number, said
from expost.data.aggregates import GroupAggregate, GroupCount, GroupMean, GroupSum, GroupVariance
from expost.data.expression import Tree
from expost.data.expression.tree import references
from expost.data.group_answers import GroupAnswers, GroupQuestion
from expost.data.group_keys import stated_keys
from expost.data.histograms import listed_keys
from expost.data.quantiles import Ranks
from expost.data.questions import Planned, PureMechanism, TableMechanism, as_of
from expost.data.sums import Clipped
from expost.errors import InvalidValue
from expost.frame import ERROR, IN_RANKS
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.data.table import Of, PrivateTable


@dataclass(frozen=True, repr=False)
class Groups(Planned):
    """Groups of rows by a value, which are stated. Rows with another value, or none, are in no group.

    Proof: thm-table-groups
    """

    table: PrivateTable
    text: str
    keys: tuple[Any, ...]
    """A value for each group, or a tuple of values of several columns; empty if they are discovered."""
    more: tuple[str, ...] = ()
    """Further columns."""

    @classmethod
    def of(cls, table: PrivateTable, values: Sequence[Any], keys: Any) -> Groups:
        """Checks what was given."""
        if not values or not all(isinstance(value, str) for value in values) or len(set(values)) < len(values):
            raise InvalidValue("groups are told apart by columns or expressions, each once: by('city', 'year', keys=…)")
        listed = () if keys is None else stated_keys(values, keys)
        one = tuple(key[0] for key in listed) if len(values) == 1 else listed
        groups = cls(table, values[0], one, tuple(values[1:]))
        _ = groups.trees
        for text, tree, column in zip(groups.texts, groups.trees, zip(*listed, strict=True), strict=False):
            listed_keys(text, tree, dict.fromkeys(column))
        return groups

    @property
    def texts(self) -> tuple[str, ...]:
        """What tells groups apart."""
        return (self.text, *self.more)

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The same as expressions."""
        return tuple(self.table.expression(text, ("text", "integer", "boolean"), "a key") for text in self.texts)

    def rows(self, key: Any) -> PrivateTable:
        """The rows of one group."""
        table = self.table
        for text, value in zip(self.texts, key if self.more else (key,), strict=True):
            written = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"{value}"
            table = table.where(f"({text}) = {written}")
        return table

    # ---- statistics of all groups in one charge

    def count(self, *, of: Of = "rows") -> GroupCount:
        """How many rows, or units, each group has."""
        as_of(of)
        return GroupCount(of)

    def sum(self, value: str, *, bounds: Any, missing: Number | str = "drop", grid: Number | None = None) -> GroupSum:
        """The sum of clamped values of each group, as :meth:`PrivateTable.sum`."""
        return GroupSum(Clipped.of(self.table, value, bounds, missing, grid))

    def mean(self, value: str, *, bounds: Any, missing: Number | str = "drop", grid: Number | None = None) -> GroupMean:
        """The mean of clamped values of each group, as :meth:`PrivateTable.mean`."""
        return GroupMean(Clipped.of(self.table, value, bounds, missing, grid))

    def variance(self, value: str, *, bounds: Any, missing: Number | str = "drop") -> GroupVariance:
        """The variance of clamped values of each group, as :meth:`PrivateTable.variance`."""
        one = self.table.variance(value, bounds=bounds, missing=missing)
        return GroupVariance(value, one.bounds[0], one.missing, one.trees[0])

    def quantile(self, value: str, quantile: Any, **said: Any) -> Ranks:
        """A quantile of each group, as :meth:`PrivateTable.quantile`."""
        return self.table.quantile(value, quantile, **said)

    def median(self, value: str, **said: Any) -> Ranks:
        """The median of each group, as :meth:`PrivateTable.median`."""
        return self.table.median(value, **said)

    def answers(
        self, *, epsilon: Number, delta: Number = 0, total: bool = False, **statistics: GroupAggregate | Ranks
    ) -> GroupAnswers:
        """Statistics of every group in one charge: ``groups.answers(epsilon=1, n=groups.count())``.

        One unit has at most ``unit.rows`` rows in ``unit.groups`` groups, all statistics together; ε is shared among
        the statistics, not among the groups. Keys that were not stated are found: those that enough units have, for a
        share of ε and ``delta``. ``total`` adds a row for all groups together, of what adds up, at no cost.
        """
        wrong = [name for name, each in statistics.items() if not isinstance(each, GroupAggregate | Ranks)]
        if wrong or (not statistics and self.keys):
            raise InvalidValue("name the statistics, at least one: answers(epsilon=1, n=groups.count())")
        names = [*self.texts, *([] if self.keys else ["units"]), *statistics]
        errors = {f"{name}{end}" for name in statistics for end in (ERROR, IN_RANKS)}
        if len({*names, *errors}) < len(names) + len(errors):
            raise InvalidValue(f"columns have different names, got {', '.join(map(repr, names))}")
        for name, each in statistics.items():
            if (isinstance(each, Ranks) and each.table != self.table) or not self._has(each):
                raise InvalidValue(f"{name!r} is about another table: make it of these groups")
        keys = self.keys if self.more else tuple((key,) for key in self.keys)
        asked = GroupQuestion(
            self.table, self.texts, keys, tuple(statistics), tuple(statistics.values()), bool(total), self.trees
        )
        return GroupAnswers(asked, epsilon, delta)

    def _has(self, statistic: GroupAggregate | Ranks) -> bool:
        """Whether its columns are this table's, of the same kinds: else what is rendered might fail on some rows."""
        tree = statistic.value.expression if isinstance(statistic, Ranks) else statistic.tree
        return tree is None or all(self.table.schema.get(each.name) == each.kind for each in references(tree))

    @property
    def title(self) -> str:
        """How many groups by what."""
        return f"{len(self.keys) or 'discovered'} groups by {', '.join(self.texts)}"

    @cached_property
    def plan(self) -> str:
        """Nothing is asked but what is asked about each group."""
        return ""

    @property
    def touched(self) -> int:
        """In how many groups one unit can be, the one that it is exchanged for included.

        Proof: thm-table-groups
        """
        if self.table.unit.column is not None:
            return len(self.keys)
        return min(1 if self.table.neighbours == "add-remove" else 2, len(self.keys))

    def ask(self, question: Callable[[PrivateTable, float], TableMechanism[Any]], *, epsilon: Number) -> Grouped:
        """A question about each group, made of its rows and of its ε: all of ε over the groups that a unit can be in.

        ``visits.by("city", ["Rome", "Oslo"]).ask(lambda rows, e: rows.mean("cost", bounds=(0, 9)).laplace(epsilon=e),
        epsilon=1)``
        """
        if not self.keys:
            raise InvalidValue("a question about each group needs stated keys: by('city', keys=['Rome', 'Oslo'])")
        share = Cost(equal_share(epsilon, self.touched)).epsilon
        made = tuple(question(self.rows(key), share) for key in self.keys)
        return Grouped(self, made, requested_epsilon(epsilon))


@dataclass(frozen=True, repr=False)
class Grouped(PureMechanism[dict[Any, Any]]):
    """{key: answer} for each of several groups of rows.

    Parameters
    ----------
    question
        The groups.
    mechanisms
        What is asked about each of them, in the order of its keys: each costs a share of ε at most.
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
            raise InvalidValue(f"there is a question for each of {len(self.question.keys)} groups")
        for key, mechanism in zip(self.question.keys, self.mechanisms, strict=True):
            if not isinstance(mechanism, TableMechanism) or not _is_about(mechanism, self.question.rows(key)):
                raise InvalidValue(f"the question about group {said(key)} asks its rows: make it of the rows given")
            if not mechanism.guarantee.worst_case <= share:
                raise InvalidValue(f"a question about one group costs at most {share}: pass on the ε given, without δ")

    def check(self, data: Any) -> None:
        """All questions can be asked."""
        super().check(data)
        for mechanism in self.mechanisms:
            mechanism.check(data)

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, Any]:
        """An answer for each group, with noise of its own."""
        answers = (mechanism.sample(data, noise) for mechanism in self.mechanisms)
        return dict(zip(self.question.keys, answers, strict=True))

    def describe(self, output: Any) -> str:
        """The answer of each group."""
        said_of = zip(self.question.keys, self.mechanisms, strict=True)
        return "; ".join(f"{key}: {mechanism.describe(output[key])}" for key, mechanism in said_of)


def _is_about(mechanism: TableMechanism[Any], rows: PrivateTable) -> bool:
    """Whether it asks these rows, or some of them, for the same unit and neighbours."""
    asked: PrivateTable = mechanism.question.table
    same = (asked.engine, asked.unit, asked.neighbours) == (rows.engine, rows.unit, rows.neighbours)
    return same and asked.steps[: len(rows.steps)] == rows.steps
