"""Propose-test-release on paper: exact laws of tests and releases, for rational e^−ε, on all small data sets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from expost.mechanisms import Proposal
from expost.noise import SeededNoise
from expost.verify import FiniteMechanism

Law = dict[Any, Fraction]
BOTTOM = "⊥"


def passing(fall: Fraction, distance: int, threshold: int) -> Fraction:
    """Pr[distance + noise > threshold] where Pr[noise = k] falls by ``fall`` a step."""
    m = threshold - distance + 1
    return fall**m / (1 + fall) if m > 0 else 1 - fall ** (1 - m) / (1 + fall)


def first_stable(legs: Sequence[tuple[int, Law]], fall: Fraction, threshold: int) -> Law:
    """The law of (leg, value) or ⊥, from each leg's distance and release."""
    law: Law = {}
    reached = Fraction(1)
    for leg, (distance, release) in enumerate(legs, 1):
        through = reached * passing(fall, distance, threshold)
        for value, mass in release.items():
            law[leg, value] = through * mass
        reached -= through
    return {**law, BOTTOM: reached}


def leg_or_bottom(output: Any) -> Any:
    return output if output == BOTTOM else output[0]


def databases(domain: Sequence[int], size: int) -> list[tuple[int, ...]]:
    return [records for records in product(domain, repeat=size) if tuple(sorted(records)) == records]


def one_change(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether two sorted data sets differ by one record."""
    rest = list(y)
    for record in x:
        if record in rest:
            rest.remove(record)
    return len(rest) == 1


def pairs(names: Sequence[tuple[int, ...]]) -> list[tuple[Hashable, Hashable]]:
    return [(x, y) for i, x in enumerate(names) for y in names[i + 1 :] if one_change(x, y)]


def tabulated(
    proposals: Sequence[Proposal],
    names: Sequence[tuple[int, ...]],
    fall: Fraction,
    threshold: int,
    release: Callable[[Proposal, tuple[int, ...]], Law] | None = None,
) -> FiniteMechanism:
    """The exact law of trying proposals in order, with their own distances; by default their releases are certain."""

    def certain(proposal: Proposal, x: tuple[int, ...]) -> Law:
        return {proposal.release(np.array(x), SeededNoise(0)): Fraction(1)}

    def law(x: tuple[int, ...]) -> Law:
        legs = [(p.distance(np.array(x), 2 * threshold + 2), (release or certain)(p, x)) for p in proposals]
        return first_stable(legs, fall, threshold)

    return FiniteMechanism({x: law(x) for x in names}, pairs(names), leg_or_bottom)


def laplace(centre: int, fall: Fraction, reach: range) -> Law:
    """Discrete Laplace noise around a centre; outside ``reach`` likelihood ratios are constant, so it is lumped."""
    assert reach.start <= centre < reach.stop
    inner = {k: (1 - fall) / (1 + fall) * fall ** abs(k - centre) for k in reach}
    below, above = (fall**m / (1 + fall) for m in (centre - reach.start + 1, reach.stop - centre))
    return {**inner, "below": below, "above": above}
