"""Sparse vector: a million counts in one go, questions one at a time, and what refunds are worth.

The peers: a sparse vector written on OpenDP's scalar Laplace mechanism, and one in numpy whose floating-point noise
is not private. "Questions" go through a ledger that reserves and settles, one Python call each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray

import expost as xp
from paper import figure1
from report import Row, at_least, at_most, peer, report

SIZE, QUESTIONS, REPEATS = 1_000_000, 100_000, 7
THRESHOLD, AT_MOST, EPSILON = 5_000, 100, 1.0


def seconds(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def unsafe(counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.bool_]:
    """The same comparisons with floating-point noise, all drawn at once."""
    first = EPSILON / (1 + (2 * AT_MOST) ** (2 / 3))
    bar = THRESHOLD + generator.laplace(scale=1 / first)
    above = counts + generator.laplace(scale=2 * AT_MOST / (EPSILON - first), size=len(counts)) >= bar
    above[np.flatnonzero(above)[AT_MOST:]] = False
    return np.asarray(above)


def one_go() -> list[Row]:
    counts = np.random.default_rng(1).integers(0, 1_000, SIZE)
    svt = xp.SparseVector(threshold=THRESHOLD, at_most=AT_MOST, epsilon=EPSILON, sensitivity=1)
    generator = np.random.default_rng(2)
    ours = SIZE / seconds(lambda: xp.Ledger(epsilon=1).run(svt, on=counts))
    numpy = SIZE / seconds(lambda: unsafe(counts, generator))
    opendp = peer("opendp", "opendp_sparse_vector.py", 5_000, THRESHOLD, AT_MOST, EPSILON)
    return [
        at_least(f"{SIZE:,} counts, OpenDP 0.16 scalar Laplace", ours, opendp, "counts/s", ours / opendp, 100),
        at_least(f"{SIZE:,} counts, numpy (unsafe)", ours, numpy, "counts/s", ours / numpy, 0.7),
        questions(svt, opendp),
    ]


def questions(svt: xp.SparseVector, opendp: float) -> Row:
    def ask() -> None:
        with xp.Ledger(epsilon=1).open(svt) as interaction:
            for _ in range(QUESTIONS):
                interaction(7)

    ours = QUESTIONS / seconds(ask)
    return at_least(
        "questions through a ledger, OpenDP 0.16 scalar Laplace", ours, opendp, "questions/s", ours / opendp, 50
    )


def utility() -> list[Row]:
    """The Laplace scale of released values with refunds (ours) and without (peer): Figure 1, computed."""
    found = np.arange(figure1.AT_MOST + 1, dtype=np.float64)
    without = figure1.AT_MOST / (figure1.EPSILON / 2)
    rows = []
    for large in (1, 2, 5, 10, 15, 20):
        ours = float(figure1.found_law(large, "one-sided") @ figure1.scale(found))
        rows.append(at_most(f"noise on {large} large of 100 entries", ours, without, "scale", ours / without, 1))
    return rows


if __name__ == "__main__":
    report("sparse_vector", [*one_go(), *utility()])
