"""Accuracy at equal ε: ours against OpenDP and diffprivlib, seven statistics of five real data sets; and speed.

All have δ = 0 and substitution neighbours, the same bounds and the same grid. "Mean without tight bounds" has bounds a
hundred times the range of the data; the other statistics have the public bounds of the data set. The error of a number
is its distance from the truth; of a histogram of twenty equal cells the mean distance per cell; of a regression on one
feature the root mean square distance of its predictions from those of least squares. A row compares the mean error over
the repeats with that of the better peer, and holds if it is not larger by more than two standard errors. Where a
peer raises, its estimate is the middle of the bounds.

The peers take an hour. Their answers are kept in ``build`` and used again while the data, the questions and their
scripts and versions are the same; ``make clean`` forgets them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import expost as xp
from report import PEERS, ROOT, Row, at_least, at_most, peer, report

EPSILONS = [0.1, 1.0, 8.0]
REPEATS = 200
BINS = 20
KINDS = [
    "median",
    "0.9-quantile",
    "inter-quartile range",
    "mean",
    "variance",
    "linear regression",
    "histogram",
]
NAMES = {"mean": "mean without tight bounds"}
ENVIRONMENTS = {"OpenDP": "opendp", "diffprivlib": "diffprivlib"}
NOISE = xp.SystemNoise()


@dataclass(frozen=True)
class Case:
    """A real data set, its public bounds and grid, and a feature for the regression."""

    name: str
    data: NDArray[np.float64]
    bounds: tuple[float, float]
    step: float
    feature: NDArray[np.float64]
    feature_bounds: tuple[float, float]

    def bounds_for(self, kind: str) -> tuple[float, float]:
        if kind != "mean":
            return self.bounds
        low, high = self.data.min(), self.data.max()
        middle, reach = (low + high) / 2, 50 * (high - low)
        return float(middle - reach), float(middle + reach)

    @property
    def cells(self) -> NDArray[np.int64]:
        low, high = self.bounds
        places = np.floor((self.data - low) / (high - low) * BINS)
        return np.clip(places, 0, BINS - 1).astype(np.int64)


def cases() -> list[Case]:
    import statsmodels.api as sm
    from sklearn.datasets import load_diabetes, load_digits

    diabetes, digits = load_diabetes(scaled=False), load_digits().data
    health, fair = (module.load_pandas().data for module in (sm.datasets.randhie, sm.datasets.fair))
    rows: list[tuple[str, Any, tuple[float, float], float, Any, tuple[float, float]]] = [
        ("diabetes progression (n = 442)", diabetes.target, (0, 500), 1, diabetes.data[:, 2], (10, 60)),
        ("ink of digits (n = 1,797)", digits.sum(axis=1), (0, 1024), 1, (digits > 0).sum(axis=1), (0, 64)),
        ("chronic diseases (n = 20,190)", health["disea"].round(2), (0, 100), 0.01, health["mdvis"], (0, 100)),
        ("affairs, heavy-tailed (n = 6,366)", fair["affairs"].round(2), (0, 100), 0.01, fair["yrs_married"], (0, 30)),
        ("rating of marriages, five values (n = 6,366)", fair["rate_marriage"], (0, 10), 1, fair["age"], (15, 50)),
    ]
    return [
        Case(name, np.asarray(data, np.float64), bounds, step, np.asarray(feature, np.float64), feature_bounds)
        for name, data, bounds, step, feature, feature_bounds in rows
    ]


# ---- the truth, and ours


def line(case: Case) -> NDArray[np.float64]:
    slope, intercept = np.polyfit(case.feature, case.data, 1)
    return np.array([intercept, slope])


def truth(case: Case, kind: str) -> Any:
    if kind in ("median", "0.9-quantile"):
        return np.quantile(case.data, 0.5 if kind == "median" else 0.9, method="inverted_cdf")
    if kind == "inter-quartile range":
        return np.subtract(*np.quantile(case.data, [0.75, 0.25], method="inverted_cdf"))
    if kind == "linear regression":
        return line(case)
    return {
        "mean": case.data.mean(),
        "variance": case.data.var(),
        "histogram": np.bincount(case.cells, minlength=BINS),
    }[kind]


def ours(case: Case, kind: str, epsilon: float) -> Any:
    """One estimate."""
    bounds = case.bounds_for(kind)
    ranked: dict[str, Any] = {"epsilon": epsilon, "bounds": bounds, "grid": case.step, "neighbours": "substitute"}
    if kind in ("median", "0.9-quantile"):
        return xp.Quantile(quantile=0.5 if kind == "median" else 0.9, **ranked).sample(case.data, NOISE)
    if kind == "inter-quartile range":
        return xp.InterquartileRange(**ranked).sample(case.data, NOISE)
    if kind == "mean":
        return xp.Mean(epsilon=epsilon, bounds=bounds).sample(case.data, NOISE).value
    if kind == "variance":
        return xp.Variance(epsilon=epsilon, bounds=bounds, scales=0).sample(case.data, NOISE).value
    if kind == "histogram":
        edges = [place - 0.5 for place in range(BINS + 1)]
        counts = xp.Histogram(epsilon=epsilon, edges=edges).sample(case.cells, NOISE)
        return xp.consistent(counts, total=len(case.data))
    fit = xp.LinearRegression(epsilon=epsilon, bounds=[case.feature_bounds], target_bounds=bounds)
    found = fit.sample(np.column_stack([case.feature, case.data]), NOISE)
    return [found.intercept, found.coefficients[0]]


# ---- errors


def error(case: Case, kind: str, estimate: Any) -> float:
    """The distance of one estimate from the truth; None is a refusal, for which the middle of the bounds stands."""
    if estimate is None:
        low, high = case.bounds_for(kind)
        estimate = [(low + high) / 2, 0.0] if kind == "linear regression" else (low + high) / 2
    off = np.asarray(estimate, np.float64) - truth(case, kind)
    if kind == "linear regression":
        return float(np.sqrt(np.mean((off[0] + off[1] * case.feature) ** 2)))
    return float(np.mean(np.abs(off)))


def mean_error(case: Case, kind: str, estimates: list[Any]) -> tuple[float, float]:
    """The mean error, and its standard error."""
    errors = [error(case, kind, estimate) for estimate in estimates]
    return float(np.mean(errors)), float(np.std(errors) / len(errors) ** 0.5)


def jobs(found: list[Case]) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "data": case.data.tolist(),
            "bounds": case.bounds_for(kind),
            "step": case.step,
            "feature": case.feature.tolist(),
            "feature_bounds": case.feature_bounds,
            "cells": case.cells.tolist(),
            "epsilons": EPSILONS,
            "repeats": REPEATS,
        }
        for case in found
        for kind in KINDS
    ]


def compared(name: str, mine: tuple[float, float], theirs: tuple[float, float], who: str) -> Row:
    """A row: ours against the better peer."""
    if mine[0] == theirs[0] == 0:
        return Row(f"{name}, {who}, both exact", 0.0, 0.0, "error", 1.0, "≤ 1", True)
    ratio = mine[0] / theirs[0] if theirs[0] else float("inf")
    holds = mine[0] <= theirs[0] + 2 * (mine[1] ** 2 + theirs[1] ** 2) ** 0.5
    return Row(f"{name}, {who}", mine[0], theirs[0], "error", ratio, "≤ 1 ± 2 s.e.", holds)


Point: TypeAlias = tuple[Case, str, float]


def errors_of_ours(points: list[Point]) -> list[tuple[float, float]]:
    return [
        mean_error(case, kind, [ours(case, kind, epsilon) for _ in range(REPEATS)]) for case, kind, epsilon in points
    ]


def answers(who: str, work: str) -> Any:
    """A peer's answers to all questions, kept under what they depend on."""
    script, versions = f"{who}_accuracy.py", f"{who}.txt"
    about = [work, *((PEERS / name).read_text() for name in (script, versions))]
    kept = ROOT / "build" / f"{who}-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        questions = kept.with_suffix(".work")
        questions.write_text(work)
        kept.write_text(json.dumps(peer(who, script, questions)))
    return json.loads(kept.read_text())


