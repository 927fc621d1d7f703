"""Expressions over one row as typed trees: columns, literals, and :mod:`~expost.data.expression.operators`.

An engine runs the SQL that it renders from a tree, never the text that a person wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, Literal, TypeAlias

from expost.errors import InvalidValue
from expost.mentions import brief

Kind: TypeAlias = Literal["integer", "number", "text", "boolean", "date", "timestamp", "other"]
"""What a column holds. Whole numbers have 64 bits, numbers are IEEE 754 doubles, timestamps have no time zone."""
KEY_KINDS: tuple[Kind, ...] = ("text", "integer", "boolean")
"""What groups, histograms and joins go by."""
NUMBER_KINDS: tuple[Kind, ...] = ("integer", "number", "boolean")
"""What sums, means and quantiles are of."""
Value: TypeAlias = int | float | str | bool | date | datetime | None
"""A value of some kind, or NULL."""
LONGEST_READ = 65_536
"""How many characters of a text column operators read."""


def unusable(name: str) -> str:
    """What is wrong with a column of no kind, and what to do."""
    return (
        f"column {name!r} is of a type that questions cannot use, or is stored in a way that fails for some values: "
        f"if it is a frame's column of objects, say what it holds, as in schema={{{name!r}: 'text'}}; if not, store it "
        "as text, as a number, or as a time in microseconds"
    )


@dataclass(frozen=True)
class Operator:
    """A function that is defined for every value of the kinds that it takes.

    ``meaning`` is what it computes, in Python. ``duckdb`` renders it for DuckDB: a template in which ``$0`` is the
    first argument, or a function of the rendered arguments. The SQL gives what ``meaning`` gives, and never fails.
    """

    name: str
    """As written in expressions."""
    takes: tuple[Kind, ...]
    gives: Kind
    meaning: Callable[..., Any]
    duckdb: str | Callable[[Sequence[str]], str]
    strict: bool = True
    """NULL if any argument is NULL; ``meaning`` is then not called."""
    many: bool = False
    """Takes one or more arguments of the last kind."""
    prefix: bool = False
    """Decided by the first characters of a text if its other arguments are literals: the text need not be cut."""
    stated: tuple[Any, ...] = ()
    """Its constants: lengths, or a pattern."""

    def uses(self, arguments: int) -> tuple[int, ...]:
        """How often each argument occurs in the rendered SQL."""
        template = self.duckdb
        if not isinstance(template, str):
            return (1,) * arguments
        return tuple(template.count(f"${i}") for i in range(arguments))


_TYPES: Mapping[Kind | None, type] = {
    "integer": int, "number": float, "text": str, "boolean": bool, "date": date, "timestamp": datetime,
}  # fmt: skip


def is_text(value: str) -> bool:
    """Whether engines accept this text: valid UTF-8 without NUL."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def fits(whole: int) -> bool:
    """Whether a whole number has at most 64 bits."""
    return -(2**63) <= whole < 2**63


@dataclass(frozen=True)
class Stated:
    """A literal. NULL has no kind until an operator gives it one.

    A value of another kind is refused: an engine would convert it, and fail, in the rows that get that far.
    """

    value: Value
    kind: Kind | None
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.value is None:
            return
        of_kind = type(self.value) is _TYPES.get(self.kind)
        if isinstance(self.value, str):
            of_kind = of_kind and is_text(self.value)
        elif isinstance(self.value, int):
            of_kind = of_kind and fits(self.value)
        elif isinstance(self.value, datetime):
            of_kind = of_kind and self.value.tzinfo is None
        if not of_kind:
            raise InvalidValue(f"a value of kind {self.kind} cannot be {brief(self.value)}: convert it")


@dataclass(frozen=True)
class Reference:
    """A column."""

    name: str
    kind: Kind
    depth: ClassVar[int] = 1


@dataclass(frozen=True)
class Call:
    """An operator and its arguments, of the kinds that it takes."""

    operator: Operator
    arguments: tuple[Tree, ...]
    depth: int = field(init=False, compare=False, repr=False)
    """How deeply calls are nested."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max(argument.depth for argument in self.arguments))

    @property
    def kind(self) -> Kind:
        """The kind of its result."""
        return self.operator.gives


Tree: TypeAlias = Stated | Reference | Call


def references(tree: Tree) -> Iterator[Reference]:
    """The columns of an expression, with their kinds, as often as they occur."""
    if isinstance(tree, Reference):
        yield tree
    elif isinstance(tree, Call):
        for argument in tree.arguments:
            yield from references(argument)


def columns(tree: Tree) -> Iterator[str]:
    """The names of the columns of an expression, as often as they occur."""
    return (reference.name for reference in references(tree))


def weight(tree: Tree, derived: Mapping[str, int]) -> int:
    """The number of parts of a rendered expression, with the derived columns that it uses written out."""
    if isinstance(tree, Call):
        uses = tree.operator.uses(len(tree.arguments))
        return 1 + sum(n * weight(part, derived) for n, part in zip(uses, tree.arguments, strict=True))
    return derived.get(tree.name, 1) if isinstance(tree, Reference) else 1


def evaluate(tree: Tree, row: Mapping[str, Value]) -> Any:
    """The value of an expression for a row: the reference that every engine is tested against."""
    if isinstance(tree, Stated):
        return tree.value
    if isinstance(tree, Reference):
        return row[tree.name]
    values = [_read(evaluate(argument, row)) for argument in tree.arguments]
    if tree.operator.strict and any(value is None for value in values):
        return None
    return tree.operator.meaning(*values)


def _read(value: Any) -> Any:
    return value[:LONGEST_READ] if isinstance(value, str) else value


def uncomputable(tree: Tree) -> bool:
    """Whether some part without columns would be NULL in every row, though no NULL is written in it."""
    if not isinstance(tree, Call):
        return False
    if next(columns(tree), None) is None:
        return evaluate(tree, {}) is None and not _has_null(tree)
    return any(map(uncomputable, tree.arguments))


def _has_null(tree: Tree) -> bool:
    if isinstance(tree, Call):
        return any(map(_has_null, tree.arguments))
    return isinstance(tree, Stated) and tree.value is None
