"""What many steps cost together, as certified brackets: simple, Kairouz–Oh–Viswanath, Murtagh–Vadhan, loss laws.

Steps are fixed by index; each may be chosen by what came out before. Charge the upper ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, log1p, log2, sqrt
from typing import Any, TypeAlias

import numpy as np

from expost.accounting.binomial import Homogeneous
from expost.accounting.convolution import Tails, lighter, power, product, tilted, total, upright
from expost.accounting.losses import Floats, Law, Loss, Response
from expost.bracket import Bracket
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue

Step: TypeAlias = "Loss | tuple[Number, Number]"
"""What a step can lose at most: a loss law, or an (ε, δ) pair."""

Row: TypeAlias = tuple[Law, Tails, int]
"""A loss on the grid, its tails, and how many there are of it."""

MISS = 1e-16
"""Mass that windows may cut off, in all."""
_MOST_POINTS = 2**20
_ROUNDING = 1e-11  # relative: what a sum of up to 2²⁰ positive terms, tilted back, may be off by, and more


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
    lower_step: float
    """Lower ends may need a finer grid, and take longer."""

    def delta(self, epsilon: Number) -> Bracket[float]:
        """Bounds on the least δ at this ε."""
        at = float(exact(epsilon, "ε"))
        tilt = self._tails.tilt_at(at)
        lower = max(delta_below(law, at) for law in self._laws(tilt, upper=False))
        return _ordered(lower, max(delta_above(law, at) for law in self._laws(tilt, upper=True)))

    def epsilon(self, delta: Number) -> Bracket[float]:
        """Bounds on the least ε at this δ; infinite above if δ is less than what is lost in any case."""
        upper = self.epsilon_above(delta)
        at = float(exact(delta, "δ"))
        return _ordered(max(_epsilon_below(law, at) for law in self._laws(self._tilt_for(at), upper=False)), upper)

    def epsilon_above(self, delta: Number) -> float:
        """The upper end of :meth:`epsilon`, which is what one pays, in half the time."""
        at = float(exact(delta, "δ"))
        return max(_epsilon_above(law, at) for law in self._laws(self._tilt_for(at), upper=True))

    @cached_property
    def _rows(self) -> dict[tuple[bool, bool], list[Row]]:
        return {}

    @cached_property
    def _laws_known(self) -> dict[tuple[float, bool], tuple[Law, ...]]:
        return {}

    @cached_property
    def _tails(self) -> Tails:
        return total([tails * count for _, tails, count in self._singles(reverse=False, upper=True)])

    def _tilt_for(self, delta: float) -> float:
        return self._tails.tilt_at(self._tails.window(delta)[1]) if delta > 0 else 0.0

    def _singles(self, reverse: bool, upper: bool) -> list[Row]:
        if (reverse, upper) not in self._rows:
            self._rows[reverse, upper] = singles(self.counts, self.step if upper else self.lower_step, reverse, upper)
        return self._rows[reverse, upper]

    def _laws(self, tilt: float, upper: bool) -> tuple[Law, ...]:
        """The composed law: one, or one for each direction."""
        if (tilt, upper) not in self._laws_known:
            directions = (False,) if all(loss.symmetric for loss, _ in self.counts) else (False, True)
            laws = [upright(composed(self._singles(reverse, upper), upper, tilt=tilt)) for reverse in directions]
            self._laws_known[tilt, upper] = tuple(laws)
        return self._laws_known[tilt, upper]


def compose(steps: Iterable[Step], *, step: float | None = None) -> Composition:
    """The composition of steps in any order; ``step`` is the grid's, chosen for 10⁻³ in ε if not given."""
    counts = tuple(Counter(as_loss(each) for each in steps).items())
    if not counts:
        raise InvalidValue("a composition has at least one step")
    upper = step or grid_step(counts)
    return Composition(counts, upper, step or _lower_step(counts, upper))


def singles(counts: Sequence[tuple[Loss, int]], step: float, reverse: bool, upper: bool) -> list[Row]:
    """Each loss on the grid, its tails, and how many there are of it."""
    laws = [lighter(loss.upper(step, reverse) if upper else loss.lower(step, reverse)) for loss, _ in counts]
    return [(law, Tails.of(law), count) for law, (_, count) in zip(laws, counts, strict=True)]


def composed(rows: Sequence[Row], upper: bool, miss: float = MISS, tilt: float = 0.0) -> Law:
    """The law of the sum of so many of each loss, tilted if so wished."""
    if tilt:
        rows = [(lighter(tilted(law, tails, tilt, upper)), tails.tilted(tilt), count) for law, tails, count in rows]
    share = miss / (4 * len(rows))
    return product([(power(law, tails, count, share, upper), tails * count) for law, tails, count in rows], miss, upper)


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


