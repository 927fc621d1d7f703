"""How the 500 in ``noise_lean`` was chosen: accuracies on data sets that no benchmark uses, for other numbers too.

Each feature is mapped to [−1, 1] by its own extremes (which are not private: this is a choice, not a release), rows are
divided by their lengths, and 80 of 100 records are for training. Printed is the mean accuracy over the data sets, and
for 500 that on each. Any number from 250 to 1,000 would do; 0 is the logistic loss as it is.

    python benchmarks/choices/lean.py
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from rich.progress import track
from sklearn import datasets

from expost.learn import PrivateLogisticRegression
from expost.mechanisms.erm import MOST_LEAN

NUMBERS = [0, 125, 250, 500, 1000, 2000]
EPSILONS = [0.1, 0.3, 1.0, 3.0]
FITS = 50


def cases() -> Iterator[tuple[str, Any, Any]]:
    wine, iris, digits, diabetes = (
        load() for load in (datasets.load_wine, datasets.load_iris, datasets.load_digits, datasets.load_diabetes)
    )
    yield "wine 0", wine.data, wine.target == 0
    two = iris.target > 0
    yield "iris 1 and 2", iris.data[two], iris.target[two] == 1
    for a, b in ((1, 7), (4, 9)):
        two = np.isin(digits.target, [a, b])
        yield f"digits {a} and {b}", digits.data[two], digits.target[two] == a
    yield "even digits", digits.data, digits.target % 2 == 0
    yield "diabetes", diabetes.data, diabetes.target > 140
    for size, columns in ((300, 5), (500, 20), (2000, 20), (1000, 50)):
        features, labels = datasets.make_classification(
            size, columns, n_informative=max(2, columns // 2), n_redundant=columns // 5, flip_y=0.02, random_state=size
        )
        yield f"made {size} × {columns}", features, labels
    features, labels = datasets.make_classification(2000, 10, n_informative=5, weights=[0.85], random_state=9)
    yield "made, 85 to 15", features, labels


def rows_of(features: Any) -> Any:
    low, high = features.min(axis=0), features.max(axis=0)
    scaled = 2 * (features - low) / np.where(high > low, high - low, 1) - 1
    return scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-9)


def accuracy(rows: Any, labels: Any, epsilon: float, number: float) -> float:
    train = int(0.8 * len(rows))
    lean = min(max(0.0, (number * sqrt(rows.shape[1] + 1) / (train * epsilon) - 1) / 2), MOST_LEAN)
    scores = []
    for seed in range(FITS):
        order = np.random.default_rng(seed).permutation(len(rows))
        here, there = order[:train], order[train:]
        model = PrivateLogisticRegression(epsilon=epsilon, norm=1, classes=[0, 1], lean=lean)
        scores.append(model.fit(rows[here], labels[here]).score(rows[there], labels[there]))
    return float(np.mean(scores))


def main() -> None:
    sets = [(name, rows_of(features), np.asarray(labels, int)) for name, features, labels in cases()]
    work = [(epsilon, number) for epsilon in EPSILONS for number in NUMBERS]
    found = {pair: [accuracy(rows, labels, *pair) for _, rows, labels in sets] for pair in track(work, transient=True)}
    print("number".rjust(24), *(f"{number:>6}" for number in NUMBERS))
    for epsilon in EPSILONS:
        means = (float(np.mean(found[epsilon, number])) for number in NUMBERS)
        print(f"mean at ε = {epsilon:g}".rjust(24), *(f"{mean:6.3f}" for mean in means))
    print("\n", "ε".rjust(23), *(f"{epsilon:>6g}" for epsilon in EPSILONS))
    for place, (name, _, _) in enumerate(sets):
        print(name.rjust(24), *(f"{found[epsilon, 500][place]:6.3f}" for epsilon in EPSILONS))


if __name__ == "__main__":
    main()
