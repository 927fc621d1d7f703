"""scikit-learn estimators. scikit-learn is imported when one of them is used: ``pip install 'expost[learn]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from expost.learn.classification import PrivateEarlyStoppingClassifier as PrivateEarlyStoppingClassifier
    from expost.learn.classification import PrivateLinearSVC as PrivateLinearSVC
    from expost.learn.classification import PrivateLogisticRegression as PrivateLogisticRegression
    from expost.learn.classification import TestedLogisticRegression as TestedLogisticRegression
    from expost.learn.expected import EXPECTED_FAILED_CHECKS as EXPECTED_FAILED_CHECKS
    from expost.learn.expected import expected_failed_checks as expected_failed_checks
    from expost.learn.least_squares import PrivateLinearRegression as PrivateLinearRegression
    from expost.learn.regression import StableRegressor as StableRegressor
    from expost.learn.scaling import PublicScaler as PublicScaler
    from expost.learn.scoring import private_score as private_score
    from expost.learn.search import PrivateSearchCV as PrivateSearchCV
else:
    from importlib import import_module

    from expost.errors import MissingDependency

    _MODULES = {
        "expost.learn.classification": (
            "PrivateEarlyStoppingClassifier",
            "PrivateLinearSVC",
            "PrivateLogisticRegression",
            "TestedLogisticRegression",
        ),
        "expost.learn.expected": ("EXPECTED_FAILED_CHECKS", "expected_failed_checks"),
        "expost.learn.least_squares": ("PrivateLinearRegression",),
        "expost.learn.regression": ("StableRegressor",),
        "expost.learn.search": ("PrivateSearchCV",),
        "expost.learn.scaling": ("PublicScaler",),
        "expost.learn.scoring": ("private_score",),
    }
    _HOME = {name: module for module, names in _MODULES.items() for name in names}
    __all__ = list(_HOME)

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'expost.learn' has no attribute {name!r}")
        try:
            return getattr(import_module(_HOME[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("sklearn", "scipy"):
                raise
            raise MissingDependency("estimators", "scikit-learn", "learn") from None
