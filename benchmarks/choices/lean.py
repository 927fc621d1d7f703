"""How the number in ``noise_lean`` was chosen: accuracies for several numbers on records that no benchmark uses.

Features are mapped to [−1, 1] by their own extremes (which are not private: this is a choice, not a release) or, where
it says "positive", by a range around zero, so that all records point one way; rows are divided by their lengths; 80 of
100 records are for training. For each number: the mean accuracy over the data sets, and the most that is lost on one
of them against the best of the numbers. 0 is the logistic loss as it is. The rule: the number whose most lost,
averaged over ε, is least. benchmarks/choices/lean.txt is what it printed last.

    python benchmarks/choices/lean.py | tee benchmarks/choices/lean.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import statsmodels.api as statsmodels
from rich.progress import track
from sklearn import datasets

from expost.learn import PrivateLogisticRegression
from expost.mechanisms.linear.tuning import MOST_LEAN

NUMBERS = [0, 30, 60, 125, 250, 500]
EPSILONS = [0.1, 0.3, 1.0, 3.0]
FITS = 30


def cases() -> Iterator[tuple[str, Any, Any]]:
    """Even and uneven classes, centred and not, from 100 records with 4 features to 2,000 with 64."""
    wine, iris, digits, diabetes = (
        load() for load in (datasets.load_wine, datasets.load_iris, datasets.load_digits, datasets.load_diabetes)
    )
    for kind in range(3):
        yield f"wine {kind}", scaled(wine.data), wine.target == kind
    two = iris.target > 0
    yield "iris 1 and 2", scaled(iris.data[two]), iris.target[two] == 1
    yield "iris 2", scaled(iris.data), iris.target == 2
    for a, b in ((1, 7), (4, 9)):
        two = np.isin(digits.target, [a, b])
        yield f"digits {a} and {b}", scaled(digits.data[two]), digits.target[two] == a
    others = ~np.isin(digits.target, [3, 8])  # a benchmark's
    yield "even digits", scaled(digits.data[others]), digits.target[others] % 2 == 0
    yield "digits below 3", scaled(digits.data[others]), digits.target[others] < 3
    yield "diabetes above 140", scaled(diabetes.data), diabetes.target > 140
    yield "diabetes above 210", scaled(diabetes.data), diabetes.target > 210
    some = np.random.default_rng(0)
    for name, target in (("fair", "affairs"), ("randhie", "mdvis")):
        table = getattr(statsmodels.datasets, name).load_pandas().data
        table = table.iloc[some.permutation(len(table))[:2000]]
        yield name, scaled(table.drop(columns=target).to_numpy(float)), table[target].to_numpy() > 0
    for size, columns, larger in ((300, 5, 0.5), (500, 20, 0.5), (2000, 20, 0.5), (1000, 50, 0.5), (2000, 10, 0.85)):
        features, labels = made(size, columns, larger)
        yield f"made {size} × {columns}", scaled(features), labels
    for size, columns, larger, far in product([1000], [10, 30], [0.65, 0.8], [1, 3]):
        labels = (some.random(size) > larger).astype(int)
        apart = far * labels[:, None] * (np.arange(columns) < columns // 2)
        yield (
            f"positive × {columns}, {larger}, {far}",
            1 + 0.3 * some.normal(size=(size, columns)) + 0.1 * apart,
            labels,
        )


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


def scaled(features: Any) -> Any:
    low, high = features.min(axis=0), features.max(axis=0)
    return 2 * (features - low) / np.where(high > low, high - low, 1) - 1


def unit(features: Any) -> Any:
    return features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-9)


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
    sets = [(name, unit(features), np.asarray(labels, int)) for name, features, labels in cases()]
    work = [(epsilon, number) for epsilon in EPSILONS for number in NUMBERS]
    found = {pair: [accuracy(rows, labels, *pair) for _, rows, labels in sets] for pair in track(work, transient=True)}
    print("number".rjust(28), *(f"{number:>6}" for number in NUMBERS))
    losses = []
    for epsilon in EPSILONS:
        table = np.array([found[epsilon, number] for number in NUMBERS])
        losses.append((table.max(axis=0) - table).max(axis=1))
        print(f"mean at ε = {epsilon:g}".rjust(28), *(f"{mean:6.3f}" for mean in table.mean(axis=1)))
        print("most lost".rjust(28), *(f"{lost:6.3f}" for lost in losses[-1]))
    print("most lost, averaged".rjust(28), *(f"{lost:6.3f}" for lost in np.mean(losses, axis=0)))
    for epsilon in EPSILONS:
        print(f"\nat ε = {epsilon:g}".rjust(29), *(f"{number:>6}" for number in NUMBERS))
        for place, (name, _, _) in enumerate(sets):
            print(name.rjust(28), *(f"{found[epsilon, number][place]:6.3f}" for number in NUMBERS))


if __name__ == "__main__":
    main()
