"""Figure 1: how noisy the released values are, against how many entries are large.

A vector has 100 entries of 0 or 1000. A sparse vector with half of ε = 1 looks for entries above 500, at most 20;
the other half goes to the values. Without refunds every value has the noise that 20 of them would have. A filter
knows how many were found. A ledger also gets back what the sparse vector did not use.

``python -m paper.figure1 FOLDER`` writes figure1.json and, with matplotlib, figure1.png.
"""

from __future__ import annotations

import json
import sys
from math import comb, exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.ledger import Ledger
from expost.mechanisms import SparseVector
from expost.mechanisms.sparse_vector.comparisons import NoiseKind
from expost.recipes import release_large

ENTRIES, LARGE, THRESHOLD, AT_MOST, EPSILON = 100, 1000, 500, 20, 1.0
COUNTS = range(1, AT_MOST + 1)

Floats = NDArray[np.float64]


def finder(noise: NoiseKind) -> SparseVector:
    """The sparse vector of the example."""
    return SparseVector(threshold=THRESHOLD, at_most=AT_MOST, epsilon=EPSILON / 2, sensitivity=1, noise=noise)


def scale(found: Floats, refunds: bool = True) -> Floats:
    """The Laplace scale of each value when so many were found; 0 where there are none."""
    second = finder("two-sided").halves[1].epsilon
    return found / (EPSILON / 2 + refunds * (1 - found / AT_MOST) * second)


def found_law(large: int, noise: NoiseKind) -> Floats:
    """Pr[so many entries are found], for 0, …, AT_MOST: summed over the threshold's noise, not simulated."""
    svt = finder(noise)
    first, rate = float(svt._threshold_rate), float(svt.rate)
    reach = int(45 / first)  # e^−45 of the threshold's noise is left out
    z = np.arange(0 if noise == "one-sided" else -reach, reach + 1)
    weight = np.exp(-first * np.abs(z))
    weight /= weight.sum()
    shift = z + svt.centre
    large_found, small_found = (
        _binomials(count, _tail(THRESHOLD + shift - value, rate, noise))
        for count, value in ((large, LARGE), (ENTRIES - large, 0))
    )
    law = np.zeros(AT_MOST + 1)
    for among_large in range(large + 1):
        for found in range(among_large, AT_MOST):
            law[found] += weight @ (large_found[:, among_large] * small_found[:, found - among_large])
    law[AT_MOST] = 1 - law.sum()  # it stops there, however many more there are
    return law


def chebyshev(large: int, variance: float | None = None) -> float:
    """An upper bound on the expected scale from variances alone, for two-sided noise; by default the mechanism's own.

    A small entry is found only if its noise less the threshold's is at least 500, which by symmetry and
    Chebyshev's inequality has probability at most Var/(2·500²). The scale is convex in the number found,
    so it lies below the chord from ``large`` to 20.
    """
    svt = finder("two-sided")
    if variance is None:
        variance = sum(2 * exp(-r) / (1 - exp(-r)) ** 2 for r in (float(svt._threshold_rate), float(svt.rate)))
    falsely = (ENTRIES - large) * min(1.0, variance / (2 * THRESHOLD**2))
    here, there = scale(np.array([large, AT_MOST], dtype=np.float64))
    share = 1.0 if large == AT_MOST else min(1.0, falsely / (AT_MOST - large))
    return float(here + (there - here) * share)


def simulated(large: int, runs: int) -> float:
    """The mean scale over real runs of the recipe, the large entries standing anywhere."""
    values = np.repeat([LARGE, 0], [large, ENTRIES - large])
    shuffled = np.random.default_rng(large)
    scales = []
    for _ in range(runs):
        shuffled.shuffle(values)
        ledger = Ledger(epsilon=EPSILON)
        out = release_large(
            ledger, on=values, threshold=THRESHOLD, at_most=AT_MOST, sensitivity=1, epsilon="rest", noise="two-sided"
        )
        scales.append(len(out.value) / out.releases[1].charged.epsilon if out.value else 0.0)
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

    styles: dict[str, dict[str, Any]] = {
        "without refunds": {"color": "0.4", "linestyle": "--"},
        "filter only": {"color": "tab:orange"},
        "ledger, Chebyshev bound": {"color": "tab:blue", "linestyle": ":"},
        "ledger, exact": {"color": "tab:blue"},
        "ledger, simulated": {"color": "tab:blue", "marker": "o", "linestyle": "none", "markersize": 4},
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


def _tail(margins: NDArray[np.int64], rate: float, noise: NoiseKind) -> Floats:
    """Pr[a value's noise ≥ margin]."""
    far = np.exp(-rate * np.abs(margins))
    if noise == "one-sided":
        return np.where(margins > 0, far, 1.0)
    q = exp(-rate)
    return np.where(margins > 0, far / (1 + q), 1 - far * q / (1 + q))


def _binomials(count: int, p: Floats) -> Floats:
    """Pr[k of count], a row for each p, for k = 0, …, count."""
    k = np.arange(count + 1)
    ways = np.array([float(comb(count, int(i))) for i in k])
    rows: Floats = ways * p[:, None] ** k * (1 - p[:, None]) ** (count - k)
    return rows


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
