"""Differential privacy that charges for what an output actually leaked, and refunds the rest.

Here is what one types first. The rest has pages of its own: ``xp.mechanisms`` (all mechanisms, for arrays and for
questions of one's own), ``xp.questions``, ``xp.errors``, ``xp.accounting``, ``xp.ledger``, ``xp.noise``,
``xp.recipes``, ``xp.learn``, ``xp.verify``, ``xp.adapters``, ``xp.study``.

Names are loaded when they are first used, so that importing expost costs next to nothing. The type checker finds them
in the modules that are imported for it; the loader has a table of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost._version import __version__ as __version__

if TYPE_CHECKING:
    from expost import accounting as accounting
    from expost import adapters as adapters
    from expost import data as data
    from expost import errors as errors
    from expost import learn as learn
    from expost import ledger as ledger
    from expost import mechanisms as mechanisms
    from expost import noise as noise
    from expost import questions as questions
    from expost import recipes as recipes
    from expost import study as study
    from expost import verify as verify
    from expost.cost import Cost as Cost
    from expost.data import PrivateTable as PrivateTable
    from expost.data import Unit as Unit
    from expost.data import progress as progress
    from expost.data import read as read
    from expost.errors import BudgetExceeded as BudgetExceeded
    from expost.errors import ExpostError as ExpostError
    from expost.errors import InvalidValue as InvalidValue
    from expost.estimate import Estimate as Estimate
    from expost.examples import example as example
    from expost.frame import Frame as Frame
    from expost.guarantee import Guarantee as Guarantee
    from expost.ledger import Ledger as Ledger
    from expost.ledger import ledgers as ledgers
    from expost.ledger import report as report
    from expost.mechanism import WITHHELD as WITHHELD
    from expost.mechanism import Interaction as Interaction
    from expost.mechanism import Mechanism as Mechanism
    from expost.mechanism import Release as Release
    from expost.mechanisms import DiscreteGaussian as DiscreteGaussian
    from expost.mechanisms import Gaussian as Gaussian
    from expost.mechanisms import Iterative as Iterative
    from expost.mechanisms import Laplace as Laplace
    from expost.mechanisms import NoiseReduction as NoiseReduction
    from expost.mechanisms import PermuteAndFlip as PermuteAndFlip
    from expost.mechanisms import RelativeError as RelativeError
    from expost.mechanisms import SparseVector as SparseVector
    from expost.mechanisms import TopK as TopK
    from expost.mechanisms import Tuning as Tuning
    from expost.noise import SeededNoise as SeededNoise
    from expost.questions import Correlation as Correlation
    from expost.questions import Count as Count
    from expost.questions import Covariance as Covariance
    from expost.questions import LinearRegression as LinearRegression
    from expost.questions import Mean as Mean
    from expost.questions import Median as Median
    from expost.questions import Quantile as Quantile
    from expost.questions import Ratio as Ratio
    from expost.questions import Share as Share
    from expost.questions import Sum as Sum
    from expost.questions import Variance as Variance
    from expost.service.client import connect as connect
    from expost.service.client import connect_async as connect_async
else:
    from importlib import import_module

    _MODULES = {
        "expost.cost": ("Cost",),
        "expost.data": ("PrivateTable", "Unit", "progress", "read"),
        "expost.errors": ("BudgetExceeded", "ExpostError", "InvalidValue"),
        "expost.estimate": ("Estimate",),
        "expost.examples": ("example",),
        "expost.frame": ("Frame",),
        "expost.guarantee": ("Guarantee",),
        "expost.ledger": ("Ledger", "ledgers", "report"),
        "expost.mechanism": ("Interaction", "Mechanism", "Release", "WITHHELD"),
        "expost.mechanisms": (
            "DiscreteGaussian",
            "Gaussian",
            "Iterative",
            "Laplace",
            "NoiseReduction",
            "PermuteAndFlip",
            "RelativeError",
            "SparseVector",
            "TopK",
            "Tuning",
        ),
        "expost.noise": ("SeededNoise",),
        "expost.questions": (
            "Correlation",
            "Count",
            "Covariance",
            "LinearRegression",
            "Mean",
            "Median",
            "Quantile",
            "Ratio",
            "Share",
            "Sum",
            "Variance",
        ),
        "expost.service.client": ("connect", "connect_async"),
    }
    _HOME = {name: module for module, names in _MODULES.items() for name in names}
    _PAGES = (
        "accounting",
        "adapters",
        "data",
        "errors",
        "learn",
        "ledger",
        "mechanisms",
        "noise",
        "questions",
        "recipes",
        "study",
        "verify",
    )
    __all__ = ["__version__", *_HOME]

    def __getattr__(name):
        if name in _PAGES:
            return import_module(f"expost.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'expost' has no attribute {name!r}{_where(name)}")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value

    def _where(name):
        """Where a name is that is not on the first page: looked up in texts, as modules may be half imported."""
        if name.startswith("_"):
            return ""
        import re
        from pathlib import Path

        defines = re.compile(rf"^(?:.* as|class|def) {re.escape(name)}\b", re.MULTILINE)
        for page in _PAGES:
            path = Path(__file__).parent / page
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if source.exists() and defines.search(source.read_text(encoding="utf-8")):
                return f": it is xp.{page}.{name}"
        return ""

    def __dir__():
        return sorted([*__all__, *_PAGES])
