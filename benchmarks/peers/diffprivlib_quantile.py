"""diffprivlib's quantiles of some data, null where it raises. Runs in its own environment; reads and prints JSON."""

import json
import sys
import warnings
from typing import Any

import numpy as np
from diffprivlib.tools import quantile

warnings.simplefilter("ignore")


def estimate(job: dict[str, Any], epsilon: float) -> float | None:
    try:
        return float(quantile(np.array(job["data"]), job["quantile"], epsilon=epsilon, bounds=tuple(job["bounds"])))
    except RuntimeError:  # many equal values: its weights overflow
        return None


with open(sys.argv[1]) as work:
    jobs = json.load(work)
answers = [[estimate(job, epsilon) for _ in range(job["repeats"])] for job in jobs for epsilon in job["epsilons"]]
print(json.dumps(answers))
