"""Features scaled by public bounds: nothing is learnt from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from expost.checks import as_bounds, as_positive
from expost.errors import InvalidValue
from expost.learn.reading import features_of
from expost.mechanisms.numbers import owned
from expost.mentions import brief


@dataclass(kw_only=True, eq=False, repr=False)
class PublicScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale features by bounds that are known without the data: each row is then at most ``norm`` long.

    scikit-learn's ``StandardScaler`` and ``MinMaxScaler`` learn from private values and publish what they learnt. This
    one learns nothing but the number of features, and costs nothing. Values beyond the bounds are moved there, and NaN
    is the middle. The middle of the bounds becomes 0.

    Parameters
    ----------
    bounds
        A pair (lowest, highest) for all features, or a list with one for each. Public: declare them, do not take them
        from the data.
    norm
        How long the longest possible row becomes: the ``norm`` of the estimator that follows.

    >>> PublicScaler(bounds=[(0, 110), (0, 200)]).fit_transform([[55, 200], [110, 900]]).round(3).tolist()
    [[0.0, 0.707], [0.707, 0.707]]
    """

    bounds: Any
    norm: Any = 1

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Note the number and names of the features. No value is read."""
        width = features_of(self, X, reset=True).shape[1]
        self.center_, self.scale_ = self._linear(width)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The rows, scaled."""
        rows = features_of(self, X, reset=False)
        with np.errstate(all="ignore"):
            within = np.nan_to_num(np.clip((rows - self.center_) / self.scale_, -1, 1))
        scaled = np.asarray(within * (float(as_positive(self.norm, "norm")) / np.sqrt(rows.shape[1])), np.float64)
        return cast(NDArray[np.float64], owned(scaled, X))

    def _linear(self, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The middle of each feature's bounds, and half of what they are apart."""
        one_for_all = np.ndim(self.bounds) == 1 and len(self.bounds) == 2
        pairs = [as_bounds(pair) for pair in ([self.bounds] * width if one_for_all else self.bounds)]
        if len(pairs) != width:
            raise InvalidValue(
                f"there are {width} features and bounds for {len(pairs)}: give one pair each, or one for all"
            )
        low, high = np.array(pairs, np.float64).T
        if not (low < high).all():
            raise InvalidValue(
                f"bounds that are equal leave nothing to scale, got {brief(self.bounds)}: give a lowest and a highest "
                "value that differ"
            )
        return (low + high) / 2, (high - low) / 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags
