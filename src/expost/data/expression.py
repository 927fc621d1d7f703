"""Expressions over one row, as text in SQL: parsed, checked against a list of what is allowed, bound to a schema.

What is allowed gives the same value for the same row, always, and looks at nothing but the row. What cannot be
computed for some row (a division by zero, an overflow, text that is no number) is NULL there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from expost.cost import said
from expost.data.engine import Kind
from expost.errors import InvalidValue

_ONE = "Paren Not Neg Abs Floor Ceil Sign Sqrt Ln Exp IsNan IsInf Lower Upper Length Try"
_ONE_TIME = "Year Month Day Hour Minute Second Quarter Week DayOfWeek DayOfYear"
_TWO = "And Or EQ NEQ GT GTE LT LTE Is NullSafeEQ NullSafeNEQ Nullif Add Sub Mul Div IntDiv Mod Log Pow"
_TWO_TEXTS = "Like ILike Left Right StartsWith EndsWith Contains DPipe"
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(f"{_ONE} {_ONE_TIME}".split(), ("this",)),
    **dict.fromkeys(f"{_TWO} {_TWO_TEXTS}".split(), ("this", "expression")),
    **dict.fromkeys(("In", "Coalesce", "Greatest", "Least"), ("this", "expressions")),
    **dict.fromkeys(("DateTrunc", "TimestampTrunc", "Interval"), ("this", "unit")),
    **dict.fromkeys(("Cast", "TryCast"), ("this", "to")),
    "Between": ("this", "low", "high"),
    "Case": ("this", "ifs", "default"),
    "If": ("this", "true", "false"),
    "Round": ("this", "decimals"),
    "Substring": ("this", "start", "length"),
    "StrPosition": ("this", "substr"),
    "Trim": ("this", "expression", "position"),
    "RegexpLike": ("this", "expression", "flag"),
    "Extract": ("this", "expression"),
    "DateDiff": ("this", "expression", "unit"),
    "Column": ("this",),
    "Identifier": ("this",),
    "Literal": ("this",),
    "Boolean": (),
    "Null": (),
    "DataType": ("this", "expressions"),
    "DataTypeParam": ("this",),
    "Var": ("this",),
}
"""What an expression is made of, and which parts each has. What is not here is refused."""
ALLOWED = (
    "comparisons, AND, OR, NOT, IS, IN, BETWEEN, CASE, if, coalesce, nullif; + - * / // % **, abs, floor, ceil, round, "
    "sign, greatest, least, sqrt, ln, log, exp, pow, isnan, isinf; LIKE, ILIKE, ||, lower, upper, trim, length, "
    "substring, left, right, starts_with, ends_with, contains, strpos, regexp_matches; year … second, quarter, week, "
    "dayofweek, dayofyear, extract, date_trunc, date_diff, INTERVAL; CAST, TRY_CAST, TRY"
)
"""What expressions may have in them."""
_LENGTHS = "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR DECADE"
_PARTS = "CENTURY MILLENNIUM EPOCH DOW ISODOW DOY DAYOFWEEK DAYOFYEAR WEEKOFYEAR ISOYEAR YEARWEEK"
_UNITS = frozenset(f"{_LENGTHS} {_LENGTHS.replace(' ', 'S ')}S {_PARTS}".split())
_NUMBER_TYPES = "TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT UINT128 FLOAT DOUBLE DECIMAL"
_TIME_TYPES = "DATE TIME TIMESTAMP TIMESTAMPNTZ TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS TIMESTAMPTZ INTERVAL"
_TYPES = frozenset(f"BOOLEAN TEXT VARCHAR CHAR UUID {_NUMBER_TYPES} {_TIME_TYPES}".split())
_SIZED = frozenset({"DECIMAL", "TEXT", "VARCHAR", "CHAR"})
_HAVE_UNITS = (exp.Extract, exp.DateDiff, exp.DateTrunc, exp.TimestampTrunc, exp.Interval)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_LENGTH_OF_TIME = re.compile(r"\s*[+-]?[0-9]{1,18}(\s*[A-Za-z]+)?\s*")
_LONGEST, _DEEPEST = 10_000, 100
LONGEST_TEXT = 4096
"""What ``||`` makes is cut to so many characters, so that expressions cannot make much of little."""
HEAVIEST = 10_000
"""An expression, with the derived columns it uses written out, has at most so many parts."""


def parse(text: Any, schema: Mapping[str, Kind]) -> exp.Expression:
    """The expression that ``text`` writes, with its columns as the schema spells them."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise InvalidValue(f"an expression is text in SQL such as 'age >= 18', got {said(text)}")
    tree = _checked(text).copy()
    for column in list(tree.find_all(exp.Column)):
        column.set("this", exp.to_identifier(find(column.name, schema), quoted=True))
    return tree


