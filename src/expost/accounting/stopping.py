"""Mechanisms that may stop early: the δ of an E for each stop.

A mechanism runs steps 1, 2, … and may stop after any of some numbers of steps, by a rule that sees what came out.
The least δ is the value of an optimal-stopping problem, found by backward induction (thm-optimal-stopping).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from expost.accounting.composition import ProgressCallback, Step, as_loss, counted
from expost.accounting.enclosure import TOLERANCE, Enclosure, Grids, enclosed
from expost.accounting.losses import ApproximateDP, Loss
from expost.accounting.recursion import Recursion
from expost.accounting.resolution import READ_BOTH, Counts, Sketch, grid_for, lattice_of, snapped
from expost.accounting.stopping_response import optimal_response
from expost.bracket import Bracket
from expost.cost import Number, exact
from expost.errors import InvalidValue

_MOST_POINTS = 2**19


def sum_delta(
    steps: Sequence[Step],
    stops: Sequence[int],
    epsilons: Sequence[Number],
    *,
    rule: Callable[[Sequence[Step], Number], Any] | None = None,
) -> float:
    """The δ's of the fixed-length compositions, one for each stop, add up: Lemma 11 of Hartmann et al. (2022).

    It holds for any composition rule.

    ``rule(steps, ε)`` gives the δ of a composition (a number or a bracket); by default the best one known here.

    Proof: lem-sum-delta
    """
    check_stops(steps, stops, epsilons)
    best: Callable[[Sequence[Step], Number], Any] = rule or _best_delta
    found = [best(steps[:stop], epsilon) for stop, epsilon in zip(stops, epsilons, strict=True)]
    deltas = [float(delta.upper if isinstance(delta, Bracket) else delta) for delta in found]
    return min(1.0, sum(deltas) * (1 + 1e-12))


def optimal_delta(
    steps: Sequence[Step],
    stops: Sequence[int],
    epsilons: Sequence[Number],
    *,
    grid: float | None = None,
    tolerance: float = TOLERANCE,
    progress: ProgressCallback | None = None,
) -> Enclosure:
    """The least δ at which stopping after ``stops[i]`` steps may guarantee ``epsilons[i]``.

    It is the value of Theorem 15 of Hartmann et al. (2022).

    Parameters
    ----------
    steps
        Losses, or pairs (ε, δ), for which the result is exact if the ε's are commensurable.
    stops
        The numbers of steps after which the mechanism may stop; the last is all of them.
    epsilons
        The ε of each stop.
    grid
        The step of the grid of losses, for pairs, too. By default one that fits the tolerance.
    tolerance
        How wide the bracket may be, relative to δ; if it is wider, its ``reason`` says why.
    progress
        Receives a line of text for each stage.

    >>> print(optimal_delta([(0.1, 1e-6)] * 10, [5, 10], [0.4, 0.6]))
    [0.00510849, 0.00510849]

    Proof: thm-optimal-stopping, lem-read-back-stops
    """
    check_stops(steps, stops, epsilons)
    losses = [as_loss(each) for each in steps]
    guaranteed = [exact(epsilon, "ε") for epsilon in epsilons]
    found = _on_a_lattice(losses, stops, guaranteed) if grid is None else None
    if found:
        return found

    def read(grid: float) -> Bracket[float]:
        if progress:
            progress(f"composing {len(losses)} steps with {len(stops)} stops on a grid of {grid:.3g}")
        return Recursion(losses, stops, grid).bracket(guaranteed)

    grids = Grids.only(grid) if grid else grids_at(losses, float(guaranteed[-1]), tolerance)
    return enclosed(read, lambda delta: max(tolerance * delta, 1e-15), grids)


def _on_a_lattice(losses: Sequence[Loss], stops: Sequence[int], epsilons: Sequence[Fraction]) -> Enclosure | None:
    """The value if all steps are (ε, δ) pairs and the ε's are commensurable."""
    pairs: dict[Loss, tuple[Fraction, Fraction]] = {
        loss: (exact(loss.epsilon, "ε"), exact(loss.delta, "δ"))
        for loss in set(losses)
        if isinstance(loss, ApproximateDP)
    }
    if len(pairs) < len(set(losses)):
        return None
    found = optimal_response([pairs[loss] for loss in losses], stops, epsilons)
    return Enclosure(found.lower, found.upper) if found else None


def _best_delta(steps: Sequence[Step], epsilon: Number) -> Bracket[float]:
    return optimal_delta(steps, [len(steps)], [epsilon])


def grids_at(losses: Sequence[Loss], epsilon: float, tolerance: float) -> Grids:
    """Grids that begin where δ at this ε, read after all steps, is known to the tolerance."""
    counts = counted(losses)
    sketch = Sketch.of(counts, False, 1e-19)
    slope = sketch.at_epsilon(epsilon).slope
    step = stopping_grid(counts, sketch, tolerance / (1 + slope), slope, READ_BOTH)
    reason = f"a grid of {_MOST_POINTS} points, or rounding errors, allow no less here"
    return Grids(step, finest_grid(sketch), lambda finer: snapped(counts, finer), reason)


def stopping_grid(counts: Counts, sketch: Sketch, width: float, slope: float, known: float) -> float:
    """The grid by the rule of ``expost.accounting.resolution``; losses that share an atom have it on the grid."""
    steps = sum(count for _, count in counts)
    return lattice_of(counts) or snapped(counts, max(grid_for(width, slope, steps, known), finest_grid(sketch)))


def finest_grid(sketch: Sketch) -> float:
    """The finest grid that is not too long."""
    return 32 * sketch.deviation() / _MOST_POINTS


def check_stops(steps: Sequence[Any], stops: Sequence[int], epsilons: Sequence[Any]) -> None:
    """Stops are numbers of steps that grow up to all of them, each with one value."""
    if not stops or list(stops) != sorted(set(stops)) or stops[0] < 1 or stops[-1] != len(steps):
        raise InvalidValue(
            f"stops are growing numbers of steps, the last of them all {len(steps)} steps, got {list(stops)!r}"
        )
    if len(epsilons) != len(stops):
        raise InvalidValue(f"each of the {len(stops)} stops has one value, got {len(epsilons)}")
