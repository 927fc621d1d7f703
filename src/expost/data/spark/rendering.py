"""The table of operators in Spark's SQL: one rendering for each, none of which can fail.

The session is not in ANSI mode, so what cannot be computed is NULL. Whole numbers are computed as decimals of 38
digits, and NULL beyond 64 bits; upper and lower case are tables of this package; dates are clamped to the years 1 to
9999. Java matches regular expressions by backtracking: only those of a fixed length are rendered, which take time
linear in the length of the text, and the others raise an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from itertools import product

from expost.data.expression import Kind, operators
from expost.data.expression.calendar import (
    DATE,
    FIRST_DAY,
    FIRST_INSTANT,
    FIRST_MONTH,
    LAST_DAY,
    LAST_INSTANT,
    LAST_MONTH,
    SECONDS_PER_UNIT,
    TIME,
)
from expost.data.expression.operators import BOOLEAN_TEXT, LONGEST_MADE, UNITS, UNITS_OF_TIME, VALUE_KINDS, WHOLE_TEXT
from expost.data.expression.tree import Call, Operator, Stated
from expost.errors import InvalidValue
from expost.mentions import brief

Rendering = str | Callable[[Sequence[str]], str]
SPARK_TYPES: dict[Kind, str] = {
    "integer": "BIGINT", "number": "DOUBLE", "text": "STRING", "boolean": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
}  # fmt: skip


def spark_string(value: str) -> str:
    """A text, in single quotes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r") + "'"


def spark_identifier(value: str) -> str:
    """A name, in backquotes."""
    return "`" + value.replace("`", "``") + "`"


def spark_stated(tree: Stated) -> str:
    """A literal, with its type."""
    if tree.value is None:
        return "NULL" if tree.kind is None else f"CAST(NULL AS {SPARK_TYPES[tree.kind]})"
    if isinstance(tree.value, bool):
        return "TRUE" if tree.value else "FALSE"
    if tree.kind == "text":
        return spark_string(str(tree.value))
    written = tree.value.isoformat() if isinstance(tree.value, date) else f"{tree.value}"
    return f"CAST('{written}' AS {SPARK_TYPES[tree.kind or 'text']})"


def rendering(call: Call) -> Rendering:
    """The rendering of an operator."""
    operator = call.operator
    if operator.stated:
        return _with_stated(operator)
    if operator.name.startswith("CAST AS "):
        return SPARK_CASTS[operator.takes[0], operator.gives]
    return SPARK_OPERATORS[operator.name, operator.takes]


# ---- the table

SPARK_OPERATORS: dict[tuple[str, tuple[Kind, ...]], Rendering] = {}


def _add(name: str, takes: Sequence[Kind] | Kind, rendered: Rendering) -> None:
    SPARK_OPERATORS[name, (takes,) if isinstance(takes, str) else tuple(takes)] = rendered


def _joined(sign: str) -> Callable[[Sequence[str]], str]:
    return lambda args: f"({sign.join(args)})"


def _listed(name: str) -> Callable[[Sequence[str]], str]:
    """A function of any number of values; Spark's take at least two."""
    return lambda args: args[0] if len(args) == 1 else f"{name}({', '.join(args)})"


for _sign, _kind in product(operators.COMPARISONS, VALUE_KINDS):
    _add(_sign, (_kind, _kind), f"($0 {_sign} $1)")
for _kind in VALUE_KINDS:
    _add("BETWEEN", (_kind,) * 3, "($0 BETWEEN $1 AND $2)")
    _add("IN", (_kind, _kind), lambda args: f"({args[0]} IN ({', '.join(args[1:])}))")
    _add("IS DISTINCT FROM", (_kind, _kind), "(NOT ($0 <=> $1))")
    _add("IS NULL", _kind, "($0 IS NULL)")
    _add("CASE", ("boolean", _kind, _kind), "(CASE WHEN $0 THEN $1 ELSE $2 END)")
    _add("coalesce", _kind, _listed("coalesce"))
    _add("nullif", (_kind, _kind), "(CASE WHEN $0 = $1 THEN NULL ELSE $0 END)")
    _add("greatest", _kind, _listed("greatest"))
    _add("least", _kind, _listed("least"))
_add("AND", "boolean", _joined(" AND "))
_add("OR", "boolean", _joined(" OR "))
_add("NOT", "boolean", "(NOT $0)")


