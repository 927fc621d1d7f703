"""OpenDP's own means of groups, by its queries on Polars frames, at one ε for all groups. Reads and prints JSON."""

import json
import sys
from typing import Any

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def means(job: dict[str, Any], epsilon: float) -> list[list[float]]:
    """The measurement is made once, as its context would make it for each question, and asked for every repeat."""
    low, high = map(float, job["bounds"])
    named = [(group, value) for group, values in enumerate(job["groups"]) for value in values]
    frame = pl.LazyFrame(named, schema={"g": pl.Int64, "x": pl.Float64}, orient="row")
    most = max(map(len, job["groups"]))
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["g"], invariant="keys", max_length=most, max_groups=len(job["groups"]))],
    )
    x: Any = pl.col("x").fill_nan(low)
    asked = context.query().group_by("g").agg(x.dp.mean((low, high)))
    measurement = asked.resolve()
    assert measurement.map(1) <= epsilon * (1 + 1e-9)
    return [measurement(frame).collect().sort("g")["x"].to_list() for _ in range(job["repeats"])]


with open(sys.argv[1]) as work:
    job = json.load(work)
print(json.dumps([means(job, epsilon) for epsilon in job["epsilons"]]))
