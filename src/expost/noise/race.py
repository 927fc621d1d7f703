"""Exact choices among more candidates than can be listed: certified coins, and permute-and-flip as a race.

Permute-and-flip visits candidates in random order, flips each one's coin, and takes the first heads. With 2^50
candidates nobody can do that. But visits at the times of Poisson processes have the same first heads, and the heads
alone are a Poisson process that can be drawn from directly. What remains to be settled is whether the candidate that
shows heads had shown tails before. All waiting times stay unknown; only the order of events is drawn, with rational
coins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TypeVar

from expost.noise.fixed import Bounds
from expost.noise.scalar import bernoulli, bernoulli_exp
from expost.noise.source import NoiseSource

_Candidate = TypeVar("_Candidate", bound=Hashable)
_WORD = 64


def bernoulli_within(source: NoiseSource, bounds: Callable[[int], Bounds]) -> bool:
    """True with exactly the probability p that ``bounds`` encloses: integers lo ≤ 2^bits·p ≤ hi for any bits.

    Proof: lem-certified-coin
    """
    low, high, bits = 0, 1, 0  # a uniform number is known to lie in [low, high)/2^bits
    while True:
        bits += _WORD
        low, high = low << _WORD, high << _WORD
        surely, perhaps = (min(max(bound, low), high) for bound in bounds(bits))
        if source.chance(surely - low, high - low):
            return True
        if not source.chance(perhaps - surely, high - surely):
            return False
        low, high = surely, perhaps


def weighted(source: NoiseSource, cumulative: Sequence[int]) -> int:
    """An index with probability proportional to its whole weight; ``cumulative`` has the running sums of the weights.

    Proof: lem-weighted-choice
    """
    low, high = 0, len(cumulative)  # the index is in low, …, high − 1
    while high - low > 1:
        middle = (low + high) // 2
        before = cumulative[low - 1] if low else 0
        left, whole = cumulative[middle - 1] - before, cumulative[high - 1] - before
        low, high = (low, middle) if source.chance(left, whole) else (middle, high)
    return low


def first_heads(
    source: NoiseSource,
    total: Fraction,
    propose: Callable[[], _Candidate | None],
    exponent: Callable[[_Candidate], Fraction],
) -> _Candidate:
    """The choice of permute-and-flip where candidate y shows heads with probability e^−exponent(y).

    ``propose`` returns each candidate y with probability e^−exponent(y)/total, and else None; ``total`` is at least
    the sum of the probabilities of heads. Some candidate has exponent 0.

    Proof: thm-race
    """
    waits: list[Fraction] = []
    tails: set[_Candidate] = set()
    while True:
        waits.append(total)
        candidate = propose()
        if candidate is None or candidate in tails:
            continue
        if not _showed_tails(source, waits, exponent(candidate)):
            return candidate
        tails.add(candidate)


def _showed_tails(source: NoiseSource, waits: list[Fraction], exponent: Fraction) -> bool:
    """Whether a candidate was visited, and showed tails, during waits of these rates.

    The rates become those of the pieces that the waits are known to consist of.
    """
    pieces: list[Fraction] = []
    for done, rate in enumerate(waits if exponent else ()):
        while bernoulli(source, 1 / (rate + 1)):  # a visit comes before the end of the wait
            pieces.append(rate + 1)
            if not bernoulli_exp(source, exponent):
                waits[:] = pieces + waits[done:]
                return True
        pieces.append(rate + 1)
    return False
