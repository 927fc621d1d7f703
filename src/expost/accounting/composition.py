"""What many steps cost together, as certified brackets: simple, Kairouz–Oh–Viswanath, Murtagh–Vadhan, loss laws.

Steps are fixed by index; each may be chosen by what came out before. Charge the upper ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, log, log2, sqrt
from typing import Any, TypeAlias

import numpy as np

from expost.accounting.binomial import Homogeneous
from expost.accounting.convolution import Tails, lighter, power, product, total
from expost.accounting.losses import Floats, Law, Loss, Response
from expost.bracket import Bracket
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue

Step: TypeAlias = "Loss | tuple[Number, Number]"
"""What a step can lose at most: a loss law, or an (ε, δ) pair."""

MISS = 1e-16
"""Mass that windows may cut off, in all."""
_MOST_POINTS = 2**20
_ROUNDING = 1e-12  # relative: what a sum of up to 2²⁰ positive terms may be off by, and more


def simple(steps: Iterable[tuple[Number, Number]]) -> Cost:
    """The sums: always true, and best for few steps.

    >>> simple([(0.5, 1e-6)] * 3)
    Cost(1.5, delta=3e-6)

    Proof: thm-composition
    """
    costs = [Cost(epsilon, delta) for epsilon, delta in steps]
    whole: Cost = sum(costs, Cost(0))
    return Cost.of_units(whole.epsilon_units, min(whole.delta_units, 10**18))


def kairouz(epsilon: Number, delta: Number, steps: int) -> Homogeneous:
    """The optimal composition of equal (ε, δ) steps, exact to thirty digits.

    >>> print(kairouz(0.1, 0, 100).delta(3))
    [0.0013614, 0.0013614]

    Proof: thm-optimal-stopping
    """
    return Homogeneous(exact(epsilon, "ε"), exact(delta, "δ"), steps)


def murtagh_vadhan(steps: Sequence[tuple[Number, Number]], epsilon: Number) -> Bracket[float]:
    """The optimal δ of (ε, δ) steps that differ, at a total ε.

    Proof: thm-optimal-stopping
    """
    from expost.accounting.stopping import optimal_delta

    return optimal_delta(steps, [len(steps)], [epsilon])


def as_loss(step: Any) -> Loss:
    """The step itself, or randomised response for an (ε, δ) pair."""
    if isinstance(step, Loss):
        return step
    if isinstance(step, tuple) and len(step) == 2:
        return Response(*step)
    raise InvalidValue(f"a step is a loss such as GaussianNoise(…) or a pair (ε, δ), got {step!r}")


@dataclass(frozen=True)
class Composition:
    """Independent losses that add up, read as δ(ε) and ε(δ).

    >>> from expost.accounting.losses import GaussianNoise
    >>> epsilon = compose([GaussianNoise(10)] * 100).epsilon(1e-5)
    >>> round(epsilon.upper, 3), epsilon.width < 0.001
    (4.377, True)

    Proof: thm-optimal-stopping
    """

    counts: tuple[tuple[Loss, int], ...]
    step: float

    def delta(self, epsilon: Number) -> Bracket[float]:
        """Bounds on the least δ at this ε."""
        at = float(exact(epsilon, "ε"))
        lower = max(_delta_below(law, at) for law in self._laws(upper=False))
        return _ordered(lower, max(_delta_above(law, at) for law in self.upper_laws))

    def epsilon(self, delta: Number) -> Bracket[float]:
        """Bounds on the least ε at this δ; infinite above if δ is less than what is lost in any case."""
        at = float(exact(delta, "δ"))
        lower = max(epsilon_below(law, at) for law in self._laws(upper=False))
        return _ordered(lower, max(epsilon_above(law, at) for law in self.upper_laws))

    @cached_property
    def upper_laws(self) -> tuple[Law, ...]:
        """The composed law, from above: one, or one for each direction."""
        return self._laws(upper=True)

    def _laws(self, upper: bool) -> tuple[Law, ...]:
        directions = (False,) if all(loss.symmetric for loss, _ in self.counts) else (False, True)
        return tuple(composed(self.counts, self.step, reverse, upper) for reverse in directions)


def compose(steps: Iterable[Step], *, step: float | None = None) -> Composition:
    """The composition of steps in any order; ``step`` is the grid's, chosen for 10⁻³ in ε if not given."""
    counts = tuple(Counter(as_loss(each) for each in steps).items())
    if not counts:
        raise InvalidValue("a composition has at least one step")
    return Composition(counts, step or grid_step(counts))


def composed(counts: Sequence[tuple[Loss, int]], step: float, reverse: bool, upper: bool, miss: float = MISS) -> Law:
    """The law of the sum of so many of each loss."""
    rows = []
    for loss, count in counts:
        law = lighter(loss.upper(step, reverse) if upper else loss.lower(step, reverse))
        tails = Tails.of(law)
        rows.append((power(law, tails, count, miss / (4 * len(counts)), upper), tails * count))
    return product(rows, miss, upper)


