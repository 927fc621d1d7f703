"""Several statistics of every group of rows, in one charge."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from expost import bracket
from expost.checks import requested_delta, requested_epsilon
from expost.cost import Cost, Number, exact
from expost.data import query
from expost.data.aggregates import SHOWN_CONFIDENCE, GroupAggregate, Measure, Touched, reach
from expost.data.answers import Reached
from expost.data.discovery import least_threshold, reached_by, shown_key
from expost.data.expression import Expression
from expost.data.group_keys import GroupKey, Places, rows_in_groups
from expost.data.histograms import MOST_KEYS
from expost.data.quantiles import Ranks
from expost.data.questions import Planned, TableMechanism
from expost.data.sums import clamp
from expost.errors import InvalidValue
from expost.estimate import Drawn, Estimate
from expost.estimates import Estimates
from expost.frame import Frame
from expost.guarantee import Guarantee
from expost.mechanism import WITHHELD, Mechanism, Withheld
from expost.mechanisms import Laplace
from expost.noise import NoiseSource
from expost.noise.grid import FARTHEST
from expost.noise.sums import Term
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

Statistics = Mapping[str, GroupAggregate | Ranks]
ERROR, IN_RANKS = "_error", "_error_in_ranks"
"""How the columns of errors end: in the units of the value, or in ranks."""
FOUND_UNITS = "units"
"""What the column with the numbers of units of discovered groups is called."""
_MOST_ADDED = 256
"""Up to so many groups a total is the sum of their noises; for more, the law of such a sum is known too roughly."""


@dataclass(frozen=True, repr=False)
class GroupQuestion(Planned, Question[Any]):
    """Statistics of the rows of each group: the groups, and the statistics by name.

    Proof: thm-group-by
    """

    table: PrivateTable
    values: tuple[Expression, ...]
    """What groups go by."""
    keys: tuple[GroupKey, ...]
    """Empty if keys are discovered."""
    names: tuple[str, ...]
    statistics: tuple[GroupAggregate | Ranks, ...]
    total: bool

    @property
    def title(self) -> str:
        """The groups and the statistics."""
        groups = f"{len(self.keys)} groups" if self.keys else "discovered groups"
        asked = "; ".join(f"{name}: {each.title}" for name, each in zip(self.names, self.statistics, strict=True))
        return f"{groups} by {', '.join(map(str, self.values))} ({asked})"

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """With Laplace noise, and quantiles by permute-and-flip. A δ is for the discovery of keys."""
        epsilon = terms.epsilon_alone(f"asking {self.title}", "laplace")
        delta = terms.delta if self.keys else terms.needed_delta("the discovery of keys")
        return GroupAnswers(question=self, epsilon=epsilon, delta=delta)

    @property
    def what(self) -> str:
        """The names of the statistics: in frames each row has its own."""
        return ", ".join([*([] if self.keys else [FOUND_UNITS]), *self.names])

    @property
    def touched(self) -> Touched:
        """How much one unit can change."""
        unit = self.table.unit
        return Touched(unit.rows, unit.groups, len(self.keys) or 2 * unit.groups + 1, self.table.neighbours)

    @property
    def aggregates(self) -> list[tuple[str, GroupAggregate]]:
        """The statistics that are computed from sums."""
        listed = zip(self.names, self.statistics, strict=True)
        return [(name, each) for name, each in listed if isinstance(each, GroupAggregate)]

    @property
    def ranks(self) -> list[tuple[str, Ranks]]:
        """The quantiles."""
        listed = zip(self.names, self.statistics, strict=True)
        return [(name, each) for name, each in listed if isinstance(each, Ranks)]

    @cached_property
    def places(self) -> Places | None:
        """The index of each given key; None if keys are discovered."""
        return Places(self.table, self.values, self.keys) if self.keys else None

    @cached_property
    def cells(self) -> dict[str, str]:
        """The names of the cells, for the statistics that have one."""
        valued = [name for name, each in zip(self.names, self.statistics, strict=True) if _value(each) is not None]
        return {name: f"c{place}" for place, name in enumerate(valued)}

    @cached_property
    def _kept(self) -> tuple[str, list[str]]:
        cells: list[tuple[Expression, str]] = []
        for each in self.statistics:
            value = _value(each)
            if value is not None:
                named = f"v{len(cells)}"
                cells.append((value, each.value.cell_of(named) if isinstance(each, Ranks) else each.cell(named)))
        return rows_in_groups(self.table, self.values, self.places, cells)

    def measured(self, measures: Sequence[Measure]) -> str:
        """The query for the numbers of every group that has a row, preceded by its number of units if discovered."""
        kept, groups = self._kept
        units = "count(*)" if self.table.unit.column is None else "count(DISTINCT u)"
        asked = [*groups, *([] if self.keys else [units]), *(measure.sql for measure in measures)]
        return self.table.engine.check(
            f"SELECT {', '.join(asked)} FROM {query.nested(kept)} GROUP BY {', '.join(groups)}"
        )

    def ranked(self, name: str) -> str:
        """The query for the number of occurrences of each value in each group."""
        (kept, groups), cell = self._kept, self.cells[name]
        by = ", ".join([*groups, cell])
        return self.table.engine.check(
            f"SELECT {by}, count(*) FROM {query.nested(kept)} WHERE {cell} IS NOT NULL GROUP BY {by} ORDER BY {by}"
        )

    @cached_property
    def plan(self) -> str:
        """The first query that will be run, without its sums."""
        return self.measured([])

    def key_of(self, row: Sequence[Any]) -> GroupKey:
        """The group's key in a row that the engine returned."""
        if self.places is not None:
            return self.places.key_at[int(row[0])]
        return tuple(shown_key(value) for value in row[: len(self.values)])

    @property
    def width(self) -> int:
        """How many columns of such a row identify its group."""
        return 1 if self.keys else len(self.values)