def _wide(formula: str) -> str:
    """A formula of integers, computed in 38 digits; NULL if the result has more than 64 bits."""
    wide = re.sub(r"([$][0-9])", r"CAST(\1 AS DECIMAL(20, 0))", formula)
    return f"try_cast({wide} AS BIGINT)"


_FAR = "CAST('9007199254740992' AS DOUBLE)"
for _sign in "+-*":
    _add(_sign, ("integer", "integer"), _wide(f"$0 {_sign} $1"))
    _add(_sign, ("number", "number"), f"($0 {_sign} $1)")
_add("/", ("number", "number"), "($0 / (CASE WHEN $1 <> CAST('0' AS DOUBLE) THEN $1 END))")
_add("//", ("integer", "integer"),
     f"(CASE WHEN $1 = -1 THEN {_wide('0 - $0')} WHEN $1 <> 0 THEN $0 div $1 END)")  # fmt: skip
_add("%", ("integer", "integer"), "(CASE WHEN $1 <> 0 THEN $0 % $1 END)")
_add("negative", "integer", _wide("0 - $0"))
_add("negative", "number", "(- $0)")
_add("abs", "integer", _wide("abs($0)"))
_add("abs", "number", "abs($0)")
_add("sign", "integer", "CAST(signum($0) AS BIGINT)")
_add("sign", "number", "CAST(signum($0) AS BIGINT)")
_add("floor", "number", f"(CASE WHEN abs($0) < {_FAR} THEN CAST(floor($0) AS DOUBLE) ELSE $0 END)")
_add("ceil", "number", f"(CASE WHEN abs($0) < {_FAR} THEN CAST(ceil($0) AS DOUBLE) ELSE $0 END)")
_add("round", "number", "round($0)")
for _name in ("floor", "ceil", "round"):
    _add(_name, "integer", "$0")
_add("sqrt", "number", "sqrt(CASE WHEN $0 >= CAST('0' AS DOUBLE) THEN $0 END)")
_add("isnan", "number", "(CASE WHEN $0 IS NOT NULL THEN isnan($0) END)")
_add("isinf", "number", "(abs($0) = CAST('Infinity' AS DOUBLE))")

# ---- text


@cache
def _capitals(name: str) -> tuple[str, str]:
    """The letters that lower() or upper() changes, and what they become."""
    change = operators.lower if name == "lower" else operators.upper
    codes = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    changed = [letter for letter in codes if change(letter) != letter]
    return "".join(changed), "".join(map(change, changed))


def _mapped(name: str) -> Callable[[Sequence[str]], str]:
    return lambda args: f"translate({args[0]}, {', '.join(map(spark_string, _capitals(name)))})"


_add("lower", "text", _mapped("lower"))
_add("upper", "text", _mapped("upper"))
_add("trim", "text", "trim(BOTH ' ' FROM $0)")
_add("ltrim", "text", "trim(LEADING ' ' FROM $0)")
_add("rtrim", "text", "trim(TRAILING ' ' FROM $0)")
_add("length", "text", "CAST(char_length($0) AS BIGINT)")
_add("||", ("text", "text"), f"substring(concat($0, $1), 1, {LONGEST_MADE})")
_add("starts_with", ("text", "text"), "startswith($0, $1)")
_add("ends_with", ("text", "text"), "endswith($0, $1)")
_add("contains", ("text", "text"), "contains($0, $1)")
_add("strpos", ("text", "text"), "CAST(instr($0, $1) AS BIGINT)")

# ---- dates and timestamps, in UTC


def _micros(time: str) -> str:
    return f"unix_micros(CAST({time} AS TIMESTAMP))"


def _clamped(far: int) -> str:
    return f"least(greatest($1, -{far}L), {far}L)"


def _later(place: str, first: int, last: int, later: str) -> str:
    """``later``, or NULL outside the years 1 to 9999. It is computed from a clamped number, so it never fails."""
    return f"(CASE WHEN {place} BETWEEN {first} AND {last} THEN {later} END)"


_EPOCH, _SHIFT = "DATE '1970-01-01'", "CAST($1 AS DECIMAL(20, 0))"
for _sign, _name in (("+", "date_add"), ("-", "date_sub")):
    _add(_sign, ("date", "integer"), _later(f"datediff($0, {_EPOCH}) {_sign} {_SHIFT}", FIRST_DAY, LAST_DAY,
                                            f"{_name}($0, CAST({_clamped(4_000_000)} AS INT))"))  # fmt: skip
