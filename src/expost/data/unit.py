"""`Unit`: whose privacy is protected, and how much of a table one of them may touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost.cost import said
from expost.errors import InvalidValue


@dataclass(frozen=True)
class Unit:
    """The unit of privacy: all rows with one value of a column, such as a person, a household or a device.

    Parameters
    ----------
    column
        The column that names the unit; None if each row is a unit of its own.
    rows
        How many of a unit's rows are counted in an answer at most.
    groups
        How many cells of a histogram a unit may be counted in; by default as many as rows.

    Which rows and cells are kept is decided by a keyed hash, for each unit by its own rows alone. Rows in which the
    column is NULL belong to nobody and are never counted.

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
            raise InvalidValue(f"a unit is named by a column, got {said(column)}; or pass unit='row'")
        for name, bound in (("rows", rows), ("groups", rows if groups is None else groups)):
            if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= MOST_ROWS:
                raise InvalidValue(f"a unit has at least one and at most 2^31 {name}, got {said(bound)}")
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
    """The unit that was meant: ``"row"``, or a :class:`Unit`."""
    if isinstance(unit, Unit):
        return unit
    if isinstance(unit, str) and unit == "row":
        return ROW
    raise InvalidValue(
        f"unit is whose privacy is protected: 'row', or Unit('person', rows=10) for a column and the most rows "
        f"that one of its values may have; got {said(unit)}"
    )
