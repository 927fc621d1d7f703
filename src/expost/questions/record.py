"""What a question of a table is made from: a frozen record of settings, read from and written as plain values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from expost.data.expression import Expression
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.question import OpenQuestion

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import TypeVar

    from expost.data.table import PrivateTable

    AQuestion = TypeVar("AQuestion", default=Any)
else:
    from typing import TypeVar

    AQuestion = TypeVar("AQuestion")  # what it is of a table, as a question

ColumnOf = str | Expression
"""A column or an expression: its text, or what that was parsed to."""


@dataclass(frozen=True)
class QuestionRecord(OpenQuestion, Generic[AQuestion]):
    """What is asked, without an ε and without data.

    Its fields are the keys of a study and of the service's JSON, and the parameters of the table's method of that name.
    :meth:`from_settings` reads them, and :meth:`settings` writes them.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, _fixed(getattr(self, each.name), each.name))

    @classmethod
    def from_settings(cls, values: Mapping[str, Any]) -> Self:
        """The record of these settings; those that are left out are the usual ones."""
        unknown = values.keys() - cls.names()
        if unknown:
            raise InvalidValue(f"a {cls.kind} has no setting {min(unknown)!r}: it has {', '.join(cls.names())}")
        return cls(**values)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What its settings are called."""
        return tuple(each.name for each in fields(cls))

    @abstractmethod
    def question(self, table: PrivateTable) -> AQuestion:
        """The question to a table. Raises ``InvalidValue`` for columns and settings that do not fit."""

    def about(self, data: Any, neighbours: Neighbours | None, unit: str | None) -> Any:
        """The question to a table, to all of its groups, or to an array of records, each of which is one unit."""
        from expost.data.groups import Groups
        from expost.data.records import table_of_records
        from expost.data.table import PrivateTable

        if isinstance(data, PrivateTable | Groups):
            return data.asked(self)  # type: ignore[arg-type]  # groups refuse what is no statistic
        table = table_of_records(data, neighbours, unit)
        return table.asked(self.of_columns(tuple(table.schema)))

    def of_columns(self, names: tuple[str, ...]) -> QuestionRecord[AQuestion]:
        """The same, of the columns of an array or a frame, if it names none itself."""
        stated = self.names()
        if "column" in stated and getattr(self, "column", None) is None:
            if len(names) > 1:
                raise InvalidValue(
                    f"a {self.kind} is of one column, and there are {len(names)}: name the one that is meant"
                )
            return replace(self, column=names[0])  # type: ignore[call-arg]
        if "columns" in stated and not getattr(self, "columns", None):
            return replace(self, columns=names)  # type: ignore[call-arg]
        return self

    def settings(self, *always: str) -> dict[str, Any]:
        """The settings that are not the usual ones, and those that are always stated, in plain JSON values."""
        own = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return {
            name: _plain(value) for name, value, usual in own if name in always or usual is MISSING or value != usual
        }


def column_of(column: ColumnOf | None, kind: str) -> ColumnOf:
    """The column that is asked about. Raises if none was named."""
    if column is None:
        raise InvalidValue(f"of which column is the {kind}? Name it first, as in xp.Mean('cost', bounds=…)")
    return column


def _fixed(value: Any, name: str) -> Any:
    """Lists as tuples: a question can be compared, and is what it was. Arrays are data, and no settings."""
    if getattr(value, "shape", ()) != () or hasattr(value, "to_frame"):
        raise InvalidValue(
            f"{name} is a setting, which is public, and got a {type(value).__name__}: settings are numbers, texts and "
            "lists of them, as in bounds=(0, 100) or columns=list(names); data goes into on=…"
        )
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return tuple(_fixed(each, name) for each in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Expression):
        return value.name
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real | Decimal | Fraction) else value
