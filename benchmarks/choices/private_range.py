"""What a good private range costs without any bounds: our search, a geometric histogram, or propose-test-release.

A range is good if it leaves out at most a fiftieth of the records and is at most eight times as long as the shortest
such interval around the middle (from the 0.01-quantile to the 0.99-quantile). First, each way is given more and more ε
until nine of ten ranges are good: what a ledger charges there on average, of what is reserved. Then, because nobody
knows that ε in advance, each way is given ε = 1: what is charged, and the share of good ranges.

- ``search`` is ``PrivateRange``, with pure ε: attempts with growing ε, the rest refunded.
- ``histogram`` counts records in cells ±[2^k, 2^(k+1)), adds Laplace noise of scale 2/ε, and shows the cells whose
  count passes 1 + 2·ln(1/2δ)/ε; its range is from the lowest to the highest cell that is shown. It costs ε and
  δ = 10⁻⁶.
- ``proposal`` is propose-test-release: ``StableInterquartileRange`` and then ``StableMedian`` with half of ε and of
  δ = 10⁻⁶ each; the range is the median and eight times the spread on either side. What is withheld costs less.

benchmarks/choices/private_range.txt is what it printed last.

    python benchmarks/choices/private_range.py | tee benchmarks/choices/private_range.txt
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost import WITHHELD
from expost.mechanism import Withheld
from expost.mechanisms import PrivateRange, StableInterquartileRange, StableMedian
from expost.noise import SystemNoise

EPSILONS = [2.0**k for k in range(-9, 4)]
DELTA = 1e-6
REPEATS = 40
DRAWN = np.random.default_rng(2)
Array: TypeAlias = NDArray[np.float64]
Found: TypeAlias = tuple[tuple[float, float] | None, float]
"""A range, if one was found, and the ε that is charged."""


def cases() -> dict[str, Array]:
    """Of several sizes and shapes; no benchmark uses them."""
    return {
        "ages, 500": DRAWN.normal(45, 15, 500).clip(0, 100).round(),
        "ages, 50,000": DRAWN.normal(45, 15, 50_000).clip(0, 100).round(),
        "incomes, 500": DRAWN.lognormal(10, 0.8, 500),
        "incomes, 5,000": DRAWN.lognormal(10, 0.8, 5_000),
        "incomes, 50,000": DRAWN.lognormal(10, 0.8, 50_000),
        "changes, 2,000": DRAWN.standard_t(3, 2_000) * 0.02,
        "far from zero, 2,000": DRAWN.normal(20_260, 4, 2_000),
        "far from zero, 50,000": DRAWN.normal(20_260, 4, 50_000),
        "counts, 2,000": DRAWN.poisson(2, 2_000).astype(float),
        "mostly zero, 20,000": np.where(DRAWN.random(20_000) < 0.8, 0, DRAWN.lognormal(8, 1, 20_000)),
    }


def search(records: Array, epsilon: float) -> Found:
    mechanism = PrivateRange(epsilon=epsilon, neighbours="substitute")
    found = mechanism.sample(records, SystemNoise())
    charged = mechanism.guarantee.epsilon_of(mechanism.part_of(found))
    return (None if isinstance(found, Withheld) else (found.low, found.high)), charged


def histogram(records: Array, epsilon: float) -> Found:
    size = np.abs(records)
    power = np.where(size > 0, np.floor(np.log2(np.maximum(size, 1e-300))), -1000).astype(int)
    cells, counts = np.unique(np.c_[np.sign(records).astype(int), power], axis=0, return_counts=True)
    noisy = counts + DRAWN.laplace(scale=2 / epsilon, size=len(counts))
    shown = cells[noisy > 1 + 2 * log(1 / (2 * DELTA)) / epsilon]
    if not len(shown):
        return None, epsilon
    ends = [sorted((sign * 2.0**k, sign * 2.0 ** (k + 1))) for sign, k in shown.tolist()]
    return (min(end[0] for end in ends), max(end[1] for end in ends)), epsilon


def proposal(records: Array, epsilon: float) -> Found:
    spread = StableInterquartileRange(epsilon=epsilon / 2, delta=DELTA / 2)
    found = spread.sample(records, SystemNoise())
    charged = spread.guarantee.epsilon_of(spread.part_of(found))
    if found is WITHHELD:
        return None, charged
    upper = max(found.upper, 1e-30)
    median = StableMedian.scaled(upper, size=len(records), epsilon=epsilon / 2, delta=DELTA / 2)
    centre = median.sample(records, SystemNoise())
    charged += median.guarantee.epsilon_of(median.part_of(centre))
    return (None if centre is WITHHELD else (centre - 8 * upper, centre + 8 * upper)), charged


WAYS: dict[str, Callable[[Array, float], Found]] = {
    "search": search,
    "histogram": histogram,
    "proposal": proposal,
}


def good(records: Array, found: tuple[float, float] | None) -> bool:
    if found is None:
        return False
    low, high = np.quantile(records, [0.01, 0.99])
    outside = float(np.mean((records < found[0]) | (records > found[1])))
    return outside <= 0.02 and found[1] - found[0] <= 8 * (high - low)


def tried(records: Array, find: Callable[[Array, float], Found], epsilon: float) -> tuple[float, float]:
    """What is charged on average, and the share of good ranges."""
    found = [find(records, epsilon) for _ in range(REPEATS)]
    return float(np.mean([charged for _, charged in found])), sum(good(records, one) for one, _ in found) / REPEATS


def cheapest(records: Array, find: Callable[[Array, float], Found]) -> str:
    """What is charged, of the least ε with which nine of ten ranges are good."""
    for epsilon in EPSILONS:
        charged, share = tried(records, find, epsilon)
        if share >= 0.9:
            return f"{charged:.4f} of {epsilon:.4f}"
    return "never"


def given_one(records: Array, find: Callable[[Array, float], Found]) -> str:
    """What is charged of ε = 1, and the share of good ranges."""
    charged, share = tried(records, find, 1.0)
    return f"{charged:.4f}, {share:.2f} good"


def main() -> None:
    drawn = cases()
    for title, shown in (("nine of ten are good", cheapest), ("given ε = 1", given_one)):
        print(f"{title:<24}" + "".join(f"{way:>20}" for way in WAYS))
        for name, records in drawn.items():
            print(f"{name:<24}" + "".join(f"{shown(records, find):>20}" for find in WAYS.values()), flush=True)
        print()
    print(f"{'δ':<24}{'0':>20}{DELTA:>20g}{DELTA:>20g}")


if __name__ == "__main__":
    main()
