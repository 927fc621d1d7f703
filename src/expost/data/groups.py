"""Group-by: the same questions about every group of rows, in one charge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from expost.checks import equal_share, requested_epsilon
from expost.cost import Cost, Number
from expost.data.aggregates import GroupAggregate, GroupCount, GroupMean, GroupSum, GroupVariance
from expost.data.expression import KEY_KINDS, NUMBER_KINDS, Expression
from expost.data.expression.tree import references
from expost.data.group_answers import GroupAnswers, GroupQuestion
from expost.data.group_keys import stated_keys
from expost.data.histograms import listed_keys
from expost.data.quantiles import Ranks
from expost.data.questions import Planned, PureMechanism, TableMechanism, as_of
from expost.data.sums import Clipped
from expost.errors import InvalidValue
from expost.frame import ERROR, IN_RANKS
from expost.mentions import brief
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.data.table import Of, PrivateTable


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
        read = tuple(table.expression(value, KEY_KINDS, "a key") for value in values)
        if len(set(read)) < len(read):
            raise InvalidValue(f"groups are by different columns or expressions, got {brief(list(values))}")
        for value, column in zip(read, zip(*listed, strict=True), strict=False):
            listed_keys(value, dict.fromkeys(column))
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

    def count(self, *, of: Of = "rows") -> GroupCount:
        """The number of rows, or units, of each group."""
        as_of(of)
        return GroupCount(of)

    def sum(self, value: str, *, bounds: Any, missing: Number | str = "drop", grid: Number | None = None) -> GroupSum:
        """The sum of clamped values of each group, as :meth:`PrivateTable.sum`."""
        return GroupSum(Clipped.of(self._number(value, "a sum"), bounds, missing, grid))

    def mean(self, value: str, *, bounds: Any, missing: Number | str = "drop", grid: Number | None = None) -> GroupMean:
        """The mean of clamped values of each group, as :meth:`PrivateTable.mean`."""
        return GroupMean(Clipped.of(self._number(value, "a mean"), bounds, missing, grid))

    def variance(self, value: str, *, bounds: Any, missing: Number | str = "drop") -> GroupVariance:
        """The variance of clamped values of each group, as :meth:`PrivateTable.variance`."""
        one = self.table.variance(value, bounds=bounds, missing=missing)
        return GroupVariance(one.values[0], one.bounds[0], one.missing)

    def _number(self, value: str, purpose: str) -> Expression:
        return self.table.expression(value, NUMBER_KINDS, purpose)

    def quantile(self, value: str, quantile: Any, **options: Any) -> Ranks:
        """A quantile of each group, as :meth:`PrivateTable.quantile`."""
        return self.table.quantile(value, quantile, **options)

    def median(self, value: str, **options: Any) -> Ranks:
        """The median of each group, as :meth:`PrivateTable.median`."""
        return self.table.median(value, **options)

    def answers(
        self, *, epsilon: Number, delta: Number = 0, total: bool = False, **statistics: GroupAggregate | Ranks
    ) -> GroupAnswers:
        """Statistics of every group in one charge: ``groups.answers(epsilon=1, n=groups.count())``.

        A unit counts with at most ``unit.rows`` rows in ``unit.groups`` groups, for all statistics alike, so ε is split
        among the statistics but not among the groups. Keys that were not given are discovered: those that enough units
        have, for a share of ε and ``delta``. ``total`` adds a row for all groups together, with the statistics that add
        up, at no cost.
        """
        wrong = [name for name, each in statistics.items() if not isinstance(each, GroupAggregate | Ranks)]
        if wrong or (not statistics and self.keys):
            raise InvalidValue("answers() takes statistics by name, at least one: answers(epsilon=1, n=groups.count())")
        names = [*self.names, *([] if self.keys else ["units"]), *statistics]
        errors = {f"{name}{end}" for name in statistics for end in (ERROR, IN_RANKS)}
        if len({*names, *errors}) < len(names) + len(errors):
            raise InvalidValue(
                f"columns and their errors need different names, got {', '.join(map(repr, names))}: rename one of them"
            )
        for name, each in statistics.items():
            if (isinstance(each, Ranks) and each.table != self.table) or not self._has(each):
                raise InvalidValue(f"{name!r} is a statistic of another table: make it from these groups")
        keys = self.keys if len(self.values) > 1 else tuple((key,) for key in self.keys)
        asked = GroupQuestion(self.table, self.values, keys, tuple(statistics), tuple(statistics.values()), bool(total))
        return GroupAnswers(question=asked, epsilon=epsilon, delta=delta)

    def _has(self, statistic: GroupAggregate | Ranks) -> bool:
        """Whether this table has its columns, of the same kinds; otherwise its SQL might fail on some rows."""
        value = statistic.value.expression if isinstance(statistic, Ranks) else statistic.expression
        return value is None or all(self.table.schema.get(one.name) == one.kind for one in references(value.tree))

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

    def ask(self, question: Callable[[PrivateTable, float], TableMechanism[Any]], *, epsilon: Number) -> Grouped:
        """A question about each group, made from its rows and its ε: the whole ε over the groups that a unit can be in.

        ``visits.by("city", ["Rome", "Oslo"]).ask(lambda rows, e: rows.mean("cost", bounds=(0, 9)).laplace(epsilon=e),
        epsilon=1)``
        """
        if not self.keys:
            raise InvalidValue("ask() needs the keys of the groups: pass them, as in by('city', keys=['Rome', 'Oslo'])")
        share = Cost(equal_share(epsilon, self.touched)).epsilon
        made = tuple(question(self.rows(key), share) for key in self.keys)
        return Grouped(question=self, mechanisms=made, epsilon=requested_epsilon(epsilon))


@dataclass(frozen=True, kw_only=True, repr=False)
class Grouped(PureMechanism[dict[Any, Any]]):
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

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, Any]:
        """An answer for each group, with noise of its own."""
        answers = (mechanism.sample(data, noise) for mechanism in self.mechanisms)
        return dict(zip(self.question.keys, answers, strict=True))

    def describe(self, output: Any) -> str:
        """The answer of each group."""
        said_of = zip(self.question.keys, self.mechanisms, strict=True)
        return "; ".join(f"{key}: {mechanism.describe(output[key])}" for key, mechanism in said_of)


def _is_about(mechanism: TableMechanism[Any], rows: PrivateTable) -> bool:
    """Whether it is about these rows, or some of them, with the same unit and neighbours."""
    asked: PrivateTable = mechanism.question.table
    same = (asked.engine, asked.unit, asked.neighbours) == (rows.engine, rows.unit, rows.neighbours)
    return same and asked.steps[: len(rows.steps)] == rows.steps
