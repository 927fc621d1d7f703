"""Durable names: what classes and functions are called in ledgers, whatever file they are in.

A name is ``module:qualified name``. The classes of this package that ledgers hold have names without a module path
(``expost:Laplace``): those that ``expost`` or one of its packages exports go by that, the others by :data:`_HOMES`.
Files may move; what is on the left there never changes.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

_HOMES = {
    "Answer": "expost.mechanisms.stability.release:StableAnswer",
    "AnySize": "expost.data.quantiles:AnySize",
    "Between": "expost.mechanisms.quantiles.between:Between",
    "Bin": "expost.mechanisms.stability.quantile_range:Bin",
    "BinOfRange": "expost.mechanisms.stability.quantile_range:BinOfRange",
    "Comparison": "expost.comparison:Comparison",
    "Clipped": "expost.data.clipped:Clipped",
    "Coefficients": "expost.mechanisms.stability.votes:Coefficients",
    "ErrorTest": "expost.mechanisms.linear.tested_logistic:ErrorTest",
    "Expression": "expost.data.expression.expression:Expression",
    "FoundCorrelation": "expost.mechanisms.moments.pairs:FoundCorrelation",
    "FoundCovariance": "expost.mechanisms.moments.pairs:FoundCovariance",
    "FoundMoment": "expost.data.searched:FoundMoment",
    "FoundRange": "expost.mechanisms.moments.private_range:FoundRange",
    "Frame": "expost.frame:Frame",
    "Grid": "expost.noise.grid:Grid",
    "Interval": "expost.mechanisms.moments.geometric_cells:Interval",
    "Kept": "expost.ledger.kept:Kept",
    "LinearFit": "expost.mechanisms.linear.box:LinearFit",
    "LogarithmOfRange": "expost.mechanisms.stability.quantile_range:LogarithmOfRange",
    "LookupStep": "expost.data.lookups:LookupStep",
    "LostShare": "expost.data.lost:LostShare",
    "LostShares": "expost.data.lost:LostShares",
    "MeanOfRanks": "expost.mechanisms.stability.location:MeanOfRanks",
    "Reduced": "expost.mechanisms.reduction.levels:Reduced",
    "Rung": "expost.mechanisms.quantiles.ladder:Rung",
    "Scale": "expost.mechanisms.stability.quantile_range:Scale",
    "StepFunction": "expost.mechanisms.quantiles.distribution:StepFunction",
    "TableStep": "expost.data.steps:TableStep",
    "Tuned": "expost.mechanisms.tuning.tuning:Tuned",
    "WinningCell": "expost.mechanisms.stability.votes:WinningCell",
    "Winsorized": "expost.mechanisms.moments.moments:Winsorized",
    "Withheld": "expost.mechanism:Withheld",
}
"""Classes that ledgers keep, but that are not exported."""
_DURABLE = {home: f"expost:{name}" for name, home in _HOMES.items()}


@lru_cache(1024)
def class_name(kind: type) -> str | None:
    """The durable name of a class; None for one that is not found by its name, such as one made in a function."""
    home = f"{kind.__module__}:{kind.__qualname__}"
    name = home
    if kind.__module__.partition(".")[0] == "expost":
        name = _DURABLE.get(home) or _exported(kind) or home
    return name if find(name) is kind else None


def function_name(function: Any) -> str | None:
    """The name of a function of a module; None for a lambda, a local function, a bound method, a partial."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return None
    name = f"{module}:{path}"
    return name if find(name) is function else None


def find(name: str) -> Any:
    """The object of that name; None if it is not imported here. Only this package's own modules are imported."""
    module, _, path = name.partition(":")
    if module == "expost" and path in _HOMES:
        module, _, path = _HOMES[path].partition(":")
    found: Any = sys.modules.get(module)
    if found is None and module.partition(".")[0] == "expost":
        found = _imported(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None


def _exported(kind: type) -> str | None:
    """The name under which this package, or one directly below, exports a class."""
    packages = ("expost", ".".join(kind.__module__.split(".")[:2]))
    names = (f"{package}:{kind.__qualname__}" for package in packages)
    return next((name for name in names if find(name) is kind), None)
