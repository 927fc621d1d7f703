"""Partition selection: keys that are found in the data, and released if enough units have them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from expost import bracket
from expost.checks import as_whole, check_fields
from expost.cost import Number, exact
from expost.data import query, rows, sensitivity
from expost.data.answers import Reached
from expost.data.expression import Expression
from expost.data.histograms import MOST_KEYS
from expost.data.questions import Planned, TableMechanism
from expost.data.sensitivity import Sensitivity
from expost.data.unit import as_of
from expost.errors import InvalidValue
from expost.estimates import Estimates
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms.top import TopK
from expost.noise import NoiseSource, SystemNoise, vector
from expost.noise.grid import FARTHEST, saturating_sum
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.data.unit import Of
    from expost.questions.found import Discover, Top


@dataclass(frozen=True, repr=False)
class Discovery(Planned, Question[Mapping[Any, int]]):
    """The number of units, or rows, of each value that enough of them have. NULL is not counted.

    Parameters
    ----------
    table
        Whose rows.
    value
        The column or expression whose values are the keys.
    of
        ``"units"`` or ``"rows"``.
    record
        The settings that it was made from, if it was made from a record of them.

    Proof: thm-discovery
    """

    table: PrivateTable
    value: Expression
    of: Of
    record: Discover | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_values(cls, table: PrivateTable, value: Expression, of: Of) -> Discovery:
        """Checks the arguments."""
        as_of(of)
        return cls(table, value, of)

    @property
    def alone(self) -> tuple[tuple[int, int], ...]:
        """The worst cases of keys that only one unit has: pairs (count of one key, number of other keys with count 1).

        Proof: lem-lone-keys
        """
        rows, groups = self.table.unit.rows, self.table.unit.groups
        return ((1, groups - 1),) if self.of == "units" else ((rows, 0), (rows - groups + 1, groups - 1))

    @property
    def sensitivity(self) -> Sensitivity:
        """As for a histogram with any number of cells."""
        unit, relation = self.table.unit, self.table.neighbours
        if self.of == "rows":
            return sensitivity.of_rows(0, unit.rows, 2, relation)
        return sensitivity.of_units(0, unit.groups, 2 * unit.groups + 1, relation)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        asked = rows.tally(self.table, self.of, self.value, query.VALUE, drop=True, known=None)
        return self.table.engine.check(asked)

    def exact(self) -> list[tuple[Any, int]]:
        """Every value and its count, in the order of the values. Private, the values included."""
        return sorted((shown_key(key), int(count)) for key, count in self.table.engine.fetch(self.plan))

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """The keys whose count, with Laplace noise, reaches a threshold for which δ suffices."""
        epsilon = terms.epsilon_alone(f"a {self.title}", "laplace")
        return Discovered(question=self, epsilon=epsilon, delta=terms.needed_delta(f"a {self.title}"))

    def top(self, k: int, *, without: tuple[Any, ...] = ()) -> TopKeys:
        """The k values that most units have, without counts, charged by the number found.

        ``without`` are values to leave out, such as those published before; :func:`~expost.recipes.top_until` uses it.
        """
        return TopKeys(self, k, tuple(without))

    @property
    def what(self) -> str:
        """What is counted: units, or rows."""
        return self.of

    @property
    def title(self) -> str:
        """What is counted."""
        return f"discovery of {self.of} by {self.value} (NULL not counted)"


@dataclass(frozen=True, repr=False)
class TopKeys(Planned, Question[tuple[Any, ...]]):
    """The values that most units have, most frequent first, without counts.

    Parameters
    ----------
    discovery
        Which values; it counts units.
    k
        The most values that are released.
    without
        Public values to leave out.

    Proof: thm-top-k
    """

    discovery: Discovery
    k: int
    without: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        as_whole(self.k, "k")
        if self.discovery.of != "units":
            raise InvalidValue("top() finds the values that most units have, and of='rows' was given: pass of='units'")

    @property
    def table(self) -> PrivateTable:  # type: ignore[override]
        """Whose rows."""
        return self.discovery.table

    @property
    def record(self) -> Top | None:  # type: ignore[override]
        """The settings that say which values."""
        from expost.questions.found import top_of

        return top_of(self.discovery.record, self.k, self.without)

    @property
    def what(self) -> str:
        """Which values."""
        return f"most frequent {self.discovery.value.name}"

    @property
    def title(self) -> str:
        """What is looked for."""
        return f"top {self.k} of {self.discovery.value}"

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        return self.discovery.plan

    def _mechanism(self, terms: Terms) -> Mechanism[None, tuple[Any, ...]]:
        """The most frequent are found one after the other; each that is found is charged."""
        title = f"a {self.title}"
        epsilon, delta = terms.epsilon_alone(title), terms.needed_delta(title)
        return MostFrequent(question=self.discovery, k=self.k, epsilon=epsilon, delta=delta, without=self.without)


@dataclass(frozen=True, kw_only=True, repr=False)
class Discovered(TableMechanism[Mapping[Any, int]]):
    """{key: noisy count} of the keys whose noisy count reaches :attr:`threshold`, largest first: at most 10,000.

    The probability that any key held by one unit alone is released is at most δ.

    Parameters
    ----------
    question
        Which keys, and what is counted.
    epsilon, delta
        The whole budget.

    Proof: thm-discovery
    """

    question: Discovery
    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "delta")
        if bracket.exp(-self.rate).upper > 1 - exact(self.delta, "δ"):
            raise InvalidValue(f"ε {self.epsilon} is too small for a δ of {self.delta}: pass a larger ε or a smaller δ")
        _ = self.threshold

    @property
    def _plain_guarantee(self) -> Guarantee:
        """(ε, δ) for every output."""
        return Guarantee.uniform(self.epsilon, self.delta, neighbours=self.question.table.neighbours)

    @property
    def rate(self) -> Fraction:
        """The noise has probabilities proportional to e^−(rate·``|k|``)."""
        return exact(self.epsilon, "ε") / self.question.sensitivity.l1

    @cached_property
    def threshold(self) -> int:
        """The least threshold that keeps δ."""
        return least_threshold(self.rate, self.question.alone, exact(self.delta, "δ"))

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        vector.discrete_laplace(SystemNoise(), self.rate, 0)

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, int]:
        """Add noise to the count of every key in the data; other keys are never released."""
        found = self.question.exact()
        counts = np.array([count for _, count in found], np.int64)
        noisy = saturating_sum(counts, vector.discrete_laplace(noise, self.rate, len(found)))
        released = [(key, count) for (key, _), count in zip(found, noisy.tolist(), strict=True)]
        reached = [pair for pair in released if pair[1] >= self.threshold]
        return dict(sorted(reached, key=lambda pair: (-pair[1], pair[0]))[:MOST_KEYS])

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The keys, each with its count and an interval that holds although the count had to reach the threshold."""
        names, keys, counts = (self.question.value.name,), list(output), list(output.values())
        return Estimates.by_key(names, keys, self.what, Reached(counts, self.rate, reached_by(counts, self.threshold)))

    def describe(self, output: Any) -> str:
        """How many keys were released."""
        return f"{len(output)} keys with at least {self.threshold}"