def errors_of_all(found: list[Case], points: list[Point]) -> dict[str, list[tuple[float, float]]]:
    """The mean errors of each contender; the peers work at the same time as we do."""
    work = json.dumps(jobs(found))
    with ThreadPoolExecutor() as pool:
        asked = {who: pool.submit(answers, environment, work) for who, environment in ENVIRONMENTS.items()}
        errors = {"expost": errors_of_ours(points)}
        given = {who: result.result() for who, result in asked.items()}
    for who, each in given.items():
        errors[who] = [mean_error(case, kind, its) for (case, kind, _), its in zip(points, each, strict=True)]
    return errors


def accuracy(found: list[Case]) -> list[Row]:
    points = [(case, kind, epsilon) for case in found for kind in KINDS for epsilon in EPSILONS]
    errors = errors_of_all(found, points)
    rows = []
    for i, (case, kind, epsilon) in enumerate(points):
        best = min(ENVIRONMENTS, key=lambda who: errors[who][i][0])
        name = f"{NAMES.get(kind, kind)} at ε = {epsilon:g}, {case.name}"
        rows.append(compared(name, errors["expost"][i], errors[best][i], best))
    counted = [row for row in rows if not row.name.endswith("both exact")]
    share = sum(row.ratio <= 0.7 for row in counted) / len(counted)
    name = "rows with at most 0.7 of the better peer's error, of those that are not exact on both sides"
    first = at_least(name, share, 1 / 3, "share", share * 3, 1)
    return [first, *rows]


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
    rng = np.random.default_rng(0)
    data, counts = rng.normal(size=10_000_000), rng.poisson(5, size=1_000_000)
    rest: dict[str, Any] = {"epsilon": 1, "neighbours": "substitute"}
    median = xp.Median(bounds=(-10, 10), **rest)
    nine = xp.Quantiles(quantiles=[i / 10 for i in range(1, 10)], bounds=(-10, 10), **rest)
    tally = xp.Tally(np.arange(1_000_000), counts)
    cells = xp.Median(bounds=(0, 999_999), **rest)
    works: list[Callable[[], object]] = [
        partial(np.sort, data),
        partial(median.sample, data, NOISE),
        partial(nine.sample, data, NOISE),
        partial(cells.sample, tally, NOISE),
    ]
    sort, one, several, counted = seconds(works)
    return [
        at_most("median of 10,000,000 values, numpy.sort of them", one, sort, "s", one / sort, 1.5),
        at_most("median from 1,000,000 counts, 50 ms", counted, 0.05, "s", counted / 0.05, 1),
        at_most("nine quantiles of 10,000,000 values at once, one of them", several, one, "s", several / one, 2),
    ]


def main() -> None:
    report("accuracy", [*accuracy(cases()), *speed()])


if __name__ == "__main__":
    main()
