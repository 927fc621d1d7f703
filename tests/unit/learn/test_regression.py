"""Regression by votes through scikit-learn's interface."""

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import expost as xp
import expost.learn
from estimators import line, passes_checks
from expost.learn import StableRegressor

USUAL: dict[str, Any] = {
    "epsilon": 1,
    "delta": 1e-6,
    "cell": 0.5,
    "blocks": 100,
    "bounds": (-1, 1),
    "target_bounds": (-3, 3),
}


def test_it_is_an_estimator() -> None:
    passes_checks(StableRegressor(**{**USUAL, "blocks": 20, "epsilon": 20}), 30)


def test_fit_and_predict() -> None:
    features, target = line()
    ledger = xp.Ledger(epsilon=3, delta=1e-5, noise=xp.SeededNoise(1))
    model = StableRegressor(**USUAL, ledger=ledger)
    assert model.fit(features, target).score(features, target) > 0.9
    assert model.coef_.tolist() == [1.25, -0.75]
    assert model.intercept_ == 0.25
    assert ledger.spent == xp.Cost(0.5, 1e-6) == model.release_.charged
    clone(model).fit(features, target)  # the same ledger pays, for ledgers are never copied
    assert ledger.spent.delta == 2e-6


def test_withheld_predicts_the_middle() -> None:
    features, target = line()
    model = StableRegressor(**{**USUAL, "cell": 1e-6, "target_bounds": (0, 4)}).fit(features, target)
    assert model.withheld_
    assert set(model.predict(features)) == {2.0}


def test_private_values_cause_no_error_and_public_ones_do() -> None:
    features, target = line()
    features[3, 0], target[4], target[5] = np.nan, np.nan, np.inf
    assert not StableRegressor(**USUAL).fit(features, target).withheld_
    with pytest.raises(xp.InvalidValue, match="one each"):
        StableRegressor(**USUAL).fit(features, target[:-1])
    with pytest.raises(ValueError, match="y"):
        StableRegressor(**USUAL).fit(features, None)


def test_one_odd_cell_causes_no_error() -> None:
    features, target = (values.astype(object) for values in line())
    features[3, 0], features[4, 1], target[5], target[6] = "secret", 10**400, None, 1j
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger = xp.Ledger(epsilon=1, delta=1e-6)
        assert not StableRegressor(**USUAL, ledger=ledger).fit(features, target).withheld_


def test_a_refused_fit_leaves_everything_as_it_was() -> None:
    features, target = line()
    model = StableRegressor(**USUAL, ledger=xp.Ledger(epsilon=1, delta=1e-6)).fit(features, target)
    with pytest.raises(xp.BudgetExceeded):
        model.fit(features[:, :1], target)
    assert model.predict(features).shape == (4000,)
    with pytest.raises(xp.InvalidValue, match="intercept"):
        StableRegressor(**USUAL, fit_intercept="yes").fit(features, target)


def test_the_room_is_lazy() -> None:
    lazy = "import sys, expost.learn; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", lazy], check=True, capture_output=True).stdout.strip() == b"False"
    assert not hasattr(expost.learn, "Nothing")


def test_target_bounds_may_be_written_as_people_write_them() -> None:
    """Everything about the parameters is read before anything is charged."""
    features = np.random.default_rng(1).uniform(size=(200, 2))
    model = StableRegressor(**{**USUAL, "target_bounds": ("0", "1/3")}).fit(features, features[:, 0] / 3)
    assert np.isfinite(model.predict(features)).all()
