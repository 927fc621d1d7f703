"""ARITHMETIC on facts: filters, meters, composition, Rényi prices, early stopping. Pure functions, certified bounds.

Composition and early stopping load numpy when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from expost.accounting.filters import CONT, HALT, Decision, Filter, Odometer, OdpFilter, decide

if TYPE_CHECKING:
    from expost.accounting.composition import Composition, compose
    from expost.accounting.enclosure import Enclosure
    from expost.accounting.events import losses_of
    from expost.accounting.incremental import IncrementalComposition
    from expost.accounting.losses import ApproximateDP, EitherDirection, GaussianNoise, LaplaceNoise, Loss
    from expost.accounting.metering import MeterFilter
    from expost.accounting.meters import GaussianMeter, Meter, RenyiMeter, Round, SimpleMeter
    from expost.accounting.pairs import basic_composition, optimal_composition
    from expost.accounting.planning import plan
    from expost.accounting.stopping import optimal_delta, sum_delta

_ROOMS = {
    "composition": ("Composition", "compose"),
    "enclosure": ("Enclosure",),
    "events": ("losses_of",),
    "losses": ("ApproximateDP", "EitherDirection", "GaussianNoise", "LaplaceNoise", "Loss"),
    "incremental": ("IncrementalComposition",),
    "metering": ("MeterFilter",),
    "meters": ("GaussianMeter", "Meter", "RenyiMeter", "Round", "SimpleMeter"),
    "pairs": ("basic_composition", "optimal_composition"),
    "planning": ("plan",),
    "stopping": ("optimal_delta", "sum_delta"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "CONT",
    "HALT",
    "ApproximateDP",
    "Composition",
    "Decision",
    "EitherDirection",
    "Enclosure",
    "Filter",
    "GaussianMeter",
    "GaussianNoise",
    "IncrementalComposition",
    "LaplaceNoise",
    "Loss",
    "Meter",
    "MeterFilter",
    "Odometer",
    "OdpFilter",
    "RenyiMeter",
    "Round",
    "SimpleMeter",
    "basic_composition",
    "compose",
    "decide",
    "losses_of",
    "optimal_composition",
    "optimal_delta",
    "plan",
    "sum_delta",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'expost.accounting' has no attribute {name!r}")
    return getattr(import_module(f"expost.accounting.{home}"), name)
