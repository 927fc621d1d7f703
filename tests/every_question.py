"""Every kind of question to a table with the columns person, city, n and x: as mechanisms that a ledger runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import expost as xp


def _groups(table: xp.PrivateTable) -> Any:
    groups = table.by("city", "n > 0", keys={"city": ["a", ""], "n > 0": [True, False]})
    return groups.answers(
        epsilon=1, total=True, rows=groups.count(), units=groups.count(of="units"), s=groups.sum("x", bounds=(-1, 1)),
        v=groups.variance("x", bounds=(-1, 1)), q=groups.median("n", bounds=(0, 9)), m=groups.mean("x", bounds=(0, 1)),
    )  # fmt: skip


def _found_groups(table: xp.PrivateTable) -> Any:
    groups = table.by("city", "n > 0")
    return groups.answers(epsilon=1, delta=1e-9, rows=groups.count(), s=groups.sum("x", bounds=(-1, 1)))


EVERY: dict[str, Callable[[xp.PrivateTable], Any]] = {
    "count": lambda t: t.count().laplace(epsilon=1),
    "units": lambda t: t.count(of="units").gaussian(epsilon=1, delta=1e-9),
    "filter": lambda t: t.where("x > 1 AND n IS NOT NULL AND city <> 'b'").count().laplace(epsilon=1),
    "derived": lambda t: t.derive(y="CAST(city AS INTEGER)").where("y IS NULL").count().laplace(epsilon=1),
    "sum": lambda t: t.sum("x", bounds=(-1, 1), missing=0.5, grid=0.25).laplace(epsilon=1),
    "mean": lambda t: t.mean("x", bounds=(-1, 1)).laplace(epsilon=1),
    "winsorized": lambda t: t.winsorized_mean("x", trim=0.1, bounds=(-9, 9)).laplace(epsilon=1),
    "keys": lambda t: t.histogram("city", keys=["a", "", "b"]).laplace(epsilon=1),
    "bins": lambda t: t.histogram("x", bins=[-1, 0, 1], of="units").laplace(epsilon=1),
    "above": lambda t: t.histogram("x", bins=4, bounds=(-1, 1)).above(2, at_most=1, epsilon=1),
    "discover": lambda t: t.discover("city").laplace(epsilon=1, delta=1e-9),
    "top": lambda t: t.discover("city").top(2, epsilon=1, delta=1e-9),
    "median": lambda t: t.median("x").permute_and_flip(epsilon=1),
    "quantiles": lambda t: t.quantile("n", [0.25, 0.75], bounds=(0, 9)).permute_and_flip(epsilon=1),
    "covariance": lambda t: t.covariance("n", "x", bounds=[(0, 5), (-2, 2)]).laplace(epsilon=1),
    "regression": lambda t: t.regression(["n"], "x", bounds=[(0, 5)], target_bounds=(-2, 2)).laplace(epsilon=1),
    "groups": _groups,
    "discovered groups": _found_groups,
    "join": lambda t: t.join({"n": [1, 2], "w": ["v", "w"]}, on="n").histogram("w", keys=["v"]).laplace(epsilon=1),
    "group by group": lambda t: t.by("city", keys=["a", "b"]).ask(lambda r, e: r.count().laplace(epsilon=e), epsilon=1),
}
