"""Statistics of a table, or of every group of its rows, in one charge: the question, and the mechanism that answers it.

Proof: thm-group-by
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost import bracket
from expost.accounting.renyi import Prices
from expost.checks import requested_delta, requested_epsilon
from expost.cost import Cost, Number, exact
from expost.data import query, rows
from expost.data.clipped import clamp
from expost.data.column import Column
from expost.data.discovery import least_threshold, shown_key
from expost.data.expression import Expression
from expost.data.group_keys import GroupKey, Places, rows_in_groups
from expost.data.histograms import MOST_KEYS
from expost.data.quantiles import Ranks
from expost.data.questions import NumericQuestion, Planned, TableMechanism, gaussian_terms
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.estimate import USUAL
from expost.frame import Frame
from expost.guarantee import Guarantee
from expost.mechanism import Mechanism, Out, Withheld
from expost.mechanisms import Gaussian, Laplace
from expost.mechanisms.additive import Additive
from expost.mechanisms.numbers import Shape, root_above
from expost.noise import NoiseSource
from expost.noise.grid import FARTHEST
from expost.noise.sums import StepLaw
from expost.question import WITHIN_CONFIDENCE, NoiseName, Question, Terms
from expost.questions.count import CountOfTable
from expost.questions.noised import Noised
from expost.questions.on_columns import OnColumns
from expost.questions.products import Products
from expost.questions.published import PublishedStatistics
from expost.questions.statistic import Reach, Reading, Statistic, Sums

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

FOUND_UNITS = "units"
"""What the column with the numbers of units of discovered groups is called."""
_WHOLE: tuple[GroupKey, ...] = ((),)
"""The key of all rows together."""


@dataclass(frozen=True, repr=False)
class Statistics(Planned, Question[Any]):
    """Statistics of the rows of a table, or of each of its groups, by name.

    Parameters
    ----------
    table
        Whose rows.
    values
        What groups go by; nothing for the whole table.
    keys
        The keys of the groups; empty if they are discovered. The whole table is one group, whose key is empty.
    names
        What the statistics are called.
    statistics
        What is asked.
    total
        Whether all groups together are answered, too, by the statistics that add up.

    Proof: thm-group-by
    """

    table: PrivateTable
    values: tuple[Expression, ...]
    keys: tuple[GroupKey, ...]
    names: tuple[str, ...]
    statistics: tuple[Statistic, ...]
    total: bool = False

    @classmethod
    def whole(cls, table: PrivateTable, statistic: Statistic) -> Statistics | NumericStatistic[Any]:
        """One statistic of the whole table."""
        read = statistic.read(table)
        asked = cls(table, (), _WHOLE, (read.what,), (statistic,))
        return asked if read.step is None else NumericStatistic(asked)

    @classmethod
    def several(cls, table: PrivateTable, statistics: Mapping[str, Statistic]) -> Statistics:
        """Several statistics of the whole table, by name."""
        asked = cls(table, (), _WHOLE, tuple(statistics), tuple(statistics.values()))
        asked.refuse_same_names()
        for name, ranks in asked.ranks:
            if ranks.interval:
                raise InvalidValue(f"{name!r} asks for an interval, which no quantile beside others has: leave it out")
        return asked

    @property
    def record(self) -> Statistic | None:  # type: ignore[override]
        """The one statistic; None of several."""
        return self.statistics[0] if len(self.statistics) == 1 else None

    @property
    def is_whole(self) -> bool:
        """Whether it is about all rows together."""
        return not self.values

    @cached_property
    def readings(self) -> tuple[Reading | Ranks, ...]:
        """What the statistics are of this table. Raises ``InvalidValue`` for columns and settings that do not fit."""
        return tuple(each.read(self.table) for each in self.statistics)

    def refuse_same_names(self) -> None:
        """Raise if two numbers would be called the same: the levels of quantiles and the terms of models are named."""
        called: set[str] = set()
        for name, each in zip(self.names, self.readings, strict=True):
            for row in [f"{name} {term}" for term in each.terms] or [name]:
                if row in called:
                    raise InvalidValue(f"two numbers would be called {row!r}: give one of the statistics another name")
                called.add(row)

    @property
    def alone(self) -> Reading | None:
        """The only statistic of the whole table, if it is that."""
        read = self.readings[0] if self.is_whole and len(self.statistics) == 1 else None
        return read if isinstance(read, Reading) else None

    @property
    def added(self) -> list[tuple[str, Reading]]:
        """The statistics that are computed from sums."""
        named = zip(self.names, self.readings, strict=True)
        return [(name, each) for name, each in named if isinstance(each, Reading)]

    @property
    def ranks(self) -> list[tuple[str, Ranks]]:
        """The quantiles."""
        named = zip(self.names, self.readings, strict=True)
        return [(name, each) for name, each in named if isinstance(each, Ranks)]

    @property
    def title(self) -> str:
        """The groups and the statistics."""
        if self.is_whole and len(self.names) == 1:
            return self.readings[0].title
        asked = "; ".join(f"{name}: {each.title}" for name, each in zip(self.names, self.readings, strict=True))
        if self.is_whole:
            return asked
        groups = f"{len(self.keys)} groups" if self.keys else "discovered groups"
        return f"{groups} by {', '.join(map(str, self.values))} ({asked})"

    @property
    def what(self) -> str:
        """The names of the statistics: in frames each row has its own."""
        return ", ".join([*([] if self.keys else [FOUND_UNITS]), *self.names])

    @property
    def reach(self) -> Reach:
        """How far one unit moves what is added up."""
        unit = self.table.unit
        fewest = self.table.fewest if self.is_whole else 0
        return Reach(unit.rows, unit.groups, len(self.keys) or 2 * unit.groups + 1, fewest, self.table.neighbours)

    # ---- the query

    @cached_property
    def places(self) -> Places | None:
        """The index of each given key; None if keys are discovered, or if there is but one group."""
        return Places(self.table, self.values, self.keys) if self.keys and self.values else None

    @property
    def _drops(self) -> bool:
        """Whether rows without a value are left out before a unit's rows are bounded: then no others share them."""
        return self.alone is not None and self.alone.dropped

    @cached_property
    def cells(self) -> dict[str, tuple[str, ...]]:
        """The names of the cells of each statistic."""
        found, start = dict[str, tuple[str, ...]](), 0
        for name, each in zip(self.names, self.readings, strict=True):
            size = 1 if isinstance(each, Ranks) else len(each.values)
            found[name] = tuple(f"c{place}" for place in range(start, start + size))
            start += size
        return found

    @cached_property
    def _kept(self) -> tuple[str, list[str]]:
        """The rows that count, and the columns that identify their group."""
        made: list[tuple[Expression, str]] = []
        for each in self.readings:
            values = (each.value.expression,) if isinstance(each, Ranks) else each.values
            named = [f"v{len(made) + place}" for place in range(len(values))]
            cells = [each.value.cell_of(named[0])] if isinstance(each, Ranks) else each.cells(named)
            made += zip(values, cells, strict=True)
        if not self.is_whole:
            return rows_in_groups(self.table, self.values, self.places, made)
        cells_of = {f"c{place}": cell for place, (_, cell) in enumerate(made)} or {"c": "0"}
        values_of = {f"v{place}": value for place, (value, _) in enumerate(made)}
        needed = list(cells_of) if self._drops else []
        return rows.rows_that_count(self.table, values_of, cells=cells_of, needed=needed), []

    @cached_property
    def sums(self) -> dict[str, tuple[Sums, ...]]:
        """What is added up for each statistic."""
        total = self.table.engine.total
        return {
            name: each.sums(self.cells[name], self.reach, total, missing=each.dropped and not self._drops)
            for name, each in self.added
        }

    @cached_property
    def plan(self) -> str:
        """The query for the numbers of every group that has a row, preceded by its number of units if discovered."""
        if isinstance(self.alone, CountOfTable):
            return self.table.engine.check(self.alone.alone)
        kept, groups = self._kept
        units = "count(*)" if self.table.unit.column is None else "count(DISTINCT u)"
        numbers = [sql for sums in self.sums.values() for each in sums for sql in each.sql]
        asked = [*groups, *([] if self.keys else [units]), *numbers] or ["count(*)"]
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        return self.table.engine.check(f"SELECT {', '.join(asked)} FROM {query.nested(kept)}{by}")

    def ranked(self, name: str) -> str:
        """The query for the number of occurrences of each value in each group."""
        (kept, groups), (cell,) = self._kept, self.cells[name]
        by = ", ".join([*groups, cell])
        return self.table.engine.check(
            f"SELECT {by}, count(*) FROM {query.nested(kept)} WHERE {cell} IS NOT NULL GROUP BY {by} ORDER BY {by}"
        )

    def exact(self) -> dict[GroupKey, list[int]]:
        """The numbers of every group that has a row. Private: mechanisms call it, after the reservation."""
        found = self.table.engine.fetch(self.plan)
        return {self.key_of(row): [clamp(number) for number in row[self.width :]] for row in found}

    def key_of(self, row: Sequence[Any]) -> GroupKey:
        """The group's key in a row that the engine returned."""
        if self.places is not None:
            return self.places.key_at[int(row[0])]
        return tuple(shown_key(value) for value in row[: len(self.values)])

    @property
    def width(self) -> int:
        """How many columns of such a row identify its group."""
        return 1 if self.places is not None else len(self.values)

    @cached_property
    def columns(self) -> Column:
        """The values, one row per unit."""
        assert self.alone is not None
        return Column.of(self.table, self.alone.values)

    # ---- the mechanism

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """With Laplace noise, and quantiles by permute-and-flip; with Gaussian noise if that is asked for.

        With a ``delta`` and keys that are stated, noise is Gaussian where its error bound is smaller. Where keys are
        discovered the δ is for them. An accuracy can be asked of one count or sum. Where every row is a unit and their
        number is public, moments of the whole table are those of the array of its records, with their outputs.
        """
        if terms.accurate and len(self.added) == len(self.names) == 1 and self.added[0][1].step and self.keys:
            if self.total:
                raise InvalidValue(
                    "an accuracy is one of all groups, and not of their total: pass epsilon= for a total, or leave "
                    "total=True out and add the answers up"
                )
            return NumericStatistic(self)._mechanism(terms)
        if not self.keys:
            epsilon = terms.epsilon_alone(f"asking {self.title}", "laplace")
            delta = terms.needed_delta("finding groups that nobody stated", "state them in by(…, keys=…)")
            return NoisyStatistics(question=self, epsilon=epsilon, delta=delta)
        title = f"a {self.title}" if self.is_whole else f"asking {self.title}"
        if self.ranks:
            return NoisyStatistics(question=self, epsilon=terms.only_epsilon(title, "laplace"))
        epsilon = terms.epsilon_alone(title, "laplace", "gaussian")
        if not terms.noise and not exact(terms.delta, "δ") and (records := self._of_records(epsilon)) is not None:
            return OnColumns(question=self, mechanism=records)
        pure = NoisyStatistics(question=self, epsilon=epsilon)
        if terms.noise == "laplace" or not (terms.noise or exact(terms.delta, "δ")):
            return pure
        epsilon, delta = gaussian_terms(terms)
        normal = NoisyStatistics(question=self, epsilon=epsilon, delta=delta, made_with="gaussian")
        return normal if terms.noise or normal.first_bound < pure.first_bound else pure

    def _of_records(self, epsilon: Number) -> Mechanism | None:
        """The mechanism for an array of records, if rows are records whose number is public, and have an order.

        Columns are read one by one. What has no order is added up where it is.
        """
        alone, table = self.alone, self.table
        if not isinstance(alone, Products) or table.unit.column is not None or not table.ordered:
            return None
        if not self.reach.one_row_each(dropped=alone.dropped):
            return None
        return alone.array_mechanism(epsilon=epsilon, missing=alone.missing)


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyStatistics(TableMechanism[Frame]):
    """Noisy numbers for every group: all that was asked follows from them, with its errors.

    Parameters
    ----------
    question
        Which groups and which statistics.
    epsilon
        The whole budget, split evenly among the statistics, and the discovery of keys if there is any.
    delta
        Of Gaussian noise; or, for discovered keys, a bound on the probability that any key held by one unit alone is
        released.
    made_with
        The noise: ``"laplace"`` or ``"gaussian"``.

    The output has a row for each group: its key, and the noisy numbers of every statistic; of quantiles what was
    chosen, or nothing where that was withheld.

    Proof: thm-group-by
    """

    question: Statistics
    epsilon: Number
    delta: Number = 0
    made_with: NoiseName = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", requested_epsilon(self.epsilon))
        if self.delta or not self.question.keys:
            object.__setattr__(self, "delta", requested_delta(self.delta))
        if self.question.keys and self.delta and self.made_with == "laplace":
            raise InvalidValue("a δ is for discovered keys or Gaussian noise: leave delta out")
        if self.made_with == "gaussian" and (self.question.ranks or not self.question.keys):
            raise InvalidValue("Gaussian noise is for counts and sums of stated groups: leave noise out")
        if not self.question.keys and bracket.exp(-self.found_noise[1]).upper > 1 - exact(self.delta, "δ"):
            raise InvalidValue(f"ε {self.epsilon} is too small for a δ of {self.delta}: pass a larger ε or a smaller δ")
        _ = self.noises

    @property
    def _plain_guarantee(self) -> Guarantee:
        """(ε, δ) for every output."""
        return Guarantee.uniform(self.epsilon, self.delta, neighbours=self.question.table.neighbours)

    def renyi_prices(self, order: Number) -> Prices:
        """Of Gaussian noise α/2σ², for all numbers together.

        Proof: thm-group-by, lem-renyi-normal
        """
        return self._gaussian(1).renyi_prices(order) if self.made_with == "gaussian" else super().renyi_prices(order)

    def gaussian_prices(self) -> Prices | None:
        """Of Gaussian noise 1/σ², for all numbers together."""
        return self._gaussian(1).gaussian_prices() if self.made_with == "gaussian" else None

    # ---- noise

    @cached_property
    def _shares(self) -> list[Fraction]:
        """The shares of ε: one for each statistic, and one for the keys if they are discovered."""
        count = len(self.question.statistics) + (0 if self.question.keys else 1)
        shares = [share.exact_epsilon for share in Cost.within(self.epsilon).split(count)]
        if not min(shares):
            raise InvalidValue(
                f"ε {self.epsilon} is split into {count} shares of less than 10⁻¹² each: pass at least {count}e-12"
            )
        return shares

    def _share(self, name: str) -> Fraction:
        return self._shares[self.question.names.index(name)]

    @cached_property
    def noises(self) -> dict[str, tuple[Additive | None, ...]]:
        """The noise of what is added up for each statistic; None where no unit moves it."""
        return {
            name: tuple(self._noise_of(each, self._share(name)) if each.moved.l1 else None for each in sums)
            for name, sums in self.question.sums.items()
        }

    def _noise_of(self, sums: Sums, share: Fraction) -> Additive:
        if self.made_with == "gaussian":  # shares are of 1/σ²
            part = sums.share / len(self.question.statistics)
            return self._gaussian(sums.moved.l2 if part == 1 else root_above(sums.moved.l2_squared / part))
        return Laplace(epsilon=share * sums.share, sensitivity=sums.moved.l1, neighbours=self._relation)

    def _gaussian(self, moved: Number) -> Gaussian:
        return Gaussian(epsilon=self.epsilon, delta=self.delta, sensitivity=moved, neighbours=self._relation)

    @property
    def _relation(self) -> Any:
        return self.question.table.neighbours

    @cached_property
    def laws(self) -> dict[str, tuple[StepLaw | None, ...]]:
        """The law of the noise of each number of a statistic."""
        one = Shape(floats=False, dimensions=None)
        found: dict[str, tuple[StepLaw | None, ...]] = {}
        for name, sums in self.question.sums.items():
            laws: list[StepLaw | None] = []
            for each, noise in zip(sums, self.noises[name], strict=True):
                law = None if noise is None else noise.noise_of(one).noise
                laws += [None] * each.public + [law] * (len(each.sql) - each.public)
            found[name] = tuple(laws)
        return found

    @property
    def first_bound(self) -> float:
        """How far noise moves the first numbers at most, all at once, with 95 % confidence."""
        noise = next(iter(self.noises.values()))[0]
        assert noise is not None
        return noise.error_bound(WITHIN_CONFIDENCE, n=len(self.question.keys))

    @cached_property
    def found_noise(self) -> tuple[Laplace, Fraction]:
        """The noise on the numbers of units that discover keys, and its rate."""
        moved, share = self.question.reach.units.l1, self._shares[-1]
        return Laplace(epsilon=share, sensitivity=moved, neighbours=self._relation), share / moved

    @cached_property
    def threshold(self) -> int:
        """The noisy number of units that a discovered key must reach to be released."""
        alone = ((1, self.question.table.unit.groups - 1),)
        return least_threshold(self.found_noise[1], alone, exact(self.delta, "δ"))

    def _rate(self, name: str) -> Fraction:
        """The rate of the choice of a quantile: every row added or removed costs twice that.

        Proof: thm-group-by
        """
        sides = 1 if self._relation == "add-remove" else 2
        return self._share(name) / (2 * self.question.table.unit.rows * sides)

    def ranks_off(self, name: str, ranks: Ranks) -> int:
        """How far off a quantile of a group is at most, at 95 %, in ranks."""
        return int(ranks.error_in_ranks(self._rate(name), USUAL, "add-remove"))

    def expected(self, name: str, values: int) -> Any:
        """What a statistic of one group with that many values would be: for its error, before it is asked."""
        each = dict(self.question.added)[name]
        return PublishedStatistics.of_numbers(each, Noised(each.of_size(values), self.laws[name]))

    @property
    def noise_words(self) -> str:
        """Which noise there is on what; of quantiles their kind says it."""
        if not self.question.added:
            return ""
        ((name, reading), *_), made_with = self.question.added, self.made_with.capitalize()
        on = reading.noise_on(self.laws[name]) if self.question.is_whole else "on the numbers of every group"
        return f"{made_with}, {on}"

    # ---- sampling

    def check(self, data: Any) -> None:
        """Raise unless all queries can be run and this noise can be sampled."""
        super().check(data)
        for name, _ in self.question.ranks:
            self.question.ranked(name)

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        nothing = np.zeros(1, np.int64)
        for noise in (each for noises in self.noises.values() for each in noises if each is not None):
            noise.check(nothing)
        if not self.question.keys:
            _ = self.threshold
            self.found_noise[0].check(nothing)

    def sample(self, data: Any, noise: NoiseSource) -> Frame:
        """Query the sums of every group, and add noise to them."""
        asked = self.question
        exact_of = asked.exact()
        keys, units = self._keys(exact_of, noise)
        names = [value.name for value in asked.values]
        columns: list[Sequence[Any]] = [[key[place] for key in keys] for place in range(len(names))]
        start = 0
        if not asked.keys:
            names, columns, start = [*names, FOUND_UNITS], [*columns, units], 1
        for name, sums in asked.sums.items():
            for each, own in zip(sums, self.noises[name], strict=True):
                places = range(start, start + len(each.sql))
                numbers = [
                    [_scaled(exact_of[key][place], times) if key in exact_of else 0 for key in keys]
                    for place, times in zip(places, each.times, strict=True)
                ]
                columns += self._noisy(numbers, each.public, own, noise)
                start += len(each.sql)
            size = sum(len(each.sql) for each in sums)
            names += [name] if size == 1 else [f"{name} #{place + 1}" for place in range(size)]
        for name, ranks in asked.ranks:
            names, columns = [*names, name], [*columns, self._quantiles(name, ranks, keys, noise)]
        return Frame(tuple(names), tuple(zip(*columns, strict=True)))

    def _noisy(
        self, numbers: list[list[int]], public: int, own: Additive | None, noise: NoiseSource
    ) -> list[list[int]]:
        """Numbers with independent noise: each of all groups, or all of the whole table at once."""
        if own is None or not numbers[0]:
            return numbers
        if not self.question.is_whole:
            return [*numbers[:public], *(_with_noise(column, own, noise) for column in numbers[public:])]
        flat = [column[0] for column in numbers]
        if len(flat) == 1:
            return [[int(own.sample(flat[0], noise))]]
        return [[exact] if place < public else [noisy] for place, (exact, noisy) in
                enumerate(zip(flat, _with_noise(flat, own, noise), strict=True))]  # fmt: skip

    def _keys(self, exact_of: Mapping[GroupKey, Sequence[Any]], noise: NoiseSource) -> tuple[list[GroupKey], list[int]]:
        """The given keys; or the discovered ones, most frequent first, and their noisy numbers of units."""
        if self.question.keys:
            return list(self.question.keys), []
        found = sorted(exact_of)
        counts = np.array([exact_of[key][0] for key in found], np.int64)
        noisy = self.found_noise[0].sample(counts, noise).tolist() if found else []
        reached = [(count, key) for key, count in zip(found, noisy, strict=True) if count >= self.threshold]
        reached.sort(key=lambda pair: (-pair[0], pair[1]))
        kept = reached[:MOST_KEYS]
        return [key for _, key in kept], [count for count, _ in kept]

    def _quantiles(self, name: str, ranks: Ranks, keys: Sequence[GroupKey], noise: NoiseSource) -> list[Any]:
        counted: dict[GroupKey, list[tuple[float, int]]] = {}
        width = self.question.width
        for row in self.question.table.engine.fetch(self.question.ranked(name)):
            counted.setdefault(self.question.key_of(row), []).append((float(row[width]), int(row[width + 1])))
        rate, chosen = self._rate(name), []
        for key in keys:
            cells = np.array(counted.get(key, ()), np.float64).reshape(-1, 2)
            found = ranks.chosen(cells[:, 0], cells[:, 1], rate, "add-remove", noise)
            chosen.append(None if isinstance(found, Withheld) else found)
        return chosen

    # ---- answers

    def answer_of(self, output: Frame, origin: Hashable) -> Any:
        """Every number with its error, by statistic and group.

        Of one statistic of the whole table it is that; of one of groups ``value["A"]`` is a group's, of several
        ``value["cost"]["A"]``. The number of units of a group that was discovered has an interval that holds although
        it had to reach a threshold.
        """
        return PublishedStatistics(self, output, origin).answer

    def only(self, output: Frame) -> Noised:
        """The noisy numbers of the only statistic of a whole table."""
        name, _ = self.question.added[0]
        return Noised(tuple(output.rows[0]), self.laws[name])

    def describe(self, output: Frame) -> str:
        """The answer; or how many groups, and what they are by."""
        if not self.question.is_whole:
            return f"{len(output)} groups by {', '.join(map(str, self.question.values))}"
        return f"{self.question.title} {PublishedStatistics(self, output, None).text}"


