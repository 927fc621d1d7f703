"""Private logistic regression against diffprivlib's at its defaults: accuracy on held-out rows, and time to fit.

One preprocessing for both, "documented ranges, then Normalizer": each feature is mapped to [−1, 1] by bounds that are
public (those in the data set's description; 0 to 16 for pixels; ±5 for the synthetic set, clamped), and each row is
divided by its own length, so that the norm is 1. Both get the same 50 splits, 80 to 20, and both use their defaults:
ours is PrivateLogisticRegression(epsilon, norm=1, classes). Fits draw fresh noise, on one thread.

"Noise matters" where diffprivlib is below plain scikit-learn by more than a standard error; there ours has to be
better. Elsewhere it has to be no worse than a standard error (of the difference over the 50 splits). At ε = 10 there
is no goal.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.learn import PrivateLogisticRegression
from report import Row, at_most, peer, report, rows_of

EPSILONS = [0.1, 1.0, 10.0]
SEEDS = 50
TIMED = 11
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Case:
    """A data set with two classes, and the public bounds of its features."""

    name: str
    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    bounds: tuple[Any, Any]

    def rows(self) -> NDArray[np.float64]:
        """The preprocessing that both get."""
        low, high = (np.asarray(bound, np.float64) for bound in self.bounds)
        scaled = 2 * (np.clip(self.features, low, high) - low) / (high - low) - 1
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        return np.asarray(scaled / np.where(lengths > 0, lengths, 1), np.float64)


def documented(description: str) -> tuple[list[float], list[float]]:
    """The table of least and greatest values in the description of breast_cancer, in the order of its features."""
    table = re.findall(r"^(?:.+ \(.+\)): +([\d.]+) +([\d.]+)$", description, re.MULTILINE)
    return [float(low) for low, _ in table], [float(high) for _, high in table]


def cases() -> list[Case]:
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification

    cancer, digits = load_breast_cancer(), load_digits()
    two = (digits.target == 3) | (digits.target == 8)
    features, labels = make_classification(
        70_000, 20, n_informative=10, n_redundant=5, class_sep=1.0, flip_y=0.02, random_state=0
    )
    return [
        Case("breast_cancer", cancer.data, cancer.target, documented(cancer.DESCR)),
        Case("digits 3 and 8", digits.data[two], (digits.target[two] == 8).astype(np.int64), (0, 16)),
        Case("synthetic 70,000", features, labels, (-5, 5)),
    ]


def ours(rows: Any, labels: Any, splits: list[Any], train: int) -> dict[float, list[float]]:
    scores: dict[float, list[float]] = {}
    for epsilon in EPSILONS:
        scores[epsilon] = []
        for order in splits:
            model = PrivateLogisticRegression(epsilon=epsilon, norm=1, classes=[0, 1])
            model.fit(rows[order[:train]], labels[order[:train]])
            scores[epsilon].append(float(model.score(rows[order[train:]], labels[order[train:]])))
    return scores


def fit_time(rows: Any, labels: Any, splits: list[Any], train: int) -> float:
    seconds = []
    for order in splits[:TIMED]:
        some, which = rows[order[:train]], labels[order[:train]]
        start = time.perf_counter()
        PrivateLogisticRegression(epsilon=1, norm=1, classes=[0, 1]).fit(some, which)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def accuracy(name: str, epsilon: float, mine: list[float], theirs: list[float], plain: list[float]) -> Row:
    """The difference of mean accuracies, in percentage points, with its standard error over the splits."""
    gaps = np.array(mine) - np.array(theirs)
    gain, error = float(gaps.mean()), float(gaps.std(ddof=1)) / sqrt(len(gaps))
    lost = float(np.mean(plain)) - float(np.mean(theirs))
    matters = lost > float(np.std(theirs, ddof=1)) / sqrt(len(theirs))
    what = f"accuracy at ε = {epsilon:g}, {name} (plain {np.mean(plain):.3f})"
    row = (what, float(np.mean(mine)), float(np.mean(theirs)), "share", 100 * gain)
    spread = f"points (± {100 * error:.1f})"
    if epsilon > 1:
        return Row(*row, f"{spread}, no goal", True)
    least = 0.0 if matters else -error
    return Row(*row, f"{'>' if matters else '≥'} {100 * least:.2g} {spread}", gain > least)


def compare(case: Case) -> list[Row]:
    """Ours and diffprivlib on the same splits of one data set."""
    data, train = case.rows(), int(0.8 * len(case.labels))
    splits = [np.random.default_rng(seed).permutation(len(data)) for seed in range(SEEDS)]
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{name}.npy") for name in ("features", "labels", *range(SEEDS))]
        for path, array in zip(files, (data, case.labels, *splits), strict=True):
            np.save(path, array)
        job = {"features": files[0], "labels": files[1], "splits": files[2:], "train": train}
        work = Path(folder) / "job.json"
        work.write_text(json.dumps({**job, "epsilons": EPSILONS, "timed": TIMED}))
        theirs = peer("diffprivlib", "diffprivlib_logistic.py", work)
    mine = ours(data, case.labels, splits, train)
    rows = [
        accuracy(case.name, epsilon, mine[epsilon], theirs["scores"][str(epsilon)], theirs["plain"])
        for epsilon in EPSILONS
    ]
    seconds = fit_time(data, case.labels, splits, train)
    what = f"time to fit {train:,} rows, {case.name}"
    return [*rows, at_most(what, seconds, theirs["seconds"], "s", seconds / theirs["seconds"], 3)]


def main() -> None:
    """All cases; or those whose names contain an argument, beside the last results of the others."""
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    wanted = sys.argv[1:] or [""]
    rows: list[Row] = []
    for case in cases():
        if any(word in case.name for word in wanted):
            rows += compare(case)
        else:
            rows += [row for row in rows_of("logistic") if case.name in row.name]
    report("logistic", rows)


if __name__ == "__main__":
    main()
