"""Moments of a private table, with bounds or without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from expost.cost import Number
from expost.data.expression import NUMBER_KINDS, Expression
from expost.data.moments import Moments
from expost.data.searched import Searched
from expost.data.sums import Clipped, Mean
from expost.data.winsorized import WinsorizedMean
from expost.errors import InvalidValue

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


class MomentQuestions:
    """Means, variances, covariances, correlations and regressions of a table."""

    @property
    def _own(self) -> PrivateTable:
        return cast("PrivateTable", self)

    @overload
    def mean(
        self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop", grid: Number | None = None
    ) -> Mean: ...
    @overload
    def mean(self, value: str, *, bounds: None = None, missing: Number | str = "drop") -> Searched: ...
    def mean(
        self,
        value: str,
        *,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
    ) -> Mean | Searched:
        """The mean of a column or an expression; parameters as for :meth:`sum`.

        Without bounds, a search finds a range first, and the ε that it does not use is refunded.
        """
        if bounds is None:
            if grid is not None:
                raise InvalidValue("a grid is for values within bounds: give bounds, or leave it out")
            return Searched.of(self._own, "mean", self._values("mean", value), missing)
        (averaged,) = self._values("mean", value)
        return Mean(self._own, Clipped.of(averaged, bounds, missing, grid))

    def winsorized_mean(
        self,
        value: str,
        *,
        trim: Number,
        bounds: tuple[Number, Number] | None = None,
        missing: Number | str = "drop",
        grid: Number | None = None,
    ) -> WinsorizedMean:
        """The mean of values clamped to their quantiles ``trim`` and 1 − ``trim``; otherwise as :meth:`quantile`.

        Bounds may be loose, or left out.
        """
        (averaged,) = self._values("mean", value)
        return WinsorizedMean.of(self._own, averaged, trim, bounds, missing, grid)

    @overload
    def variance(self, value: str, *, bounds: tuple[Number, Number], missing: Number | str = "drop") -> Moments: ...
    @overload
    def variance(self, value: str, *, bounds: None = None, missing: Number | str = "drop") -> Searched: ...
    def variance(
        self, value: str, *, bounds: tuple[Number, Number] | None = None, missing: Number | str = "drop"
    ) -> Moments | Searched:
        """The variance of a column or an expression (divided by n), its values clamped to ``bounds``.

        Bounds may be left out, as for :meth:`mean`.
        """
        return self._moments("variance", (value,), None if bounds is None else (bounds,), missing)

    @overload
    def covariance(
        self, first: str, second: str, *, bounds: Sequence[Any], missing: Number | str = "drop"
    ) -> Moments: ...
    @overload
    def covariance(
        self, first: str, second: str, *, bounds: None = None, missing: Number | str = "drop"
    ) -> Searched: ...
    def covariance(
        self, first: str, second: str, *, bounds: Sequence[Any] | None = None, missing: Number | str = "drop"
    ) -> Moments | Searched:
        """The covariance of two columns or expressions; ``bounds`` are two pairs (lowest, highest), or left out."""
        return self._moments("covariance", (first, second), bounds, missing)

    @overload
    def correlation(
        self, first: str, second: str, *, bounds: Sequence[Any], missing: Number | str = "drop"
    ) -> Moments: ...
    @overload
    def correlation(
        self, first: str, second: str, *, bounds: None = None, missing: Number | str = "drop"
    ) -> Searched: ...
    def correlation(
        self, first: str, second: str, *, bounds: Sequence[Any] | None = None, missing: Number | str = "drop"
    ) -> Moments | Searched:
        """The correlation of two columns or expressions; as :meth:`covariance`."""
        return self._moments("correlation", (first, second), bounds, missing)

    def _moments(self, statistic: Any, values: tuple[str, ...], bounds: Any, missing: Any) -> Moments | Searched:
        read = self._values(statistic, *values)
        if bounds is None:
            return Searched.of(self._own, statistic, read, missing)
        return Moments.of(self._own, statistic, read, bounds, missing)

    def _values(self, statistic: str, *values: str) -> list[Expression]:
        return [self._own.expression(value, NUMBER_KINDS, f"a {statistic}") for value in values]

    def regression(
        self,
        features: list[str] | tuple[str, ...],
        target: str,
        *,
        bounds: Any,
        target_bounds: tuple[Number, Number],
        missing: Number | str = "drop",
    ) -> Moments:
        """Linear regression of a target on features; ``bounds`` has a pair (lowest, highest) for each of them."""
        values = self._values("regression", *features, target)
        return Moments.of(self._own, "regression", values, (*bounds, target_bounds), missing)
