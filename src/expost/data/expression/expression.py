"""`Expression`: what somebody wrote, and the tree that it was parsed to.

Text is parsed once, where it enters. Everything behind that holds expressions, which are no texts, so that nothing can
parse them again and understand something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from expost.data.expression.fitting import BY_NAME
from expost.data.expression.functions import if_whole
from expost.data.expression.grammar import parse
from expost.data.expression.meant import quoted_name, text_literal
from expost.data.expression.operators import CASTS
from expost.data.expression.tokens import Tokens
from expost.data.expression.tree import Call, Kind, Reference, Stated, Tree, Value


@dataclass(frozen=True)
class Expression:
    """A column or an expression over one row: its tree is what runs, its text is for people.

    Parameters
    ----------
    text
        As one writes it in a filter. It determines the tree: a column whose name is no plain word is in quotation
        marks.
    tree
        What it means.
    name
        What a column of its values is called: the column's own name; of anything else, the text.
    """

    text: str
    tree: Tree = field(compare=False, repr=False)
    name: str = field(compare=False, repr=False)

    @property
    def kind(self) -> Kind | None:
        """What its values are; None if it is NULL in every row."""
        return self.tree.kind

    def __str__(self) -> str:
        return self.text

    def as_number(self) -> Expression:
        """The same as a number; true is 1."""
        kind = cast(Kind, self.kind)
        return self if kind == "number" else replace(self, tree=Call(CASTS[kind, "number"], (self.tree,)))

    def as_whole(self) -> Expression:
        """The same as an integer where it is whole, and NULL where it is not."""
        text = f"whole({self.text})"
        return Expression(text, if_whole(Tokens(text), self.tree), self.name)

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole, though they may be read as numbers of any kind."""
        casts = [CASTS[kind, "number"] for kind in ("integer", "boolean") if (kind, "number") in CASTS]
        return self.kind in ("integer", "boolean") or (isinstance(self.tree, Call) and self.tree.operator in casts)

    def equals(self, value: Value) -> Expression:
        """The condition that it has this value, which is of its kind."""
        kind = cast(Kind, self.kind)
        (operator,) = (each for each in BY_NAME["="] if each.takes == (kind, kind))
        operand = self.text if isinstance(self.tree, Reference) else f"({self.text})"
        text = f"{operand} = {_literal(value)}"
        return Expression(text, Call(operator, (self.tree, Stated(value, kind))), text)


def read_expression(text: Any, schema: Mapping[str, Kind]) -> Expression:
    """Parse an expression over these columns."""
    tree = parse(text, schema)
    return column(tree) if isinstance(tree, Reference) else Expression(text, tree, text)


def read_value(text: Any, schema: Mapping[str, Kind]) -> Expression:
    """A column, if there is one of exactly this name, whatever the name looks like; otherwise an expression."""
    if isinstance(text, str) and text in schema:
        return column(Reference(text, schema[text]))
    return read_expression(text, schema)


def column(reference: Reference) -> Expression:
    """A column as an expression."""
    return Expression(quoted_name(reference.name), reference, reference.name)


def _literal(value: Value) -> str:
    return text_literal(value) if isinstance(value, str) else f"{value}"
