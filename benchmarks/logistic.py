"""Private logistic regression against diffprivlib's at its defaults: accuracy on held-out rows, and time to fit.

One preprocessing for both, "documented ranges, then Normalizer": each feature is mapped to [−1, 1] by bounds that are
public (those in the data set's description; 0 to 16 for pixels; ±5 for the synthetic set, clamped), and each row is
divided by its own length, so that the norm is 1. Both get the same 50 splits, 80 to 20, and both use their defaults:
ours is PrivateLogisticRegression(epsilon, norm=1, classes). Our fits draw fresh noise, the peer's are seeded by the
split, which its interface offers; all on one thread.

"Noise matters" where diffprivlib's mean accuracy is more than two points below that of scikit-learn without noise, on
the same 50 splits. There ours has to be better by more than a standard error (of the difference, over the splits); a
smaller difference is not distinguishable, and the goal is missed. Elsewhere ours has to be no worse than a standard
error. A mean that is not above the larger class's share by a standard error is chance. At ε = 10 there is no goal.

Accuracies are measured on all cores, a process for each share of the splits, and times afterwards, one fit at a time.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.learn import PrivateLogisticRegression
from report import Row, at_most, peer, report

EPSILONS = [0.1, 1.0, 10.0]
SEEDS = 50
TIMED = 11
MATTERS = 0.02
CORES = os.cpu_count() or 1
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


def split(size: int, seed: int) -> tuple[Any, Any]:
    """Which rows are for training and which are held out."""
    order = np.random.default_rng(seed).permutation(size)
    return order[: int(0.8 * size)], order[int(0.8 * size) :]


def ours(rows: Any, labels: Any, seeds: list[int]) -> list[dict[str, float]]:
    """The accuracy at each ε, for each split."""
    scores: list[dict[str, float]] = []
    for seed in seeds:
        train, test = split(len(rows), seed)
        models = {
            str(epsilon): PrivateLogisticRegression(epsilon=epsilon, norm=1, classes=[0, 1]).fit(
                rows[train], labels[train]
            )
            for epsilon in EPSILONS
        }
        scores.append({name: float(model.score(rows[test], labels[test])) for name, model in models.items()})
    return scores


def fit_time(rows: Any, labels: Any) -> float:
    seconds = []
    for seed in range(TIMED):
        train, _ = split(len(rows), seed)
        some, which = rows[train], labels[train]
        start = time.perf_counter()
        PrivateLogisticRegression(epsilon=1, norm=1, classes=[0, 1]).fit(some, which)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def mean_and_error(numbers: Any) -> tuple[float, float]:
    """The mean over the splits, and its standard error."""
    return float(np.mean(numbers)), float(np.std(numbers, ddof=1)) / sqrt(len(numbers))


def accuracy(name: str, epsilon: float, chance: float, mine: Any, theirs: Any, plain: Any) -> Row:
    """The difference of mean accuracies, in percentage points, with its standard error over the splits."""
    gain, error = mean_and_error(np.array(mine) - np.array(theirs))
    (a, a_error), (b, b_error), (c, c_error) = map(mean_and_error, (mine, theirs, plain))
    what = (
        f"accuracy at ε = {epsilon:g}, {name} (± {a_error:.4f} and ± {b_error:.4f}; no noise {c:.4f} ± {c_error:.4f})"
    )
    if a - a_error <= chance and b - b_error <= chance:
        what += f", both at chance ({chance:.3f})"
    matters, spread = c - b > MATTERS, f"points (± {100 * error:.2f})"
    if epsilon > 1:
        goal, holds = f"{spread}, no goal", True
    elif matters:
        goal, holds = f"> {100 * error:.2f} {spread}", gain > error
        goal += ", not distinguishable" if abs(gain) <= error else ""
    else:
        goal, holds = f"≥ {-100 * error:.2f} {spread}", gain >= -error
    return Row(what, a, b, "share", 100 * gain, goal, holds)


def compare(case: Case) -> list[Row]:
    """Ours and diffprivlib on the same splits of one data set."""
    data, labels = case.rows(), case.labels
    shares = [list(range(start, SEEDS, CORES)) for start in range(CORES)]
    with tempfile.TemporaryDirectory() as folder:
        job = {"features": f"{folder}/features.npy", "labels": f"{folder}/labels.npy", "splits": f"{folder}/splits.npy"}
        np.save(job["features"], data)
        np.save(job["labels"], labels)
        np.save(job["splits"], np.array([np.concatenate(split(len(data), seed)) for seed in range(SEEDS)]))

        def work(seeds: list[int], timed: int) -> Any:
            facts = {**job, "train": int(0.8 * len(data)), "epsilons": EPSILONS, "seeds": seeds, "timed": timed}
            return peer("diffprivlib", "diffprivlib_logistic.py", json.dumps(facts))

        with ThreadPoolExecutor(CORES) as threads:
            theirs = together(shares, [found["scores"] for found in threads.map(lambda seeds: work(seeds, 0), shares)])
        with ProcessPoolExecutor(CORES) as processes:
            mine = together(shares, list(processes.map(ours, [data] * CORES, [labels] * CORES, shares)))
        peer_seconds = work([], TIMED)["seconds"]
    plain = [row["plain"] for row in theirs]
    chance = float(max(np.mean(labels), 1 - np.mean(labels)))
    rows = [
        accuracy(
            case.name,
            epsilon,
            chance,
            [row[str(epsilon)] for row in mine],
            [row[str(epsilon)] for row in theirs],
            plain,
        )
        for epsilon in EPSILONS
    ]
    seconds = fit_time(data, labels)
    what = f"time to fit {int(0.8 * len(data)):,} rows, {case.name}"
    return [*rows, at_most(what, seconds, peer_seconds, "s", seconds / peer_seconds, 3)]


def together(shares: list[list[int]], found: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """The results of all splits, in their order."""
    pairs = [pair for seeds, rows in zip(shares, found, strict=True) for pair in zip(seeds, rows, strict=True)]
    return [row for _, row in sorted(pairs, key=lambda pair: pair[0])]


def main() -> None:
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    report("logistic", [row for case in cases() for row in compare(case)])


if __name__ == "__main__":
    main()
