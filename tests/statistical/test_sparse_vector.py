"""The real sparse vector against its exact law, and an audit; each with a control that must fail."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import SparseVector
from expost.mechanisms import AdaptiveSparseVector
from expost.verify.audit import audit

RUNS = 6_000
CRITICAL = 50.0  # of χ² with 7 degrees of freedom: passed by chance less than once in ten million runs
VALUES = np.array([0, 3, -2])


def law(svt: SparseVector, share: float) -> dict[tuple[bool, ...], float]:
    """Pr[answers] for ε₁ = 0.8 and a share of 0.5, a value's noise being that of ``share`` times as much."""
    first, rate = 0.8, 0.5 * share
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
    return tuple(svt.sample(VALUES, xp.noise.SystemNoise()).answers.tolist())


def one_by_one(svt: SparseVector) -> tuple[bool, ...]:
    ask = svt.start(None, xp.noise.SystemNoise())
    return tuple(ask(int(value)) for value in VALUES)


@pytest.mark.parametrize("run", [one_go, one_by_one])
@pytest.mark.parametrize("noise", ["one-sided", "two-sided"])
def test_answers_have_the_law_that_was_proved(noise: Any, run: Any) -> None:
    svt = SparseVector(threshold=1, at_most=4, epsilon=4.8, threshold_share="1/6", sensitivity=1, noise=noise)
    seen = Counter(run(svt) for _ in range(RUNS))
    assert chi_square(seen, law(svt, 1.0)) < CRITICAL
    assert chi_square(seen, law(svt, 1.4)) > CRITICAL  # noise 30 % too small
    assert chi_square(seen, law(svt, 0.7)) > CRITICAL  # or too large


@pytest.mark.parametrize("noise", ["one-sided", "two-sided"])
def test_gaps_have_the_mean_and_the_variance_that_were_proved(noise: Any) -> None:
    """A value far above: gap = value − threshold + ν − ρ − centre, with rates 0.25 and 0.8."""
    svt = SparseVector(
        threshold=0, at_most=1, epsilon="1.3", threshold_share="8/13", sensitivity=1, gap=True, noise=noise
    )
    gaps = np.array([svt.sample(np.array([1000]), xp.noise.SystemNoise()).answers[0] for _ in range(RUNS)])
    sides = 1 if noise == "one-sided" else 2
    variance = sum(sides * exp(-r) / (1 - exp(-r)) ** 2 for r in (0.25, 0.8))
    mean = 1000 - svt.centre + (sides == 1) * (1 / (exp(0.25) - 1) - 1 / (exp(0.8) - 1))
    assert abs(gaps.mean() - mean) < 6 * sqrt(variance / RUNS)
    assert 0.75 < gaps.var() / variance < 1.33
    assert not 0.75 < gaps.var() / (variance * 1.69) < 1.33  # as if the scale were 30 % larger


def test_the_adaptive_one_has_the_law_that_was_proved() -> None:
    """One value 2 above its threshold, ε₁ = 0.8, shares of 0.5: rates 0.25 (far) and 0.5 (near), margin 3."""
    svt = AdaptiveSparseVector(
        threshold=0, at_most=1, epsilon="1.8", threshold_share="4/9", sensitivity=1, margin=3, noise="two-sided"
    )
    z = np.arange(-200, 200)
    weight = np.exp(-0.8 * np.abs(z))
    weight /= weight.sum()

    def tail(margins: np.ndarray, rate: float) -> np.ndarray:
        q = exp(-rate)
        far = q ** np.abs(margins)
        return np.asarray(np.where(margins > 0, far / (1 + q), 1 - far * q / (1 + q)))

    def expected(factor: float) -> list[float]:
        far, near = tail(z + 3 - 2, 0.25 * factor), tail(z - 2, 0.5 * factor)
        return [float(weight @ p) for p in ((1 - far) * (1 - near), (1 - far) * near, far)]

    seen = Counter(int(svt.sample(np.array([2]), xp.noise.SystemNoise()).answers[0]) for _ in range(RUNS))
    asked = Counter(svt.start(None, xp.noise.SystemNoise())(2) for _ in range(RUNS))
    for counts in (seen, asked):
        assert sum((counts[a] - RUNS * p) ** 2 / (RUNS * p) for a, p in enumerate(expected(1.0))) < CRITICAL
        assert sum((counts[a] - RUNS * p) ** 2 / (RUNS * p) for a, p in enumerate(expected(2.0))) > CRITICAL


def test_an_audit_and_its_control() -> None:
    """One positive of one: the guarantee is ε₁ + ε₂. A mechanism with a tenth of the noise does not keep it."""
    good = SparseVector(threshold=1, at_most=1, epsilon="0.9", threshold_share="1/3", sensitivity=1, noise="two-sided")
    bad = SparseVector(threshold=1, at_most=1, epsilon=9, threshold_share="1/3", sensitivity=1, noise="two-sided")
    pair = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    assert not audit(good, [pair], samples=2_000).refuted
    assert audit(bad, [pair], guarantee=good.guarantee, part_of=good.part_of, samples=2_000).refuted
