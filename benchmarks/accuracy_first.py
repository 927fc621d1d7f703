"""Accuracy first: what a wanted accuracy costs by noise reduction, and the most frequent of a million labels.

The peers of noise reduction: doubling ε with fresh noise until the answer is good enough, which pays for every answer;
and an oracle, who knows the truth and so how much ε it takes. Targets are relative errors whose absolute size is
between 10 and 300 at a sensitivity of 1. All stop by the same rule at the same confidence.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from fractions import Fraction
from statistics import fmean, median

import numpy as np

import expost as xp
from expost.mechanisms.laplace import laplace_reach
from expost.noise import NoiseSource, discrete_laplace
from report import Row, at_least, at_most, report

TARGETS, RUNS, LABELS, REPEATS = 1_000, 10_000, 1_000_000, 7
CONFIDENCE, LAST, DOUBLINGS = Fraction(19, 20), 1, 8
NOISE = xp.SystemNoise()


def targets(count: int) -> list[tuple[int, Fraction]]:
    """A truth and the share of it that an answer may be off."""
    generator = random.Random(23)
    found = []
    for _ in range(count):
        within = Fraction(generator.choice((1, 5, 10)), 100)
        found.append((round(10 ** generator.uniform(1, 2.5) / within), within))
    return found


def reduced(truth: int, within: Fraction) -> tuple[float, int, bool]:
    """The ε charged, the answer, and whether the rule was met."""
    rule = xp.RelativeError(within=within, confidence=CONFIDENCE)
    mechanism = xp.NoiseReduction(epsilon=LAST, sensitivity=1, until=rule)
    value, level, met = mechanism.sample(truth, NOISE)
    return mechanism.guarantee.epsilon_of(level), value, met


def doubled(truth: int, within: Fraction, noise: NoiseSource = NOISE) -> float:
    """The sum of ε of fresh answers until one is good enough."""
    rule = xp.RelativeError(within=within, confidence=CONFIDENCE)
    epsilons = tuple(Fraction(LAST, 2**left) for left in range(DOUBLINGS - 1, -1, -1))
    miss, spent = rule.miss_per_level(epsilons, Fraction(0), 1), Fraction(0)
    for epsilon in epsilons:
        spent += epsilon
        error = Fraction(laplace_reach(epsilon, miss))
        if rule.met([Fraction(truth + discrete_laplace(noise, epsilon))], error):
            break
    return float(spent)


def oracle(truth: int, within: Fraction) -> float:
    """The least ε whose error is small enough, for who knows the truth."""
    return float(xp.Laplace.for_accuracy(truth * within, CONFIDENCE, sensitivity=1).epsilon)


def coverage() -> float:
    """The share of runs whose answer is as near as was asked for, of those that met the rule."""
    found = [(truth, within, *reduced(truth, within)[1:]) for truth, within in targets(RUNS)]
    return fmean(abs(value - truth) <= truth * within for truth, within, value, met in found if met)


def seconds(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def top_row(k: int, goal: float | None) -> Row:
    """The choice among ten times k candidates of Zipf counts, against partitioning and sorting them."""
    counts = (10**7 / np.arange(1, LABELS + 1)).astype(np.int64)
    np.random.default_rng(5).shuffle(counts)
    labels, top = np.arange(LABELS), xp.TopK(k=k, epsilon=Fraction(k, 10), delta=1e-9)

    def plain() -> object:
        best = np.argpartition(counts, LABELS - 10 * k)[LABELS - 10 * k :]
        return labels[best[np.argsort(-counts[best], kind="stable")]]

    ours, peer = seconds(lambda: top.sample((labels, counts), NOISE)), seconds(plain)
    name = f"top {k} of 1,000,000 labels, and partition and sort"
    if goal is None:
        return Row(name, ours, peer, "s", ours / peer, "no goal", True)
    return at_most(name, ours, peer, "s", ours / peer, goal)


def main() -> None:
    chosen = targets(TARGETS)
    ours = fmean(reduced(*target)[0] for target in chosen)
    doubling, best = fmean(doubled(*target) for target in chosen), fmean(oracle(*target) for target in chosen)
    share = coverage()
    report(
        "accuracy_first",
        [
            at_least("mean ε of 1,000 relative errors, by doubling", ours, doubling, "ε", doubling / ours, 2),
            Row("the same, by an oracle who knows the truth", ours, best, "ε", ours / best, "no goal", True),
            at_least("answers as near as asked for, of 10,000", share, 0.95, "share", share / 0.95, 1),
            top_row(10, 2),
            top_row(100, None),
        ],
    )


if __name__ == "__main__":
    main()
