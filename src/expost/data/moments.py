"""Variances, covariances, correlations and linear regressions of tables: from sums of values and of their products."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_interval, as_whole, requested_epsilon
from expost.cost import Number, exact
from expost.data import query, rows
from expost.data.answers import as_published
from expost.data.column import Column
from expost.data.expression import Expression
from expost.data.questions import Planned, PureMechanism, TableMechanism
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.frame import AsFrame, Frame
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms import Correlation, Covariance, LinearRegression, Variance
from expost.mechanisms.linear.box import STEPS, Box, LinearFit
from expost.mechanisms.linear.normal_equations import NormalEquations
from expost.mentions import brief
from expost.noise import NoiseSource, SystemNoise, vector
from expost.noise.grid import FARTHEST, saturating_sum
from expost.question import Question, Terms

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

Statistic = Literal["variance", "covariance", "correlation", "regression"]
_MOST_VALUES = 20


class NamedFit(LinearFit, AsFrame):
    """A linear regression that knows the names of its columns."""

    what: str
    features: tuple[str, ...]

    @classmethod
    def of(cls, fit: LinearFit, asked: Moments) -> NamedFit:
        """The names are those of the question."""
        made = cls(*fit)
        made.what, made.features = asked.what, tuple(value.name for value in asked.values[:-1])
        return made

    @property
    def frame(self) -> Frame:
        """A row for the intercept, and for the coefficient of each feature."""
        numbers = [
            Estimate.unknown(number, why_unknown("regression")) for number in (self.intercept, *self.coefficients)
        ]
        keys = ("intercept", *self.features)
        return Estimates.by_key(("term",), keys, self.what, numbers.__getitem__).frame


def why_unknown(statistic: str) -> str:
    """Why noisy sums alone tell no error."""
    if statistic == "variance":
        return "the number of rows was not published with this variance"
    return f"it depends on the data how far noise moves a {statistic}"


@dataclass(frozen=True, repr=False)
class Moments(Planned, Question[Any]):
    """A variance, covariance, correlation or linear regression of clamped values.

    Parameters
    ----------
    table
        Whose rows.
    statistic
        ``"variance"``, ``"covariance"``, ``"correlation"`` or ``"regression"``.
    values
        The columns or expressions; the target of a regression last.
    bounds
        A pair (lowest, highest) for each of them.
    missing
        What NULL and NaN count as; None if rows with any of them do not count.

    Proof: thm-table-moments
    """

    table: PrivateTable
    statistic: Statistic
    values: tuple[Expression, ...]
    bounds: tuple[tuple[float, float], ...]
    missing: float | None

    @classmethod
    def of(
        cls,
        table: PrivateTable,
        statistic: Statistic,
        values: Sequence[Expression],
        bounds: Sequence[Any],
        missing: Any,
    ) -> Moments:
        """Checks the arguments."""
        if len(values) != len(bounds):
            raise InvalidValue(
                f"bounds are one pair for each of {len(values)} values, the lowest first, got {len(bounds)}"
            )
        as_whole(len(values), "the number of values", most=_MOST_VALUES)
        if isinstance(missing, str) and missing != "drop":
            raise InvalidValue(f"missing is what NULL and NaN count as, a number or 'drop'; got {brief(missing)}")
        gone = None if missing == "drop" else float(exact(missing, "missing"))
        pairs = tuple(as_interval(pair) for pair in bounds)
        return cls(table, statistic, tuple(value.as_number() for value in values), pairs, gone)

    @property
    def title(self) -> str:
        """The statistic and its values."""
        low_high = (f"{low:g} … {high:g}" for low, high in self.bounds)
        values = ", ".join(f"{value} ({ends})" for value, ends in zip(self.values, low_high, strict=True))
        gone = "missing dropped" if self.missing is None else f"missing {self.missing:g}"
        return f"{self.statistic} of {values}, {gone}"

    @property
    def what(self) -> str:
        """The statistic and its columns, without the rules for values."""
        names = [value.name for value in self.values]
        return f"{self.statistic} of {names[-1] if self.statistic == 'regression' else ' and '.join(names)}"

    def presented(self, output: Any, origin: Hashable) -> Any:
        """A number with the error that is published beside it, if there is one; a regression with names."""
        if isinstance(output, LinearFit):
            return NamedFit.of(output, self)
        if isinstance(output, float):
            return Estimate.unknown(output, why_unknown(self.statistic))
        return as_published(output, origin, why_unknown(self.statistic))

    @property
    def box(self) -> Box:
        """The bounds of all values."""
        return Box(self.bounds)

    @property
    def fixed(self) -> bool:
        """Whether every unit has exactly one row that counts, so that the number of rows is public."""
        one = self.table.unit.rows == 1 and self.table.fewest == 1 and self.missing is not None
        return self.table.neighbours == "substitute" and one

    @property
    def sensitivity(self) -> Fraction:
        """How far one unit moves the number of rows, the sums and the sums of products together, in L1.

        Values are scaled to −1 … 1. A number of rows that is public does not count.

        Proof: thm-table-moments
        """
        values = len(self.values)
        if self.fixed:
            return Fraction(values * (values + 2) ** 2, 2 * (values + 1))
        return Fraction(self.table.unit.rows * (values + 1) * (values + 2), 2)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of values whose products are summed."""
        values = range(len(self.values))
        return [(i, j) for i in values for j in values if i <= j]

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        total, cells = self.table.engine.total, range(len(self.values))
        sums = [total(f"c{i}") for i in cells] + [total(f"c{i} * c{j}") for i, j in self.pairs]
        asked = f"SELECT count(*), {', '.join(sums)} FROM {query.nested(self._kept())}"
        return self.table.engine.check(asked)

    def _kept(self) -> str:
        """The rows that count, in steps from the middle of the bounds."""
        steps = [
            query.steps_around(f"v{i}", middle, half, STEPS, self._gone(middle, half))
            for i, (middle, half) in enumerate(zip(self.box.middles.tolist(), self.box.halves.tolist(), strict=True))
        ]
        cells = {f"c{i}": step for i, step in enumerate(steps)}
        values = {f"v{i}": value for i, value in enumerate(self.values)}
        needed = list(cells) if self.missing is None else []
        return rows.rows_that_count(self.table, values, cells=cells, needed=needed)

    def _gone(self, middle: float, half: float) -> int | None:
        if self.missing is None:
            return None
        return int(np.clip(np.floor((self.missing - middle) / half * STEPS + 0.5), -STEPS, STEPS))

    def exact(self) -> NDArray[np.object_]:
        """The number of rows, the sums and the sums of products, all in squared steps. Private."""
        found = [int(number or 0) for number in self.table.engine.fetch(self.plan)[0]]
        sums, products = found[1 : 1 + len(self.values)], found[1 + len(self.values) :]
        return np.array([found[0] * STEPS**2, *(total * STEPS for total in sums), *products], object)

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """The most accurate one for this statistic; with ``noise="laplace"`` that from sums with Laplace noise.

        Where every row is a unit and their number is public, it is :class:`~expost.Variance`,
        :class:`~expost.Covariance`, :class:`~expost.Correlation` or :class:`~expost.LinearRegression`, with their
        outputs.
        """
        epsilon = terms.only_epsilon(f"a {self.title}", "laplace")
        if terms.noise == "laplace" or not self.fixed or self.table.unit.column is not None:
            return NoisyMoments(question=self, epsilon=requested_epsilon(epsilon))
        rest: dict[str, Any] = {"epsilon": epsilon, "missing": self.missing}
        if self.statistic == "regression":
            *features, target = self.bounds
            return OnColumns(question=self, mechanism=LinearRegression(bounds=features, target_bounds=target, **rest))
        if self.statistic == "variance":
            return OnColumns(question=self, mechanism=Variance(bounds=self.bounds[0], **rest))
        paired = Covariance if self.statistic == "covariance" else Correlation
        return OnColumns(question=self, mechanism=paired(bounds=self.bounds, **rest))

    @cached_property
    def columns(self) -> Column:
        """The values, one row per unit."""
        return Column.of(self.table, self.values)


