"""The choice of operators by the kinds of their arguments.

An integer is converted to a number where one is needed, a date to a timestamp, and a text literal beside a date to a
date; nothing else is converted implicitly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from expost.data.expression import calendar, operators
from expost.data.expression.tokens import DEEPEST, Tokens
from expost.data.expression.tree import Call, Kind, Operator, Stated, Tree
from expost.errors import InvalidValue
from expost.mentions import brief

BY_NAME: dict[str, list[Operator]] = {}
"""The operators of each name, one for each combination of kinds."""
for _operator in operators.TABLE:
    BY_NAME.setdefault(_operator.name, []).append(_operator)


def call(origin: Tokens, name: str, *arguments: Tree) -> Tree:
    """A call of the operator of that name that needs the fewest conversions."""
    found = [(_distance(each, arguments), each) for each in BY_NAME[name]]
    fitting = [(distance, each) for distance, each in found if distance is not None]
    if not fitting:
        raise _unfit(origin, name, arguments)
    made = _applied(min(fitting, key=lambda pair: pair[0])[1], arguments)
    if made.depth > DEEPEST:
        raise origin.too_deep()
    return made


def apply(origin: Tokens, operator: Operator, tree: Tree) -> Tree:
    """A call of this operator with one argument; raises if its kind does not fit."""
    if _distance(operator, [tree]) is None:
        raise origin.unfit(operator.name, operator.takes[0], str(tree.kind))
    return _applied(operator, [tree])


def _applied(operator: Operator, arguments: Sequence[Tree]) -> Call:
    kinds = _kinds(operator, len(arguments))
    return Call(operator, tuple(become(each, kind) for each, kind in zip(arguments, kinds, strict=True)))


def _kinds(operator: Operator, arguments: int) -> tuple[Kind, ...]:
    extra = arguments - len(operator.takes) if operator.many else 0
    return operator.takes + operator.takes[-1:] * max(extra, 0)


def _distance(operator: Operator, arguments: Sequence[Tree]) -> int | None:
    """How many conversions an operator needs, conversions of text counted twice; None if it does not fit."""
    kinds = _kinds(operator, len(arguments))
    if len(kinds) != len(arguments):
        return None
    each = [_away(argument, kind) for argument, kind in zip(arguments, kinds, strict=True)]
    return None if None in each else sum(cast(list[int], each))


def _away(tree: Tree, kind: Kind) -> int | None:
    if tree.kind == kind or tree.kind is None:
        return 0
    if (tree.kind, kind) in (("integer", "number"), ("date", "timestamp")):
        return 1
    return 2 if _is_text(tree) and kind in ("date", "timestamp") and as_time(tree, kind) else None


def _is_text(tree: Tree) -> bool:
    return isinstance(tree, Stated) and tree.kind == "text"


def as_time(tree: Tree, kind: Kind) -> Stated | None:
    """A text literal as a date or timestamp; None if it is not one."""
    text = str(cast(Stated, tree).value)
    value = calendar.as_date(text) if kind == "date" else calendar.as_timestamp(text)
    return None if value is None else Stated(value, kind)


def become(tree: Tree, kind: Kind) -> Tree:
    """A value converted to another kind, which it fits."""
    if tree.kind == kind:
        return tree
    if isinstance(tree, Stated) and tree.value is None:
        return Stated(None, kind)
    if _is_text(tree):
        return cast(Stated, as_time(tree, kind))
    operator = operators.CASTS[cast(Kind, tree.kind), kind]
    return Stated(operator.meaning(tree.value), kind) if isinstance(tree, Stated) else Call(operator, (tree,))


def _unfit(origin: Tokens, name: str, arguments: Sequence[Tree]) -> InvalidValue:
    kinds = [each.kind for each in arguments]
    if any(map(_is_text, arguments)) and set(kinds) - {"text", None}:
        return InvalidValue(
            f"{brief(origin.text)} has a text where another kind is needed: write a date as DATE '2024-01-31', and "
            "a number without quotation marks"
        )
    takes = sorted({" and ".join(each.takes) for each in BY_NAME[name]})
    wanted = ", or ".join(takes) if len(takes) <= 3 else "values of one kind"
    return origin.unfit(f"{name}()" if name.islower() else name, wanted, " and ".join(kind or "NULL" for kind in kinds))
