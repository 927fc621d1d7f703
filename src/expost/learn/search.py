"""Private tuning of estimators in the style of scikit-learn's searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from expost.checks import as_whole
from expost.cost import exact
from expost.errors import InvalidValue
from expost.learn.estimator import PrivateEstimator
from expost.learn.reading import features_of, note_features
from expost.ledger import Ledger
from expost.mechanisms import Tuning
from expost.mechanisms.linear.tested import held_out_size
from expost.mechanisms.numbers import owned
from expost.mechanisms.tuning.tuning import MOST_CANDIDATES

_SAME = ("classes", "target_bounds", "ledger")
"""What all candidates share."""


def _of_estimator(name: str) -> Callable[[Any], bool]:
    """Whether the estimator has a method."""
    return lambda search: hasattr(search.estimator, name)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):
    """The best of several parameters of a private estimator, at twice the price of one fit.

    A random number of times a candidate is drawn at random, fitted to some of the records and scored, with noise, on
    the others. The best fit is released; all others stay unseen and cost nothing. There is no second fit: what was
    scored is what is released.

    Parameters
    ----------
    estimator
        A private estimator that always answers, such as :class:`PrivateLogisticRegression`. It has no ledger.
    param_grid
        Lists of values by parameter, or a list of such grids, as for scikit-learn's ``GridSearchCV``. ``epsilon`` may
        be among them.
    held_out
        The share of records for scores.
    good_enough
        A score that is enough: among fits that reach it, one with less ε is better. By default the best score is.
        Scores are the share of right predictions, or minus the mean distance from the target.
    factor
        The price in multiples of ε, above 1 and at most 3. Less means fewer runs.
    runs
        The more, the more runs. With factor 2 there are runs/ln(runs) on average.
    ledger
        The ledger that is charged. Without one, a ledger of just the worst case is made for each fit.

    A fit that is good enough costs ``factor`` times its ε. Any other costs its ε, and factor − 1 times the largest ε
    of all candidates. Candidates are fixed before the data is looked at. How long a search took tells the number of
    runs, which must stay private.

    After ``fit``: ``best_estimator_``, ``best_params_``, ``best_index_``, ``best_score_`` (with noise),
    ``good_enough_``, ``charged_``, ``refunded_`` and ``release_``, the receipt. The mechanism is
    :class:`expost.Tuning`.

    Proof: thm-tuning
    """

    estimator: Any
    param_grid: Any
    held_out: Any = "0.3"
    good_enough: Any = None
    factor: Any = 2
    runs: int = 100
    ledger: Ledger | None = None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Search once and keep what was released."""
        candidates = self._candidates()
        seen = clone(self)  # what is learnt from the data's shape is kept only if the run succeeds
        rows = features_of(seen, X, reset=True)
        target, known = self.estimator._read(y, len(rows))
        data = owned(np.column_stack([rows, target]), X, y)
        release = self._run(self._tuning(candidates, rows.shape, known), data)
        note_features(self, seen)
        self._paid(release)
        found = release.output
        self.best_index_, self.best_score_, self.good_enough_ = found.candidate, found.score, found.met
        self.best_params_, self.best_estimator_ = candidates[found.candidate]
        note_features(self.best_estimator_, seen)
        self.best_estimator_._paid(release)
        self.best_estimator_._keep(found.value, known)
        return self

    def _candidates(self) -> list[tuple[dict[str, Any], Any]]:
        """The parameters and the estimator of each candidate."""
        name = type(self.estimator).__name__
        if not isinstance(self.estimator, PrivateEstimator) or isinstance(self.estimator, PrivateSearchCV):
            raise InvalidValue(f"the estimator is a private one, such as PrivateLogisticRegression(…), got {name}")
        if self.estimator.ledger is not None:
            raise InvalidValue(f"the search pays for all fits: give the ledger to it, and none to the {name}")
        grids = [self.param_grid] if isinstance(self.param_grid, Mapping) else self.param_grid
        shared = sorted({key for grid in grids for key in grid} & set(_SAME))
        if shared:
            raise InvalidValue(f"{shared[0]} is the same for all candidates: give it to the {name}, not to param_grid")
        grid = ParameterGrid(self.param_grid)
        as_whole(len(grid), "the number of combinations in param_grid", most=MOST_CANDIDATES)
        chosen = [dict(parameters) for parameters in grid]
        return [(parameters, clone(self.estimator).set_params(**parameters)) for parameters in chosen]

    def _tuning(self, candidates: list[tuple[dict[str, Any], Any]], shape: tuple[int, ...], known: Any) -> Tuning:
        training = shape[0] - held_out_size(shape[0], exact(self.held_out, "held_out"))
        return Tuning(
            candidates=tuple(each._made_for(training, shape[1], known) for _, each in candidates),
            score=self.estimator._score(known),
            held_out=self.held_out,
            good_enough=self.good_enough,
            factor=self.factor,
            runs=self.runs,
        )

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, of a classifier."""
        return np.asarray(self._best().classes_)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The predictions of the best estimator."""
        return np.asarray(self._best().predict(X))

    @available_if(_of_estimator("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The probabilities of the best estimator."""
        return np.asarray(self._best().predict_proba(X))

    @available_if(_of_estimator("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The margins of the best estimator."""
        return np.asarray(self._best().decision_function(X))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The best estimator's own score on other data."""
        return float(self._best().score(X, y))

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags
