"""How the rate, the momentum and the patience of ``LogisticDescent`` were chosen, on records that no benchmark uses.

Data sets are those of ``lean.py``, 26 of them, 80 of 100 rows for training, and rows come in three ways: of length 1;
with each feature between −1 and 1, over √d, as PublicScaler makes them; and with each between 0 and 1, over √d, so that
all point one way. The mechanism is written down again, in floats, so that its constants can be changed: ten steps with
Gaussian noise for (ε, 10⁻⁶), residuals up to ½. For each choice: the mean accuracy on the rows held out, and which
share of ε is charged on average. Beside that stand stopping after a fixed number of steps, and
PrivateLogisticRegression with pure ε. benchmarks/choices/descent.txt is what it printed last.

    python benchmarks/choices/descent.py | tee benchmarks/choices/descent.txt
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from lean import cases  # type: ignore[import-not-found]
from numpy.typing import NDArray

from expost.errors import UnrecordedWarning
from expost.learn import PrivateLogisticRegression
from expost.mechanisms import LogisticDescent
from expost.mechanisms.linear.model import unit_rows

EPSILONS = [0.1, 0.3, 1.0, 3.0]
STEPS, FASTEST, FITS = 10, 50, 10
REACHES, MOMENTA, PATIENCES = [2, 4, 8, 16], [0.5, 0.7], [4, 5, 6]
USED = (8, 0.7)
Array: TypeAlias = NDArray[np.float64]
Walk: TypeAlias = tuple[list[Array], Array]
Choose: TypeAlias = Callable[[Array, Array, Any], tuple[Any, float]]


def descend(rows: Array, noise: float, most: float, reach: float, momentum: float, drawn: Any) -> Walk:
    """The weights after each step, and the gradients that were published. ``most`` is what a residual counts for."""
    size, columns = rows.shape
    deviation = 2 * most * noise
    rate = (1 - momentum) * min(FASTEST, reach * size / (deviation * sqrt(columns * STEPS)))
    weights, velocity = np.zeros(columns), np.zeros(columns)
    path, published = [], []
    for _ in range(STEPS):
        margins = rows @ (weights - rate * momentum * velocity)
        pulls = np.maximum(0.5 * np.tanh(0.5 * margins) - 0.5, -most)
        published.append(pulls @ rows + deviation * drawn.normal(size=columns))
        velocity = momentum * velocity + published[-1] / size
        weights = weights - rate * velocity
        path.append(weights)
    return path, np.array(published)


def settled(published: Array, patience: int) -> int:
    """The step after which the last gradients disagree for the first time."""
    for step in range(patience, STEPS):
        last = published[step - patience : step]
        together = last.sum(axis=0)
        if together @ together <= (last * last).sum():
            return step
    return STEPS


def always(step: int) -> Callable[[Array], int]:
    """Stop there, whatever was published."""
    return lambda _: step


def accuracies(data: Any, choose: Choose) -> tuple[float, float]:
    """The mean accuracy over all data sets, and the mean of what else ``choose`` gives."""
    found = []
    for rows, signs in data:
        drawn = np.random.default_rng(7)
        for _ in range(FITS):
            train, test = np.split(drawn.permutation(len(rows)), [int(0.8 * len(rows))])
            weights, other = choose(rows[train], signs[train], drawn)
            found.append((float(np.mean((rows[test] @ weights > 0) == (signs[test] > 0))), other))
    mean = np.mean(found, axis=0)
    return float(mean[0]), float(mean[1])


def pure(epsilon: float) -> Choose:
    def choose(rows: Array, signs: Array, drawn: Any) -> tuple[Any, float]:
        model = PrivateLogisticRegression(epsilon=epsilon, norm=1.001, classes=[-1, 1], fit_intercept=False)
        return model.fit(rows, signs).coef_[0], 1.0

    return choose


def main() -> None:
    warnings.simplefilter("ignore", UnrecordedWarning)
    print(f"{FITS} fits each: mean accuracy, and share of ε charged")
    for way in ("length 1", "between −1 and 1", "between 0 and 1"):
        data = [(unit_rows(made(features, way), 1.0, 0.0, True), signs(labels)) for _, features, labels in cases()]
        for epsilon in EPSILONS:
            print(f"\n{len(data)} data sets, rows {way}, ε = {epsilon}")
            for name, choose in choices(epsilon):
                accuracy, price = accuracies(data, choose)
                print(f"{name:<40} {accuracy:.3f} {price:6.2f}")


def made(features: Any, way: str) -> Array:
    """The rows, made from features between −1 and 1."""
    if way == "length 1":
        return np.asarray(features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-9))
    return np.asarray((features if way == "between −1 and 1" else (features + 1) / 2) / sqrt(features.shape[1]))


def signs(labels: Any) -> Array:
    """+1 for the second class, else −1."""
    return np.where(np.asarray(labels).astype(int) == 1, 1.0, -1.0)


def choices(epsilon: float) -> Iterator[tuple[str, Choose]]:
    """What is compared at an ε."""
    mechanism = LogisticDescent(epsilon=epsilon, delta=1e-6, norm=1, steps=STEPS)
    prices = [mechanism.guarantee.epsilon_of(step) / epsilon for step in range(1, STEPS + 1)]

    def fit(reach: float, momentum: float, stop: Callable[[Array], int], most: float = 0.5) -> Choose:
        def choose(rows: Array, signs: Array, drawn: Any) -> tuple[Any, float]:
            path, published = descend(rows * signs[:, None], mechanism.noise_multiplier, most, reach, momentum, drawn)
            last = stop(published) - 1
            return path[last], prices[last]

        return choose

    yield "PrivateLogisticRegression, pure ε", pure(epsilon)
    yield "residuals up to 1, as they come", fit(*USED, lambda _: STEPS, most=1.0)
    for reach in REACHES:
        for momentum in MOMENTA:
            yield f"reach {reach}, momentum {momentum}", fit(reach, momentum, lambda _: STEPS)
    for patience in PATIENCES:
        yield f"patience {patience}", fit(*USED, partial(settled, patience=patience))
    for step in (4, 6, 8):
        yield f"always {step} steps", fit(*USED, always(step))


if __name__ == "__main__":
    main()
