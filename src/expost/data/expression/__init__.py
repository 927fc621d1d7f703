"""Expressions over one row: parsed from text, typed, and defined for every row."""

from expost.data.expression.expression import Expression, read_expression, read_value
from expost.data.expression.functions import FUNCTIONS
from expost.data.expression.grammar import find_column, parse
from expost.data.expression.meant import is_word
from expost.data.expression.tree import (
    KEY_KINDS,
    NUMBER_KINDS,
    Kind,
    Tree,
    columns,
    evaluate,
    is_text,
    unusable,
    weight,
)

ALLOWED = (
    "comparisons, AND, OR, NOT, IS, IN, BETWEEN, CASE; + - * / // %, || and LIKE, ILIKE; CAST, ::; DATE, TIMESTAMP, "
    f"INTERVAL; {', '.join(FUNCTIONS)}"
)
"""What expressions may contain."""
HEAVIEST = 10_000
"""The most parts of a rendered expression, with the derived columns that it uses written out."""

__all__ = [
    "ALLOWED",
    "HEAVIEST",
    "KEY_KINDS",
    "NUMBER_KINDS",
    "Expression",
    "Kind",
    "Tree",
    "columns",
    "evaluate",
    "find_column",
    "is_text",
    "is_word",
    "parse",
    "read_expression",
    "read_value",
    "unusable",
    "weight",
]
