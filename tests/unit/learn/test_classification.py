"""Private classifiers through scikit-learn's interface."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import expost as xp
from expost.learn import PrivateLinearSVC, PrivateLogisticRegression, TestedLogisticRegression

MUCH: dict[str, Any] = {"epsilon": 10**5, "norm": 4, "classes": "observed"}

NOT_WANTED = {
    "check_supervised_y_2d": "compares two fits, and each has fresh noise",
    "check_fit_idempotent": "compares two fits, and each has fresh noise",
    "check_classifier_data_not_an_array": "compares two fits, and each has fresh noise",
}


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateLogisticRegression(**MUCH),
        PrivateLinearSVC(**MUCH, perturbation="output"),
        TestedLogisticRegression(**MUCH, test_epsilon=10**5, threshold=2, regularizer=0.001),
    ],
)
def test_they_are_estimators(estimator: Any) -> None:
    """All of scikit-learn's checks, accuracy included (hence the large ε), but those that compare two fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, expected_failed_checks=NOT_WANTED)
    assert [row["check_name"] for row in results if row["status"] == "failed"] == []
    assert sum(row["status"] == "passed" for row in results) > 40


def halves(size: int = 2000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(size, 2))
    return features, np.where(features @ [1.0, -2.0] > 0.2, "yes", "no")


def test_fit_predict_and_pay() -> None:
    features, labels = halves()
    ledger = xp.Ledger(epsilon=20)
    model = PrivateLogisticRegression(epsilon=2, norm=3, classes=["yes", "no"], ledger=ledger).fit(features, labels)
    assert model.score(features, labels) > 0.9
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 2), (1,))
    assert model.predict_proba(features).sum(axis=1) == pytest.approx(1)
    assert ((model.predict_proba(features)[:, 1] > 0.5) == (model.predict(features) == "yes")).all()
    assert model.release_.charged == ledger.spent == xp.Cost(2)
    clone(model).fit(features, labels)
    assert ledger.spent == xp.Cost(4)
    assert cross_val_score(model, features, labels, cv=5).mean() > 0.85
    assert ledger.spent == xp.Cost(14)
    with pytest.raises(xp.BudgetExceeded):
        clone(model).set_params(epsilon=7).fit(features, labels)


def test_several_classes() -> None:
    features, _ = halves()
    labels = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] > 0)
    usual: dict[str, Any] = {"epsilon": 20, "norm": 3, "classes": range(4)}
    model = PrivateLinearSVC(**usual).fit(features, labels)
    assert model.decision_function(features).shape == (2000, 4)
    assert model.score(features, labels) > 0.8
    chances = PrivateLogisticRegression(**usual).fit(features, labels).predict_proba(features)
    assert chances.sum(axis=1) == pytest.approx(1)


def test_labels_that_were_not_declared_count_as_the_first() -> None:
    features, labels = halves()
    odd = np.where(labels == "no", "??", labels)
    model = PrivateLogisticRegression(epsilon=5, norm=3, classes=["no", "yes"]).fit(features, odd)
    assert model.score(features, labels) > 0.9
    assert model.classes_.tolist() == ["no", "yes"]
    numbers = np.where(labels == "yes", 1.0, np.nan)
    features[3] = np.nan
    model = PrivateLogisticRegression(epsilon=5, norm=3, classes=[0, 1]).fit(features, numbers)
    assert model.classes_.tolist() == [0, 1]
    assert np.mean(model.predict(features) == (labels == "yes")) > 0.9


def test_a_withheld_model_does_not_predict() -> None:
    features, labels = halves()
    ledger = xp.Ledger(epsilon=3)
    usual: dict[str, Any] = {"epsilon": 2, "test_epsilon": 0.25, "norm": 3, "classes": ["no", "yes"], "ledger": ledger}
    noise = np.random.default_rng(1).permutation(labels)
    model = TestedLogisticRegression(**usual, threshold=0.3).fit(features, noise)
    assert not model.released_
    assert ledger.spent == xp.Cost(0.25) == model.release_.charged
    for ask in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(NotFittedError, match="withheld"):
            ask(features)
    assert not hasattr(model, "coef_")
    model.set_params(threshold=1.2).fit(features, labels)
    assert model.released_
    assert model.score(features, labels) > 0.85
    assert ledger.spent == xp.Cost(2.25)
    with pytest.raises(NotFittedError):
        clone(model).predict(features)


def test_public_mistakes() -> None:
    features, labels = halves(20)
    usual: dict[str, Any] = {"epsilon": 1, "norm": 1, "classes": ["no", "yes"]}
    for wrong, says in (
        ({"classes": "seen"}, "observed"),
        ({"classes": ["yes"]}, "two classes"),
        ({"perturbation": "both"}, "perturbation"),
    ):
        with pytest.raises(xp.InvalidValue, match=says):
            PrivateLogisticRegression(**{**usual, **wrong}).fit(features, labels)
    with pytest.raises(xp.InvalidValue, match="one each"):
        PrivateLogisticRegression(**usual).fit(features, labels[:-1])
