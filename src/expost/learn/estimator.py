"""What the estimators share: a fit runs one mechanism, and a ledger pays for it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from expost.errors import LedgerUnavailable, UnrecordedWarning
from expost.learn.reading import features_of, note_features, target_of
from expost.ledger import Ledger
from expost.mechanism import Mechanism, Out, Release
from expost.mechanisms import MeanAbsoluteError, Score
from expost.mechanisms.numbers import owned

_UNRECORDED = (
    "{} has no ledger: its ε is recorded nowhere, and does not add up with that of other fits. Pass ledger=Ledger(…), "
    "or a durable one"
)


@dataclass(frozen=True)
class LedgerElsewhere:
    """Stands for a ledger in the memory of another process, as in a worker of ``n_jobs=2``. Nothing can be charged."""

    name: str

    def run(self, mechanism: Any, *, on: Any) -> Any:
        """Refused: a copy could spend the budget twice."""
        raise LedgerUnavailable(
            f"ledger {self.name!r} is in the memory of another process: use n_jobs=1, or a durable ledger "
            "(Ledger.create), which processes share"
        )


def _in_memory(ledger: Any) -> bool:
    try:
        return isinstance(ledger, Ledger) and not ledger.__reduce__()
    except TypeError:
        return True


class PrivateEstimator(BaseEstimator):
    """An estimator that runs a mechanism once, and knows what its kind of data may hold."""

    ledger: Ledger | None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Run the mechanism once and keep what it released."""
        seen = clone(self)  # what is learnt from the data's shape is kept only if the run succeeds
        rows = features_of(seen, X, reset=True)
        target, known = self._read(y, len(rows))
        data = owned(np.column_stack([rows, target]), X, y)
        self._paid(self._run(self._made_for(len(rows), rows.shape[1], known), data))
        note_features(self, seen)
        self._keep(self.release_.output, known)
        return self

    @abstractmethod
    def _read(self, y: Any, size: int) -> tuple[NDArray[np.float64], Any]:
        """The target as numbers, one for each of ``size`` rows; and what is publicly known of it."""

    @abstractmethod
    def _made_for(self, size: int, features: int, known: Any) -> Mechanism:
        """The mechanism for data of this shape."""

    @abstractmethod
    def _keep(self, value: Any, known: Any) -> None:
        """Keep what was released."""

    @abstractmethod
    def _score(self, known: Any) -> Score:
        """How good a release is, for a search."""

    def _paid(self, release: Release[Any]) -> None:
        """Keep the receipt."""
        self.release_, self.charged_, self.refunded_ = release, release.charged, release.refunded

    def _settings(self, **own: Any) -> dict[str, Any]:
        """The parameters as mechanisms take them: without the ledger, and with ``fit_intercept`` as ``intercept``."""
        given = {**self.get_params(deep=False), **own}
        del given["ledger"]
        return {name.removeprefix("fit_"): value for name, value in given.items()}

    def _run(self, mechanism: Mechanism[Any, Out], data: NDArray[Any]) -> Release[Out]:
        """The release for this data, the target last. Without a ledger, one of just the budget pays, and warns."""
        if self.ledger is None:
            warnings.warn(_UNRECORDED.format(type(self).__name__), UnrecordedWarning, stacklevel=3)
        worst = mechanism.guarantee.worst_case
        ledger = Ledger(worst.exact_epsilon, worst.exact_delta) if self.ledger is None else self.ledger
        return ledger.run(mechanism, on=data)

    def __getstate__(self) -> Any:
        """What is pickled: a ledger in memory stays where it is."""
        state = super().__getstate__()
        ledger = state.get("ledger")
        return {**state, "ledger": LedgerElsewhere(ledger.name)} if _in_memory(ledger) else state

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

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
    target_bounds: Any

    def _read(self, y: Any, size: int) -> tuple[NDArray[np.float64], Any]:
        return target_of(y, size, type(self).__name__), None

    def _score(self, known: Any) -> Score:
        return MeanAbsoluteError(bounds=self.target_bounds)

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The linear function that was released."""
        check_is_fitted(self)
        return np.asarray(features_of(self, X, reset=False) @ self.coef_ + self.intercept_, np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the bounds are those of the data at hand, not of any test
        return tags
