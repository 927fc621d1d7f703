"""A test of an event by a bet: a fair game if the guarantee holds, so that winning much speaks against it.

Two bounds, one for each probability, are both pessimistic at once. A bet looks at both counts together, and at parts of
any number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p
from typing import Any, NamedTuple

import numpy as np

from expost.verify.audit.events import LARGEST_EPSILON, Distinguisher, Numbers, Side

_MARGIN = 1e-6  # more than rounding can add to the logarithm of what was won
_PLACES = 400  # candidates for the null hypothesis that is nearest to the samples


class Hits(NamedTuple):
    """Samples of an event."""

    first: int
    shares: Numbers
    """For each of the second law e^E of its part, as a share of the largest e^E in the event."""
    sizes: tuple[int, int]
    largest: float
    """ln of the largest e^E."""

    def repeated(self, times: int) -> Hits:
        """The same samples several times."""
        sizes = times * self.sizes[0], times * self.sizes[1]
        return Hits(times * self.first, np.tile(self.shares, times), sizes, self.largest)


@dataclass(frozen=True)
class Bet:
    """Each hit of the first law multiplies the stake by 1 + gain, one of the second by 1 − loss·e^E/largest."""

    gain: float
    loss: float

    def won(self, hits: Hits, delta: float) -> float:
        """ln of what the stake has grown to, in the worst case in which the guarantee holds.

        Proof: lem-audit-bet
        """
        first, second = hits.sizes
        most = np.exp(hits.largest)
        own = hits.first * log1p(self.gain) + float(np.log1p(-self.loss * hits.shares).sum())
        pull, push = self.gain, self.loss / most
        peak = (first * pull - second * push * (1 + delta * pull)) / max(pull * push * (first + second), 1e-300)
        x = min(max(peak, 0.0), most, max(1 - delta, 0.0))
        fair = first * log1p(pull * min(x + delta, 1.0)) + second * log1p(-push * x)
        return own - fair - _MARGIN


def hits_of(event: Distinguisher, first: Side, second: Side, epsilons: Numbers) -> Hits:
    """The samples of either law in an event."""
    largest = min(float(epsilons[event.within].max(initial=0.0)), LARGEST_EPSILON)
    own = int(event.members(first, epsilons).sum())
    other = second.parts[event.members(second, epsilons)]
    return Hits(own, np.exp(np.minimum(epsilons[other], LARGEST_EPSILON) - largest), (first.size, second.size), largest)


def best_bet(hits: Hits, delta: float) -> Bet:
    """The bet that wins most on samples like these: the ratio of likelihoods to the nearest laws that are allowed."""
    first, second = hits.sizes
    p = (hits.first + 0.5) / (first + 1)
    q = (float(hits.shares.sum()) + 0.5) / (second + 1)
    most = (p - delta) / float(np.exp(hits.largest))
    if most <= q:
        return Bet(0.0, 0.0)
    places = np.linspace(q, most, _PLACES + 1)[:-1]
    allowed = places * np.exp(hits.largest) + delta
    far = first * _divergence(p, allowed) + second * _divergence(q, places)
    best = int(np.argmin(far))
    q0, p0 = float(places[best]), float(allowed[best])
    return Bet(p * (1 - p0) / (p0 * (1 - p)) - 1, 1 - q * (1 - q0) / (q0 * (1 - q)))


def delta_won(bet: Bet, hits: Hits, error: float) -> float:
    """The largest δ, from 0 on, at which the guarantee's E is refuted.

    Proof: lem-audit-bet
    """
    needed = log(1 / error)
    if bet.won(hits, 0.0) < needed:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if bet.won(hits, middle) >= needed else (low, middle)
    return low


def _divergence(p: float, others: Any) -> Any:
    """Of a coin from other coins, in nats."""
    return p * np.log(p / others) + (1 - p) * np.log((1 - p) / (1 - others))
