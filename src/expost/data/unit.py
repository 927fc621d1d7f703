"""`Unit`: whose privacy is protected, and how much each of them may contribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost.errors import InvalidValue
from expost.mentions import brief


@dataclass(frozen=True)
class Unit:
    """The unit of privacy: all rows with one value of a column, such as a person, a household or a device.

    Parameters
    ----------
    column
        The column that names the unit; None if each row is a unit of its own.
    rows
        The most rows of a unit that count in an answer.
    groups
        The most cells of a histogram, or groups, in which a unit counts; by default as many as rows.

    A keyed hash of a unit's own rows decides which of them are kept. Rows in which the column is NULL belong to no
    unit and are never counted.

    >>> Unit("person", rows=10, groups=3)
    Unit('person', rows=10, groups=3)

    Proof: lem-unit-truncation
    """

    column: str | None
    """None if every row is a unit of its own."""
    rows: int
    groups: int

    def __init__(self, column: str | None, *, rows: int, groups: int | None = None) -> None:
        if column is not None and (not isinstance(column, str) or not column):
            raise InvalidValue(f"a unit is identified by the name of a column, got {brief(column)}; or pass unit='row'")
        for name, bound in (("rows", rows), ("groups", rows if groups is None else groups)):
            if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= MOST_ROWS:
                raise InvalidValue(f"{name} is a whole number from 1 to 2^31, got {brief(bound)}")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "groups", min(rows, rows if groups is None else groups))

    def __repr__(self) -> str:
        if self.column is None:
            return "'row'"
        return f"Unit({self.column!r}, rows={self.rows}, groups={self.groups})"


MOST_ROWS = 2**31
ROW = Unit(None, rows=1)
"""Every row is a unit of its own."""


def as_unit(unit: Any) -> Unit:
    """The unit of privacy: ``"row"``, or a :class:`Unit`."""
    if isinstance(unit, Unit):
        return unit
    if isinstance(unit, str) and unit == "row":
        return ROW
    raise InvalidValue(
        f"unit is whose privacy is protected, 'row', or Unit('person', rows=10) for a column and the most rows "
        f"that count of each of its values; got {brief(unit)}"
    )
