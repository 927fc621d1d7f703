"""Robust statistics: how fast, against sorting the same array; how accurate, against the peers at equal ε.

Accuracy: the median distance, over repeats, from the estimate to the true quantile, as a share of the true range
between the quartiles. Ours also has δ = 10⁻⁶; peers have δ = 0, and bounds to choose within. "Scale found" pays for
an inter-quartile range first; "scale given" proposes from a quarter of the public bounds. Where ours withholds, the
estimate is the middle of the bounds, and likewise where diffprivlib raises; where that happened in half of the repeats
or more, there is no point in the plot. Errors below 0.0001 are drawn at 0.0001.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log10
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.mechanisms.stability.quantile_range import Bin
from report import RESULTS, Row, at_least, at_most, peer, report

SIZE = 10_000_000
DELTA = 1e-6
EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
QUANTILES = [0.5, 0.9]
REPEATS = 31


@dataclass(frozen=True)
class Case:
    """A real data set and its public bounds."""

    name: str
    data: NDArray[np.float64]
    bounds: tuple[float, float]
    step: float
    """What it was measured or rounded to; OpenDP chooses among the multiples of it."""


def cases() -> list[Case]:
    import statsmodels.api as sm
    from sklearn.datasets import load_diabetes, load_digits

    diseases = sm.datasets.randhie.load_pandas().data["disea"].to_numpy(np.float64).round(2)
    return [
        Case("diabetes progression (n = 442)", load_diabetes().target.astype(np.float64), (0, 500), 1),
        Case("ink of digits (n = 1,797)", load_digits().data.sum(axis=1), (0, 1024), 1),
        Case("chronic diseases (n = 20,190)", diseases, (0, 100), 0.01),
    ]


# ---- speed


def seconds(works: list[Callable[[], object]], runs: int = 5) -> list[float]:
    """The best of several runs of each, taken in turn."""
    best = [float("inf")] * len(works)
    for _ in range(runs):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def speed() -> list[Row]:
    data, source = np.random.default_rng(0).normal(size=SIZE), xp.noise.SystemNoise()
    spread = xp.mechanisms.StableInterquartileRange(epsilon=1, delta=DELTA)
    median = xp.mechanisms.StableMedian.scaled(2, size=SIZE, epsilon=1, delta=DELTA)
    works: list[Callable[[], object]] = [
        partial(np.sort, data),
        partial(spread.sample, data, source),
        partial(median.sample, data, source),
    ]
    sort, *ours = seconds(works)
    return [
        at_most(f"{name} of {SIZE:,} values, numpy.sort of them", mine, sort, "s", mine / sort, 2)
        for name, mine in zip(("StableInterquartileRange", "StableMedian"), ours, strict=True)
    ]


# ---- accuracy


def ours(case: Case, quantile: float, epsilon: float, found: bool) -> float | None:
    """One estimate for this ε in all; None if it was withheld."""
    ledger = xp.Ledger(epsilon=epsilon, delta=DELTA)
    scale: Any = (case.bounds[1] - case.bounds[0]) / 4
    if found:
        release = ledger.run(xp.mechanisms.StableInterquartileRange(epsilon=epsilon / 2, delta=DELTA / 2), on=case.data)
        scale = release.value if isinstance(release.value, Bin) and release.value.upper else scale
    remaining = ledger.remaining
    mechanism = xp.mechanisms.StableQuantile.scaled(
        scale,
        quantile=quantile,
        size=len(case.data),
        epsilon=remaining.epsilon,
        delta=remaining.delta,
        bounds=case.bounds,
    )
    value = ledger.run(mechanism, on=case.data).value
    return None if value is xp.WITHHELD else min(max(float(value), case.bounds[0]), case.bounds[1])


def errors(found: list[Case]) -> list[dict[str, Any]]:
    """One row for each data set, quantile and ε, with the error of each contender."""
    jobs = [
        {
            "data": case.data.tolist(),
            "bounds": case.bounds,
            "quantile": q,
            "epsilons": EPSILONS,
            "repeats": REPEATS,
            "step": case.step,
        }
        for case in found
        for q in QUANTILES
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as work:
        json.dump(jobs, work)
        work.flush()
        peers = {
            "diffprivlib": peer("diffprivlib", "diffprivlib_quantile.py", work.name),
            "OpenDP": peer("opendp", "opendp_quantile.py", work.name),
        }
    rows = []
    points = [(case, q, epsilon) for case in found for q in QUANTILES for epsilon in EPSILONS]
    for i, (case, q, epsilon) in enumerate(points):
        truth = np.quantile(case.data, q, method="inverted_cdf")
        unit = np.subtract(*np.quantile(case.data, [0.75, 0.25]))
        estimates = {name: answers[i] for name, answers in peers.items()}
        estimates["expost, scale found"] = [ours(case, q, epsilon, True) for _ in range(REPEATS)]
        estimates["expost, scale given"] = [ours(case, q, epsilon, False) for _ in range(REPEATS)]
        middle = sum(case.bounds) / 2
        error = {
            name: float(np.median([abs((middle if e is None else e) - truth) for e in each]) / unit)
            for name, each in estimates.items()
        }
        refused = {name: sum(e is None for e in each) / REPEATS for name, each in estimates.items()}
        rows.append({"data": case.name, "quantile": q, "epsilon": epsilon, "error": error, "refused": refused})
    return rows


def accuracy(rows: list[dict[str, Any]]) -> list[Row]:
    """Ours with the scale found, which needs no guess, against each peer; 1 is parity. Others are in the plot."""
    return [
        at_least(
            f"error of the median at ε = {row['epsilon']:g}, {row['data']}, {name}",
            row["error"]["expost, scale found"],
            row["error"][name],
            "ranges",
            float(row["error"][name] / row["error"]["expost, scale found"]),
            1,
        )
        for row in rows
        for name in ("OpenDP", "diffprivlib")
        if row["quantile"] == 0.5 and row["epsilon"] in (1.0, 8.0) and row["refused"][name] < 0.5
    ]


# ---- the plot: error against ε, both logarithmic

COLOURS = {
    "expost, scale found": "#1b6ca8",
    "expost, scale given": "#7fb3d5",
    "diffprivlib": "#c0392b",
    "OpenDP": "#d68910",
}
LEAST, MOST = 1e-4, 10.0
WIDTH, HEIGHT, MARGIN = 300, 220, 46


def plot(rows: list[dict[str, Any]]) -> str:
    """An SVG with a panel for each data set (columns) and quantile (rows)."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    panels = [
        panel([r for r in rows if (r["data"], r["quantile"]) == (name, q)], x * WIDTH, 30 + y * HEIGHT)
        for x, name in enumerate(names)
        for y, q in enumerate(QUANTILES)
    ]
    legend = [
        f'<text x="{MARGIN + 190 * i}" y="18" fill="{colour}" font-weight="bold">{name}</text>'
        for i, (name, colour) in enumerate(COLOURS.items())
    ]
    size = f'width="{WIDTH * len(names)}" height="{30 + HEIGHT * len(QUANTILES)}"'
    style = 'font-family="sans-serif" font-size="11"'
    body = "\n".join([*legend, *panels])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect {size} fill="white"/>\n{body}\n</svg>\n'


