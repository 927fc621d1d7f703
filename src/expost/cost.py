"""`Cost`: what a release costs, or what a ledger may spend, as an exact pair (ε, δ)."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, inf, lcm, nextafter
from numbers import Integral, Rational, Real
from typing import Any, Literal, Self, TypeAlias

from expost.errors import InvalidValue
from expost.mentions import brief

Number: TypeAlias = int | float | str | Decimal | Fraction

EPSILON_UNITS = 10**12
"""One ε in the units that costs are counted in."""
DELTA_UNITS = 10**18
"""One δ in the units that costs are counted in."""

_LARGEST = 2**63 - 1  # units of ε: what a 64-bit column of a durable ledger holds
_Symbol: TypeAlias = Literal["ε", "δ"]


class Cost:
    """An exact pair (ε, δ): whole numbers of 10⁻¹² ε and of 10⁻¹⁸ δ. Immutable.

    Parameters
    ----------
    epsilon
        An int, a float (by what it prints as), a string, a Decimal or a Fraction, not below 0.
    delta
        The same, and at most 1.

    A cost is part of a guarantee, so digits past the last unit round **up**. A limit or a request rounds down:
    :meth:`within`.

    >>> Cost(0.1) * 10 == Cost(1)
    True
    >>> Cost("0.5", delta="1e-6") - Cost(0.2)
    Cost(0.3, delta=1e-6)

    Costs are ordered as pairs: ``a <= b`` means that a fits within b, in ε *and* in δ. Two costs may be incomparable.

    >>> Cost(1, delta=0.1) <= Cost(2), Cost(1, delta=0.1) >= Cost(2)
    (False, False)
    """

    __slots__ = ("delta_units", "epsilon_units")

    epsilon_units: int
    delta_units: int

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        _set_epsilon(self, _units(epsilon, "ε", ceil))
        _set_delta(self, _units(delta, "δ", ceil))

    @classmethod
    def within(cls, epsilon: Number, delta: Number = 0) -> Self:
        """The largest cost that is at most this (ε, δ): what a limit and a request round to.

        >>> Cost.within("1/3"), Cost("1/3")
        (Cost(0.333333333333), Cost(0.333333333334))
        """
        return cls.of_units(_units(epsilon, "ε", floor), _units(delta, "δ", floor))

    @classmethod
    def of_units(cls, epsilon_units: int, delta_units: int = 0) -> Self:
        """The cost of these numbers of 10⁻¹² ε and 10⁻¹⁸ δ. Not checked: for sums that are known to be right."""
        self = _new(cls)
        _set_epsilon(self, epsilon_units)
        _set_delta(self, delta_units)
        return self

    @property
    def epsilon(self) -> float:
        """ε as a float, for reading. Asking for it again never asks for more than this cost holds."""
        return _reading(self.epsilon_units, EPSILON_UNITS)

    @property
    def delta(self) -> float:
        """δ as a float, for reading. Asking for it again never asks for more than this cost holds."""
        return _reading(self.delta_units, DELTA_UNITS)

    @property
    def epsilon_text(self) -> str:
        """ε with every digit, as a person would write it."""
        return decimal_text(self.epsilon_units, 12)

    @property
    def exact_epsilon(self) -> Fraction:
        """ε as it is."""
        return Fraction(self.epsilon_units, EPSILON_UNITS)

    @property
    def exact_delta(self) -> Fraction:
        """δ as it is."""
        return Fraction(self.delta_units, DELTA_UNITS)

    def split(self, among: int | Iterable[Number]) -> tuple[Cost, ...]:
        """Shares that add up to this cost exactly: a number of equal ones, or in proportion to weights.

        Equal shares differ by one unit at most.

        >>> Cost(1).split(3)
        (Cost(0.333333333334), Cost(0.333333333333), Cost(0.333333333333))
        >>> Cost(1, delta=1e-6).split([1, 3])
        (Cost(0.25, delta=2.5e-7), Cost(0.75, delta=7.5e-7))
        """
        weights = _weights(among)
        epsilons = _shares(self.epsilon_units, weights)
        deltas = _shares(self.delta_units, weights)
        return tuple(Cost.of_units(e, d) for e, d in zip(epsilons, deltas, strict=True))

    def to_json(self) -> dict[str, str]:
        """Exact decimals as strings: ``{"epsilon": "0.5", "delta": "1e-6"}``."""
        return {
            "epsilon": decimal_text(self.epsilon_units, 12),
            "delta": decimal_text(self.delta_units, 18),
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The cost that :meth:`to_json` wrote."""
        if not isinstance(data, dict) or data.keys() != {"epsilon", "delta"}:
            raise InvalidValue(f"a cost in JSON is {{'epsilon': …, 'delta': …}}, got {data!r}")
        return cls(data["epsilon"], data["delta"])

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        total = _new(Cost)
        _set_epsilon(total, self.epsilon_units + other.epsilon_units)
        _set_delta(total, self.delta_units + other.delta_units)
        return total

    def __radd__(self, other: int) -> Cost:
        return self if other == 0 else NotImplemented  # so that sum(costs) works

    def __sub__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        epsilon, delta = self.epsilon_units - other.epsilon_units, self.delta_units - other.delta_units
        if epsilon < 0 or delta < 0:
            raise InvalidValue(f"cannot take {other} from {self}: a cost is never negative; compare first")
        return Cost.of_units(epsilon, delta)

    def __mul__(self, times: int) -> Cost:
        if isinstance(times, float | Decimal | Fraction):
            raise InvalidValue(f"a cost is taken a whole number of times, got {brief(times)}: divide for a part of it")
        if not isinstance(times, int):
            return NotImplemented
        if times < 0:
            raise InvalidValue(f"cannot take a cost {times} times: a cost is never negative")
        return Cost.of_units(self.epsilon_units * times, self.delta_units * times)

    __rmul__ = __mul__

    def __truediv__(self, parts: Number) -> Cost:
        """A part of it, rounded down: so many of them fit in it, as requests.

        >>> Cost(1, delta=1e-6) / 3
        Cost(0.333333333333, delta=3.33333333333e-7)
        """
        if not isinstance(parts, int | float | Decimal | Fraction):
            return NotImplemented
        number = exact(parts, "what a cost is divided by")
        if number < 1:
            raise InvalidValue(f"a cost is divided by a number from 1 on, got {brief(parts)}")
        return Cost.of_units(floor(self.epsilon_units / number), floor(self.delta_units / number))

    def __le__(self, other: Cost) -> bool:
        _refuse_number(other)
        if not isinstance(other, Cost):
            return NotImplemented
        return self.epsilon_units <= other.epsilon_units and self.delta_units <= other.delta_units

    def __lt__(self, other: Cost) -> bool:
        _refuse_number(other)
        if not isinstance(other, Cost):
            return NotImplemented
        return self <= other and self != other

    def __ge__(self, other: Cost) -> bool:
        _refuse_number(other)
        return NotImplemented if not isinstance(other, Cost) else other <= self

    def __gt__(self, other: Cost) -> bool:
        _refuse_number(other)
        return NotImplemented if not isinstance(other, Cost) else other < self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cost):
            return NotImplemented
        return self.epsilon_units == other.epsilon_units and self.delta_units == other.delta_units

    def __hash__(self) -> int:
        return hash((self.epsilon_units, self.delta_units))

    def __bool__(self) -> bool:
        return bool(self.epsilon_units or self.delta_units)

    def __repr__(self) -> str:
        epsilon = _literal(self.epsilon_units, 12)
        if not self.delta_units:
            return f"Cost({epsilon})"
        return f"Cost({epsilon}, delta={_literal(self.delta_units, 18)})"

    def __str__(self) -> str:
        epsilon = f"ε {decimal_text(self.epsilon_units, 12)}"
        return epsilon if not self.delta_units else f"{epsilon}, δ {decimal_text(self.delta_units, 18)}"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("costs do not change: make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("costs do not change: make a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return Cost.of_units, (self.epsilon_units, self.delta_units)


def _refuse_number(other: Any) -> None:
    """Raise for a number beside a cost: it may be meant as an ε, whatever δ is, or as an ε with a δ of 0."""
    if isinstance(other, int | float | Decimal | Fraction):
        raise InvalidValue(
            f"a cost is an ε and a δ, and cannot be compared with {brief(other)}: compare its ε, as in "
            f"ledger.remaining.epsilon < {brief(other)}, or two costs, as in ledger.remaining < Cost({brief(other)})"
        )


class CostBesideNoise(Cost):
    """The ε and δ of what also has noise without ε: a cost as any other, that shows what it leaves out.

    >>> CostBesideNoise.of(Cost(0), "ρ 0.02"), CostBesideNoise.of(Cost(0), "ρ 0.02") == Cost(0)
    (<ρ 0.02; Cost(0) in the basic sum>, True)
    """

    __slots__ = ("_used",)

    _used: str

    @classmethod
    def of(cls, cost: Cost, used: str) -> CostBesideNoise:
        """The cost, shown as what was used."""
        self = cls.of_units(cost.epsilon_units, cost.delta_units)
        object.__setattr__(self, "_used", used)
        return self

    def __str__(self) -> str:
        return self._used

    def __repr__(self) -> str:
        return f"<{self._used}; {super().__repr__()} in the basic sum>"


_new = object.__new__
_set_epsilon = Cost.__dict__["epsilon_units"].__set__  # past the cost's own refusal to change
_set_delta = Cost.__dict__["delta_units"].__set__


def exact(value: Any, name: str) -> Fraction:
    """The rational number that a person means by ``value``; floats by what they print as.

    >>> exact(0.1, "rate"), exact("1e-3", "rate")
    (Fraction(1, 10), Fraction(1, 1000))
    """
    if type(value) is Fraction:
        return value
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, Cost):
        part = "delta" if name == "δ" else "epsilon"
        raise InvalidValue(
            f"{name} is a number here, got {value!r}: pass the cost's own, as in ledger.remaining.{part}"
        )
    if isinstance(value, bool) or not isinstance(value, Real | Decimal | str):
        raise InvalidValue(
            f"{name} must be a number, got {brief(value)}: give an int, float, string, Decimal or Fraction"
        )
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    text = str(value)  # not repr: numpy's floats print as numbers, and repr as np.float64(…)
    try:
        number = Fraction(text) if "/" in text else _fraction_of_decimal(text)
    except (ArithmeticError, ValueError):
        raise InvalidValue(
            f"{name} must be a number, got {brief(value)}: give for instance 0.5, '1e-6' or '1/3'"
        ) from None
    if number is None:
        raise InvalidValue(f"{name} must be a finite number between 1e-400 and 1e400, got {brief(value)}")
    return number


