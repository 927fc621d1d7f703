"""Certified real numbers: a :class:`Bracket` holds a lower and an upper bound that are both theorems.

The standard library's decimals round ``exp`` and ``ln`` correctly at any precision, so one step to
either side of what they return is a certified bound. Everything here is exact rational arithmetic
around that one fact.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from expost.errors import InvalidValue

Real = TypeVar("Real", Fraction, float)

_LARGEST_EXPONENT = 1_000_000  # e to that has half a million digits


@dataclass(frozen=True, slots=True)
class Bracket(Generic[Real]):
    """A number known to lie between two bounds, both included. Charge ``upper``.

    Parameters
    ----------
    lower
        The lower bound.
    upper
        The upper bound.
    """

    lower: Real
    upper: Real

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise InvalidValue(f"a bracket needs lower <= upper, got {self.lower} and {self.upper}")

    @property
    def width(self) -> Real:
        """``upper - lower``."""
        return self.upper - self.lower

    def __contains__(self, value: object) -> bool:
        return bool(self.lower <= value <= self.upper)  # type: ignore[operator]

    def __str__(self) -> str:
        return f"[{float(self.lower):.6g}, {float(self.upper):.6g}]"


def _contexts(digits: int) -> tuple[Context, Context]:
    wide = {"prec": digits, "Emin": -(10**9), "Emax": 10**9, "traps": []}
    return Context(rounding=ROUND_FLOOR, **wide), Context(rounding=ROUND_CEILING, **wide)  # type: ignore[arg-type]


def _decimals(value: Fraction, down: Context, up: Context) -> tuple[Decimal, Decimal]:
    numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
    return down.divide(numerator, denominator), up.divide(numerator, denominator)


@lru_cache(maxsize=4096)
def exp(value: Fraction, digits: int = 40) -> Bracket[Fraction]:
    """Bounds on e^value, about ``digits`` significant digits apart.

    >>> from fractions import Fraction
    >>> e = exp(Fraction(1))
    >>> float(e.lower), e.width < Fraction(1, 10**38)
    (2.718281828459045, True)
    """
    if value == 0:
        return Bracket(Fraction(1), Fraction(1))
    if abs(value) > _LARGEST_EXPONENT:
        raise InvalidValue(f"e to the {float(value):g} is not written out; exponents go up to {_LARGEST_EXPONENT}")
    down, up = _contexts(digits)
    low, high = _decimals(value, down, up)
    # Decimal.exp is rounded half-even to the context's precision, whatever its rounding mode.
    return Bracket(Fraction(down.next_minus(down.exp(low))), Fraction(up.next_plus(up.exp(high))))


@lru_cache(maxsize=4096)
def log(value: Fraction, digits: int = 40) -> Bracket[Fraction]:
    """Bounds on ln(value) for a positive rational.

    >>> from fractions import Fraction
    >>> float(log(Fraction(3)).upper)
    1.0986122886681098
    """
    if value == 1:
        return Bracket(Fraction(0), Fraction(0))
    down, up = _contexts(digits)
    low, high = _decimals(value, down, up)
    if low <= 1 <= high:  # the logarithm's sign must not be lost to rounding: 1 - 1/x <= ln x <= x - 1
        return Bracket(1 - 1 / value, value - 1)
    return Bracket(Fraction(down.next_minus(down.ln(low))), Fraction(up.next_plus(up.ln(high))))
