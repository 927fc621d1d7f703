"""Spherical noise: every rounded coordinate is certain, and is what high precision says."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost.errors import InvalidValue
from expost.noise import SeededNoise
from expost.noise.inversion import Uniform
from expost.noise.spherical import _Normal, _rounded, rounded_spherical

numbers = st.tuples(st.integers(0, 300), st.integers(0, 2**64 - 1), st.booleans())


def made(rows: list[tuple[int, int, bool]], bits: int = 64) -> list[_Normal]:
    source = SeededNoise(0)
    return [_Normal(strip, Uniform(source, place >> (64 - bits), bits), negative) for strip, place, negative in rows]


@given(st.lists(numbers, min_size=5, max_size=5), st.fractions(Fraction(1, 100), 10**6))
def test_certain_roundings_are_those_of_the_number_itself(rows: list[tuple[int, int, bool]], scale: Fraction) -> None:
    found = _rounded(made(rows[2:]), made(rows[:2]), scale)
    coarse = _rounded(made(rows[2:], 12), made(rows[:2], 12), scale)
    with localcontext() as context:
        context.prec = 80
        sizes = [Decimal(strip) + Decimal(2 * place + 1) / Decimal(2**65) for strip, place, _ in rows]
        length = sum((size * size for size in sizes[2:]), Decimal(0)).sqrt() / 64
        factor = Decimal(scale.numerator) / Decimal(scale.denominator) * length / 64
        exact = [
            int((factor * (-size if row[2] else size) + Decimal("0.5")).to_integral_value(ROUND_FLOOR))
            for size, row in zip(sizes, rows[:2], strict=False)
        ]
    assert found is None or found == exact
    assert coarse is None or coarse == exact


def test_more_bits_are_drawn_where_they_are_needed() -> None:
    """At a scale of 2^90 the first 64 bits decide no coordinate."""
    rows = [(100, 12345 << 40, False), (3, 99 << 50, True), (50, 7 << 55, False)]
    assert _rounded(made(rows[1:]), made(rows[:1]), Fraction(2**90)) is None
    found = rounded_spherical(SeededNoise(1), Fraction(2**90), 2)
    assert len(found) == 2
    assert max(map(abs, found)) > 2**80
    assert {number % 2**20 for number in found} != {0}  # down to the last bit


def test_refusals() -> None:
    with pytest.raises(InvalidValue, match="scale above 0"):
        rounded_spherical(SeededNoise(1), Fraction(0), 2)
    with pytest.raises(InvalidValue, match="dimension"):
        rounded_spherical(SeededNoise(1), Fraction(1), 0)