def _lower_step(counts: Sequence[tuple[Loss, int]], step: float) -> float:
    """A step at which losses that are sharper than their spread are resolved from below, too."""
    number = sum(count for _, count in counts)
    finest = min(loss.detail() for loss, _ in counts) / (0.8 * sqrt(number))
    while step > max(finest, 1e-5):
        step /= 2
    return step


def tails_of(counts: Sequence[tuple[Loss, int]], step: float, reverse: bool) -> Tails:
    """The tails of the sum of so many of each loss."""
    return total([tails * count for _, tails, count in singles(counts, step, reverse, True)])


def delta_above(law: Law, epsilon: float) -> float:
    """The upper law's δ."""
    at = epsilon - law.shift
    return min(1.0, (_excess(law, at) + law.infinity + _unsure(law, at)) * (1 + _ROUNDING))


def delta_below(law: Law, epsilon: float) -> float:
    """The lower law's δ."""
    at = epsilon + law.shift
    return max(0.0, (_excess(law, at) + law.infinity) * (1 - _ROUNDING) - law.lost - _unsure(law, at))


def _epsilon_above(law: Law, delta: float) -> float:
    """An ε at which the upper law's δ is at most this."""
    found = _solve(law, delta * (1 - _ROUNDING) - law.infinity, 1)
    return max(0.0, found + law.shift + 1e-12)


def _epsilon_below(law: Law, delta: float) -> float:
    """An ε at which the lower law's δ is at least this."""
    found = _solve(law, (delta + law.lost) * (1 + _ROUNDING) - law.infinity, -1)
    return max(0.0, found - law.shift - 1e-12)


def _unsure(law: Law, epsilon: float) -> float:
    """What the law's slack may add to δ or take from it.

    Proof: lem-tilt
    """
    if not law.slack:
        return 0.0
    exponent = log(law.slack) + law.level + _peak(law.tilt) - law.tilt * epsilon
    return exp(exponent) if exponent < 700 else inf


def _peak(tilt: float) -> float:
    """The logarithm of the largest e^{−tilt·t}·(1 − e^{−t}), and a little more."""
    return (tilt * log(tilt) - (1 + tilt) * log1p(tilt) if tilt else 0.0) + 1e-9


def _excess(law: Law, epsilon: float) -> float:
    """Σ mass·(1 − e^{ε − y}) over losses above ε. The law stands upright: see :func:`upright`."""
    first = max(0, int(np.ceil(epsilon / law.step)) - law.low)
    if first >= law.mass.size:
        return 0.0
    gaps = epsilon - np.arange(law.low + first, law.high + 1) * law.step
    return -_dot(law.mass[first:], np.expm1(np.minimum(gaps, 0.0)))


def _solve(law: Law, wanted: float, sign: int) -> float:
    """The ε at which the excess, and the slack with this sign, is what is wanted: bisection, then one logarithm."""

    def passes(place: int) -> bool:
        base = place * law.step
        return _excess(law, base) + sign * _unsure(law, base) > wanted

    right = max(law.high, 0)
    if passes(right):
        return _where_slack_is(law, wanted) if sign > 0 else inf
    starts = [-1] if sign > 0 else [right - (right + 1) * i // 64 for i in range(1, 65)]  # far left slack may be large
    left = next(filter(passes, starts), None)
    if left is None:
        return 0.0
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (middle, right) if passes(middle) else (left, middle)
    base = left * law.step
    above = law.mass[max(0, left + 1 - law.low) :]
    decay = _dot(above, np.exp(base - np.arange(law.high + 1 - above.size, law.high + 1) * law.step))
    target = wanted - sign * _unsure(law, base)
    if decay == 0 or target == -inf:
        return base + law.step if sign > 0 else base
    return base + min(law.step, log(max(1.0, (float(above.sum()) - target) / decay)))


def _where_slack_is(law: Law, wanted: float) -> float:
    """An ε past the law's end at which its slack adds no more than is wanted."""
    if wanted <= 0 or not law.tilt:
        return inf
    return (log(law.slack) + law.level + _peak(law.tilt) - log(wanted)) / law.tilt


def curve(law: Law, points: int = 4096) -> tuple[Floats, Floats]:
    """About the law's δ at some losses, ascending: for shapes, not for claims; the law is not tilted."""
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
