"""What a statistic is: whole numbers that engines add up, how far one unit moves them, and what is made of them.

A statistic is defined once, for tables and for groups of their rows, on every engine. To write a new one: a class of
its settings (:class:`Statistic`), and a class of what they mean for a table (:class:`Reading`). In ``ratio.py`` each
number has a part of ε; in ``share.py`` all of ε is for two numbers at once, as a row can only be in one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

from expost.data import sensitivity
from expost.data.expression import Expression
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mentions import brief
from expost.noise.sums import StepLaw
from expost.questions.noised import Noised
from expost.questions.record import AQuestion, QuestionRecord
from expost.questions.record import ColumnOf as ColumnOf
from expost.questions.record import column_of as column_of

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

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
    terms: tuple[str, ...] = ()
    """Of a statistic that is several numbers: what these are called."""
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

    def noise_on(self, laws: Sequence[StepLaw | None]) -> str:
        """Which numbers have noise of these laws, in words."""
        return "on the sum"

    def present(self, number: int) -> float:
        """The noisy number of a statistic that is one, as people read it."""
        return int(number)


@dataclass(frozen=True)
class Statistic(QuestionRecord[AQuestion]):
    """A statistic of rows: a record that can be asked of groups, too, and beside other statistics.

    Its fields are the parameters of the table's method of that name, in their order, and what ledgers keep. Studies and
    the service's JSON have the same keys, of the statistics that they know. A field ``column`` or ``columns`` that is
    not stated is filled in for arrays (:meth:`of_columns`).
    """

    @abstractmethod
    def read(self, table: PrivateTable) -> Any:
        """What it is of a table: a :class:`Reading`, or quantiles, which are chosen and not added up.

        Raises ``InvalidValue`` for columns and settings that do not fit.
        """

    def question(self, table: PrivateTable) -> AQuestion:
        """The question to a table."""
        from expost.questions.statistics import Statistics

        return Statistics.whole(table, self)  # type: ignore[return-value]  # which it is, it.read says


def check_listed(values: object, what: str) -> None:
    """Raise unless these are names of columns. A single text would be read letter by letter."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise InvalidValue(f"{what} are a list of columns or expressions, such as ['age', 'cost']; got {values!r}")


def check_pairs(bounds: object) -> None:
    """Raise unless these are pairs of bounds, one for each of several columns."""
    if not isinstance(bounds, tuple | list):
        raise InvalidValue(f"bounds are a pair for each column, such as [(0, 120), (0, 500)]; got {brief(bounds)}")
