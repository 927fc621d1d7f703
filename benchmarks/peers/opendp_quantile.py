"""OpenDP's quantiles of some data, for substitution neighbours. Runs in its own environment; reads and prints JSON."""

import json
import sys
from typing import Any

import opendp.prelude as dp

dp.enable_features("contrib")


def measurement(job: dict[str, Any], scale: float) -> Any:
    low, high = job["bounds"]
    candidates = [low + job["step"] * i for i in range(round((high - low) / job["step"]) + 1)]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return dp.m.make_private_quantile(
        *space, dp.max_divergence(), candidates=candidates, alpha=job["quantile"], scale=scale
    )


answers = []
with open(sys.argv[1]) as work:
    jobs = json.load(work)
for job in jobs:
    for epsilon in job["epsilons"]:
        scale = measurement(job, 1.0).map(2) / epsilon  # one record exchanged is two apart in symmetric distance
        private = measurement(job, scale * (1 + 1e-9))
        answers.append([private(job["data"]) for _ in range(job["repeats"])])
print(json.dumps(answers))
