"""Linear regression by votes as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.cost import exact
from expost.learn.estimator import LinearPredictor
from expost.ledger import Ledger
from expost.mechanism import Withheld
from expost.mechanisms import StableRegression


@dataclass(kw_only=True, eq=False, repr=False)
class StableRegressor(LinearPredictor):
    """Linear regression that one person cannot move: :class:`~expost.mechanisms.StableRegression` with ``fit``.

    Parameters
    ----------
    epsilon
        The whole budget.
    delta
        The δ of every fit.
    cell
        The width of a cell: one for all coefficients, or one each (the intercept's last, if there is one).
    blocks
        The number of blocks that are fitted, at most the number of records.
    bounds
        The public range that features are clamped to. Declare it; do not take it from the data.
    target_bounds
        The public range that the target is clamped to.
    grids
        The number of grids, each shifted by a fraction of a cell.
    fit_intercept
        Whether to fit a constant.
    ledger
        The ledger that is charged. Without one, a ledger of just the budget is made for each fit.

    If the blocks do not agree nothing is released: ``withheld_`` is True, coefficients are 0 and predictions are the
    middle of ``target_bounds``. ``release_`` is the release.

    Proof: thm-regression
    """

    epsilon: Any
    delta: Any
    cell: Any
    blocks: int
    bounds: Any
    target_bounds: Any
    grids: int = 2
    fit_intercept: bool = True
    ledger: Ledger | None = None

    def _made_for(self, size: int, features: int, known: Any) -> StableRegression:
        return StableRegression(**self._settings(blocks=min(self.blocks, size)))

    def _keep(self, value: Any, known: Any) -> None:
        self.withheld_ = isinstance(value, Withheld)
        middle = float(sum(exact(bound, "target_bounds") for bound in self.target_bounds) / 2)
        values = [0.0] * self.n_features_in_ + [middle] if self.withheld_ else [*value.values]
        self.coef_ = np.array(values[: self.n_features_in_])
        self.intercept_ = values[-1] if self.fit_intercept or self.withheld_ else 0.0
