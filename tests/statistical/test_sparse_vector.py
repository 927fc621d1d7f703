"""The real sparse vector against its exact law, and an audit; each with a control that must fail."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import SparseVector

RUNS = 6_000
CRITICAL = 50.0  # of χ² with 7 degrees of freedom: passed by chance less than once in ten million runs
VALUES = np.array([0, 3, -2])


def law(svt: SparseVector, share: float) -> dict[tuple[bool, ...], float]:
    """Pr[answers], with the noise of a value falling by e^−share·rate a step (share 1: as claimed)."""
    first, rate = float(svt._threshold_rate), float(svt.rate) * share
    one_sided = svt.noise == "one-sided"
    z = np.arange(0 if one_sided else -200, 200)
    weight = np.exp(-first * np.abs(z))
    weight /= weight.sum()

    def above(value: int) -> np.ndarray:
        margins = svt.threshold + z + svt.centre - value
        q = exp(-rate)
        far = q ** np.abs(margins)
        if one_sided:
            return np.asarray(np.where(margins > 0, far, 1.0))
        return np.asarray(np.where(margins > 0, far / (1 + q), 1 - far * q / (1 + q)))

    chances = [above(int(value)) for value in VALUES]
    return {
        answers: float(weight @ np.prod([p if yes else 1 - p for p, yes in zip(chances, answers, strict=True)], axis=0))
        for answers in product([False, True], repeat=len(VALUES))
    }


def chi_square(seen: Counter[tuple[bool, ...]], expected: dict[tuple[bool, ...], float]) -> float:
    return sum((seen[a] - RUNS * p) ** 2 / (RUNS * p) for a, p in expected.items())


def one_go(svt: SparseVector) -> tuple[bool, ...]:
    return tuple(svt.sample(VALUES, xp.SystemNoise()).tolist())


def one_by_one(svt: SparseVector) -> tuple[bool, ...]:
    ask = svt.start(None, xp.SystemNoise())
    return tuple(ask(int(value)) for value in VALUES)


@pytest.mark.parametrize("run", [one_go, one_by_one])
@pytest.mark.parametrize("noise", ["one-sided", "two-sided"])
def test_answers_have_the_law_that_was_proved(noise: Any, run: Any) -> None:
    svt = SparseVector(threshold=1, at_most=4, epsilon=(0.8, 4.0), sensitivity=1, noise=noise)
    seen = Counter(run(svt) for _ in range(RUNS))
    assert chi_square(seen, law(svt, 1.0)) < CRITICAL
    assert chi_square(seen, law(svt, 1.4)) > CRITICAL  # noise 30 % too small
    assert chi_square(seen, law(svt, 0.7)) > CRITICAL  # or too large


def refuted(svt: SparseVector, epsilon: float) -> bool:
    """Whether frequencies show that some answer is more than e^ε times as likely on one database (1 in 10⁶)."""
    runs = 6_000
    slack = sqrt(log(4e6) / (2 * runs))
    hits = []
    for side in (0, 1):
        data = np.array([0, side])  # the second value moves by one
        noise = xp.SystemNoise()
        hits.append(sum(not out[0] and bool(out[1]) for out in (svt.sample(data, noise) for _ in range(runs))) / runs)
    return hits[1] - slack > exp(epsilon) * (hits[0] + slack)


def test_an_audit_and_its_control() -> None:
    """One positive of one: the claim is ε₁ + ε₂. A mechanism with a quarter of the noise does not keep it."""
    good = SparseVector(threshold=1, at_most=1, epsilon=(0.3, 0.6), sensitivity=1, noise="two-sided")
    assert not refuted(good, 0.9)
    bad = SparseVector(threshold=1, at_most=1, epsilon=(3, 6), sensitivity=1, noise="two-sided")
    assert refuted(bad, 0.9)
