"""Questions to a private table. Each is a frozen plan that knows its sensitivity; with noise it is a mechanism.

A ledger runs that mechanism, and the table is queried after the reservation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_bounds
from expost.cost import Number, exact
from expost.data import query, sensitivity
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism, Out
from expost.mechanisms import DiscreteGaussian, Gaussian, Laplace, NoiseReduction, RelativeError, SparseVector
from expost.mechanisms.additive import Additive
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.reduction.levels import Reduced
from expost.mechanisms.wrapper import Wrapper
from expost.mentions import brief
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.data.table import Of, PrivateTable

_LEVELS = 40  # of noise reduction: from ε down to a six-thousandth

Shown = TypeVar("Shown", covariant=True)
"""The type of the answer as people read it."""


class Planned(ABC):
    """A question to a table, with the query that answers it."""

    table: PrivateTable

    @property
    @abstractmethod
    def title(self) -> str:
        """What is asked, with the rules for values, in a few words."""

    @cached_property
    @abstractmethod
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""

    def __repr__(self) -> str:
        return f"<{self.title} of {self.table.title}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


class Question(Planned, Generic[Shown]):
    """A question answered with numbers, and the ways of adding noise to them."""

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the exact answer."""

    @property
    def nothing(self) -> int | NDArray[np.int64]:
        """Zeros in the shape of the answer."""
        return 0

    @abstractmethod
    def exact(self) -> int | NDArray[np.int64]:
        """The exact answer, in whole numbers. Private: mechanisms call it, after the reservation."""

    @abstractmethod
    def present(self, numbers: Any) -> Shown:
        """Noisy whole numbers as people read them."""

    def distance(self, steps: float) -> float:
        """A distance between exact answers as people read it."""
        return float(steps)

    def laplace(self, *, epsilon: Number) -> Noisy[Shown]:
        """The question with Laplace noise for its L1 sensitivity: ε-differentially private."""
        moved = self._moved().l1
        return Noisy(question=self, noise=Laplace(epsilon=epsilon, sensitivity=moved, neighbours=self.table.neighbours))

    def laplace_within(self, error: Number, confidence: Number = "0.95") -> Noisy[Shown]:
        """The question with Laplace noise for the least ε that keeps all numbers within ``error``, with confidence."""
        moved, count = self._moved().l1, int(np.size(self.nothing))
        steps = exact(error, "error") // exact(self.distance(1), "a step")
        noise = Laplace.for_accuracy(
            steps, confidence, sensitivity=moved, neighbours=self.table.neighbours, n=count, floats=False
        )
        return Noisy(question=self, noise=noise)

    def reduced(self, *, epsilon: Number, within: Number, confidence: Number = "0.95") -> NoisyUntil:
        """The question with noise that is reduced until the relative error of the answer is at most ``within``.

        ``epsilon`` is reserved, and the ε of the level where it stops is charged: see
        :class:`~expost.NoiseReduction`. The value is a :class:`~expost.mechanisms.reduction.levels.Reduced`.
        """
        rule, moved = RelativeError(within=within, confidence=confidence), self._moved().l1
        relation = self.table.neighbours
        noise = NoiseReduction(epsilon=epsilon, sensitivity=moved, levels=_LEVELS, until=rule, neighbours=relation)
        return NoisyUntil(question=self, noise=noise)

    def gaussian(self, *, epsilon: Number, delta: Number) -> Noisy[Shown]:
        """The question with Gaussian noise for its L2 sensitivity: (ε, δ)-differentially private."""
        relation = self.table.neighbours
        return Noisy(
            question=self,
            noise=Gaussian(epsilon=epsilon, delta=delta, sensitivity=self._moved().l2, neighbours=relation),
        )

    def discrete_gaussian(self, *, rho: Number, delta: Number) -> Noisy[Shown]:
        """The question with discrete Gaussian noise for its L2 sensitivity: ρ-zCDP."""
        relation = self.table.neighbours
        return Noisy(
            question=self,
            noise=DiscreteGaussian(rho=rho, delta=delta, sensitivity=self._moved().l2, neighbours=relation),
        )

    def noisy(self, *, epsilon: Number, delta: Number = 0) -> Noisy:
        """The question with Laplace or Gaussian noise, whichever has the smaller error bound at 95 %.

        The bound is for all numbers at once. It follows from ε, δ, the sensitivities and the number of cells, which are
        public. Without δ the noise is Laplace; Gaussian noise is better where one unit may be in many cells.
        """
        pure = self.laplace(epsilon=epsilon)
        if not delta:
            return pure
        return min(pure, self.gaussian(epsilon=epsilon, delta=delta), key=lambda one: one.error_bound("0.95"))

    def _moved(self) -> Sensitivity:
        if not self.sensitivity.l1:
            raise InvalidValue(f"the {self.title} is public under substitution and needs no noise: see table.size")
        return self.sensitivity

    def __repr__(self) -> str:
        moved = self.sensitivity
        far = f"L1 {moved.l1}, L2 {float(moved.l2):.6g}, each {moved.each}"
        return f"<{self.title} of {self.table.title}: one unit moves it by {far}>"