def _value(each: GroupAggregate | Ranks) -> Expression | None:
    return each.value.expression if isinstance(each, Ranks) else each.expression


@dataclass(frozen=True, kw_only=True, repr=False)
class GroupAnswers(TableMechanism[Any]):
    """A row for each group: its key, and every statistic with its error at 95 %.

    Parameters
    ----------
    question
        Which groups and which statistics.
    epsilon
        The whole budget, split evenly among the statistics, and the discovery of keys if there is any.
    delta
        Only for discovered keys: a bound on the probability that any key held by one unit alone is released.

    The error of a quantile is in ranks, and its column is named so; a quantile without bounds that was withheld is an
    empty cell. The last row is the total, if it was
    asked for, of the statistics that add up.

    Proof: thm-group-by
    """

    question: GroupQuestion
    epsilon: Number
    delta: Number = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", requested_epsilon(self.epsilon))
        if self.question.keys and self.delta:
            raise InvalidValue("a δ is for discovered keys, and these keys were given: leave delta out")
        if not self.question.keys:
            object.__setattr__(self, "delta", requested_delta(self.delta))
            if bracket.exp(-self._found_noise[1]).upper > 1 - exact(self.delta, "δ"):
                raise InvalidValue(
                    f"ε {self.epsilon} is too small for a δ of {self.delta}: pass a larger ε or a smaller δ"
                )
        _ = self._measures

    @property
    def _plain_guarantee(self) -> Guarantee:
        """(ε, δ) for every output."""
        return Guarantee.uniform(self.epsilon, self.delta, neighbours=self.question.table.neighbours)

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
    def _measures(self) -> dict[str, tuple[Measure, ...]]:
        asked, touched = self.question, self.question.touched
        return {
            name: each.measures(asked.table, asked.cells.get(name, ""), touched, self._share(name))
            for name, each in asked.aggregates
        }

    @property
    def _all_measures(self) -> list[Measure]:
        return [measure for measures in self._measures.values() for measure in measures]

    @cached_property
    def _found_noise(self) -> tuple[Laplace, Fraction]:
        """The noise on the numbers of units that discover keys, and its rate."""
        moved, share = self.question.touched.units, self._shares[-1]
        return Laplace(epsilon=share, sensitivity=moved, neighbours=self.question.table.neighbours), share / moved

    @cached_property
    def threshold(self) -> int:
        """The noisy number of units that a discovered key must reach to be released."""
        alone = ((1, self.question.table.unit.groups - 1),)
        return least_threshold(self._found_noise[1], alone, exact(self.delta, "δ"))

    def _rate(self, name: str) -> Fraction:
        """The rate of the choice of a quantile: every row added or removed costs twice that.

        Proof: thm-group-by
        """
        touched = self.question.touched
        return self._share(name) / (2 * touched.rows * (1 if touched.neighbours == "add-remove" else 2))

    def error_of(self, name: str, values: int) -> float:
        """The error at 95 % of a statistic of one group with that many values; of a quantile, in ranks."""
        each = self.question.statistics[self.question.names.index(name)]
        if isinstance(each, Ranks):
            return float(each.error_in_ranks(self._rate(name), SHOWN_CONFIDENCE, "add-remove"))
        return each.present(each.of_size(values), self._measures[name], 1)[1]

    def check(self, data: Any) -> None:
        """Raise unless all queries can be run and this noise can be sampled."""
        super().check(data)
        self.question.measured(self._all_measures)
        for name, _ in self.question.ranks:
            self.question.ranked(name)

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        for measure in self._all_measures:
            measure.noise.check(np.zeros(1, np.int64))
        if not self.question.keys:
            _ = self.threshold
            self._found_noise[0].check(np.zeros(1, np.int64))

    def sample(self, data: Any, noise: NoiseSource) -> Frame:
        """Query the sums of every group, add noise to them, and present the statistics."""
        asked = self.question
        found = asked.table.engine.fetch(asked.measured(self._all_measures))
        exact_of = {asked.key_of(row): row[asked.width :] for row in found}
        keys, units = self._keys(exact_of, noise)
        start, noisy = 0 if asked.keys else 1, dict[str, list[list[int]]]()
        for name, measures in self._measures.items():
            noisy[name] = [
                _with_noise([exact_of[key][start + i] if key in exact_of else 0 for key in keys], measure, noise)
                for i, measure in enumerate(measures)
            ]
            start += len(measures)
        chosen = {name: self._quantiles(name, ranks, keys, noise) for name, ranks in asked.ranks}
        return self._frame(keys, units, noisy, chosen)

    def _keys(self, exact_of: Mapping[GroupKey, Sequence[Any]], noise: NoiseSource) -> tuple[list[GroupKey], list[int]]:
        """The given keys; or the discovered ones, most frequent first, and their noisy numbers of units."""
        if self.question.keys:
            return list(self.question.keys), []
        found = sorted(exact_of)
        counts = np.array([exact_of[key][0] for key in found], np.int64)
        noisy = self._found_noise[0].sample(counts, noise).tolist() if found else []
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

    def _frame(
        self,
        keys: Sequence[GroupKey],
        units: Sequence[int],
        noisy: Mapping[str, list[list[int]]],
        chosen: Mapping[str, list[Any]],
    ) -> Frame:
        asked = self.question
        names = [
            *(value.name for value in asked.values),
            *([] if asked.keys else [FOUND_UNITS, f"{FOUND_UNITS}{ERROR}"]),
        ]
        rows: list[list[Any]] = [list(key) for key in keys]
        if not asked.keys:
            error = reach(self._found_noise[0], 1, 1 - SHOWN_CONFIDENCE)
            rows = [[*row, count, error] for row, count in zip(rows, units, strict=True)]
        last: list[Any] = ["total", *([None] * (len(names) - 1))]
        for name, each in zip(asked.names, asked.statistics, strict=True):
            names += [name, f"{name}{IN_RANKS if isinstance(each, Ranks) else ERROR}"]
            if isinstance(each, Ranks):
                error = self.error_of(name, 0)
                ranked = [(value, None if value is None else error) for value in chosen[name]]
                rows = [[*row, *pair] for row, pair in zip(rows, ranked, strict=True)]
                last += [None, None]
                continue
            measures, numbers = self._measures[name], noisy[name]
            shown = [each.present([column[i] for column in numbers], measures, 1) for i in range(len(rows))]
            rows = [[*row, *pair] for row, pair in zip(rows, shown, strict=True)]
            adds = each.adds_up and bool(rows)
            last += each.present([sum(column) for column in numbers], measures, len(rows)) if adds else (None, None)
        return Frame(tuple(names), tuple(map(tuple, [*rows, last] if asked.total else rows)), asked.total)

    def answer_of(self, output: Frame, origin: Hashable) -> Any:
        """Every number with its error, by statistic and group: counts and sums by the law of their noise.

        Of one statistic ``value["A"]`` is a group's, of several ``value["cost"]["A"]``. The number of units of a group
        that was discovered has an interval that holds although it had to reach a threshold.
        """
        return _LongAnswers(self, output, origin).estimates

    def describe(self, output: Frame) -> str:
        """How many groups, and what they are by."""
        return f"{len(output) - self.question.total} groups by {', '.join(map(str, self.question.values))}"


