"""Private classifiers through scikit-learn's interface."""

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import expost as xp
from estimators import passes_checks
from expost.learn import (
    PrivateEarlyStoppingClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSearchCV,
    StableRegressor,
    TestedLogisticRegression,
)
from expost.learn.reading import features_of, numbers_of

MUCH: dict[str, Any] = {"epsilon": 10**5, "norm": 4, "classes": "observed"}

ROBUST = StableRegressor(epsilon=1, delta=1e-6, cell=0.5, blocks=2, bounds=(-1, 1), target_bounds=(-3, 3))


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateLogisticRegression(**MUCH),
        PrivateLinearSVC(**MUCH, perturbation="output"),
        PrivateEarlyStoppingClassifier(epsilon=100, delta=1e-6, norm=4, classes="observed", steps=40, every=40),
        TestedLogisticRegression(**MUCH, test_share=0.1, threshold=2, regularizer=0.001),
    ],
)
def test_they_are_estimators(estimator: Any) -> None:
    """All of scikit-learn's checks, accuracy included (hence the large ε), but those that compare two fits."""
    passes_checks(estimator, 40)


def halves(size: int = 2000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(size, 2))
    return features, np.where(features @ [1.0, -2.0] > 0.2, "yes", "no")


def test_probabilities_without_a_lean_are_probabilities() -> None:
    """Labels by chance, on records that point one way: with a lean the scores are more extreme, as is said there."""
    rng = np.random.default_rng(3)
    features, labels = 1 + 0.1 * rng.normal(size=(2000, 20)), rng.random(2000) < 0.7
    usual: dict[str, Any] = {"epsilon": 2, "norm": 5, "classes": [False, True]}

    def share(**options: Any) -> float:
        fits = [PrivateLogisticRegression(**usual, **options).fit(features, labels) for _ in range(7)]
        return float(np.median([fit.predict_proba(features)[:, 1].mean() for fit in fits]))

    assert share(lean=0) == pytest.approx(0.7, abs=0.04)
    assert share(lean=2) > 0.8


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
    ledger = xp.Ledger(epsilon=3, noise=xp.SeededNoise(0))
    usual: dict[str, Any] = {"epsilon": 2, "test_share": 0.125, "norm": 3, "classes": ["no", "yes"], "ledger": ledger}
    noise = np.random.default_rng(1).permutation(labels)
    model = TestedLogisticRegression(**usual, threshold=0.3).fit(features, noise)
    assert not model.released_
    assert ledger.spent == xp.Cost(0.25) == model.charged_
    assert model.refunded_ == xp.Cost(1.75)
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


SECRETS: dict[str, Any] = {
    "text": "diagnosis 4711",
    "huge": 10**4711,
    "long": np.longdouble("1e4711"),
    "complex": 4711j,
    "numpy's complex": np.complex128(4711j),
    "nothing": None,
    "list": [4711],
    "array": np.array([4711, 4712]),
    "decimal": Decimal("sNaN4711"),
}


