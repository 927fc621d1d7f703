"""Private tuning through scikit-learn's interface."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import expost as xp
from estimators import passes_checks
from expost.learn import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSearchCV,
    StableRegressor,
    TestedLogisticRegression,
)

LOGISTIC = PrivateLogisticRegression(epsilon=1, norm=3, classes=["no", "yes"])


def records() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 3))
    return features, np.where(features[:, 0] + features[:, 1] > 0, "yes", "no")


def test_it_is_an_estimator() -> None:
    inner = PrivateLogisticRegression(epsilon=10**6, norm=10, classes="observed")
    passes_checks(PrivateSearchCV(estimator=inner, param_grid={"regularizer": [0.001, 0.002]}, runs=2), 40)


def test_it_finds_good_parameters_and_pays_twice() -> None:
    features, labels = records()
    ledger = xp.Ledger(epsilon=6, noise=xp.SeededNoise(4))
    search = PrivateSearchCV(estimator=LOGISTIC, param_grid={"regularizer": [1e-3, 1e4]}, factor=3, ledger=ledger)
    assert clone(search).get_params()["estimator__norm"] == 3
    search.fit(features, labels)
    assert (search.best_params_, search.best_index_) == ({"regularizer": 1e-3}, 0)
    assert search.best_estimator_.regularizer == 1e-3
    assert search.score(features, labels) > 0.9 > 0.5 < search.best_score_
    assert search.predict(features[:5]).tolist() == search.best_estimator_.predict(features[:5]).tolist()
    assert search.classes_.tolist() == ["no", "yes"]
    assert search.predict_proba(features).shape == (3000, 2)
    assert search.decision_function(features).shape == (3000,)
    assert ledger.spent == search.charged_ == search.best_estimator_.charged_ == xp.Cost(3)


def test_budgets_are_tuned_too() -> None:
    features, labels = records()
    search = PrivateSearchCV(
        estimator=LOGISTIC, param_grid=[{"epsilon": [0.25]}, {"epsilon": [4], "regularizer": [0.1]}], good_enough=0.7
    ).fit(features, labels)
    assert search.good_enough_
    assert search.release_.reserved == xp.Cost(8)
    assert search.charged_ + search.refunded_ == search.release_.reserved
    assert search.charged_.epsilon == 2 * search.best_params_["epsilon"]


def test_regressions() -> None:
    features, _ = records()
    target = features @ [1, -1, 0.5]
    inner = PrivateLinearRegression(epsilon=1, bounds=(-3, 3), target_bounds=(-6, 6))
    ledger = xp.Ledger(epsilon=4, noise=xp.SeededNoise(0))
    search = PrivateSearchCV(estimator=inner, param_grid={"epsilon": [1, 2]}, ledger=ledger).fit(features, target)
    assert search.score(features, target) > 0.8
    assert -1 < search.best_score_ < 0.1
    assert not hasattr(search, "predict_proba")
    assert search.n_features_in_ == search.best_estimator_.n_features_in_ == 3


def test_predicting_needs_a_fit() -> None:
    with pytest.raises(NotFittedError):
        PrivateSearchCV(estimator=LOGISTIC, param_grid={}).predict([[0, 0, 0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": 3}, "is a private one, such as PrivateLogisticRegression"),
        ({"estimator": clone(LOGISTIC).set_params(ledger=xp.Ledger(epsilon=1))}, "the search pays"),
        ({"param_grid": {"classes": [[0, 1]]}}, "classes is the same for all candidates"),
        ({"param_grid": {"epsilon": [-1]}}, "ε"),
        ({"factor": 4}, "at most 3"),
        (
            {"estimator": TestedLogisticRegression(epsilon=1, test_share=0.5, threshold=1, norm=1, classes=[0, 1])},
            "may withhold",
        ),
        (
            {
                "estimator": StableRegressor(
                    epsilon=1, delta=1e-6, cell=1, blocks=5, bounds=(0, 1), target_bounds=(0, 1)
                ),
                "param_grid": {},
            },
            "may withhold",
        ),
    ],
)
def test_mistakes_cost_nothing(changes: dict[str, Any], message: str) -> None:
    ledger = xp.Ledger(epsilon=9)
    given = {"estimator": LOGISTIC, "param_grid": {"regularizer": [1]}, "ledger": ledger} | changes
    with pytest.raises(xp.InvalidValue, match=message):
        PrivateSearchCV(**given).fit(np.zeros((9, 2)), ["no"] * 9)
    assert ledger.spent == xp.Cost(0)


def test_combinations_are_counted_before_they_are_made() -> None:
    features, labels = records()
    many = {"regularizer": range(1, 10**6), "epsilon": range(1, 10**6)}
    with pytest.raises(xp.InvalidValue, match="combinations in param_grid"):
        PrivateSearchCV(estimator=LOGISTIC, param_grid=many).fit(features, labels)
