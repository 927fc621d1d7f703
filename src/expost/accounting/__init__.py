"""Arithmetic on costs: filters, meters, composition, Rényi prices, early stopping. Pure functions, certified bounds.

Composition and early stopping load numpy when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from expost.accounting.filters import CONT as CONT
from expost.accounting.filters import HALT as HALT
from expost.accounting.filters import Decision as Decision
from expost.accounting.filters import Filter as Filter
from expost.accounting.filters import Odometer as Odometer
from expost.accounting.filters import OdpFilter as OdpFilter
from expost.accounting.filters import decide as decide
from expost.bracket import Bracket as Bracket

if TYPE_CHECKING:
    from expost.accounting.capacities import RenyiAccounting as RenyiAccounting
    from expost.accounting.composition import Composition as Composition
    from expost.accounting.composition import compose as compose
    from expost.accounting.enclosure import Enclosure as Enclosure
    from expost.accounting.events import losses_of as losses_of
    from expost.accounting.incremental import IncrementalComposition as IncrementalComposition
    from expost.accounting.losses import ApproximateDP as ApproximateDP
    from expost.accounting.losses import EitherDirection as EitherDirection
    from expost.accounting.losses import GaussianNoise as GaussianNoise
    from expost.accounting.losses import LaplaceNoise as LaplaceNoise
    from expost.accounting.losses import Loss as Loss
    from expost.accounting.metering import MeterFilter as MeterFilter
    from expost.accounting.meters import BasicMeter as BasicMeter
    from expost.accounting.meters import GaussianMeter as GaussianMeter
    from expost.accounting.meters import Meter as Meter
    from expost.accounting.meters import RenyiMeter as RenyiMeter
    from expost.accounting.meters import Round as Round
    from expost.accounting.pairs import basic_composition as basic_composition
    from expost.accounting.pairs import optimal_composition as optimal_composition
    from expost.accounting.planning import plan as plan
    from expost.accounting.stopping import optimal_delta as optimal_delta
    from expost.accounting.stopping import sum_delta as sum_delta

_MODULES = {
    "capacities": ("RenyiAccounting",),
    "composition": ("Composition", "compose"),
    "enclosure": ("Enclosure",),
    "events": ("losses_of",),
    "losses": ("ApproximateDP", "EitherDirection", "GaussianNoise", "LaplaceNoise", "Loss"),
    "incremental": ("IncrementalComposition",),
    "metering": ("MeterFilter",),
    "meters": ("BasicMeter", "GaussianMeter", "Meter", "RenyiMeter", "Round"),
    "pairs": ("basic_composition", "optimal_composition"),
    "planning": ("plan",),
    "stopping": ("optimal_delta", "sum_delta"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["CONT", "HALT", "Bracket", "Decision", "Filter", "Odometer", "OdpFilter", "decide", *_HOME]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'expost.accounting' has no attribute {name!r}")
    return getattr(import_module(f"expost.accounting.{home}"), name)
