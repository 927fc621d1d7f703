"""The optimum of Theorem 15 for (ε, δ) steps: backward induction over the likelihood ratio of randomised response.

After k steps the loss is L = −(ε₁ + … + ε_k) + 2·(ε of the steps that told the truth). So one of the two outcomes of a
step never moves on a grid of doubled losses, and the other moves by 2ε: onto a grid point if the ε's are
commensurable (exact), else between two, where convexity brackets the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, exp, expm1, floor, gcd, lcm, sqrt

import numpy as np

from expost.accounting.losses import Floats, points
from expost.bracket import Bracket

Pair = tuple[Fraction, Fraction]

_ULP = 2.0**-52
_FAR = 7.0  # Hoeffding: a sum leaves mean ± 7·√Σ range² with probability e^−98 on either side
_MISS = 1e-42
_WORK = 2.5e8  # grid points times steps
_MOST_POINTS = 2**18


def optimal_response(steps: Sequence[Pair], stops: Sequence[int], epsilons: Sequence[Fraction]) -> Bracket[float]:
    """Theorem 15 for (ε, δ) steps, bracketed.

    Proof: thm-optimal-stopping
    """
    moves, unit = _lattice([epsilon for epsilon, _ in steps])
    return _Induction(steps, moves, unit).run(dict(zip(stops, epsilons, strict=True)))


def _lattice(epsilons: Sequence[Fraction]) -> tuple[list[tuple[int, float]], float]:
    """Each step's 2ε in grid steps, whole and fractional part, and the grid's step."""
    positive = {epsilon for epsilon in epsilons if epsilon > 0}
    if not positive:
        return [(0, 0.0)] * len(epsilons), 1.0
    scale = lcm(*(epsilon.denominator for epsilon in positive))
    common = Fraction(gcd(*(int(epsilon * scale) for epsilon in positive)), scale)
    deviation = 2 * sqrt(sum(float(epsilon) ** 2 for epsilon in epsilons))
    most = max(64.0, min(_MOST_POINTS, _WORK / len(epsilons)))
    if 2 * _FAR * deviation / float(2 * common) <= most:
        return [(int(epsilon / common), 0.0) for epsilon in epsilons], float(2 * common)
    unit = Fraction(2 * _FAR * deviation / most)
    wholes = [floor(2 * epsilon / unit) for epsilon in epsilons]
    rows = zip(epsilons, wholes, strict=True)
    return [(whole, float(2 * epsilon / unit - whole)) for epsilon, whole in rows], float(unit)


@dataclass(frozen=True, eq=False)
class _Induction:
    """Backward induction on the grid L = unit·i − Σε. Rows: from below, from above, and how far a cell may be below."""

    steps: Sequence[Pair]
    moves: Sequence[tuple[int, float]]
    unit: float

    def run(self, stops: dict[int, Fraction]) -> Bracket[float]:
        """The values at the start, from both sides."""
        last = len(self.steps)
        windows = self._windows()
        margin = (
            4
            + max(whole for whole, _ in self.moves)
            + max(max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a, b in pairwise(windows))
        )
        start = min(low for low, _ in windows) - margin
        rows = np.zeros((3, max(high for _, high in windows) + margin + 1 - start))
        offsets = [float(x) for x in accumulate((epsilon for epsilon, _ in self.steps), initial=Fraction(0))]
        exact = all(share == 0 for _, share in self.moves)
        for k in range(last, -1, -1):
            low, high = windows[k][0] - start, windows[k][1] + 1 - start
            if k < last:
                self._step(rows, k, low, high)
            if k in stops:
                losses = points(*windows[k], self.unit) - offsets[k]
                self._stop(rows[:, low:high], losses, float(stops[k]), k == last)
            if not exact:
                rows[2, low + 1 : high - 2] += _gaps(rows[1, low:high], self.unit)
            if k:
                self._extend(rows, low, high, margin)
        lower, upper, below = rows[:, -start]
        drift = 1e-15 * 16 * (last + 1)
        if not exact:
            lower = upper - below - 1e-12
        upper = min(1.0, upper * (1 + drift) + 2 * _MISS * last)
        return Bracket(min(max(0.0, lower * (1 - drift) - 2 * _MISS * last), upper), upper)

    def _windows(self) -> list[tuple[int, int]]:
        """Where the grid index is after each step, but for 10⁻⁴² on either side."""
        exact = all(share == 0 for _, share in self.moves)
        before, after = (0, 0) if exact else (4, 6)
        windows, mean, squares, most = [(-before, after)], 0.0, 0.0, 0
        for (epsilon, _), (whole, share) in zip(self.steps, self.moves, strict=True):
            mean += (whole + share) / (1 + exp(-float(epsilon)))
            squares += (whole + share) ** 2
            most += whole + (share > 0)
            reach = _FAR * sqrt(squares) + 2
            drift = 0 if exact else len(windows)  # a cell's error may come from the cell beside it, in every step
            high = min(most, ceil(mean + reach) + drift) + after
            windows.append((max(0, floor(mean - reach)) - before, high))
        return windows

    def _step(self, rows: Floats, k: int, low: int, high: int) -> None:
        """One step of randomised response, in place."""
        epsilon, delta = (float(x) for x in self.steps[k])
        (whole, share) = self.moves[k]
        truth = (1 - delta) / (1 + exp(-epsilon))
        lie = truth * exp(-epsilon)
        moved = rows[:, low + whole : high + whole]
        if share:
            onward = rows[:, low + whole + 1 : high + whole + 1]
            weight = expm1(-share * self.unit) / expm1(-self.unit)
            told = (1 - weight) * moved + weight * onward
            told[2] = np.maximum(moved[2], onward[2])
        else:
            told = moved
        new = truth * told + lie * rows[:, low:high]
        new[:2] += delta
        rows[:, low:high] = new

    def _stop(self, rows: Floats, losses: Floats, epsilon: float, last: bool) -> None:
        """Stopping is worth 1 − e^{E − L}; what rounding did to E − L is counted on either side."""
        slack = 8 * _ULP * (abs(epsilon) + np.abs(losses) + 1)
        gaps = epsilon - losses
        worth = -np.expm1(np.minimum(np.stack([gaps + slack, gaps - slack]), 0.0))
        rows[:2] = worth if last else np.maximum(rows[:2], worth)

    def _extend(self, rows: Floats, low: int, high: int, margin: int) -> None:
        """Beyond the window: values never fall, and lie between 0 and 1."""
        rows[0, max(low - margin, 0) : low] = 0.0
        rows[1, max(low - margin, 0) : low] = rows[1, low]
        rows[0, high : high + margin] = rows[0, high - 1]
        rows[1, high : high + margin] = 1.0
        rows[2, max(low - margin, 0) : low + 1] = rows[2, high - 2 : high + margin] = 1.0


def _gaps(values: Floats, unit: float) -> Floats:
    """How far, at most, a convex function with these values (over the likelihood ratio) is below its chords.

    ``values`` are divided by the likelihood ratio; the first and the last serve as neighbours only.

    Proof: lem-convex-bracket
    """
    growth = exp(unit)
    rise = growth * values[1:] - values[:-1]  # of the function itself in each cell, over the cell's lower end
    slope = rise / (growth - 1)
    bend = np.maximum(np.diff(slope), 0.0)
    left, right = bend[:-1], bend[1:]
    both = left + right
    smaller = np.divide(left * right, both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(smaller * (growth - 1) + 16 * _ULP * values[1:-2])