def _fraction_of_decimal(text: str) -> Fraction | None:
    number = Decimal(text)
    if not number.is_finite() or (number and abs(number.adjusted()) > 400):
        return None
    return Fraction(number) if number else Fraction(0)


def _units(value: Any, symbol: _Symbol, rounding: Any) -> int:
    number = exact(value, symbol)
    if number < 0:
        raise InvalidValue(f"{symbol} must not be negative, got {brief(value)}: give a number above 0")
    if symbol == "δ" and number > 1:
        raise InvalidValue(f"δ is a probability and must be at most 1, got {brief(value)}")
    units: int = rounding(number * (EPSILON_UNITS if symbol == "ε" else DELTA_UNITS))
    if units > _LARGEST:
        raise InvalidValue(
            f"ε must be at most {_LARGEST // EPSILON_UNITS}, got {brief(value)}: more guarantees nothing"
        )
    return units


def _reading(units: int, scale: int) -> float:
    """The float nearest to units/scale among those that print as no more than it."""
    value = units / scale
    while exact(value, "") * scale > units:
        value = nextafter(value, -inf)
    return value


def reading_up(units: int, scale: int) -> float:
    """The float nearest to units/scale among those that print as no less than it: how guarantees are shown."""
    value = units / scale
    while exact(value, "") * scale < units:
        value = nextafter(value, inf)
    return value


