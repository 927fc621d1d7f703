"""Differential privacy that charges for what an output actually leaked, and refunds the rest.

The names below are loaded when they are first used, so that importing expost costs next to nothing. The type checker
finds them in the modules that are imported for it; the loader has a table of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost._version import __version__ as __version__

if TYPE_CHECKING:
    from expost.accounting import RenyiAccounting as RenyiAccounting
    from expost.bracket import Bracket as Bracket
    from expost.consistency import consistent as consistent
    from expost.cost import Cost as Cost
    from expost.data import PrivateTable as PrivateTable
    from expost.data import Unit as Unit
    from expost.data import progress as progress
    from expost.data import read as read
    from expost.errors import *  # noqa: F403  # all of its names are public
    from expost.estimate import Estimate as Estimate
    from expost.frame import Frame as Frame
    from expost.guarantee import Guarantee as Guarantee
    from expost.ledger import Entry as Entry
    from expost.ledger import Ledger as Ledger
    from expost.ledger import Quote as Quote
    from expost.ledger import Reservation as Reservation
    from expost.ledger import ledgers as ledgers
    from expost.mechanism import WITHHELD as WITHHELD
    from expost.mechanism import Interaction as Interaction
    from expost.mechanism import Mechanism as Mechanism
    from expost.mechanism import Release as Release
    from expost.mechanisms import *  # noqa: F403  # so are these
    from expost.noise import NoiseSource as NoiseSource
    from expost.noise import SeededNoise as SeededNoise
    from expost.noise import SystemNoise as SystemNoise
    from expost.recipes import location_and_spread as location_and_spread
    from expost.recipes import refine_until as refine_until
    from expost.recipes import release_large as release_large
    from expost.recipes import top_until as top_until
    from expost.recipes import try_until_one_passes as try_until_one_passes
    from expost.service.client import connect as connect
    from expost.service.client import connect_async as connect_async
else:
    from importlib import import_module

    _MODULES = {
        "expost.accounting": ("RenyiAccounting",),
        "expost.bracket": ("Bracket",),
        "expost.consistency": ("consistent",),
        "expost.cost": ("Cost",),
        "expost.data": ("PrivateTable", "Unit", "progress", "read"),
        "expost.errors": (
            "AlreadyExists",
            "AlreadyReserved",
            "BalanceChanged",
            "BudgetExceeded",
            "Busy",
            "EngineFailed",
            "ExpostError",
            "InteractionClosed",
            "InvalidStudy",
            "InvalidValue",
            "KeyConflict",
            "LedgerClosed",
            "LedgerCorrupt",
            "LedgerUnavailable",
            "MissingDependency",
            "NeighbourMismatch",
            "NoLedgers",
            "NotCopyable",
            "NotStorable",
            "PaidAgainWarning",
            "RequestRejected",
            "ReservationClosed",
            "SnapshotLost",
            "UnderWay",
            "UnitMismatch",
            "UnknownEntry",
            "UnknownPart",
            "UnrecordedWarning",
            "UnsettledWarning",
        ),
        "expost.estimate": ("Estimate",),
        "expost.frame": ("Frame",),
        "expost.guarantee": ("Guarantee",),
        "expost.ledger": ("Entry", "Ledger", "Quote", "Reservation", "ledgers"),
        "expost.mechanism": ("Interaction", "Mechanism", "Release", "WITHHELD"),
        "expost.mechanisms": (
            "AboveMask",
            "AbsoluteError",
            "AdaptiveSparseVector",
            "ByGroup",
            "Chain",
            "Coin",
            "Comparison",
            "CorrectPredictions",
            "Decided",
            "Correlation",
            "Covariance",
            "DiscreteGaussian",
            "DistributionFunction",
            "Exponential",
            "FirstStable",
            "Gaussian",
            "GaussianReduction",
            "Histogram",
            "InterquartileRange",
            "Iterative",
            "Laplace",
            "LeastSquares",
            "LinearModel",
            "LinearRegression",
            "LogisticDescent",
            "Mean",
            "MeanAbsoluteError",
            "Median",
            "ModelTest",
            "NoiseReduction",
            "ObjectivePerturbation",
            "OutputPerturbation",
            "PermuteAndFlip",
            "PrivateRange",
            "Proposal",
            "ProposeTestRelease",
            "Quantile",
            "QuantileLadder",
            "Quantiles",
            "RandomizedResponse",
            "RelativeError",
            "Score",
            "SparseVector",
            "StableInterquantileRange",
            "StableInterquartileRange",
            "StableMedian",
            "StableNoisyInterquartileRange",
            "StableQuantile",
            "StableRegression",
            "StableTrimmedMean",
            "StoppingRule",
            "Tally",
            "Tested",
            "TestedLogisticRegression",
            "TestedRelease",
            "TheilSen",
            "TopK",
            "TrimmedMean",
            "Tuning",
            "TypicalRange",
            "Variance",
        ),
        "expost.noise": ("SeededNoise", "NoiseSource", "SystemNoise"),
        "expost.recipes": ("location_and_spread", "refine_until", "release_large", "top_until", "try_until_one_passes"),
        "expost.service.client": ("connect", "connect_async"),
    }
    _HOME = {name: module for module, names in _MODULES.items() for name in names}
    __all__ = ["__version__", *_HOME]

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'expost' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