@pytest.mark.parametrize("what", SECRETS)
@pytest.mark.parametrize("listed", [False, True])
def test_single_values_never_cause_an_error(what: str, listed: bool) -> None:
    """One odd cell among objects, in X or in y: paid for, silent, and counted as the rules say."""
    features, labels = halves(200)
    odd_features, odd_labels = features.astype(object), (labels == "yes").astype(object)
    odd_features[3, 1] = odd_labels[4] = SECRETS[what]
    ledger = xp.Ledger(epsilon=2)
    model = PrivateLogisticRegression(epsilon=2, norm=3, classes=[False, True], ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if listed:
            model.fit(odd_features.tolist(), odd_labels.tolist())
        else:
            model.fit(odd_features, odd_labels)
        assert model.predict(odd_features).shape == (200,)
    assert ledger.spent == xp.Cost(2)


def test_single_labels_are_compared_one_by_one() -> None:
    features, labels = halves()
    odd = labels.astype(object)
    odd[:9] = [None, 3, b"yes", "Yes", np.nan, ["yes"], 1j, np.str_("no"), {}]
    model = PrivateLogisticRegression(epsilon=5, norm=3, classes=["no", "yes"]).fit(features.tolist(), odd)
    assert model.score(features, labels) > 0.9
    assert numbers_of(odd[:12], np.array(["no", "yes"]))[:9].tolist() == [0] * 9
    assert numbers_of(odd, np.array(["no", "yes"]))[9:].tolist() == (labels == "yes")[9:].tolist()


@pytest.mark.parametrize("estimator", [PrivateLogisticRegression(epsilon=1, norm=1, classes=[0, 1]), ROBUST])
@pytest.mark.parametrize("dtype", [np.complex128, np.longdouble, "U9", "S9", "M8[s]"])
def test_types_are_refused_without_a_word_about_values(estimator: Any, dtype: Any) -> None:
    features, target = np.full((4, 2), 4711).astype(dtype), np.full(4, 4711).astype(dtype)
    ledger = xp.Ledger(epsilon=1, delta=1e-3)
    model = clone(estimator).set_params(ledger=ledger)
    for X, y in ((features, np.zeros(4)), (np.zeros((4, 2)), target), (np.full(4, 4711), target)):
        with pytest.raises(xp.InvalidValue) as refused:
            model.fit(X, y)
        assert "47" not in str(refused.value)
        assert "9" not in str(refused.value)
    assert ledger.spent == xp.Cost(0)


def test_labels_of_another_type_than_the_classes_are_refused() -> None:
    features, labels = halves(50)
    for classes, y in (([0, 1], labels), (["0", "1"], (labels == "yes").astype(int))):
        with pytest.raises(xp.InvalidValue, match="as they are in y"):
            PrivateLogisticRegression(epsilon=1, norm=1, classes=classes).fit(features, y)


def test_a_refused_fit_leaves_everything_as_it_was() -> None:
    features, labels = halves(50)
    ledger = xp.Ledger(epsilon=1)
    model = PrivateLogisticRegression(epsilon=1, norm=1, classes=["no", "yes"], ledger=ledger).fit(features, labels)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(xp.BudgetExceeded):
        model.set_params(classes=[3, 4, 5]).fit(features[:, :1], np.full(50, 3))
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert all(after[name] is value for name, value in before.items())
    assert model.predict(features).shape == (50,)


def test_tables_and_numbers_of_features() -> None:
    class Table:
        """As much of a data frame as scikit-learn looks at."""

        def __init__(self, values: Any, names: list[str]) -> None:
            self.values, self.columns, self.shape = values, np.array(names, object), values.shape
            self.dtypes = [values.dtype] * values.shape[1]

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.values.astype(dtype)

        def __len__(self) -> int:
            return len(self.values)

    features, labels = halves(50)
    model = PrivateLogisticRegression(epsilon=1, norm=1, classes=["no", "yes"]).fit(features, labels)
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.zeros((2, 3)))
    assert features_of(model, Table(features, ["a", "b"]), reset=True).tolist() == features.tolist()


def test_public_mistakes() -> None:
    features, labels = halves(20)
    usual: dict[str, Any] = {"epsilon": 1, "norm": 1, "classes": ["no", "yes"]}
    for wrong, says in (
        ({"classes": "seen"}, "observed"),
        ({"classes": ["yes"]}, "two classes"),
        ({"perturbation": "both"}, "perturbation"),
        ({"fit_intercept": 2}, "intercept"),
        ({"lean": -1}, "lean lies between"),
        ({"lean": 1, "perturbation": "output"}, "lean is for"),
    ):
        with pytest.raises(xp.InvalidValue, match=says):
            PrivateLogisticRegression(**{**usual, **wrong}).fit(features, labels)
    with pytest.raises(xp.InvalidValue, match="one each"):
        PrivateLogisticRegression(**usual).fit(features, labels[:-1])


