"""The optimum of Theorem 15 for (ε, δ) steps: backward induction over the likelihood ratio of randomised response.

After k steps the loss is L = −(ε₁ + … + ε_k) + 2·(ε of the steps that told the truth). So one of the two outcomes of a
step never moves on a grid of doubled losses, and the other moves by 2ε: onto a grid point if the ε's are
commensurable (exact), else between two, where convexity brackets the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, exp, expm1, floor, gcd, lcm, sqrt

import numpy as np

from expost.accounting.law import Floats, points
from expost.bracket import Bracket

Pair = tuple[Fraction, Fraction]
Block = tuple[tuple[tuple[int, tuple[float, float]], int], ...]

_ULP = 2.0**-52
_FAR = 7.0  # Hoeffding: a sum leaves mean ± 7·√Σ range² with probability e^−98 on either side
_MISS = 1e-42
_WORK = 2.5e8  # grid points times steps
_MOST_POINTS = 2**18
_TOGETHER = 256  # steps whose law is made at once


def optimal_response(steps: Sequence[Pair], stops: Sequence[int], epsilons: Sequence[Fraction]) -> Bracket[float]:
    """Theorem 15 for (ε, δ) steps, bracketed.

    Proof: thm-optimal-stopping
    """
    kinds = {id(step): step for step in steps}  # fractions are slow to hash: the same step is mostly the same object
    order = [id(step) for step in steps]
    counts = Counter(order)
    moves, unit = _lattice([(kind[0], counts[key]) for key, kind in kinds.items()])
    move_of = dict(zip(kinds, moves, strict=True))
    float_of = {key: (float(epsilon), float(delta)) for key, (epsilon, delta) in kinds.items()}
    promised = {stop: float(epsilon) for stop, epsilon in zip(stops, epsilons, strict=True)}
    pairs, moved = [float_of[key] for key in order], [move_of[key] for key in order]
    if all(share == 0 for _, share in moves):
        return _Lattice(pairs, [whole for whole, _ in moved], unit).run(promised)
    offsets = accumulate((epsilon for epsilon, _ in steps), initial=Fraction(0))
    return _Induction(pairs, moved, unit, [float(offset) for offset in offsets]).run(promised)


def _lattice(epsilons: Sequence[tuple[Fraction, int]]) -> tuple[list[tuple[int, float]], float]:
    """Each ε (given with its number of steps) as 2ε in grid steps, whole and fractional part, and the grid's step."""
    positive = {epsilon for epsilon, _ in epsilons if epsilon > 0}
    if not positive:
        return [(0, 0.0)] * len(epsilons), 1.0
    scale = lcm(*(epsilon.denominator for epsilon in positive))
    common = Fraction(gcd(*(int(epsilon * scale) for epsilon in positive)), scale)
    deviation = 2 * sqrt(sum(count * float(epsilon) ** 2 for epsilon, count in epsilons))
    if 2 * _FAR * deviation / float(2 * common) <= _MOST_POINTS:
        return [(int(epsilon / common), 0.0) for epsilon, _ in epsilons], float(2 * common)
    most = max(64.0, min(_MOST_POINTS, _WORK / sum(count for _, count in epsilons)))
    unit = Fraction(2 * _FAR * deviation / most)
    wholes = [floor(2 * epsilon / unit) for epsilon, _ in epsilons]
    rows = zip(epsilons, wholes, strict=True)
    return [(whole, float(2 * epsilon / unit - whole)) for (epsilon, _), whole in rows], float(unit)


@dataclass(frozen=True, eq=False)
class _Lattice:
    """Backward induction where every 2ε is a whole number of grid steps: L = unit·i − Σε, no point between two.

    Steps between stops are taken together, by their law; all terms are positive, so errors stay relative.
    """

    steps: Sequence[tuple[float, float]]
    moves: Sequence[int]
    unit: float

    def run(self, stops: dict[int, float]) -> Bracket[float]:
        """The values at the start, from both sides."""
        last = len(self.steps)
        marks = sorted({0, last, *stops, *range(0, last, _TOGETHER)}, reverse=True)
        windows = _windows(self.steps, [(move, 0.0) for move in self.moves])
        taken = list(accumulate(self.moves, initial=0))
        kernels: dict[Block, tuple[Floats, float]] = {}
        rows = np.zeros((2, windows[last][1] - windows[last][0] + 1))
        before = last
        for k in marks:
            if k < before:
                block = tuple(Counter(zip(self.moves[k:before], self.steps[k:before], strict=True)).items())
                if block not in kernels:
                    kernels[block] = _kernel(block)
                rows = _correlated(rows, windows[before], windows[k], *kernels[block])
            if k in stops:
                losses = points(2 * windows[k][0], 2 * windows[k][1], self.unit / 2)[::2] - taken[k] * self.unit / 2
                worth = _worth(losses, stops[k], taken[k] * self.unit)
                rows = worth if k == last else np.maximum(rows, worth)
            before = k
        drift = 1e-15 * 64 * (last + 1)
        lower, upper = (float(row[0]) for row in rows)
        upper = min(1.0, upper * (1 + drift) + 2 * _MISS * last)
        return Bracket(min(max(0.0, lower * (1 - drift) - 2 * _MISS * last), upper), upper)