_add("-", ("date", "date"), "CAST(datediff($0, $1) AS BIGINT)")
_MONTHS = f"12 * year($0) + month($0) - 1 + {_SHIFT}"
_add(
    "add_months",
    ("date", "integer"),
    _later(_MONTHS, FIRST_MONTH, LAST_MONTH, f"add_months($0, CAST({_clamped(120_000)} AS INT))"),
)
_add("add_months", ("timestamp", "integer"),
     _later(_MONTHS, FIRST_MONTH, LAST_MONTH,
            f"($0 + make_ym_interval(0, CAST({_clamped(120_000)} AS INT)))"))  # fmt: skip
_SECONDS_LATER = _clamped(400_000_000_000)
_add("add_seconds", ("timestamp", "integer"),
     _later(f"{_micros('$0')} + 1000000 * {_SHIFT}", FIRST_INSTANT, LAST_INSTANT,
            f"CAST(timestamp_micros({_micros('$0')} + 1000000L * {_SECONDS_LATER}) AS TIMESTAMP_NTZ)"))  # fmt: skip
_PARTS = {"year": "year($0)", "quarter": "quarter($0)", "month": "month($0)", "week": "weekofyear($0)",
          "day": "day($0)", "dayofweek": "(dayofweek($0) - 1)", "isodow": "(weekday($0) + 1)",
          "dayofyear": "dayofyear($0)"}  # fmt: skip
for _name, _part in _PARTS.items():
    _add(_name, "date", f"CAST({_part} AS BIGINT)")
    _add(_name, "timestamp", f"CAST({_part} AS BIGINT)")
for _name in UNITS_OF_TIME:
    _add(_name, "timestamp", f"CAST({_name}($0) AS BIGINT)")
for _unit in UNITS:
    _add(f"date_trunc('{_unit}')", "date", "$0" if _unit == "day" else f"trunc($0, '{_unit}')")


def _truncated(unit: str, time: str) -> str:
    return f"date_trunc('{unit}', CAST({time} AS TIMESTAMP))"


_YEARS, _HAVE = "(year($1) - year($0))", "CASE WHEN $0 IS NOT NULL AND $1 IS NOT NULL THEN"
_DIFFERENCES = {
    "year": _YEARS,
    "quarter": f"(4 * {_YEARS} + quarter($1) - quarter($0))",
    "month": f"(12 * {_YEARS} + month($1) - month($0))",
}
for _unit in (*UNITS, *UNITS_OF_TIME):
    _add(f"date_trunc('{_unit}')", "timestamp", f"CAST({_truncated(_unit, '$0')} AS TIMESTAMP_NTZ)")
    _apart = f"unix_micros({_truncated(_unit, '$1')}) - unix_micros({_truncated(_unit, '$0')})"
    _times = f"({_apart}) div {SECONDS_PER_UNIT.get(_unit, 1) * 1_000_000}L"
    _add(f"date_diff('{_unit}')", ("timestamp", "timestamp"), f"CAST({_DIFFERENCES.get(_unit, _times)} AS BIGINT)")

# ---- conversions


def _extracted(form: str, kind: str) -> str:
    """A text of that form, converted; other texts are NULL. The form is anchored, so that it backtracks little."""
    whole = spark_string(rf"\A{form}\z")
    return f"try_cast(regexp_extract($0, {whole}, 1) AS {kind})"


_NUMBER = (
    r" *([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
    r"|[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]) *"
)
SPARK_CASTS: dict[tuple[Kind, Kind], Rendering] = {
    **{(kind, kind): "$0" for kind in VALUE_KINDS},
    ("integer", "number"): "CAST($0 AS DOUBLE)",
    ("integer", "text"): "CAST($0 AS STRING)",
    ("integer", "boolean"): "($0 <> 0)",
    ("number", "integer"): (
        "(CASE WHEN round($0) >= CAST('-9223372036854775808' AS DOUBLE) AND round($0) < CAST('9223372036854775808' AS "
        "DOUBLE) THEN CAST(round($0) AS BIGINT) END)"
    ),
    ("boolean", "integer"): "CAST($0 AS BIGINT)",
    ("boolean", "number"): "CAST($0 AS DOUBLE)",
    ("boolean", "text"): "CAST($0 AS STRING)",
    ("text", "integer"): _extracted(WHOLE_TEXT, "BIGINT"),
    ("text", "number"): _extracted(_NUMBER, "DOUBLE"),
    ("text", "boolean"): _extracted(BOOLEAN_TEXT, "BOOLEAN"),
    ("text", "date"): _extracted(f" *({DATE}) *", "DATE"),
    ("text", "timestamp"): _extracted(f" *({DATE}(?:[ T]{TIME})?) *", "TIMESTAMP_NTZ"),
    ("date", "timestamp"): "CAST($0 AS TIMESTAMP_NTZ)",
    ("timestamp", "date"): "CAST($0 AS DATE)",
    ("date", "text"): "CAST($0 AS STRING)",
    ("timestamp", "text"): "date_format($0, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
}

