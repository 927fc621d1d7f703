"""What tests of scikit-learn's estimators share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.estimator_checks import check_estimator

from expost.learn.expected import expected_failed_checks


def line() -> tuple[Any, Any]:
    """Features, and a target that is nearly linear in them."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (4000, 2))
    return features, features @ [1.2, -0.7] + 0.3 + rng.normal(0, 0.1, 4000)


def passes_checks(estimator: Any, least: int) -> None:
    """All of scikit-learn's checks but those that no private estimator can pass; at least so many apply."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, expected_failed_checks=expected_failed_checks(estimator))
    assert [row["check_name"] for row in results if row["status"] == "failed"] == []
    assert sum(row["status"] == "passed" for row in results) > least
