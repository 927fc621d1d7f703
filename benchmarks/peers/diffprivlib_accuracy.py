"""diffprivlib's statistics of some data, null where it raises. Runs in its own environment; reads and prints JSON."""

import json
import sys
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression
from diffprivlib.tools import histogram, mean, quantile, var

warnings.simplefilter("ignore")
BINS = 20


def answer(job: dict[str, Any], data: Any, epsilon: float) -> Any:
    kind, bounds = job["kind"], tuple(job["bounds"])
    if kind in ("median", "0.9-quantile"):
        return float(quantile(data, 0.5 if kind == "median" else 0.9, epsilon=epsilon, bounds=bounds))
    if kind == "inter-quartile range":
        low, high = (float(quantile(data, level, epsilon=epsilon / 2, bounds=bounds)) for level in (0.25, 0.75))
        return high - low
    if kind in ("mean", "variance"):
        return float((mean if kind == "mean" else var)(data, epsilon=epsilon, bounds=bounds))
    if kind == "histogram":  # its noise is for one record more or less: half of ε for one exchanged
        cells = np.array(job["cells"])
        return histogram(cells, epsilon=epsilon / 2, bins=BINS, range=(-0.5, BINS - 0.5))[0].astype(float).tolist()
    low, high = job["feature_bounds"]
    model = LinearRegression(epsilon=epsilon, bounds_X=(low, high), bounds_y=bounds)
    model.fit(np.array(job["feature"])[:, None], data)
    return [float(model.intercept_), float(model.coef_[0])]


def attempt(job: dict[str, Any], data: Any, epsilon: float) -> Any:
    try:
        return answer(job, data, epsilon)
    except (RuntimeError, ValueError):  # many equal values: its weights overflow
        return None


def answers(job: dict[str, Any], epsilon: float) -> list[Any]:
    data = np.array(job["data"])
    return [attempt(job, data, epsilon) for _ in range(job["repeats"])]


with open(sys.argv[1]) as work:
    jobs = json.load(work)
print(json.dumps([answers(job, epsilon) for job in jobs for epsilon in job["epsilons"]]))
