"""Whether a geometric histogram finds a better private range than ``TypicalRange(bounds=None)``.

Ours has pure ε. The histogram counts records in cells ±[2^k, 2^(k+1)), adds Laplace noise of scale 2/ε, and shows the
cells whose count passes 1 + 2·ln(1/2δ)/ε, δ = 10⁻⁶; its range is from the lowest to the highest cell that is shown.
Propose-test-release of a range has no proposal here, because nothing is known of the scale. For each data set: how long
the range is, in lengths of the interval of all records but a fiftieth, the share of records outside, and how often
nothing was found, over 50 repetitions. benchmarks/choices/private_range.txt is what it printed last.

    python benchmarks/choices/private_range.py | tee benchmarks/choices/private_range.txt
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost import SystemNoise, TypicalRange

EPSILONS = [0.1, 0.5, 1.0]
DELTA = 1e-6
REPEATS = 50
DRAWN = np.random.default_rng(2)
Array: TypeAlias = NDArray[np.float64]
Found: TypeAlias = tuple[float, float] | None


def cases() -> dict[str, Array]:
    """Of several sizes and shapes; no benchmark uses them."""
    return {
        "ages, 500": DRAWN.normal(45, 15, 500).clip(0, 100).round(),
        "incomes, 500": DRAWN.lognormal(10, 0.8, 500),
        "incomes, 5,000": DRAWN.lognormal(10, 0.8, 5_000),
        "changes, 2,000": DRAWN.standard_t(3, 2_000) * 0.02,
        "far from zero, 2,000": DRAWN.normal(20_260, 4, 2_000),
        "counts, 2,000": DRAWN.poisson(2, 2_000).astype(float),
    }


def ours(records: Array, epsilon: float) -> Found:
    low, high = TypicalRange(epsilon=epsilon, bounds=None, neighbours="substitute").sample(records, SystemNoise())
    return low, high


def histogram(records: Array, epsilon: float) -> Found:
    size = np.abs(records)
    power = np.where(size > 0, np.floor(np.log2(np.maximum(size, 1e-300))), -1000).astype(int)
    cells, counts = np.unique(np.c_[np.sign(records).astype(int), power], axis=0, return_counts=True)
    noisy = counts + DRAWN.laplace(scale=2 / epsilon, size=len(counts))
    shown = cells[noisy > 1 + 2 * log(1 / (2 * DELTA)) / epsilon]
    if not len(shown):
        return None
    ends = [sorted((sign * 2.0**k, sign * 2.0 ** (k + 1))) for sign, k in shown.tolist()]
    return min(end[0] for end in ends), max(end[1] for end in ends)


WAYS: dict[str, Callable[[Array, float], Found]] = {"ours": ours, "histogram": histogram}


def main() -> None:
    for epsilon in EPSILONS:
        print(f"ε = {epsilon:<20}  way        length  outside  nothing found")
        for name, records in cases().items():
            low, high = np.quantile(records, [0.01, 0.99])
            for way, find in WAYS.items():
                found = [find(records, epsilon) for _ in range(REPEATS)]
                ranges = np.array([each for each in found if each is not None]).reshape(-1, 2)
                missing = 1 - len(ranges) / REPEATS
                if not len(ranges):
                    print(f"{name:<24}  {way:<9}       –        –  {missing:13.3f}")
                    continue
                length = float(np.median((ranges[:, 1] - ranges[:, 0]) / (high - low)))
                outside = float(np.mean([((records < a) | (records > b)).mean() for a, b in ranges]))
                print(f"{name:<24}  {way:<9}  {length:6.2f}  {outside:7.4f}  {missing:13.3f}")
        print()


if __name__ == "__main__":
    main()
