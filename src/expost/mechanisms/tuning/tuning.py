"""Private tuning: a random number of runs of random candidates, of which the best is published."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

from expost.checks import as_share, as_whole, check_fields, common_unit, finite, optional
from expost.cost import Number, exact
from expost.errors import InvalidValue, NeighbourMismatch
from expost.estimates import Estimates, without_errors
from expost.frame import Frame
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism, rows_by
from expost.mechanisms.linear.tested import halves
from expost.mechanisms.stability.test import REFUSED
from expost.mechanisms.tuning.runs import mean_runs, number_of_runs
from expost.mechanisms.tuning.scores import Score
from expost.noise import NoiseSource

_MET = "good enough"
_CHOSEN = "it was published because its score was the best, which errors do not take into account"
MOST_CANDIDATES = 10_000
"""Each has a price of its own in the guarantee."""


class Tuned(NamedTuple):
    """What tuning publishes: the number of the candidate from 0 on, its output and score, and whether that is enough.

    ``met`` says whether the score is ``good_enough``; it is False if nothing was asked for.
    """

    candidate: int
    value: Any
    score: float
    met: bool


@dataclass(frozen=True, kw_only=True)
class Tuning(Mechanism[Any, Tuned]):
    """The best of several candidates by a private score, at twice the cost of one ("private hyperparameter tuning").

    Candidates differ in whatever one likes: model, parameters, ε. A random number of times, one of them is drawn at
    random, run on some of the records, and scored with noise on the others. The best output is published with its
    score; all others stay unseen and cost nothing.

    Parameters
    ----------
    candidates
        The mechanisms to choose from, up to 10,000. None of them may withhold.
    score
        The private score: :class:`CorrectPredictions`, :class:`MeanAbsoluteError`, or another :class:`Score`. It has as
        much ε as the candidate that it is about.
    held_out
        The share of records, rounded up, that is held out for scores at random. None if the data is a pair of disjoint
        sets of records: for the candidates, and for the scores.
    good_enough
        A score that is enough. Among outputs that reach it, one with less ε is better. By default the best score is.
    factor
        The price in multiples of ε: above 1, at most 3. Less means fewer runs.
    runs
        The more, the more runs: their mean is ``mean_runs``, and the chance of more than k falls like e^−(k/runs).

    An output that is good enough costs ``factor`` times its candidate's ε. Any other costs its candidate's ε, and
    factor − 1 times the largest ε of all candidates. δ is that of an average candidate times ``mean_runs``. Neighbours
    exchange a record (``"substitute"``): scores are of a public number of records. The number of runs must stay
    private, and so must the time that they took.

    >>> from expost.mechanisms import CorrectPredictions, OutputPerturbation
    >>> models = [OutputPerturbation(epsilon=e, norm=1) for e in (0.1, 1)]
    >>> tuning = Tuning(candidates=models, score=CorrectPredictions(), held_out=0.3, good_enough=0.8)
    >>> tuning.guarantee.epsilon_of(("good enough", 0)), tuning.guarantee.epsilon_of(0)
    (0.2, 1.1)

    Proof: thm-tuning
    """

    candidates: tuple[Mechanism, ...]
    score: Score
    held_out: Number | None = None
    good_enough: Number | None = None
    factor: Number = 2
    runs: int = 100

    def __post_init__(self) -> None:
        _check_candidates(self.candidates)
        object.__setattr__(self, "candidates", tuple(self.candidates))
        if not isinstance(self.score, Score):
            raise InvalidValue(f"score is a Score such as CorrectPredictions(), got {type(self.score).__name__}")
        check_fields(self, good_enough=optional(finite))
        if not 1 < exact(self.factor, "factor") <= 3:
            raise InvalidValue(f"factor is the price in multiples of ε, above 1 and at most 3, got {self.factor}")
        check_fields(self, runs=partial(as_whole, least=2, most=10**6))
        if self.held_out is not None:
            as_share(self.held_out, "held_out")
        _ = self.guarantee

    @cached_property
    def _epsilons(self) -> list[Fraction]:
        """What one run of each candidate costs, with its score."""
        return [candidate.guarantee.worst_case.exact_epsilon for candidate in self.candidates]

    @property
    def mean_runs(self) -> float:
        """How many runs there are on average."""
        return float(self._mean_runs)

    @cached_property
    def _mean_runs(self) -> Fraction:
        return mean_runs(Fraction(1, self.runs), exact(self.factor, "factor"))

    @cached_property
    def guarantee(self) -> Guarantee:
        """factor·ε of the candidate if it is good enough; else its ε and factor − 1 times the largest."""
        factor, most = exact(self.factor, "factor"), max(self._epsilons)
        table: dict[Part, Fraction] = {i: own + (factor - 1) * most for i, own in enumerate(self._epsilons)}
        if self.good_enough is not None:
            table |= {(_MET, i): factor * own for i, own in enumerate(self._epsilons)}
        deltas = [candidate.guarantee.worst_case.exact_delta for candidate in self.candidates]
        delta = self._mean_runs * sum(deltas) / len(deltas)
        if delta >= 1:
            raise InvalidValue(f"δ would be {float(delta):.3g} after {self.mean_runs:.3g} runs on average: take less")
        unit = common_unit(candidate.guarantee.unit for candidate in self.candidates)
        return Guarantee(table, delta, neighbours="substitute", unit=unit)

    def part_of(self, output: Tuned) -> Part:
        """The candidate, and whether it was good enough."""
        return (_MET, output.candidate) if output.met else output.candidate

    def check(self, data: Any) -> None:
        """What a candidate or the score refuses, of data that can be split."""
        train, held_out = halves(data, self.held_out)
        for candidate in self.candidates:
            candidate.check(train)
        self.score.check(held_out)

    def sample(self, data: Any, noise: NoiseSource) -> Tuned:
        """The best of a random number of runs; the first one among equals."""
        train, held_out = halves(data, self.held_out, noise)
        runs = number_of_runs(noise, Fraction(1, self.runs), exact(self.factor, "factor"))
        return max((self._run(train, held_out, noise) for _ in range(runs)), key=self._rank)

    def _run(self, train: Any, held_out: Any, noise: NoiseSource) -> Tuned:
        number = noise.below(len(self.candidates))
        value = self.candidates[number].sample(train, noise)
        score = self.score.noisy(value, held_out, self._epsilons[number], noise)
        return Tuned(number, value, score, self.good_enough is not None and score >= float(self.good_enough))

    def _rank(self, run: Tuned) -> tuple[bool, Fraction, float]:
        """What is good enough is before what is not, and there less ε is better; then more score is."""
        return run.met, -self._epsilons[run.candidate] if run.met else Fraction(0), run.score

    def answer_of(self, output: Tuned, origin: Hashable) -> Any:
        """The output of the candidate as people read it, without errors: it is the best of several."""
        read = self.candidates[output.candidate].answer_of(output.value, origin)
        return output._replace(value=without_errors(read, _CHOSEN))

    def frame_of(self, answer: Tuned) -> Frame:
        """The candidate and its score, and then the rows of its output, if these are numbers."""
        found = Estimates.named({"candidate": answer.candidate, "score": answer.score}).frame
        rows = rows_by(self.candidates[answer.candidate], answer.value)
        if not rows.is_numbers:
            return found
        empty = (None,) * (len(rows.names) - len(found.names))
        first = tuple((row[0], *empty, *row[1:]) for row in found.rows)
        return Frame(rows.names, (*first, *rows.rows), notes=rows.notes)

    def describe(self, output: Tuned) -> str:
        """The candidate and its score."""
        enough = "good enough" if output.met else f"best of about {self.mean_runs:.0f} runs"
        return f"candidate {output.candidate} of {len(self.candidates)}, score {output.score:.4g} ({enough})"


def _check_candidates(candidates: Any) -> None:
    """Mechanisms for a public number of records that run in one go and always answer."""
    if not isinstance(candidates, tuple | list) or not candidates:
        kind = "none" if isinstance(candidates, tuple | list) else f"a {type(candidates).__name__}"
        raise InvalidValue(f"candidates are a list of mechanisms, at least one, got {kind}")
    as_whole(len(candidates), "the number of candidates", most=MOST_CANDIDATES)
    for candidate in candidates:
        kind = type(candidate).__name__
        if not isinstance(candidate, Mechanism):
            raise InvalidValue(f"candidates are mechanisms, got {kind}")
        if type(candidate).sample is Mechanism.sample:
            raise InvalidValue(f"{kind} is interactive: only what runs in one go is tuned")
        if REFUSED in candidate.guarantee.parts:
            raise InvalidValue(f"{kind} may withhold its output: take candidates that always answer")
        if candidate.guarantee.neighbours == "add-remove":
            raise NeighbourMismatch("add-remove", "substitute", "a score on a public number of records")
        if not candidate.guarantee.worst_case.epsilon_units:
            raise InvalidValue(f"{kind} costs no ε, so that its score would have none: give each candidate some")
