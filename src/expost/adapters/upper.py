"""Numbers of other libraries, as exact upper bounds; and the libraries themselves, or what to install."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from math import inf, isfinite, nextafter
from numbers import Rational, Real
from typing import Any

from expost.accounting.renyi import epsilon_at
from expost.checks import requested_delta
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue, MissingDependency
from expost.mentions import brief

_ORDERS = [1 + 2.0 ** (i / 4) for i in range(-28, 72)]
"""Orders that are tried for an ε at a δ; any order gives one that holds."""


def library(name: str, package: str, what: str, extra: str) -> Any:
    """The module of that name. Raises ``MissingDependency`` if it, or what it needs, is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise MissingDependency(what, package, extra) from missing


def as_guaranteed(value: Any, what: str) -> Fraction:
    """A privacy loss that a library computed: a float is what it is, not what it prints as.

    >>> as_guaranteed(0.1, "ε") > Fraction(1, 10)
    True
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidValue(f"{what} is a number, got {brief(value)}")
    if not isfinite(value):
        raise InvalidValue(f"{what} is {value}, which guarantees nothing: add noise, or bound what one person changes")
    if value < 0:
        raise InvalidValue(f"{what} is not negative, got {brief(value)}")
    number = Fraction(value) if isinstance(value, Rational) else Fraction(float(value))
    Cost(number)  # refused if it is more than any ledger can hold
    return number


def float_below(delta: Number) -> float:
    """The largest float that is not above a δ that was asked for, which is read by its text."""
    wanted = exact(requested_delta(delta), "δ")
    near = float(wanted)
    return near if Fraction(near) <= wanted else nextafter(near, 0.0)


def epsilon_of_curve(price_at: Any, delta: Number) -> Fraction:
    """The least ε at this δ that a curve of Rényi prices gives, at one of many orders.

    ``price_at(order)`` is an upper bound of the price at that order; infinite where it knows none.

    Proof: lem-renyi-capacity
    """
    coarse = {order: _epsilon(price_at, order, delta) for order in map(_order, _ORDERS)}
    best = min(coarse, key=coarse.__getitem__)
    finer = [_order(1 + float(best - 1) * 2.0 ** (i / 32)) for i in range(-8, 9)]
    found = min(coarse[best], *(_epsilon(price_at, order, delta) for order in finer))
    if isinstance(found, float):
        raise InvalidValue("the Rényi prices are infinite at every order, which guarantees nothing: add noise")
    return found


def _order(near: float) -> Fraction:
    return 1 + Fraction(max(round((near - 1) * 1024), 1), 1024)


def _epsilon(price_at: Any, order: Fraction, delta: Number) -> Fraction | float:
    price = price_at(order)
    if price == inf:
        return inf
    return epsilon_at(order, as_guaranteed(price, "a Rényi price"), delta)
