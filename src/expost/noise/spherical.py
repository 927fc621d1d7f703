"""Vectors whose density falls with their length: ``e^(−‖q‖/scale)``, jointly, rounded coordinate by coordinate.

The length of such a vector has a Gamma law of shape d and its direction is uniform. It is sampled as scale·√W·z, where
z has d independent normal coordinates and W is the sum of the squares of d + 1 others. A normal number here is a real
number: a strip, a sign, and a place in the strip of which bits are drawn until every rounded coordinate is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from expost.errors import InvalidValue
from expost.noise.inversion import WORD, Uniform
from expost.noise.laws import HalfGaussian
from expost.noise.scalar import keeps
from expost.noise.source import NoiseSource
from expost.noise.strips import decided
from expost.noise.tables import table

_STRIPS = 64  # to a standard deviation
_VARIANCE = Fraction(_STRIPS**2)


def rounded_spherical(source: NoiseSource, scale: Fraction, size: int) -> list[int]:
    """The nearest integers to the coordinates of a vector of joint density proportional to ``e^(−‖q‖/scale)``.

    Proof: thm-spherical
    """
    if scale <= 0 or size < 1:
        raise InvalidValue(f"a spherical law needs a scale above 0 and a dimension of at least 1, got {scale}, {size}")
    normals = _normals(source, 2 * size + 1)
    while True:
        rounded = _rounded(normals[size:], normals[:size], scale)
        if rounded is not None:
            return rounded
        for number in normals:
            number.place.more()


@dataclass(frozen=True)
class _Normal:
    """A normal number ±(strip + place) of standard deviation 64, known to as many bits as were drawn."""

    strip: int
    place: Uniform
    negative: bool

    def size(self, bits: int) -> int:
        """⌊2^bits·(strip + place)⌋, for at most as many bits as are known."""
        return (self.strip << bits) + (self.place.draw >> (self.place.bits - bits))


def _normals(source: NoiseSource, size: int) -> list[_Normal]:
    """``size`` independent normal numbers.

    Proof: thm-strips
    """
    found: list[_Normal] = []
    while len(found) < size:
        count = size - len(found) + 4
        strips = table(HalfGaussian(_VARIANCE)).draw(source, count)
        places, coins = source.words(count), source.words(count)
        signs = source.words(count, 8) & np.uint8(1)
        v, coin = places * 2.0**-64, coins * 2.0**-64
        fall = v * (2.0 * strips + v) / (2.0 * _STRIPS**2)
        accepted, certain = decided(coin, fall, fall)
        for i in np.flatnonzero(accepted | ~certain).tolist():
            place = Uniform(source, int(places[i]), WORD)
            if accepted[i] or keeps(Uniform(source, int(coins[i]), WORD), int(strips[i]), place, _VARIANCE):
                found.append(_Normal(int(strips[i]), place, bool(signs[i])))
    return found[:size]


def _rounded(lengths: list[_Normal], coordinates: list[_Normal], scale: Fraction) -> list[int] | None:
    """Each coordinate to the nearest integer, half up; None if some bit that is not known could change one."""
    bits = min(number.place.bits for number in (*lengths, *coordinates))
    sizes = [number.size(bits) for number in lengths]
    low = isqrt(sum(size**2 for size in sizes))
    high = isqrt(sum((size + 1) ** 2 for size in sizes)) + 1
    unit = (scale.denominator * _STRIPS**2) << (2 * bits)
    result = []
    for number in coordinates:
        size = number.size(bits)
        least, most = scale.numerator * low * size, scale.numerator * high * (size + 1)
        if number.negative:
            least, most = -most, -least
        nearest = (2 * least + unit) // (2 * unit)
        if nearest != (2 * most + unit) // (2 * unit):
            return None
        result.append(nearest)
    return result