@dataclass(frozen=True, kw_only=True, repr=False)
class MostFrequent(TableMechanism[tuple[Any, ...]]):
    """The keys that most units have, most frequent first: at most k, and fewer where counts are small.

    Under substitution two units differ, so the choice is made with half of ε (lem-group).

    Parameters
    ----------
    question
        Which keys; it counts units.
    k
        The most keys that are released.
    epsilon, delta
        The whole budget.
    without
        Public values to leave out, such as those published before.

    Proof: thm-top-k
    """

    question: Discovery
    k: int
    epsilon: Number
    delta: Number
    without: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.question.of != "units":
            raise InvalidValue("top() finds the values that most units have, and of='rows' was given: pass of='units'")
        check_fields(self, "epsilon", "delta")
        _ = self.choice

    @cached_property
    def choice(self) -> TopK:
        """The mechanism under add-remove neighbours."""
        epsilon, delta = exact(self.epsilon, "ε"), exact(self.delta, "δ")
        if self.question.table.neighbours == "substitute":
            epsilon /= 2
            delta /= 1 + bracket.exp(epsilon).upper
            if delta < Fraction(1, 10**18):
                raise InvalidValue(
                    f"under substitution ε {self.epsilon} leaves less than 10⁻¹⁸ of a δ of {self.delta}: pass a "
                    "smaller ε or a larger δ"
                )
        return TopK(k=self.k, epsilon=epsilon, delta=delta, groups=self.question.table.unit.groups)

    @property
    def record(self) -> Top | None:
        """The settings that say which keys."""
        from expost.questions.found import top_of

        return top_of(self.question.record, self.k, self.without)

    @property
    def _plain_guarantee(self) -> Guarantee:
        """A share of ε for each key released and for the end of the list."""
        return self.choice.guarantee.under(self.question.table.neighbours)

    def part_of(self, output: tuple[Any, ...]) -> Part:
        """The number of keys."""
        return self.choice.part_of(output)

    def sample(self, data: Any, noise: NoiseSource) -> tuple[Any, ...]:
        """Choose the keys."""
        known = frozenset(self.without)
        counts = {key: count for key, count in self.question.exact() if key not in known}
        found = self.choice.sample(counts, noise)
        return tuple(map(bool, found)) if self.question.value.kind == "boolean" else found

    @property
    def what(self) -> str:
        """Which keys."""
        return f"most frequent {self.question.value.name}"

    def describe(self, output: Any) -> str:
        """How many keys were found."""
        return self.choice.describe(output)


def reached_by(counts: Sequence[int], threshold: int) -> int:
    """What a published count had to reach at most: if there are as many as there may be, to beat the smallest of them.

    Proof: lem-reached-counts
    """
    return threshold if len(counts) < MOST_KEYS else max(threshold, min(counts) + 1)


def least_threshold(rate: Fraction, alone: tuple[tuple[int, int], ...], delta: Fraction) -> int:
    """The least threshold that the keys of one unit alone reach with probability at most δ."""
    low = max(first for first, _ in alone)  # one unit alone would reach it about half of the time
    high = 2 * low + 1
    while leak(high, rate, alone) > delta:
        high *= 2
        if high > FARTHEST:
            raise InvalidValue(
                f"no threshold is high enough for a δ of {float(delta)}: pass a larger ε, or a unit with fewer groups"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if leak(middle, rate, alone) <= delta else (middle, high)
    return high


def leak(threshold: int, rate: Fraction, alone: tuple[tuple[int, int], ...]) -> Fraction:
    """An upper bound on the probability that any key held by one unit alone reaches the threshold.

    ``alone`` are the worst cases: pairs (count of one key, number of other keys with count 1).

    Proof: lem-lone-keys
    """

    def tail(count: int) -> Fraction:
        return bracket.exp(-rate * (threshold - count)).upper / (1 + bracket.exp(-rate).lower)

    return max(tail(first) + others * tail(1) for first, others in alone)


def shown_key(key: Any) -> Any:
    """A key as text. Bytes that are not UTF-8 stay distinct."""
    return bytes(key).decode(errors="surrogateescape") if isinstance(key, bytes | bytearray) else key
