"""A quantile that pays until it is good enough: estimates with more and more ε, and a test after each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor
from typing import Any, NamedTuple

from numpy.typing import NDArray

from expost import bracket
from expost.checks import (
    as_bounds,
    as_confidence,
    as_positive,
    as_probability,
    as_share,
    as_whole,
    check_fields,
    optional,
)
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.estimate import USUAL, Estimate
from expost.guarantee import Guarantee, Neighbours, Part
from expost.mechanism import Mechanism
from expost.mechanisms.quantiles.candidates import Lattice, Unbounded
from expost.mechanisms.quantiles.ordered import Ordered, Tally, arrange, has_floats
from expost.mechanisms.quantiles.quantiles import QuantileOfRecords, target
from expost.mechanisms.quantiles.windows import Target, Windows
from expost.mechanisms.sparse_vector.sparse_vector import SparseVector
from expost.noise import NoiseSource
from expost.noise.grid import Grid


class Rung(NamedTuple):
    """What a ladder publishes: the last estimate, how many there were, and whether it passed the test."""

    value: float
    rung: int
    passed: bool


@dataclass(frozen=True, kw_only=True)
class QuantileLadder(Mechanism[NDArray[Any] | Tally, Any]):
    """A quantile to within a distance, with as little of ε as the data allows; the rest is refunded.

    Estimates with growing shares of ε are tried in turn. After each, one sparse vector tests whether the true quantile
    certainly lies within the distance; the first one that passes is published.

    The part is the rung that passed, or 0 if none did.

    Parameters
    ----------
    quantile
        From 0 to 1.
    within
        How far the true quantile of the records, moved into the bounds, may be from the value published: at least half
        of the grid. Without bounds, at least a part in 2^24 of the quantile itself, or nothing passes.
    epsilon
        The whole budget: for all rungs and the test.
    bounds, neighbours, grid, missing
        As for :class:`QuantileOfRecords`.
    confidence
        With which a value that passed is within the distance.
    rungs
        How many estimates there are at most. Each has 1.5 times the ε of the one before.
    test_share
        The share of ε that the test may cost.

    >>> ladder = QuantileLadder(quantile=0.5, within=1, epsilon=1, bounds=(0, 120), neighbours="substitute")
    >>> ladder.guarantee.epsilon_of(1), ladder.guarantee.epsilon_of(8)
    (0.346867565423, 0.999999999995)

    Proof: thm-ladder
    """

    quantile: Number
    within: Number
    epsilon: Number
    bounds: Any = None
    neighbours: Neighbours
    grid: Number | None = None
    missing: Number = 0
    confidence: Number = Fraction(19, 20)
    rungs: int = 8
    test_share: Number = Fraction(1, 3)

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "missing", bounds=optional(as_bounds))
        check_fields(self, rungs=partial(as_whole, most=100))
        as_probability(self.quantile, "quantile")
        as_positive(self.within, "within")
        as_confidence(self.confidence)
        _ = self._estimates, self.guarantee

    @cached_property
    def _estimates(self) -> tuple[QuantileOfRecords, ...]:
        """The mechanisms of the rungs."""
        rest: dict[str, Any] = {"bounds": self.bounds, "neighbours": self.neighbours}
        rest |= {"grid": self.grid, "missing": self.missing}
        spent = exact(self.epsilon, "ε") - self._test_epsilon
        weights = [Fraction(3, 2) ** rung for rung in range(self.rungs)]
        shares = (spent * weight / sum(weights) for weight in weights)
        return tuple(QuantileOfRecords(quantile=self.quantile, epsilon=share, **rest) for share in shares)

    @property
    def _test_epsilon(self) -> Fraction:
        return Cost.within(exact(self.epsilon, "ε") * as_share(self.test_share, "test_share")).exact_epsilon

    @cached_property
    def test(self) -> SparseVector:
        """The test: whether more records must change than its noise has ever been, at the confidence."""
        plain = SparseVector(
            threshold=0, at_most=1, epsilon=self._test_epsilon, sensitivity=1, neighbours=self.neighbours
        )
        miss = 1 - as_confidence(self.confidence)
        threshold = ceil(bracket.log(self.rungs / miss).upper / plain.rate) - plain.centre
        return replace(plain, threshold=max(threshold, 0))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the rungs up to the last cost, and the test."""
        prices: dict[Part, Fraction] = {0: self._paid(self.rungs) + self._tested(False, self.rungs)}
        for rung in range(1, self.rungs + 1):
            prices[rung] = self._paid(rung) + self._tested(True, rung)
        return Guarantee(prices, neighbours=self.neighbours)

    def _paid(self, rung: int) -> Fraction:
        return sum((exact(estimate.epsilon, "ε") for estimate in self._estimates[:rung]), Fraction(0))

    def _tested(self, passed: bool, answers: int) -> Fraction:
        return self.test.guarantee.cost_of(self.test.part(int(passed), answers)).exact_epsilon

    def part_of(self, output: Rung) -> Part:
        """The rung that passed, or 0."""
        return output.rung if output.passed else 0

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers, or a tally of them; its own test finds out whether they are enough."""
        self._span(0, has_floats(data, type(self).__name__))

    def _lattice(self, floats: bool) -> Lattice | Unbounded:
        """The candidates: within bounds and for floats without a grid, at least four in the distance."""
        if self.bounds is None:
            return Unbounded.of(self.grid, floats=floats)
        plain = Lattice.of(self.bounds, self.grid, floats=floats)
        finer = exact(self.within, "within") / 4
        if self.grid is not None or not floats or plain.step <= finer:
            return plain
        return Lattice.of(self.bounds, Grid.within(finer).step, floats=True)

    def _span(self, chosen: int, floats: bool) -> range:
        """The candidates to which all records are rounded that are within the distance of the one chosen."""
        lattice = self._lattice(floats)
        if isinstance(lattice, Unbounded):
            return lattice.within(chosen, exact(self.within, "within"), floats=floats)
        steps = self._reach(lattice, floats)
        return range(chosen - steps, chosen + steps + 1)

    def _reach(self, lattice: Lattice, floats: bool) -> int:
        """How many steps the true quantile of the rounded records may be away."""
        rest = exact(self.within, "within") - lattice.rounding(floats=floats)
        if rest < 0:
            raise InvalidValue(
                f"within is at least half of the grid {lattice.step}, got {self.within}: take a finer grid"
            )
        return floor(rest / lattice.step)

    def sample(self, data: Any, noise: NoiseSource) -> Rung:
        """The first estimate that passes, or the last."""
        floats = has_floats(data, type(self).__name__)
        lattice = self._lattice(floats)
        arranged = arrange(data, lattice, float(self.missing))
        goal = target(exact(self.quantile, "quantile"), arranged.size, self.neighbours).settled(arranged)
        ask = self.test.start(None, noise)
        for estimate in self._estimates:
            rate = exact(estimate.epsilon, "ε") / 2
            (chosen,) = Windows(arranged, (goal,), rate, paired=False).sample(noise)
            if ask(margin(arranged, goal, self._span(chosen, floats))):
                break
        return Rung(lattice.value(chosen), len(ask.transcript), ask.closed)

    @property
    def what(self) -> str:
        """What it is."""
        return "quantile"

    def answer_of(self, output: Rung, origin: Hashable) -> Any:
        """The value, whose error is the distance if it passed; ``how`` is the :class:`Rung`."""
        confidence = as_confidence(self.confidence)
        if output.passed and confidence >= USUAL:
            return Estimate.within(output.value, exact(self.within, "within"), (origin, 0), how=output)
        passed = (
            f"within {self.within} at {float(100 * confidence):g} % only" if output.passed else "no test was passed"
        )
        return Estimate.unknown(output.value, passed, how=output)

    def describe(self, output: Any) -> str:
        """The value, and whether it is known to be near."""
        passed = f"within {self.within}" if output.passed else "did not pass"
        return f"{output.value:.6g}, {passed} (attempt {output.rung} of {self.rungs})"


def margin(data: Ordered, goal: Target, span: range) -> int:
    """How many records must change until the quantile is outside of a span of candidates; 0 if it is.

    Proof: lem-ladder-margin
    """
    least, most = span.start - 1, span.stop
    if not span:
        return 0
    down = max(-goal.deviation(data, least), 0) if least >= 0 else data.size
    up = max(goal.deviation(data, most), 0) if most < data.lattice.size else data.size
    return min(down, up, data.size)