def panel(rows: list[dict[str, Any]], left: float, top: float) -> str:
    inner, tall = WIDTH - MARGIN - 14, HEIGHT - MARGIN - 14

    def across(epsilon: float) -> float:
        return left + MARGIN + inner * log10(epsilon / EPSILONS[0]) / log10(EPSILONS[-1] / EPSILONS[0])

    def down(error: float) -> float:
        return top + 22 + tall * log10(MOST / min(max(error, LEAST), MOST)) / log10(MOST / LEAST)

    parts = [f'<text x="{left + MARGIN}" y="{top + 14}">{rows[0]["data"]}, quantile {rows[0]["quantile"]}</text>']
    for power in range(-4, 2):
        y = down(10.0**power)
        parts.append(
            f'<line x1="{left + MARGIN}" x2="{left + MARGIN + inner}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(f'<text x="{left + MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    parts += [
        f'<text x="{across(epsilon):.1f}" y="{top + tall + 38}" text-anchor="middle">{epsilon:g}</text>'
        for epsilon in EPSILONS
    ]
    for name, colour in COLOURS.items():
        line = " ".join(
            f"{across(r['epsilon']):.1f},{down(r['error'][name]):.1f}" for r in rows if r["refused"][name] < 0.5
        )
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return "\n".join(parts)


def main() -> None:
    rows = errors(cases())
    plots = Path(RESULTS).parent.parent / "docs" / "plots"
    plots.mkdir(exist_ok=True)
    (plots / "robust.svg").write_text(plot(rows))
    (plots / "robust.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    report("robust", [*speed(), *accuracy(rows)])


if __name__ == "__main__":
    main()
