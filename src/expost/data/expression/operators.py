"""The table of operators: the meaning of each, and its rendering in DuckDB's SQL.

Every operator is defined for every value of the kinds that it takes. Where there is no result (a division by zero, a
whole number of more than 64 bits, text that is not a number, a date after 9999) it gives NULL for that row. No
rendering can fail, whatever an engine evaluates or skips: the values themselves are guarded, so it does not matter
which branch of a CASE an optimizer evaluates.

Functions whose last digit IEEE 754 does not determine (exp, ln, pow) are left out: an engine may compute them
differently for the same value, depending on the rows around it.
"""

from __future__ import annotations

import operator as python
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from itertools import product
from math import copysign, floor, isfinite, isinf, isnan, sqrt, trunc
from typing import Any

from expost.data.expression import calendar, patterns
from expost.data.expression.tree import Kind, Operator

LONGEST_MADE = 4096
"""The most characters of a result of ``||``, so that expressions cannot make large texts from small ones."""
VALUE_KINDS: tuple[Kind, ...] = ("integer", "number", "text", "boolean", "date", "timestamp")
LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**63 - 1
_NUMBERS: tuple[Kind, ...] = ("integer", "number")
_TABLE: list[Operator] = []


def _add(
    name: str,
    takes: Sequence[Kind] | Kind,
    gives: Kind,
    meaning: Callable[..., Any],
    duckdb: str | Callable[[Sequence[str]], str],
    **more: Any,
) -> None:
    kinds = (takes,) if isinstance(takes, str) else tuple(takes)
    _TABLE.append(Operator(name, kinds, gives, meaning, duckdb, **more))


# ---- comparisons: NaN is equal to itself and above all numbers; text is ordered by code points


def _order(value: Any) -> Any:
    return (isnan(value), 0.0 if isnan(value) else value) if isinstance(value, float) else value


