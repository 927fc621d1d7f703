"""What the estimators share: a fit runs one mechanism, and a ledger pays for it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from expost.learn.reading import features_of
from expost.ledger import Ledger
from expost.mechanism import Mechanism, Release

Out = TypeVar("Out")


class PrivateEstimator(BaseEstimator):
    """An estimator that runs a mechanism once, and knows what its kind of data may hold."""

    ledger: Ledger | None

    def _run(self, mechanism: Mechanism[Any, Out], rows: NDArray[Any], target: NDArray[Any]) -> Release[Out]:
        """The release for this data, the target last. Without a ledger, one of just the budget pays."""
        worst = mechanism.guarantee.worst_case
        ledger = Ledger(worst.exact_epsilon, worst.exact_delta) if self.ledger is None else self.ledger
        return ledger.run(mechanism, on=np.column_stack([rows, target]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # private values never cause an error: each mechanism says what they count as
        tags.input_tags.string = True  # and so does a cell that is not a number, among Python objects
        tags.non_deterministic = True  # by the noise
        return tags


class LinearPredictor(RegressorMixin, PrivateEstimator):
    """A regressor that predicts by the coefficients that were released."""

    coef_: NDArray[np.float64]
    intercept_: float

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The linear function that was released."""
        check_is_fitted(self)
        return np.asarray(features_of(self, X, reset=False) @ self.coef_ + self.intercept_, np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the bounds are those of the data at hand, not of any test
        return tags