@lru_cache(maxsize=1024)
def _checked(text: str) -> exp.Expression:
    """The tree, all of it allowed, which its own SQL gives again: what is checked is what an engine reads."""
    if not is_text(text):
        raise InvalidValue("an expression is text that can be written in UTF-8, without NUL")
    tree = _allowed(text, text)
    _refuse_lost_words(text, tree)
    written = _allowed(_sql(tree), text)  # sqlglot has several trees for some functions, and one after writing
    again = _allowed(_sql(written), text)
    if again != written:
        raise InvalidValue(f"{said(text)} can be read in two ways: write it more plainly")
    cut = again.transform(_cut_text)
    return cast(exp.Expression, cut)


def is_text(value: str) -> bool:
    """Whether an engine can be given this text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _refuse_lost_words(text: str, tree: exp.Expression) -> None:
    """SQLGlot leaves out some words without a word: after an interval's unit, in a quoted name of a type."""
    tokens = sqlglot.tokenize(text, read="duckdb")
    for word, length in pairwise(tokens):
        odd = length.token_type == TokenType.STRING and not _LENGTH_OF_TIME.fullmatch(length.text)
        if word.token_type == TokenType.INTERVAL and odd:
            raise InvalidValue(f"an interval is a whole number and a unit, as in INTERVAL '3' DAY: see {said(text)}")
    quoted = sorted(token.text for token in tokens if token.token_type == TokenType.IDENTIFIER)
    if quoted != sorted(name.name for name in tree.find_all(exp.Identifier) if name.args.get("quoted")):
        raise InvalidValue(f"in {said(text)} something other than a column stands in double quotes: only columns may")


def _sql(tree: exp.Expression) -> str:
    return tree.sql("duckdb", comments=False)


def _allowed(text: str, origin: str) -> exp.Expression:
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except (SqlglotError, RecursionError):
        raise InvalidValue(f"{said(origin)} is no expression in SQL: write for instance 'age >= 18'") from None
    if _depth(tree) > _DEEPEST:
        raise InvalidValue(f"{said(origin)} is nested too deeply, or a chain too long: write IN (…), or derive() parts")
    for node in list(tree.walk()):
        if type(node).__name__ not in _ARGUMENTS:
            raise InvalidValue(f"{_called(node)} is not allowed in {said(origin)}: {_why(node)}")
        if isinstance(node, exp.Column) and node.table:
            raise InvalidValue(f"{node.sql('duckdb')!r} in {said(origin)} has two names: give the column's alone")
        if not _fits(node):
            raise InvalidValue(f"{_called(node)} is not allowed in this form in {said(origin)}: {_why(node)}")
    return cast(exp.Expression, tree)


def _depth(tree: Any) -> int:
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(part, depth + 1) for part in node.iter_expressions()]
    return deepest


def _fits(node: Any) -> bool:
    """Whether every part of a node is one that it may have: expressions, switches, and words from fixed lists."""
    parts = {name: part for name, part in node.args.items() if part is not None and part != []}
    known = _ARGUMENTS[type(node).__name__]
    if any(name not in known and not isinstance(part, bool) for name, part in parts.items()):
        return False
    if isinstance(node, exp.Literal):
        return isinstance(node.this, str) and (node.is_string or _NUMBER.fullmatch(node.this) is not None)
    if isinstance(node, exp.Identifier):
        return isinstance(node.this, str) and isinstance(node.parent, exp.Column)
    if isinstance(node, exp.Var):
        return isinstance(node.parent, _HAVE_UNITS) and node.this in _UNITS and not node.args.get("quoted")
    if isinstance(node, exp.DataType):
        return isinstance(node.parent, exp.Cast) and _is_type(node, parts)
    if isinstance(node, exp.DataTypeParam):
        return isinstance(node.this, exp.Literal) and not node.this.is_string and node.name.isdecimal()
    if isinstance(node, _HAVE_UNITS) and not _has_unit(node):
        return False
    if isinstance(node, exp.Trim) and parts.pop("position", "BOTH") not in ("BOTH", "LEADING", "TRAILING"):
        return False
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Identifier):
        return False
    return all(isinstance(one, exp.Expr | bool) for part in parts.values() for one in _listed(part))


