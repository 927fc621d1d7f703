"""What a public parameter may be: a whole number, a share, a finite number, bounds, ε, δ.

Each function returns the value to use, or raises :class:`~expost.errors.InvalidValue` with the name, the rule and what
was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import floor
from numbers import Integral
from sys import float_info
from typing import Any, TypeAlias

from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue, UnitMismatch
from expost.mentions import GivenValue, brief
from expost.unit_names import same_unit

FieldRule: TypeAlias = Callable[..., Any]
"""Takes what was given and the parameter's name, and gives what is kept; or raises ``InvalidValue``."""
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def check_fields(record: object, *usual: str, **rules: FieldRule) -> None:
    """Keep in a frozen record what the rules of its fields make of what was given, in this order.

    Fields that are only named have the rule that their name has everywhere.
    """
    for name, rule in {**{name: _USUAL[name] for name in usual}, **rules}.items():
        object.__setattr__(record, name, rule(getattr(record, name), _SYMBOLS.get(name, name)))


def optional(rule: FieldRule) -> FieldRule:
    """The same rule for a field that may be None."""
    return lambda given, name: None if given is None else rule(given, name)


def as_whole(given: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number within limits, also one of numpy's. Truth values are not numbers.

    >>> as_whole(3, "blocks")
    3
    """
    number = None if isinstance(given, bool) or not isinstance(given, Integral) else int(given)
    if number is None or number < least or (most is not None and number > most):
        rule = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidValue(f"{name} is a whole number {rule}, got {brief(given)}")
    return number


def as_positive(given: Any, name: str) -> Fraction:
    """A number above 0."""
    number = exact(given, name)
    if number <= 0:
        raise InvalidValue(f"{name} must be above 0, got {brief(given)}")
    return number


def as_share(given: Any, name: str) -> Fraction:
    """A part of a whole: neither nothing nor all of it."""
    number = exact(given, name)
    if not 0 < number < 1:
        raise InvalidValue(f"{name} is a share, strictly between 0 and 1, got {brief(given)}")
    return number


def share_of(text: str) -> Fraction | None:
    """The share that a text such as "2 %" is; None if it is not such a text."""
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?) ?%", text)
    share = Fraction(found[1]) / 100 if found else Fraction(0)
    return share if 0 < share < 1 else None


def as_probability(given: Any, name: str) -> Fraction:
    """A number from 0 to 1."""
    number = exact(given, name)
    if not 0 <= number <= 1:
        raise InvalidValue(f"{name} lies between 0 and 1, got {brief(given)}")
    return number


def as_confidence(given: Any) -> Fraction:
    """How sure an error bound is."""
    number = exact(given, "confidence")
    if not 0 < number < 1:
        raise InvalidValue(f"confidence lies strictly between 0 and 1 (such as 0.95), got {brief(given)}")
    return number


def as_flag(given: Any, name: str) -> bool:
    """True or False, also as numpy has them, and nothing that only counts as it."""
    if not isinstance(given, bool) and not (getattr(given, "dtype", None) == "bool" and given.shape == ()):
        raise InvalidValue(f"{name} is True or False, got {brief(given)}")
    return bool(given)


def finite(given: Any, name: str) -> float:
    """A number that a float can hold."""
    number = exact(given, name)
    if abs(number) > int(float_info.max):
        raise InvalidValue(f"{name} must fit a float, got {brief(given)}")
    return float(number)


def as_bounds(given: Any, name: str = "bounds") -> tuple[float, float]:
    """The declared range of values: a pair of finite numbers in order.

    >>> as_bounds((0, 1))
    (0.0, 1.0)
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidValue(f"{name} are a pair of numbers, the lowest first, got ", GivenValue(given))
    lowest, highest = (finite(end, f"each of {name}") for end in given)
    if lowest > highest:
        raise InvalidValue(f"{name} are a pair of numbers, the lowest first, got ", GivenValue(given))
    return lowest, highest


_FARTHEST_END, _LEAST_WIDTH = 1e100, 1e-100


def as_interval(given: Any, name: str = "bounds") -> tuple[float, float]:
    """Bounds whose distance is divided into steps: floats can express both, and neither overflows nor underflows.

    >>> as_interval((0, 1))
    (0.0, 1.0)
    """
    lowest, highest = as_bounds(given, name)
    if max(-lowest, highest) > _FARTHEST_END or 0 < highest - lowest < _LEAST_WIDTH:
        raise InvalidValue(
            f"{name} lie within ±{_FARTHEST_END:g}, and are equal or at least {_LEAST_WIDTH:g} apart, got ",
            GivenValue(given),
            ": measure in another unit",
        )
    return lowest, highest


def requested_epsilon(given: Number, name: str = "ε") -> float:
    """The ε (or ρ) that a request gets: rounded down to 10⁻¹², and above 0."""
    within = Cost.within(given)
    if not within.epsilon_units:
        raise InvalidValue(f"{name} must be at least 1e-12, got {brief(given)}")
    return within.epsilon


def requested_delta(given: Number, name: str = "δ") -> float:
    """The δ that a request gets: rounded down to 10⁻¹⁸, above 0 and below 1."""
    within = Cost.within(0, given)
    if not 0 < within.exact_delta < 1:
        raise InvalidValue(f"this mechanism needs a {name} of at least 1e-18 and below 1, got {brief(given)}")
    return within.delta


def split_epsilon(given: Number, share: Number, name: str) -> tuple[Fraction, Fraction]:
    """A budget in two: a share of it, rounded down to 10⁻¹², and the rest.

    >>> split_epsilon(1, 0.25, "test_share")
    (Fraction(1, 4), Fraction(3, 4))
    """
    units = Cost.within(given).epsilon_units
    if units < 2:
        raise InvalidValue(f"ε must be at least 2e-12, because it is split in two, got {brief(given)}")
    first = min(max(floor(units * as_share(share, name)), 1), units - 1)
    return Cost.of_units(first).exact_epsilon, Cost.of_units(units - first).exact_epsilon


def equal_share(given: Number, shares: int) -> Fraction:
    """One of several equal shares of a budget, rounded down to 10⁻¹²."""
    units = Cost.within(given).epsilon_units // shares
    if not units:
        raise InvalidValue(f"ε must be at least {shares}e-12, because it is split in {shares}, got {brief(given)}")
    return Cost.of_units(units).exact_epsilon


_USUAL: dict[str, FieldRule] = {
    "epsilon": requested_epsilon,
    "delta": requested_delta,
    "rho": requested_epsilon,
    "missing": finite,
}


def whole_sensitivity(given: Number) -> Fraction:
    """The sensitivity of whole numbers, which is at least 1 if they move at all."""
    number = exact(given, "sensitivity")
    if number < 1:
        raise InvalidValue(
            f"whole numbers that move at all move by 1, but the sensitivity is {given}: "
            "declare at least 1; give floats only if the values have fractions"
        )
    return number


def check_monotone(monotone: bool, neighbours: str | None) -> None:
    """Refuse to take values as monotone under a relation for which counts are not."""
    if monotone and neighbours != "add-remove":
        raise InvalidValue(
            f"monotone values all move the same way when a record is added, and neighbours are {neighbours!r}: leave "
            "monotone out, or say neighbours='add-remove' if that is what is protected (exchanging a record moves "
            "counts both ways)"
        )


def as_unit_name(unit: Any) -> str | None:
    """The name of a unit of privacy, or None."""
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise InvalidValue(f"a unit is named by a text that is not empty, such as 'patient'; got {brief(unit)}")
    return unit


def common_unit(units: Iterable[str | None]) -> str | None:
    """The unit of several guarantees, some of which may have none, in the most general words. Or ``UnitMismatch``.

    A row of which it is not said what it is remains one, also beside rows that are said to be visits.
    """
    found: str | None = None
    for unit in units:
        if found is None or unit is None:
            found = found or unit
        elif not same_unit(found, unit):
            if not same_unit(unit, found):
                raise UnitMismatch(unit, found, "what it is used with")
            found = unit
    return found
