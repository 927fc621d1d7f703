"""Private linear classifiers as scikit-learn estimators: with noise, with early stopping, and behind a private test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from expost.errors import InvalidValue
from expost.learn.estimator import PrivateEstimator
from expost.learn.reading import check_label_type, features_of, labels_of, numbers_of
from expost.ledger import Ledger
from expost.mechanism import WITHHELD, Mechanism
from expost.mechanisms import (
    CorrectPredictions,
    LinearModel,
    LogisticDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Score,
)
from expost.mechanisms import TestedLogisticRegression as _Tested


class _LinearClassifier(ClassifierMixin, PrivateEstimator):
    """Fit by running a mechanism once, predict by the model that it released."""

    classes: Any

    def _mechanism(self, classes: int) -> Mechanism:
        raise NotImplementedError

    def _read(self, y: Any, size: int) -> tuple[NDArray[np.float64], Any]:
        labels, classes = _declared(self.classes, labels_of(y, size, type(self).__name__))
        return numbers_of(labels, classes), classes

    def _made_for(self, size: int, features: int, known: Any) -> Mechanism:
        return self._mechanism(len(known))

    def _score(self, known: Any) -> Score:
        return CorrectPredictions(classes=len(known))

    def _keep(self, value: Any, known: Any) -> None:
        self.classes_ = known
        self.released_ = value is not WITHHELD
        if self.released_:
            self.model_: LinearModel = value
            self.coef_, self.intercept_ = self.model_.coefficients, self.model_.intercepts
        else:
            for name in ("model_", "coef_", "intercept_"):
                self.__dict__.pop(name, None)

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """How far each row is on the side of the second class; or, with more than two, of each class."""
        model = self._model()
        margins = model.margins(self._rows(X))
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The class of each row."""
        model = self._model()
        return np.asarray(self.classes_[model.predict(self._rows(X))])

    def _model(self) -> LinearModel:
        check_is_fitted(self, "classes_")
        if not self.released_:
            raise NotFittedError(
                f"this {type(self).__name__} was withheld by its test: there is no model, and nothing but the test was "
                "paid for; look at `released_` before predicting"
            )
        return self.model_

    def _rows(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        return features_of(self, X, reset=False)


class _Probabilities:
    """Probabilities from logistic margins."""

    classes_: Any

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The probability of each class; with more than two, those of the single problems, scaled to sum to one.

        With a lean above 0, as by default with little data for ε, they are scores between 0 and 1 and no more: the
        leaning loss is least elsewhere than at the log-odds. ``lean=0`` is for probabilities.
        """
        margins = np.asarray(self.decision_function(X))  # type: ignore[attr-defined]
        yes = 0.5 * np.tanh(0.5 * margins) + 0.5
        if margins.ndim == 1:
            return np.column_stack([1 - yes, yes])
        total = yes.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, yes / np.where(total > 0, total, 1), 1 / yes.shape[1]), np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class _PerturbedClassifier(_LinearClassifier):
    """A linear model by objective or by output perturbation."""

    loss: ClassVar[Literal["logistic", "huber"]]

    epsilon: Any
    norm: Any
    classes: Any
    perturbation: Literal["objective", "output"] = "objective"
    regularizer: Any = None
    lean: Any = None
    fit_intercept: bool = True
    missing: Any = 0
    ledger: Ledger | None = None

    def _mechanism(self, classes: int) -> Mechanism:
        given = self._settings(classes=classes, loss=self.loss)
        del given["perturbation"]
        if self.perturbation == "objective":
            return ObjectivePerturbation(**given)
        if self.perturbation != "output":
            raise InvalidValue(f"perturbation is 'objective' or 'output', got {self.perturbation!r}")
        if given.pop("lean") is not None:
            raise InvalidValue(f"lean is for perturbation='objective'; with 'output' leave it out, got {self.lean!r}")
        return OutputPerturbation(**given)


class PrivateLogisticRegression(_Probabilities, _PerturbedClassifier):
    """Logistic regression, ε-differentially private: :class:`~expost.mechanisms.ObjectivePerturbation` with ``fit``.

    Parameters
    ----------
    epsilon
        The whole budget. A fit costs all of it.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The labels that may occur, declared. Any other label counts as the first. ``"observed"`` takes them from y, and
        is for labels that everybody knows to occur.
    perturbation
        ``"objective"``, or ``"output"`` for :class:`~expost.mechanisms.OutputPerturbation`.
    regularizer
        Λ. By default chosen for accuracy under noise.
    lean
        By default chosen for accuracy under noise. 0 fits the logistic loss as it is.
    fit_intercept
        Whether to fit a constant.
    missing
        What NaN counts as.
    ledger
        The ledger that is charged. Without one, a ledger of just the budget is made for each fit.

    Proof: thm-objective-perturbation
    """

    loss = "logistic"


class PrivateLinearSVC(_PerturbedClassifier):
    """A linear support vector machine with a smooth (Huber) hinge loss, ε-differentially private.

    Parameters
    ----------
    epsilon
        The whole budget. A fit costs all of it.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The labels that may occur, declared. Any other label counts as the first. ``"observed"`` takes them from y, and
        is for labels that everybody knows to occur.
    perturbation
        ``"objective"``, or ``"output"`` for :class:`~expost.mechanisms.OutputPerturbation`.
    regularizer
        Λ. By default chosen for accuracy under noise.
    lean
        As of :class:`PrivateLogisticRegression`. By default 0.
    fit_intercept
        Whether to fit a constant.
    missing
        What NaN counts as.
    ledger
        The ledger that is charged. Without one, a ledger of just the budget is made for each fit.

    Proof: thm-objective-perturbation
    """

    loss = "huber"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEarlyStoppingClassifier(_LinearClassifier):
    """Logistic regression that trains until it is good enough, and pays for the steps that it took.

    Parameters
    ----------
    epsilon
        The whole budget, for all steps. Fewer steps cost less.
    delta
        The δ of every fit.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The labels that may occur, declared. Any other label counts as the first. ``"observed"`` takes them from y, and
        is for labels that everybody knows to occur. More classes need no more ε.
    good_enough
        An accuracy, such as 0.9: training stops as soon as the share of records held out that are labelled right,
        measured with noise, says with 95 % confidence that it is at least that. None trains on all records, and holds
        none out.
    held_out
        The share of records that are held out for ``good_enough``.
    steps
        The largest number of steps. With much data for ε more are better, such as 30.
    every
        The number of steps between places where it may stop, of which there are at most 100.
    patience
        Training stops, too, if the last so many gradients disagree. None never does.
    learning_rate
        How far a step goes. By default chosen from public facts: the less noise, the farther.
    fit_intercept
        Whether to fit a constant.
    missing
        What NaN counts as.
    ledger
        The ledger that is charged. Without one, a ledger of just the budget is made for each fit.

    After ``fit``: ``steps_``, ``charged_``, ``refunded_`` and ``score_``, the last noisy accuracy on records held out,
    or None; ``coef_``, ``intercept_``, ``classes_``, ``model_``, and ``release_``, the receipt. The mechanism is
    :class:`~expost.mechanisms.LogisticDescent`.

    Proof: thm-descent
    """

    epsilon: Any
    delta: Any
    norm: Any
    classes: Any
    good_enough: Any = None
    held_out: Any = "0.3"
    steps: int = 10
    every: int = 1
    patience: int | None = 6
    learning_rate: Any = None
    fit_intercept: bool = True
    missing: Any = 0
    ledger: Ledger | None = None

    def _mechanism(self, classes: int) -> Mechanism:
        return LogisticDescent(**self._settings(classes=classes))

    def _keep(self, value: Any, known: Any) -> None:
        super()._keep(value, known)
        self.steps_, self.score_ = value.steps, value.score

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Scores of the classes that sum to one, larger where the margin is.

        They are probabilities only as far as noise and the number of steps allow: small weights, as with little data
        for ε, leave all of them near the middle.
        """
        margins = self._model().margins(self._rows(X))
        if margins.shape[1] == 1:
            return _of_two(np.tanh(0.5 * margins[:, 0]))
        odds = np.exp(margins - margins.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float64)


def _of_two(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probabilities for which a margin m, given as tanh(m/2), is least in the loss that descent is for.

    Its slopes are −½ at most, so that p·σ(−m) = (1 − p)/2 where the second class is the likelier one.
    """
    likelier = 1 / (2 - np.abs(sides))
    second = np.where(sides > 0, likelier, 1 - likelier)
    return np.asarray(np.column_stack([1 - second, second]), np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class TestedLogisticRegression(_Probabilities, _LinearClassifier):
    """Logistic regression that is released only if its error on held-out records is small.

    Parameters
    ----------
    epsilon
        The whole budget, which a model costs.
    test_share
        What the test costs as a share of ε.
    threshold
        The largest error that passes: twice the mean probability that the model gives to the wrong class. 0 is perfect,
        1 knows nothing; 0.6 asks for 70 % for the right class on average. Of two classes, at most a share of
        ``threshold`` of the predictions is wrong, and half of it if the probabilities are right.
    norm
        The public length of the longest row of features. Rows are divided by it, and those still longer than one are
        shortened to one.
    classes
        The labels that may occur, declared. Any other label counts as the first. ``"observed"`` takes them from y, and
        is for labels that everybody knows to occur.
    held_out
        The share of records for the test.
    regularizer
        Λ. By default chosen so that the test can tell.
    fit_intercept
        Whether to fit a constant.
    missing
        What NaN counts as.
    ledger
        The ledger that is charged. Without one, a ledger of just the budget is made for each fit.

    ``released_`` says whether there is a model; predicting without one raises NotFittedError. ``charged_`` and
    ``refunded_`` are what it cost and what came back, and ``release_`` is the receipt. The mechanism is
    :class:`expost.mechanisms.TestedLogisticRegression`.

    Proof: thm-tested-logistic
    """

    __test__ = False  # not one of pytest's

    epsilon: Any
    test_share: Any
    threshold: Any
    norm: Any
    classes: Any
    held_out: Any = "0.3"
    regularizer: Any = None
    fit_intercept: bool = True
    missing: Any = 0
    ledger: Ledger | None = None

    def _mechanism(self, classes: int) -> Mechanism:
        return _Tested(**self._settings(classes=classes))


def _declared(classes: Any, labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels, and the classes, sorted: those declared; or, if they are declared to be public, those that occur."""
    if isinstance(classes, str):
        if classes != "observed":
            raise InvalidValue(f"classes are a list of labels, or 'observed', got {classes!r}")
        labels = np.asarray(labels.tolist()) if labels.dtype == object else labels
        check_label_type(labels.dtype)
        check_classification_targets(labels)
        known = np.unique(labels)
    else:
        known = np.unique(np.asarray(classes))
    if len(known) < 2:
        raise InvalidValue(f"a classifier needs at least two classes, got {len(known)} class")
    return labels, known
