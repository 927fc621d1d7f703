"""Cells of outputs that speak against Rényi prices.

Prices r at an order α say that Σ_k e^{−(α−1)·r_k}·∫_{part k} p^α·q^{1−α} ≤ 1 (def-renyi-prices). A coarser look only
makes the left side smaller, so it may be summed over cells within parts: P(cell)^α·Q(cell)^{1−α}·e^{−(α−1)·r}.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from expost.verify.audit import bounds
from expost.verify.audit.events import Mask, Numbers, Side

_FINEST = 6  # halvings of a part's tail


@dataclass(frozen=True)
class Cells:
    """Cuts of a score: the cells of each part are what lies between them."""

    score: int
    cuts: Numbers
    within: Mask
    """For each part, whether its cells count."""

    def counts(self, side: Side) -> NDArray[np.intp]:
        """How many samples of each part, a row each, are in each of its cells."""
        found = np.zeros((len(self.within), len(self.cuts) + 1), np.intp)
        np.add.at(found, (side.parts, np.searchsorted(self.cuts, side.scores[self.score], side="right")), 1)
        return found[self.within]


def best_cells(first: Side, second: Side, order: float, prices: Numbers, error: float) -> Cells:
    """The cells that show the largest sum."""
    parts = len(prices)
    counts = np.bincount(first.parts, minlength=parts)
    found: list[tuple[float, int, Cells]] = []
    for score in range(len(first.scores)):
        for halvings in range(1, _FINEST + 1):
            levels = 1 - 0.5 ** np.arange(1, halvings + 1)
            cuts = np.unique(np.quantile(first.scores[score], levels))
            for most in (1, 4, 16):
                within = (counts > 0) & (counts >= np.sort(counts)[-min(most, parts)])
                cells = Cells(score, cuts, within)
                found.append((moment_shown(cells, first, second, order, prices, error), len(found), cells))
    return max(found)[2]


def moment_shown(cells: Cells, first: Side, second: Side, order: float, prices: Numbers, error: float) -> float:
    """A lower bound for the left side of the inequality. Prices are refuted by more than 1.

    Proof: lem-audit-renyi
    """
    p, q = cells.counts(first), cells.counts(second)
    each = error / (2 * p.size)
    total = 0.0
    for row, price in enumerate(prices[cells.within]):
        for a, b in zip(p[row].tolist(), q[row].tolist(), strict=True):
            if a:
                low, high = bounds.at_least(a, first.size, each), bounds.at_most(b, second.size, each)
                total += exp(min(order * log(low) + (1 - order) * log(high) - (order - 1) * price, 700.0))
    return total
