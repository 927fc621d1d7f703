"""Every kind of question to a table with the columns person, city, n and x: as mechanisms that a ledger runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import expost as xp


def _groups(table: xp.PrivateTable) -> Any:
    groups = table.by("city", "n > 0", keys={"city": ["a", ""], "n > 0": [True, False]})
    return groups.agg(
        total=True,
        rows=groups.count(),
        units=groups.count(of="units"),
        s=groups.sum("x", bounds=(-1, 1)),
        v=groups.variance("x", bounds=(-1, 1)),
        q=groups.median("n", bounds=(0, 9)),
        m=groups.mean("x", bounds=(0, 1)),
        share=groups.share("x > 0.5"),
    ).mechanism(epsilon=1)


def _found_groups(table: xp.PrivateTable) -> Any:
    groups = table.by("city", "n > 0")
    return groups.agg(rows=groups.count(), s=groups.sum("x", bounds=(-1, 1))).mechanism(epsilon=1, delta=1e-9)


EVERY: dict[str, Callable[[xp.PrivateTable], Any]] = {
    "count": lambda t: t.count().mechanism(epsilon=1),
    "units": lambda t: t.count(of="units").mechanism(epsilon=1, delta=1e-9, noise="gaussian"),
    "filter": lambda t: t.where("x > 1 AND n IS NOT NULL AND city <> 'b'").count().mechanism(epsilon=1),
    "derived": lambda t: t.derive(y="CAST(city AS INTEGER)").where("y IS NULL").count().mechanism(epsilon=1),
    "sum": lambda t: t.sum("x", bounds=(-1, 1), missing=0.5, grid=0.25).mechanism(epsilon=1),
    "mean": lambda t: t.mean("x", bounds=(-1, 1)).mechanism(epsilon=1),
    "share": lambda t: t.share("x > 1", missing=True).mechanism(epsilon=1),
    "winsorized": lambda t: t.winsorized_mean("x", trim=0.1, bounds=(-9, 9)).mechanism(epsilon=1),
    "keys": lambda t: t.histogram("city", keys=["a", "", "b"]).mechanism(epsilon=1),
    "bins": lambda t: t.histogram("x", bins=[-1, 0, 1], of="units").mechanism(epsilon=1),
    "above": lambda t: t.histogram("x", bins=4, bounds=(-1, 1)).above(2, at_most=1).mechanism(epsilon=1),
    "discover": lambda t: t.discover("city").mechanism(epsilon=1, delta=1e-9),
    "top": lambda t: t.discover("city").top(2).mechanism(epsilon=1, delta=1e-9),
    "median": lambda t: t.median("x").mechanism(epsilon=1),
    "quantiles": lambda t: t.quantile("n", [0.25, 0.75], bounds=(0, 9)).mechanism(epsilon=1),
    "covariance": lambda t: t.covariance("n", "x", bounds=[(0, 5), (-2, 2)]).mechanism(epsilon=1),
    "regression": lambda t: t.regression(["n"], "x", bounds=[(0, 5)], target_bounds=(-2, 2)).mechanism(epsilon=1),
    "groups": _groups,
    "discovered groups": _found_groups,
    "join": lambda t: t.join({"n": [1, 2], "w": ["v", "w"]}, on="n").histogram("w", keys=["v"]).mechanism(epsilon=1),
    "group by group": lambda t: t.by("city", keys=["a", "b"]).ask(lambda r: r.count()).mechanism(epsilon=1),
}
