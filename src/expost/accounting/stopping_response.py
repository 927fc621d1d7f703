"""The least δ of early stopping for (ε, δ) steps: backward induction over the likelihood ratio of randomised response.

After k steps the loss is L = −(ε₁ + … + ε_k) + 2·(ε of the steps with a true answer). So one of the two outcomes of a
step never moves on a grid of doubled losses, and the other moves by 2ε: onto a grid point if the ε's are commensurable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil, exp, floor, gcd, lcm, sqrt

import numpy as np

from expost.accounting.law import ULP, Floats, points
from expost.bracket import Bracket

_Pair = tuple[Fraction, Fraction]
Block = tuple[tuple[tuple[int, tuple[float, float]], int], ...]

_FAR = 7.0  # Hoeffding: a sum leaves mean ± 7·√Σ range² with probability e^−98 on either side
_MISS = 1e-42
_MOST_POINTS = 2**18
_TOGETHER = 256  # steps whose law is made at once


def optimal_response(
    steps: Sequence[_Pair], stops: Sequence[int], epsilons: Sequence[Fraction]
) -> Bracket[float] | None:
    """The least δ for (ε, δ) steps, with rounding errors enclosed; None if no lattice of a sensible size holds all ε's.

    Proof: thm-optimal-stopping
    """
    kinds = {id(step): step for step in steps}  # fractions are slow to hash: the same step is mostly the same object
    order = [id(step) for step in steps]
    counts = Counter(order)
    unit = _unit([(kind[0], counts[key]) for key, kind in kinds.items()])
    if unit is None:
        return None
    move_of = {key: int(2 * epsilon / unit) for key, (epsilon, _) in kinds.items()}
    float_of = {key: (float(epsilon), float(delta)) for key, (epsilon, delta) in kinds.items()}
    guaranteed = {stop: float(epsilon) for stop, epsilon in zip(stops, epsilons, strict=True)}
    return _Lattice([float_of[key] for key in order], [move_of[key] for key in order], float(unit)).run(guaranteed)


def _unit(epsilons: Sequence[tuple[Fraction, int]]) -> Fraction | None:
    """The largest number of which all 2ε (given with their numbers of steps) are multiples, if not too small."""
    positive = {epsilon for epsilon, _ in epsilons if epsilon > 0}
    if not positive:
        return Fraction(1)
    scale = lcm(*(epsilon.denominator for epsilon in positive))
    unit = 2 * Fraction(gcd(*(int(epsilon * scale) for epsilon in positive)), scale)
    deviation = 2 * sqrt(sum(count * float(epsilon) ** 2 for epsilon, count in epsilons))
    return unit if 2 * _FAR * deviation <= _MOST_POINTS * float(unit) else None


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
        windows = _windows(self.steps, self.moves)
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


def _windows(steps: Sequence[tuple[float, float]], moves: Sequence[int]) -> list[tuple[int, int]]:
    """Where the grid index is after each step, but for e^−98 on either side."""
    windows, mean, squares, most = [(0, 0)], 0.0, 0.0, 0
    for (epsilon, _), move in zip(steps, moves, strict=True):
        mean += move / (1 + exp(-epsilon))
        squares += move**2
        most += move
        reach = _FAR * sqrt(squares) + 2
        windows.append((max(0, floor(mean - reach)), min(most, ceil(mean + reach))))
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
    slack = 8 * ULP * (abs(epsilon) + np.abs(losses) + 2 * scale + 1)
    gaps = epsilon - losses
    return np.asarray(-np.expm1(np.minimum(np.stack([gaps + slack, gaps - slack]), 0.0)))
