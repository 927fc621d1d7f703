"""Questions to a private table. Each is a frozen plan that knows its sensitivity; with noise it is a mechanism.

A ledger runs that mechanism, and the table is queried after the reservation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from expost.cost import DELTA_UNITS, Cost, Number, exact
from expost.data.answers import WHY_CUT_OFF, DrawnCells, may_be_cut_off
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.estimates import Estimates
from expost.frame import number_text
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism, Out
from expost.mechanisms import Gaussian, Laplace, NoiseReduction, RelativeError, SparseVector
from expost.mechanisms.additive import Additive, NoiseOf
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.numbers import shape_of
from expost.mechanisms.reduction.levels import Reduced
from expost.mechanisms.wrapper import Wrapper
from expost.noise import NoiseSource
from expost.question import WITHIN_CONFIDENCE, Question, Terms

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.data.table import PrivateTable
    from expost.questions.record import QuestionRecord

_LEVELS = 40  # of noise reduction: from ε down to a six-thousandth


class Planned(ABC):
    """What is asked of a table, with the query that answers it."""

    table: PrivateTable
    record: QuestionRecord | None = None
    """The settings that it was made from; None if no one record says it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is asked, with the rules for values, in a few words."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What its numbers are, in a few words: they stand in the first column of frames."""

    @cached_property
    @abstractmethod
    def plan(self) -> str:
        """The query that will be run, with the key of the hash."""

    def __repr__(self) -> str:
        return f"<{self.title} of {self.table.title}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


