"""How good a released classifier is on private records."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor

from expost.cost import Number
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.ledger import Ledger
from expost.mechanisms import Laplace
from expost.mechanisms.numbers import owned
from expost.recipes import RecipeResult


def private_score(ledger: Ledger, model: Any, X: Any, y: Any, *, epsilon: Number) -> RecipeResult[float]:  # noqa: N803
    """The share of records that a classifier labels right, with Laplace noise. The number of records is public.

    ``model.score`` is exact and not private; this is. ``model`` must be public: released by a mechanism, or trained on
    other data. It is charged besides what training it cost, also if the records are those it was trained on, and then
    the score is too good: hold some out.

    >>> from sklearn.dummy import DummyClassifier
    >>> ones = DummyClassifier(strategy="constant", constant=1).fit([[0]], [1])
    >>> from expost import SeededNoise
    >>> ledger = Ledger(epsilon=1, noise=SeededNoise(1))
    >>> print(private_score(ledger, ones, [[0]] * 1000, [0, 1, 1, 1] * 250, epsilon=0.5))
    accuracy 0.752 ± 0.006 at 95 % · charged ε 0.5

    Proof: thm-laplace
    """
    if isinstance(model, BaseEstimator) and is_regressor(model):
        raise InvalidValue(
            f"a score is a share of right classes, and {type(model).__name__} predicts numbers: ask for their mean "
            "error, as in ledger.run(xp.Mean(bounds=(0, 100)), on=abs(model.predict(X) - y), epsilon=0.1)"
        )
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(X) or not len(labels):
        raise InvalidValue(f"there are {len(X)} rows of features and labels of shape {labels.shape}: give one each")
    counter = Laplace(epsilon=epsilon, sensitivity=1, neighbours="substitute")
    right = int(np.count_nonzero(np.asarray(model.predict(X)) == labels))
    release = ledger.run(counter, on=owned(right, X, y), label=f"right predictions of {len(labels)}")
    share = release.value / len(labels)
    score = min(max(float(share), 0.0), 1.0)
    shown: Any = share if score == share else Estimate.within(score, share.error, (release.origin, "share"))
    return RecipeResult(shown, (release,), f"accuracy {score:.3f} ± {share.error:.3f} at 95 %")
