"""Differential privacy that charges for what an output actually leaked, and gives the rest back.

The names below are loaded when they are first used, so that importing expost costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from expost._version import __version__

if TYPE_CHECKING:
    from expost.bracket import Bracket
    from expost.cost import Cost
    from expost.data import PrivateTable, Unit, read
    from expost.errors import (
        AlreadyReserved,
        BudgetExceeded,
        EngineFailed,
        ExpostError,
        InteractionClosed,
        InvalidStudy,
        InvalidValue,
        KeyConflict,
        LedgerClosed,
        LedgerCorrupt,
        LedgerUnavailable,
        NeighbourMismatch,
        ReservationClosed,
        UnknownEntry,
        UnknownPart,
        UnsettledWarning,
    )
    from expost.guarantee import Guarantee
    from expost.ledger import Entry, Ledger, Quote, Reservation, ledgers
    from expost.mechanism import WITHHELD, Interaction, Mechanism, Release
    from expost.mechanisms import (
        AdaptiveSparseVector,
        Chain,
        Coin,
        DiscreteGaussian,
        Exponential,
        FirstStable,
        Gaussian,
        Iterative,
        Laplace,
        LinearModel,
        LogisticDescent,
        ModelTest,
        ObjectivePerturbation,
        OutputPerturbation,
        PermuteAndFlip,
        Proposal,
        ProposeTestRelease,
        RandomizedResponse,
        SparseVector,
        StableInterquantileRange,
        StableInterquartileRange,
        StableMedian,
        StableNoisyInterquartileRange,
        StableQuantile,
        StableRegression,
        StableTrimmedMean,
        Tested,
        TestedLogisticRegression,
        TestedRelease,
    )
    from expost.noise import SeededNoise, Source, SystemNoise
    from expost.recipes import location_and_spread, release_large, try_until_one_passes

_ROOMS = {
    "expost.bracket": ("Bracket",),
    "expost.cost": ("Cost",),
    "expost.data": ("PrivateTable", "Unit", "read"),
    "expost.errors": (
        "AlreadyReserved",
        "BudgetExceeded",
        "EngineFailed",
        "ExpostError",
        "InteractionClosed",
        "InvalidStudy",
        "InvalidValue",
        "KeyConflict",
        "LedgerClosed",
        "LedgerCorrupt",
        "LedgerUnavailable",
        "NeighbourMismatch",
        "ReservationClosed",
        "UnknownEntry",
        "UnknownPart",
        "UnsettledWarning",
    ),
    "expost.guarantee": ("Guarantee",),
    "expost.ledger": ("Entry", "Ledger", "Quote", "Reservation", "ledgers"),
    "expost.mechanism": ("WITHHELD", "Interaction", "Mechanism", "Release"),
    "expost.mechanisms": (
        "AdaptiveSparseVector",
        "Chain",
        "Coin",
        "DiscreteGaussian",
        "Exponential",
        "FirstStable",
        "Gaussian",
        "StableInterquantileRange",
        "StableInterquartileRange",
        "Iterative",
        "Laplace",
        "LinearModel",
        "LogisticDescent",
        "StableMedian",
        "ModelTest",
        "StableNoisyInterquartileRange",
        "ObjectivePerturbation",
        "OutputPerturbation",
        "PermuteAndFlip",
        "Proposal",
        "ProposeTestRelease",
        "StableQuantile",
        "RandomizedResponse",
        "StableRegression",
        "SparseVector",
        "Tested",
        "TestedLogisticRegression",
        "TestedRelease",
        "StableTrimmedMean",
    ),
    "expost.noise": ("SeededNoise", "Source", "SystemNoise"),
    "expost.recipes": ("location_and_spread", "release_large", "try_until_one_passes"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "WITHHELD",
    "AdaptiveSparseVector",
    "AlreadyReserved",
    "Bracket",
    "BudgetExceeded",
    "Chain",
    "Coin",
    "Cost",
    "DiscreteGaussian",
    "EngineFailed",
    "Entry",
    "Exponential",
    "ExpostError",
    "FirstStable",
    "Gaussian",
    "Guarantee",
    "Interaction",
    "InteractionClosed",
    "InvalidStudy",
    "InvalidValue",
    "Iterative",
    "KeyConflict",
    "Laplace",
    "Ledger",
    "LedgerClosed",
    "LedgerCorrupt",
    "LedgerUnavailable",
    "LinearModel",
    "LogisticDescent",
    "Mechanism",
    "ModelTest",
    "NeighbourMismatch",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PermuteAndFlip",
    "PrivateTable",
    "Proposal",
    "ProposeTestRelease",
    "Quote",
    "RandomizedResponse",
    "Release",
    "Reservation",
    "ReservationClosed",
    "SeededNoise",
    "Source",
    "SparseVector",
    "StableInterquantileRange",
    "StableInterquartileRange",
    "StableMedian",
    "StableNoisyInterquartileRange",
    "StableQuantile",
    "StableRegression",
    "StableTrimmedMean",
    "SystemNoise",
    "Tested",
    "TestedLogisticRegression",
    "TestedRelease",
    "Unit",
    "UnknownEntry",
    "UnknownPart",
    "UnsettledWarning",
    "__version__",
    "ledgers",
    "location_and_spread",
    "read",
    "release_large",
    "try_until_one_passes",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'expost' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