def _compared(relation: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: relation(_order(a), _order(b))


_same = _compared(python.eq)


def _among(value: Any, *others: Any) -> bool | None:
    if value is None:
        return None
    found = [None if other is None else _same(value, other) for other in others]
    return True if True in found else None if None in found else False


def _between(value: Any, low: Any, high: Any) -> bool | None:
    return _all(*(None if None in ends else _compared(python.le)(*ends) for ends in ((low, value), (value, high))))


def _distinct(a: Any, b: Any) -> bool:
    return a is not b if a is None or b is None else not _same(a, b)


COMPARISONS = {"=": python.eq, "<>": python.ne, "<": python.lt, "<=": python.le, ">": python.gt, ">=": python.ge}
for _sign, _kind in product(COMPARISONS, VALUE_KINDS):
    _add(_sign, (_kind, _kind), "boolean", _compared(COMPARISONS[_sign]), f"($0 {_sign} $1)", prefix=True)
for _kind in VALUE_KINDS:
    _add("BETWEEN", (_kind,) * 3, "boolean", _between, "($0 BETWEEN $1 AND $2)", strict=False, prefix=True)
    _add("IN", (_kind, _kind), "boolean", _among, lambda args: f"({args[0]} IN ({', '.join(args[1:])}))",
         strict=False, many=True, prefix=True)  # fmt: skip
    _add("IS DISTINCT FROM", (_kind, _kind), "boolean", _distinct, "($0 IS DISTINCT FROM $1)", strict=False)
    _add("IS NULL", _kind, "boolean", lambda a: a is None, "($0 IS NULL)", strict=False, prefix=True)


# ---- three-valued logic


def _all(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _any(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


_add("AND", "boolean", "boolean", _all, lambda args: f"({' AND '.join(args)})", strict=False, many=True)
_add("OR", "boolean", "boolean", _any, lambda args: f"({' OR '.join(args)})", strict=False, many=True)
_add("NOT", "boolean", "boolean", python.not_, "(NOT $0)")


# ---- choices


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _largest(*values: Any) -> Any:
    return max((value for value in values if value is not None), key=_order, default=None)


def _smallest(*values: Any) -> Any:
    return min((value for value in values if value is not None), key=_order, default=None)


def _listed(name: str) -> Callable[[Sequence[str]], str]:
    return lambda args: f"{name}({', '.join(args)})"


for _kind in VALUE_KINDS:
    _add("CASE", ("boolean", _kind, _kind), _kind, lambda when, a, b: a if when else b,
         "(CASE WHEN $0 THEN $1 ELSE $2 END)", strict=False)  # fmt: skip
    _add("coalesce", _kind, _kind, _first, _listed("coalesce"), strict=False, many=True)
    _add("nullif", (_kind, _kind), _kind, lambda a, b: None if b is not None and a is not None and _same(a, b) else a,
         "(CASE WHEN $0 = $1 THEN NULL ELSE $0 END)", strict=False)  # fmt: skip
    _add("greatest", _kind, _kind, _largest, _listed("greatest"), strict=False, many=True)
    _add("least", _kind, _kind, _smallest, _listed("least"), strict=False, many=True)


# ---- arithmetic: of integers in 128 bits, NULL beyond 64; of numbers by IEEE 754


def _whole(value: int) -> int | None:
    return value if LEAST_INTEGER <= value <= MOST_INTEGER else None


def _wide(formula: str) -> str:
    """A formula of integers, computed in 128 bits; NULL if the result has more than 64."""
    wide = re.sub(r"(\$\d)", r"CAST(\1 AS HUGEINT)", formula)
    return f"TRY_CAST({wide} AS BIGINT)"


def _rounded(value: float) -> float:
    """The nearest whole number; halves are rounded away from zero."""
    if not isfinite(value):
        return value
    near = float(trunc(value))
    return copysign(near + copysign(1.0, value) if abs(value - near) >= 0.5 else near, value)


def _as_integer(value: float) -> int | None:
    return _whole(int(_rounded(value))) if isfinite(value) else None


def _floor(value: float) -> float:
    return copysign(float(floor(value)), value) if isfinite(value) else value


def _ceiling(value: float) -> float:
    return copysign(float(-floor(-value)), value) if isfinite(value) else value


def _quotient(a: int, b: int) -> int | None:
    """The quotient, rounded towards zero."""
    return None if b == 0 else _whole(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def _remainder(a: int, b: int) -> int | None:
    """The remainder, with the sign of the first number."""
    return None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


_DIVISOR = "CASE WHEN $1 <> 0 THEN $1 END"
for _sign, _meaning in (("+", python.add), ("-", python.sub), ("*", python.mul)):
    _add(_sign, ("integer", "integer"), "integer", lambda a, b, f=_meaning: _whole(f(a, b)), _wide(f"$0 {_sign} $1"))
    _add(_sign, ("number", "number"), "number", _meaning, f"($0 {_sign} $1)")
_add("/", ("number", "number"), "number", lambda a, b: None if b == 0 else a / b, f"($0 / {_DIVISOR})")
_add("//", ("integer", "integer"), "integer", _quotient,
     "TRY_CAST(CAST($0 AS HUGEINT) // CASE WHEN $1 <> 0 THEN CAST($1 AS HUGEINT) END AS BIGINT)")  # fmt: skip
_add("%", ("integer", "integer"), "integer", _remainder,
     "TRY_CAST(CAST($0 AS HUGEINT) % CASE WHEN $1 <> 0 THEN CAST($1 AS HUGEINT) END AS BIGINT)")  # fmt: skip
_add("negative", "integer", "integer", lambda a: _whole(-a), _wide("0::HUGEINT - $0"))
_add("negative", "number", "number", python.neg, "(-$0)")
_add("abs", "integer", "integer", lambda a: _whole(abs(a)), _wide("abs($0)"))
_add("abs", "number", "number", abs, "abs($0)")
_add("sign", "integer", "integer", lambda a: (a > 0) - (a < 0), "CAST(sign($0) AS BIGINT)")
_add("sign", "number", "integer", lambda a: (a > 0) - (a < 0), "CAST(sign($0) AS BIGINT)")
_add("floor", "number", "number", _floor, "floor($0)")
_add("ceil", "number", "number", _ceiling, "ceil($0)")
_add("round", "number", "number", _rounded, "round($0)")
for _name in ("floor", "ceil", "round"):
    _add(_name, "integer", "integer", lambda a: a, "$0")
_add("sqrt", "number", "number", lambda a: None if a < 0 else a if isnan(a) else sqrt(a),
     "sqrt(CASE WHEN $0 >= 0 THEN $0 END)")  # fmt: skip
_add("isnan", "number", "boolean", isnan, "isnan($0)")
_add("isinf", "number", "boolean", isinf, "isinf($0)")


# ---- text: sequences of Unicode code points

_LOWER = {"İ": "i"}
_UPPER = {"ß": "ẞ"} | {
    chr(code): chr(code + shift)
    for codes, shift in (
        ([*range(0x1F80, 0x1F88), *range(0x1F90, 0x1F98), *range(0x1FA0, 0x1FA8)], 8),
        ([0x1FB3, 0x1FC3, 0x1FF3], 9),
    )
    for code in codes
}
"""Letters whose capital is one letter here, while Python's has two."""


def _mapped(text: str, mapping: Callable[[str], str], own: dict[str, str]) -> str:
    return "".join(own.get(a) or (mapping(a) if len(mapping(a)) == 1 else a) for a in text)


def lower(text: str) -> str:
    """The text in lower case, one code point for each."""
    return _mapped(text, str.lower, _LOWER)


def upper(text: str) -> str:
    """The text in upper case, one code point for each."""
    return _mapped(text, str.upper, _UPPER)


_add("lower", "text", "text", lower, "lower($0)")
_add("upper", "text", "text", upper, "upper($0)")
_add("trim", "text", "text", lambda a: a.strip(" "), "trim($0, ' ')")
_add("ltrim", "text", "text", lambda a: a.lstrip(" "), "ltrim($0, ' ')")
_add("rtrim", "text", "text", lambda a: a.rstrip(" "), "rtrim($0, ' ')")
_add("length", "text", "integer", len, "length($0)")
_add("||", ("text", "text"), "text", lambda a, b: (a + b)[:LONGEST_MADE], f"left($0 || $1, {LONGEST_MADE})")
_add("starts_with", ("text", "text"), "boolean", str.startswith, "starts_with($0, $1)")
_add("ends_with", ("text", "text"), "boolean", str.endswith, "ends_with($0, $1)")
_add("contains", ("text", "text"), "boolean", python.contains, "contains($0, $1)")
_add("strpos", ("text", "text"), "integer", lambda a, b: a.find(b) + 1, "strpos($0, $1)")


# ---- dates and timestamps

_DAY, _TIME = "DATE '1970-01-01'", "TIMESTAMP '1970-01-01'"
UNITS = ("year", "quarter", "month", "week", "day")
UNITS_OF_TIME = ("hour", "minute", "second")


def _clamped(far: int) -> str:
    return f"least(greatest($1, -{far}), {far})"


def _later(place: str, first: int, last: int, later: str) -> str:
    """``later``, or NULL outside the years 1 to 9999. It is computed from a clamped number, so it never fails."""
    return f"(CASE WHEN CAST({place} AS HUGEINT) BETWEEN {first} AND {last} THEN {later} END)"


for _sign, _minus in (("+", 1), ("-", -1)):
    _add(_sign, ("date", "integer"), "date", lambda a, b, m=_minus: calendar.add_days(a, m * b),
         _later(f"$0 - {_DAY} {_sign} CAST($1 AS HUGEINT)", calendar.FIRST_DAY, calendar.LAST_DAY,
                f"$0 {_sign} CAST({_clamped(4_000_000)} AS INTEGER)"))  # fmt: skip
_add("-", ("date", "date"), "integer", lambda a, b: (a - b).days, "($0 - $1)")
_MONTHS = "12 * year($0) + month($0) - 1 + CAST($1 AS HUGEINT)"
for _kind, _type in (("date", "DATE"), ("timestamp", "TIMESTAMP")):
    _add("add_months", (_kind, "integer"), _kind, calendar.add_months,
         _later(_MONTHS, calendar.FIRST_MONTH, calendar.LAST_MONTH,
                f"CAST($0 + to_months(CAST({_clamped(120_000)} AS INTEGER)) AS {_type})"))  # fmt: skip
_add("add_seconds", ("timestamp", "integer"), "timestamp", calendar.add_seconds,
     _later("epoch_us($0) + 1000000 * CAST($1 AS HUGEINT)", calendar.FIRST_INSTANT, calendar.LAST_INSTANT,
            f"$0 + to_microseconds(1000000 * {_clamped(400_000_000_000)})"))  # fmt: skip
for _name, _part in calendar.PARTS.items():
    _add(_name, "date", "integer", _part, f"{_name}($0)")
    _add(_name, "timestamp", "integer", _part, f"{_name}($0)")
for _name, _time_part in calendar.PARTS_OF_TIME.items():
    _add(_name, "timestamp", "integer", _time_part, f"{_name}($0)")
for _unit in UNITS:
    _add(f"date_trunc('{_unit}')", "date", "date", lambda a, u=_unit: calendar.truncated(u, a),
         f"CAST(date_trunc('{_unit}', $0) AS DATE)")  # fmt: skip
for _unit in (*UNITS, *UNITS_OF_TIME):
    _add(f"date_trunc('{_unit}')", "timestamp", "timestamp", lambda a, u=_unit: calendar.truncated_time(u, a),
         f"CAST(date_trunc('{_unit}', $0) AS TIMESTAMP)")  # fmt: skip
    _between_weeks = "((CAST(date_trunc('week', $1) AS DATE) - CAST(date_trunc('week', $0) AS DATE)) // 7)"
    _add(f"date_diff('{_unit}')", ("timestamp", "timestamp"), "integer",
         lambda a, b, u=_unit: calendar.difference(u, a, b),
         _between_weeks if _unit == "week" else f"date_diff('{_unit}', $0, $1)")  # fmt: skip


# ---- conversions

WHOLE_TEXT = r" *([+-]?[0-9]{1,19}) *"
BOOLEAN_TEXT = " *([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]) *"
"""Regular expressions for whole numbers and truth values, which mean the same in RE2, Java and Python."""
_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"
_NUMBER = rf" *({_DECIMAL}|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]) *"


def _extracted(form: str, kind: str) -> str:
    """A text of that form, converted; other texts are extracted as the empty text, which converts to NULL."""
    return rf"TRY_CAST(regexp_extract($0, '\A{form}\z', 1) AS {kind})"


def _read_number(text: str) -> float | None:
    return float(text.strip(" ")) if re.fullmatch(_NUMBER, text) else None


def _read_whole(text: str) -> int | None:
    return _whole(int(text.strip(" "))) if re.fullmatch(WHOLE_TEXT, text) else None


def _read_boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(lower(text.strip(" ")))


_CASTS: tuple[tuple[Kind, Kind, Callable[..., Any], str], ...] = (
    *((kind, kind, lambda a: a, "$0") for kind in VALUE_KINDS),
    ("integer", "number", float, "CAST($0 AS DOUBLE)"),
    ("integer", "text", str, "CAST($0 AS VARCHAR)"),
    ("integer", "boolean", bool, "($0 <> 0)"),
    ("number", "integer", _as_integer, "TRY_CAST(round($0) AS BIGINT)"),
    ("boolean", "integer", int, "CAST($0 AS BIGINT)"),
    ("boolean", "number", float, "CAST($0 AS DOUBLE)"),
    ("boolean", "text", lambda a: str(a).lower(), "CAST($0 AS VARCHAR)"),
    ("text", "integer", _read_whole, _extracted(WHOLE_TEXT, "BIGINT")),
    ("text", "number", _read_number, _extracted(_NUMBER, "DOUBLE")),
    ("text", "boolean", _read_boolean, _extracted(BOOLEAN_TEXT, "BOOLEAN")),
    ("text", "date", calendar.as_date, _extracted(f" *({calendar.DATE}) *", "DATE")),
    ("text", "timestamp", calendar.as_timestamp,
     _extracted(f" *({calendar.DATE}([ T]{calendar.TIME})?) *", "TIMESTAMP")),
    ("date", "timestamp", calendar.midnight, "CAST($0 AS TIMESTAMP)"),
    ("timestamp", "date", datetime.date, "CAST($0 AS DATE)"),
    ("date", "text", date.isoformat, "strftime($0, '%Y-%m-%d')"),
    ("timestamp", "text", lambda a: a.isoformat(" ", "microseconds"), "strftime($0, '%Y-%m-%d %H:%M:%S.%f')"),
)  # fmt: skip
CASTS = {
    (taken, given): Operator(f"CAST AS {given.upper()}", (taken,), given, meaning, duckdb)
    for taken, given, meaning, duckdb in _CASTS
}
"""Conversions by the kinds from and to. There is none from number to text, which engines write differently."""


# ---- operators with a constant: a length, a pattern


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def left(count: int) -> Operator:
    """The first characters of a text."""
    return Operator("left", ("text",), "text", lambda a: a[:count], f"left($0, {count})", stated=(count,))


def right(count: int) -> Operator:
    """The last characters of a text."""
    meaning: Callable[[str], str] = lambda a: a[len(a) - min(count, len(a)) :]  # noqa: E731
    return Operator("right", ("text",), "text", meaning, f"right($0, {count})", stated=(count,))


def substring(start: int, count: int) -> Operator:
    """``count`` characters of a text from a position, counted from 1."""
    return Operator(
        "substring",
        ("text",),
        "text",
        lambda a: a[start - 1 :][:count],
        f"substring($0, {start}, {count})",
        stated=(start, count),
    )


def like(pattern: str) -> Operator:
    """Whether a whole text matches a LIKE pattern: % is any text, _ any character."""
    matched = _duckdb_like(pattern)
    return Operator("LIKE", ("text",), "boolean", lambda a: patterns.is_like(a, pattern), matched, stated=(pattern,))


def _duckdb_like(pattern: str) -> Callable[[Sequence[str]], str]:
    """The simplest function for the pattern; each takes time linear in the length of the text."""
    inner = pattern.strip("%")
    if "%" in inner or "_" in inner:
        return lambda args: f"regexp_matches({args[0]}, {_quoted(patterns.like_pattern(pattern).re2)})"
    names = {(True, True): "contains", (True, False): "ends_with", (False, True): "starts_with"}
    name = names.get((pattern.startswith("%"), pattern.endswith("%")))
    if name is None:
        return lambda args: f"({args[0]} = {_quoted(pattern)})"
    return lambda args: f"{name}({args[0]}, {_quoted(inner)})"


def regexp_matches(pattern: str) -> Operator:
    """Whether a regular expression matches anywhere in a text."""
    read = patterns.regular(pattern)
    rendered = _quoted(read.re2)
    return Operator(
        "regexp_matches",
        ("text",),
        "boolean",
        read.found_in,
        lambda args: f"regexp_matches({args[0]}, {rendered})",
        stated=(read.re2,),
    )


TABLE: tuple[Operator, ...] = tuple(_TABLE)
"""All operators except conversions and those with a constant."""
