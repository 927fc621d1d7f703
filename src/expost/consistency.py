"""Post-processing of noisy counts: non-negative, and with the sum that is known. It never costs anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidValue


def consistent(counts: Any, *, total: float | None = None) -> NDArray[np.float64]:
    """Released counts, moved as little as possible so that none is negative and they add up to ``total``.

    This is post-processing: it reads what was released, and is as private as that. ``total`` must be public, such as
    the number of records under substitution, or released itself. Without it, negative counts become 0.

    The result is the nearest one in Euclidean distance. As the true counts are consistent, it is never farther from
    them than the noisy counts were. It is biased where true counts are near 0.

    >>> consistent([5, -2, 10], total=12).tolist()
    [3.5, 0.0, 8.5]

    Proof: lem-consistent
    """
    noisy = np.asarray(counts, np.float64)
    if noisy.ndim != 1 or not noisy.size or not np.isfinite(noisy).all():
        given = "some that are not finite" if noisy.ndim == 1 and noisy.size else f"shape {noisy.shape}"
        raise InvalidValue(f"counts are a one-dimensional array of finite numbers, at least one, got {given}")
    if total is None:
        return np.asarray(np.maximum(noisy, 0.0))
    if not 0 <= total < np.inf:
        raise InvalidValue(f"a total is a number of at least 0, got {total!r}")
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, noisy.size + 1)
    kept = np.flatnonzero(falling >= excess)
    return np.asarray(np.maximum(noisy - excess[kept[-1]], 0.0))
