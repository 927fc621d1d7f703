"""Intervals with errors of noise and of the sample (`docs/tutorials/survey.md`) hold; with one alone they do not."""

from math import hypot, sqrt

import numpy as np
import pytest

import expost as xp

pytestmark = pytest.mark.slow
PEOPLE, DRAWN, RUNS = 20_000, 1_000, 1_000


def misses() -> dict[str, float]:
    """In which share of the runs the population's share is beyond the interval."""
    chance, source = np.random.default_rng(3), xp.SeededNoise(5)
    people = (np.arange(PEOPLE) < 0.4 * PEOPLE).astype(int)
    beyond = dict.fromkeys(("noise", "sampling", "both"), 0)
    for _ in range(RUNS):
        sample = chance.choice(people, DRAWN, replace=False)
        ledger = xp.Ledger(epsilon=1, neighbours="substitute", noise=source)
        share = ledger.run(xp.Share("value = 1"), on=sample, epsilon=0.2).value
        sampling = 1.96 * sqrt((1 - DRAWN / PEOPLE) * share.value * (1 - share.value) / DRAWN)
        reach = {"noise": share.error, "sampling": sampling, "both": hypot(share.error, sampling)}
        for name, error in reach.items():
            beyond[name] += abs(share.value - 0.4) > error
    return {name: number / RUNS for name, number in beyond.items()}


def test_intervals_hold_for_the_population() -> None:
    found = misses()
    assert found["both"] <= 0.05 + 3 * sqrt(0.05 * 0.95 / RUNS)
    assert found["both"] >= 0.02  # and are not much wider than they need be
    assert found["noise"] > 0.08
    assert found["sampling"] > 0.08
