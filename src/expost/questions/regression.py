"""Linear regression of a target on features, all clamped: least squares from noisy moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from expost.cost import Number
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.frame import AsFrame, Frame
from expost.mechanisms import RegressionOfRecords
from expost.mechanisms.linear.box import STEPS, LinearFit
from expost.mechanisms.linear.normal_equations import NormalEquations
from expost.noise.sums import LaplaceSteps
from expost.questions.noised import Noised, standard_deviation
from expost.questions.products import Products
from expost.questions.statistic import ColumnOf, Statistic, check_listed, column_of

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.mechanism import Mechanism
    from expost.questions.statistics import Statistics  # noqa: F401  # named in brackets

WHY_UNKNOWN = "it depends on the data how far noise moves a regression"


@dataclass(frozen=True)
class LinearRegression(Statistic["Statistics"]):
    """Linear regression of a target on features.

    Of a table: ``table.regression(["age"], "cost", bounds=[(0, 110)], target_bounds=(0, 500))``.
    Of an array: ``xp.LinearRegression(bounds=[(0, 110)], target_bounds=(0, 500))``.

    Parameters
    ----------
    features
        The columns or expressions to predict from.
    target
        The one to predict.
    bounds
        A pair (lowest, highest) for each feature, or one pair for all of them.
    target_bounds
        That of the target.
    missing
        What NULL and NaN count as; with ``"drop"`` a row counts only if it has all values.

    Proof: thm-table-moments, lem-grouped-products
    """

    kind: ClassVar[str] = "regression"

    features: Sequence[ColumnOf] = ()
    target: ColumnOf | None = None
    bounds: Sequence[Any] = ()
    target_bounds: tuple[Number, Number] | None = None
    missing: Number | str = "drop"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features != ():
            check_listed(self.features, "features")

    def of_columns(self, names: tuple[str, ...]) -> LinearRegression:
        """Without features all other columns; without both the last column is the target."""
        if self.features:
            return self
        target = names[-1] if self.target is None else self.target
        return replace(self, features=tuple(name for name in names if name != target), target=target)

    def read(self, table: PrivateTable) -> RegressionOfTable:
        """The columns, parsed."""
        check_listed(self.features, "features")
        target = column_of(self.target, "target")
        pairs = list(self.bounds) if isinstance(self.bounds, Sequence) and not isinstance(self.bounds, str) else None
        if not pairs:
            raise InvalidValue(f"bounds are a pair for each feature, the lowest first, got {self.bounds!r}")
        if not any(isinstance(pair, Sequence) for pair in pairs):
            pairs = [tuple(pairs)] * len(self.features)
        columns, ends = [*self.features, target], [*pairs, self.target_bounds]
        found: RegressionOfTable = RegressionOfTable.of(table, columns, ends, self.missing)
        return found


class NamedFit(LinearFit, AsFrame):
    """A linear regression that knows the names of its columns."""

    what: str
    features: tuple[str, ...]

    @classmethod
    def of(cls, fit: LinearFit, asked: Products) -> NamedFit:
        """The names are those of the question."""
        made = cls(*fit)
        made.what, made.features = asked.what, tuple(value.name for value in asked.values[:-1])
        return made

    @property
    def terms(self) -> dict[str, Estimate]:
        """The intercept, and the coefficient of each feature."""
        names, numbers = ("intercept", *self.features), (self.intercept, *self.coefficients)
        return {name: Estimate.unknown(number, WHY_UNKNOWN) for name, number in zip(names, numbers, strict=True)}

    @property
    def frame(self) -> Frame:
        """A row for the intercept, and for the coefficient of each feature."""
        numbers = list(self.terms.values())
        return Estimates.by_key(("term",), ("intercept", *self.features), self.what, numbers.__getitem__).frame


@dataclass(frozen=True)
class RegressionOfTable(Products):
    """Least squares of clamped values."""

    name: ClassVar[str] = "regression"

    @property
    def what(self) -> str:
        """The target."""
        return f"regression of {self.values[-1].name}"

    def array_mechanism(self, **settings: Any) -> Mechanism:
        """That for an array of records."""
        *features, target = self.bounds
        return RegressionOfRecords(bounds=features, target_bounds=target, **settings)

    def answer(self, noised: Noised) -> NamedFit:
        """The coefficients, with as much ridge as the noise calls for."""
        size, means, products = self.moments(noised)
        law = noised.laws[-1]
        assert law is not None
        spread = 1 / float(law.rate) if isinstance(law, LaplaceSteps) else standard_deviation(law) / 2**0.5
        equations = NormalEquations.of(means, products, spread * noised.groups**0.5 / STEPS**2 / size)
        return NamedFit.of(self.box.restored(equations.intercept, equations.coefficients), self)
