"""OpenDP's statistics of some data, for substitution neighbours and δ = 0. Own environment; reads and prints JSON."""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import opendp.prelude as dp
from opendp.extras.sklearn.linear_model import _make_private_theil_sen

dp.enable_features("contrib", "honest-but-curious", "floating-point", "idealized-numerics", "private-constructor")
EXCHANGED = 2  # one record exchanged is two apart in symmetric distance
BINS = 20


def calibrated(make: Callable[[float], Any], epsilon: float) -> Any:
    """The measurement with the least noise for ε; noise is inversely proportional to ε."""
    return make(make(1.0).map(EXCHANGED) / epsilon * (1 + 1e-9))


def quantile(job: dict[str, Any], level: float, epsilon: float) -> Callable[[], float]:
    low, high = job["bounds"]
    candidates = [low + job["step"] * i for i in range(round((high - low) / job["step"]) + 1)]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def make(scale: float) -> Any:
        return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=candidates, alpha=level, scale=scale)

    private = calibrated(make, epsilon)
    return lambda: float(private(job["data"]))


def moment(job: dict[str, Any], transformation: Any, epsilon: float) -> Callable[[], float]:
    low, high = job["bounds"]
    domain = dp.vector_domain(dp.atom_domain(bounds=(float(low), float(high))), size=len(job["data"]))
    inner = transformation((domain, dp.symmetric_distance()))
    private = calibrated(lambda scale: inner >> dp.m.then_laplace(scale), epsilon)
    data = np.clip(job["data"], low, high).tolist()
    return lambda: float(private(data))


def histogram(job: dict[str, Any], epsilon: float) -> Callable[[], list[float]]:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    inner = dp.t.make_count_by_categories(*space, categories=list(range(BINS)), null_category=False)
    private = calibrated(lambda scale: inner >> dp.m.then_laplace(scale), epsilon)
    return lambda: list(map(float, private(job["cells"])))


def regression(job: dict[str, Any], epsilon: float) -> Callable[[], list[float]]:
    low, high = job["bounds"]

    def make(scale: float) -> Any:
        return _make_private_theil_sen(
            dp.max_divergence(),
            tuple(map(float, job["feature_bounds"])),
            (float(low), float(high)),
            scale=scale,
            candidates_count=round((high - low) / job["step"]) + 1,
        )

    private, data = calibrated(make, epsilon), np.column_stack([job["feature"], job["data"]])

    def fit() -> list[float]:
        slope, intercept = private(data)
        return [float(intercept), float(slope)]

    return fit


def prepared(job: dict[str, Any], epsilon: float) -> Callable[[], Any]:
    kind = job["kind"]
    if kind in ("median", "0.9-quantile"):
        return quantile(job, 0.5 if kind == "median" else 0.9, epsilon)
    if kind == "inter-quartile range":
        low, high = (quantile(job, level, epsilon / 2) for level in (0.25, 0.75))
        return lambda: high() - low()
    if kind == "mean":
        return moment(job, lambda space: space >> dp.t.then_mean(), epsilon)
    if kind == "variance":
        return moment(job, lambda space: space >> dp.t.then_variance(ddof=0), epsilon)
    return histogram(job, epsilon) if kind == "histogram" else regression(job, epsilon)


def answers(job: dict[str, Any], epsilon: float) -> list[Any]:
    ask = prepared(job, epsilon)
    return [ask() for _ in range(job["repeats"])]


with open(sys.argv[1]) as work:
    jobs = json.load(work)
print(json.dumps([answers(job, epsilon) for job in jobs for epsilon in job["epsilons"]]))