@dataclass(frozen=True, kw_only=True, repr=False)
class OnColumns(TableMechanism[Any]):
    """A mechanism for columns, run on the columns of a question.

    Parameters
    ----------
    question
        Which statistic of which table.
    mechanism
        What is run on its columns.

    Proof: lem-column
    """

    question: Moments
    mechanism: Mechanism

    @property
    def _plain_guarantee(self) -> Guarantee:
        """The mechanism's guarantee."""
        return self.mechanism.guarantee

    def part_of(self, output: Any) -> Part:
        """The mechanism's part."""
        return self.mechanism.part_of(output)

    def check(self, data: Any) -> None:
        """Raise unless the mechanism can be run on that many records."""
        super().check(data)
        self.mechanism.check(self.question.columns)

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """Read the columns, and run the mechanism on them."""
        return self.mechanism.sample(np.asarray(self.question.columns), noise)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """What the mechanism makes of it; a regression with the names of its columns."""
        answer = self.mechanism.answer_of(output, origin)
        return answer if isinstance(answer, Estimate) else self.question.presented(answer, origin)

    def describe(self, output: Any) -> str:
        """The question, and the mechanism's description."""
        return f"{self.question.title} {self.mechanism.describe(output)}"


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyMoments(PureMechanism[Any]):
    """A variance, covariance or correlation (a float), or a linear regression, from sums with Laplace noise.

    Parameters
    ----------
    question
        Which statistic of which table.
    epsilon
        The whole budget.

    Proof: thm-table-moments
    """

    question: Moments
    epsilon: Number

    @property
    def _scale(self) -> Fraction:
        """The scale of the noise, for values in −1 … 1."""
        return self.question.sensitivity / exact(self.epsilon, "ε")

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled."""
        vector.discrete_laplace(SystemNoise(), 1 / (self._scale * STEPS**2), 0)

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """Query the sums, add noise, and compute the statistic from them."""
        sums = np.clip(self.question.exact(), -FARTHEST, FARTHEST).astype(np.int64)
        drawn = vector.discrete_laplace(noise, 1 / (self._scale * STEPS**2), sums.size)
        if self.question.fixed:
            drawn[0] = 0
        noisy = saturating_sum(sums, drawn)
        return self._statistic(noisy / STEPS**2)

    def _statistic(self, noisy: NDArray[np.float64]) -> Any:
        """The statistic, from the noisy number of rows, sums and sums of products, for values in −1 … 1."""
        values, size = len(self.question.values), max(float(noisy[0]), 1.0)
        means, moments = noisy[1 : 1 + values] / size, np.zeros((values, values))
        for (i, j), product in zip(self.question.pairs, noisy[1 + values :] / size, strict=True):
            moments[i, j] = moments[j, i] = product
        if self.question.statistic == "regression":
            equations = NormalEquations.of(means, moments, float(self._scale) / size)
            return self.question.box.restored(equations.intercept, equations.coefficients)
        return self._number(moments - np.outer(means, means))

    def _number(self, covariance: NDArray[np.float64]) -> float:
        """The statistic within its possible range, in units of the data."""
        halves = self.question.box.halves
        if self.question.statistic == "variance":
            return float(np.clip(covariance[0, 0], 0, 1) * halves[0] ** 2)
        both, spreads = float(covariance[0, 1]), (float(covariance[0, 0]), float(covariance[1, 1]))
        if self.question.statistic == "covariance":
            return float(np.clip(both, -1, 1) * halves[0] * halves[1])
        return float(np.clip(both / (spreads[0] * spreads[1]) ** 0.5, -1, 1)) if min(spreads) > 0 else 0.0

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """A number of which no error is known; or a regression with the names of its columns."""
        return self.question.presented(output, origin)

    def describe(self, output: Any) -> str:
        """The statistic and its value."""
        shown = f"{output:.6g}" if isinstance(output, float) else f"{output.intercept:.6g} + {output.coefficients}"
        return f"{self.question.title} {shown}"
