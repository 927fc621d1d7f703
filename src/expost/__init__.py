"""Differential privacy that charges for what an output actually leaked, and refunds the rest.

The names below are loaded when they are first used, so that importing expost costs next to nothing. Each is written
twice: for the type checker, and for the loader.
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
    from expost.data import read as read
    from expost.errors import AlreadyExists as AlreadyExists
    from expost.errors import AlreadyReserved as AlreadyReserved
    from expost.errors import BudgetExceeded as BudgetExceeded
    from expost.errors import Busy as Busy
    from expost.errors import EngineFailed as EngineFailed
    from expost.errors import ExpostError as ExpostError
    from expost.errors import InteractionClosed as InteractionClosed
    from expost.errors import InvalidStudy as InvalidStudy
    from expost.errors import InvalidValue as InvalidValue
    from expost.errors import KeyConflict as KeyConflict
    from expost.errors import LedgerClosed as LedgerClosed
    from expost.errors import LedgerCorrupt as LedgerCorrupt
    from expost.errors import LedgerUnavailable as LedgerUnavailable
    from expost.errors import MissingDependency as MissingDependency
    from expost.errors import NeighbourMismatch as NeighbourMismatch
    from expost.errors import ReservationClosed as ReservationClosed
    from expost.errors import UnderWay as UnderWay
    from expost.errors import UnknownEntry as UnknownEntry
    from expost.errors import UnknownPart as UnknownPart
    from expost.errors import UnrecordedWarning as UnrecordedWarning
    from expost.errors import UnsettledWarning as UnsettledWarning
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
    from expost.mechanisms import AbsoluteError as AbsoluteError
    from expost.mechanisms import AdaptiveSparseVector as AdaptiveSparseVector
    from expost.mechanisms import ByGroup as ByGroup
    from expost.mechanisms import Chain as Chain
    from expost.mechanisms import Coin as Coin
    from expost.mechanisms import CorrectPredictions as CorrectPredictions
    from expost.mechanisms import Correlation as Correlation
    from expost.mechanisms import Covariance as Covariance
    from expost.mechanisms import Decided as Decided
    from expost.mechanisms import DiscreteGaussian as DiscreteGaussian
    from expost.mechanisms import DistributionFunction as DistributionFunction
    from expost.mechanisms import Exponential as Exponential
    from expost.mechanisms import FirstStable as FirstStable
    from expost.mechanisms import Gaussian as Gaussian
    from expost.mechanisms import GaussianReduction as GaussianReduction
    from expost.mechanisms import Histogram as Histogram
    from expost.mechanisms import InterquartileRange as InterquartileRange
    from expost.mechanisms import Iterative as Iterative
    from expost.mechanisms import Laplace as Laplace
    from expost.mechanisms import LeastSquares as LeastSquares
    from expost.mechanisms import LinearModel as LinearModel
    from expost.mechanisms import LinearRegression as LinearRegression
    from expost.mechanisms import LogisticDescent as LogisticDescent
    from expost.mechanisms import Mean as Mean
    from expost.mechanisms import MeanAbsoluteError as MeanAbsoluteError
    from expost.mechanisms import Median as Median
    from expost.mechanisms import ModelTest as ModelTest
    from expost.mechanisms import NoiseReduction as NoiseReduction
    from expost.mechanisms import ObjectivePerturbation as ObjectivePerturbation
    from expost.mechanisms import OutputPerturbation as OutputPerturbation
    from expost.mechanisms import PermuteAndFlip as PermuteAndFlip
    from expost.mechanisms import Proposal as Proposal
    from expost.mechanisms import ProposeTestRelease as ProposeTestRelease
    from expost.mechanisms import Quantile as Quantile
    from expost.mechanisms import QuantileLadder as QuantileLadder
    from expost.mechanisms import Quantiles as Quantiles
    from expost.mechanisms import RandomizedResponse as RandomizedResponse
    from expost.mechanisms import RelativeError as RelativeError
    from expost.mechanisms import Score as Score
    from expost.mechanisms import SparseVector as SparseVector
    from expost.mechanisms import StableInterquantileRange as StableInterquantileRange
    from expost.mechanisms import StableInterquartileRange as StableInterquartileRange
    from expost.mechanisms import StableMedian as StableMedian
    from expost.mechanisms import StableNoisyInterquartileRange as StableNoisyInterquartileRange
    from expost.mechanisms import StableQuantile as StableQuantile
    from expost.mechanisms import StableRegression as StableRegression
    from expost.mechanisms import StableTrimmedMean as StableTrimmedMean
    from expost.mechanisms import StoppingRule as StoppingRule
    from expost.mechanisms import Tally as Tally
    from expost.mechanisms import Tested as Tested
    from expost.mechanisms import TestedLogisticRegression as TestedLogisticRegression
    from expost.mechanisms import TestedRelease as TestedRelease
    from expost.mechanisms import TheilSen as TheilSen
    from expost.mechanisms import TopK as TopK
    from expost.mechanisms import TrimmedMean as TrimmedMean
    from expost.mechanisms import Tuning as Tuning
    from expost.mechanisms import TypicalRange as TypicalRange
    from expost.mechanisms import Variance as Variance
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

    _ROOMS = {
        "expost.accounting": ("RenyiAccounting",),
        "expost.bracket": ("Bracket",),
        "expost.consistency": ("consistent",),
        "expost.cost": ("Cost",),
        "expost.data": ("PrivateTable", "Unit", "read"),
        "expost.errors": (
            "AlreadyExists",
            "AlreadyReserved",
            "Busy",
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
            "MissingDependency",
            "NeighbourMismatch",
            "ReservationClosed",
            "UnderWay",
            "UnknownEntry",
            "UnknownPart",
            "UnrecordedWarning",
            "UnsettledWarning",
        ),
        "expost.guarantee": ("Guarantee",),
        "expost.ledger": ("Entry", "Ledger", "Quote", "Reservation", "ledgers"),
        "expost.mechanism": ("Interaction", "Mechanism", "Release", "WITHHELD"),
        "expost.mechanisms": (
            "AbsoluteError",
            "AdaptiveSparseVector",
            "ByGroup",
            "Chain",
            "Coin",
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
    _HOME = {name: room for room, names in _ROOMS.items() for name in names}
    __all__ = ["__version__", *_HOME]

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'expost' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
