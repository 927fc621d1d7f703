"""scikit-learn estimators. scikit-learn is imported when one of them is used: ``pip install 'expost[learn]'``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.learn.regression import RobustRegressor

__all__ = ["RobustRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'expost.learn' has no attribute {name!r}")
    return getattr(import_module("expost.learn.regression"), name)