def grid_step(counts: Sequence[tuple[Loss, int]]) -> float:
    """A step at which brackets are about 10⁻³ of an ε wide; it divides the only lattice there is."""
    spreads = [(loss.spread(), count) for loss, count in counts if loss.spread() > 0]
    if not spreads:
        return 2.0**-10
    number = sum(count for _, count in spreads)
    deviation = sqrt(sum(count * spread**2 for spread, count in spreads))
    reach = min(sum(count * spread for spread, count in spreads), 12 * deviation)
    wanted = min(min(spread for spread, _ in spreads) / 32, sqrt(1e-4 * deviation / number))
    lattices = {loss.lattice() for loss, _ in counts} - {None}
    if len(lattices) == 1 and all(loss.lattice() or loss.spread() == 0 for loss, _ in counts):
        (lattice,) = lattices
        assert lattice is not None
        if all(isinstance(loss, Response) for loss, _ in counts):
            return lattice
        return lattice / max(1, round(lattice / max(wanted, 2 * reach / _MOST_POINTS)))
    if lattices:
        wanted = min(wanted, 1e-3 / number)  # what has atoms off the grid is bounded below to first order only
    return float(2.0 ** int(np.floor(log2(max(wanted, 2 * reach / _MOST_POINTS)))))


def window_of(counts: Sequence[tuple[Loss, int]], step: float, reverse: bool, miss: float) -> tuple[float, float]:
    """Where the sum of these losses lies, but for ``miss`` on either side."""
    rows = [Tails.of(lighter(loss.upper(step, reverse))) * count for loss, count in counts]
    return total(rows).window(miss)


def _delta_above(law: Law, epsilon: float) -> float:
    return min(1.0, (_excess(law, epsilon - law.shift) + law.infinity) * (1 + _ROUNDING))


def _delta_below(law: Law, epsilon: float) -> float:
    return max(0.0, (_excess(law, epsilon + law.shift) + law.infinity) * (1 - _ROUNDING) - law.lost)


def epsilon_above(law: Law, delta: float) -> float:
    """An ε at which the upper law's δ is at most this."""
    found = _solve(law, delta * (1 - _ROUNDING) - law.infinity)
    return max(0.0, found + law.shift + 1e-12)


def epsilon_below(law: Law, delta: float) -> float:
    """An ε at which the lower law's δ is at least this."""
    found = _solve(law, (delta + law.lost) * (1 + _ROUNDING) - law.infinity)
    return max(0.0, found - law.shift - 1e-12)


def _excess(law: Law, epsilon: float) -> float:
    """Σ mass·(1 − e^{ε − y}) over losses above ε."""
    first = max(0, int(np.ceil(epsilon / law.step)) - law.low)
    if first >= law.mass.size:
        return 0.0
    gaps = epsilon - np.arange(law.low + first, law.high + 1) * law.step
    return -_dot(law.mass[first:], np.expm1(np.minimum(gaps, 0.0)))


def _solve(law: Law, excess: float) -> float:
    """The ε at which the excess is this: bisection on the grid, then one logarithm."""
    if excess <= 0:
        return inf if excess < 0 or law.mass[-1] > 0 else law.high * law.step
    left, right = min(law.low - 1, -1), law.high
    if _excess(law, left * law.step) <= excess:
        return min(0.0, left * law.step)
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (middle, right) if _excess(law, middle * law.step) > excess else (left, middle)
    base = left * law.step
    above = law.mass[max(0, left + 1 - law.low) :]
    decay = _dot(above, np.exp(base - np.arange(law.high + 1 - above.size, law.high + 1) * law.step))
    return base + log(max(1.0, (float(above.sum()) - excess) / decay)) if decay else base


def curve(law: Law, points: int = 4096) -> tuple[Floats, Floats]:
    """About the law's δ at some losses, ascending: for shapes, not for claims."""
    values = law.values - law.values[0]
    scaled = np.exp(-np.minimum(values, 700.0))
    here = np.append(np.cumsum(law.mass[::-1])[::-1][1:], 0.0)
    there = np.append(np.cumsum((law.mass * scaled)[::-1])[::-1][1:], 0.0) / scaled
    deltas = np.maximum(np.maximum.accumulate((here - there)[::-1])[::-1], 0.0) + law.infinity
    every = max(1, law.mass.size // points)
    return law.values[::every], deltas[::every]


def _dot(a: Floats, b: Floats) -> float:
    """Their inner product, by pairwise summation in this thread."""
    return float((a * b).sum())


def _ordered(lower: float, upper: float) -> Bracket[float]:
    return Bracket(min(lower, upper), upper)


__all__ = [
    "Composition",
    "Homogeneous",
    "Step",
    "compose",
    "kairouz",
    "murtagh_vadhan",
    "simple",
]
