"""Winsorised means of tables: two private quantiles, and the mean of the values clamped to them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from expost.checks import requested_epsilon, split_epsilon
from expost.cost import Number, exact
from expost.data.quantiles import PrivateQuantiles, Ranks
from expost.data.questions import Planned, TableMechanism, exact_bounds
from expost.data.sums import Clipped, Mean, NoisyMean
from expost.errors import InvalidValue
from expost.guarantee import Guarantee
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


@dataclass(frozen=True, repr=False)
class WinsorizedMean(Planned):
    """The mean of values clamped to two quantiles of theirs, so that bounds may be loose.

    Proof: thm-winsorized-mean
    """

    table: PrivateTable
    ranks: Ranks
    """The two quantiles."""

    @classmethod
    def of(
        cls, table: PrivateTable, value: str, trim: Number, bounds: Any, missing: Any, grid: Number | None
    ) -> WinsorizedMean:
        """Checks what was given."""
        share, (low, high) = exact(trim, "trim"), exact_bounds(bounds)
        if not 0 < share < Fraction(1, 2):
            raise InvalidValue(f"the share clamped on either side is above 0 and below 1/2, got {trim!r}")
        return cls(table, Ranks.of(table, value, (share, 1 - share), (low, high), missing, grid))

    @property
    def value(self) -> Clipped:
        """What is averaged, within its bounds."""
        assert isinstance(self.ranks.value, Clipped)  # of() has seen to it
        return self.ranks.value

    @property
    def title(self) -> str:
        """What is averaged."""
        low, high = (float(level) for level in self.ranks.levels)
        return f"mean of {self.ranks.value!r}, clamped to its quantiles {low:g} and {high:g}"

    @cached_property
    def plan(self) -> str:
        """The first of the two queries that will be run."""
        return self.ranks.plan

    def laplace(self, *, epsilon: Number) -> NoisyWinsorizedMean:
        """Half of ε for the quantiles, and half for the mean: ε-differentially private."""
        return NoisyWinsorizedMean(self, requested_epsilon(epsilon))


@dataclass(frozen=True, repr=False)
class NoisyWinsorizedMean(TableMechanism[float]):
    """A winsorised mean: private quantiles, and a noisy mean of the values clamped to them.

    Parameters
    ----------
    question
        The mean of what.
    epsilon
        The whole budget.

    Proof: thm-winsorized-mean
    """

    question: WinsorizedMean
    epsilon: Number

    def __post_init__(self) -> None:
        _ = self._budgets

    @property
    def guarantee(self) -> Guarantee:
        """ε for every output."""
        return Guarantee.uniform(self.epsilon, neighbours=self.question.table.neighbours)

    @cached_property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        return split_epsilon(self.epsilon, Fraction(1, 2), "share")

    @cached_property
    def _ends(self) -> PrivateQuantiles:
        return self.question.ranks.permute_and_flip(epsilon=self._budgets[0])

    def _mean(self, ends: tuple[float, float]) -> NoisyMean:
        """The mean of the values clamped to two points of the same grid."""
        value, table = self.question.value, self.question.table
        missing = "drop" if value.missing is None else value.missing
        clipped = Clipped.of(table, value.text, ends, missing, value.grid.step)
        return NoisyMean(Mean(table, clipped), self._budgets[1])

    def check(self, data: Any) -> None:
        """Both parts can be run, the mean with the widest ends."""
        super().check(data)
        self._mean(self.question.value.bounds).check(None)

    def sample(self, data: Any, noise: NoiseSource) -> float:
        """The mean between the ends chosen; if they are the same, that."""
        low, high = self._ends.sample(data, noise)
        return float(low) if low == high else self._mean((low, high)).sample(data, noise)

    def describe(self, output: Any) -> str:
        """The mean."""
        return f"{self.question.title} {output:.6g}"
