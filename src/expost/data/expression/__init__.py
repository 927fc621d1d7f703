"""Expressions over one row: parsed from text, typed, and defined for every row."""

from expost.data.expression.functions import FUNCTIONS
from expost.data.expression.grammar import find_column, is_text, parse
from expost.data.expression.tree import Kind, Tree, columns, evaluate, weight

ALLOWED = (
    "comparisons, AND, OR, NOT, IS, IN, BETWEEN, CASE; + - * / // %, || and LIKE, ILIKE; CAST, ::; DATE, TIMESTAMP, "
    f"INTERVAL; {', '.join(FUNCTIONS)}"
)
"""What expressions may contain."""
HEAVIEST = 10_000
"""The most parts of a rendered expression, with the derived columns that it uses written out."""

__all__ = ["ALLOWED", "HEAVIEST", "Kind", "Tree", "columns", "evaluate", "find_column", "is_text", "parse", "weight"]
