"""Composition of steps of which only (ε, δ) is known: basic, and optimal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from expost.accounting.composition import compose, counted
from expost.accounting.homogeneous import Homogeneous
from expost.accounting.losses import ApproximateDP
from expost.accounting.stopping import optimal_delta
from expost.bracket import Bracket
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue

Pair = tuple[Number, Number]


def basic_composition(steps: Iterable[Pair]) -> Cost:
    """The sums of the ε's and of the δ's: valid for steps chosen adaptively in every way, and best for few steps.

    >>> basic_composition([(0.5, 1e-6)] * 3)
    Cost(1.5, delta=3e-6)

    Proof: thm-composition
    """
    costs = [Cost(epsilon, delta) for epsilon, delta in steps]
    whole: Cost = sum(costs, Cost(0))
    return Cost.of_units(whole.epsilon_units, min(whole.delta_units, 10**18))


def optimal_composition(steps: Sequence[Pair]) -> Homogeneous | Heterogeneous:
    """The least δ at each ε, and the least ε at each δ, of (ε, δ) steps fixed by index.

    Equal steps (Kairouz, Oh and Viswanath) are exact to fifty decimal places, different ones (Murtagh and Vadhan) are
    bracketed.

    >>> print(optimal_composition([(0.1, 0)] * 100).delta(3))
    [0.0013614, 0.0013614]

    Proof: thm-optimal-stopping
    """
    counts = [(loss, count) for loss, count in counted(steps) if isinstance(loss, ApproximateDP)]
    if not steps or sum(count for _, count in counts) < len(steps):
        raise InvalidValue("an optimal composition is of one or more pairs (ε, δ): for losses use compose(…)")
    (loss, count), *others = counts
    if others:
        return Heterogeneous(tuple(steps))
    return Homogeneous(exact(loss.epsilon, "ε"), exact(loss.delta, "δ"), count)


@dataclass(frozen=True)
class Heterogeneous:
    """Different (ε, δ) steps.

    Parameters
    ----------
    steps
        The pairs.

    Proof: thm-optimal-stopping
    """

    steps: tuple[Pair, ...]

    def delta(self, epsilon: Number) -> Bracket[Fraction]:
        """Bounds on the least δ at this ε."""
        found = optimal_delta(self.steps, [len(self.steps)], [epsilon])
        return Bracket(Fraction(found.lower), Fraction(found.upper))

    def epsilon(self, delta: Number) -> Bracket[Fraction]:
        """Bounds on the least ε at this δ. A δ below what the steps lose at every ε is refused."""
        found = compose(self.steps).epsilon(delta)
        if found.upper == inf:
            raise InvalidValue(
                f"these steps lose more than δ {delta!r} whatever ε is: take less δ per step, or fewer steps"
            )
        return Bracket(Fraction(found.lower), Fraction(found.upper))