# ---- operators with a constant


def _with_stated(operator: Operator) -> Rendering:
    numbers = ", ".join(map(str, operator.stated))
    if operator.name in ("left", "right", "substring"):
        return f"{operator.name}($0, {numbers})"
    (pattern,) = operator.stated
    return _like(pattern) if operator.name == "LIKE" else _matched(pattern)


def _like(pattern: str) -> Rendering:
    """The simplest functions for the pattern; each takes time linear in the length of the text."""
    pieces = pattern.split("%")
    if "_" in pattern:
        if any("_" in piece for piece in pieces) and len([piece for piece in pieces if piece]) > 1:
            raise _refused(pattern, "with _ and a % inside")
        ends = r"\A" if pieces[0] or len(pieces) == 1 else "", r"\z" if pieces[-1] or len(pieces) == 1 else ""
        piece = max(pieces, key=len)
        written = "".join(r"[\s\S]" if letter == "_" else _quoted(letter) for letter in piece)
        return f"regexp_like($0, {spark_string(ends[0] + written + ends[1])})"
    if len(pieces) == 1:
        return f"($0 = {spark_string(pattern)})"
    return lambda args: _in_turn(args[0], pieces)


def _in_turn(text: str, pieces: Sequence[str]) -> str:
    """The first piece at the beginning, the last at the end, and each of the others at its earliest position."""
    first, *middle, last = pieces
    whole = sum(map(len, pieces))
    conditions = [f"startswith({text}, {spark_string(first)})", f"endswith({text}, {spark_string(last)})"]
    conditions.append(f"char_length({text}) >= {whole}")
    rest = f"substring({text}, {len(first) + 1}, greatest(char_length({text}) - {len(first) + len(last)}, 0))"
    inner = [piece for piece in middle if piece]
    if len(inner) > 4:
        raise _refused("%".join(pieces), "with more than four texts between %")
    for piece in inner:
        conditions.append(f"contains({rest}, {spark_string(piece)})")
        rest = f"substring({rest}, instr({rest}, {spark_string(piece)}) + {len(piece)})"
    return f"({' AND '.join(conditions)})"


def _quoted(letter: str) -> str:
    return f"\\{letter}" if letter.isascii() and not letter.isalnum() and letter.isprintable() else letter


def _matched(pattern: str) -> Rendering:
    """A regular expression; \\b is written out, because Java's has other word characters."""
    if not _is_fixed(pattern):
        raise _refused(pattern, "with repetition, or with alternatives in parentheses")
    word = "[0-9A-Za-z_]"
    bound = f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    ours = re.sub(r"((?:[\\]{2})*)[\\]b", lambda found: found[1] + bound, pattern)
    return f"regexp_like($0, {spark_string(ours)})"


def _is_fixed(pattern: str) -> bool:
    """Whether each alternative of a pattern matches texts of one length only."""
    place, depth, inside = 0, 0, False
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\":
            place += 2
            continue
        if inside:
            inside = letter != "]"
        elif letter == "[":
            inside = True
        elif (
            letter in "*+"
            or (letter == "?" and pattern[place - 1] != "(")
            or (letter == "{" and not re.match(r"\{\d+\}", pattern[place:]))
            or (letter == "|" and depth)
        ):
            return False
        depth += (letter == "(") - (letter == ")") if not inside else 0
        place += 1
    return True


def _refused(pattern: str, what: str) -> InvalidValue:
    return InvalidValue(
        f"Spark cannot match {brief(pattern)} in time linear in the text, so patterns {what} are not allowed: use "
        "contains(), starts_with() and ends_with(), or several conditions"
    )
