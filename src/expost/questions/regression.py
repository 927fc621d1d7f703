"""Linear regression of a target on features, all clamped: least squares from noisy moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.cost import Number
from expost.errors import InvalidValue
from expost.estimate import USUAL, Ends, Estimate
from expost.estimates import Estimates
from expost.frame import AsFrame, Frame
from expost.mechanisms import RegressionOfRecords
from expost.mechanisms.linear.box import STEPS, Box, LinearFit
from expost.mechanisms.linear.normal_equations import NormalEquations
from expost.noise.sums import LaplaceSteps
from expost.questions.noised import Noised, NoiseOfNumbers, standard_deviation
from expost.questions.products import Products
from expost.questions.statistic import ColumnOf, Statistic, check_listed, column_of

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.mechanism import Mechanism
    from expost.questions.statistics import Statistics  # noqa: F401  # named in brackets

WHY_UNKNOWN = "it depends on the data how far noise moves a regression"
WHY_TOO_MUCH = "noise may be as large as the spread of the features: take more ε, or tighter bounds"
_ROUNDING = 1 + 2.0**-20
"""More than floats lose where noise is small beside the spread of the features."""


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
    """A linear regression that knows the names of its columns, and how far noise moved it, where that is known."""

    what: str
    names: tuple[str, ...]
    noise: FitNoise | None
    why: str

    @classmethod
    def of(cls, fit: LinearFit, asked: Products, noise: FitNoise | None = None, why: str = WHY_UNKNOWN) -> NamedFit:
        """The names are those of the question; ``why`` says why there are no errors, if ``noise`` is None."""
        made = cls(*fit)
        made.what, made.names, made.noise, made.why = asked.what, asked.terms, noise, why
        return made

    def without_errors(self, why: str) -> NamedFit:
        """The same function, of whose errors nothing is said."""
        made = type(self)(*self)
        made.what, made.names, made.noise, made.why = self.what, self.names, None, why
        return made

    @property
    def features(self) -> tuple[str, ...]:
        """What the features are called, in the order of their coefficients."""
        return self.names[1:]

    @property
    def terms(self) -> dict[str, Estimate]:
        """The intercept, and the coefficient of each feature."""
        numbers = self.intercept, *self.coefficients
        return {name: self._term(place, numbers[place]) for place, name in enumerate(self.names)}

    def _term(self, place: int, number: float) -> Estimate:
        if self.noise is None:
            return Estimate.unknown(number, self.why)
        ends = partial(self.noise.ends, place, number)
        return Estimate.between(number, ends) if isfinite(ends(1 - USUAL)[0]) else Estimate.unknown(number, self.why)

    @property
    def frame(self) -> Frame:
        """A row for the intercept, and for the coefficient of each feature."""
        numbers = list(self.terms.values())
        return Estimates.by_key(("term",), self.names, self.what, numbers.__getitem__).frame


@dataclass(frozen=True, eq=False)
class FitNoise:
    """How far noise moved the solution of noisy normal equations: of all its numbers at once.

    Parameters
    ----------
    matrix
        The noisy sums of products of the features, the constant first; in steps.
    target
        Those of the features and the target.
    box
        What scales the numbers of a fit to the units of the data.
    noise
        The noise of the sums.
    places
        For each equation, where its sums are among these, those of the matrix first.

    Proof: lem-regression-error
    """

    matrix: NDArray[np.float64]
    target: NDArray[np.float64]
    box: Box
    noise: NoiseOfNumbers
    places: tuple[tuple[int, ...], ...]

    def ends(self, place: int, number: float, miss: Fraction) -> Ends:
        """Between which the number of the solution without noise lies, but for a probability; ``number`` does, too."""
        if miss not in self._found:
            self._found[miss] = self._halves(miss)
        if (halves := self._found[miss]) is None:
            return -inf, inf
        middle, half = float(self._middles[place]), float(halves[place])
        return min(middle - half, number), max(middle + half, number)

    @cached_property
    def _found(self) -> dict[Fraction, NDArray[np.float64] | None]:
        """What was computed once: all numbers of a fit share it, and each is asked for its ends and its error."""
        return {}

    @cached_property
    def _inverse(self) -> NDArray[np.float64] | None:
        try:
            return np.asarray(np.linalg.inv(self.matrix), np.float64)
        except np.linalg.LinAlgError:
            return None

    @cached_property
    def _solution(self) -> NDArray[np.float64]:
        assert self._inverse is not None
        return np.asarray(self._inverse @ self.target, np.float64)

    @cached_property
    def _middles(self) -> NDArray[np.float64]:
        found = self.box.scaling @ self._solution
        found[0] += self.box.middles[-1]
        return np.asarray(found, np.float64)

    def _halves(self, miss: Fraction) -> NDArray[np.float64] | None:
        """How far each number may be off, in units of the data; None if noise is too large to say."""
        if self._inverse is None:
            return None
        each = miss / len(self.places)
        long = max(self.noise.along(each, *places) for places in self.places) * _ROUNDING
        rows = np.abs(self._inverse).sum(axis=1)
        share = float(np.linalg.norm(rows)) * long
        if not share < 1:
            return None
        most = long * sqrt(1 + float(self._solution @ self._solution)) / (1 - share)
        weights = (*(np.abs(self._solution) + rows * most).tolist(), 1.0)
        reaches = [min(most, self.noise.reach(weights, each, *places)) for places in self.places]
        return np.asarray(np.abs(self.box.scaling @ self._inverse) @ np.array(reaches) * _ROUNDING, np.float64)


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
        """The coefficients, with as much ridge as the noise calls for, and with how far noise moved them."""
        size, means, products = self.moments(noised)
        law = noised.laws[-1]
        assert law is not None
        spread = 1 / float(law.rate) if isinstance(law, LaplaceSteps) else standard_deviation(law) / 2**0.5
        equations = NormalEquations.of(means, products, spread * noised.groups**0.5 / STEPS**2 / size)
        fit = self.box.restored(equations.intercept, equations.coefficients)
        return NamedFit.of(fit, self, self._noise(noised), WHY_TOO_MUCH)

    def _noise(self, noised: Noised) -> FitNoise:
        """The sums as equations: the constant and the features, each with all of them and with the target."""
        target = len(self.values) - 1
        inner = [None, *range(target)]
        places = [tuple(self._place(one, other) for other in [*inner, target]) for one in inner]
        sums = np.array(noised.numbers, np.float64)[np.array(places)]
        return FitNoise(sums[:, :-1], sums[:, -1], self.box, noised.noise, tuple(places))

    def _place(self, *pair: int | None) -> int:
        """Where the sum of the product of two values is; None stands for the constant."""
        values = [value for value in pair if value is not None]
        return self.place(*values) if values else 0
