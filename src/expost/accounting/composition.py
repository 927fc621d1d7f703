"""What many steps cost together, as certified brackets: formulas where there are some, else loss laws on a grid.

Steps are fixed by index; each may be chosen by what came out before. Charge the upper ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, TypeAlias

from expost.accounting.closed_forms import Formula, formula_of, outwards
from expost.accounting.convolution import in_parts
from expost.accounting.curve import Curve
from expost.accounting.enclosure import ALL_LOST, TOLERANCE, Enclosure, Grids, enclosed
from expost.accounting.homogeneous import Homogeneous
from expost.accounting.losses import ApproximateDP, LaplaceNoise, Loss
from expost.accounting.resolution import (
    CUT_SHARE,
    MISS,
    MOST_POINTS,
    READ_ABOVE,
    READ_BOTH,
    Design,
    Sketch,
    cut_for,
    grid_for,
    lattice_of,
    snapped,
)
from expost.bracket import Bracket
from expost.cost import Number, exact
from expost.errors import InvalidValue

Step: TypeAlias = "Loss | tuple[Number, Number]"
"""What a step can lose at most: a loss law, or an (ε, δ) pair."""

ProgressCallback: TypeAlias = Callable[[str], None]
"""Receives a line of text for each stage of long work."""

_CLOSE = 1e-9  # narrower than this is narrow enough, however small ε is


def as_loss(step: Any) -> Loss:
    """The step itself, or randomised response for an (ε, δ) pair."""
    if isinstance(step, Loss):
        return step
    if isinstance(step, tuple) and len(step) == 2:
        return ApproximateDP(*step)
    raise InvalidValue(f"a step is a loss such as GaussianNoise(…) or a pair (ε, δ), got {step!r}")


def counted(steps: Sequence[Any]) -> tuple[tuple[Loss, int], ...]:
    """Each kind of loss, and the number of its steps. Most steps are one object: identity is compared first."""
    kinds = {id(step): step for step in steps}
    found: Counter[Loss] = Counter()
    for key, count in Counter(map(id, steps)).items():
        found[as_loss(kinds[key])] += count
    return tuple(found.items())


@dataclass(frozen=True)
class Composition:
    """Independent losses that add up, read as δ(ε) and ε(δ).

    Formulas where there are some; else laws on a grid that ``expost.accounting.resolution`` chooses for the tolerance.
    One direction of neighbours is taken for all steps, and the larger of the two results: see :class:`Loss`.

    Attributes
    ----------
    counts
        Each kind of loss, and the number of its steps.
    grid
        The step of the grid of losses, if one was given.
    progress
        Receives a line of text for each stage, if one was given.

    >>> from expost.accounting.losses import GaussianNoise
    >>> epsilon = compose([GaussianNoise(10, sampling_rate=0.5)] * 100).epsilon(1e-5)
    >>> round(epsilon.upper, 3), epsilon.width < 2e-4 * epsilon.upper
    (2.015, True)

    Proof: thm-optimal-stopping, lem-read-back
    """

    counts: tuple[tuple[Loss, int], ...]
    grid: float | None = None
    progress: ProgressCallback | None = None

    def delta(self, epsilon: Number, *, tolerance: float = TOLERANCE) -> Enclosure:
        """Bounds on the least δ at this ε; about ``tolerance`` times δ apart, if a grid can do it."""
        at = exact(epsilon, "ε")
        if at < 0 or not tolerance > 0:
            raise InvalidValue(
                f"δ is read at an ε from 0 on and to a tolerance above 0, got {epsilon!r}, {tolerance!r}"
            )
        if self._formula is not None:
            return Enclosure(*outwards(self._formula.delta(at)))
        designs = {reverse: self._sketch(reverse).at_epsilon(float(at)) for reverse in self._directions}
        cut = cut_for(CUT_SHARE * max(design.delta for design in designs.values()), self._steps)
        width = tolerance / (1 + max(design.slope for design in designs.values()))
        return enclosed(
            lambda step: self._delta_on(designs, step, cut, float(at)),
            lambda delta: max(tolerance * delta, 1e-15),
            self._grids(width, designs, READ_BOTH, cut),
        )

    def epsilon(self, delta: Number, *, tolerance: float = TOLERANCE) -> Enclosure:
        """Bounds on the least ε at this δ; infinite above if δ is less than what is lost in any case.

        Their distance is at most ``tolerance`` times ε, or ``reason`` says why it is not.
        """
        return self._epsilon(delta, tolerance, both=True)

    def epsilon_above(self, delta: Number, *, tolerance: float = TOLERANCE) -> float:
        """The upper end of :meth:`epsilon`, which is what one pays, in half the time."""
        return self._epsilon(delta, tolerance, both=False).upper

    def _epsilon(self, delta: Number, tolerance: float, both: bool) -> Enclosure:
        wanted = exact(delta, "δ")
        if not 0 <= wanted <= 1 or not tolerance > 0:
            raise InvalidValue(f"ε is read at a δ from 0 to 1 and to a tolerance above 0, got {delta!r}, {tolerance!r}")
        if self._formula is not None:
            return self._by_formula(wanted)
        if wanted == 0:
            return self._without_delta()
        return self._on_grids(float(wanted), tolerance, both)

    def _by_formula(self, delta: Any) -> Enclosure:
        assert self._formula is not None
        certain = self._formula.certain if isinstance(self._formula, Homogeneous) else 0
        if delta == 1:
            return Enclosure(0.0, 0.0)
        if delta < certain or (delta == 0 and not self._bounded):
            return Enclosure(inf, inf, ALL_LOST)
        return Enclosure(*outwards(self._formula.epsilon(delta)))

    def _without_delta(self) -> Enclosure:
        """Losses that are bounded add up to their most."""
        most = sum(loss.spread() * count for loss, count in self.counts)
        if not self._bounded or self._certain:
            return Enclosure(inf, inf, ALL_LOST)
        return Enclosure(most * (1 - 1e-12), most * (1 + 1e-12))

    @cached_property
    def _bounded(self) -> bool:
        return all(isinstance(loss, ApproximateDP | LaplaceNoise) for loss, _ in self.counts)

    @cached_property
    def _certain(self) -> float:
        """About the δ that is lost whatever ε is."""
        kept = 1.0
        for loss, count in self.counts:
            kept *= (1 - float(exact(loss.delta, "δ"))) ** count if isinstance(loss, ApproximateDP) else 1.0
        return 1 - kept

    @cached_property
    def _formula(self) -> Formula | None:
        return None if self.grid else formula_of(self.counts)

    @cached_property
    def _directions(self) -> tuple[bool, ...]:
        return (False,) if all(loss.symmetric for loss, _ in self.counts) else (False, True)

    @cached_property
    def _steps(self) -> int:
        return sum(count for _, count in self.counts)

    @cached_property
    def _sketches(self) -> dict[tuple[bool, float], Sketch]:
        return {}

    def _sketch(self, reverse: bool, cut: float = 1e-19) -> Sketch:
        if (reverse, cut) not in self._sketches:
            self._sketches[reverse, cut] = Sketch.of(self.counts, reverse, cut, self.grid)
        return self._sketches[reverse, cut]

    def _on_grids(self, delta: float, tolerance: float, both: bool) -> Enclosure:
        """On a grid by the rule; and on finer ones, if the bracket is wider than it should be."""
        left = max(delta - self._certain, 1e-3 * delta)
        cut = cut_for(left, self._steps)
        designs = {reverse: self._sketch(reverse, cut).at_delta(left) for reverse in self._directions}
        guess = max(max(design.epsilon for design in designs.values()), _CLOSE)
        return enclosed(
            lambda step: self._epsilon_on(designs, step, cut, delta, both),
            lambda epsilon: max(tolerance * epsilon, _CLOSE) if both else inf,
            self._grids(tolerance * guess, designs, READ_BOTH if both else READ_ABOVE, cut),
        )

    def _epsilon_on(
        self, designs: dict[bool, Design], step: float, cut: float, delta: float, both: bool
    ) -> Bracket[float]:
        curves = self._curves(designs, step, cut)
        upper = max(curve.epsilon_above(delta * (1 - 1e-15)) for curve in curves)
        lower = max(curve.epsilon_below(delta * (1 + 1e-15)) for curve in curves) if both else 0.0
        return Bracket(min(lower, upper), upper)

    def _delta_on(self, designs: dict[bool, Design], step: float, cut: float, epsilon: float) -> Bracket[float]:
        curves = self._curves(designs, step, cut)
        upper = max(curve.delta_above(epsilon) for curve in curves)
        return Bracket(min(max(curve.delta_below(epsilon) for curve in curves), upper), upper)

    def _grids(self, width: float, designs: dict[bool, Design], known: float, cut: float) -> Grids:
        """The grid by the rule, or the only one needed, but none that is too fine to hold.

        A direction that costs less may be known less well.
        """
        if self.grid:
            return Grids.only(self.grid)
        most, finest = max(design.epsilon for design in designs.values()), self._finest(designs, cut)
        grids = (
            grid_for(width + (most - design.epsilon) / 2, design.slope, self._steps, known)
            for design in designs.values()
        )
        step = lattice_of(self.counts) or snapped(self.counts, max(min(grids), finest))
        reason = f"a grid of {MOST_POINTS} points, or rounding errors, allow no less here"
        return Grids(step, finest, lambda finer: snapped(self.counts, finer), reason)

    def _finest(self, designs: dict[bool, Design], cut: float) -> float:
        """The finest grid that is not too long, neither for the sum nor for a single loss."""
        widths = [self._sketch(reverse, cut).width(design) for reverse, design in designs.items()]
        return max(widths) / MOST_POINTS

    def _curves(self, designs: dict[bool, Design], step: float, cut: float) -> list[Curve]:
        found = []
        for reverse, design in designs.items():
            if self.progress:
                self.progress(f"composing {self._steps} steps on a grid of {step:.3g}")
            rows = [(loss.law(step, reverse, cut), count) for loss, count in self.counts]
            found.append(Curve(in_parts(rows, design.cutoff, design.tilts, MISS)))
        return found


def compose(
    steps: Iterable[Step], *, grid: float | None = None, progress: ProgressCallback | None = None
) -> Composition:
    """The composition of steps in any order.

    Parameters
    ----------
    steps
        Losses, or pairs (ε, δ).
    grid
        The step of the grid of losses. By default formulas are used where there are some, and elsewhere a grid that
        fits the tolerance.
    progress
        Receives a line of text for each stage.
    """
    counts = counted(list(steps))
    if not counts:
        raise InvalidValue("a composition has at least one step")
    return Composition(counts, grid, progress)
