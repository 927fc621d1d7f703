"""Events that speak against a guarantee: chosen on some of the samples, tested on others.

A guarantee (E, δ) says of every set S of outputs that P(S) ≤ Σ_k e^{E_k}·Q(S ∩ part k) + δ. The set that violates it
most is where p > e^E·q (thm-odp-hockey-stick), so an estimate of ln(p/q) proposes sets: outputs where it exceeds the
part's E by some amount.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.verify.audit import bounds

Numbers = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

_DEVIATIONS = 3.0  # standard errors by which candidates are discounted
_CLASSES = 8  # values of E that are distinguished in one event
LARGEST_EPSILON = 700.0  # e^700 is about the largest float


@dataclass(frozen=True)
class Side:
    """Samples of one law: the score of each output, in each way of scoring, and the number of its part."""

    scores: tuple[Numbers, ...]
    parts: NDArray[np.intp]

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(self.parts)

    def part(self, start: int, end: int) -> Side:
        """Some of the samples."""
        return Side(tuple(score[start:end] for score in self.scores), self.parts[start:end])

    def repeated(self, times: int) -> Side:
        """The same samples several times."""
        return Side(tuple(np.tile(score, times) for score in self.scores), np.tile(self.parts, times))


@dataclass(frozen=True)
class Distinguisher:
    """The outputs of some parts whose score, less ``weight`` times the part's E, is at least ``threshold``."""

    score: int
    threshold: float
    weight: float
    within: Mask
    """For each part, whether its outputs can belong."""
    excess: float = -inf
    """By how many standard errors it seemed to violate the guarantee when it was chosen."""

    def members(self, side: Side, epsilons: Numbers) -> Mask:
        """Which samples belong."""
        height = side.scores[self.score] - self.weight * epsilons[side.parts]
        return np.asarray((height >= self.threshold) & self.within[side.parts])


# ---- choosing


def best_for_part(first: Side, second: Side, part: int, parts: int, delta: float, scale: float) -> Distinguisher:
    """The event within a part that would show the largest ε, with ``scale`` times as many samples."""
    within = np.arange(parts) == part
    best, chosen = -inf, Distinguisher(0, inf, 0.0, within)
    for score in range(len(first.scores)):
        p = np.sort(first.scores[score][first.parts == part])
        q = np.sort(second.scores[score][second.parts == part])
        thresholds = _between(np.concatenate([p, q]))
        if len(thresholds) == 0:
            continue
        hits = scale * (len(p) - np.searchsorted(p, thresholds)), scale * (len(q) - np.searchsorted(q, thresholds))
        low = np.maximum(_low(hits[0]) - delta * first.size * scale, 1e-9)
        found = np.log(low) - np.log(_high(hits[1]))
        place = int(np.argmax(found))
        if found[place] > best:
            best, chosen = float(found[place]), Distinguisher(score, float(thresholds[place]), 0.0, within)
    return chosen


def best_anywhere(first: Side, second: Side, epsilons: Numbers, delta: float, within: Mask) -> Distinguisher:
    """The event in these parts that violates the guarantee by the most standard errors."""
    chosen = Distinguisher(0, inf, 1.0, within)
    inside, outside = within[first.parts], within[second.parts]
    weights = np.exp(np.minimum(epsilons[second.parts[outside]], 300.0))
    for score in range(len(first.scores)):
        p = np.sort((first.scores[score] - epsilons[first.parts])[inside])
        q = (second.scores[score] - epsilons[second.parts])[outside]
        thresholds = _between(np.concatenate([p, q]))
        if len(thresholds) == 0:
            continue
        order = np.argsort(q)
        place = np.searchsorted(q[order], thresholds)
        hits = len(p) - np.searchsorted(p, thresholds)
        allowed, spread = _above(weights[order])[place], _above(weights[order] ** 2)[place]
        excess = (hits - allowed - delta * first.size) / np.sqrt(hits + spread + 1)
        best = int(np.argmax(excess))
        if excess[best] > chosen.excess:
            chosen = Distinguisher(score, float(thresholds[best]), 1.0, within, float(excess[best]))
    return chosen


def _between(scores: Numbers) -> Numbers:
    """A number below each score, halfway to the next: with better scores of the same outputs, little changes sides."""
    found = np.unique(scores)
    return np.concatenate([found[:1] - 1, (found[1:] + found[:-1]) / 2])


def _above(values: Numbers) -> Numbers:
    """The sum of each value and all behind it, and 0 at the end."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def _low(hits: Numbers) -> Numbers:
    z = _DEVIATIONS
    return np.asarray(np.maximum(hits + z * z / 2 - z * np.sqrt(hits + z * z / 4), 0))


def _high(hits: Numbers) -> Numbers:
    z = _DEVIATIONS
    return np.asarray(hits + z * z / 2 + z * np.sqrt(hits + z * z / 4) + 1)


# ---- testing


def epsilon_shown(
    event: Distinguisher, first: Side, second: Side, epsilons: Numbers, delta: float, error: float
) -> float:
    """A lower bound for the ε that a part needs at this δ; −∞ where the samples show nothing.

    Proof: lem-audit
    """
    a, b = (int(event.members(side, epsilons).sum()) for side in (first, second))
    low = bounds.at_least(a, first.size, error / 2) - delta
    return log(low / bounds.at_most(b, second.size, error / 2)) if low > 0 else -inf


def delta_shown(event: Distinguisher, first: Side, second: Side, epsilons: Numbers, error: float) -> float:
    """A lower bound for the δ that the guarantee's E needs.

    Σ_k e^{E_k}·Q(S ∩ part k) is summed by layers, the parts with at least a certain E; each layer's probability is
    bounded from above. Parts whose E differ a little are taken for the more expensive one.

    Proof: lem-audit
    """
    hits = int(event.members(first, epsilons).sum())
    layers = _layers(epsilons[event.within])
    found = epsilons[second.parts[event.members(second, epsilons)]]
    allowed, before = 0.0, 0.0
    for k, layer in enumerate(layers):
        ratio = exp(min(layer, LARGEST_EPSILON))
        reached = int((found > (layers[k - 1] if k else -inf)).sum())
        allowed += (ratio - before) * bounds.at_most(reached, second.size, error / 2 / len(layers))
        before = ratio
    return bounds.at_least(hits, first.size, error / 2) - allowed


def _layers(epsilons: Numbers) -> list[float]:
    """At most :data:`_CLASSES` values, the largest among them, to which every E is rounded up."""
    values = np.unique(epsilons)
    places = np.unique(np.linspace(0, len(values) - 1, _CLASSES).round().astype(int))
    return [float(value) for value in values[places]]
