"""What estimators say about what is recorded, scaling by public bounds, and a private score."""

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import expost.learn
from expost import InvalidValue, Ledger, Mean, SeededNoise
from expost.errors import LedgerUnavailable, UnrecordedWarning
from expost.learn import (
    EXPECTED_FAILED_CHECKS,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PublicScaler,
    expected_failed_checks,
    private_score,
)

RNG = np.random.default_rng(1)
X = RNG.uniform(0, 10, (400, 2))
Y = (X[:, 0] > 5).astype(int)


def model(ledger: Ledger | None, epsilon: float = 5) -> Any:
    return PrivateLogisticRegression(epsilon=epsilon, norm=1, classes=[0, 1], ledger=ledger)


def test_without_a_ledger_it_says_that_nothing_is_recorded() -> None:
    with pytest.warns(UnrecordedWarning, match=r"PrivateLogisticRegression has no ledger: its ε is recorded nowhere"):
        model(None).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(Ledger(epsilon=5)).fit(X, Y)


def test_workers_say_what_to_do_about_a_ledger_in_memory() -> None:
    """What n_jobs=2 does is to pickle the estimator and fit the copy."""
    ledger = Ledger(epsilon=5)
    sent = pickle.loads(pickle.dumps(model(ledger)))
    with pytest.raises(LedgerUnavailable, match="in the memory of another process: use n_jobs=1, or a durable ledger"):
        sent.fit(X, Y)
    assert ledger.spent.epsilon == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_all_workers_say_it() -> None:
    """Workers that are forked get the estimator pickled, as others do, and start in a moment."""
    with (
        parallel_config(backend="multiprocessing"),
        pytest.raises(ValueError, match="use n_jobs=1, or a durable ledger"),
    ):
        cross_val_score(model(Ledger(epsilon=5)), X, Y, n_jobs=2, cv=2)


def test_copies_in_the_same_process_spend_from_the_one_ledger(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=15)
    for copied in (copy.copy(model(ledger)), copy.deepcopy(model(ledger))):
        copied.fit(X, Y)
    assert ledger.spent.epsilon == 10
    fitted = pickle.loads(pickle.dumps(model(ledger).fit(X, Y)))
    assert fitted.predict(X).shape == Y.shape
    durable = Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 5, neighbours="substitute", unit="row")
    pickle.loads(pickle.dumps(model(durable))).fit(X, Y)
    assert durable.spent.epsilon == 5


def test_a_scaler_learns_nothing_from_values() -> None:
    """The control learns from one record, and shows it to all others."""
    other = X.copy()
    other[7] = 1e9
    scaler = PublicScaler(bounds=(0, 10))
    assert np.array_equal(np.delete(scaler.fit_transform(X), 7, 0), np.delete(scaler.fit_transform(other), 7, 0))
    leaky = StandardScaler()
    assert not np.allclose(np.delete(leaky.fit_transform(X), 7, 0), np.delete(leaky.fit_transform(other), 7, 0))


@pytest.mark.parametrize("norm", [1, 3])
def test_rows_are_at_most_as_long_as_the_norm(norm: int) -> None:
    rows = np.array([[np.inf, -np.inf], [np.nan, 5], [0, 10], [5, 5], [1e308, -1e308]])
    scaled = PublicScaler(bounds=[(0, 10), (0, 10)], norm=norm).fit_transform(rows)
    assert np.linalg.norm(scaled, axis=1).tolist() == pytest.approx([norm, 0, norm, 0, norm])


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([(0, 1)] * 3, "there are 2 features and bounds for 3"),
        ((5, 5), "differ"),
        ("x", "bounds are a pair"),
    ],
)
def test_bounds_that_are_none(bounds: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        PublicScaler(bounds=bounds).fit(X)


def test_scikit_learn_accepts_the_scaler() -> None:
    scaler = PublicScaler(bounds=(-10, 10))
    check_estimator(scaler, on_skip=None, expected_failed_checks=expected_failed_checks(scaler))


def test_every_estimator_says_which_checks_it_may_fail_and_why() -> None:
    kinds = {name for name in vars(expost.learn)["__all__"] if isinstance(getattr(expost.learn, name), type)}
    assert set(EXPECTED_FAILED_CHECKS) == kinds
    reasons = [reason for found in EXPECTED_FAILED_CHECKS.values() for reason in found.values()]
    assert all(len(reason) > 20 for reason in reasons)


def test_a_regression_has_no_share_of_right_classes() -> None:
    ledger = Ledger(epsilon=2, noise=SeededNoise(1))
    model = PrivateLinearRegression(epsilon=1, bounds=(-1, 1), target_bounds=(0, 1), ledger=ledger)
    features, target = np.linspace(-1, 1, 90).reshape(-1, 1), np.linspace(0, 1, 90)
    with pytest.raises(InvalidValue, match="PrivateLinearRegression predicts numbers"):
        private_score(ledger, model.fit(features, target), features, target, epsilon=0.5)
    assert ledger.remaining.epsilon == 1
    assert ledger.run(Mean(bounds=(0, 1)), on=abs(model.predict(features) - target), epsilon=0.5).value < 1


def test_a_private_score_is_near_the_exact_one_and_is_charged() -> None:
    ledger = Ledger(epsilon=10, noise=SeededNoise(2))
    pipeline = make_pipeline(PublicScaler(bounds=(0, 10)), model(ledger)).fit(X[:200], Y[:200])
    found = [private_score(ledger, pipeline, X[200:], Y[200:], epsilon=0.5) for _ in range(4)]
    exact = float(np.mean(pipeline.predict(X[200:]) == Y[200:]))
    assert [score.value for score in found] == pytest.approx([exact] * 4, abs=0.1)
    assert len({score.value for score in found}) > 1, "it has noise"
    assert all(0 <= score.value <= 1 for score in found)
    assert found[0].charged.epsilon == 0.5
    assert ledger.spent.epsilon == 7
    with pytest.raises(InvalidValue, match="give one each"):
        private_score(ledger, pipeline, X, Y[:3], epsilon=1)
