"""Exact noise against OpenDP's exact samplers and numpy's unsafe one, in samples per second.

Best of several runs each, everything in one go; tables are built before the clock starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

import expost as xp
from expost.noise import SystemNoise, vector
from report import Row, at_least, at_most, peer, report

SCALES = (1, 40, 1_000, 100_000)
SIZE, RUNS = 1_000_000, 7


def seconds(work: Callable[[], object]) -> float:
    work()
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def rate(work: Callable[[], object]) -> float:
    """Millions of samples per second."""
    return SIZE / seconds(work) / 1e6


def at_scale(scale: int, opendp: dict[str, float]) -> list[Row]:
    source, unsafe = SystemNoise(), np.random.default_rng()
    laplace = rate(partial(vector.discrete_laplace, source, Fraction(1, scale), SIZE))
    gaussian = rate(partial(vector.discrete_gaussian, source, Fraction(scale**2), SIZE))
    numpy = rate(partial(unsafe.laplace, scale=scale, size=SIZE))
    integer, real, normal = (
        opendp[f"{kind} {scale}"] / 1e6 for kind in ("integer Laplace", "float Laplace", "integer Gaussian")
    )
    unit, at = "million/s", f"scale {scale:,}"
    return [
        at_least(f"Laplace, {at}, OpenDP's integer Laplace", laplace, integer, unit, laplace / integer, 20),
        at_least(f"Laplace, {at}, OpenDP's float Laplace", laplace, real, unit, laplace / real, 50),
        at_least(f"Laplace, {at}, numpy's unsafe Laplace", laplace, numpy, unit, laplace / numpy, 0.1),
        at_least(f"Gaussian, {at}, OpenDP's discrete Gaussian", gaussian, normal, unit, gaussian / normal, 20),
    ]


def release() -> Row:
    """A release of a million whole numbers through a ledger, against drawing its noise alone."""
    data = np.zeros(SIZE, np.int64)
    mechanism = xp.Laplace(epsilon="0.001", sensitivity=1)
    ledger = xp.Ledger(epsilon=1)
    whole = seconds(lambda: ledger.run(mechanism, on=data)) * 1e3
    alone = seconds(partial(vector.discrete_laplace, SystemNoise(), Fraction(1, 1000), SIZE)) * 1e3
    return at_most(
        "Laplace on 1,000,000 values through a ledger, its sampling alone", whole, alone, "ms", whole / alone, 1.3
    )


if __name__ == "__main__":
    found = peer("opendp", "opendp_noise.py", *SCALES)
    report("noise", [*(row for scale in SCALES for row in at_scale(scale, found)), release()])
