"""`Estimate`: a published number that knows how far noise moved it, and arithmetic that carries that along."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import inf, isfinite, nextafter
from typing import Any, ClassVar

from expost.errors import InvalidValue
from expost.fingerprint import writes_as
from expost.noise.sums import Term, reach_of_sum

USUAL = Fraction(95, 100)
"""The confidence of errors that are shown."""
_MISS = 1 - USUAL
_ONCE = Fraction(1)
"""The weight of most draws, told by its identity: comparing a hundred thousand fractions takes a while."""
Ends = tuple[float, float]


@dataclass(frozen=True)
class _AtOne:
    """A bound that is known for one confidence only, and so for all below."""

    error: float
    miss: Fraction

    def __call__(self, miss: Fraction) -> float:
        return self.error if miss >= self.miss else inf


@dataclass(frozen=True)
class _UsualEnds:
    """The same for the two ends of an interval."""

    ends: Ends

    def __call__(self, miss: Fraction) -> Ends:
        return self.ends if miss >= 1 - USUAL else (-inf, inf)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The noise of one published number: which draw it was, and how far it goes.

    Parameters
    ----------
    origin
        Which draw it was: a ledger's entry and a place in it. Two numbers with the same draw have the same noise.
    bound
        A distance that it passes with probability at most the one given.
    law
        Its law instead, if it is independent noise of whole steps: sums of such noise have exact quantiles.
    """

    origin: Hashable
    bound: Callable[[Fraction], float] | None = None
    law: Callable[[], Term] | None = None

    @staticmethod
    def usual(origin: Hashable, error: float) -> Drawn:
        """Noise of which a bound is known at 95 % only."""
        return Drawn(origin, _AtOne(error, _MISS))

    def reach(self, miss: Fraction) -> float:
        """A distance that the noise passes with probability at most ``miss``."""
        if self.law is not None:
            return _reach_of(self.law, miss)
        return inf if self.bound is None else self.bound(miss)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drawn) and self.origin == other.origin

    def __hash__(self) -> int:
        return hash(self.origin)


@lru_cache(maxsize=512)
def _reach_of(law: Callable[[], Term], miss: Fraction) -> float:
    """Remembered, as a hundred thousand numbers of one release share a law."""
    return _above(reach_of_sum([law()], miss))


class Estimate:
    """A published number, and how far noise moved it: at most :attr:`error`, in 95 of 100 cases.

    It is a number: a count is an ``int``, everything else a ``float``, and it can be used where those can. Sums,
    differences and multiples remember the noise that they are made of, so what cancels cancels; products and ratios
    have intervals that hold for both operands at once. The error is that of noise alone: clamping, rows that do not
    count and sampling are not part of it. Intervals are for numbers that were not chosen by looking at noisy ones.

    >>> whole = Estimate.of(1000, Drawn("entry 1", lambda miss: 30))
    >>> part = Estimate.of(250, Drawn("entry 2", lambda miss: 30))
    >>> whole, whole + 10, whole - whole
    (1000 ± 30, 1010 ± 30, 0 ± 0)
    >>> part / whole
    0.25 ± 0.0387

    Proof: lem-estimate-arithmetic
    """

    _terms: Mapping[Drawn, Fraction] | None
    _bounds: Callable[[Fraction], Ends] | None
    why: str
    """Why no error is known; empty where one is."""
    how: Any
    """How it was made, where there is more to say: such as the range that values were clamped to."""
    _plain: ClassVar[Callable[[Any], Any]]

    @staticmethod
    def of(value: float, draw: Drawn, weight: Fraction | int = 1, how: Any = None) -> Estimate:
        """A number with the noise of one draw; and how it was made."""
        return _made(value, {draw: _ONCE if weight == 1 else Fraction(weight)}, how=how)

    @staticmethod
    def total(value: float, draws: Iterable[Drawn]) -> Estimate:
        """A sum of numbers, each with a draw of its own: what :meth:`of` gives for them, added up."""
        return _made(value, dict.fromkeys(draws, _ONCE))

    @staticmethod
    def between(value: float, ends: Ends | Callable[[Fraction], Ends], how: Any = None) -> Estimate:
        """A number within an interval that need not be symmetric.

        ``ends`` are those at 95 %, or what gives them for a probability of missing.
        """
        return _made(value, None, ends if callable(ends) else _UsualEnds(ends), how=how)

    @staticmethod
    def within(
        value: float, error: float | Fraction | None, origin: Hashable, how: Any = None, why: str = ""
    ) -> Estimate:
        """A number whose error is known at 95 % only, or not at all; and how it was made."""
        if error is None:
            return _made(value, None, None, why or "how far noise moved it is not known", how)
        bound = _above(error) if isinstance(error, Fraction) else error
        return _made(value, {Drawn.usual(origin, bound): _ONCE}, how=how)

    @staticmethod
    def exactly(value: float) -> Estimate:
        """A number without noise."""
        return _made(value, {})

    @staticmethod
    def unknown(value: float, why: str, how: Any = None) -> Estimate:
        """A number whose error is not known; and how it was made."""
        return _made(value, None, None, why, how)

    @property
    def value(self) -> Any:
        """The plain number: an ``int`` for a count, else a ``float``."""
        return type(self)._plain(self)

    @property
    def error(self) -> float | None:
        """How far noise moved it at most, with 95 % confidence; None where that is not known."""
        return None if self.why else self._half_width(_MISS)

    def interval(self, confidence: Any = USUAL) -> Ends:
        """The lower and upper end that the number without noise lies between, with this confidence."""
        from expost.checks import as_confidence

        if self.why:
            raise InvalidValue(f"there is no interval for this number: {self.why}")
        return self._between(1 - as_confidence(confidence))

    @property
    def columns(self) -> tuple[Any, float | None, float | None, float | None]:
        """The value, the ends of its interval at 95 % and its error: as they stand in frames."""
        value = self.value
        if self.why:
            return value, None, None, None
        if self._terms is None:
            return (value, *self._between(_MISS), self.error)
        reach = _reach(self._terms, _MISS)
        return (value, *_around(value, reach), reach)

    def _half_width(self, miss: Fraction) -> float:
        if self._terms is not None:
            return _reach(self._terms, miss)
        low, high = self._between(miss)
        value = float(self.value)
        return max(high - value, value - low)

    def _between(self, miss: Fraction) -> Ends:
        if self._bounds is not None:
            return self._bounds(miss)
        assert self._terms is not None
        return _around(self.value, _reach(self._terms, miss))

    # ---- a number in a sum keeps its noise

    def _sum(self, other: Any, sign: int, flipped: bool = False) -> Any:
        if not _is_number(other):
            return NotImplemented
        own, others = (-1 if flipped else 1), (1 if flipped else sign)
        value = own * self.value + others * _value(other)
        if (why := _whys(self, other)) is not None:
            return Estimate.unknown(value, why)
        mine, theirs = self._terms, _terms(other)
        if mine is None or theirs is None:
            return _of_both(value, self, other, partial(_added, signs=(own, others)))
        return _made(value, _weighed([(mine, Fraction(own)), (theirs, Fraction(others))]))

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return self._sum(other, 1, flipped=True)

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self.value >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        value = self.value * _value(other)
        if (why := _whys(self, other)) is not None:
            return Estimate.unknown(value, why)
        if not isinstance(other, Estimate) and self._terms is not None and isfinite(other):
            return _made(value, _weighed([(self._terms, Fraction(other))]))
        return _of_both(value, self, other, _product)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        if not isinstance(other, Estimate):
            value = self.value / other
            scaled = self * (1 / Fraction(other)) if isfinite(other) else Estimate.unknown(value, "it was divided by ∞")
            return _like(scaled, value)
        return _ratio(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _ratio(Estimate.exactly(other), self) if _is_number(other) else NotImplemented

    # ---- for people

    def __repr__(self) -> str:
        shown = f"{self.value}" if isinstance(self, int) else f"{self.value:.6g}"
        return f"{shown} (no error: {self.why})" if self.why else f"{shown} ± {_shown(self.error)}"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else repr(self)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class WholeEstimate(Estimate, int):
    """An estimate that is an ``int``."""

    _plain = int.__int__
    __hash__ = int.__hash__


class RealEstimate(Estimate, float):
    """An estimate that is a ``float``."""

    _plain = float.__float__
    __hash__ = float.__hash__


def _made(
    value: float,
    terms: Mapping[Drawn, Fraction] | None,
    bounds: Callable[[Fraction], Ends] | None = None,
    why: str = "",
    how: Any = None,
) -> Estimate:
    whole = isinstance(value, int)
    made: Any = int.__new__(WholeEstimate, value) if whole else float.__new__(RealEstimate, value)
    made._terms, made._bounds, made.why, made.how = terms, bounds, why, how
    return made  # type: ignore[no-any-return]


def _like(made: Estimate, value: float) -> Estimate:
    """The same noise around a value that was computed more exactly."""
    return _made(float(value), made._terms, made._bounds, made.why)


def _weighed(parts: list[tuple[Mapping[Drawn, Fraction], Fraction]]) -> dict[Drawn, Fraction]:
    """A sum of multiples, draw by draw: what cancels is gone."""
    total: dict[Drawn, Fraction] = {}
    for terms, times in parts:
        for draw, weight in terms.items():
            total[draw] = total.get(draw, Fraction(0)) + weight * times
    return {draw: weight for draw, weight in total.items() if weight}


def _reach(terms: Mapping[Drawn, Fraction], miss: Fraction) -> float:
    """A distance that a weighted sum of draws passes with probability at most ``miss``.

    Draws whose laws are known are independent, and their sum has a law; a union bound covers all others.
    """
    if len(terms) == 1:
        ((draw, weight),) = terms.items()
        return draw.reach(miss) if weight is _ONCE else _scaled(draw.reach(miss), weight)
    known = [_multiple(draw.law(), weight) for draw, weight in terms.items() if draw.law is not None]
    others = {draw: weight for draw, weight in terms.items() if draw.law is None}
    each = miss / (len(others) + bool(known)) if terms else miss
    within = _above(reach_of_sum(known, each)) if known else 0
    return _up(sum((_scaled(draw.reach(each), weight) for draw, weight in others.items()), within))


def _around(value: float, reach: float) -> Ends:
    return (_down(value - reach), _up(value + reach)) if reach else (value, value)


def _multiple(term: Term, weight: Fraction) -> Term:
    return Term(term.scale * weight, term.noise, term.blur)


def _above(exact: Fraction) -> float:
    """The nearest float that is not below; whole numbers stay whole."""
    if exact.denominator == 1:
        return int(exact)
    near = float(exact)
    return near if Fraction(near) >= exact else nextafter(near, inf)


def _scaled(reach: float, weight: Fraction) -> float:
    """Reach times weight, not below; whole numbers stay whole."""
    return _above(Fraction(reach) * abs(weight)) if isfinite(reach) else inf


@dataclass(frozen=True)
class _Both:
    """What is computed from two numbers, from intervals that hold for both at once."""

    value: float
    one: Any
    other: Any
    rule: Callable[[Ends, Ends], Ends]

    def __call__(self, miss: Fraction) -> Ends:
        share = miss / 2 if _is_noisy(self.one) and _is_noisy(self.other) else miss
        low, high = self.rule(_ends(self.one, share), _ends(self.other, share))
        return _down(min(low, self.value)), _up(max(high, self.value))


def _of_both(value: float, one: Any, other: Any, rule: Callable[[Ends, Ends], Ends]) -> Estimate:
    return _made(value, None, _Both(value, one, other, rule))


def _ratio(over: Estimate, under: Estimate) -> Estimate:
    value = over.value / under.value if under.value else float("nan")
    if (why := _whys(over, under)) is not None:
        return Estimate.unknown(value, why)
    if not under.value:
        return Estimate.unknown(value, "it was divided by a number that came out as 0")
    if over._terms is not None and over._terms == under._terms and over.value == under.value:
        return Estimate.exactly(1.0)
    return _of_both(value, over, under, _quotient)


def _is_noisy(number: Any) -> bool:
    return isinstance(number, Estimate) and number._terms != {}


def _ends(number: Any, miss: Fraction) -> Ends:
    return number._between(miss) if isinstance(number, Estimate) else (number, number)


def _added(one: Ends, other: Ends, signs: tuple[int, int]) -> Ends:
    (a, b), (c, d) = _signed(one, signs[0]), _signed(other, signs[1])
    return a + c, b + d


def _signed(one: Ends, sign: int) -> Ends:
    return one if sign > 0 else (-one[1], -one[0])


def _product(one: Ends, other: Ends) -> Ends:
    corners = [a * b for a in one for b in other]
    return (-inf, inf) if any(c != c for c in corners) else (min(corners), max(corners))


def _quotient(one: Ends, other: Ends) -> Ends:
    """All ratios; everything, if the divisor may be 0."""
    if other[0] <= 0 <= other[1]:
        return -inf, inf
    corners = [a / b for a in one for b in other]
    return min(corners), max(corners)


def _whys(*numbers: Any) -> str | None:
    return next((each.why for each in numbers if isinstance(each, Estimate) and each.why), None)


def _terms(number: Any) -> Mapping[Drawn, Fraction] | None:
    return number._terms if isinstance(number, Estimate) else {}


def _value(number: Any) -> Any:
    return number.value if isinstance(number, Estimate) else number


def _is_number(other: Any) -> bool:
    return isinstance(other, int | float | Fraction) and not isinstance(other, bool)


def _up(number: float) -> float:
    return number if isinstance(number, int) else nextafter(number, inf)


def _down(number: float) -> float:
    return number if isinstance(number, int) else nextafter(number, -inf)


def _shown(error: float | None) -> str:
    return "∞" if error == inf else f"{error:.3g}" if isinstance(error, float) else f"{error}"


writes_as(WholeEstimate, int)
writes_as(RealEstimate, float)
