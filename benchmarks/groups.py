"""Means of 16 groups at one ε for all of them, by row, with a private number of rows: how far off, against OpenDP.

The error is the mean distance from the true mean of a group, over all groups and repeats. OpenDP's mean is a noisy sum
over a noisy count with half of ε each, within the same bounds, as its own mean of a group is; so is ours.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import expost as xp
from report import Row, at_most, peer, report

GROUPS, ROWS, REPEATS = 16, 1000, 40
EPSILONS = [0.25, 1.0, 4.0]
BOUNDS = (0.0, 100.0)
GOAL = 1.0


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
    mechanism = groups.answers(epsilon=epsilon, m=groups.mean("x", bounds=BOUNDS))
    ledger = xp.Ledger(epsilon=epsilon * REPEATS)
    return [ledger.run(mechanism).value["m"] for _ in range(REPEATS)]


def main() -> None:
    """Ask both, and report."""
    frame = data()
    truth = frame.groupby("g")["x"].mean().to_numpy()
    groups = [frame.loc[frame["g"] == each, "x"].tolist() for each in range(GROUPS)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps({"bounds": BOUNDS, "groups": groups, "epsilons": EPSILONS, "repeats": REPEATS}))
        theirs = peer("opendp", "opendp_groups.py", path)
    rows: list[Row] = []
    for epsilon, found in zip(EPSILONS, theirs, strict=True):
        mine, other = (float(np.abs(np.array(each) - truth).mean()) for each in (ours(frame, epsilon), found))
        rows.append(at_most(f"means of {GROUPS} groups at ε {epsilon:g}, error", mine, other, "", mine / other, GOAL))
    report("groups", rows)


if __name__ == "__main__":
    main()