EARLY: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "norm": 3, "classes": ["no", "yes"]}


def test_training_stops_when_it_is_good_enough_and_the_rest_is_refunded() -> None:
    features, labels = halves(6000)
    ledger = xp.Ledger(epsilon=3, delta=1e-5, noise=xp.SeededNoise(0))
    model = PrivateEarlyStoppingClassifier(**EARLY, good_enough=0.85, ledger=ledger)
    assert model.fit(features, labels).steps_ < 5
    assert ledger.spent == model.charged_ == model.release_.charged
    assert model.charged_.epsilon + model.refunded_.epsilon == pytest.approx(1, abs=0.01)
    assert model.charged_.epsilon < 0.7
    assert model.score_ > 0.85
    assert model.score(features, labels) > 0.85
    model.set_params(good_enough=None, patience=None).fit(features, labels)
    assert (model.steps_, model.score_, model.refunded_.epsilon) == (10, None, 0)
    assert model.score(features, labels) > 0.95
    assert model.coef_.shape == (1, 2)
    assert ((model.predict_proba(features)[:, 1] > 0.5) == (model.predict(features) == "yes")).all()


def test_training_takes_as_many_classes_as_there_are() -> None:
    features, _ = halves(6000)
    labels = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] > 0)
    model = PrivateEarlyStoppingClassifier(**{**EARLY, "classes": range(4)}, patience=None).fit(features, labels)
    assert model.score(features, labels) > 0.9
    chances = model.predict_proba(features)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (chances.argmax(axis=1) == model.predict(features)).all()


def test_probabilities_of_training_are_probabilities() -> None:
    """With much data and all steps: labels by chance, of which seven of ten are of one class."""
    rng = np.random.default_rng(3)
    features, labels = 0.1 * rng.normal(size=(20_000, 3)), rng.random(20_000) < 0.7
    given: dict[str, Any] = {**EARLY, "classes": [False, True], "epsilon": 8, "norm": 1, "steps": 60, "every": 60}
    fit = PrivateEarlyStoppingClassifier(**given, learning_rate=4).fit(features, labels)
    assert fit.predict_proba(features)[:, 1].mean() == pytest.approx(0.7, abs=0.03)


def test_training_is_tuned_by_a_search() -> None:
    features, labels = halves(4000)
    inner = PrivateEarlyStoppingClassifier(**EARLY)
    ledger = xp.Ledger(epsilon=3, delta=1e-3, noise=xp.SeededNoise(0))
    search = PrivateSearchCV(estimator=inner, param_grid={"learning_rate": [0.01, 8]}, ledger=ledger)
    assert search.fit(features, labels).score(features, labels) > 0.85
    assert search.best_estimator_.charged_ == ledger.spent


@pytest.mark.parametrize("what", SECRETS)
def test_training_reads_single_values_without_an_error(what: str) -> None:
    features, labels = halves(200)
    odd_features, odd_labels = features.astype(object), labels.astype(object)
    odd_features[3, 1] = odd_labels[4] = SECRETS[what]
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateEarlyStoppingClassifier(**EARLY, good_enough=0.9, ledger=ledger).fit(odd_features, odd_labels)
    assert model.predict(odd_features).shape == (200,)


def test_public_mistakes_of_training_cost_nothing() -> None:
    features, labels = halves(20)
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    for wrong, says in (
        ({"good_enough": 90}, "such as 0.9"),
        ({"steps": 15, "every": 10}, "multiple of every"),
        ({"patience": 1}, "patience"),
        ({"delta": 0}, "δ"),
    ):
        with pytest.raises(xp.InvalidValue, match=says):
            PrivateEarlyStoppingClassifier(**{**EARLY, **wrong}, ledger=ledger).fit(features, labels)
    assert ledger.spent == xp.Cost(0)