class TableMechanism(Mechanism[None, Out]):
    """A mechanism that brings its own data: a question to a table."""

    question: Planned

    @final
    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, for the unit of the table. Here alone, so that no question forgets whose privacy it is."""
        return self._plain_guarantee.of_unit(self.question.table.unit.title)

    @property
    @abstractmethod
    def _plain_guarantee(self) -> Guarantee:
        """(P, E, δ) for one unit of the table, whatever that is called."""

    def check(self, data: Any) -> None:
        """Raise if data is given, or if the table can no longer be queried."""
        if data is not None:
            raise InvalidValue("a question runs on its own table, and on= was given: run it without on=…")
        _ = self.question.plan
        refuse_closed = getattr(self.question.table.engine, "refuse_closed", None)
        if refuse_closed is not None:  # since the question was planned
            refuse_closed()

    def part_of(self, output: Any) -> Part:
        """All outputs cost the same."""
        return RELEASED

    def __repr__(self) -> str:
        noise = getattr(self, "noise", None) or f"{self.guarantee.worst_case}"
        return f"{type(self).__name__}({self.question.title} of {self.question.table.title}; {noise})"


class MayLackUnits(TableMechanism[Out]):
    """A mechanism that has no answer if there are too few units."""

    @abstractmethod
    def require(self, units: int) -> None:
        """Refuse a public number of units with which there will be no answer."""


class PureMechanism(TableMechanism[Out]):
    """A question that costs ε, without δ, for every output."""

    epsilon: Number

    @property
    def _plain_guarantee(self) -> Guarantee:
        """ε for every output."""
        return Guarantee.uniform(self.epsilon, neighbours=self.question.table.neighbours)


class OnNumbers(TableMechanism[Out], Wrapper[None, Out]):
    """A mechanism for numbers, run on the exact answer to a question."""

    question: Question[Any]
    noise: Additive | SparseVector

    @property
    def inner(self) -> Mechanism:
        """The mechanism that adds the noise."""
        return self.noise

    @property
    def _plain_guarantee(self) -> Guarantee:
        """That of the mechanism that adds the noise."""
        return self.inner.guarantee

    def check(self, data: Any) -> None:
        """Raise unless the mechanism can be run on that many numbers."""
        super().check(data)
        self.noise.check(self.question.nothing)


@dataclass(frozen=True, kw_only=True, repr=False)
class Noisy(OnNumbers[Out]):
    """A count, a sum or a histogram with noise for its own sensitivity.

    Parameters
    ----------
    question
        What is asked of which table.
    noise
        The mechanism that adds the noise.

    Proof: thm-table
    """

    question: Question[Out]
    noise: Additive

    def sample(self, data: Any, noise: NoiseSource) -> Out:
        """Query the table, add noise, and present the numbers as the question does."""
        return self.question.present(self.noise.sample(self.question.exact(), noise))

    def error_bound(self, confidence: Number) -> float:
        """How far the noise moves the answer at most, with this confidence: for all numbers at once.

        The error due to clamping, to rounding and to the bound on a unit's rows is not included.
        """
        return self.question.distance(self.noise.error_bound(confidence, n=np.size(self.question.nothing)))

    def describe(self, output: Any) -> str:
        """The answer and its error bound at 95 %."""
        bound = self.error_bound("0.95")
        if isinstance(output, dict):
            return f"{self.question.title}, all ± {bound:.6g} at 95 %"
        value = f"{output:.6g}" if isinstance(output, float) else f"{output}"
        return f"{self.question.title} {value} ± {bound:.6g} at 95 %"


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyUntil(OnNumbers[Reduced]):
    """A count or a sum with noise that is reduced until the answer is accurate enough; only the last answer is charged.

    Parameters
    ----------
    question
        What is asked of which table.
    noise
        The levels of noise, and the rule that stops.

    Proof: thm-noise-reduction
    """

    question: Question[Any]
    noise: NoiseReduction

    def sample(self, data: Any, noise: NoiseSource) -> Reduced:
        """Query the table, and reduce the noise."""
        found = self.noise.sample(self.question.exact(), noise)
        return found._replace(value=self.question.present(found.value))

    def part_of(self, output: Reduced) -> Part:
        """The level of the answer."""
        return self.noise.part_of(output)

    def error_bound(self, confidence: Number, *, output: Reduced) -> float:
        """How far off the answer is at most, with this confidence; valid although the answer decided where to stop."""
        count = int(np.size(self.question.nothing))
        return self.question.distance(self.noise.error_bound(confidence, level=output.level, n=count, at_stop=True))

    def describe(self, output: Reduced) -> str:
        """The answer, its accuracy and its level."""
        near = f"{self.noise.until}" if output.met else f"± {self.error_bound('0.95', output=output):.6g} at 95 %"
        shown = f" {output.value:.6g}" if isinstance(output.value, int | float) else ", all"
        return f"{self.question.title}{shown} {near} (level {output.level} of {self.noise.levels})"


@dataclass(frozen=True, repr=False)
class Count(Question[int]):
    """The number of rows, or of units. At most ``unit.rows`` rows of each unit count.

    Parameters
    ----------
    table
        Whose rows.
    of
        ``"rows"`` or ``"units"``.

    Proof: lem-number
    """

    table: PrivateTable
    of: Of = "rows"

    def __post_init__(self) -> None:
        as_of(self.of)

    @property
    def title(self) -> str:
        """What is counted."""
        return f"count of {self.of}"

    @property
    def sensitivity(self) -> Sensitivity:
        """From the fewest and the most rows that a unit can have."""
        most = self.table.unit.rows if self.of == "rows" else 1
        return sensitivity.of_number(self.table.fewest, most, self.table.neighbours)

    @cached_property
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""
        counted = query.count_rows(self.table) if self.of == "rows" else query.count_units(self.table)
        return self.table.engine.check(counted)

    def exact(self) -> int:
        """The count."""
        return int(self.table.engine.fetch(self.plan)[0][0] or 0)

    def present(self, numbers: Any) -> int:
        """The noisy count."""
        return int(numbers)


def exact_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """The exact values of the two bounds, as the floats that the engine is given."""
    low, high = as_bounds(bounds)
    return Fraction(low), Fraction(high)


def as_of(of: Any) -> None:
    """Raise unless it is ``"rows"`` or ``"units"``."""
    if of not in ("rows", "units"):
        raise InvalidValue(f"of is what is counted, 'rows' or 'units'; got {brief(of)}")