def _is_type(node: Any, parts: Mapping[str, Any]) -> bool:
    kind = node.this
    return (
        isinstance(kind, exp.DataType.Type)
        and kind.name in _TYPES
        and all(isinstance(one, exp.DataTypeParam) for one in node.expressions)
        and (not node.expressions or kind.name in _SIZED)
        and not any(part for name, part in parts.items() if name not in ("this", "expressions"))
    )


def _has_unit(node: Any) -> bool:
    """A unit of time from the list; and of an interval, so many of it."""
    unit = node.this if isinstance(node, exp.Extract) else node.args.get("unit")
    if not isinstance(unit, exp.Var | exp.Literal) or unit.name.upper() not in _UNITS:
        return False
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
        return _WHOLE.fullmatch(node.this.name) is not None
    return True


def _listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part]


def _cut_text(node: Any) -> Any:
    if not isinstance(node, exp.DPipe):
        return node
    return exp.Left(this=node.copy(), expression=exp.Literal.number(LONGEST_TEXT))


def weight(tree: exp.Expression, derived: Mapping[str, int]) -> int:
    """How many parts an expression has, with the derived columns that it uses written out."""
    return sum(derived.get(node.name, 1) if isinstance(node, exp.Column) else 1 for node in tree.walk())


def constants(tree: exp.Expression) -> list[exp.Expression]:
    """The largest parts that have no column in them but something to compute."""
    if isinstance(tree, exp.Column | exp.Var | exp.DataType | exp.Literal | exp.Boolean | exp.Null):
        return []
    if tree.find(exp.Column) is None and not isinstance(tree, exp.If):
        return [tree]
    return [found for part in tree.iter_expressions() for found in constants(part)]


def around_texts(tree: exp.Expression) -> list[exp.Expression]:
    """The least parts that have columns in them and a stated text: what the text is compared with, or given to."""
    found: dict[int, Any] = {}
    for text in tree.find_all(exp.Literal):
        part = text.parent
        while isinstance(part, exp.Paren) or (isinstance(part, exp.If) and isinstance(part.parent, exp.Case)):
            part = part.parent
        if text.is_string and part is not None and part.find(exp.Column):
            found[id(part)] = part
    return list(found.values())


def is_total(tree: exp.Expression, schema: Mapping[str, Kind]) -> bool:
    """Whether a condition can be computed for every row: whole numbers compared with literals, and so on.

    Only whole numbers: to compare other kinds an engine may cast, and a cast may fail.
    """
    if isinstance(tree, exp.And | exp.Or | exp.Not | exp.Paren):
        return all(is_total(part, schema) for part in tree.iter_expressions())
    if isinstance(tree, exp.Is):
        return isinstance(tree.this, exp.Column) and isinstance(tree.expression, exp.Null)
    if not isinstance(tree, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.In | exp.Between):
        return False
    compared, *others = tree.iter_expressions()
    if not isinstance(compared, exp.Column):
        return False
    return schema[compared.name] == "integer" and all(map(_is_whole, others))


def _is_whole(tree: Any) -> bool:
    literal = tree.this if isinstance(tree, exp.Neg) else tree
    return isinstance(literal, exp.Literal) and literal.is_int and len(literal.name) <= 18


def find(name: Any, schema: Mapping[str, Kind]) -> str:
    """The column of that name, as the schema spells it."""
    if isinstance(name, str):
        if name in schema:
            return name
        alike = [column for column in schema if column.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        near = get_close_matches(name, schema, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, schema))}"
        raise InvalidValue(f"there is no column {name!r}: {hint}")
    raise InvalidValue(f"a column is given by its name, got {said(name)}")


def column(name: str) -> exp.Column:
    """A column, quoted so that any name will do."""
    return exp.column(exp.to_identifier(name, quoted=True))


def _called(node: Any) -> str:
    if isinstance(node, exp.Anonymous):
        return f"{node.name.lower()}()"
    return f"{type(node).__name__.lower()}()" if isinstance(node, exp.Func) else type(node).__name__.lower()


def _why(node: Any) -> str:
    if isinstance(node, exp.Query | exp.Subquery):
        return "an expression is about one row, and a query looks at others"
    if isinstance(node, exp.AggFunc | exp.Window):
        return "an expression is about one row; ask the table for count(), sum(), mean() or histogram()"
    if isinstance(node, exp.Concat):
        return "write a || b, without NULL coalesce(a, '') || b"
    if isinstance(node, exp.DataType):
        return "cast to a number, boolean, text, date or time, by its plain name"
    return "only functions of one row that always give the same value are, and expost.data.ALLOWED lists them"