def _windows(steps: Sequence[tuple[float, float]], moves: Sequence[tuple[int, float]]) -> list[tuple[int, int]]:
    """Where the grid index is after each step, but for e^−98 on either side."""
    exact = all(share == 0 for _, share in moves)
    before, after = (0, 0) if exact else (4, 6)
    windows, mean, squares, most = [(-before, after)], 0.0, 0.0, 0
    for (epsilon, _), (whole, share) in zip(steps, moves, strict=True):
        mean += (whole + share) / (1 + exp(-epsilon))
        squares += (whole + share) ** 2
        most += whole + (share > 0)
        reach = _FAR * sqrt(squares) + 2
        drift = 0 if exact else len(windows)  # a cell's error may come from the cell beside it, in every step
        high = min(most, ceil(mean + reach) + drift) + after
        windows.append((max(0, floor(mean - reach)) - before, high))
    return windows


def _kernel(block: Block) -> tuple[Floats, float]:
    """The law of the moves of some steps, and the mass that goes to infinity."""
    law, kept, lost = np.ones(1), 1.0, 0.0
    for (move, (epsilon, delta)), count in block:
        truth = 1 / (1 + exp(-epsilon))
        one = np.zeros(move + 1)
        one[0] += 1 - truth if move == 0 else truth * exp(-epsilon)
        one[move] += truth
        for _ in range(count):
            lost += kept * delta
            kept *= 1 - delta
            law = np.convolve(law, one)
    return law * kept, lost


def _correlated(rows: Floats, there: tuple[int, int], here: tuple[int, int], kernel: Floats, infinity: float) -> Floats:
    """Σ kernel(j)·w(i + j) + infinity for i in the window ``here``, from w in ``there``.

    Beyond the window values never fall, and lie between 0 and 1.
    """
    first, last = here[0], here[1] + kernel.size - 1
    left, right = max(0, there[0] - first), max(0, last - there[1])
    inside = rows[:, max(0, first - there[0]) : rows.shape[1] - max(0, there[1] - last)]
    edges = ((0.0, rows[0, -1]), (rows[1, 0], 1.0))
    new = [
        np.correlate(np.concatenate([np.full(left, low), row, np.full(right, high)]), kernel, "valid")
        for row, (low, high) in zip(inside, edges, strict=True)
    ]
    return np.stack(new) + infinity


def _worth(losses: Floats, epsilon: float, scale: float) -> Floats:
    """Stopping is worth 1 − e^{E − L}; what rounding did to numbers up to ``scale`` is counted on either side."""
    slack = 8 * _ULP * (abs(epsilon) + np.abs(losses) + 2 * scale + 1)
    gaps = epsilon - losses
    return np.asarray(-np.expm1(np.minimum(np.stack([gaps + slack, gaps - slack]), 0.0)))


@dataclass(frozen=True, eq=False)
class _Induction:
    """Backward induction on the grid L = unit·i − Σε. Rows: values from above, and how far a cell may be below them."""

    steps: Sequence[tuple[float, float]]
    moves: Sequence[tuple[int, float]]
    unit: float
    offsets: Sequence[float]

    def run(self, stops: dict[int, float]) -> Bracket[float]:
        """The values at the start, from both sides."""
        last = len(self.steps)
        windows = _windows(self.steps, self.moves)
        shifts = [max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a, b in pairwise(windows)]
        margin = 4 + max(whole for whole, _ in self.moves) + max(shifts)
        start = min(low for low, _ in windows) - margin
        rows = np.zeros((2, max(high for _, high in windows) + margin + 1 - start))
        for k in range(last, -1, -1):
            low, high = windows[k][0] - start, windows[k][1] + 1 - start
            if k < last:
                self._step(rows, k, low, high)
            if k in stops:
                losses = points(windows[k][0], windows[k][1], self.unit) - self.offsets[k]
                worth = _worth(losses, stops[k], self.offsets[k])[1]
                rows[0, low:high] = worth if k == last else np.maximum(rows[0, low:high], worth)
            rows[1, low + 1 : high - 2] += _gaps(rows[0, low:high], self.unit)
            if k:
                self._extend(rows, low, high, margin)
        value, below = (float(row[-start]) for row in rows)
        drift = 1e-15 * 16 * (last + 1)
        upper = min(1.0, value * (1 + drift) + 2 * _MISS * last)
        return Bracket(min(max(0.0, value * (1 - drift) - below - 1e-12), upper), upper)

    def _step(self, rows: Floats, k: int, low: int, high: int) -> None:
        """One step of randomised response, in place."""
        epsilon, delta = self.steps[k]
        whole, share = self.moves[k]
        truth = (1 - delta) / (1 + exp(-epsilon))
        moved, onward = rows[:, low + whole : high + whole], rows[:, low + whole + 1 : high + whole + 1]
        weight = expm1(-share * self.unit) / expm1(-self.unit)
        told = np.stack([(1 - weight) * moved[0] + weight * onward[0], np.maximum(moved[1], onward[1])])
        rows[:, low:high] *= truth * exp(-epsilon)
        rows[:, low:high] += truth * told
        rows[0, low:high] += delta

    def _extend(self, rows: Floats, low: int, high: int, margin: int) -> None:
        """Beyond the window: values never fall, and lie between 0 and 1."""
        rows[0, max(low - margin, 0) : low] = rows[0, low]
        rows[0, high : high + margin] = 1.0
        rows[1, max(low - margin, 0) : low + 1] = rows[1, high - 2 : high + margin] = 1.0


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
