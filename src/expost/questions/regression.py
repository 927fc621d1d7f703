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


def terms_of(features: Sequence[str], constant: str = "intercept") -> tuple[str, ...]:
    """What the numbers of a regression are called: the constant first, in brackets if a feature has its name."""
    while constant in features:
        constant = f"({constant})"
    return constant, *features


@dataclass(frozen=True)
class LinearRegression(Statistic["Statistics"]):
    """Linear regression of a target on features.

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
        if len(set(found.terms)) < len(found.terms):
            raise InvalidValue(
                f"features are different columns or expressions, got {', '.join(found.terms[1:])}: name each once"
            )
        return found


class NamedFit(LinearFit, AsFrame):
    """A linear regression that knows the names of its columns."""

    what: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, fit: LinearFit, asked: Products) -> NamedFit:
        """The names are those of the question."""
        made = cls(*fit)
        made.what, made.names = asked.what, asked.terms
        return made

    @property
    def features(self) -> tuple[str, ...]:
        """What the features are called, in the order of their coefficients."""
        return self.names[1:]

    @property
    def terms(self) -> dict[str, Estimate]:
        """The intercept, and the coefficient of each feature."""
        numbers = self.intercept, *self.coefficients
        return {name: Estimate.unknown(number, WHY_UNKNOWN) for name, number in zip(self.names, numbers, strict=True)}

    @property
    def frame(self) -> Frame:
        """A row for the intercept, and for the coefficient of each feature."""
        numbers = list(self.terms.values())
        return Estimates.by_key(("term",), self.names, self.what, numbers.__getitem__).frame


@dataclass(frozen=True)
class RegressionOfTable(Products):
    """Least squares of clamped values."""

    name: ClassVar[str] = "regression"

    @property
    def what(self) -> str:
        """The target."""
        return f"regression of {self.values[-1].name}"

    @property
    def terms(self) -> tuple[str, ...]:  # type: ignore[override]
        """The intercept and the features."""
        return terms_of([value.name for value in self.values[:-1]])

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
