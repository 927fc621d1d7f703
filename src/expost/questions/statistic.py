"""What a statistic is: whole numbers that engines add up, how far one unit moves them, and what is made of them.

A statistic is defined once, for tables and for groups of their rows, on every engine. To write a new one: a class of
its settings (:class:`Statistic`), and a class of what they mean for a table (:class:`Reading`). In ``ratio.py`` each
number has a part of ε; in ``share.py`` all of ε is for two numbers at once, as a row can only be in one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from expost.data import sensitivity
from expost.data.expression import Expression
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mentions import brief
from expost.question import OpenQuestion
from expost.questions.noised import Noised

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from expost.data.table import PrivateTable

    AQuestion = TypeVar("AQuestion", default=Any)
else:
    from typing import TypeVar

    AQuestion = TypeVar("AQuestion")  # what it is of a table, as a question

ColumnOf = str | Expression
"""A column or an expression: its text, or what that was parsed to."""
Total = Callable[[str], str]
"""The exact sum of a column, in the SQL of an engine."""


@dataclass(frozen=True)
class Reach:
    """How far one unit moves numbers that are added up over the rows that count: of a table, or of all its groups.

    Parameters
    ----------
    rows, groups
        The most rows of a unit that count, and the most groups that they are in.
    cells
        The number of groups: 1 for a whole table; of discovered groups more than a unit and its substitute can be in.
    fewest
        The fewest rows that a unit can have.
    neighbours
        The relation.
    """

    rows: int
    groups: int
    cells: int
    fewest: int
    neighbours: Neighbours

    def sums(self, low: int, high: int, *, dropped: bool) -> Sensitivity:
        """Of sums of values between ``low`` and ``high``; ``dropped`` if a unit's rows may have none.

        Proof: lem-sum, lem-grouped-sums
        """
        if self.cells == 1:
            ends = sensitivity.of_sum(self._fewest(dropped), self.rows, low, high)
            return sensitivity.of_number(*ends, self.neighbours)
        far = self._sides * self.rows * max(abs(low), abs(high))
        return Sensitivity(far, far * far, far)

    def counts(self, *, dropped: bool, kinds: int = 1) -> Sensitivity:
        """Of numbers of rows; of each of several kinds, if every row is of one of them.

        Proof: lem-histogram
        """
        return sensitivity.of_rows(self._fewest(dropped), self.rows, kinds * self.cells, self.neighbours)

    @property
    def units(self) -> Sensitivity:
        """Of numbers of units.

        Proof: lem-histogram
        """
        return sensitivity.of_units(self.fewest, self.groups, self.cells, self.neighbours)

    def products(self, values: int, steps: int, *, dropped: bool) -> Sensitivity:
        """Of the number of rows, the sums of values, and those of their products, all together.

        All are in units of 1/steps², of values from −1 to 1.

        Proof: thm-table-moments, lem-grouped-products
        """
        numbers, whole = (values + 1) * (values + 2) // 2, steps**2
        if self.one_row_each(dropped=dropped):
            far = floor(Fraction(values * (values + 2) ** 2, 2 * (values + 1)) * whole)
            return Sensitivity(far, 2 * numbers * whole**2, 2 * whole)
        alone = self.cells == 1
        far = (1 if alone else self._sides) * self.rows * numbers * whole
        return Sensitivity(far, self._sides * numbers * (self.rows * whole) ** 2, self._sides * self.rows * whole)

    def one_row_each(self, *, dropped: bool) -> bool:
        """Whether every unit has exactly one row that counts, as in all neighbours: so that their number is public."""
        return (self.cells, self.rows, self.neighbours) == (1, 1, "substitute") and self._fewest(dropped) == 1

    def _fewest(self, dropped: bool) -> int:
        return 0 if dropped else self.fewest

    @property
    def _sides(self) -> int:
        return 1 if self.neighbours == "add-remove" else 2


@dataclass(frozen=True)
class Sums:
    """Whole numbers that the engine adds up over the rows that count; they have noise of one scale.

    Parameters
    ----------
    sql
        What is added up.
    moved
        How far one unit moves them: all together, and in all groups.
    share
        Their share of what the statistic may cost: of ε, or of 1/σ² where noise is Gaussian. All ``Sums`` of a
        statistic have 1 together. Numbers in one ``Sums`` are not split: their noise is for how far all of them move.
    times
        What each is multiplied by.
    public
        How many of them, the first ones, are the same on all neighbours, and have no noise: the law of theirs is None.
    """

    sql: tuple[str, ...]
    moved: Sensitivity
    share: Fraction = Fraction(1)
    times: tuple[int, ...] = ()
    public: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", self.times or (1,) * len(self.sql))


class Reading(ABC):
    """A statistic of a certain table: its columns are parsed, its settings checked."""

    values: tuple[Expression, ...] = ()
    """What it is computed from."""
    dropped: bool = False
    """Whether rows without a value do not count."""
    step: Fraction | None = None
    """Of a statistic that is one noisy number: what one unit of that number is. None if more is computed."""
    adds_up: bool = True
    """Whether the numbers of all groups together are the sums of theirs."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is asked, with the rules for values."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What is asked, in a few words."""

    def cells(self, values: Sequence[str]) -> list[str]:
        """What a row adds, in SQL: whole numbers made of these values, NULL where they do not count.

        There is one for each of ``values``, of the kind that ``read`` asked for. A unit's rows with the same cells are
        alike where only some of them count.
        """
        return []

    @abstractmethod
    def sums(self, cells: Sequence[str], reach: Reach, total: Total, *, missing: bool) -> tuple[Sums, ...]:
        """What is added up; ``missing`` if cells may be NULL: not where rows without a value were left out before.

        What is public depends on ``reach``, and :meth:`answer` tells it by the laws of the noise.
        """

    @abstractmethod
    def answer(self, noised: Noised) -> Any:
        """What is made of the noisy numbers: an estimate, or a model."""

    def of_size(self, values: int) -> tuple[int, ...]:
        """Noisy numbers of that many rows, in the order of ``sums``, for which the error is largest: for plans.

        They hold whatever :meth:`sums` gave, also where the number of rows is public.
        """
        return (0,)

    def present(self, number: int) -> float:
        """The noisy number of a statistic that is one, as people read it."""
        return int(number)


class Statistic(OpenQuestion, Generic[AQuestion]):
    """A statistic of rows: a frozen record of settings, without an ε and without data.

    Its fields are the parameters of the table's method of that name, in their order, and what ledgers keep. Studies and
    the service's JSON have the same keys, of the statistics that they know. A field ``column`` or ``columns`` that is
    not stated is filled in for arrays (:meth:`of_columns`).
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, each.name, _fixed(getattr(self, each.name), each.name))

    @abstractmethod
    def read(self, table: PrivateTable) -> Any:
        """What it is of a table: a :class:`Reading`, or quantiles, which are chosen and not added up.

        Raises ``InvalidValue`` for columns and settings that do not fit.
        """

    def question(self, table: PrivateTable) -> AQuestion:
        """The question to a table."""
        from expost.questions.statistics import Statistics

        return Statistics.whole(table, self)  # type: ignore[return-value]  # which it is, it.read says

    def about(self, data: Any, neighbours: Neighbours | None, unit: str | None) -> Any:
        """The question to a table, to all of its groups, or to an array of records, each of which is one unit."""
        from expost.data.groups import Groups
        from expost.data.records import table_of_records
        from expost.data.table import PrivateTable

        if isinstance(data, PrivateTable | Groups):
            return data.asked(self)
        table = table_of_records(data, neighbours, unit)
        return table.asked(self.of_columns(tuple(table.schema)))

    def of_columns(self, names: tuple[str, ...]) -> Statistic:
        """The same, of the columns of an array or a frame, if it names none itself."""
        stated = {each.name for each in fields(self)}  # type: ignore[arg-type]
        if "column" in stated and getattr(self, "column", None) is None:
            if len(names) > 1:
                raise InvalidValue(
                    f"a {self.kind} is of one column, and there are {len(names)}: name the one that is meant"
                )
            return replace(self, column=names[0])  # type: ignore[type-var]
        if "columns" in stated and not getattr(self, "columns", None):
            return replace(self, columns=names)  # type: ignore[type-var]
        return self

    def settings(self) -> Mapping[str, Any]:
        """The settings that are not the usual ones, as a study states them."""
        own = ((each.name, getattr(self, each.name), each.default) for each in fields(self))  # type: ignore[arg-type]
        return {name: _plain(value) for name, value, usual in own if usual is MISSING or value != usual}


