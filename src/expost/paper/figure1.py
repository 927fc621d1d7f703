"""Figure 1: how noisy the released values are, against how many entries are large.

A vector has 100 entries of 0 or 1000. A sparse vector with half of ε = 1 looks for entries above 500, at most 20;
the other half goes to the values. Without refunds every value has the noise that 20 of them would have. A filter
knows how many were found. A ledger also gets back what the sparse vector did not use.

``python -m expost.paper.figure1 FOLDER`` writes figure1.json and, with matplotlib, figure1.png.
"""

from __future__ import annotations

import json
import sys
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.ledger import Ledger
from expost.mechanisms import SparseVector
from expost.mechanisms.sparse_vector import Kind
from expost.recipes import release_large

ENTRIES, LARGE, THRESHOLD, AT_MOST, EPSILON = 100, 1000, 500, 20, 1.0
COUNTS = range(1, AT_MOST + 1)

Floats = NDArray[np.float64]


def finder(noise: Kind) -> SparseVector:
    """The sparse vector of the example."""
    return SparseVector(threshold=THRESHOLD, at_most=AT_MOST, epsilon=EPSILON / 2, sensitivity=1, noise=noise)


def scale(found: Floats, refunds: bool = True) -> Floats:
    """The Laplace scale of each value when so many were found; 0 where there are none."""
    second = finder("two-sided").halves[1].epsilon
    return found / (EPSILON / 2 + refunds * (1 - found / AT_MOST) * second)


def found_law(large: int, noise: Kind) -> Floats:
    """Pr[so many entries are found], for 0, …, AT_MOST: summed over the threshold's noise, not simulated."""
    svt = finder(noise)
    first, rate = float(svt._threshold_rate), float(svt.rate)
    reach = int(45 / first)  # e^−45 of the threshold's noise is left out
    z = np.arange(0 if noise == "one-sided" else -reach, reach + 1)
    weight = np.exp(-first * np.abs(z))
    weight /= weight.sum()
    shift = z + svt.centre
    total = np.zeros(AT_MOST + 1)
    for moved, mass in zip(shift, weight, strict=True):
        above = [_tail(THRESHOLD + moved - value, rate, noise) for value in (LARGE, 0)]
        total += mass * _capped(np.convolve(_binomial(large, above[0]), _binomial(ENTRIES - large, above[1])))
    return total


def chebyshev(large: int) -> float:
    """An upper bound on the expected scale from variances alone, for two-sided noise.

    A small entry is found only if its noise less the threshold's is at least 500, which by symmetry and
    Chebyshev's inequality has probability at most Var/(2·500²). The scale is convex in the number found,
    so it lies below the chord from ``large`` to 20.
    """
    svt = finder("two-sided")
    variance = sum(2 * exp(-r) / (1 - exp(-r)) ** 2 for r in (float(svt._threshold_rate), float(svt.rate)))
    falsely = (ENTRIES - large) * min(1.0, variance / (2 * THRESHOLD**2))
    here, there = scale(np.array([large, AT_MOST], dtype=np.float64))
    share = 1.0 if large == AT_MOST else min(1.0, falsely / (AT_MOST - large))
    return float(here + (there - here) * share)


def simulated(large: int, runs: int) -> float:
    """The mean scale over real runs of the recipe."""
    values = np.zeros(ENTRIES, np.int64)
    values[:large] = LARGE
    scales = []
    for _ in range(runs):
        ledger = Ledger(epsilon=EPSILON)
        out = release_large(ledger, values, threshold=THRESHOLD, at_most=AT_MOST, sensitivity=1, noise="two-sided")
        scales.append(0.0 if out.release is None else len(out.values) / out.release.charged.epsilon)
    return float(np.mean(scales))


def data(runs: int = 200) -> dict[str, Any]:
    """Every curve of the figure, by the number of large entries."""
    found = np.arange(AT_MOST + 1, dtype=np.float64)
    laws = {noise: [found_law(large, noise) for large in COUNTS] for noise in ("two-sided", "one-sided")}
    return {
        "large entries": list(COUNTS),
        "without refunds": [AT_MOST / (EPSILON / 2)] * len(COUNTS),
        "filter only": [float(law @ scale(found, refunds=False)) for law in laws["two-sided"]],
        "ledger, Chebyshev bound": [chebyshev(large) for large in COUNTS],
        "ledger, exact": [float(law @ scale(found)) for law in laws["two-sided"]],
        "ledger, simulated": [simulated(large, runs) for large in COUNTS],
        "ledger, exact, one-sided noise": [float(law @ scale(found)) for law in laws["one-sided"]],
    }


def plot(curves: dict[str, Any], path: Path) -> None:
    """Draw the figure. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    styles = {
        "without refunds": {"color": "0.4", "linestyle": "--"},
        "filter only": {"color": "tab:orange"},
        "ledger, Chebyshev bound": {"color": "tab:blue", "linestyle": ":"},
        "ledger, exact": {"color": "tab:blue"},
        "ledger, simulated": {"color": "tab:blue", "marker": "o", "linestyle": "none", "markersize": 4},
        "ledger, exact, one-sided noise": {"color": "tab:green"},
    }
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, style in styles.items():
        axes.plot(curves["large entries"], curves[name], label=name, **style)
    axes.set(xlabel="large entries among 100", ylabel="Laplace scale of each value", xticks=range(0, 21, 2), ylim=0)
    axes.set_title("Noise on the released values (ε = 1, at most 20 released)")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _tail(margin: int, rate: float, noise: Kind) -> float:
    """Pr[a value's noise ≥ margin]."""
    if noise == "one-sided":
        return exp(-rate * margin) if margin > 0 else 1.0
    q = exp(-rate)
    return q**margin / (1 + q) if margin > 0 else 1 - q ** (1 - margin) / (1 + q)


def _binomial(count: int, p: float) -> Floats:
    law = np.ones(1)
    for _ in range(count):
        law = np.convolve(law, [1 - p, p])
    return law


def _capped(law: Floats) -> Floats:
    """The law of min(number, AT_MOST)."""
    return np.append(law[:AT_MOST], law[AT_MOST:].sum())


def main(folder: str) -> None:
    """Write the data and the plot."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    curves = data()
    (target / "figure1.json").write_text(json.dumps(curves, indent=2) + "\n")
    plot(curves, target / "figure1.png")
    print(target / "figure1.json", target / "figure1.png")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