class _Rows(NamedTuple):
    """Numbers of one statistic: those of the groups, and of all together if they add up."""

    what: str
    at: Sequence[Any]
    total: Any = None


@dataclass(frozen=True)
class _LongAnswers:
    """The statistics of groups as estimates, made of the frame that was published.

    Parameters
    ----------
    mechanism
        What was asked, and with which noise.
    output
        The frame: a row for each group.
    origin
        Which output it is.
    """

    mechanism: GroupAnswers
    output: Frame
    origin: Hashable

    @property
    def estimates(self) -> Estimates:
        """Statistic by statistic, the groups in their order; the totals last."""
        names, keys = tuple(value.name for value in self.mechanism.question.values), self._keys
        listed = [one for name in self._names for one in self._statistic(name)]
        totals = [(one.what, one.total) for one in listed if one.total is not None]
        return Estimates(
            names,
            (*(key for _ in listed for key in keys), *((None,) * len(names) for _ in totals)),
            (*(one.what for one in listed for _ in keys), *(what for what, _ in totals)),
            [*(number for one in listed for number in one.at), *(number for _, number in totals)].__getitem__,
            len(totals),
        )

    @property
    def _names(self) -> list[str]:
        asked = self.mechanism.question
        return [*([] if asked.keys else [FOUND_UNITS]), *asked.names]

    @property
    def _total(self) -> bool:
        return self.mechanism.question.total

    @cached_property
    def _keys(self) -> list[GroupKey]:
        width = len(self.mechanism.question.values)
        return [row[:width] for row in self.output.rows[: len(self.output) - self._total]]

    def _statistic(self, name: str) -> list[_Rows]:
        """The numbers of a statistic; of several quantiles those of each."""
        numbers, errors = self._columns(name)
        asked, groups = self.mechanism.question, len(self._keys)
        if name not in asked.names:
            reached = reached_by(numbers[:groups], self.mechanism.threshold)
            at = Reached(numbers, self.mechanism._found_noise[1], reached)
            return [_Rows(name, [at(place) for place in range(groups)])]
        each = asked.statistics[asked.names.index(name)]
        if isinstance(each, Ranks):
            return self._ranks(name, each, numbers[:groups], int(self.mechanism.error_of(name, 0)))
        law = each.law(self.mechanism._measures[name])
        draws = [self._draw(name, key, law, error) for key, error in zip(self._keys, errors, strict=False)]
        at_keys = [Estimate.of(number, draw) for number, draw in zip(numbers, draws, strict=False)]
        total = None
        if self._total and numbers[groups] is not None:
            exactly = law is not None and groups <= _MOST_ADDED
            among = draws if exactly else [self._draw(name, None, None, errors[groups])]
            total = Estimate.total(numbers[groups], among)
        return [_Rows(name, at_keys, total)]

    def _columns(self, name: str) -> tuple[list[Any], list[Any]]:
        """What was published of a statistic: its numbers and its errors."""
        place = len(self.mechanism.question.values) + 2 * self._names.index(name)
        return [row[place] for row in self.output.rows], [row[place + 1] for row in self.output.rows]

    def _draw(self, name: str, key: Any, law: Term | None, error: float) -> Drawn:
        """The noise of a number: independent of all others where its law is known."""
        origin = (self.origin, name, key)
        return Drawn.usual(origin, error) if law is None else Drawn(origin, law=partial(_same, law))

    def _ranks(self, name: str, ranks: Ranks, numbers: Sequence[Any], off: int) -> list[_Rows]:
        """Quantiles of groups, whose errors are known in ranks; those of small groups may be withheld."""
        why = ranks.why_unknown(off)
        if len(ranks.levels) == 1:
            return [_Rows(name, [_chosen(number, why) for number in numbers])]
        several = [(None,) * len(ranks.levels) if number is None else number for number in numbers]
        return [
            _Rows(f"{name} {float(level):g}", [_chosen(number[place], why) for number in several])
            for place, level in enumerate(ranks.levels)
        ]


def _chosen(number: Any, why: str) -> Any:
    return WITHHELD if number is None else Estimate.unknown(number, why)


def _same(law: Term) -> Term:
    return law


def _with_noise(numbers: Sequence[Any], measure: Measure, noise: NoiseSource) -> list[int]:
    """The numbers of a measure, clamped to ±2^60, each with independent noise."""
    scaled = [max(-FARTHEST, min(FARTHEST, clamp(number) * measure.times)) for number in numbers]
    if not scaled:
        return []
    return [int(number) for number in measure.noise.sample(np.array(scaled, np.int64), noise).tolist()]
