"""Composition and early stopping against dp-accounting, in one process on the same grids.

The optimum over all stopping rules against composing every prefix (the work that Lemma 11 needs); many different
steps against the accountant; and ε read after every step of a run.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from math import exp, log, sqrt
from statistics import median
from typing import Any

from dp_accounting import GaussianDpEvent, LaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as peer

from expost.accounting import (
    ApproximateDP,
    GaussianNoise,
    IncrementalComposition,
    LaplaceNoise,
    Loss,
    compose,
    optimal_delta,
)
from report import Row, at_least, at_most, report

STEPS, STOPS, DELTA = 10_000, 100, 1e-5
GRID = 2.0**-10
DIFFERENT, ONLINE = 1_000, 1_000
FINE = 1e-4  # the peer's own grid, if one does not choose


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    def once() -> float:
        start = time.process_time()  # the machine may be shared
        work()
        return time.process_time() - start

    return median(once() for _ in range(repeats))


def optimum(name: str, loss: Loss, build: Callable[[], Any], grid: float | None) -> Row:
    stops = list(range(STEPS // STOPS, STEPS + 1, STEPS // STOPS))
    spread = loss.spread()
    epsilons = [sqrt(2 * k * log(1e5)) * spread + k * spread * (exp(spread) - 1) / 2 for k in stops]

    def prefixes() -> None:
        law = build()
        for stop, epsilon in zip(stops, epsilons, strict=True):
            law.self_compose(stop).get_delta_for_epsilon(epsilon)

    ours = seconds(lambda: optimal_delta([loss] * STEPS, stops, epsilons, grid=grid))
    theirs = seconds(prefixes)
    return at_most(f"{STEPS} steps, {STOPS} stops: {name}", ours, theirs, "s", ours / theirs, 0.7)


def different() -> list[Row]:
    """Both on the grid that the peer takes if one does not choose."""
    rng = random.Random(1)
    scales = [round(rng.uniform(20, 60), 3) for _ in range(DIFFERENT)]
    losses = [GaussianNoise(scale) if i % 2 else LaplaceNoise(scale) for i, scale in enumerate(scales)]
    events = [GaussianDpEvent(scale) if i % 2 else LaplaceDpEvent(scale) for i, scale in enumerate(scales)]
    found: dict[str, float] = {}

    def ours() -> None:
        found["ours"] = compose(losses, grid=FINE).epsilon_above(DELTA)

    def theirs() -> None:
        accountant = PLDAccountant(value_discretization_interval=FINE)
        for event in events:
            accountant.compose(event)
        found["peer"] = accountant.get_epsilon(DELTA)

    fast, slow = seconds(ours), seconds(theirs)
    return [
        at_least(f"{DIFFERENT} different Laplace and Gaussian steps", fast, slow, "s", slow / fast, 5),
        at_most("the ε of these", found["ours"], found["peer"], "ε", found["ours"] / found["peer"], 1),
    ]


def online() -> Row:
    loss, event = GaussianNoise(30), GaussianDpEvent(30.0)

    def ours() -> None:
        running = IncrementalComposition(FINE)
        for _ in range(ONLINE):
            running.add(loss)
            running.epsilon(DELTA)

    def theirs() -> None:
        accountant = PLDAccountant(value_discretization_interval=FINE)
        for _ in range(ONLINE):
            accountant.compose(event)
            accountant.get_epsilon(DELTA)

    fast, slow = seconds(ours, repeats=1), seconds(theirs, repeats=1)
    return at_least(f"ε after each of {ONLINE} steps", fast, slow, "s", slow / fast, 50)


def main() -> None:
    response = ApproximateDP(0.01, 1e-9)
    lie = 2 / (1 + exp(0.01))
    rows = [
        optimum(
            "randomised response",
            response,
            lambda: peer.from_randomized_response(lie, 2, value_discretization_interval=0.01),
            None,
        ),
        optimum(
            "Gaussian",
            GaussianNoise(100),
            lambda: peer.from_gaussian_mechanism(100, value_discretization_interval=GRID),
            GRID,
        ),
        optimum(
            "sampled Gaussian",
            GaussianNoise(1, 0.01),
            lambda: peer.from_gaussian_mechanism(1, sampling_prob=0.01, value_discretization_interval=GRID),
            GRID,
        ),
        *different(),
        online(),
    ]
    report("stopping", rows)


if __name__ == "__main__":
    main()
