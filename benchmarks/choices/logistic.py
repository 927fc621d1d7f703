"""Whether another way to fit a private linear classifier is better: accuracies on records that no benchmark uses.

Ours has pure ε. The others but one have (ε, 10⁻⁶), Gaussian noise and its exact composition, which is in their favour:
the mean difference of the classes; full-batch gradient descent with clipped gradients and averaged iterates; and
regression of the label by noisy normal equations, one Newton step. All see the same rows, of length 1, with the same
constant. Their numbers are plain guesses that were not tuned. Data sets are those of ``lean.py``. For each way: the
mean accuracy, the most that is lost on one data set against the best way, and on how many it is better than ours.
benchmarks/choices/logistic.txt is what it printed last.

    python benchmarks/choices/logistic.py | tee benchmarks/choices/logistic.txt
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from lean import cases  # type: ignore[import-not-found]
from numpy.typing import NDArray

from expost.accounting.normal import normal_noise_for
from expost.errors import UnrecordedWarning
from expost.learn import PrivateLogisticRegression

EPSILONS = [0.1, 0.3, 1.0]
DELTA = Fraction(1, 10**6)
FITS = 30
Array: TypeAlias = NDArray[np.float64]
Predict: TypeAlias = Callable[[Array], Any]
DRAWN = np.random.default_rng(1)


def with_constant(rows: Array) -> Array:
    """Rows within the unit ball, with a constant as long as one typical feature."""
    constant = 1 / np.sqrt(rows.shape[1])
    longer: Array = np.column_stack([rows, np.full(len(rows), constant)])
    return longer / float(np.sqrt(1 + constant**2))


def by_weights(weights: Array) -> Predict:
    return lambda rows: (with_constant(rows) @ weights > 0).astype(int)


def multiplier(epsilon: float) -> float:
    """σ over the L2 sensitivity."""
    return float(normal_noise_for(Fraction(str(epsilon)), DELTA))


def ours(rows: Array, labels: Any, epsilon: float) -> Predict:
    model = PrivateLogisticRegression(epsilon=epsilon, norm=1, classes=[0, 1]).fit(rows, labels)
    return lambda tested: model.predict(tested)


def mean_difference(rows: Array, labels: Any, epsilon: float) -> Predict:
    """An exchanged record moves the sum of ±rows by 2 at most."""
    moved = with_constant(rows) * (2 * labels - 1)[:, None]
    return by_weights(moved.sum(0) + 2 * multiplier(epsilon) * DRAWN.normal(size=moved.shape[1]))


def pure_mean_difference(rows: Array, labels: Any, epsilon: float) -> Predict:
    """The same with noise of pure ε, whose density falls with its length."""
    moved = with_constant(rows) * (2 * labels - 1)[:, None]
    direction = DRAWN.normal(size=moved.shape[1])
    length = DRAWN.gamma(moved.shape[1], 2 / epsilon)
    return by_weights(moved.sum(0) + length * direction / np.linalg.norm(direction))


def descent(rows: Array, labels: Any, epsilon: float, *, steps: int, rate: float) -> Predict:
    """Gradients have length 1 at most; the noise of all steps together is that of one."""
    found, signs = with_constant(rows), 2 * labels - 1
    noise = 2 * multiplier(epsilon) * np.sqrt(steps)
    weights = total = np.zeros(found.shape[1])
    for step in range(steps):
        pull = signs / (1 + np.exp(np.clip(signs * (found @ weights), -50, 50)))
        gradient = -(found.T @ pull) + noise * DRAWN.normal(size=weights.size)
        weights = weights - rate * (gradient / len(found) + 0.01 * weights)
        total = total + weights * (step >= steps // 2)
    return by_weights(total)


def normal_equations(rows: Array, labels: Any, epsilon: float) -> Predict:
    """Sums of ±rows and of products of features; products of an exchanged record move by √2 at most, in Frobenius."""
    found, spread = with_constant(rows), multiplier(epsilon)
    size, columns = found.shape
    sums = (found * (2 * labels - 1)[:, None]).sum(0) + 2 * spread / np.sqrt(0.6) * DRAWN.normal(size=columns)
    scale = np.sqrt(2) * spread / np.sqrt(0.4)
    drawn = DRAWN.normal(size=(columns, columns))
    products = found.T @ found + scale * (np.triu(drawn) + np.triu(drawn, 1).T)
    ridge = 2 * scale * np.sqrt(columns) + 0.001 * size + max(0.0, -float(np.linalg.eigvalsh(products)[0]))
    return by_weights(np.linalg.solve(products + ridge * np.eye(columns), sums))


WAYS: dict[str, Callable[[Array, Any, float], Predict]] = {
    "ours": ours,
    "mean difference": mean_difference,
    "the same, pure ε": pure_mean_difference,
    "descent, 5 steps": partial(descent, steps=5, rate=4.0),
    "descent, 10 steps": partial(descent, steps=10, rate=4.0),
    "descent, 30 steps": partial(descent, steps=30, rate=2.0),
    "normal equations": normal_equations,
}


def accuracies(rows: Array, labels: Any, epsilon: float) -> list[float]:
    """The mean accuracy of each way, on the same splits."""
    found = []
    for _ in range(FITS):
        order = DRAWN.permutation(len(rows))
        train, test = np.split(order, [int(0.8 * len(rows))])
        fits = (fit(rows[train], labels[train], epsilon) for fit in WAYS.values())
        found.append([float(np.mean(predict(rows[test]) == labels[test])) for predict in fits])
    return [float(each) for each in np.mean(found, axis=0)]


def main() -> None:
    warnings.simplefilter("ignore", UnrecordedWarning)
    data = []
    for _, features, labels in cases():
        rows = np.asarray(features, float)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        data.append((rows / np.where(lengths > 0, lengths, 1), np.asarray(labels).astype(int)))
    print(f"{len(data)} data sets, {FITS} fits each")
    for epsilon in EPSILONS:
        found = np.array([accuracies(rows, labels, epsilon) for rows, labels in data])
        lost = (found.max(1, keepdims=True) - found).max(0)
        better = (found > found[:, :1]).sum(0)
        print(f"\nε = {epsilon:<15} mean  most lost  better than ours on")
        for place, name in enumerate(WAYS):
            print(f"{name:<20} {found[:, place].mean():.3f}  {lost[place]:9.3f}  {better[place]:19}")


if __name__ == "__main__":
    main()
