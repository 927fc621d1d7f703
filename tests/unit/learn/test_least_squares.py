"""Least squares through scikit-learn's interface."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import expost as xp
from estimators import line, passes_checks
from expost.learn import PrivateLinearRegression

USUAL: dict[str, Any] = {"epsilon": 2, "bounds": (-1, 1), "target_bounds": (-3, 3)}


def test_it_is_an_estimator() -> None:
    passes_checks(PrivateLinearRegression(**USUAL), 30)


@pytest.mark.parametrize("bounds", [(-1, 1), [(-1, 1), (-1, 1)]])
def test_fit_and_predict(bounds: Any) -> None:
    features, target = line()
    ledger = xp.Ledger(epsilon=5, noise=xp.SeededNoise(1))
    model = PrivateLinearRegression(**{**USUAL, "bounds": bounds}, ledger=ledger)
    assert model.fit(features, target).score(features, target) > 0.9
    assert model.coef_ == pytest.approx([1.2, -0.7], abs=0.1)
    assert ledger.spent == xp.Cost(2) == model.release_.charged
    clone(model).fit(features, target)  # the same ledger pays, for ledgers are never copied
    assert ledger.spent == xp.Cost(4)


def test_private_values_cause_no_error_and_public_ones_do() -> None:
    features, target = line()
    features[3, 0], target[4], target[5] = np.nan, np.nan, np.inf
    assert np.isfinite(PrivateLinearRegression(**USUAL).fit(features, target).coef_).all()
    with pytest.raises(xp.InvalidValue, match="one each"):
        PrivateLinearRegression(**USUAL).fit(features, target[:-1])
    with pytest.raises(xp.InvalidValue, match="bounds for 3 features"):
        PrivateLinearRegression(**{**USUAL, "bounds": [(-1, 1)] * 3}).fit(features, target)