def column_of(column: ColumnOf | None, kind: str) -> ColumnOf:
    """The column of a statistic of a table. Raises if none was named."""
    if column is None:
        raise InvalidValue(f"of which column is the {kind}? Name it first, as in xp.Mean('cost', bounds=…)")
    return column


def check_listed(values: object, what: str) -> None:
    """Raise unless these are names of columns. A single text would be read letter by letter."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise InvalidValue(f"{what} are a list of columns or expressions, such as ['age', 'cost']; got {values!r}")


def check_pairs(bounds: object) -> None:
    """Raise unless these are pairs of bounds, one for each of several columns."""
    if not isinstance(bounds, tuple | list):
        raise InvalidValue(f"bounds are a pair for each column, such as [(0, 120), (0, 500)]; got {brief(bounds)}")


def _fixed(value: Any, name: str) -> Any:
    """Lists as tuples: a question can be compared, and is what it was. Arrays are data, and no settings."""
    if getattr(value, "shape", ()) != () or hasattr(value, "to_frame"):
        raise InvalidValue(
            f"{name} is a setting, which is public, and got a {type(value).__name__}: settings are numbers, texts and "
            "lists of them, as in bounds=(0, 100) or columns=list(names); data goes into on=…"
        )
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return tuple(_fixed(each, name) for each in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Expression):
        return value.name
    return float(value) if isinstance(value, Fraction) else value
