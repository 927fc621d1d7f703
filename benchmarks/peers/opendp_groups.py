"""OpenDP's means of disjoint groups at one ε for all (parallel composition). Own environment; reads and prints JSON."""

import json
import sys
from typing import Any

import opendp.prelude as dp

dp.enable_features("contrib", "floating-point")


def calibrated(make: Any, epsilon: float) -> Any:
    """The measurement with the least noise for ε; noise is inversely proportional to ε."""
    return make(make(1.0).map(1) / epsilon * (1 + 1e-9))


def means(job: dict[str, Any], epsilon: float) -> list[list[float]]:
    low, high = map(float, job["bounds"])
    space = dp.vector_domain(dp.atom_domain(bounds=(low, high))), dp.symmetric_distance()
    summed = calibrated(lambda scale: space >> dp.t.then_sum() >> dp.m.then_laplace(scale), epsilon / 2)
    counted = calibrated(lambda scale: space >> dp.t.then_count() >> dp.m.then_laplace(scale), epsilon / 2)
    return [
        [min(max(summed(group) / max(counted(group), 1), low), high) for group in job["groups"]]
        for _ in range(job["repeats"])
    ]


with open(sys.argv[1]) as work:
    job = json.load(work)
print(json.dumps([means(job, epsilon) for epsilon in job["epsilons"]]))
