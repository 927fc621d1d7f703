"""Linear regression with pure ε as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from expost.learn.reading import features_of, note_features, target_of
from expost.ledger import Ledger
from expost.mechanisms import LinearRegression


class PrivateLinearRegression(RegressorMixin, BaseEstimator):
    """Linear regression with pure ε: :class:`~expost.mechanisms.LinearRegression` with ``fit`` and ``predict``.

    After ``fit``, ``coef_`` and ``intercept_`` are what was released, and ``release_`` is the receipt.

    Parameters
    ----------
    epsilon
        The whole budget of one fit.
    bounds
        A pair (lowest, highest) for all features, or a list with one for each. Public: declare them, do not take them
        from the data.
    target_bounds
        Between which the target lies.
    ledger
        What pays; without one, a ledger of just ``epsilon`` is made for each fit.

    Proof: thm-linear-regression
    """

    def __init__(self, *, epsilon: Any, bounds: Any, target_bounds: Any, ledger: Ledger | None = None) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.ledger = ledger

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Run the mechanism once and keep what it released."""
        seen = clone(self)  # what is learnt from the data's shape is kept only if the run succeeds
        X = features_of(seen, X, reset=True)  # noqa: N806
        y = target_of(y, len(X), type(self).__name__)
        mechanism = self._mechanism(X.shape[1])
        ledger = Ledger(epsilon=mechanism.epsilon) if self.ledger is None else self.ledger
        self.release_ = ledger.run(mechanism, on=np.column_stack([X, y]))
        note_features(self, seen)
        self.coef_ = np.array(self.release_.value.coefficients)
        self.intercept_ = self.release_.value.intercept
        return self

    def _mechanism(self, features: int) -> LinearRegression:
        one_for_all = isinstance(self.bounds, tuple | list) and len(self.bounds) == 2 and np.ndim(self.bounds[0]) == 0
        bounds = [self.bounds] * features if one_for_all else self.bounds
        return LinearRegression(epsilon=self.epsilon, bounds=bounds, target_bounds=self.target_bounds)

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The linear function that was released."""
        check_is_fitted(self)
        return np.asarray(features_of(self, X, reset=False) @ self.coef_ + self.intercept_, np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # private values never cause an error; they count as 0, and ±∞ as a bound
        tags.input_tags.string = True  # and so does a cell that is not a number, among Python objects
        tags.non_deterministic = True  # by its noise
        tags.regressor_tags.poor_score = True  # the bounds are those of the data at hand, not of any test
        return tags