class NumericQuestion(Planned, Question[Out]):
    """A question answered with numbers to which noise is added: Laplace or Gaussian."""

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the exact answer."""

    @property
    def nothing(self) -> int | NDArray[np.int64]:
        """Zeros in the shape of the answer."""
        return 0

    @property
    def key_names(self) -> tuple[str, ...]:
        """What the columns of its keys are called; empty if the answer is one number."""
        return ()

    @abstractmethod
    def exact(self) -> int | NDArray[np.int64]:
        """The exact answer, in whole numbers. Private: mechanisms call it, after the reservation."""

    @abstractmethod
    def present(self, numbers: Any) -> Out:
        """Noisy whole numbers as people read them."""

    def distance(self, steps: float) -> float:
        """A distance between exact answers as people read it."""
        return float(steps)

    def _mechanism(self, terms: Terms) -> Mechanism[None, Any]:
        """By the rule of :meth:`~expost.question.Question.mechanism`; ``_pure`` is what takes no δ."""
        if terms.share is not None:
            return self._reduced(terms, terms.share)
        if terms.within is not None:
            return self._within(terms, terms.within)
        if terms.noise == "laplace":
            return self._laplace(terms.price)
        if terms.noise == "gaussian":
            return self._gaussian(terms)
        pure: Mechanism[None, Any] = self._pure(terms.price)
        if not exact(terms.delta, "δ"):
            return pure
        both: list[Any] = [pure, self._gaussian(terms)]
        return min(both, key=lambda one: one.error_bound(WITHIN_CONFIDENCE))  # type: ignore[no-any-return]

    def _pure(self, epsilon: Number) -> Any:
        """The most accurate mechanism that takes no δ; it has an ``error_bound`` of all numbers."""
        return self._laplace(epsilon)

    def _laplace(self, epsilon: Number) -> Noisy[Out]:
        """With Laplace noise for the L1 sensitivity."""
        moved = self._moved().l1
        return Noisy(question=self, noise=Laplace(epsilon=epsilon, sensitivity=moved, neighbours=self.table.neighbours))

    def _gaussian(self, terms: Terms) -> Noisy[Out]:
        """With Gaussian noise for the L2 sensitivity: for ε and δ; or, without a δ, as dear as any pure ε at most."""
        epsilon, delta = gaussian_terms(terms)
        relation, moved = self.table.neighbours, self._moved().l2
        return Noisy(
            question=self, noise=Gaussian(epsilon=epsilon, delta=delta, sensitivity=moved, neighbours=relation)
        )

    def _within(self, terms: Terms, error: Number) -> Noisy[Out]:
        """With Laplace noise for the least ε that keeps all numbers within ``error``."""
        _laplace_only(terms)
        moved, count = self._moved().l1, int(np.size(self.nothing))
        steps = exact(error, "within") // exact(self.distance(1), "a step")
        noise = Laplace.for_accuracy(
            steps, WITHIN_CONFIDENCE, sensitivity=moved, neighbours=self.table.neighbours, n=count, floats=False
        )
        worst = noise.guarantee.worst_case
        allowed = None if terms.epsilon is None else Cost.within(terms.epsilon).exact_epsilon
        if allowed is not None and worst.exact_epsilon > allowed:
            raise InvalidValue(
                f"± {float(error):g} at 95 % takes {worst}, more than the ε {float(allowed):g} that it may use: "
                "ask for less accuracy"
            )
        return Noisy(question=self, noise=noise)

    def _reduced(self, terms: Terms, share: Fraction) -> NoisyUntil:
        """With noise that is reduced until the relative error is at most ``share``; the rest of ε is refunded."""
        _laplace_only(terms)
        rule, moved, relation = (
            RelativeError(within=share, confidence=WITHIN_CONFIDENCE),
            self._moved().l1,
            self.table.neighbours,
        )
        noise = NoiseReduction(epsilon=terms.price, sensitivity=moved, levels=_LEVELS, until=rule, neighbours=relation)
        return NoisyUntil(question=self, noise=noise)

    def _moved(self) -> Sensitivity:
        if not self.sensitivity.l1:
            raise InvalidValue(
                f"the {self.title} is public under substitution and needs no noise: it is table.size, or the length of "
                "an array"
            )
        return self.sensitivity

    def __repr__(self) -> str:
        moved = self.sensitivity
        far = f"L1 {moved.l1}, L2 {float(moved.l2):.6g}, each {moved.each}"
        return f"<{self.title} of {self.table.title}: one unit moves it by {far}>"


class TableMechanism(Mechanism[None, Out]):
    """A mechanism that brings its own data: a question to a table."""

    question: Planned

    @property
    def what(self) -> str:
        """What the question says."""
        return self.question.what

    @property
    def record(self) -> QuestionRecord | None:
        """The settings that its question was made from; None if no one record says it."""
        return self.question.record

    @property
    def noise_words(self) -> str:
        """Which noise there is on what, in words; empty if the kind of question says it best."""
        return ""

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
        self.check_noise()

    def check_noise(self) -> None:
        """Raise unless this noise can be sampled. From settings alone, without the table: plans ask, too."""

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

    question: NumericQuestion[Any]
    noise: Additive | SparseVector

    @property
    def inner(self) -> Mechanism:
        """The mechanism that adds the noise."""
        return self.noise

    @property
    def _plain_guarantee(self) -> Guarantee:
        """That of the mechanism that adds the noise."""
        return self.inner.guarantee

    def check_noise(self) -> None:
        """Raise unless the mechanism can be run on that many numbers."""
        self.noise.check(self.question.nothing)

    def _presented(self, numbers: Any, cells: Callable[[Sequence[Any]], DrawnCells]) -> Any:
        """An estimate, or one for each key."""
        if not isinstance(numbers, dict):
            return cells([numbers])(0)
        return Estimates.by_key(self.question.key_names, list(numbers), self.what, cells(list(numbers.values())))


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

    question: NumericQuestion[Out]
    noise: Additive

    @property
    def noise_words(self) -> str:
        """The noise, and of Laplace noise the scale."""
        if not isinstance(self.noise, Laplace):
            return "Gaussian"
        unit = self.question.distance(2**20) / 2**20
        return f"Laplace, scale {number_text(float(self.noise.sensitivity) / float(self.noise.epsilon) * unit)}"

    def sample(self, data: Any, noise: NoiseSource) -> Out:
        """Query the table, add noise, and present the numbers as the question does."""
        return self.question.present(self.noise.sample(self.question.exact(), noise))

    def error_bound(self, confidence: Number) -> float:
        """How far the noise moves the answer at most, with this confidence: for all numbers at once.

        The error due to clamping, to rounding and to the bound on a unit's rows is not included.
        """
        return self.question.distance(self.noise.error_bound(confidence, n=np.size(self.question.nothing)))

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """A number with its error; several by their keys, each with the error of its own noise."""
        step = self.question.distance(1)
        law = NoiseOf(self.noise, shape_of(self.question.nothing), Fraction(step))
        return self._presented(output, lambda numbers: DrawnCells(numbers, origin, law=law, step=step))

    def describe(self, output: Any) -> str:
        """The answer and its error bound at 95 %."""
        bound = self.error_bound("0.95")
        if isinstance(output, dict):
            beware = getattr(self.question, "mostly_other", lambda counts, error: "")(output, float(bound))
            return f"{self.question.title}, all ± {bound:.6g} at 95 %{f'; beware: {beware}' if beware else ''}"
        value = f"{output:.6g}" if isinstance(output, float) else f"{output}"
        if may_be_cut_off([output / self.question.distance(1)]):
            return f"{self.question.title} {value}: {WHY_CUT_OFF}"
        return f"{self.question.title} {value} ± {bound:.6g} at 95 %"


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyUntil(OnNumbers[Any]):
    """A count or a sum with noise that is reduced until the answer is accurate enough; only the last answer is charged.

    Parameters
    ----------
    question
        What is asked of which table.
    noise
        The levels of noise, and the rule that stops.

    Proof: thm-noise-reduction
    """

    question: NumericQuestion[Any]
    noise: NoiseReduction

    @property
    def noise_words(self) -> str:
        """The noise, and when it is small enough. An error of the answer holds at whatever step that is."""
        return f"Laplace, reduced step by step until {self.noise.until}; an interval for any step is wider"

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

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """Numbers with the errors that hold although they decided where to stop; ``how`` is the output itself."""
        step = self.question.distance(1)
        bound = partial(_at_stop, self.noise, output.level, step)
        return self._presented(output.value, lambda numbers: DrawnCells(numbers, origin, bound, how=output, step=step))

    def describe(self, output: Reduced) -> str:
        """The answer, its accuracy and its level."""
        near = f"{self.noise.until}" if output.met else f"± {self.error_bound('0.95', output=output):.6g} at 95 %"
        shown = f" {output.value:.6g}" if isinstance(output.value, int | float) else ", all"
        return f"{self.question.title}{shown} {near} (step {output.level} of {self.noise.levels})"


def _at_stop(noise: NoiseReduction, level: int, step: float, miss: Fraction) -> float:
    """How far noise moved one number of the level where it stopped, but for a probability."""
    return step * noise.error_bound(1 - miss, level=level, at_stop=True)


def gaussian_terms(terms: Terms) -> tuple[Number, Number]:
    """The (ε, δ) of Gaussian noise: as stated; or, without a δ, as dear as any answer with that ε at most."""
    return (terms.price, terms.delta) if exact(terms.delta, "δ") else _worth(terms.price, terms.meters)


def _worth(epsilon: Number, meters: LedgerMeters | None) -> tuple[Fraction, Fraction]:
    """The (ε, δ) of Gaussian noise that has at most the Rényi price of any answer with this ε. It spends no δ there."""
    from expost.accounting.renyi import normal_noise_worth

    if meters is None:
        raise InvalidValue(
            "Gaussian noise takes a δ where the basic sum is the only meter: pass delta=, or leave noise out"
        )
    delta = Fraction(meters.delta, DELTA_UNITS)
    return normal_noise_worth(meters.order, exact(epsilon, "ε"), delta), delta


def _laplace_only(terms: Terms) -> None:
    """An accuracy is reached with Laplace noise, whose levels can be reduced."""
    if terms.noise == "gaussian" or exact(terms.delta, "δ"):
        raise InvalidValue(
            "an accuracy is reached with Laplace noise: leave noise and delta out, or pass epsilon= alone"
        )