@dataclass(frozen=True, repr=False)
class NumericStatistic(NumericQuestion[Out]):
    """A count or a sum, of the whole table or of each group, whose accuracy is known before it is asked.

    Parameters
    ----------
    asked
        The one statistic.

    Proof: lem-number, lem-sum, lem-grouped-sums
    """

    asked: Statistics

    def __post_init__(self) -> None:
        _ = self._read

    @property
    def table(self) -> PrivateTable:  # type: ignore[override]
        """Whose rows."""
        return self.asked.table

    @property
    def record(self) -> Statistic | None:  # type: ignore[override]
        """What is asked."""
        return self.asked.record

    @property
    def _read(self) -> Reading:
        return self.asked.added[0][1]

    @property
    def title(self) -> str:
        """What is counted, or summed."""
        return self.asked.title

    @property
    def what(self) -> str:
        """What is counted, or summed, without the rules for values."""
        return self.asked.what

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves it, in all groups together."""
        ((each,),) = self.asked.sums.values()
        return each.moved

    @property
    def nothing(self) -> int | NDArray[np.int64]:
        """A zero, or one for each group."""
        return 0 if self.asked.is_whole else np.zeros(len(self.asked.keys), np.int64)

    @property
    def key_names(self) -> tuple[str, ...]:
        """What groups go by."""
        return tuple(value.name for value in self.asked.values)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        return self.asked.plan

    def exact(self) -> Any:
        """The number, or one for each group."""
        found = self.asked.exact()
        numbers = [found.get(key, [0])[0] for key in self.asked.keys]
        return numbers[0] if self.asked.is_whole else np.array(numbers, np.int64)

    def present(self, numbers: Any) -> Any:  # Out
        """The noisy number as people read it; or {key: number}."""
        if self.asked.is_whole:
            return self._read.present(int(numbers))
        keys = [key if len(key) > 1 else key[0] for key in self.asked.keys]
        return {key: self._read.present(int(number)) for key, number in zip(keys, numbers, strict=True)}

    def distance(self, steps: float) -> float:
        """A distance in units of the data."""
        return float(self._read.present(round(steps)))


def _scaled(number: int, times: int) -> int:
    return max(-FARTHEST, min(FARTHEST, number * times))


def _with_noise(numbers: Sequence[int], own: Additive, noise: NoiseSource) -> list[int]:
    return [int(number) for number in own.sample(np.array(numbers, np.int64), noise).tolist()]
