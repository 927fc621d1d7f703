"""Means of 16 groups at one ε for all of them, by row, with a private number of rows: how far off, against OpenDP.

The error is the mean distance from the true mean of a group, over all groups and repeats. OpenDP answers twice: by its
own mean of groups of a Polars frame, whose keys are public, as ours are; and by its noisy sums and counts, with half of
ε each, clamped to the bounds. Ours is a noisy sum over a noisy count with half of ε each, too.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import expost as xp
from report import Row, at_most, peer, report

GROUPS, ROWS, REPEATS = 16, 1000, 40
EPSILONS = [0.25, 1.0, 4.0]
BOUNDS = (0.0, 100.0)
GOAL = 1.0
PEERS = {"its mean of groups": "opendp_polars_groups.py", "its sums and counts": "opendp_groups.py"}


def data() -> pd.DataFrame:
    """Values of any mean within the bounds, by group."""
    chance = np.random.default_rng(16)
    group = np.repeat(np.arange(GROUPS), ROWS)
    values = chance.normal(chance.uniform(10, 90, GROUPS)[group], 10)
    return pd.DataFrame({"g": group, "x": np.clip(values, *BOUNDS)})


def ours(frame: pd.DataFrame, epsilon: float) -> list[list[float]]:
    """The means of every repeat."""
    table = xp.read(frame, unit="row", neighbours="add-remove")
    groups = table.by("g", keys=list(range(GROUPS)))
    mechanism = groups.agg(m=groups.mean("x", bounds=BOUNDS)).mechanism(epsilon=epsilon)
    ledger = xp.Ledger(epsilon=epsilon * REPEATS)
    return [[float(mean) for mean in ledger.run(mechanism).value.values()] for _ in range(REPEATS)]


def off(means: list[list[float]], truth: NDArray[np.float64]) -> float:
    """How far means are from the true ones."""
    return float(np.abs(np.array(means) - truth).mean())


def main() -> None:
    """Ask both, and report."""
    frame = data()
    truth = frame.groupby("g")["x"].mean().to_numpy()
    groups = [frame.loc[frame["g"] == each, "x"].tolist() for each in range(GROUPS)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps({"bounds": BOUNDS, "groups": groups, "epsilons": EPSILONS, "repeats": REPEATS}))
        theirs = {name: peer("opendp", script, path) for name, script in PEERS.items()}
    rows: list[Row] = []
    for place, epsilon in enumerate(EPSILONS):
        mine = off(ours(frame, epsilon), truth)
        for name, found in theirs.items():
            other, title = off(found[place], truth), f"means of {GROUPS} groups at ε {epsilon:g}, error; OpenDP: {name}"
            rows.append(at_most(title, mine, other, "", mine / other, GOAL))
    report("groups", rows)


if __name__ == "__main__":
    main()
