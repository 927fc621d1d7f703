"""Linear regression with pure ε as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from expost.learn.estimator import LinearPredictor
from expost.learn.reading import features_of, note_features, target_of
from expost.ledger import Ledger
from expost.mechanisms import LinearRegression


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(LinearPredictor):
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

    epsilon: Any
    bounds: Any
    target_bounds: Any
    ledger: Ledger | None = None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Run the mechanism once and keep what it released."""
        seen = clone(self)  # what is learnt from the data's shape is kept only if the run succeeds
        X = features_of(seen, X, reset=True)  # noqa: N806
        y = target_of(y, len(X), type(self).__name__)
        self.release_ = self._run(self._mechanism(X.shape[1]), X, y)
        note_features(self, seen)
        self.coef_ = np.array(self.release_.value.coefficients)
        self.intercept_ = self.release_.value.intercept
        return self

    def _mechanism(self, features: int) -> LinearRegression:
        one_for_all = isinstance(self.bounds, tuple | list) and len(self.bounds) == 2 and np.ndim(self.bounds[0]) == 0
        bounds = [self.bounds] * features if one_for_all else self.bounds
        return LinearRegression(epsilon=self.epsilon, bounds=bounds, target_bounds=self.target_bounds)
