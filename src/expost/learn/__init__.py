"""scikit-learn estimators. scikit-learn is imported when one of them is used: ``pip install 'expost[learn]'``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.learn.classification import PrivateLinearSVC, PrivateLogisticRegression, TestedLogisticRegression
    from expost.learn.regression import StableRegressor

_HOME = {
    "PrivateLinearSVC": "expost.learn.classification",
    "PrivateLogisticRegression": "expost.learn.classification",
    "StableRegressor": "expost.learn.regression",
    "TestedLogisticRegression": "expost.learn.classification",
}

__all__ = ["PrivateLinearSVC", "PrivateLogisticRegression", "StableRegressor", "TestedLogisticRegression"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'expost.learn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
