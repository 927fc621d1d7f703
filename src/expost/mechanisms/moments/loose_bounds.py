"""Bounds for records of any size: around their median, as wide as eight times the distance of nearly all of them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.mechanisms.quantiles.quantiles import Median, Quantile
from expost.noise import NoiseSource

LARGEST_RECORD = float(np.finfo(np.float32).max)
_EXPONENTS = (-126, 128)
_NEEDED = 250  # n·ε from which on both choices are reliable
_WIDER = 3  # doublings beyond the distance that nearly all records have


def needed(size: int, epsilon: Fraction) -> Fraction:
    """How much of ε suffices for this number of records: a sixteenth, more for few, and at most half."""
    return min(epsilon / 2, max(epsilon / 16, Fraction(_NEEDED, size)))


def loose_bounds(values: NDArray[np.float64], epsilon: Fraction, noise: NoiseSource) -> tuple[float, float]:
    """Bounds from a private median and a private distance from it. The number of records is public.

    Proof: lem-loose-bounds
    """
    share = epsilon / 2
    centre = Median(epsilon=share, neighbours="substitute").sample(values, noise)
    exponent = int(_distance(share, len(values)).sample(exponents(values, centre), noise))
    reach = ldexp(1.0, exponent + _WIDER)
    return max(centre - reach, -LARGEST_RECORD), min(centre + reach, LARGEST_RECORD)


def _distance(epsilon: Fraction, size: int) -> Quantile:
    """Which power of two nearly all distances are below: all but as many as the choice may be off by."""
    left_out = min(ceil(17 / epsilon), size // 4)
    rest: dict[str, Any] = {"bounds": _EXPONENTS, "neighbours": "substitute"}
    return Quantile(quantile=1 - Fraction(left_out, size), epsilon=epsilon, **rest)


def exponents(values: NDArray[np.float64], centre: float) -> NDArray[np.int64]:
    """The least power of two above the distance of each record from the centre, within those of single precision."""
    distances = np.abs(np.clip(values, -LARGEST_RECORD, LARGEST_RECORD) - centre)
    powers = np.where(distances > 0, np.frexp(distances)[1], _EXPONENTS[0])
    return np.clip(powers, *_EXPONENTS).astype(np.int64)
