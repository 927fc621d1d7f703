"""Linear regression with pure ε as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.learn.estimator import LinearPredictor
from expost.ledger import Ledger
from expost.mechanisms import RegressionOfRecords
from expost.mechanisms.linear.box import LinearFit


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

    def _made_for(self, size: int, features: int, known: Any) -> RegressionOfRecords:
        one_for_all = isinstance(self.bounds, tuple | list) and len(self.bounds) == 2 and np.ndim(self.bounds[0]) == 0
        bounds = [self.bounds] * features if one_for_all else self.bounds
        return RegressionOfRecords(**self._settings(bounds=bounds))

    def _keep(self, value: LinearFit, known: Any) -> None:
        self.coef_, self.intercept_ = np.array(value.coefficients), value.intercept
