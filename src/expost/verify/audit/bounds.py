"""Bounds for a probability from the number of hits among independent samples (Clopper and Pearson)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, lgamma, log, log1p

_TINY = 1e-300
_MARGIN = 1e-6  # of the error: more than rounding can add to a tail


@lru_cache(maxsize=4096)  # a search asks for most of them several times
def at_least(hits: int, samples: int, error: float) -> float:
    """A lower bound: above the probability only with probability ``error``.

    >>> round(at_least(90, 100, 0.05), 4)
    0.8363

    Proof: lem-clopper-pearson
    """
    if hits == 0:
        return 0.0
    allowed = error * (1 - _MARGIN)
    return _bisect(lambda p: beta_share(hits, samples - hits + 1, p) <= allowed)


def at_most(hits: int, samples: int, error: float) -> float:
    """An upper bound: below the probability only with probability ``error``.

    >>> round(at_most(0, 100, 0.05), 4)
    0.0295

    Proof: lem-clopper-pearson
    """
    return 1 - at_least(samples - hits, samples, error)


def _bisect(holds: Callable[[float], bool]) -> float:
    """The largest p, to about 50 bits, for which something holds that holds up to some p."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def beta_share(a: float, b: float, p: float) -> float:
    """The share of the beta distribution with parameters a, b that lies below p, by its continued fraction."""
    if p <= 0 or p >= 1:
        return float(p >= 1)
    if p > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - p)
    front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(p) + b * log1p(-p) - log(a)
    return exp(front) / _fraction(a, b, p) if front > -745 else 0.0


def _fraction(a: float, b: float, p: float) -> float:
    """1 + d₁/(1 + d₂/(1 + …)) of the incomplete beta function, from the front (Lentz)."""
    value = upper = 1.0
    lower = 0.0
    for step in range(1, 20_000):
        half = step // 2
        if step % 2:
            term = -(a + half) * (a + b + half) * p / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * p / ((a + 2 * half - 1) * (a + 2 * half))
        lower = 1 / ((1 + term * lower) or _TINY)
        upper = (1 + term / upper) or _TINY
        value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    return value
