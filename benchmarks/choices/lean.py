"""How the 250 in ``noise_lean`` was chosen: accuracies on data sets that no benchmark uses, for other numbers too.

Each feature is mapped to [−1, 1] by its own extremes (which are not private: this is a choice, not a release), rows are
divided by their lengths, and 80 of 100 records are for training. Printed is, for each number, the mean accuracy over
the data sets and the most that is lost on one of them against the best of the numbers, and for 250 the accuracy on
each. 0 is the logistic loss as it is. From 125 to 500 the means hardly differ; where classes are uneven and features
far from centred, large numbers lose more.

    python benchmarks/choices/lean.py
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
import statsmodels.api as statsmodels
from rich.progress import track
from sklearn import datasets

from expost.learn import PrivateLogisticRegression
from expost.mechanisms.erm import MOST_LEAN

NUMBERS = [0, 60, 125, 250, 500, 1000]
EPSILONS = [0.1, 0.3, 1.0, 3.0]
FITS = 30


def cases() -> Iterator[tuple[str, Any, Any]]:
    """Balanced and not, centred and not, from 100 records with 4 features to 2,000 with 64."""
    wine, iris, digits, diabetes = (
        load() for load in (datasets.load_wine, datasets.load_iris, datasets.load_digits, datasets.load_diabetes)
    )
    for kind in range(3):
        yield f"wine {kind}", wine.data, wine.target == kind
    two = iris.target > 0
    yield "iris 1 and 2", iris.data[two], iris.target[two] == 1
    yield "iris 2", iris.data, iris.target == 2
    for a, b in ((1, 7), (4, 9)):
        two = np.isin(digits.target, [a, b])
        yield f"digits {a} and {b}", digits.data[two], digits.target[two] == a
    yield "even digits", digits.data, digits.target % 2 == 0
    yield "digits below 3", digits.data, digits.target < 3
    yield "diabetes above 140", diabetes.data, diabetes.target > 140
    yield "diabetes above 210", diabetes.data, diabetes.target > 210
    some = np.random.default_rng(0)
    for name, target in (("fair", "affairs"), ("randhie", "mdvis")):
        table = getattr(statsmodels.datasets, name).load_pandas().data
        table = table.iloc[some.permutation(len(table))[:2000]]
        yield name, table.drop(columns=target).to_numpy(float), table[target].to_numpy() > 0
    for size, columns, larger in ((300, 5, 0.5), (500, 20, 0.5), (2000, 20, 0.5), (1000, 50, 0.5), (2000, 10, 0.85)):
        yield f"made {size} × {columns}", *made(size, columns, larger)
    for size, columns, larger in ((500, 20, 0.5), (500, 20, 0.6), (1500, 10, 0.65)):  # long tails on one side
        features, labels = made(size, columns, larger)
        yield f"tails {size} × {columns}, {larger}", np.exp(features / 2), labels


def made(size: int, columns: int, larger: float) -> tuple[Any, Any]:
    features, labels = datasets.make_classification(
        size,
        columns,
        n_informative=max(2, columns // 2),
        n_redundant=columns // 5,
        weights=[larger],
        flip_y=0.02,
        random_state=size + columns,
    )
    return features, labels


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
        table = np.array([found[epsilon, number] for number in NUMBERS])
        print("most lost".rjust(24), *(f"{lost:6.3f}" for lost in (table.max(axis=0) - table).max(axis=1)))
    print("\n", "ε".rjust(23), *(f"{epsilon:>6g}" for epsilon in EPSILONS))
    for place, (name, _, _) in enumerate(sets):
        print(name.rjust(24), *(f"{found[epsilon, 250][place]:6.3f}" for epsilon in EPSILONS))


if __name__ == "__main__":
    main()
