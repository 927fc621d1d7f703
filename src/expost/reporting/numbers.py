"""Digits that mean something: of errors two, of values as many as their errors leave, of ε three.

Thousands are set apart by a thin space that no line ends at, and a minus is one. What is exact stands under the fold.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from math import exp, isfinite

from expost.frame import number_text

NARROW = "\u202f"
_SPACE, _MINUS = "\u00a0", "\u2212"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS = 3
_LARGEST, _MOST_PLACES = 1e15, 9
"""What has more digits before the point, or after it, is a power of ten."""
_LOPSIDED = 1.25
"""How much farther one end of an interval is than the other where ± would mislead."""


def number_shown(value: float) -> str:
    """A number of which no error is known."""
    return _set(number_text(value))


def to_its_error(value: float, error: float | None) -> tuple[str, str]:
    """A number and its error, which rounds up to two digits; both end at the same place. No error is an empty text."""
    if error is None:
        return number_shown(value), ""
    if not isfinite(error) or not error or max(abs(value), error) >= _LARGEST:
        return number_shown(value), "∞" if not isfinite(error) else number_shown(error)
    place = _place(error, whole=isinstance(value, int))
    if place < -_MOST_PLACES:
        return number_shown(value), number_shown(error)
    return _at(value, place, ROUND_HALF_EVEN), _at(error, place, ROUND_CEILING)


def with_bar(value: float, low: float | None, high: float | None, error: float | None) -> str:
    """A number and its error as one text."""
    number, reach = with_reach(value, low, high, error)
    return f"{number}{_SPACE}{reach}" if reach else number


def with_reach(value: float, low: float | None, high: float | None, error: float | None) -> tuple[str, str]:
    """A number, and ± its error; or the ends of its interval, where one of them is much farther away."""
    if low is not None and high is not None and isfinite(low) and isfinite(high):
        near, far = sorted((float(value) - low, high - float(value)))
        if 0 <= near < far / _LOPSIDED and max(abs(low), abs(high)) < _LARGEST:
            place = max(_place(near, whole=False) if near else -_MOST_PLACES, _place(far, whole=False) - 1)
            if place >= -_MOST_PLACES:
                ends = _at(low, place, ROUND_FLOOR), _at(high, place, ROUND_CEILING)
                return _at(value, place, ROUND_HALF_EVEN), f"({ends[0]}{_SPACE}to{_SPACE}{ends[1]})"
    number, reach = to_its_error(value, error)
    return number, f"±{_SPACE}{reach}" if reach else ""


def _place(error: float, *, whole: bool) -> int:
    """The power of ten at which an error of two digits ends."""
    exact = Decimal(repr(error))
    place = exact.adjusted() - 1
    if (exact.scaleb(-place)).to_integral_value(ROUND_CEILING) >= 100:  # it was rounded up to one digit more
        place += 1
    return max(place, 0) if whole else place


def _at(number: float, place: int, rounding: str) -> str:
    exact = Decimal(repr(float(number))) if isinstance(number, float) else Decimal(int(number))
    found = exact.scaleb(-place).to_integral_value(rounding).scaleb(place)
    return _set(f"{found + 0:,.{max(-place, 0)}f}")


def _set(text: str) -> str:
    return text.replace(",", NARROW).replace("-", _MINUS)


def epsilon_up(epsilon: Decimal | str) -> str:
    """An ε that is reserved or charged, rounded up to three digits."""
    return _brief(Decimal(epsilon), ROUND_CEILING)


def epsilon_down(epsilon: Decimal | str) -> str:
    """An ε that remains or came back, rounded down to three digits."""
    return _brief(Decimal(epsilon), ROUND_FLOOR)


def _brief(number: Decimal, rounding: str) -> str:
    if not number:
        return "0"
    place = max(number.adjusted() - _DIGITS + 1, -12)
    return decimal_shown(number.scaleb(-place).to_integral_value(rounding).scaleb(place))


def decimal_shown(number: Decimal | str) -> str:
    """A decimal as it is."""
    text = f"{Decimal(number):f}"
    whole, point, part = text.partition(".")
    part = part.rstrip("0")
    return _set(f"{int(whole):,}" if whole not in ("-0",) else "-0") + (point + part if part else "")


def power_of_ten(delta: Decimal | str) -> str:
    """A δ as a power of ten, rounded up to two digits."""
    number = Decimal(delta)
    if not number or number >= Decimal("0.01"):
        return decimal_shown(number)
    size = number.adjusted()
    lead = number.scaleb(1 - size).to_integral_value(ROUND_CEILING).scaleb(-1)
    if lead >= 10:
        lead, size = lead / 10, size + 1
    return _times_ten(f"{lead.normalize():f}", size)


def _times_ten(lead: str, size: int) -> str:
    ten = f"10{str(size).translate(_SUPERSCRIPTS)}"
    return ten if lead == "1" else f"{lead}·{ten}"


def factor(epsilon: Decimal | str) -> str:
    """e to the ε, to three digits."""
    found = Decimal(repr(exp(min(float(epsilon), 700))))
    if found >= 10**6:
        lead = found.scaleb(-found.adjusted())
        return _times_ten(f"{lead:.3g}", found.adjusted())
    return decimal_shown(f"{float(found):.3g}" if found < 1000 else f"{float(found):.0f}")


def percent(share: float) -> float:
    """A share in per cent, without the digits of its own that a float would add."""
    return float(Decimal(repr(float(share))) * 100)
