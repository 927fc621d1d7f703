"""Functions by name, casts, and units of time. Each function parses its own arguments, after the parenthesis."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from expost.data.expression import calendar, operators
from expost.data.expression.calendar import SECONDS_PER_UNIT
from expost.data.expression.fitting import BY_NAME, apply, become, call
from expost.data.expression.tokens import Tokens
from expost.data.expression.tree import Call, Kind, Stated, Tree
from expost.mentions import brief

if TYPE_CHECKING:
    from expost.data.expression.grammar import Reader

CAST_NAMES: dict[str, Kind] = {
    **dict.fromkeys(("INTEGER", "INT", "BIGINT"), "integer"),
    **dict.fromkeys(("DOUBLE", "NUMBER"), "number"),
    **dict.fromkeys(("TEXT", "VARCHAR"), "text"),
    **dict.fromkeys(("BOOLEAN", "BOOL"), "boolean"),
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
"""The names of kinds in CAST."""
_SYNONYMS = {"ceiling": "ceil", "len": "length", "substr": "substring", "dow": "dayofweek", "doy": "dayofyear"}
_SYNONYMS |= {"prefix": "starts_with", "suffix": "ends_with", "ifnull": "coalesce", "datediff": "date_diff"}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = ("day", "week")
_PLAIN = frozenset(
    name
    for name in BY_NAME
    if name.islower() and name.isidentifier() and name != "negative" and not name.startswith("add_")
)
_AGGREGATES = frozenset(
    ("sum", "count", "avg", "mean", "min", "max", "median", "mode", "stddev", "variance", "quantile")
)
_INEXACT = frozenset(("exp", "ln", "log", "log2", "log10", "pow", "power", "sin", "cos", "tan", "asin", "acos", "atan"))
INEXACT = (
    "engines differ in its last digit, so that a row's value could depend on other rows; compute it before the table "
    "is read, or write x * x and sqrt(x)"
)
"""Why powers and logarithms are not allowed, and what to do."""


def function(reader: Reader, written: str) -> Tree:
    """Parse a call of the function of that name, after its opening parenthesis."""
    name = _SYNONYMS.get(written.lower(), written.lower())
    if name in _SPECIAL:
        return _SPECIAL[name](reader)
    if name not in _PLAIN:
        raise reader.refused(f"{name}()", reader.meant_at(reader.place - 2) or _why_not(name))
    arguments = reader.listed()
    if not arguments:
        raise reader.wrong(f"{name}() has no arguments")
    return call(reader, name, *arguments)


def _why_not(name: str) -> str:
    if name in _INEXACT:
        return INEXACT
    if name in _AGGREGATES:
        return "an expression is about one row; ask for a count, sum, mean or histogram instead"
    if name == "concat":
        return "write a || b, or coalesce(a, '') || b where a may be NULL"
    if name == "try":
        return "it is not needed, because what cannot be computed is NULL"
    near = get_close_matches(name, FUNCTIONS, n=1)
    hint = f"did you mean {near[0]}()? " if near else ""
    return f"{hint}only deterministic functions of one row are, and expost.data.ALLOWED lists them"


# ---- conversions and choices


def cast(reader: Reader, tree: Tree) -> Tree:
    """The value converted to the type that is named next."""
    word = reader.next.word or reader.next.text
    kind = CAST_NAMES.get(word)
    if kind is None:
        raise reader.refused(f"CAST to {brief(word)}", "cast to INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP")
    reader.take_any()
    if tree.kind is None:
        return Stated(None, kind)
    operator = operators.CASTS.get((tree.kind, kind))
    if operator is None:
        rounds = "CAST it to INTEGER first, which rounds, or ask for bins"
        why = {("number", "text"): rounds, ("number", "boolean"): "write x <> 0"}
        remedy = why.get((tree.kind, kind), "there is no such conversion")
        raise reader.refused(f"CAST of {tree.kind} to {kind}", remedy)
    return Call(operator, (tree,))


def _cast(reader: Reader) -> Tree:
    tree = reader.expression()
    reader.expect("AS")
    made = cast(reader, tree)
    reader.expect(")")
    return made


def choice(reader: Reader, branches: Sequence[tuple[Tree, Tree]], tree: Tree) -> Tree:
    """The value of the first condition that is true, or the last value. All are converted to one kind first."""
    kinds = {value.kind for value in (*(value for _, value in branches), tree)} - {None}
    wider = {"integer": "number", "date": "timestamp"}
    kind = next((k for k in kinds if all(k in (each, wider.get(str(each))) for each in kinds)), None)
    if kind is None:
        raise reader.wrong("the values of a CASE are of different kinds, and must be of one: use CAST(… AS …)")
    tree = become(tree, kind)
    for when, value in reversed(branches):
        tree = call(reader, "CASE", when, become(value, kind), tree)
    return tree


def _if(reader: Reader) -> Tree:
    arguments = reader.listed()
    if len(arguments) != 3:
        raise reader.wrong("if() takes a condition and two values: if(age < 18, 'young', 'old')")
    return choice(reader, [(arguments[0], arguments[1])], arguments[2])


def _bin(reader: Reader) -> Tree:
    """The lower edge of the bin that a value is in, [a, b); NULL outside."""
    tree, *edges = reader.listed() or [Stated(None, None)]
    stated = [
        each.value
        for each in edges
        if isinstance(each, Stated) and isinstance(each.value, int | float) and not isinstance(each.value, bool)
    ]
    if len(stated) != len(edges) or len(edges) < 2 or any(a >= b for a, b in pairwise(stated)):
        raise reader.wrong("bin() takes a value and two or more numbers in ascending order: bin(age, 0, 18, 65)")
    lows = [call(reader, "AND", call(reader, ">=", tree, a), call(reader, "<", tree, b)) for a, b in pairwise(edges)]
    return choice(reader, list(zip(lows, edges[:-1], strict=True)), Stated(None, None))


def _clip(reader: Reader) -> Tree:
    """The value, clamped between two others. NULL and NaN are unchanged."""
    arguments = reader.listed()
    if len(arguments) != 3:
        raise reader.wrong("clip() takes a value, the least and the most: clip(age, 0, 100)")
    tree, low, high = arguments
    beyond = [(call(reader, "<", tree, low), low), (call(reader, ">", tree, high), high)]
    if tree.kind == "number":
        beyond.insert(0, (call(reader, "isnan", tree), tree))
    return choice(reader, beyond, tree)


def if_whole(reader: Tokens, tree: Tree) -> Tree:
    """A number as an integer, if it is whole; NULL otherwise."""
    if tree.kind == "integer":
        return tree
    is_whole = call(reader, "=", tree, call(reader, "round", tree))
    integer = Call(operators.CASTS["number", "integer"], (tree,))
    return call(reader, "CASE", is_whole, integer, Stated(None, "integer"))


def _whole(reader: Reader) -> Tree:
    arguments = reader.listed()
    if len(arguments) != 1 or arguments[0].kind not in ("integer", "number"):
        raise reader.wrong("whole() takes a number: whole(age)")
    return if_whole(reader, arguments[0])


# ---- functions with constants


def _round(reader: Reader) -> Tree:
    tree, *digits = reader.listed() or [Stated(None, None)]
    if not digits:
        return call(reader, "round", tree)
    places = digits[0].value if len(digits) == 1 and isinstance(digits[0], Stated) else None
    if not isinstance(places, int) or isinstance(places, bool) or not 0 <= places <= 15:
        raise reader.wrong("round() takes a value and optionally a number of digits from 0 to 15: round(x, 2)")
    scale = Stated(float(10**places), "number")
    return call(reader, "/", call(reader, "round", call(reader, "*", tree, scale)), scale)


def stated_text(reader: Reader, tree: Tree, word: str) -> str:
    """A pattern, which must be a literal."""
    if not isinstance(tree, Stated) or not isinstance(tree.value, str):
        raise reader.wrong(f"the pattern of {word} must be a literal text, as in name {word} 'A%'")
    return tree.value


def _regexp(reader: Reader) -> Tree:
    arguments = reader.listed()
    if len(arguments) != 2:
        raise reader.wrong("regexp_matches() takes a text and a pattern, without flags: to ignore case, use lower()")
    pattern = stated_text(reader, arguments[1], "regexp_matches()")
    return apply(reader, operators.regexp_matches(pattern), arguments[0])


def _part_of_text(name: str, reader: Reader) -> Tree:
    tree, *numbers = reader.listed() or [Stated(None, None)]
    counts = [each.value for each in numbers if isinstance(each, Stated) and type(each.value) is int]
    wanted = {"left": (1,), "right": (1,), "substring": (1, 2)}[name]
    first = 1 if name == "substring" else 0
    if len(counts) != len(numbers) or len(counts) not in wanted or not all(0 <= n <= 10**6 for n in counts):
        raise reader.wrong(f"{name}() takes a text and literal whole numbers from {first}, as in {name}(name, 2)")
    if name != "substring":
        return apply(reader, operators.left(counts[0]) if name == "left" else operators.right(counts[0]), tree)
    if counts[0] < 1:
        raise reader.wrong("substring() counts from 1: substring(name, 1, 2)")
    return apply(reader, operators.substring(counts[0], (*counts, 10**6)[1]), tree)


# ---- time


def _unit(reader: Reader) -> str:
    """Parse a unit of time, as a word or in quotation marks."""
    if reader.next.way not in ("word", "text"):
        raise reader.missing("a unit of time")
    token = reader.take_any()
    return _singular(token.text if token.way == "word" else token.unquoted)


def _singular(word: str) -> str:
    single = word.lower().removesuffix("s")
    return single if single in (*SECONDS_PER_UNIT, *_MONTHS) else word.lower()


def _extract(reader: Reader) -> Tree:
    name = _SYNONYMS.get(unit := _unit(reader), unit)
    reader.expect("FROM")
    tree = reader.expression()
    reader.expect(")")
    known = (*calendar.PARTS, *calendar.PARTS_OF_TIME)
    if name not in known:
        raise reader.refused(f"extract({unit} FROM …)", f"its parts are {', '.join(known)}")
    return call(reader, name, tree)


def _of_unit(name: str, reader: Reader) -> Tree:
    unit = _unit(reader)
    reader.expect(",")
    arguments, operator = reader.listed(), f"{name}('{unit}')"
    if operator not in BY_NAME:
        known = ", ".join((*operators.UNITS, *operators.UNITS_OF_TIME))
        raise reader.refused(f"{name}({unit!r}, …)", f"its units are {known}")
    return call(reader, operator, *arguments)


def add_interval(reader: Reader, tree: Tree, sign: str) -> Tree:
    """A date or timestamp plus or minus an interval: INTERVAL 3 DAY, INTERVAL '3 days', INTERVAL (n) MONTH."""
    count, unit = _interval(reader)
    if unit not in (*SECONDS_PER_UNIT, *_MONTHS):
        raise reader.refused(f"INTERVAL of {brief(unit)}", f"its units are {', '.join((*_MONTHS, *SECONDS_PER_UNIT))}")
    days = tree.kind == "date" and unit in _DAYS
    size = _MONTHS.get(unit) or (SECONDS_PER_UNIT[unit] // (SECONDS_PER_UNIT["day"] if days else 1))
    times = count if size == 1 else call(reader, "*", count, Stated(size, "integer"))
    by = times if sign == "+" else call(reader, "negative", times)
    return call(reader, "add_months" if unit in _MONTHS else "+" if days else "add_seconds", tree, by)


def _interval(reader: Reader) -> tuple[Tree, str]:
    if reader.next.way != "text":
        return reader.number() if reader.next.way == "number" else reader.primary(), _unit(reader)
    found = re.fullmatch(r"\s*([+-]?[0-9]{1,18})\s*([A-Za-z]*)\s*", reader.take_any().unquoted)
    if found is None:
        raise reader.wrong("an interval is a whole number and a unit, as in INTERVAL '3' DAY")
    return Stated(int(found[1]), "integer"), _singular(found[2]) if found[2] else _unit(reader)


_SPECIAL: dict[str, Callable[[Reader], Tree]] = {
    "cast": _cast,
    "try_cast": _cast,
    "if": _if,
    "bin": _bin,
    "clip": _clip,
    "whole": _whole,
    "round": _round,
    "regexp_matches": _regexp,
    "extract": _extract,
    **{name: partial(_of_unit, name) for name in ("date_trunc", "date_diff")},
    **{name: partial(_part_of_text, name) for name in ("left", "right", "substring")},
}
FUNCTIONS = tuple(sorted(_PLAIN | _SPECIAL.keys()))
"""The names of functions."""
