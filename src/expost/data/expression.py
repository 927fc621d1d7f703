"""Expressions over one row, as text in SQL: parsed, checked against a list of what is allowed, bound to a schema.

What is allowed gives the same value for the same row, always, and looks at nothing but the row. What cannot be
computed for some row (a division by zero, an overflow, text that is no number) is NULL there.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from expost.cost import said
from expost.data.engine import Kind
from expost.errors import InvalidValue

_PLAIN = "Column Identifier Literal Boolean Null Paren Var DataType DataTypeParam Interval"
_LOGIC = "And Or Not EQ NEQ GT GTE LT LTE Is In Between NullSafeEQ NullSafeNEQ Case If Coalesce Nullif"
_NUMBERS = "Add Sub Mul Div IntDiv Mod Neg Abs Floor Ceil Round Sign Greatest Least Sqrt Ln Log Exp Pow IsNan IsInf"
_TEXT = "Like ILike Lower Upper Trim Length Substring Left Right StartsWith EndsWith Contains StrPosition DPipe Concat"
_TIME = "Extract Year Month Day Hour Minute Second Quarter Week DayOfWeek DayOfYear TimestampTrunc DateTrunc DateDiff"
_CASTS = "Cast TryCast Try RegexpLike"
_ALLOWED = frozenset(f"{_PLAIN} {_LOGIC} {_NUMBERS} {_TEXT} {_TIME} {_CASTS}".split())
_LONGEST = 10_000


def parse(text: Any, schema: Mapping[str, Kind]) -> exp.Expression:
    """The expression that ``text`` writes, with its columns as the schema spells them."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise InvalidValue(f"an expression is text in SQL such as 'age >= 18', got {said(text)}")
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except (SqlglotError, RecursionError):
        raise InvalidValue(f"{said(text)} is no expression in SQL: write for instance 'age >= 18'") from None
    for node in list(tree.walk()):
        if type(node).__name__ not in _ALLOWED:
            raise InvalidValue(f"{_called(node)} is not allowed in {said(text)}: {_why(node)}")
    for column in list(tree.find_all(exp.Column)):
        if column.table:
            raise InvalidValue(f"{column.sql('duckdb')!r} in {said(text)} has two names: give the column's alone")
        column.set("this", exp.to_identifier(find(column.name, schema), quoted=True))
    return cast(exp.Expression, tree)


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
    return "only comparisons, arithmetic, and functions of one row that always give the same value"