def decimal_text(units: int, places: int) -> str:
    """``units``·10^-places as a person would write it, with every digit.

    >>> decimal_text(500_000_000_000, 12), decimal_text(10**12, 18)
    ('0.5', '1e-6')
    """
    if units == 0:
        return "0"
    digits = str(units).rstrip("0")
    exponent = len(str(units)) - 1 - places
    if exponent < -4:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{mantissa}e{exponent}"
    whole, fraction = divmod(units, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0").rstrip(".")


def shortened(cost: Cost, *, up: bool) -> Cost:
    """A cost as receipts show it: ε to six places, rounded up or down, unless it is tiny."""
    units, places = cost.epsilon_units, 10**6
    rounded = (-(-units // places) if up else units // places) * places
    return Cost.of_units(rounded if units > 10 * places else units, cost.delta_units)


def _literal(units: int, places: int) -> str:
    """Python source that reads back as exactly this amount."""
    text = decimal_text(units, places)
    return text if exact(float(text), "") == Fraction(text) else repr(text)


def _weights(among: Any) -> list[int]:
    if isinstance(among, Integral):
        if not 1 <= int(among) <= 10**6:
            raise InvalidValue(f"a cost is split among 1 to 1,000,000 shares, got {brief(among)}")
        return [1] * int(among)
    if isinstance(among, str) or not isinstance(among, Iterable):
        raise InvalidValue(f"a cost is split among a number of shares, or by a list of weights, got {brief(among)}")
    weights = [exact(weight, "a weight") for weight in among]
    if any(weight < 0 for weight in weights) or not any(weights):
        raise InvalidValue(f"weights must not be negative and not all zero, got {brief([str(w) for w in weights])}")
    common = lcm(*(weight.denominator for weight in weights))
    return [int(weight * common) for weight in weights]


def _shares(units: int, weights: list[int]) -> list[int]:
    """Whole shares in proportion to weights, summing to units: cumulative sums, rounded up."""
    total, running, given = sum(weights), 0, 0
    shares = []
    for weight in weights:
        running += weight
        upto = -(-units * running // total)
        shares.append(upto - given)
        given = upto
    return shares
